"""libsplit as the execution provider in ONNX Runtime, which must have taken the node."""

import os
import pathlib

import onnxruntime as ort

from cases import NotThere
from runners import onnxruntime as own

LIBRARY = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")) / "lib"
ort.register_execution_provider_library(
    "libsplit", str((LIBRARY / "libsplit_onnxruntime.so").absolute()))
devices = [device for device in ort.get_ep_devices()
           if device.ep_name == "LibsplitExecutionProvider"]


def version():
    return f"in ONNX Runtime {ort.__version__}"


def run(case):
    if case.op == "SplitToSequence":
        raise NotThere("ONNX Runtime's C API cannot put tensors into a sequence")
    if case.dtype.startswith("complex"):
        raise NotThere("ONNX Runtime has no complex numbers")
    options = own.options()
    options.add_provider_for_devices(devices, {"claim": "all"})
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return own.run_with(case, options)
