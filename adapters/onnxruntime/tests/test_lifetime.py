"""From loading to unloading: nothing leaks, and a strange ONNX Runtime is refused."""

import ctypes
import pathlib
import subprocess
import sys
import textwrap

import pytest

from support import LIBRARY

HERE = pathlib.Path(__file__).parent

# Each runs in a process of its own and prints how many more bytes are in use after a batch of rounds
# than before, the median of the last five of eight: a leak is in every batch, what Python and ONNX
# Runtime keep for a while is not.
PRELUDE = """
    import ctypes, gc
    import numpy as np, onnxruntime as ort
    from support import EP, LIBRARY, split_model
    ort.set_default_logger_severity(4)
    model = split_model(["a", "b"], lengths="input").SerializeToString()
    x = np.zeros(6, np.float32)

    def add(options):
        devices = [device for device in ort.get_ep_devices() if device.ep_name == EP]
        options.add_provider_for_devices(devices, {"claim": "all"})

    class MallInfo(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd "
                    "usmblks fsmblks uordblks fordblks keepcost".split()]

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = MallInfo

    def in_use():
        gc.collect()
        return mallinfo2().uordblks

    # What other threads take for a while is left out: only the least that is in use can show a leak.
    def grown(work, rounds):
        levels = []
        for _ in range(13):
            for _ in range(rounds):
                work()
            levels.append(in_use())
        print((min(levels[8:]) - min(levels[3:8])) // 5)
"""
REGISTER_AND_UNREGISTER = """
    from onnx import TensorProto, helper
    from support import model_of, value
    pairs = [[f"a{i}", f"b{i}"] for i in range(20)]
    model = model_of([helper.make_node("Split", ["x", "lengths"], pair) for pair in pairs],
                     [value("x"), value("lengths", TensorProto.INT64)],
                     [value(name) for pair in pairs for name in pair]).SerializeToString()

    def work():
        ort.register_execution_provider_library("libsplit", str(LIBRARY))
        options = ort.SessionOptions()
        add(options)
        session = ort.InferenceSession(model, options)
        session.run(None, {"x": x, "lengths": np.array([2, 4])})
        del session, options
        ort.unregister_execution_provider_library("libsplit")

    grown(work, 50)
"""
ERRORS = """
    ort.register_execution_provider_library("libsplit", str(LIBRARY))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    add(options)
    session = ort.InferenceSession(model, options)

    def work():
        for lengths in ([7, -1], [1, 2], [1, 2, 3]):
            try:
                session.run(None, {"x": x, "lengths": np.array(lengths)})
            except Exception:
                pass

    grown(work, 2_500)
"""
@pytest.mark.parametrize("work, limit", [(REGISTER_AND_UNREGISTER, 20_000), (ERRORS, 375_000)])
def test_memory_stays_as_it_is(work, limit):
    """A leak of 20 bytes a node, or of 50 an error, would be more."""
    program = textwrap.dedent(PRELUDE) + textwrap.dedent(work)
    done = subprocess.run([sys.executable, "-c", program], cwd=HERE, text=True,
                          stdout=subprocess.PIPE, check=True)
    assert int(done.stdout) < limit


class FakeOnnxRuntime:
    """As much of an ONNX Runtime as it takes to be refused."""

    def __init__(self, release, versions, ep_api=None):
        create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
        get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
        get_release = ctypes.CFUNCTYPE(ctypes.c_void_p)
        get_ep_api = ctypes.CFUNCTYPE(ctypes.c_void_p)
        self.errors = []
        self.release = ctypes.c_char_p(release)
        self.functions = [
            create(lambda code, text: self.errors.append(text.decode()) or len(self.errors)),
            get_api(lambda version: ctypes.addressof(table) if version in versions else 0),
            get_release(lambda: ctypes.cast(self.release, ctypes.c_void_p).value), get_ep_api(lambda: ep_api or 0)]
        create, get_api, get_release, get_ep_api = (
            ctypes.cast(function, ctypes.c_void_p).value for function in self.functions)
        # CreateStatus comes first, and no other is called here but GetEpApi.
        table = (ctypes.c_void_p * 500)(create, *[get_ep_api] * 499)
        self.base = (ctypes.c_void_p * 2)(get_api, get_release)

    def create_factories(self):
        factories, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t(7)
        function = ctypes.CDLL(str(LIBRARY)).CreateEpFactories
        function.restype = ctypes.c_void_p
        status = function(b"libsplit", self.base, None, factories, ctypes.c_size_t(4),
                          ctypes.byref(count))
        assert count.value == 0
        return status

    def register_custom_ops(self):
        function = ctypes.CDLL(str(LIBRARY)).RegisterCustomOps
        function.restype = ctypes.c_void_p
        return function(None, self.base)


def test_an_old_onnx_runtime_is_refused_with_the_reason():
    old = FakeOnnxRuntime(b"1.23.2", range(1, 24))
    assert old.create_factories()
    assert old.errors == ["libsplit: needs ONNX Runtime 1.24 or newer, not 1.23.2"]
    older = FakeOnnxRuntime(b"1.17.0", range(1, 18))
    assert older.register_custom_ops()
    assert older.errors == ["libsplit: needs ONNX Runtime 1.18 or newer, not 1.17.0"]


def test_an_onnx_runtime_that_no_longer_has_the_interface_is_refused():
    new = FakeOnnxRuntime(b"2.0.0", range(30, 40))
    assert not new.create_factories()  # It gave no way to make an error, but no provider either.
    new = FakeOnnxRuntime(b"2.1.0", {1, 30})
    assert new.create_factories()
    assert new.errors == ["libsplit: needs ONNX Runtime 1.24 or newer, not 2.1.0"]


@pytest.mark.parametrize("ep_api", [None, ctypes.addressof((ctypes.c_void_p * 42)())])
def test_an_onnx_runtime_built_without_providers_is_refused(ep_api):
    minimal = FakeOnnxRuntime(b"1.24.0", range(1, 25), ep_api)
    assert minimal.create_factories()
    assert minimal.errors == [
        "libsplit: this build of ONNX Runtime has no plugin execution providers"]


def test_nothing_else_is_exported():
    listed = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], text=True,
                            stdout=subprocess.PIPE, check=True).stdout
    names = {line.split()[-1] for line in listed.splitlines()}
    assert {name for name in names if not name.startswith("libsplit_")} == {
        "CreateEpFactories", "ReleaseEpFactory", "RegisterCustomOps"}
