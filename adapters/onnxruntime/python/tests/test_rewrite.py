"""What SplitToSequence is rewritten to: the results are the same, and nothing else has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from libsplit_onnxruntime.rewrite import rewrite
from models import (
    DTYPES,
    assert_same_results,
    model,
    operators,
    pieces_model,
    sample,
    value,
)
from onnx import ModelProto, StringStringEntryProto, helper
from onnx.numpy_helper import from_array, to_array

node = helper.make_node


def rewritten(before: ModelProto, **options: Any) -> ModelProto:
    """Returns a copy in which every SplitToSequence has been rewritten."""
    after = ModelProto()
    after.CopyFrom(before)
    findings = rewrite(after, **options)
    assert findings and all(finding.rewritten for finding in findings), list(map(str, findings))
    assert not any(op.startswith("Seq") or "Sequence" in op for op in operators(after.graph))
    return after


def check(before: ModelProto, *arrays: Any, reference: bool = True) -> list[Any]:
    feeds = {given.name: array for given, array in zip(before.graph.input, arrays, strict=True)}
    return assert_same_results(before, rewritten(before), feeds, reference)


CASES = {
    "list": dict(split=[2, 1, 4], positions=[0, 1, 2]),
    "list of int32": dict(split=np.array([2, 1, 4], np.int32), positions=[2, 0]),
    "list of one": dict(split=[7], positions=[0]),
    "list with zeros": dict(split=[0, 7, 0], positions=[0, 1, 2]),
    "list, unknown extent": dict(split=[3, 4], positions=[0, 1], declared=["N", 3]),
    "list, keepdims=0": dict(split=[3, 4], positions=[0, 1], keepdims=0),
    "list of ones, keepdims=0": dict(split=[1] * 7, positions=[6, 0], keepdims=0),
    "scalar": dict(split=7, positions=[0]),
    "scalar, last is smaller": dict(split=3, positions=[0, 1, 2]),
    "scalar of int32": dict(split=np.int32(4), positions=[1]),
    "scalar beyond the extent": dict(split=100, positions=[0]),
    "none": dict(split=None, positions=[0, 6]),
    "none, keepdims=0": dict(split=None, positions=[0, 6, 3], keepdims=0),
    "none, keepdims=0, axis -1": dict(split=None, positions=[0, 2], keepdims=0, axis=-1),
    "none, keepdims=2": dict(split=None, positions=[0, 6], keepdims=2),
    "other axis": dict(split=2, positions=[0, 1], axis=1),
    "axis from the end": dict(split=[1, 2], positions=[0, 1], axis=-1),
    "positions from the end": dict(split=[2, 1, 4], positions=[-1, -3]),
    "one position twice": dict(split=[3, 4], positions=[0, 0, -2, 1]),
    "one position twice, keepdims=0": dict(split=None, positions=[1, 1, -6], keepdims=0),
}


@pytest.mark.parametrize("opset", [11, 12, 13, 17, 18, 20, 24])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_results_stay_the_same(case: dict[str, Any], opset: int) -> None:
    before = pieces_model([7, 3], opset=opset, **case)
    check(before, sample([7, 3]))


def test_a_list_needs_no_rank() -> None:
    nodes = [
        node("Reshape", ["x", "shape"], ["r"]),
        node("SplitToSequence", ["r", "lengths"], ["q"], axis=-2),
        node("SequenceAt", ["q", "last"], ["y"]),
    ]
    inputs = [value("x", [12]), value("shape", ["rank"], "int64")]
    outputs = [value("y", [None, None, None])]
    before = model(nodes, inputs, outputs, {"lengths": [1, 2], "last": -1})
    check(before, sample([12]), np.array([2, 3, 2]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types(dtype: str) -> None:
    check(pieces_model([5, 7], 3, [0, 2], axis=1, dtype=dtype), sample([5, 7], dtype))
    check(pieces_model([5], None, [4, 1], keepdims=0, dtype=dtype), sample([5], dtype))


def test_one_split_is_all_that_is_left() -> None:
    after = rewritten(pieces_model([7, 3], [3, 4], [1, 0]))
    assert [each.op_type for each in after.graph.node] == ["Constant", "Split"]
    assert not after.graph.initializer
    assert after.graph.node[1].output == ["y1", "y0"]


def test_pieces_that_nobody_takes_have_names() -> None:
    """ONNX Runtime crashes on a Split with an output that has no name."""
    after = rewritten(pieces_model([7, 3], None, [3]))
    split = after.graph.node[-1]
    assert split.output[3] == "y0" and all(split.output) and len(set(split.output)) == 7


def test_names_that_are_taken() -> None:
    nodes = [
        node("SplitToSequence", ["x"], ["q"], keepdims=0),
        node("SequenceAt", ["q", "one"], ["y"], name="q_axes"),
        node("Identity", ["x"], ["q_0"]),
        node("Identity", ["x"], ["q_split"], name="q_1"),
    ]
    outputs = [value("y", [None]), value("q_0", [3, None]), value("q_split", [3, None])]
    before = model(nodes, [value("x", [3, 2])], outputs, {"one": np.int64(1)})
    check(before, sample([3, 2]))


def test_length_of_the_sequence() -> None:
    nodes = [
        node("SplitToSequence", ["x", "step"], ["q"]),
        node("SequenceLength", ["q"], ["n"]),
        node("SequenceAt", ["q", "last"], ["y"]),
    ]
    outputs = [value("n", [], "int64"), value("y", [None])]
    before = model(nodes, [value("x", [7])], outputs, {"step": np.int64(2), "last": np.int32(-1)})
    n, y = check(before, sample([7]), reference=False)  # whose SequenceLength gives an int
    assert (n, y.shape) == (4, (1,))


def test_constants_may_be_nodes() -> None:
    nodes = [
        node("Constant", [], ["lengths"], value_ints=[3, 4]),
        node("Constant", [], ["zero"], value_int=0),
        node("Constant", [], ["one"], value=from_array(np.array(1))),
        node("SplitToSequence", ["x", "lengths"], ["q"]),
        node("SequenceAt", ["q", "zero"], ["a"]),
        node("SequenceAt", ["q", "one"], ["b"]),
    ]
    before = model(nodes, [value("x", [7])], [value("a", [None]), value("b", [None])])
    check(before, sample([7]))


def test_the_extent_follows_from_inference() -> None:
    nodes = [
        node("Reshape", ["x", "shape"], ["r"]),
        node("SplitToSequence", ["r", "step"], ["q"], axis=1),
        node("SequenceAt", ["q", "last"], ["y"]),
    ]
    constants = {"shape": [-1, 5], "step": 2, "last": -1}
    before = model(nodes, [value("x", ["N"])], [value("y", [None, None])], constants)
    (y,) = check(before, sample([15]))
    assert y.shape == (3, 1)


def test_the_split_before_tells_the_extent() -> None:
    """In ONNX's inference, a piece of an uneven sequence has no known extent."""
    nodes = [
        node("SplitToSequence", ["x", "uneven"], ["q"]),
        node("SequenceAt", ["q", "zero"], ["a"]),
        node("Neg", ["a"], ["b"]),
        node("SplitToSequence", ["b"], ["r"], keepdims=0),
        node("SequenceAt", ["r", "zero"], ["y"]),
    ]
    constants = {"uneven": [3, 4], "zero": 0}
    check(model(nodes, [value("x", [7])], [value("y", [])], constants), sample([7]))


