"""Writes docs/generated/: python -m generate, in docs/, with BUILD_DIR set."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/conformance"))

from generate import api, errors, performance, pictures, seven  # noqa: E402

out = ROOT / "docs/generated"
parts = out / "parts"
parts.mkdir(parents=True, exist_ok=True)
(out / "api.md").write_text(api.page((ROOT / "include/libsplit.h").read_text()))
(parts / "errors.md").write_text(errors.table())
(parts / "seven.md").write_text(seven.table())
(parts / "performance.md").write_text(performance.tables(ROOT / "bench/results", out))
for name, drawing in pictures.all_of_them().items():
    (out / f"{name}.svg").write_text(drawing)
