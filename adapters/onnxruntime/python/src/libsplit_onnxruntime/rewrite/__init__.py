"""Turns SplitToSequence into Split where the results stay the same, bit for bit.

A provider cannot run SplitToSequence: ONNX Runtime's C API has no call that fills a sequence. But
most models take the pieces out again at once, by SequenceAt, and there Split says the same:

    x -> SplitToSequence -> SequenceAt 0 -> a        x -> Split -> a
                         -> SequenceAt 1 -> b    =>             -> b

A SplitToSequence becomes a Split when all of this holds, and is left alone otherwise:

  - The lengths are known: a constant list; or a constant scalar, or none (pieces of 1), on an axis
    of known extent. They are positive (in a list 0 may stand too), they make up the extent where
    that is known, and there are 1 to 10,000 of them.
  - Nothing but SequenceAt with constant positions and SequenceLength takes the sequence, all in its
    own graph. It is no output of the graph, and no body of If, Loop or Scan captures it.
  - The positions, which count from the end if negative, lie within the sequence.
  - It is not a scalar with keepdims=0: by ONNX the pieces keep the axis, ONNX Runtime drops it.
  - It stands in the model's graph or in a body of If, Loop or Scan, not in a local function.

Constants are initializers that are no inputs (those a caller may override) and Constant nodes. An
extent is known if it follows from the shapes of the model's inputs, which a runtime enforces, by
ONNX's shape inference. What a model merely declares of other values is believed on demand: should
it not be true, Split fails on running, where SplitToSequence did not.

Split takes the node's place, name and documentation. The lengths become a Constant before it, or an
attribute below opset 13. The first SequenceAt of a position goes, or becomes Squeeze where
keepdims=0 drops the axis; others become Identity, and SequenceLength a Constant. Pieces that nobody
takes get a name too: ONNX Runtime's own Split crashes on outputs without. Constants that only said
the old lengths and positions go: ONNX Runtime warns of those without use. All else stays as it is.

From the command line: python -m libsplit_onnxruntime.rewrite --help
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto, defs

from .graphs import STANDARD, is_op, subgraphs
from .names import Names
from .plan import LeftAlone, Plan, make_plan
from .replace import drop_unused, replace
from .scope import Scope

__all__ = ["Finding", "rewrite"]


@dataclass(frozen=True)
class Finding:
    """What became of one SplitToSequence."""

    node: str  # its name, which may be ""
    sequence: str  # the name of its output
    rewritten: bool
    text: str  # what it became, or why it was left alone

    def __str__(self) -> str:
        name = f"{self.sequence} (node {self.node})" if self.node else self.sequence
        return f"{name}: {'' if self.rewritten else 'left alone: '}{self.text}"


def rewrite(
    model: ModelProto, directory: str = "", *, trust_shapes: bool = False
) -> list[Finding]:
    """Rewrites the model in place; tells of each SplitToSequence what became of it.

    directory: where the external data lies that small constants may be in.

    trust_shapes: believe all shapes that the model declares, not those of its inputs only.

    ValueError: the model is of an opset that the installed onnx does not know.
    """
    imports = [entry.version for entry in model.opset_import if entry.domain in STANDARD]
    opset = max(imports, default=0)
    if opset > defs.onnx_opset_version():
        raise ValueError(
            f"the model is of opset {opset}, and the installed onnx knows those up to "
            f"{defs.onnx_opset_version()}: pip install --upgrade onnx"
        )
    names = Names(model)
    constants: set[str] = set()
    findings: list[Finding] = []
    while any(_sequences(model.graph)):
        scope = Scope(model, model.graph, directory, trust_shapes)
        found = _rewrite_graph(model.graph, scope, names, opset, constants)
        done = [finding for finding in found if finding.rewritten]
        if not done:
            findings += found
            break
        findings += done  # and once more: a Split may tell the extent that another one needs
    if not model.training_info:  # which may use them
        drop_unused(model.graph, constants)
    return findings + _in_functions(model)


def _rewrite_graph(
    graph: GraphProto, scope: Scope, names: Names, opset: int, constants: set[str]
) -> list[Finding]:
    """Rewrites a graph and its bodies; adds to the constants those that may be needless now."""
    findings = []
    plans: dict[int, Plan] = {}
    for index, node in enumerate(graph.node):
        if is_op(node, "SplitToSequence"):
            try:
                plans[index] = make_plan(node, graph, scope)
                findings.append(Finding(node.name, node.output[0], True, str(plans[index])))
            except LeftAlone as reason:
                findings.append(Finding(node.name, node.output[0], False, str(reason)))
    if plans:
        constants |= replace(graph, plans, names, opset)
    for node in graph.node:
        for body in subgraphs(node):
            if any(_sequences(body)):
                findings += _rewrite_graph(body, scope.body(body), names, opset, constants)
    return findings


def _sequences(graph: GraphProto) -> Iterator[NodeProto]:
    """All SplitToSequence in a graph and the bodies in it."""
    for node in graph.node:
        if is_op(node, "SplitToSequence"):
            yield node
        for body in subgraphs(node):
            yield from _sequences(body)


def _in_functions(model: ModelProto) -> list[Finding]:
    reason = "it stands in the local function {}: inline that first, with onnx.inliner"
    return [
        Finding(node.name, node.output[0], False, reason.format(function.name))
        for function in model.functions
        for node in _sequences(GraphProto(node=function.node))
    ]
