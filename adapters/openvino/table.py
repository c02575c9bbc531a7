"""Prints what OpenVINO's CPU plugin returns for splits, without and with the extension, as Markdown.

Usage: table.py EXTENSION

Everything is run, in a separate process, which is restarted after a crash. Types and cases for which
libsplit and OpenVINO agree are listed as well.
"""

import json
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import openvino
from onnx import TensorProto, helper
from openvino import Model, Shape, Tensor, Type, opset13

TYPES = ["boolean", "u1", "u2", "u3", "u4", "u6", "u8", "u16", "u32", "u64", "i4", "i8", "i16",
         "i32", "i64", "nf4", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0", "bf16", "f16", "f32", "f64",
         "string"]
ONNX_TYPES = {"boolean": "BOOL", "bf16": "BFLOAT16", "f16": "FLOAT16", "f32": "FLOAT",
              "f64": "DOUBLE", "i8": "INT8", "i16": "INT16", "i32": "INT32", "i64": "INT64",
              "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "u64": "UINT64",
              "string": "STRING"}
SHAPE = [2, 12]
LENGTHS = [1, 7, 4]


# ---- Models ----

def model_of(parameters, node):
    return Model([opset13.result(output) for output in node.outputs()], parameters)


def variadic_split(shape, lengths, element=Type.f32, axis=0):
    data = opset13.parameter(shape, element)
    return model_of([data], opset13.variadic_split(data, opset13.constant(axis),
                                                   opset13.constant(np.array(lengths))))


def split(shape, parts, element=Type.f32, axis=0):
    data = opset13.parameter(shape, element)
    return model_of([data], opset13.split(data, opset13.constant(axis), parts))


