"""Models to test with, and what their sessions have done."""

import collections
import json
import os
import pathlib

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD_DIR = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release"))
LIBRARY = BUILD_DIR / "lib/libsplit_onnxruntime.so"
EP = "LibsplitExecutionProvider"
CPU = "CPUExecutionProvider"
# N of release 1.N. From 1.32 on, ONNX Runtime makes equal parts as the operator's document says, and
# refuses a num_outputs that is not the number of outputs; so does the provider in it.
RELEASE = int(ort.__version__.split(".")[1])


def value(name, dtype=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model_of(nodes, inputs, outputs, initializers=(), opset=18, domains=("libsplit",)):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializer=list(initializers))
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def split_model(outputs, *, opset=18, dtype=TensorProto.FLOAT, shape=None, lengths=None,
                op="Split", domain="", **attributes):
    """One Split named 'split', from 'x' to the names in 'outputs'; "" is one that is not used.

    lengths: None, a list for a constant input, or "input" for the model's second input.
    """
    names = ["x"] if lengths is None else ["x", "lengths"]
    inputs = [value("x", dtype, shape)]
    initializers = []
    if isinstance(lengths, str):
        inputs.append(value("lengths", TensorProto.INT64, None))
    elif lengths is not None:
        initializers.append(constant("lengths", np.array(lengths, np.int64)))
    node = helper.make_node(op, names, outputs, name="split", domain=domain, **attributes)
    results = [value(name, dtype, None) for name in outputs if name]
    return model_of([node], inputs, results, initializers, opset)


def pieces(array, lengths, axis=0):
    """The oracle: NumPy's own slices."""
    ends = np.cumsum(lengths)
    assert ends[-1] == array.shape[axis]
    index = [slice(None)] * array.ndim
    result = []
    for length, end in zip(lengths, ends):
        index[axis] = slice(end - length, end)
        result.append(array[tuple(index)])
    return result


def assert_same(actual, expected):
    """Bit by bit, types and shapes too."""
    assert len(actual) == len(expected)
    for got, wanted in zip(actual, expected):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype == object:
            assert got.tolist() == wanted.tolist()
        else:
            assert got.tobytes() == wanted.tobytes()


def ran(session):
    """From the session's profile: how often which provider ran Splits, {provider: runs}."""
    profile = pathlib.Path(session.end_profiling())
    events = json.loads(profile.read_text())
    profile.unlink()
    runs = collections.Counter()
    for event in events:
        args = event.get("args", {})
        if event["cat"] == "Node" and args.get("op_name", "").endswith("Split"):
            runs[args["provider"]] += 1
    return runs


def run_bits(session, dtype, bits, output_shapes, feeds=None):
    """Runs on elements of any type, given and had as unsigned integers of the same size."""
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, dtype, bits.shape, bits.ctypes.data)
    for name, array in (feeds or {}).items():
        binding.bind_cpu_input(name, array)
    outputs = [np.zeros(shape, bits.dtype) for shape in output_shapes]
    for meta, output in zip(session.get_outputs(), outputs):
        binding.bind_output(meta.name, "cpu", 0, dtype, output.shape, output.ctypes.data)
    session.run_with_iobinding(binding)
    return outputs


def random_bits(size, shape, seed=0):
    """Random unsigned integers of this many bytes, all bit patterns among them."""
    random = np.random.default_rng(seed)
    return random.integers(0, 2 ** (8 * size), shape, f"u{size}", endpoint=False)
