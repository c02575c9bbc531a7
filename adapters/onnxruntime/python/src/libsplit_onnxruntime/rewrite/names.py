"""Names that nothing in the model has yet."""

from __future__ import annotations

import itertools

from onnx import GraphProto, ModelProto

from .graphs import mentions, subgraphs


class Names:
    def __init__(self, model: ModelProto) -> None:
        self._taken = mentions(model.graph) | _of_nodes(model.graph)

    def fresh(self, wish: str) -> str:
        """The name wished for, or one like it."""
        choice = (f"{wish}_{number}" if number else wish for number in itertools.count())
        name = next(name for name in choice if name not in self._taken)
        self._taken.add(name)
        return name


def _of_nodes(graph: GraphProto) -> set[str]:
    names = {node.name for node in graph.node}
    for node in graph.node:
        for body in subgraphs(node):
            names |= _of_nodes(body)
    return names
