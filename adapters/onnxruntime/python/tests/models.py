"""Small models with SplitToSequence, and the results of running them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper
from onnx.numpy_helper import from_array
from onnx.reference import ReferenceEvaluator

Array = npt.NDArray[Any]
Extents = Sequence[int | str | None]
onnxruntime.set_default_logger_severity(4)

# The element types of ONNX Runtime's SplitToSequence.
DTYPES = ["float32", "float16", "float64", "int32", "int64", "bool", "str"]


def sample(shape: Sequence[int], dtype: str = "float32") -> Array:
    """Makes an array of arbitrary bits, or of numbers if not all bits are valid."""
    random = np.random.default_rng(0)
    if dtype in ("bool", "str"):
        numbers = random.integers(0, 2 if dtype == "bool" else 1000, shape)
        return numbers.astype(bool) if dtype == "bool" else numbers.astype(str).astype(object)
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    return np.frombuffer(random.bytes(size), kind).reshape(shape)


def of_dtype(dtype: str) -> int:
    kind = np.dtype(object if dtype == "str" else dtype)
    return helper.np_dtype_to_tensor_dtype(kind)


def value(name: str, extents: Extents | None, dtype: str = "float32") -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, of_dtype(dtype), extents)


def model(
    nodes: Iterable[NodeProto],
    inputs: Iterable[onnx.ValueInfoProto],
    outputs: Iterable[onnx.ValueInfoProto],
    constants: Mapping[str, Any] = {},
    opset: int = 18,
    domains: Sequence[str] = (),
    **fields: Any,
) -> ModelProto:
    initializers = [from_array(np.array(array), name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), initializers)
    imports = [helper.make_opsetid("", opset)]
    fields = {"ir_version": max(8, helper.find_min_ir_version_for(imports))} | fields
    imports += [helper.make_opsetid(domain, 1) for domain in domains]
    made = helper.make_model(graph, opset_imports=imports, **fields)
    onnx.checker.check_model(made)
    return made


def pieces_model(
    shape: Sequence[int],
    split: Any,
    positions: Sequence[int],
    axis: int = 0,
    keepdims: int | None = None,
    dtype: str = "float32",
    opset: int = 18,
    declared: Extents | None = None,
) -> ModelProto:
    """Makes a model of SplitToSequence of "x" with SequenceAt at the positions, which give "y0", "y1", ...

    split: None for none. declared: the input's shape as the model has it, else as it is.
    """
    constants: dict[str, Any] = {f"p{i}": np.int64(p) for i, p in enumerate(positions)}
    inputs = ["x"]
    if split is not None:
        constants["lengths"] = split
        inputs.append("lengths")
    attributes: dict[str, Any] = {} if keepdims is None else {"keepdims": keepdims}
    nodes = [helper.make_node("SplitToSequence", inputs, ["pieces"], axis=axis, **attributes)]
    nodes += [helper.make_node("SequenceAt", ["pieces", f"p{i}"], [f"y{i}"])
              for i in range(len(positions))]
    drops = keepdims == 0 and (split is None or np.ndim(split) == 0)
    rank = len(shape) - drops
    outputs = [value(f"y{i}", [None] * rank, dtype) for i in range(len(positions))]
    given = value("x", shape if declared is None else declared, dtype)
    return model(nodes, [given], outputs, constants, opset)


def operators(graph: GraphProto) -> list[str]:
    """Returns the operators of all nodes, including those in bodies."""
    found = []
    for node in graph.node:
        found.append(node.op_type)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                found += operators(attribute.g)
    return found


def by_onnxruntime(proto: ModelProto, feeds: Mapping[str, Array]) -> list[Any]:
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"], enable_fallback=0
    )
    return list(session.run(None, dict(feeds)))


def by_reference(proto: ModelProto, feeds: Mapping[str, Array]) -> list[Any]:
    return list(ReferenceEvaluator(proto).run(None, dict(feeds)))


def bits(output: Any) -> Any:
    """Returns a key that is equal if and only if type, shape and bits are."""
    if isinstance(output, list):
        return [bits(item) for item in output]
    array = np.asarray(output)
    is_text = array.dtype.kind in "OU"
    data = [str(text) for text in array.ravel()] if is_text else array.tobytes()
    return ("text" if is_text else str(array.dtype)), array.shape, data


def assert_same_results(
    before: ModelProto, after: ModelProto, feeds: Mapping[str, Array], reference: bool = True
) -> list[Any]:
    """Checks that both models give the same in ONNX Runtime and in ONNX's reference, and returns that."""
    onnx.checker.check_model(after, full_check=True)
    expected = by_onnxruntime(before, feeds)
    assert bits(by_onnxruntime(after, feeds)) == bits(expected)
    if reference:
        assert bits(by_reference(before, feeds)) == bits(expected)
        assert bits(by_reference(after, feeds)) == bits(expected)
    return expected
