"""What is known about the values that a graph can see, before the model runs."""

from __future__ import annotations

import math
from collections import ChainMap
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    helper,
    numpy_helper,
    shape_inference,
)
from onnx.checker import ValidationError
from onnx.external_data_helper import uses_external_data

from .graphs import attribute, is_op, uses, subgraphs

Array = npt.NDArray[Any]
_SMALL = 1024  # elements of a tensor whose values shape inference may need


class Scope:
    """Constants and shapes in a graph and, if it is a body, in the graphs around it."""

    def __init__(
        self,
        model: ModelProto,
        graph: GraphProto,
        directory: str,
        trust_shapes: bool,
        outer: Scope | None = None,
    ) -> None:
        self._model, self._directory, self._trust_shapes = model, directory, trust_shapes
        # None for a value that is not constant, because it may hide an outer value that is.
        self._constants: ChainMap[str, TensorProto | NodeProto | None] = (
            outer._constants.new_child() if outer else ChainMap()
        )
        for node in graph.node:
            constant = node if is_op(node, "Constant") else None
            self._constants.update({output: constant for output in node.output})
        self._constants.update({tensor.name: tensor for tensor in graph.initializer})
        self._constants.update({tensor.values.name: None for tensor in graph.sparse_initializer})
        self._constants.update({value.name: None for value in graph.input})
        self._types = self._infer(graph, outer)

    def body(self, graph: GraphProto) -> Scope:
        """Returns the scope of a body in this graph."""
        return Scope(self._model, graph, self._directory, self._trust_shapes, self)

    def constant(self, name: str) -> Array | None:
        """Returns the value if it is the same in every run."""
        source = self._constants.get(name)
        if isinstance(source, NodeProto):
            numbers = attribute(source, "value_int", attribute(source, "value_ints"))
            if numbers is not None:
                return np.array(numbers, np.int64)
            source = attribute(source, "value")
        return None if source is None else self._array(source)

    def shape(self, name: str) -> list[int | None] | None:
        """Returns the extents, with None for each that is not known; None if the rank is not known."""
        tensor = self._types.get(name, TypeProto()).tensor_type
        if not tensor.HasField("shape"):
            return None
        return [
            dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
            for dim in tensor.shape.dim
        ]

    def _array(self, tensor: TensorProto) -> Array | None:
        try:
            return numpy_helper.to_array(tensor, self._directory)
        except (OSError, ValueError, ValidationError):  # external data that is missing
            return None

    def _infer(self, graph: GraphProto, outer: Scope | None) -> dict[str, TypeProto]:
        """Runs ONNX's shape inference on shapes that are certain or, if declared ones are trusted, on all."""
        model = ModelProto(
            ir_version=self._model.ir_version,
            opset_import=self._model.opset_import,
            functions=self._model.functions,
        )
        copy = model.graph
        copy.node.extend(graph.node)
        copy.input.extend(graph.input)
        if self._trust_shapes:
            copy.value_info.extend(graph.value_info)
            copy.output.extend(graph.output)
        else:
            _forget_declared(model, is_body=outer is not None)

        types = {value.name: value.type for value in copy.input}
        for tensor in graph.initializer:
            if tensor.name not in types:  # else the shape is the input's
                types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
                self._add_values(copy, tensor)
        if outer:
            captured = uses(graph) & outer._types.keys()
            types = {name: outer._types[name] for name in captured} | types
        del copy.input[:]
        copy.input.extend(helper.make_value_info(name, type_) for name, type_ in types.items())
        try:
            copy = shape_inference.infer_shapes(model, data_prop=True).graph
        except shape_inference.InferenceError:
            pass  # the model is wrong somewhere; whoever checks or runs it will find out
        inferred = (*copy.value_info, *copy.output)
        return types | {value.name: value.type for value in inferred}

    def _add_values(self, graph: GraphProto, tensor: TensorProto) -> None:
        """Gives inference the values of a small tensor. Those of large ones would take too much time."""
        if math.prod(tensor.dims) > _SMALL:
            return
        if not uses_external_data(tensor):
            graph.initializer.append(tensor)
        elif (array := self._array(tensor)) is not None:
            graph.initializer.append(numpy_helper.from_array(array, tensor.name))


def _forget_declared(model: ModelProto, is_body: bool) -> None:
    """Removes the shapes that no runtime enforces: all except those of the model's inputs."""
    for function in model.functions:
        del function.value_info[:]
    if is_body:
        _forget_shapes(model.graph)
    for node in model.graph.node:
        _forget_in_bodies(node)


def _forget_in_bodies(node: NodeProto) -> None:
    for body in subgraphs(node):
        _forget_shapes(body)
        for inner in body.node:
            _forget_in_bodies(inner)


def _forget_shapes(graph: GraphProto) -> None:
    del graph.value_info[:]
    for value in (*graph.input, *graph.output):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
