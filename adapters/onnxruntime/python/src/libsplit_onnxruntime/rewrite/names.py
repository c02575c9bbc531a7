"""Names that are not used in the model yet."""

from __future__ import annotations

import itertools

from onnx import GraphProto, ModelProto

from .graphs import subgraphs, uses


class Names:
    def __init__(self, model: ModelProto) -> None:
        self._taken = uses(model.graph) | _given(model.graph)

    def fresh(self, wish: str) -> str:
        """Returns this name, or a similar one if it is already used."""
        choice = (f"{wish}_{number}" if number else wish for number in itertools.count())
        name = next(name for name in choice if name not in self._taken)
        self._taken.add(name)
        return name


def _given(graph: GraphProto) -> set[str]:
    """Yields the names of all nodes and values in a graph and in those inside it."""
    names = {value.name for value in (*graph.input, *graph.initializer, *graph.value_info)}
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        names.update([node.name, *node.output])
        for body in subgraphs(node):
            names |= _given(body)
    return names
