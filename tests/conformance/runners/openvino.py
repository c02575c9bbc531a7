"""OpenVINO on the CPU: its own operators, and ONNX models read by its frontend."""

import io

import numpy as np
import openvino as ov
from openvino import opset1

import cases
from runners import models

# OpenVINO has no float8_e4m3fnuz and similar types.
TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
         "bool": "boolean", "string": "string", "float8_e4m3fn": "f8e4m3",
         "float8_e5m2": "f8e5m2", "float8_e8m0fnu": "f8e8m0", "float4_e2m1fn": "f4e2m1",
         "uint4": "u4", "int4": "i4", "uint2": "u2", "int2": "i2"}
TYPES |= {f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("u", "") for bits in
          (8, 16, 32, 64)}
core = ov.Core()


def version():
    return ov.__version__.split("-")[0]


def element_type(name):
    if name not in TYPES or not hasattr(ov.Type, TYPES[name]):
        raise cases.NotThere(f"no type {name}")
    return getattr(ov.Type, TYPES[name])


def run(case):
    if case.flags:
        raise cases.NotThere("a flag of libsplit")
    if case.op == "SplitToSequence":
        raise cases.NotThere("no sequences as outputs")
    model = own_model(case) if case.op.startswith("openvino.") else onnx_model(case)
    if case.kind == "shape":
        return {"shapes": [extents(output.partial_shape) for output in model.outputs]}
    request = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1}
                                 ).create_infer_request()
    request.set_input_tensor(0, tensor(case))
    if len(model.inputs) > 1:
        request.set_input_tensor(1, ov.Tensor(np.ascontiguousarray(models.lengths(case))))
    request.infer()
    results = iter([request.get_output_tensor(i) for i in range(len(model.outputs))])
    count = case.n_outputs or len(model.outputs)
    wanted = [None if i in case.unwanted else next(results) for i in range(count)]
    kept = [t is None or t.element_type == element_type(case.dtype) for t in wanted]
    return {"shapes": [None if t is None else list(t.shape) for t in wanted],
            "digests": [None if t is None else data(case, t) if same else str(t.element_type)
                        for t, same in zip(wanted, kept)]}


def extents(shape):
    return [extent.get_length() if extent.is_static else None for extent in shape]


def onnx_model(case):
    models.onnx_only(case)
    return core.read_model(io.BytesIO(models.model(case, "constant").SerializeToString()))


def own_model(case):
    """Makes a model. The lengths are an input if their type allows that, so that nothing is folded away."""
    shape = ov.PartialShape([-1 if e is None else e for e in case.input_shape])
    x = opset1.parameter(shape, element_type(case.dtype))
    axis = opset1.constant(np.array(case.axis, np.int64))
    if case.op == "openvino.Split":
        node, inputs = opset1.split(x, axis, case.num_outputs), [x]
    else:
        lengths = opset1.constant(models.lengths(case))
        node, inputs = opset1.variadic_split(x, axis, lengths), [x]
    return ov.Model([opset1.result(output) for output in node.outputs()], inputs, "case")


def tensor(case):
    if case.dtype == "string":
        return ov.Tensor(case.elements().astype(str))
    packed = np.frombuffer(cases.pack(case.dtype, case.elements()), np.uint8)
    kind = element_type(case.dtype)
    if cases.DTYPES[case.dtype][1] < 8:
        return ov.Tensor(packed.copy(), ov.Shape(case.input_shape), kind)
    result = ov.Tensor(kind, ov.Shape(case.input_shape))
    result.data.reshape(-1).view(np.uint8)[:] = packed
    return result


def data(case, tensor):
    if case.dtype == "string":
        return cases.digest("string", np.asarray(tensor.str_data, object))
    packed = bytearray(tensor.data.tobytes())
    if packed and (used := tensor.size * cases.DTYPES[case.dtype][1] % 8):
        packed[-1] &= (1 << used) - 1  # bits past the last element may be anything
    return cases.digest_bytes(packed)
