#!/usr/bin/env python3
"""Tries what libsplit and other libraries can exchange through DLPack, on the CPU. Each library that is
installed gives a row of the table in docs/dlpack.md.

    partners.py                   prints the table
    partners.py --write FILE      also replaces the table in FILE; rows of libraries that cannot be run
                                  stay as they are

TensorFlow and PyTorch may crash in one process: install them in separate environments.
"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import libsplit

HEAD = [
    "| library | version | pieces are | rows | columns | joined | `out=` | element types both ways |",
    "|---|---|---|---|---|---|---|---|",
]
# In addition to float32, which the other columns use.
TYPES = ["bool", "int8", "int64", "uint16", "uint32", "float16", "float64", "bfloat16",
         "float8_e4m3fn", "complex64"]  # fmt: skip
BEGIN, END = "<!-- partners.py -->", "<!-- end of partners.py -->"


@dataclass
class Library:
    """A library, and how it makes a tensor from an array."""

    title: str
    module: str
    make: Callable[[Any, Any], Any]
    rank: int = 2


def of_torch(torch: Any, x: Any) -> Any:
    return torch.from_dlpack(libsplit.Tensor(x))


def of_tensorflow(tensorflow: Any, x: Any) -> Any:
    return tensorflow.constant(x)


LIBRARIES = [
    Library("NumPy", "numpy", lambda numpy, x: x),
    Library("PyTorch", "torch", of_torch),
    Library("JAX", "jax", lambda jax, x: jax.numpy.asarray(x)),
    Library("Warp", "warp", lambda warp, x: warp.array(x, device="cpu")),
    Library("PyArrow", "pyarrow", lambda pyarrow, x: pyarrow.array(x), 1),
    Library("TensorFlow", "tensorflow", of_tensorflow),
    Library("CuPy", "cupy", lambda cupy, x: cupy.asarray(x)),
]


def address(x: Any) -> int:
    """Returns the address of the first element."""
    array = np.from_dlpack(libsplit.Tensor(x)) if not isinstance(x, np.ndarray) else x
    return int(array.__array_interface__["data"][0])


def answer(attempt: Callable[[], str]) -> str:
    """Returns the result of an attempt, or the type of its error."""
    try:
        return attempt()
    except Exception as error:  # any error of the library is a result
        return type(error).__name__


def pieces_of(x: Any, lengths: list[int], axis: int, expected: list[Any]) -> str:
    pieces = libsplit.split(x, lengths, axis)
    for piece, part in zip(pieces, expected, strict=True):
        array = piece if isinstance(piece, np.ndarray) else np.asarray(libsplit.Tensor(piece).numpy())
        assert array.tobytes() == part.tobytes()
    step = lengths[0] * 4 * (16 if axis == 0 and len(expected[0].shape) == 2 else 1)
    return "shared" if address(pieces[1]) - address(x) == step else "copied"


def kind_of(x: Any) -> str:
    kind = type(libsplit.split(x, 2)[0])
    return f"`{kind.__module__.split('.')[0]}.{kind.__name__}`"


def joined(x: Any) -> str:
    whole = libsplit.join(libsplit.copy(x, 2))
    array = whole if isinstance(whole, np.ndarray) else libsplit.Tensor(whole).numpy()
    same = array.tobytes() == (x if isinstance(x, np.ndarray) else libsplit.Tensor(x).numpy()).tobytes()
    return "yes" if same else "WRONG"


def written(x: Any, out: Any) -> str:
    libsplit.copy(x, 2, out=[out, None])
    return "yes"


def row(library: Library) -> str | None:
    """Returns a row of the table; None if the library is missing or cannot make a tensor here."""
    shape = (8, 16) if library.rank == 2 else (128,)
    numbers = np.arange(128, dtype=np.float32).reshape(shape)
    try:
        module = importlib.import_module(library.module)
        x = library.make(module, numbers)
    except Exception:  # without a GPU, CuPy may be imported, but has no memory
        return None
    half = numbers[: len(numbers) // 2] * 0
    cells = [
        library.title,
        module.__version__,
        answer(lambda: kind_of(x)),
        answer(lambda: pieces_of(x, [len(numbers) // 2] * 2, 0, np.split(numbers, 2))),
        answer(lambda: pieces_of(x, [6, 10], 1, np.split(numbers, [6], 1)))
        if library.rank == 2
        else "has one axis",
        answer(lambda: joined(x)),
        answer(lambda: written(x, library.make(module, half.copy()))),
        types(library, module, shape),
    ]
    return "| " + " | ".join(cells) + " |"


def types(library: Library, module: Any, shape: tuple[int, ...]) -> str:
    missing = [name for name in TYPES if not passes(library, module, shape, name)]
    return "all" if not missing else "all except " + ", ".join(missing)


def passes(library: Library, module: Any, shape: tuple[int, ...], name: str) -> bool:
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    numbers = (np.arange(128) % 2).reshape(shape).astype(dtype)
    try:
        x = library.make(module, numbers)
        pieces = libsplit.split(x, 2)
        again = [p if isinstance(p, np.ndarray) else libsplit.Tensor(p).numpy() for p in pieces]
    except Exception:
        return False
    return again[0].dtype == dtype and b"".join(p.tobytes() for p in again) == numbers.tobytes()


def table(page: str) -> list[str]:
    """Returns the table, with the page's row for each library that cannot be run."""
    lines = list(HEAD)
    for library in LIBRARIES:
        old = re.search(rf"^\| {library.title} \|.*$", page, re.MULTILINE)
        lines.append(row(library) or (old[0] if old else f"| {library.title} | not run |" + " |" * 6))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE", help="replace the table in this file")
    file = parser.parse_args().write
    page = file.read_text() if file else ""
    lines = table(page)
    print("\n".join(lines))
    if file:
        before, rest = page.split(BEGIN)
        after = rest.split(END)[1]
        file.write_text(before + "\n".join([BEGIN, *lines, END]) + after)


if __name__ == "__main__":
    main()
