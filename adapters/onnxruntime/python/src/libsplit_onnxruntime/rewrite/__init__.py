"""Rewrites SplitToSequence as Split if the results stay the same, bit for bit.

A provider cannot run SplitToSequence, because ONNX Runtime's C API has no function that fills a
sequence. But most models immediately take the pieces out again with SequenceAt, and then Split does
the same:

    x -> SplitToSequence -> SequenceAt 0 -> a        x -> Split -> a
                         -> SequenceAt 1 -> b    =>             -> b

A SplitToSequence becomes a Split if all of these conditions hold, and is left alone otherwise:

  - The lengths are known: a constant list; or, on an axis of known extent, a constant scalar or no
    lengths (pieces of 1). They are positive (a list may contain 0), they add up to the extent if it is
    known, and there are 1 to 10,000 of them.
  - The sequence is used only by SequenceAt with constant positions and by SequenceLength, all in the
    same graph. It is not an output of the graph, and no body of If, Loop or Scan captures it.
  - The positions, which count from the end if they are negative, are within the sequence.
  - The lengths are not a scalar with keepdims=0: according to ONNX the pieces keep the axis, but ONNX
    Runtime drops it.
  - The node is in the model's graph or in a body of If, Loop or Scan, not in a local function.

Constants are Constant nodes, and initializers that are not inputs (which a caller may override). An
extent is known if ONNX's shape inference derives it from the shapes of the model's inputs, which a
runtime enforces. Shapes that a model only declares for other values are trusted on request: if they
are wrong, Split fails at run time, where SplitToSequence did not.

Split replaces the node, with its name and documentation. The lengths become a Constant before it, or an
attribute below opset 13. The first SequenceAt of a position is removed, or becomes Squeeze if
keepdims=0 drops the axis; others become Identity, and SequenceLength becomes a Constant. Unused pieces
get a name too, because ONNX Runtime's own Split crashes on outputs without one. Constants that were
only used for the old lengths and positions are removed, because ONNX Runtime warns of unused ones.
Everything else stays as it is.

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
    """What happened to one SplitToSequence."""

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
    """Rewrites the model in place, and returns what happened to each SplitToSequence.

    directory: the directory of the model's external data, which may contain small constants.

    trust_shapes: trust all shapes that the model declares, not only those of its inputs.

    ValueError: the model has an opset that the installed onnx does not know.
    """
    imports = [entry.version for entry in model.opset_import if entry.domain in STANDARD]
    opset = max(imports, default=0)
    if opset > defs.onnx_opset_version():
        raise ValueError(
            f"the model has opset {opset}, but the installed onnx knows only opsets up to "
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
        findings += done  # and once more: a Split may make an extent known that another one needs
    if not model.training_info:  # it might use them
        drop_unused(model.graph, constants)
    return findings + _in_functions(model)


def _rewrite_graph(
    graph: GraphProto, scope: Scope, names: Names, opset: int, constants: set[str]
) -> list[Finding]:
    """Rewrites a graph and its bodies, and adds constants that may now be unused to `constants`."""
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
    """Yields all SplitToSequence nodes in a graph and the bodies in it."""
    for node in graph.node:
        if is_op(node, "SplitToSequence"):
            yield node
        for body in subgraphs(node):
            yield from _sequences(body)


def _in_functions(model: ModelProto) -> list[Finding]:
    reason = "it is in the local function {}: inline that first, with onnx.inliner"
    return [
        Finding(node.name, node.output[0], False, reason.format(function.name))
        for function in model.functions
        for node in _sequences(GraphProto(node=function.node))
    ]
