"""Cases as ONNX models of one node, for implementations that run models or infer their shapes."""

import numpy as np
from onnx import TensorProto, helper

import cases


def onnx_only(case):
    if case.op.startswith("openvino."):
        raise cases.NotThere("an operator of OpenVINO")
    if case.flags:
        raise cases.NotThere("a flag of libsplit")


def number(dtype):
    return cases.DTYPES[dtype][0]


def lengths(case):
    return np.asarray(case.split, case.split_dtype).reshape(case.lengths_shape)


def model(case, lengths_as):
    """Makes a model. lengths_as: "input" for an input of the model, "constant" for lengths that inference sees."""
    names, inputs, initializers, attributes = ["x"], [], [], {}
    inputs.append(helper.make_tensor_value_info("x", number(case.dtype), case.input_shape))
    if case.lengths_shape is not None:
        if case.split_given_as == "attribute" or (case.op == "Split" and 1 < case.opset < 13):
            attributes["split"] = case.split
        else:
            names.append("lengths")
            dtype = number(case.split_dtype)
            if lengths_as == "input" or not case.split_known:
                inputs.append(
                    helper.make_tensor_value_info("lengths", dtype, case.lengths_shape))
            else:
                initializers.append(helper.make_tensor(
                    "lengths", dtype, case.lengths_shape, lengths(case).ravel()))
    for name in ("axis", "num_outputs", "keepdims"):
        if getattr(case, name) is not None:
            attributes[name] = getattr(case, name)
    count = 1 if case.op == "SplitToSequence" else case.n_outputs
    outputs = ["" if i in case.unwanted else f"y{i}" for i in range(count)]
    node = helper.make_node(case.op, names, outputs, **attributes)
    graph = helper.make_graph([node], "case", inputs, [result(case, name) for name in outputs
                                                       if name], initializers)
    imports = [helper.make_opsetid("", case.opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def result(case, name):
    if case.op == "SplitToSequence":
        return helper.make_tensor_sequence_value_info(name, number(case.dtype), None)
    return helper.make_tensor_value_info(name, number(case.dtype), None)


def feeds(case, array):
    """Returns a model's inputs: the case's elements, converted by `array`, and the lengths."""
    result = {"x": array}
    attribute = case.split_given_as == "attribute" or (case.op == "Split" and case.opset < 13
                                                       and case.opset > 1)
    if case.lengths_shape is not None and not attribute:
        result["lengths"] = lengths(case)
    return result


def numpy_array(case):
    """Returns the elements as a NumPy array, with ml_dtypes for types that NumPy lacks."""
    elements = case.elements()
    if case.dtype == "string":
        return elements
    if cases.DTYPES[case.dtype][1] < 8:
        raise cases.NotThere("4 and 2 bits")
    return elements.view(numpy_dtype(case.dtype)).reshape(case.input_shape)


def numpy_dtype(name):
    dtype = helper.tensor_dtype_to_np_dtype(number(name))
    return np.dtype(dtype)


def answer(case, arrays):
    """Returns the outputs of a run in the order of the case, None for outputs that are not wanted."""
    arrays = iter(arrays)
    count = case.n_outputs
    wanted = [None if i in case.unwanted else next(arrays)
              for i in range(count)] if case.unwanted else list(arrays)
    return {"shapes": [None if a is None else list(np.shape(a)) for a in wanted],
            "digests": [None if a is None else _digest(case, a) for a in wanted]}


def _digest(case, array):
    if case.dtype == "string":
        return cases.digest("string", np.asarray(array, object))
    return cases.digest_bytes(np.ascontiguousarray(array).tobytes())
