"""The custom ops: domain 'libsplit', and the override of ONNX Runtime's own Split."""

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto

from support import LIBRARY, assert_same, pieces, random_bits, run_bits, split_model

X = np.arange(42, dtype=np.float32).reshape(2, 7, 3)


def session(model, override=None):
    options = ort.SessionOptions()
    if override is not None:
        options.add_session_config_entry("libsplit.override_split", override)
    options.register_custom_ops_library(str(LIBRARY))
    return ort.InferenceSession(model.SerializeToString(), options)


def op(name, outputs, **options):
    return split_model(outputs, op=name, domain="libsplit", **options)


@pytest.mark.parametrize("lengths, expected", [
    ([1, -1, 2], [1, 4, 2]), ([-1, 0, 7], [0, 0, 7]), ([3, 3, 1], [3, 3, 1]),
])
@pytest.mark.parametrize("dynamic", [False, True])
def test_variadic_split(lengths, expected, dynamic):
    model = op("VariadicSplit", ["a", "b", "c"], lengths="input" if dynamic else lengths, axis=1)
    feeds = {"x": X} | ({"lengths": np.array(lengths)} if dynamic else {})
    assert_same(session(model).run(None, feeds), pieces(X, expected, 1))


@pytest.mark.parametrize("outputs, options, expected", [
    ("abc", {"num_outputs": 3}, [3, 3, 1]),
    ("ab", {"lengths": [3, 4]}, [3, 4]),
    ("abcdefg", {}, [1] * 7),
    ("ab", {"split": [3, 4]}, [3, 4]),
])
def test_split(outputs, options, expected):
    opened = session(op("Split", list(outputs), axis=-2, **options))
    assert_same(opened.run(None, {"x": X}), pieces(X, expected, 1))


TYPES = {
    TensorProto.FLOAT: 4, TensorProto.UINT8: 1, TensorProto.INT8: 1, TensorProto.UINT16: 2,
    TensorProto.INT16: 2, TensorProto.INT32: 4, TensorProto.INT64: 8, TensorProto.FLOAT16: 2,
    TensorProto.DOUBLE: 8, TensorProto.UINT32: 4, TensorProto.UINT64: 8, TensorProto.BFLOAT16: 2,
    TensorProto.FLOAT8E4M3FN: 1, TensorProto.FLOAT8E4M3FNUZ: 1, TensorProto.FLOAT8E5M2: 1,
    TensorProto.FLOAT8E5M2FNUZ: 1,
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name, lengths", [("Split", [2, 5]), ("VariadicSplit", [2, -1])])
def test_every_type(name, lengths, dtype):
    opened = session(op(name, ["a", "b"], dtype=dtype, lengths=lengths, opset=19))
    bits = random_bits(TYPES[dtype], (7, 3))
    actual = run_bits(opened, dtype, bits, [(2, 3), (5, 3)])
    assert_same(actual, pieces(bits, [2, 5]))


@pytest.mark.parametrize("name", ["Split", "VariadicSplit"])
def test_strings_and_bools(name):
    strings = np.array(["", "nul\0inside", "長さ"], object)
    model = op(name, ["a", "b"], dtype=TensorProto.STRING, lengths=[1, 2])
    assert_same(session(model).run(None, {"x": strings}), pieces(strings, [1, 2]))
    bools = np.array([True, False, True])
    model = op(name, ["a", "b"], dtype=TensorProto.BOOL, lengths=[1, 2])
    assert_same(session(model).run(None, {"x": bools}), pieces(bools, [1, 2]))


def test_outputs_that_are_not_used():
    a, _, c = pieces(X, [1, 4, 2], 1)
    model = op("VariadicSplit", ["a", "", "c"], lengths=[1, -1, 2], axis=1)
    assert_same(session(model).run(None, {"x": X}), [a, c])


@pytest.mark.parametrize("lengths, message", [
    ([3, -1, -1], "-1"), ([9, -1, 0], "9"), ([3, 3, 3], "the sum of split_lengths is 9, but the extent of the axis is 7"), ([3, 4], "2"),
])
def test_bad_lengths_are_an_error_with_the_reason(lengths, message):
    opened = session(op("VariadicSplit", ["a", "b", "c"], lengths="input", axis=1))
    for _ in range(3):
        with pytest.raises(Exception, match=f"libsplit: .*{message}"):
            opened.run(None, {"x": X, "lengths": np.array(lengths)})
        good = opened.run(None, {"x": X, "lengths": np.array([1, -1, 2])})
        assert_same(good, pieces(X, [1, 4, 2], 1))


@pytest.mark.parametrize("name, attributes, message", [
    ("Split", {"split": [5.0, 1.0]}, "attribute split is not a list of integers"),
    ("Split", {"split": 5}, "attribute split is not a list of integers"),
    ("Split", {"split": ["5", "1"]}, "attribute split is not a list of integers"),
    ("Split", {"axis": "x"}, "attribute axis is not an integer"),
    ("Split", {"axis": [1]}, "attribute axis is not an integer"),
    ("Split", {"axis": 1.0}, "attribute axis is not an integer"),
    ("Split", {"num_outputs": 2.0}, "attribute num_outputs is not an integer"),
    ("Split", {"num_outputs": 3}, "attribute num_outputs is 3, but the node has 2 outputs"),
    ("Split", {"num_outputs": 0}, "attribute num_outputs is 0, but the node has 2 outputs"),
    ("Split", {"num_outputs": -2}, "attribute num_outputs is -2, but the node has 2 outputs"),
    ("VariadicSplit", {"axis": "x", "lengths": [1, 1]}, "attribute axis is not an integer"),
])
def test_bad_attributes_are_an_error_with_the_reason(name, attributes, message):
    with pytest.raises(Exception, match=f"libsplit: {message}"):
        session(op(name, ["a", "b"], **attributes))


class TestOverride:
    """6 into 4 parts: ONNX Runtime's own kernel refuses it."""

    x = np.arange(6, dtype=np.float32)
    model = split_model(list("abcd"), num_outputs=4)

    @pytest.mark.parametrize("override", [None, "0"])
    def test_onnx_runtimes_own_split_is_left_alone(self, override):
        model = split_model(["a", "b"], lengths="input")
        with pytest.raises(Exception, match="Split node") as raised:
            session(model, override).run(None, {"x": self.x, "lengths": np.array([1, 2])})
        assert "libsplit" not in str(raised.value)

    def test_unless_the_session_asks_for_it(self):
        actual = session(self.model, "1").run(None, {"x": self.x})
        assert_same(actual, pieces(self.x, [2, 2, 2, 0]))

    @pytest.mark.parametrize("opset, options", [
        (2, {"split": [2, 4]}), (11, {"split": [2, 4]}), (13, {"lengths": [2, 4]}),
        (18, {"lengths": [2, 4]}),
    ])
    def test_at_every_version(self, opset, options):
        model = split_model(["a", "b"], opset=opset, **options)
        assert_same(session(model, "1").run(None, {"x": self.x}), pieces(self.x, [2, 4]))

    def test_anything_else_is_an_error(self):
        with pytest.raises(Exception, match='libsplit.override_split is "yes"'):
            session(self.model, "yes")


def test_sessions_by_the_hundred():
    model = op("Split", ["a", "b"], num_outputs=2)
    for _ in range(100):
        assert_same(session(model).run(None, {"x": X}), pieces(X, [1, 1]))
