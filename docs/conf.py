"""How Sphinx builds the guide. 'make docs' writes docs/generated/ first; see docs/generate."""

import pathlib
import re

root = pathlib.Path(__file__).resolve().parents[1]
project = "libsplit"
copyright = "the authors of libsplit"
release = re.search(r'^version = "(.*)"', (root / "Cargo.toml").read_text(), re.M)[1]
extensions = ["myst_parser"]
exclude_patterns = ["generated/parts", "static"]
html_theme = "furo"
html_title = f"libsplit {release}"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_show_sourcelink = False
html_copy_source = False
html_use_index = False
myst_heading_anchors = 3
nitpicky = True
