#!/usr/bin/env python3
"""Counts the instructions of a call where there is next to nothing to copy, in each arrangement of descriptors.

    instructions.py LIBRARY [--program build/release/bench/one_call]

Counted by callgrind, so the same every time for the same file. float32 [1,12] into 3 and [1,1024] into 1,024,
of these per piece.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import calls
import report

HERE = pathlib.Path(__file__).resolve().parent
FUNCTIONS = ["copy", "infer", "view", "plan_copy", "plan_view"]
ARRANGEMENTS = {"": "on the stack, all shapes in one array, all strides in another", ".strides": "the same, with strides",
                ".init": "of libsplit_outputs_init()", ".heap": "an allocation for each array",
                ".unwanted": "on the stack, every third output not wanted", ".rest": "on the stack, lengths int32 with a -1",
                ".equal": "on the stack, no lengths (Split-13)"}
PIECES = [3, 15, 16, 1024]


def build(directory: pathlib.Path) -> pathlib.Path:
    """The program that makes the calls."""
    program = directory / "one_call"
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2", f"-I{HERE.parent / 'include'}", "-o", program,
                    HERE / "one_call.c", "-ldl"], check=True)
    return program


def count(program: pathlib.Path, library: pathlib.Path, form: str, pieces: int) -> str:
    columns = 12 if pieces == 3 else pieces
    command = [program, library, form, str(pieces), str(columns)]
    found = calls.instructions(command, max(3, 3000 // pieces))
    return f"{found / pieces:.1f} each" if pieces == 1024 else str(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=pathlib.Path, help="libsplit.so")
    parser.add_argument("--program", type=pathlib.Path, help="one_call; built here if not given")
    parser.add_argument("--pieces", type=int, nargs="+", default=PIECES, metavar="3")
    args = parser.parse_args()
    if not args.library.exists():
        sys.exit(f"error: no file {args.library}")
    if shutil.which("valgrind") is None:
        sys.exit("error: no valgrind: install valgrind")
    with tempfile.TemporaryDirectory() as directory:
        program = args.program or build(pathlib.Path(directory))
        lines = []
        for function in FUNCTIONS:
            for suffix, arrangement in ARRANGEMENTS.items():
                # Lengths are read alike by all; infer and view always fill strides in, and every descriptor;
                # plans are given addresses alone.
                if suffix in (".strides", ".rest", ".equal") and function != "copy":
                    continue
                if suffix == ".unwanted" and function in ("infer", "view"):
                    continue
                if suffix == ".init" and function.startswith("plan"):
                    continue
                lines.append([function, arrangement,
                              *(count(program, args.library.resolve(), function + suffix, pieces)
                                for pieces in args.pieces)])
    print(report.markdown(["instructions", "descriptors", *(f"{pieces:,} pieces" for pieces in args.pieces)], lines,
                          text_columns=2))


if __name__ == "__main__":
    main()
