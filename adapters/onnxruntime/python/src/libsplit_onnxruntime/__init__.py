"""libsplit inside ONNX Runtime.

    import libsplit_onnxruntime as ls
    sess = ls.session("model.onnx")

opens a session in which libsplit runs the Split nodes that onnxruntime cannot run or runs slower;
with claim="all", every one. The same with the calls of onnxruntime:

    ort.register_execution_provider_library("libsplit", ls.get_library_path())
    devices = [d for d in ort.get_ep_devices() if d.ep_name == ls.get_ep_name()]
    options = ort.SessionOptions()
    options.add_provider_for_devices(devices, {})
    sess = ort.InferenceSession("model.onnx", options)

The execution provider needs onnxruntime 1.24 or newer. The custom operators of the domain
"libsplit" are in the same library, and need 1.18:

    options.register_custom_ops_library(ls.get_library_path())
"""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx
    import onnxruntime

__all__ = ["get_ep_name", "get_ep_names", "get_library_path", "register", "session"]
__version__ = importlib.metadata.version("libsplit-onnxruntime")

_EP_NAME = "LibsplitExecutionProvider"
_LIBRARIES = {"darwin": "libsplit_onnxruntime.dylib", "win32": "split_onnxruntime.dll"}
_OLDEST = (1, 24)
_registering = threading.Lock()


def get_library_path() -> str:
    """The path of the shared library, which holds the execution provider and the custom ops."""
    name = _LIBRARIES.get(sys.platform, "libsplit_onnxruntime.so")
    path = pathlib.Path(__file__).resolve().parent / name
    if not path.exists():
        raise FileNotFoundError(
            f"no {path}: import the installed package ('pip install' builds the library), "
            "not its sources"
        )
    return str(path)


def get_ep_name() -> str:
    """The name of the execution provider, as in ``get_ep_devices()`` and ``get_providers()``."""
    return _EP_NAME


def get_ep_names() -> list[str]:
    """The names of all execution providers in the library: that one."""
    return [_EP_NAME]


def register() -> None:
    """Makes the execution provider known to onnxruntime, unless it is already.

    ``session()`` does so by itself. May be called any number of times, from any thread.

    ImportError: there is no onnxruntime. RuntimeError: it is older than 1.24, or refuses the
    library.
    """
    ort = _onnxruntime()
    with _registering:
        if not _devices(ort):
            ort.register_execution_provider_library("libsplit", get_library_path())
        if not _devices(ort):
            raise RuntimeError(
                f"{get_library_path()} is registered, but onnxruntime {ort.__version__} offers no "
                f"device for {_EP_NAME}: it needs a CPU"
            )


def session(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    *,
    sess_options: onnxruntime.SessionOptions | None = None,
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
    rewrite_sequences: bool = False,
    **provider_options: object,
) -> onnxruntime.InferenceSession:
    """An ``onnxruntime.InferenceSession`` in which libsplit runs Split nodes.

    model: a path, the bytes of a model, or an onnx.ModelProto.

    sess_options: gets the providers added, so that it serves for one session; None for new ones.

    providers: other providers, or pairs of a name and options, in the order of their precedence.
    libsplit comes after them and before ``"CPUExecutionProvider"``, or where its own name stands
    in the list: a Split that a GPU's provider takes stays on the GPU. None for the CPU alone.

    rewrite_sequences: run ``libsplit_onnxruntime.rewrite`` on the model in memory first, which
    turns SplitToSequence into Split where it can; needs the package onnx.

    provider_options: options of the execution provider, such as claim="all", by which it takes the
    nodes too that it is of no benefit to; True and False become "1" and "0".

    ImportError: there is no onnxruntime, or no onnx where it is needed. RuntimeError: onnxruntime
    is older than 1.24. ValueError: sess_options has providers already. And what onnxruntime raises.
    """
    ort = _onnxruntime()
    register()
    options = ort.SessionOptions() if sess_options is None else sess_options
    if options.has_providers():
        raise ValueError(
            "sess_options has providers already, from add_provider_for_devices() or another "
            "session(): give new SessionOptions and name other providers in 'providers'"
        )
    if not isinstance(model, (str, os.PathLike, bytes)):
        model = _serialized(model)
    if rewrite_sequences:
        model = _rewritten(model, options)
    for name, its_options in _in_order(providers or [], provider_options):
        if name == _EP_NAME:
            options.add_provider_for_devices(_devices(ort), its_options)
        else:
            options.add_provider(name, its_options)
    # Without the fallback, which would open a session with the CPU alone after an error.
    return ort.InferenceSession(model, options, enable_fallback=0)


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            "libsplit_onnxruntime needs onnxruntime 1.24 or newer, and none can be imported "
            f"({error}): pip install 'onnxruntime>=1.24'"
        ) from error
    version = tuple(int(number) for number in re.findall(r"\d+", onnxruntime.__version__)[:2])
    if version < _OLDEST:
        raise RuntimeError(
            f"onnxruntime {onnxruntime.__version__} is too old for {_EP_NAME}, which needs 1.24 or "
            "newer: pip install --upgrade 'onnxruntime>=1.24' (with the custom ops of domain "
            "'libsplit', 1.18 will do)"
        )
    return onnxruntime


def _devices(ort: Any) -> list[Any]:
    return [device for device in ort.get_ep_devices() if device.ep_name == _EP_NAME]


def _in_order(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]], own_options: Mapping[str, object]
) -> list[tuple[str, dict[str, str]]]:
    """All providers with their options as onnxruntime wants them, libsplit's in its place."""
    pairs: list[tuple[str, Mapping[str, Any]]] = [
        (provider, {}) if isinstance(provider, str) else provider for provider in providers
    ]
    names = [*(name for name, _ in pairs), "CPUExecutionProvider"]
    if _EP_NAME in names:
        place = names.index(_EP_NAME)
        pairs[place] = (_EP_NAME, {**pairs[place][1], **own_options})
    else:
        pairs.insert(names.index("CPUExecutionProvider"), (_EP_NAME, own_options))
    return [(name, _texts(options)) for name, options in pairs]


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    return {
        key: str(int(value)) if isinstance(value, bool) else str(value)
        for key, value in options.items()
    }


def _serialized(model: Any) -> bytes:
    try:
        data: bytes = model.SerializeToString()
    except AttributeError:
        raise TypeError(
            f"model is of {type(model)}: pass a path, the bytes of a model, or an onnx.ModelProto"
        ) from None
    return data


def _rewritten(model: str | os.PathLike[str] | bytes, options: Any) -> bytes:
    try:
        import onnx

        from .rewrite import rewrite
    except ImportError as error:
        raise ImportError(
            f"rewrite_sequences needs the package onnx ({error}): pip install onnx"
        ) from error
    if isinstance(model, bytes):
        proto, directory = onnx.load_model_from_string(model), ""
    else:
        proto = onnx.load(os.fspath(model), load_external_data=False)
        directory = str(pathlib.Path(model).resolve().parent)
        # Where onnxruntime looks for the external data of a model that it gets as bytes.
        key = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(key, directory)
    rewrite(proto, directory)
    data: bytes = proto.SerializeToString()
    return data
