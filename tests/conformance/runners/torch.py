"""torch's split, chunk and unbind, for cases that ask for what one of them does."""

import numpy as np
import torch

import cases


def version():
    return torch.__version__.split("+")[0]


def run(case):
    if case.flags or case.kind == "shape" or case.unwanted:
        raise cases.NotThere("nothing like it")
    if case.op.startswith("openvino.") or (case.op == "Split" and case.opset < 18):
        raise cases.NotThere("an operator of others")
    if case.error in ("DTYPE", "OPSET", "SPLIT") or case.num_outputs not in (None, -1,
                                                                          case.n_outputs):
        raise cases.NotThere("a rule of ONNX models")
    pieces = divide(case, tensor(case))
    return {"shapes": [list(piece.shape) for piece in pieces],
            "digests": [digest(piece) for piece in pieces]}


def divide(case, x):
    axis = case.axis or 0
    if case.split is not None:
        return torch.split(x, case.split, axis)
    if case.op == "Split":
        return torch.chunk(x, case.num_outputs, axis)
    return torch.split(x, 1, axis) if case.keepdims != 0 else torch.unbind(x, axis)


def tensor(case):
    dtype = getattr(torch, case.dtype, None)
    if dtype is None or cases.DTYPES[case.dtype][1] < 8:
        raise cases.NotThere(f"no type {case.dtype}")
    packed = np.frombuffer(bytearray(cases.pack(case.dtype, case.elements())), np.uint8)
    flat = torch.from_numpy(packed).view(dtype) if packed.size else torch.empty(0, dtype=dtype)
    return flat.reshape(case.input_shape)


def digest(piece):
    if not piece.numel():
        return cases.digest_bytes(b"")
    return cases.digest_bytes(piece.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