NUMBERS = np.arange(20, dtype=np.float32).reshape(5, 4)  # without NaN, whose sums differ in bits


def bodies(kind: str) -> ModelProto:
    """Tests If, Loop and Scan with bodies that split."""
    split = [node("SplitToSequence", ["inner", "step"], ["q"]),
             node("SequenceAt", ["q", "one"], ["piece"])]
    constants: dict[str, Any] = {"step": 2, "one": 1}
    inputs = [value("x", [5, 4])]
    if kind == "If":
        then = helper.make_graph([node("Neg", ["x"], ["inner"]), *split], "then", [],
                                 [value("piece", [None, None])])
        other = helper.make_graph([node("Neg", ["x"], ["other"])], "else", [],
                                  [value("other", [None, None])])
        nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
        inputs.append(value("c", [], "bool"))
        return model(nodes, inputs, [value("y", [None, None])], constants)
    if kind == "Loop":
        body = helper.make_graph(
            [node("Identity", ["go"], ["again"]), node("Neg", ["x"], ["inner"]), *split,
             node("Add", ["sum", "piece"], ["new"])],
            "body", [value("i", [], "int64"), value("go", [], "bool"), value("sum", [2, 4])],
            [value("again", [], "bool"), value("new", [2, 4])])
        nodes = [node("Loop", ["times", "yes", "start"], ["y"], body=body)]
        constants |= {"times": 3, "yes": True, "start": np.zeros((2, 4), np.float32)}
        return model(nodes, inputs, [value("y", [2, 4])], constants)
    body = helper.make_graph(
        [node("Neg", ["x"], ["inner"]), *split, node("Add", ["row", "piece"], ["new"])],
        "body", [value("row", [4])], [value("new", [2, 4])])
    nodes = [node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)]
    return model(nodes, inputs, [value("y", [5, 2, 4])], constants)


@pytest.mark.parametrize("kind", ["If", "Loop", "Scan"])
def test_bodies(kind: str) -> None:
    feeds = [NUMBERS] + ([np.array(True)] if kind == "If" else [])
    check(bodies(kind), *feeds)


