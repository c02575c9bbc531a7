"""Writes docs/generated/ and docs/static/split.svg: python -m generate, in docs/.

Environment: BUILD_DIR, where CMake has built libsplit.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/conformance"))

from generate import api, cpp_api, errors, performance, pictures, python_api, seven  # noqa: E402

out = ROOT / "docs/generated"
parts = out / "parts"
parts.mkdir(parents=True, exist_ok=True)
include = ROOT / "include"
c_page, dlpack_page = api.pages((include / "libsplit.h").read_text(),
                                (include / "libsplit_dlpack.h").read_text())
(out / "api.md").write_text(c_page)
(out / "dlpack_api.md").write_text(dlpack_page)
(out / "cpp_api.md").write_text(cpp_api.page((include / "libsplit.hpp").read_text()))
python = ROOT / "python/source/libsplit"
(out / "python_api.md").write_text(python_api.page(
    (python / "__init__.py").read_text(), (python / "_libsplit.pyi").read_text(),
    [file.read_text() for file in sorted((ROOT / "python/src").glob("*.rs"))]))
(parts / "errors.md").write_text(errors.table())
(parts / "seven.md").write_text(seven.table())
results = ROOT / "bench/results"
(parts / "summary.md").write_text(performance.summary(results))
(parts / "losses.md").write_text(performance.losses(results))
(parts / "chart.md").write_text(performance.charts(results, out))
(parts / "performance.md").write_text(performance.tables(results))
for name, drawing in pictures.all_of_them().items():
    (out / f"{name}.svg").write_text(drawing)
# The picture of the README, which is committed.
(ROOT / "docs/static/split.svg").write_text(pictures.split())
