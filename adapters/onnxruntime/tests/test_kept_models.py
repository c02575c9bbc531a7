"""Models with the custom ops that earlier releases were published with: c-tests/abi/<version>/custom_ops.onnx.

The name of each output says which part of the input 'x' it is, in NumPy's words: 'axis1_from3_to5'. A model stays as it is
once that version has been released; until then, 'python test_kept_models.py' makes it anew.
"""

import re

import numpy as np
import onnx
import pytest
from onnx import helper

from support import ROOT, assert_same, constant, model_of, value
from test_custom_ops import session

KEPT = sorted((ROOT / "c-tests/abi").glob("*/custom_ops.onnx"))
X = np.arange(2 * 7 * 3, dtype=np.float32).reshape(2, 7, 3)


def part(name):
    """The part of X that an output is named after."""
    axis, begin, end = map(int, re.fullmatch(r"axis(\d+)_from(\d+)_to(\d+)", name).groups())
    return X.take(range(begin, end), axis)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.parent.name)
def test_every_release(path):
    opened = session(onnx.load(path))
    names = [output.name for output in opened.get_outputs()]
    assert len(names) >= 10
    feeds = {"x": X, "lengths": np.array([4, -1])}
    assert_same(opened.run(names, feeds), [part(name) for name in names])


def newest_model():
    """Both ops with each kind of lengths, a negative axis, an output that is not used, and num_outputs."""
    nodes = [
        helper.make_node("VariadicSplit", ["x", "constant"], ["axis1_from0_to1", "", "axis1_from5_to7"],
                         domain="libsplit", axis=1),
        helper.make_node("VariadicSplit", ["x", "lengths"], ["axis1_from0_to4", "axis1_from4_to7"],
                         domain="libsplit", axis=-2),
        helper.make_node("Split", ["x"], ["axis1_from0_to3", "axis1_from3_to6", "axis1_from6_to7"],
                         domain="libsplit", axis=1, num_outputs=3),
        helper.make_node("Split", ["x"], ["axis2_from0_to2", "axis2_from2_to3"], domain="libsplit", axis=2, split=[2, 1]),
        helper.make_node("Split", ["x"], ["axis0_from0_to1", "axis0_from1_to2"], domain="libsplit"),
    ]
    outputs = [value(name) for node in nodes for name in node.output if name]
    inputs = [value("x"), value("lengths", onnx.TensorProto.INT64)]
    return model_of(nodes, inputs, outputs, [constant("constant", np.array([1, -1, 2]))])


if __name__ == "__main__":
    newest = max((ROOT / "c-tests/abi").iterdir(), key=lambda path: [int(number) for number in path.name.split(".")])
    onnx.save(newest_model(), newest / "custom_ops.onnx")
