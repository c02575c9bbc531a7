"""OpenVINO with the extension, for all tests."""

import os

import openvino
import pytest


@pytest.fixture(scope="module")
def core():
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    core.add_extension(os.environ["LIBSPLIT_OPENVINO"])
    return core
