"""Walks through graphs and the graphs inside their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper

STANDARD = ("", "ai.onnx")  # two names of ONNX's own domain


def is_op(node: NodeProto, *op_types: str) -> bool:
    return node.op_type in op_types and node.domain in STANDARD


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yields the bodies of If, Loop and Scan, and those of other operators that have some."""
    for attr in node.attribute:
        if attr.type == AttributeProto.GRAPH:
            yield attr.g
        yield from attr.graphs


def uses(graph: GraphProto) -> set[str]:
    """Yields the names of all values that are used in a graph and in those inside it."""
    names = {output.name for output in graph.output}
    for node in graph.node:
        names.update(node.input)
        for body in subgraphs(node):
            names |= uses(body)
    return names


def tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """Yields all tensors with data in a graph and in those inside it."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for attr in (attr for node in graph.node for attr in node.attribute):
        if attr.type == AttributeProto.TENSOR:
            yield attr.t
        yield from attr.tensors
    for node in graph.node:
        for body in subgraphs(node):
            yield from tensors(body)
