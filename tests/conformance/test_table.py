"""Wrong results are recognized: each verdict, given for a result that deserves it."""

import pathlib
import sys

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import cases
import run
import table
from runners import c

EVERY = cases.load()
SEVEN = EVERY["Split-18: 7 into 3"]
REFUSED = EVERY["Split-18: lengths -1, 7 of 6"]


def floats(*values):
    return cases.digest_bytes(np.array(values, np.float32).tobytes())


RIGHT = {"shapes": [[3], [3], [1]], "digests": [floats(0, 1, 2), floats(3, 4, 5), floats(6)]}


@pytest.mark.parametrize("case, result, word", [
    (SEVEN, RIGHT, "same"),
    (SEVEN, {"shapes": [[3], [2], [2]], "digests": [floats(0, 1, 2), floats(3, 4),
                                                    floats(5, 6)]}, "shape"),
    (SEVEN, RIGHT | {"digests": [floats(0, 1, 2), floats(3, 4, 5), floats(7)]}, "values"),
    (SEVEN, {"shapes": RIGHT["shapes"][:2], "digests": RIGHT["digests"][:2]}, "shape"),
    (SEVEN, {"error": "no", "status": None}, "refused"),
    (SEVEN, {"crash": "SIGSEGV"}, "crash"),
    (SEVEN, {"shapes": [[3], [None], [1]]}, "less"),
    (SEVEN, {"shapes": [[3], [None], [2]]}, "shape"),
    (REFUSED, {"error": "no", "status": None}, "same"),
    (REFUSED, {"error": "no", "status": "SPLIT_SIZES"}, "same"),
    (REFUSED, {"error": "no", "status": "AXIS"}, "status"),
    (REFUSED, {"shapes": [[5], [1]], "digests": [floats(0, 1, 2, 3, 4), floats(5)]}, "accepted"),
    (REFUSED, {"shapes": [[0], [7]], "digests": [floats(), floats(0, 1, 2, 3, 4, 5, 9)]},
     "past the end"),
    (REFUSED, {"shapes": [[5], [2]], "digests": [floats(0, 1, 2, 3, 4), floats(5, 9)]},
     "past the end"),
])
def test_verdict(case, result, word):
    assert table.verdict(case, result) == word


def test_packed_elements_begin_within_a_byte():
    case = EVERY["VariadicSplit: uint4"]
    assert cases.pack("uint4", case.elements()[:, :1]) == bytes([0x50, 0x0A])


def test_a_crash_is_a_result_and_the_next_case_is_run():
    worker = run.Worker("crashing_for_the_test")
    assert worker.ask(SEVEN) == {"crash": "SIGSEGV"}
    assert "error" in worker.ask(REFUSED)
    worker.stop()


def test_the_committed_page_has_every_case():
    root = pathlib.Path(__file__).resolve().parents[2]
    page = (root / "docs/conformance.md").read_text()
    missing = [case.name for case in EVERY.values() if table.name(case) not in page]
    assert not missing, "run 'make conformance' and commit docs/conformance.md"
    assert f"\n{len(EVERY)} cases, run on libsplit" in page
    summary = [line.split(" | ") for line in page.partition("| version |")[2].split("\n\n")[0].splitlines()[2:]]
    for name, _, *counts in summary:
        assert sum(int(count.strip(" |")) for count in counts) == len(EVERY), name


def test_the_newest_opset_that_libsplit_was_compared_with_is_that_of_this_onnx():
    header = (pathlib.Path(__file__).parents[2] / "include/libsplit.h").read_text()
    assert f"define LIBSPLIT_ONNX_OPSET {onnx.defs.onnx_opset_version()}\n" in header


@pytest.mark.parametrize("number, name", [(1, "Split"), (2, "SplitToSequence")])
def test_at_every_opset_the_version_is_that_of_onnx(number, name):
    for opset in range(1, onnx.defs.onnx_opset_version() + 1):
        try:
            version = onnx.defs.get_schema(name, opset).since_version
        except onnx.defs.SchemaError:
            version = 0
        assert c.lib.libsplit_op_version(number, opset) == version, opset
