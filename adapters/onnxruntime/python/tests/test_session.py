"""session() and register() with the installed provider."""

from __future__ import annotations

import pathlib
import re
import sys
import threading
import types
from typing import Any

import libsplit_onnxruntime as ls
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from models import bits, by_onnxruntime, model, pieces_model, sample, value
from onnx import helper

NUMBERS = sample([7, 3])
FINITE = np.arange(21, dtype=np.float32).reshape(7, 3)
CPU, OURS = "CPUExecutionProvider", "LibsplitExecutionProvider"


@pytest.fixture
def split() -> bytes:
    node = helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2)
    outputs = [value("a", [4, 3]), value("b", [3, 3])]
    return bytes(model([node], [value("x", [7, 3])], outputs).SerializeToString())


def claims(**arguments: Any) -> dict[str, list[str]]:
    """Returns the assignment of a session() with these arguments: provider -> operators."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ls.session(sess_options=options, **arguments)
    found: dict[str, list[str]] = {}
    for part in session.get_provider_graph_assignment_info():
        found.setdefault(part.ep_name, []).extend(node.op_type for node in part.get_nodes())
    return {provider: sorted(operators) for provider, operators in found.items()}


def test_one_call_is_enough(split: bytes, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(split)
    given: Any
    for given in (path, str(path), split, onnx.load_model_from_string(split)):
        session = ls.session(given)
        assert session.get_providers() == [OURS, CPU]
        first, second = session.run(None, {"x": NUMBERS})
        assert bits(np.concatenate([first, second])) == bits(NUMBERS)
    assert claims(model=split, claim="all") == {OURS: ["Split"]}


def test_what_is_no_model() -> None:
    wrong: Any = [1, 2]
    with pytest.raises(TypeError, match="model has type <class 'list'>: pass a path, the bytes"):
        ls.session(wrong)


def test_the_same_by_the_calls_of_onnxruntime(split: bytes) -> None:
    ls.register()
    devices = [device for device in ort.get_ep_devices() if device.ep_name == ls.get_ep_name()]
    options = ort.SessionOptions()
    options.add_provider_for_devices(devices, {})
    assert ort.InferenceSession(split, options).get_providers() == [OURS, CPU]
    assert ls.get_ep_names() == [ls.get_ep_name()]


def test_the_custom_ops_are_in_the_library() -> None:
    node = helper.make_node("Split", ["x"], ["a", "b"], domain="libsplit")
    proto = model([node], [value("x", [8, 3])], [value("a", [4, 3]), value("b", [4, 3])],
                  domains=["libsplit"])
    options = ort.SessionOptions()
    options.register_custom_ops_library(ls.get_library_path())
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=[CPU])
    numbers = sample([8, 3])
    assert bits(np.concatenate(session.run(None, {"x": numbers}))) == bits(numbers)


def test_provider_options(split: bytes) -> None:
    assert claims(model=split, claim="all") == {OURS: ["Split"]}
    assert claims(model=split, claim="all", min_bytes=10**6) == {CPU: ["Split"]}
    session = ls.session(split, log_claims=True)
    assert session.get_provider_options()[OURS] == {"log_claims": "1"}
    wrong: Any = {"min_byte": 1}
    with pytest.raises(TypeError, match="min_byte"):
        ls.session(split, **wrong)
    wrong = {"claim": "most"}
    with pytest.raises(Exception, match="claim=most: give benefit or all"):
        ls.session(split, **wrong)


@pytest.mark.parametrize("providers, order", [
    (None, [OURS, CPU]),
    ([], [OURS, CPU]),
    ([CPU], [OURS, CPU]),
    ([(CPU, {})], [OURS, CPU]),
    ([CPU, OURS], [CPU, OURS]),
    ([(OURS, {"min_bytes": 3}), CPU], [OURS, CPU]),
])
def test_the_order_of_providers(split: bytes, providers: Any, order: list[str]) -> None:
    given = repr(providers)
    session = ls.session(split, providers=providers, log_claims=False)
    assert session.get_providers() == order
    own = {"min_bytes": "3"} if "min_bytes" in given else {}
    assert session.get_provider_options()[OURS] == {**own, "log_claims": "0"}
    assert repr(providers) == given


def test_a_provider_that_is_not_there(split: bytes) -> None:
    with pytest.raises(RuntimeError, match="NoSuchProvider"):
        ls.session(split, providers=["NoSuchProvider"])


def test_options_serve_for_one_session(split: bytes) -> None:
    options = ort.SessionOptions()
    ls.session(split, sess_options=options)
    with pytest.raises(ValueError, match="pass new SessionOptions"):
        ls.session(split, sess_options=options)


def test_a_model_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Exception, match=re.escape(str(tmp_path / "none.onnx"))):
        ls.session(tmp_path / "none.onnx")
    with pytest.raises(FileNotFoundError):
        ls.session(tmp_path / "none.onnx", rewrite_sequences=True)


def test_sequences_are_rewritten_in_memory(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(pieces_model([7, 3], 3, [0, -1]), path)
    on_disk = path.read_bytes()
    assert claims(model=path) == {CPU: ["SequenceAt", "SequenceAt", "SplitToSequence"]}
    assert claims(model=path, rewrite_sequences=True, claim="all") == {OURS: ["Split"]}
    assert claims(model=on_disk, rewrite_sequences=True, claim="all") == {OURS: ["Split"]}
    expected = by_onnxruntime(onnx.load(path), {"x": NUMBERS})
    session = ls.session(path, rewrite_sequences=True)
    assert bits(session.run(None, {"x": NUMBERS})) == bits(expected)
    assert path.read_bytes() == on_disk


def test_external_data_is_found_after_rewriting(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests options that the rewriting reads, and options that are left to onnxruntime."""
    proto = pieces_model([7, 3], [3, 4], [0, 1])
    weights = onnx.numpy_helper.from_array(np.full([7, 3], np.inf, np.float32), "weights")
    proto.graph.initializer.append(weights)
    proto.graph.node.insert(0, helper.make_node("Min", ["x", "weights"], ["m"]))
    proto.graph.node[1].input[0] = "m"
    expected = by_onnxruntime(proto, {"x": FINITE})
    onnx.save(proto, tmp_path / "model.onnx", save_as_external_data=True, location="data",
              size_threshold=0)
    places: list[tuple[pathlib.Path, pathlib.Path | str]] = [
        (tmp_path.parent, tmp_path / "model.onnx"), (tmp_path, "model.onnx"),
    ]
    for directory, name in places:
        monkeypatch.chdir(directory)
        session = ls.session(name, rewrite_sequences=True)
        assert "Split" in claims(model=name, rewrite_sequences=True, claim="all")[OURS]
        assert bits(session.run(None, {"x": FINITE})) == bits(expected)


