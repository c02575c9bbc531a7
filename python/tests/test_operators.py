"""The operators called by their names: ONNX's own cases, versions, element types."""

import json
import pathlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import libsplit
from libsplit import Operator

CASES = pathlib.Path(__file__).parents[2] / "tests/cases"


def operator(case: dict[str, Any]) -> Operator:
    split = case["split"]
    if split is not None and case.get("split_dtype"):
        split = np.array(split, case["split_dtype"])
    axis = case["axis"] or 0
    if case["op"] == "SplitToSequence":
        keepdims = case.get("keepdims") != 0
        return Operator.split_to_sequence(split, axis=axis, keepdims=keepdims, opset=case["opset"])
    parts = case.get("num_outputs")
    if split is None and parts is None:
        parts = len(case["outputs"])
    return Operator.onnx_split(split, axis=axis, num_outputs=parts, opset=case["opset"])


@pytest.mark.parametrize(
    "case", json.loads((CASES / "onnx.json").read_text()), ids=lambda case: str(case["name"])
)
def test_onnx_cases(case: dict[str, Any]) -> None:
    shape, dtype = case["input_shape"], case["dtype"]
    size = int(np.prod(shape))
    x = np.array(case["input"] if case["input"] is not None else range(size)).astype(dtype)
    x = x.reshape(shape)
    expected = [(tuple(out["shape"]), out["data"]) for out in case["outputs"]]
    rule = operator(case)
    for pieces in libsplit.split(x, rule), libsplit.copy(x, rule), libsplit.Plan(x, rule).split(x):
        assert [piece.shape for piece in pieces] == [shape for shape, _ in expected]
        if case["input"] is not None:
            for piece, (_, data) in zip(pieces, expected):
                assert piece.ravel().tolist() == np.array(data).astype(dtype).tolist()


def known(shape: list[Any]) -> tuple[int | None, ...]:
    return tuple(extent if isinstance(extent, int) else None for extent in shape)


@pytest.mark.parametrize(
    "case", json.loads((CASES / "onnx_shape.json").read_text()), ids=lambda case: str(case["name"])
)
def test_onnx_shape_cases(case: dict[str, Any]) -> None:
    shape = known(case["input_shape"])
    if case["error"] is not None:
        with pytest.raises(ValueError):
            libsplit.infer(shape, operator(case), dtype=case["dtype"])
    elif case["outputs"] is None:  # a sequence: ONNX infers only what all pieces have in common
        common = case["seq_elem_shape"]
        for piece in libsplit.infer(tuple(extent or 12 for extent in shape), operator(case)):
            assert all(want in (None, got) for want, got in zip(common, piece, strict=True))
    else:
        outputs = libsplit.infer(shape, operator(case), dtype=case["dtype"])
        for got, want in zip(outputs, case["outputs"], strict=True):
            # libsplit keeps the lengths of an unknown extent, which ONNX's inference drops.
            assert all(b in (None, a) for a, b in zip(got, known(want), strict=True))


def test_names() -> None:
    x = np.arange(10.0, dtype=np.float32).reshape(2, 5)
    assert [p.shape for p in libsplit.onnx_split(x, [2, 3], axis=1)] == [(2, 2), (2, 3)]
    assert [p.shape for p in libsplit.onnx_split(x, num_outputs=2, axis=1)] == [(2, 3), (2, 2)]
    assert [p.shape for p in libsplit.split_to_sequence(x, 2, axis=-1)] == [(2, 2), (2, 2), (2, 1)]
    rows = libsplit.split_to_sequence(x, keepdims=False)
    assert np.array_equal(np.stack(rows), x)
    assert [p.shape for p in libsplit.variadic_split(x, [-1, 1], axis=1)] == [(2, 4), (2, 1)]
    assert [p.shape for p in libsplit.openvino_split(x, 5, axis=1)] == [(2, 1)] * 5
    assert all(piece.base is x.base for piece in rows)


