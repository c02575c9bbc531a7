"""Every remedy in a message of the package works: a row has a call, its message, and the call after following it."""

from __future__ import annotations

import pathlib
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import libsplit_onnxruntime as ls
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from libsplit_onnxruntime.rewrite import rewrite
from libsplit_onnxruntime.rewrite.__main__ import main
from models import pieces_model

SOURCES = pathlib.Path(ls.__file__).parent
# What remedies begin with.
REMEDY = re.compile(r"(?:: |; )(pip install|pass |use |write to|import the)")


class Calls:
    """The calls of the rows, on a small model."""

    def __init__(self, directory: pathlib.Path, patch: pytest.MonkeyPatch):
        self.directory, self.patch = directory, patch
        self.model = pieces_model([7, 3], [3, 4], [0, 1])
        self.path = directory / "model.onnx"
        onnx.save(self.model, self.path)

    def without(self, name: str, module: object, call: Callable[[], Any]) -> None:
        """Makes a call as if this package were not installed, or another version of it."""
        with self.patch.context() as patch:
            patch.setitem(sys.modules, name, module)
            call()

    def used_options(self) -> ort.SessionOptions:
        options = ort.SessionOptions()
        ls.session(self.path, sess_options=options)
        return options

    def command(self, *arguments: object) -> None:
        """Runs the command, whose errors go to stderr."""
        assert main([str(argument) for argument in arguments]) == 0

    def refused(self) -> pathlib.Path:
        """A model that ONNX's checker refuses."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        model.graph.node[0].op_type = "Unheard"
        onnx.save(model, self.directory / "refused.onnx")
        return self.directory / "refused.onnx"

    def external(self) -> pathlib.Path:
        """A model with data in a file, and another file of that name where the new model is to be."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        weights = onnx.numpy_helper.from_array(np.ones([7, 3], np.float32), "weights")
        model.graph.initializer.append(weights)
        for name in "old", "new", "another":
            (self.directory / name).mkdir(exist_ok=True)
        onnx.save(model, self.directory / "old/model.onnx", save_as_external_data=True, location="data",
                  size_threshold=0)
        (self.directory / "new/data").write_bytes(b"other")
        return self.directory / "old/model.onnx"


def of_opset(opset: int) -> onnx.ModelProto:
    model = pieces_model([7, 3], [3, 4], [0, 1])
    model.opset_import[0].version = opset
    return model


def library_of_sources(calls: Calls) -> str:
    calls.patch.setattr(ls, "__file__", str(calls.directory / "__init__.py"))
    try:
        return ls.get_library_path()
    finally:
        calls.patch.undo()


Call = Callable[[Calls], Any]
OLD = types.SimpleNamespace(__version__="1.18.1")
# By what messages say: the call, and the call after following the remedy. To install a package is to have it here.
ROWS: dict[str, tuple[Call, list[Call]]] = {
    "model has type <class 'list'>: pass a path, the bytes of a model, or an onnx.ModelProto": (
        lambda calls: ls.session([1, 2]),  # type: ignore[arg-type]
        [lambda calls: ls.session(calls.path), lambda calls: ls.session(calls.path.read_bytes()),
         lambda calls: ls.session(calls.model)]),
    "session(): pass new SessionOptions, and name other providers in 'providers'": (
        lambda calls: ls.session(calls.path, sess_options=calls.used_options()),
        [lambda calls: ls.session(calls.path, sess_options=ort.SessionOptions(),
                                  providers=["CPUExecutionProvider"])]),
    "which cannot be imported (import of onnxruntime halted; None in sys.modules): "
    "pip install 'onnxruntime>=1.24'": (
        lambda calls: calls.without("onnxruntime", None, lambda: ls.session(calls.path)),
        [lambda calls: ls.session(calls.path)]),
    "which needs 1.24 or newer: pip install --upgrade 'onnxruntime>=1.24'": (
        lambda calls: calls.without("onnxruntime", OLD, lambda: ls.session(calls.path)),
        [lambda calls: ls.session(calls.path)]),
    "rewrite_sequences needs the package onnx (import of onnx halted; None in sys.modules): pip install onnx": (
        lambda calls: calls.without("onnx", None, lambda: ls.session(calls.path, rewrite_sequences=True)),
        [lambda calls: ls.session(calls.path, rewrite_sequences=True)]),
    "; use --no-check to rewrite it anyway": (
        lambda calls: calls.command(calls.refused(), calls.directory / "out.onnx"),
        [lambda calls: calls.command("--no-check", calls.refused(), calls.directory / "out.onnx")]),
    ": write to another directory": (
        lambda calls: calls.command(calls.external(), calls.directory / "new/model.onnx"),
        [lambda calls: calls.command(calls.external(), calls.directory / "another/model.onnx")]),
    ": pip install --upgrade onnx": (
        lambda calls: rewrite(of_opset(onnx.defs.onnx_opset_version() + 1)),
        [lambda calls: rewrite(of_opset(onnx.defs.onnx_opset_version()))]),
    # All tests import the installed package.
    "does not exist: import the installed package": (
        library_of_sources,
        [lambda calls: ls.get_library_path()]),
}


@pytest.mark.parametrize("message", ROWS)
def test_remedies(message: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch,
                  capsys: pytest.CaptureFixture[str]) -> None:
    calls = Calls(tmp_path, monkeypatch)
    call, remedies = ROWS[message]
    with pytest.raises(Exception) as error:
        call(calls)
    assert message in str(error.value) + capsys.readouterr().err
    for remedy in remedies:
        remedy(calls)


def remedy_of(text: str) -> str | None:
    """Returns the remedy of a message, as far as it is the same in every message."""
    found = REMEDY.search(text)
    return text[found.start(1):].split("{")[0] if found else None


def test_every_remedy_has_a_row() -> None:
    tested = [remedy for remedy in map(remedy_of, ROWS) if remedy]
    assert len(tested) == len(ROWS)
    for file in SOURCES.rglob("*.py"):
        joined = re.sub(r'"\s*\n\s*f?"', "", file.read_text(encoding="utf-8"))
        for remedy in filter(None, map(remedy_of, re.findall(r'"([^"\n]*)"', joined))):
            assert any(remedy.startswith(one) or one.startswith(remedy) for one in tested), remedy
