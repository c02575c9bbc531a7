"""Split tensors along an axis, as views that share memory or as copies.

``split``, ``copy``, ``infer`` and ``Plan`` take a number of parts, a list of lengths, or
an ``Operator`` of ONNX or OpenVINO, and work on NumPy arrays and on every tensor that exports DLPack.
``join`` and ``stack`` put pieces together again.
"""

import os as _os

from libsplit._libsplit import (
    VERSION as __version__,
    Operator,
    Plan,
    Tensor,
    copy,
    forget_pool as _forget_pool,
    infer,
    join,
    onnx_split,
    openvino_split,
    split,
    split_to_sequence,
    stack,
    variadic_split,
)

__all__ = [
    "Operator",
    "Plan",
    "Tensor",
    "__version__",
    "copy",
    "infer",
    "join",
    "onnx_split",
    "openvino_split",
    "split",
    "split_to_sequence",
    "stack",
    "variadic_split",
]

# A forked child does not have its parent's threads.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_forget_pool)