def test_many_threads_register_at_once(split: bytes) -> None:
    if any(device.ep_name == OURS for device in ort.get_ep_devices()):
        ort.unregister_execution_provider_library("libsplit")
    start = threading.Barrier(8)
    results: list[Any] = []

    def work() -> None:
        start.wait()
        try:
            results.append(bits(ls.session(split).run(None, {"x": NUMBERS})))
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = bits(list(np.split(NUMBERS, [4])))
    assert results == [expected] * 8


def test_a_library_that_the_user_registered(split: bytes) -> None:
    """Registers it under another name; onnxruntime would refuse the same name, or list it twice."""
    if any(device.ep_name == OURS for device in ort.get_ep_devices()):
        ort.unregister_execution_provider_library("libsplit")
    ort.register_execution_provider_library("by hand", ls.get_library_path())
    try:
        assert ls.session(split).get_providers() == [OURS, CPU]
        assert sum(device.ep_name == OURS for device in ort.get_ep_devices()) == 1
    finally:
        ort.unregister_execution_provider_library("by hand")


def test_a_library_that_is_registered_twice(split: bytes) -> None:
    """It has a device for each name, of which a session can have one."""
    ls.register()
    ort.register_execution_provider_library("again", ls.get_library_path())
    try:
        assert sum(device.ep_name == OURS for device in ort.get_ep_devices()) == 2
        assert ls.session(split).get_providers() == [OURS, CPU]
        device = next(device for device in ort.get_ep_devices() if device.ep_name == ls.get_ep_name())
        options = ort.SessionOptions()
        options.add_provider_for_devices([device], {})
        assert ort.InferenceSession(split, options).get_providers() == [OURS, CPU]
    finally:
        ort.unregister_execution_provider_library("again")


@pytest.mark.parametrize("version", ["1.18.1", "1.23.2", "0.9", "1.3.0"])
def test_an_onnxruntime_that_is_too_old(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime",
                        types.SimpleNamespace(__version__=version))
    for call in (ls.register, lambda: ls.session(b"")):
        with pytest.raises(RuntimeError) as error:
            call()
        assert f"onnxruntime {version} is too old" in str(error.value)
        assert "pip install --upgrade 'onnxruntime>=1.24'" in str(error.value)


def test_no_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match="1.24 or newer.*pip install 'onnxruntime>=1.24'"):
        ls.session(b"")


def test_no_onnx(monkeypatch: pytest.MonkeyPatch, split: bytes) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="rewrite_sequences needs.*pip install onnx"):
        ls.session(split, rewrite_sequences=True)
