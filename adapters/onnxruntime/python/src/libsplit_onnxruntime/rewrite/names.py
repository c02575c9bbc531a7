"""Names that nothing in the model has yet."""

from __future__ import annotations

import itertools

from onnx import GraphProto, ModelProto

from .graphs import subgraphs, uses


class Names:
    def __init__(self, model: ModelProto) -> None:
        self._taken = uses(model.graph) | _given(model.graph)

    def fresh(self, wish: str) -> str:
        """The name wished for, or one like it."""
        choice = (f"{wish}_{number}" if number else wish for number in itertools.count())
        name = next(name for name in choice if name not in self._taken)
        self._taken.add(name)
        return name


def _given(graph: GraphProto) -> set[str]:
    """The names of nodes and values that a graph and those inside it bring in."""
    names = {value.name for value in (*graph.input, *graph.initializer, *graph.value_info)}
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        names.update([node.name, *node.output])
        for body in subgraphs(node):
            names |= _given(body)
    return names