def onnx_split(opset, shape, outputs, lengths=None, element="FLOAT", fed=False, **attributes):
    inputs = [helper.make_tensor_value_info("x", TensorProto.DataType.Value(element), shape)]
    constants = []
    if lengths is not None and opset < 13:
        attributes["split"] = lengths
    elif fed:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT64, [len(lengths)]))
    elif lengths is not None:
        constants = [helper.make_tensor("lengths", TensorProto.INT64, [len(lengths)], lengths)]
    names = [f"y{index}" for index in range(outputs)]
    takes = ["x", "lengths"] if constants or fed else ["x"]
    node = helper.make_node("Split", takes, names, **attributes)
    outputs = [helper.make_value_info(name, helper.make_tensor_type_proto(
        TensorProto.DataType.Value(element), None)) for name in names]
    graph = helper.make_graph([node], "split", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def outputs_of(core, model, *inputs):
    """Writes a model as IR and reads it again, because the extension replaces nodes when a model is read."""
    if isinstance(model, onnx.ModelProto):
        model = core.read_model(model.SerializeToString())
    else:
        with tempfile.TemporaryDirectory() as directory:
            openvino.serialize(model, f"{directory}/model.xml")
            model = core.read_model(f"{directory}/model.xml")
    request = core.compile_model(model, "CPU").create_infer_request()
    request.infer(list(inputs))
    return request, [request.get_output_tensor(index) for index in range(len(model.outputs))]


# ---- Types ----

def sample(name):
    """Makes arbitrary bits; floats of 16 bits and more are finite and not too small."""
    if name == "string":
        return Tensor(np.array([[f"{row} {column} " * 9 for column in range(SHAPE[1])]
                                for row in range(SHAPE[0])]))
    tensor = Tensor(getattr(Type, name), Shape(SHAPE))
    raw = tensor.data.view(np.uint8).reshape(-1)
    raw[:] = np.random.default_rng(1).integers(0, 256, raw.size)
    if name == "boolean":
        raw &= 1
    if name in ("bf16", "f16", "f32", "f64"):
        high = raw[raw.size // int(np.prod(SHAPE)) - 1::raw.size // int(np.prod(SHAPE))]
        high[:] = high & 0xBF | (0x3F if name == "f64" else 0x30)
    return tensor


def elements(tensor, shape):
    """Returns the tensor with its elements' bits as the last axis; strings stay as they are."""
    if tensor.element_type == Type.string:
        return tensor.str_data
    bits = np.unpackbits(tensor.data.view(np.uint8).reshape(-1), bitorder="little")
    return bits[:int(np.prod(shape)) * tensor.element_type.bitwidth].reshape(*shape, -1)


def narrowed(values):
    """Returns what 64-bit values become in 32 bits."""
    if values.dtype.kind == "f":
        return [values.astype("f4").astype(values.dtype)]
    low, high = (0, 2**32 - 1) if values.dtype.kind == "u" else (-2**31, 2**31 - 1)
    return [values.clip(low, high), values.clip(-2**31, 2**31 - 1).astype(values.dtype),
            values.astype("i4").astype(values.dtype), values.astype("u4").astype(values.dtype)]


def try_type(core, kind, name):
    tensor = sample(name)
    lengths = [SHAPE[1] // 3] * 3 if kind == "split" else LENGTHS
    model = {"variadic_split": lambda: variadic_split(SHAPE, lengths, getattr(Type, name), 1),
             "split": lambda: split(SHAPE, 3, getattr(Type, name), 1),
             "onnx": lambda: onnx_split(13, SHAPE, 3, lengths, ONNX_TYPES[name], axis=1)}[kind]()
    request, outputs = outputs_of(core, model, tensor)
    places = np.cumsum(lengths)[:-1]
    shapes = [[SHAPE[0], length] for length in lengths]
    found = [elements(output, shape) for output, shape in zip(outputs, shapes)]
    expected = np.split(elements(tensor, SHAPE), places, 1)
    if all(map(np.array_equal, found, expected)):
        return "right"
    if tensor.element_type.bitwidth == 64 and any(
            all(map(np.array_equal, [output.data for output in outputs], np.split(way, places, 1)))
            for way in narrowed(tensor.data)):
        return "**narrowed** to 32 bits"
    return "**wrong**"


# ---- Cases ----

CASES = {
    "ONNX Split-18, 7 into 3": (7, lambda: onnx_split(18, [7], 3, num_outputs=3), "3 3 1"),
    "ONNX Split-18, unknown extent, 7 into 3": (
        7, lambda: onnx_split(18, ["n"], 3, num_outputs=3), "3 3 1"),
    "ONNX Split-18, 6 into 4": (6, lambda: onnx_split(18, [6], 4, num_outputs=4), "2 2 2 0"),
    "ONNX Split-18, unknown extent, 6 into 4": (
        6, lambda: onnx_split(18, ["n"], 4, num_outputs=4), "2 2 2 0"),
    "ONNX Split-18, 5 into 4": (5, lambda: onnx_split(18, [5], 4, num_outputs=4), "refused"),
    "ONNX Split-18, 0 into 3": (0, lambda: onnx_split(18, [0], 3, num_outputs=3), "0 0 0"),
    "ONNX Split-18, num_outputs 2, three outputs": (
        6, lambda: onnx_split(18, [6], 3, num_outputs=2), "refused"),
    "ONNX Split-13, lengths 2, 0, 4": (6, lambda: onnx_split(13, [6], 3, [2, 0, 4]), "2 0 4"),
    "ONNX Split-13, lengths as an input": (
        6, lambda: onnx_split(13, ["n"], 2, [2, 4], fed=True), "2 4"),
    "ONNX Split-13, lengths -1, 7 of 6": (6, lambda: onnx_split(13, [6], 2, [-1, 7]), "refused"),
    "ONNX Split-13, lengths 1, 2 of 6": (6, lambda: onnx_split(13, ["n"], 2, [1, 2]), "refused"),
    "ONNX Split-13, no lengths, 6 into 3": (6, lambda: onnx_split(13, [6], 3), "2 2 2"),
    "ONNX Split-11, attribute split": (6, lambda: onnx_split(11, [6], 2, [2, 4]), "2 4"),
    "VariadicSplit, lengths 2, -1, 1": (6, lambda: variadic_split([6], [2, -1, 1]), "2 3 1"),
    "VariadicSplit, unknown extent, lengths 2, -1, 1": (
        6, lambda: variadic_split([-1], [2, -1, 1]), "2 3 1"),
    "VariadicSplit, lengths 4, -1, 3 of 6": (
        6, lambda: variadic_split([6], [4, -1, 3]), "refused"),
    "VariadicSplit, unknown extent, lengths 4, -1, 3 of 6": (
        6, lambda: variadic_split([-1], [4, -1, 3]), "refused"),
    "VariadicSplit, float lengths": (6, lambda: variadic_split([6], [2.0, 4.0]), "refused"),
    "OpenVINO Split, 0 into 3": (0, lambda: split([0], 3), "0 0 0"),
    "OpenVINO Split, unknown extent, 7 into 3": (7, lambda: split([-1], 3), "refused"),
}


def try_case(core, name):
    extent, make, _ = CASES[name]
    model = make()
    array = np.arange(1, extent + 1, dtype="f4")
    fed = [np.array([2, 4])] if isinstance(model, onnx.ModelProto) and (
        len(model.graph.input) == 2) else []
    request, outputs = outputs_of(core, model, array, *fed)
    pieces = [output.data for output in outputs]
    told = " ".join(str(len(piece)) for piece in pieces)
    if sum(map(len, pieces)) > extent:
        return f"{told}: **reads past the input**"
    return told if np.array_equal(np.concatenate(pieces), array) else f"{told}: **wrong**"


# ---- Processes ----

def work(extension, jobs):
    """Runs the jobs one after another and prints a line for each."""
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    if extension:
        core.add_extension(extension)
    for job in jobs:
        try:
            result = try_case(core, *job) if len(job) == 1 else try_type(core, *job)
        except RuntimeError:
            result = "refused"
        print(json.dumps(result), flush=True)


def run(extension, jobs):
    """Returns the jobs' results, by job. A job that ends its process is a crash."""
    results = {}
    while len(results) < len(jobs):
        left = jobs[len(results):]
        process = subprocess.run([sys.executable, __file__, "--work", extension, json.dumps(left)],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in process.stdout.splitlines():
            results[jobs[len(results)]] = json.loads(line)
        if process.returncode < 0:
            # Corruption of the heap may be noticed only at the end of the process.
            last = len(results) if len(results) < len(jobs) else len(jobs) - 1
            results[jobs[last]] = "**crash**"
        elif process.returncode > 0:
            sys.exit(f"error: the process for {left} failed")
    return results


def type_jobs():
    return [(kind, name) for name in TYPES for kind in ("variadic_split", "split", "onnx")
            if kind != "onnx" or name in ONNX_TYPES]


def print_table(head, rows):
    for row in [head, ["---"] * len(head), *rows]:
        print("| " + " | ".join(row) + " |")


def main(extension):
    # In OpenVINO, strings may corrupt the heap, so each job with strings has its own process.
    jobs = [job for job in type_jobs() if job[1] != "string"]
    strings = [job for job in type_jobs() if job[1] == "string"]
    cases = [(name,) for name in CASES]
    without, with_it = ({key: value for some in [jobs, cases, *([job] for job in strings)]
                         for key, value in run(library, some).items()}
                        for library in ("", extension))
    print(f"OpenVINO {openvino.__version__}, CPU plugin; onnx {onnx.__version__}. "
          "Made by table.py.\n")
    print_table(["type", *(f"{kind}, {which}" for kind in ("VariadicSplit", "Split", "ONNX Split-13")
                           for which in ("OpenVINO", "libsplit"))],
                [[name, *(results.get((kind, name), "–")
                          for kind in ("variadic_split", "split", "onnx")
                          for results in (without, with_it))] for name in TYPES])
    print()
    print_table(["case", "documents", "OpenVINO", "libsplit"],
                [[name, CASES[name][2], without[name,], with_it[name,]] for name in CASES])


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(sys.argv[2], json.loads(sys.argv[3]))
    else:
        main(sys.argv[1])