def test_versions() -> None:
    seven = np.arange(7.0)
    assert [len(p) for p in libsplit.onnx_split(seven, num_outputs=3)] == [3, 3, 1]
    for opset in 1, 2, 11, 13, 17:
        with pytest.raises(ValueError, match="num_outputs is .*, but ONNX Split-"):
            libsplit.onnx_split(seven, num_outputs=3, opset=opset)
    five = libsplit.onnx_split(np.arange(5), num_outputs=4, clamp_uneven=True)
    assert [len(piece) for piece in five] == [2, 2, 1, 0]
    with pytest.raises(ValueError, match="num_outputs is 4.*use fewer, clamp_uneven=True, or lengths"):
        libsplit.onnx_split(np.arange(5), num_outputs=4)
    with pytest.raises(ValueError, match="parts_or_lengths is 4.*use fewer, uneven='even_out', or lengths"):
        libsplit.split(np.arange(5), 4, uneven="last_smaller")
    with pytest.raises(ValueError, match="^num_splits is .*: split by lengths"):
        libsplit.openvino_split(seven, 3)
    with pytest.raises(ValueError, match="^neither split nor num_outputs is given"):
        libsplit.onnx_split(seven)
    with pytest.raises(ValueError, match="opset is 10, but ONNX SplitToSequence begins at 11"):
        libsplit.split_to_sequence(seven, opset=10)
    with pytest.raises(ValueError, match="the dtype of split is INT32"):
        libsplit.onnx_split(seven, np.array([3, 4], np.int32))
    assert len(libsplit.onnx_split(seven, np.array([3.0, 4.0]), opset=1)) == 2


def test_element_types() -> None:
    def first(x: Any, *arguments: Any, **options: Any) -> str:
        return str(libsplit.onnx_split(x, num_outputs=2, *arguments, **options)[0].dtype)

    bfloat16 = np.arange(4).astype(ml_dtypes.bfloat16)
    assert first(bfloat16, opset=13) == "bfloat16"
    with pytest.raises(TypeError, match="BFLOAT16 is not allowed by ONNX Split-11: ONNX Split-13"):
        first(bfloat16, opset=11)
    with pytest.raises(TypeError, match="INT64 is not allowed by ONNX Split-1"):
        first(np.arange(4), opset=1)
    for dtype in ml_dtypes.int4, ml_dtypes.float8_e4m3fn:
        x = np.arange(4).astype(dtype)
        assert [p.tolist() for p in libsplit.openvino_split(x, 2)] == [[0, 1], [2, 3]]
        with pytest.raises(TypeError, match="OpenVINO VariadicSplit-1 allows it"):
            first(x)
    words = np.array(["one", "two"])
    assert [p.tolist() for p in libsplit.onnx_split(words, num_outputs=2)] == [["one"], ["two"]]
    assert libsplit.split_to_sequence(words, keepdims=False)[1].tolist() == "two"
    with pytest.raises(TypeError, match="STRING is not allowed by ONNX Split-1"):
        first(words, opset=1)
    for no_type in "M8[s]", "V3", "g":
        with pytest.raises(TypeError, match="is not an element type of ONNX"):
            first(np.zeros(4, no_type))


def test_split_1_takes_elements_between_others() -> None:
    x = np.zeros(6, [("x", "f4"), ("y", "i1")])
    x["x"] = range(6)
    pieces = libsplit.onnx_split(x["x"], num_outputs=2, opset=1)
    assert [piece.tolist() for piece in pieces] == [[0, 1, 2], [3, 4, 5]]
    last = libsplit.split_to_sequence(x["x"].reshape(2, 3), keepdims=False, axis=-1)[2]
    assert np.array_equal(last, [2, 5])


def test_an_operator_tells_what_it_is() -> None:
    assert repr(Operator.variadic_split([1, -1], axis=2)) == (
        "Operator.variadic_split([1, -1], axis=2)"
    )
    assert repr(Operator.split_to_sequence(3)) == (
        "Operator.split_to_sequence(3, axis=0, keepdims=True, opset=24)"
    )