def test_what_a_loop_declares_is_believed_on_demand() -> None:
    before = bodies("Loop")
    body = before.graph.node[0].attribute[0].g
    body.node[1].input[0] = "sum"
    body.node[2].input[1] = "one"  # two pieces of 1
    left = ModelProto()
    left.CopyFrom(before)
    assert [finding.rewritten for finding in rewrite(left)] == [False]
    assert left == before
    assert_same_results(before, rewritten(before, trust_shapes=True), {"x": NUMBERS})


def test_declared_shapes_are_believed_on_demand() -> None:
    nodes = [
        node("Reshape", ["x", "shape"], ["r"]),
        node("SplitToSequence", ["r"], ["q"]),
        node("SequenceAt", ["q", "zero"], ["y"]),
    ]
    inputs = [value("x", [12]), value("shape", [2], "int64")]
    before = model(nodes, inputs, [value("y", [None, None])], {"zero": 0})
    before.graph.value_info.append(value("r", [3, 4]))
    left = ModelProto()
    left.CopyFrom(before)
    assert "not known" in str(rewrite(left)[0])
    assert left == before
    feeds = {"x": sample([12]), "shape": np.array([3, 4])}
    assert_same_results(before, rewritten(before, trust_shapes=True), feeds)


def test_nothing_else_changes() -> None:
    nodes = [
        node("Neg", ["x"], ["n"], name="before", doc_string="first"),
        node("SplitToSequence", ["n", "lengths"], ["q"], name="cut", doc_string="of x", axis=-1),
        node("SequenceAt", ["q", "p0"], ["a"], name="take"),
        node("Custom", ["a"], ["c"], name="foreign", domain="elsewhere"),
        node("SequenceAt", ["q", "p1"], ["b"], name="take too"),
        node("Add", ["a", "b"], ["y"], name="after"),
    ]
    constants = {"p1": 1, "lengths": [2, 2], "p0": 0, "unused": [1.5]}
    outputs = [value("y", [3, 2]), value("c", [3, 2])]
    before = model(nodes, [value("x", [3, 4])], outputs, constants, domains=["elsewhere"],
                   producer_name="someone", doc_string="a model", model_version=7, ir_version=10)
    before.metadata_props.append(StringStringEntryProto(key="author", value="them"))
    before.graph.doc_string = "a graph"
    before.graph.value_info.extend([
        value("b", [3, 2]),
        helper.make_tensor_sequence_value_info("q", 1, None),
        value("a", [3, 2]),
    ])
    before.graph.node[1].metadata_props.append(StringStringEntryProto(key="scope", value="/head"))

    after = rewritten(before)

    expected = ModelProto()
    expected.CopyFrom(before)
    split = expected.graph.node[1]
    split.op_type = "Split"
    split.input[1] = "q_split"
    split.output[:] = ["a", "b"]
    del expected.graph.node[4], expected.graph.node[2]
    del expected.graph.value_info[1]
    lengths = node("Constant", [], ["q_split"], name="q_split", value=from_array(np.array([2, 2])))
    expected.graph.node.insert(1, lengths)
    del expected.graph.initializer[:3]
    assert after == expected


def test_constants_stay_where_something_else_uses_them() -> None:
    nodes = [
        node("Constant", [], ["two"], value_int=2),
        node("Constant", [], ["one"], value_int=1),
        node("SplitToSequence", ["x", "two"], ["q"]),
        node("SequenceAt", ["q", "zero"], ["a"]),
        node("SequenceAt", ["q", "one"], ["b"]),
        node("If", ["yes"], ["n"],
             then_branch=helper.make_graph([node("Identity", ["one"], ["t"])], "then", [],
                                           [value("t", [], "int64")]),
             else_branch=helper.make_graph([node("Identity", ["zero"], ["e"])], "else", [],
                                           [value("e", [], "int64")])),
    ]
    outputs = [value("a", [None]), value("b", [None]), value("n", [], "int64")]
    before = model(nodes, [value("x", [3])], outputs, {"zero": 0, "yes": True})
    check(before, sample([3]))
    after = rewritten(before)
    assert [each.op_type for each in after.graph.node] == ["Constant", "Constant", "Split", "If"]
    assert after.graph.node[0].output[0] == "one"


def test_constants_go_from_the_graph_around_a_body() -> None:
    before = bodies("Scan")
    after = rewritten(before)
    assert not after.graph.initializer
    assert len(after.graph.node) == len(before.graph.node)


def test_a_graph_without_sequences_stays_as_it_is() -> None:
    before = model([node("Neg", ["x"], ["y"])], [value("x", [3])], [value("y", [3])])
    after = ModelProto()
    after.CopyFrom(before)
    assert rewrite(after) == []
    assert after == before


def test_the_domain_may_be_spelled_out() -> None:
    before = pieces_model([7, 3], 4, [0, 1])
    for each in before.graph.node:
        each.domain = "ai.onnx"
    after = rewritten(before)
    assert [to_array(each.attribute[0].t).tolist() for each in after.graph.node
            if each.op_type == "Constant"] == [[4, 3]]
