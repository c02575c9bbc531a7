"""What the tests share: the provider, registered once with the real ONNX Runtime."""

import onnxruntime as ort
import pytest

from support import EP, LIBRARY

# What ONNX Runtime logs about errors that tests provoke.
ort.set_default_logger_severity(4)


@pytest.fixture(scope="session")
def devices():
    """What an application adds to its session options to choose the provider."""
    ort.register_execution_provider_library("libsplit", str(LIBRARY))
    return [device for device in ort.get_ep_devices() if device.ep_name == EP]


@pytest.fixture
def session(devices, tmp_path):
    """Opens a model with the provider, which takes all Splits if no options say otherwise. The nodes
    it ran on which provider: ran(session)."""

    def open_session(model, options=None, provider_options=None):
        options = options or ort.SessionOptions()
        options.add_provider_for_devices(
            devices, {"claim": "all"} if provider_options is None else provider_options)
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / "profile")
        return ort.InferenceSession(model.SerializeToString(), options)

    return open_session
