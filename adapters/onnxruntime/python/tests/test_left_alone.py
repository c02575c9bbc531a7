"""If Split would not give the same results, the model stays as it is, and the reason is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libsplit_onnxruntime.rewrite import rewrite
from models import model, pieces_model, value
from onnx import GraphProto, ModelProto, TensorProto, helper
from onnx.numpy_helper import from_array

node = helper.make_node


def pieces(*arguments: Any, **options: Any) -> ModelProto:
    return pieces_model([7, 3], *arguments, **options)


def with_users(*users: Any, outputs: Any = (), inputs: Any = (), **constants: Any) -> ModelProto:
    """Makes a model that splits [7, 3] into 4 and 3, takes one piece, and uses the sequence elsewhere."""
    nodes = [
        node("SplitToSequence", ["x", "step"], ["q"], name="cut"),
        node("SequenceAt", ["q", "zero"], ["y"], name="take"),
        *users,
    ]
    outputs = [value("y", [None, None]), *outputs]
    constants = {"step": 4, "zero": 0} | constants
    inputs = [value("x", [7, 3]), *inputs]
    return model(nodes, inputs, outputs, constants, domains=["com.example"])


def sequence_output() -> ModelProto:
    output = helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None)
    return with_users(outputs=[output])


def captured() -> ModelProto:
    then = helper.make_graph([node("SequenceAt", ["q", "zero"], ["t"])], "then", [],
                             [value("t", [None, None])])
    other = helper.make_graph([node("Identity", ["x"], ["e"])], "else", [],
                              [value("e", [None, None])])
    return with_users(node("If", ["c"], ["z"], name="choice", then_branch=then, else_branch=other),
                      outputs=[value("z", [None, None])], inputs=[value("c", [], "bool")])


def input_lengths() -> ModelProto:
    made = pieces([3, 4], [0])
    made.graph.input.append(value("lengths", [2], "int64"))  # which a caller may override
    return made


def hidden_constant() -> ModelProto:
    """A value in a body hides a constant of the surrounding graph."""
    made = with_users()
    body = GraphProto(name="body")
    body.node.extend([node("Size", ["x"], ["zero"]), *made.graph.node])
    body.output.append(value("y", [None, None]))
    other = helper.make_graph([node("Identity", ["x"], ["e"])], "else", [],
                              [value("e", [None, None])])
    del made.graph.node[:]
    made.graph.node.append(node("If", ["c"], ["z"], then_branch=body, else_branch=other))
    made.graph.input.append(value("c", [], "bool"))
    made.graph.output[0].name = "z"
    return made


def declared_in_a_body() -> ModelProto:
    """Each branch declares that it gives [4, 3], but what it gives depends on an input."""
    branches = [helper.make_graph([node("Reshape", ["x", "shape"], [name])], name, [],
                                  [value(name, [4, 3])]) for name in "te"]
    nodes = [
        node("If", ["c"], ["r"], then_branch=branches[0], else_branch=branches[1]),
        node("SplitToSequence", ["r"], ["q"]),
        node("SequenceAt", ["q", "zero"], ["y"]),
    ]
    inputs = [value("x", [12]), value("shape", [2], "int64"), value("c", [], "bool")]
    return model(nodes, inputs, [value("y", [None, None])], {"zero": 0})


def in_a_function() -> ModelProto:
    function = helper.make_function(
        "local", "Cut", ["x"], ["y"],
        [node("Constant", [], ["zero"], value_int=0), node("SplitToSequence", ["x"], ["q"]),
         node("SequenceAt", ["q", "zero"], ["y"])],
        [helper.make_opsetid("", 18)])
    return model([node("Cut", ["x"], ["y"], domain="local")], [value("x", [7, 3])],
                 [value("y", [1, 3])], domains=["local"], functions=[function])


REASONS: dict[str, tuple[Callable[[], ModelProto], str]] = {
    "extent not known": (lambda: pieces(None, [0], declared=["N", 3]), "extent of axis 0 is not"),
    "scalar, extent not known": (lambda: pieces(3, [0], declared=[None, 3]), "extent of axis 0"),
    "extent of -1": (lambda: pieces(3, [0], declared=[-1, 3]), "extent of axis 0 is not known"),
    "scalar of 0": (lambda: pieces(0, [0]), "length of its pieces is 0"),
    "scalar below 0": (lambda: pieces(-2, [0]), "length of its pieces is -2"),
    "scalar and keepdims=0": (lambda: pieces(1, [0], keepdims=0), "ONNX Runtime drops it"),
    "sum too small": (lambda: pieces([2, 4], [0]), "add up to 6, but axis 0 has extent 7"),
    "sum too large": (lambda: pieces([2, 6], [0]), "add up to 8, but axis 0 has extent 7"),
    "length below 0": (lambda: pieces([8, -1], [0]), "[8, -1] are not a list of numbers that are at least 0"),
    "lengths of rank 2": (lambda: pieces([[3, 4]], [0]), "[[3, 4]] are not a list"),
    "empty list": (lambda: pieces(np.zeros(0, np.int64), [0], declared=["N", 3]), "0 pieces"),
    "extent 0": (lambda: pieces(None, [0], declared=[0, 3]), "there are 0 pieces"),
    "too many": (lambda: pieces(None, [0], declared=[10**12, 3]), "there are 1000000000000 pieces"),
    "axis too large": (lambda: pieces([3, 4], [0], axis=2), "a tensor of rank 2 has no axis 2"),
    "axis too small": (lambda: pieces([3, 4], [0], axis=-3), "has no axis -3"),
    "position too large": (lambda: pieces([3, 4], [0, 2]), "SequenceAt y1 takes piece 2 of 2"),
    "position too small": (lambda: pieces([3, 4], [-3]), "SequenceAt y0 takes piece -3 of 2"),
    "lengths from outside": (input_lengths, "the lengths, lengths, are not constant"),
    "position from outside": (
        lambda: with_users(node("SequenceAt", ["q", "which"], ["z"], name="any"),
                           inputs=[value("which", [], "int64")],
                           outputs=[value("z", [None, None])]),
        "the position of SequenceAt any, which, is not constant"),
    "position of no element": (
        lambda: with_users(node("SequenceAt", ["q", "none"], ["z"]), none=np.zeros(0, np.int64)),
        "the position of SequenceAt z, none, is not constant"),
    "output of the graph": (sequence_output, "the sequence is an output of the graph"),
    "other user": (
        lambda: with_users(node("ConcatFromSequence", ["q"], ["z"], axis=0, name="join"),
                           outputs=[value("z", [None, None])]),
        "ConcatFromSequence join uses the whole sequence"),
    "namesake of SequenceAt": (
        lambda: with_users(node("SequenceAt", ["q", "zero"], ["z"], domain="com.example")),
        "SequenceAt z uses the whole sequence"),
    "namesake of Constant": (
        lambda: with_users(node("Constant", [], ["p"], domain="com.example", value_int=0),
                           node("SequenceAt", ["q", "p"], ["z"])),
        "the position of SequenceAt z, p, is not constant"),
    "shape that only a body declares": (declared_in_a_body, "extent of axis 0 is not known"),
    "captured": (captured, "a body of If choice uses the sequence"),
    "no user": (
        lambda: model([node("SplitToSequence", ["x"], ["q"]), node("Neg", ["x"], ["y"])],
                      [value("x", [2])], [value("y", [2])]),
        "its pieces are not used"),
    "hidden constant": (hidden_constant, "the position of SequenceAt take, zero, is not constant"),
    "local function": (in_a_function, "is in the local function Cut"),
}


@pytest.mark.parametrize("make, reason", REASONS.values(), ids=REASONS.keys())
def test_left_alone(make: Callable[[], ModelProto], reason: str) -> None:
    before = make()
    after = ModelProto()
    after.CopyFrom(before)
    (finding,) = rewrite(after)
    assert not finding.rewritten
    assert reason in str(finding)
    assert after == before


def test_one_is_rewritten_and_another_left() -> None:
    proto = pieces([3, 4], [0])
    others = pieces([3, 4], [2])
    for each in others.graph.node:
        each.output[0] += "'"
    others.graph.node[1].input[:] = ["pieces'", "p"]
    proto.graph.node.extend(others.graph.node)
    proto.graph.initializer.append(from_array(np.array(2), "p"))
    assert [str(finding) for finding in rewrite(proto)] == [
        "pieces: Split of axis 0 into 3, 4",
        "pieces': left alone: SequenceAt y0' takes piece 2 of 2",
    ]


def test_a_newer_opset_than_the_installed_onnx() -> None:
    proto = pieces([3, 4], [0])
    proto.opset_import[0].version = 1000
    with pytest.raises(ValueError, match="opset 1000.*pip install --upgrade onnx"):
        rewrite(proto)
