"""libsplit.so's C functions, called through ctypes."""

import ctypes
import os
import pathlib

import numpy as np

from cases import DTYPES, digest_bytes, pack
from runners.structures import Error, Params, String, Tensor

BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "build/release"))
lib = ctypes.CDLL(str(BUILD / "lib/libsplit.so"))
OPS = {"Split": 1, "SplitToSequence": 2, "openvino.VariadicSplit": 3, "openvino.Split": 4}
UNKNOWN = -1


class Failure(Exception):
    pass


lib.libsplit_version_string.restype = lib.libsplit_status_name.restype = ctypes.c_char_p


def version():
    return lib.libsplit_version_string().decode()


def call(function, *arguments):
    error = Error(struct_size=ctypes.sizeof(Error))
    if status := getattr(lib, f"libsplit_{function}")(*arguments, ctypes.byref(error)):
        failure = Failure(error.message.decode())
        name = lib.libsplit_status_name(status).decode()
        failure.status_name = name.removeprefix("LIBSPLIT_STATUS_ERROR_")
        raise failure


def tensor(dtype, shape, data=None):
    """Makes a descriptor that keeps alive what it points to."""
    extents = (ctypes.c_int64 * len(shape))(*[UNKNOWN if e is None else e for e in shape])
    result = Tensor(shape=extents, rank=len(shape), dtype=DTYPES[dtype][0])
    result.kept = (extents, data)
    if data is not None:
        result.data = ctypes.cast(data, ctypes.c_void_p)
        result.data_bytes = ctypes.sizeof(data)
    return result


def memory(case):
    """Returns the input's bytes; strings become pairs of address and size."""
    elements = case.elements()
    if case.dtype == "string":
        strings = [text.encode() for text in elements.ravel()]
        return (String * len(strings))(*[String(text, len(text)) for text in strings])
    data = pack(case.dtype, elements)
    return (ctypes.c_uint8 * len(data)).from_buffer_copy(data) if data else None


def lengths(case):
    if case.lengths_shape is None:
        return None
    data = None
    if case.split_known:
        values = np.asarray(case.split, dtype=case.split_dtype)
        data = (ctypes.c_uint8 * max(1, values.nbytes)).from_buffer_copy(values.tobytes() or b"\0")
    return tensor(case.split_dtype, case.lengths_shape, data)


def params(case, split):
    # ONNX's default for keepdims is 1. LIBSPLIT_FLAG_CLAMP_UNEVEN is the only flag.
    result = Params(struct_size=ctypes.sizeof(Params), op=OPS[case.op], opset=case.opset,
                    axis=case.axis or 0, num_outputs=case.num_outputs or 0,
                    keepdims=1 if case.keepdims is None else case.keepdims,
                    flags=1 if "CLAMP_UNEVEN" in case.flags else 0)
    if split is not None:
        result.split = ctypes.pointer(split)
    return result


def run(case):
    split = lengths(case)
    parameters = params(case, split)
    shape_only = case.kind == "shape" or (0 in case.input_shape and max(case.input_shape) > 2**40)
    source = None if shape_only else memory(case)
    source = tensor(case.dtype, case.input_shape, source)
    count = case.n_outputs
    if count is None:
        number = ctypes.c_size_t()
        call("count", ctypes.byref(source), ctypes.byref(parameters), ctypes.byref(number))
        count = number.value

    outputs = (Tensor * count)()
    shapes = [(ctypes.c_int64 * 64)() for _ in outputs]
    for i, output in enumerate(outputs):
        if i not in case.unwanted:
            output.shape, output.capacity = shapes[i], 64
    call("infer", ctypes.byref(source), ctypes.byref(parameters), outputs, count)
    found = [[None if e == UNKNOWN else e for e in output.shape[:output.rank]]
             if output.shape else None for output in outputs]
    if case.kind == "shape":
        return {"shapes": found}

    buffers = [(ctypes.c_uint8 * output.data_bytes)() for output in outputs]
    for output, buffer in zip(outputs, buffers):
        if output.shape:
            output.data = ctypes.addressof(buffer)
    call("copy", ctypes.byref(source), ctypes.byref(parameters), outputs, count, None)
    return {"shapes": found, "digests": [digest_bytes(result_bytes(case.dtype, buffer))
                                         if shape is not None else None
                                         for shape, buffer in zip(found, buffers)]}


def result_bytes(dtype, buffer):
    if dtype != "string":
        return bytes(buffer)
    pairs = (String * (ctypes.sizeof(buffer) // ctypes.sizeof(String))).from_buffer(buffer)
    return b"\0".join(ctypes.string_at(pair.data, pair.size) for pair in pairs)
