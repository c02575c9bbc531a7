"""Split tensors along an axis, as views that share memory or as copies.

``split``, ``copy``, ``join``, ``infer`` and ``Plan`` take a number of parts, a list of lengths, or
an ``Operator`` of ONNX or OpenVINO, and NumPy arrays or whatever exports DLPack.
"""

import os

from libsplit._libsplit import (
    VERSION as __version__,
    Operator,
    Plan,
    Tensor,
    copy,
    forget_pool,
    infer,
    join,
    onnx_split,
    openvino_split,
    split,
    split_to_sequence,
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
    "variadic_split",
]

# A child has none of its parent's threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_pool)
