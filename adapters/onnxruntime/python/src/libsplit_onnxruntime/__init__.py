"""libsplit inside ONNX Runtime.

    import libsplit_onnxruntime as ls
    sess = ls.session("model.onnx")

opens a session in which libsplit runs the Split nodes that onnxruntime cannot run or runs slower, or
all of them with claim="all". The same with onnxruntime's own functions:

    ort.register_execution_provider_library("libsplit", ls.get_library_path())
    device = next(d for d in ort.get_ep_devices() if d.ep_name == ls.get_ep_name())
    options = ort.SessionOptions()
    options.add_provider_for_devices([device], {})
    sess = ort.InferenceSession("model.onnx", options)

The execution provider needs onnxruntime 1.24 or newer. The custom operators of the domain
"libsplit" are in the same library, and need only 1.18:

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
from typing import TYPE_CHECKING, Any, Literal

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
    """Returns the path of the shared library, which contains the execution provider and the custom ops."""
    name = _LIBRARIES.get(sys.platform, "libsplit_onnxruntime.so")
    path = pathlib.Path(__file__).resolve().parent / name
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: import the installed package ('pip install' builds the "
            "library), not its sources"
        )
    return str(path)


def get_ep_name() -> str:
    """Returns the name of the execution provider, as in ``get_ep_devices()`` and ``get_providers()``."""
    return _EP_NAME


def get_ep_names() -> list[str]:
    """Returns the names of all execution providers in the library, of which there is one."""
    return [_EP_NAME]


def register() -> None:
    """Registers the execution provider with onnxruntime, unless it is registered already.

    ``session()`` calls this itself. It may be called any number of times, from any thread.

    ImportError: onnxruntime is not installed. RuntimeError: it is older than 1.24, or refuses the
    library.
    """
    ort = _onnxruntime()
    with _registering:
        if _device(ort) is None:
            ort.register_execution_provider_library("libsplit", get_library_path())
        if _device(ort) is None:
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
    claim: Literal["benefit", "all"] | None = None,
    min_bytes: int | None = None,
    log_claims: bool | None = None,
) -> onnxruntime.InferenceSession:
    """Opens an ``onnxruntime.InferenceSession`` in which libsplit runs Split nodes.

    model: a path, the bytes of a model, or an onnx.ModelProto.

    sess_options: the providers are added to these options, which can therefore be used for only one
    session; None means new options.

    providers: other providers, or pairs of a name and options, in order of precedence. libsplit comes
    after them and before ``"CPUExecutionProvider"``, or at the position of its own name in the list,
    so a Split that a GPU's provider takes stays on the GPU. None means only the CPU.

    rewrite_sequences: first run ``libsplit_onnxruntime.rewrite`` on the model in memory, which
    rewrites SplitToSequence as Split if it can. This needs the package onnx.

    claim: which Split nodes libsplit takes: with "benefit", those that onnxruntime cannot run or runs
    slower; with "all", every one, even where the model then becomes slower. None means "benefit".

    min_bytes: leave a node to onnxruntime, if it can run it, whose input is known to have fewer bytes.
    None means 0.

    log_claims: whether to log which nodes libsplit took or left, and why, as warnings. None means no.

    ImportError: onnxruntime, or onnx if it is needed, is not installed. RuntimeError: onnxruntime is
    older than 1.24. ValueError: sess_options already has providers. Errors of onnxruntime are raised
    unchanged.
    """
    ort = _onnxruntime()
    register()
    options = ort.SessionOptions() if sess_options is None else sess_options
    if options.has_providers():
        raise ValueError(
            "sess_options already has providers, from add_provider_for_devices() or another "
            "session(): pass new SessionOptions, and name other providers in 'providers'"
        )
    if not isinstance(model, (str, os.PathLike, bytes)):
        model = _serialized(model)
    if rewrite_sequences:
        model = _rewritten(model, options)
    own_options = {"claim": claim, "min_bytes": min_bytes, "log_claims": log_claims}
    given = {name: value for name, value in own_options.items() if value is not None}
    for name, its_options in _in_order(providers or [], given):
        if name == _EP_NAME:
            options.add_provider_for_devices([_device(ort)], its_options)
        else:
            options.add_provider(name, its_options)
    # Without the fallback, which would open a session with only the CPU after an error.
    return ort.InferenceSession(model, options, enable_fallback=0)


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            "libsplit_onnxruntime needs onnxruntime 1.24 or newer, which cannot be imported "
            f"({error}): pip install 'onnxruntime>=1.24'"
        ) from error
    version = tuple(int(number) for number in re.findall(r"\d+", onnxruntime.__version__)[:2])
    if version < _OLDEST:
        raise RuntimeError(
            f"onnxruntime {onnxruntime.__version__} is too old for {_EP_NAME}, which needs 1.24 or "
            "newer: pip install --upgrade 'onnxruntime>=1.24' (the custom ops of domain 'libsplit' "
            "need only 1.18)"
        )
    return onnxruntime


def _device(ort: Any) -> Any:
    """Returns the provider's device, of which there is one for each name that the library is registered by."""
    return next((device for device in ort.get_ep_devices() if device.ep_name == _EP_NAME), None)


def _in_order(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]], own_options: Mapping[str, object]
) -> list[tuple[str, dict[str, str]]]:
    """Returns all providers, including libsplit's, in order and with options as onnxruntime needs them."""
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
            f"model has type {type(model)}: pass a path, the bytes of a model, or an onnx.ModelProto"
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
        # The directory in which onnxruntime looks for the external data of a model given as bytes.
        key = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(key, directory)
    rewrite(proto, directory)
    data: bytes = proto.SerializeToString()
    return data
