"""The Python package libsplit, if it is installed."""

import libsplit
import numpy as np

import cases


def version():
    return libsplit.__version__


def run(case):
    operator = the_operator(case)
    if case.kind == "shape":
        shapes = libsplit.infer(case.input_shape, operator, dtype=case.dtype)
        return {"shapes": [list(shape) for shape in shapes]}
    pieces = libsplit.copy(tensor(case), operator)
    return {"shapes": [list(piece.shape) for piece in pieces],
            "digests": [digest(piece) for piece in pieces]}


def the_operator(case):
    """Lengths are Python integers, so other types, and lengths with a shape, cannot be passed."""
    if case.split_shape is not None or case.split_dtype != "int64":
        raise cases.NotThere("lengths are integers or a list of them")
    if case.unwanted or (case.num_outputs is not None and case.n_outputs not in
                         (None, case.num_outputs)):
        raise cases.NotThere("all pieces are returned")
    axis = case.axis or 0
    if case.op == "openvino.VariadicSplit":
        return libsplit.Operator.variadic_split(case.split, axis=axis)
    if case.op == "openvino.Split" and case.split is not None:
        raise cases.NotThere("lengths have no argument there")
    if case.op == "openvino.Split":
        return libsplit.Operator.openvino_split(case.num_outputs, axis=axis)
    if case.op == "SplitToSequence":
        return libsplit.Operator.split_to_sequence(case.split, axis=axis, opset=case.opset,
                                                   keepdims=case.keepdims != 0)
    parts = case.num_outputs
    if case.opset < 18 and case.split is None:
        parts = case.n_outputs
    return libsplit.Operator.onnx_split(case.split, axis=axis, num_outputs=parts,
                                        opset=case.opset,
                                        clamp_uneven="CLAMP_UNEVEN" in case.flags)


def tensor(case):
    if case.dtype == "string":
        raise cases.NotThere("DLPack has no strings")
    packed = np.frombuffer(bytearray(cases.pack(case.dtype, case.elements())), np.uint8)
    try:
        return packed.view(case.dtype).reshape(case.input_shape)
    except TypeError:  # a type that NumPy lacks
        return libsplit.Tensor(packed, dtype=case.dtype, shape=case.input_shape)


def digest(piece):
    if isinstance(piece, libsplit.Tensor):
        piece = piece.bytes().numpy()
    return cases.digest_bytes(piece.tobytes())
