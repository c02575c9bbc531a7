"""Replaces a SplitToSequence with Split, and changes the nodes that use its pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from .graphs import is_op, subgraphs, uses
from .names import Names
from .plan import Plan


def replace(graph: GraphProto, plans: dict[int, Plan], names: Names, opset: int) -> set[str]:
    """Carries out the plans, each for the node at an index, and returns the constants of the old nodes."""
    sequences = {graph.node[index].output[0] for index in plans}
    new: dict[int, list[NodeProto]] = {}
    for index, plan in plans.items():
        new |= _Replacement(graph, index, plan, names, opset).nodes
    constants = {name for index in new for name in graph.node[index].input[1:]}
    nodes = [node for index, old in enumerate(graph.node) for node in new.get(index, [old])]
    del graph.node[:]
    graph.node.extend(nodes)
    for index in reversed(range(len(graph.value_info))):
        if graph.value_info[index].name in sequences:
            del graph.value_info[index]
    return constants


def drop_unused(graph: GraphProto, constants: set[str]) -> None:
    """Removes those constants that nothing uses any more."""
    for node in graph.node:
        for body in subgraphs(node):
            drop_unused(body, constants)
    unused = constants - uses(graph) - {value.name for value in graph.input}
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name in unused:
            del graph.initializer[index]
    for index in reversed(range(len(graph.node))):
        if is_op(graph.node[index], "Constant") and graph.node[index].output[0] in unused:
            del graph.node[index]


class _Replacement:
    """The nodes that replace those that a plan concerns, by their indices."""

    def __init__(
        self, graph: GraphProto, index: int, plan: Plan, names: Names, opset: int
    ) -> None:
        self._names, self._opset = names, opset
        self._sequence = graph.node[index].output[0]
        self._constants: dict[str, NodeProto] = {}
        self._pieces: dict[int, str] = {}  # the names of Split's outputs, by position
        self._taken: dict[int, str] = {}  # the names of the same pieces in their first takers
        self.nodes: dict[int, list[NodeProto]] = {}
        for place, position in plan.takers.items():
            self.nodes[place] = self._taker(graph.node[place], position, plan)
        split = self._split(graph.node[index], plan)
        self.nodes[index] = [*self._constants.values(), split]

    def _split(self, node: NodeProto, plan: Plan) -> NodeProto:
        split = _like(node, "Split", node.input[:1])
        split.attribute.extend(attr for attr in node.attribute if attr.name == "axis")
        self._give(split, "split", plan.lengths)
        split.output.extend(
            self._pieces.get(position) or self._piece_name(position)
            for position in range(len(plan.lengths))
        )
        return split

    def _taker(self, taker: NodeProto, position: int | None, plan: Plan) -> list[NodeProto]:
        if position is None:
            return [_constant(_like(taker, "Constant", [], taker.output), len(plan.lengths))]
        if position in self._taken:
            return [_like(taker, "Identity", [self._taken[position]], taker.output)]
        self._taken[position] = taker.output[0]
        if plan.keeps_axis:
            self._pieces[position] = taker.output[0]
            return []
        self._pieces[position] = self._piece_name(position)
        squeeze = _like(taker, "Squeeze", [self._pieces[position]], taker.output)
        self._give(squeeze, "axes", [plan.axis])
        return [squeeze]

    def _piece_name(self, position: int) -> str:
        return self._names.fresh(f"{self._sequence}_{position}")

    def _give(self, node: NodeProto, what: str, values: Sequence[int]) -> None:
        """Gives the node an input from a Constant, or an attribute below opset 13."""
        if self._opset < 13:
            node.attribute.append(helper.make_attribute(what, values))
            return
        if what not in self._constants:
            name = self._names.fresh(f"{self._sequence}_{what}")
            self._constants[what] = _constant(NodeProto(name=name, output=[name]), values)
        node.input.append(self._constants[what].output[0])


def _like(
    node: NodeProto, op_type: str, inputs: Iterable[str], outputs: Iterable[str] = ()
) -> NodeProto:
    """Makes a node of another operator with the node's name, documentation and metadata."""
    new = NodeProto()
    new.CopyFrom(node)
    for field in ("input", "output", "attribute"):
        new.ClearField(field)
    new.op_type = op_type
    new.input.extend(inputs)
    new.output.extend(outputs)
    return new


def _constant(node: NodeProto, values: int | Sequence[int]) -> NodeProto:
    """Turns the node into a Constant of int64."""
    node.op_type = "Constant"
    tensor = numpy_helper.from_array(np.array(values, np.int64))
    node.attribute.append(helper.make_attribute("value", tensor))
    return node
