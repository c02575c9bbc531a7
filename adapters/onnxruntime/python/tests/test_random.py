"""Random models: what ran before gives the same after; what could not run still does not.

SPLIT_CASES=10000 tries that many.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from libsplit_onnxruntime.rewrite import rewrite
from models import (
    DTYPES,
    assert_same_results,
    bits,
    by_onnxruntime,
    pieces_model,
    sample,
)
from onnx import ModelProto, helper
from onnx.numpy_helper import from_array


@dataclass
class Case:
    shape: list[int]
    axis: int
    split: Any
    keepdims: int | None
    positions: list[int]
    opset: int
    dtype: str
    known: bool  # whether the model says the extent
    in_body: bool

    def model(self) -> ModelProto:
        declared: list[int | str] = [*self.shape]
        if not self.known:
            declared[self.axis] = "N"
        made = pieces_model(self.shape, self.split, self.positions, self.axis, self.keepdims,
                            self.dtype, self.opset, declared)
        return in_body(made) if self.in_body else made


def in_body(proto: ModelProto) -> ModelProto:
    """Returns the same model with all nodes in both branches of an If, and the constants outside."""
    branch = helper.make_graph(proto.graph.node, "branch", [], proto.graph.output)
    other = helper.make_graph(proto.graph.node, "other", [], proto.graph.output)
    for node in other.node:
        node.output[0] += "_other"
        node.input[0] += "_other" * (node.op_type == "SequenceAt")
    for output in other.output:
        output.name += "_other"
    names = [output.name + "_out" for output in proto.graph.output]
    for output, name in zip(proto.graph.output, names, strict=True):
        output.name = name
    choice = helper.make_node("If", ["yes"], names, then_branch=branch, else_branch=other)
    del proto.graph.node[:]
    proto.graph.node.append(choice)
    proto.graph.initializer.append(from_array(np.array(True), "yes"))
    return proto


@st.composite
def cases(draw: st.DrawFn) -> Case:
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    kind = draw(st.sampled_from(["none", "scalar", "list", "list", "any list"]))
    split: Any = None
    pieces = shape[axis]
    if kind == "scalar":
        split = np.array(draw(st.integers(1, 7)))
        pieces = -(-pieces // int(split))
    elif kind == "list":
        cuts = sorted(draw(st.lists(st.integers(0, shape[axis]), max_size=4)))
        split = np.diff([0, *cuts, shape[axis]])
        pieces = len(split)
    elif kind == "any list":
        split = np.array(draw(st.lists(st.integers(-1, 5), min_size=1, max_size=4)))
    if split is not None:
        split = split.astype(draw(st.sampled_from([np.int32, np.int64])))
    wild = draw(st.integers(0, 9)) == 0 or pieces == 0
    positions = st.integers(-9, 9) if wild else st.integers(-pieces, pieces - 1)
    return Case(
        shape, axis, split,
        keepdims=draw(st.sampled_from([None, 0, 1])),
        positions=draw(st.lists(positions, min_size=1, max_size=4)),
        opset=draw(st.integers(11, 24)),
        dtype=draw(st.sampled_from(DTYPES)),
        known=draw(st.booleans()),
        in_body=draw(st.booleans()),
    )


@settings(max_examples=int(os.environ.get("SPLIT_CASES", 300)), deadline=None, database=None)
@given(cases())
def test_rewritten_models_do_the_same(case: Case) -> None:
    before = case.model()
    after = ModelProto()
    after.CopyFrom(before)
    findings = rewrite(after)
    feeds = {"x": sample(case.shape, case.dtype)}
    try:
        expected = by_onnxruntime(before, feeds)
    except Exception:  # onnxruntime's have no class in common
        event("cannot run")
        expected = None

    scalar = case.split is None or case.split.ndim == 0
    ambiguous = case.keepdims == 0 and case.split is not None and case.split.ndim == 0
    if expected is None:
        fails_before_and_after(after, feeds)
    elif ambiguous or (scalar and not case.known):
        assert not any(finding.rewritten for finding in findings)
        assert after == before
    else:
        assert all(finding.rewritten for finding in findings), list(map(str, findings))
        assert bits(assert_same_results(before, after, feeds)) == bits(expected)
        event("rewritten")


def fails_before_and_after(after: ModelProto, feeds: dict[str, Any]) -> None:
    try:
        by_onnxruntime(after, feeds)
    except Exception:  # as above
        return
    raise AssertionError("the rewritten model runs, although the one before does not")
