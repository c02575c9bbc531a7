"""ONNX Runtime's own kernels on the CPU."""

import numpy as np
import onnxruntime as ort

from cases import NotThere
from runners import models

ort.set_default_logger_severity(4)


def version():
    return ort.__version__


def options():
    result = ort.SessionOptions()
    result.intra_op_num_threads = 1
    return result


def run(case):
    return run_with(case, options())


def run_with(case, options):
    models.onnx_only(case)
    if case.kind == "shape":
        raise NotThere("shape inference is ONNX's")
    model = models.model(case, "input")
    session = ort.InferenceSession(model.SerializeToString(), options,
                                   providers=None if options.has_providers() else
                                   ["CPUExecutionProvider"])
    feeds = models.feeds(case, models.numpy_array(case))
    if case.dtype in ("bfloat16",) or case.dtype.startswith("float8"):
        return models.answer(case, bits(case, session, feeds))
    results = session.run(None, feeds)
    return models.answer(case, results[0] if case.op == "SplitToSequence" else results)


def bits(case, session, feeds):
    """Converts types that NumPy lacks to unsigned integers of the same size."""
    if case.op == "SplitToSequence":
        raise NotThere("Python has no way to such a sequence")
    as_bits = lambda array: array.view(f"u{array.itemsize}")
    binding = session.io_binding()
    number = models.number(case.dtype)
    array = np.ascontiguousarray(as_bits(feeds.pop("x")))
    binding.bind_input("x", "cpu", 0, number, array.shape, array.ctypes.data)
    for name, lengths in feeds.items():
        binding.bind_cpu_input(name, lengths)
    outputs = [np.zeros(shape, array.dtype) for shape in case.shapes()]
    for meta, output in zip(session.get_outputs(), outputs):
        binding.bind_output(meta.name, "cpu", 0, number, output.shape, output.ctypes.data)
    session.run_with_iobinding(binding)
    return outputs
