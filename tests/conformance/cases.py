"""The cases of tests/cases: the inputs and the expected outputs, as plain bytes.

The oracle is NumPy's slicing. It knows nothing of libsplit, nor of any peer.
"""

import hashlib
import json
import pathlib
from dataclasses import dataclass, field

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "cases"

# Name: (number in ONNX TensorProto.DataType, bits).
DTYPES = {
    "float32": (1, 32), "uint8": (2, 8), "int8": (3, 8), "uint16": (4, 16), "int16": (5, 16),
    "int32": (6, 32), "int64": (7, 64), "string": (8, 128), "bool": (9, 8), "float16": (10, 16),
    "float64": (11, 64), "uint32": (12, 32), "uint64": (13, 64), "complex64": (14, 64),
    "complex128": (15, 128), "bfloat16": (16, 16), "float8_e4m3fn": (17, 8),
    "float8_e4m3fnuz": (18, 8), "float8_e5m2": (19, 8), "float8_e5m2fnuz": (20, 8),
    "uint4": (21, 4), "int4": (22, 4), "float4_e2m1fn": (23, 4), "float8_e8m0fnu": (24, 8),
    "uint2": (25, 2), "int2": (26, 2),
}


class NotThere(Exception):
    """The implementation has nothing that could run the case."""


@dataclass
class Case:
    name: str
    op: str
    opset: int
    dtype: str
    input_shape: list
    axis: int | None
    kind: str = "value"
    why: str = ""
    issue: str | None = None
    open: bool = False
    first: int = 0
    bytes: list | None = None
    input: list | None = None
    split: object = None
    split_dtype: str = "int64"
    split_shape: list | None = None
    split_given_as: str = "input"
    num_outputs: int | None = None
    n_outputs: int | None = None
    keepdims: int | None = None
    flags: list = field(default_factory=list)
    unwanted: list = field(default_factory=list)
    sizes: list | None = None
    axis_dropped: bool = False
    outputs: list | None = None
    element: list | None = None
    error: str | None = None

    @property
    def split_known(self):
        return self.split is not None

    @property
    def lengths_shape(self):
        """The shape of the lengths; None if there are none."""
        if self.split_shape is not None:
            return self.split_shape
        if self.split is None:
            return None
        return [len(self.split)] if isinstance(self.split, list) else []

    @property
    def normal_axis(self):
        return (self.axis or 0) % max(1, len(self.input_shape))

    def shapes(self):
        """The expected shapes."""
        if self.sizes is None:
            return self.outputs
        axis = self.normal_axis
        before, after = self.input_shape[:axis], self.input_shape[axis + 1:]
        return [before + ([] if self.axis_dropped else [size]) + after for size in self.sizes]

    def elements(self):
        """The input: strings, small integers (4 and 2 bits), or arrays whose last axis is an element's bytes."""
        count = int(np.prod(self.input_shape, dtype=np.int64))
        bits = DTYPES[self.dtype][1]
        if self.dtype == "string":
            return np.array([f"s{i}" for i in range(count)], object).reshape(self.input_shape)
        if bits < 8:
            return (np.arange(count) % (1 << bits)).astype(np.uint8).reshape(self.input_shape)
        values = self.input if self.input is not None else self.bytes
        if values is None:
            values = np.arange(self.first, self.first + count)
        if self.dtype == "bool" and self.bytes is None:
            whole = np.asarray(values, np.uint8) % 2
        elif self.dtype == "bfloat16":
            whole = (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        elif bits == 8:
            whole = np.asarray(values).astype(np.uint8)
        else:
            whole = np.asarray(values).astype(self.dtype)
        return whole.view(np.uint8).reshape(*self.input_shape, bits // 8)

    def digests(self):
        """The digests of the expected bytes, one for each output."""
        elements, axis, result, begin = self.elements(), self.normal_axis, [], 0
        for size in self.sizes:
            index = (slice(None),) * axis + (slice(begin, begin + size),)
            result.append(digest(self.dtype, elements[index]))
            begin += size
        return result


def pack(dtype, elements):
    """Returns the bytes of elements in memory; of 4 and 2 bits, the first element is in the low bits."""
    bits = DTYPES[dtype][1]
    if dtype == "string":
        return "\0".join(elements.ravel().tolist()).encode()
    if bits >= 8:
        return elements.tobytes()
    flat = elements.ravel()
    flat = np.pad(flat, (0, -len(flat) % (8 // bits))).reshape(-1, 8 // bits)
    return (flat << (np.arange(8 // bits) * bits)).sum(1).astype(np.uint8).tobytes()


def digest(dtype, elements):
    return digest_bytes(pack(dtype, elements))


def digest_bytes(data):
    return hashlib.sha256(data).hexdigest()[:16]


def _from_onnx(raw):
    """Makes a case from the form of onnx.json and onnx_shape.json."""
    known = {name: raw[name] for name in Case.__dataclass_fields__ if raw.get(name) is not None}
    case = Case(**known | {"axis": raw["axis"], "why": "ONNX's own case", "error": None})
    case.split_dtype = raw.get("split_dtype") or "int64"
    if case.kind == "shape":
        return _shape_from_onnx(case, raw)
    case.kind = "value"
    shapes = [output["shape"] for output in raw["outputs"]]
    case.axis_dropped = bool(shapes) and len(shapes[0]) < len(case.input_shape)
    case.outputs, axis = None, case.normal_axis
    case.sizes = [1 if case.axis_dropped else shape[axis] for shape in shapes]
    assert case.shapes() == shapes
    for output, ours in zip(raw["outputs"], case.digests()):
        assert digest_bytes(np.asarray(output["data"]).astype(case.dtype).tobytes()) == ours
    return case


def _shape_from_onnx(case, raw):
    unnamed = lambda shape: [extent if isinstance(extent, int) else None for extent in shape]
    case.input_shape = unnamed(case.input_shape)
    case.error = "SPLIT_SIZES" if raw["error"] else None
    if raw.get("seq_elem_shape"):
        case.element, case.outputs = raw["seq_elem_shape"], None
    elif raw["outputs"]:
        case.outputs = [unnamed(shape) for shape in raw["outputs"]]
        case.n_outputs = len(case.outputs)
        if isinstance(case.split, list):  # lengths that are known stay known
            for shape, length in zip(case.outputs, case.split):
                shape[case.normal_axis] = length
    return case


def load():
    """Returns every case by name, in the order of the files."""
    cases = {}
    for name in ("rules", "issues", "onnx", "onnx_shape"):
        for raw in json.loads((FOLDER / f"{name}.json").read_text()):
            case = _from_onnx(raw) if name.startswith("onnx") else Case(**raw)
            assert case.name not in cases, case.name
            cases[case.name] = case
    return cases
