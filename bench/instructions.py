#!/usr/bin/env python3
"""Counts the instructions of a call that copies almost nothing, for each arrangement of descriptors in memory.

    instructions.py LIBRARY [--program build/release/bench/one_call]

callgrind counts them, so they are always the same for the same file. The calls split float32 [1,12] into 3 pieces
and [1,pieces] otherwise; for 1,024 pieces, the number is per piece.
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
                ".equal": "on the stack, no lengths (Split-13)",
                ".between": "on the stack, the input's shape between descriptors and their arrays"}
PIECES = [3, 15, 16, 1024]


def build(directory: pathlib.Path) -> pathlib.Path:
    """Builds the program that makes the calls, and returns its path."""
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
    parser.add_argument("library", type=pathlib.Path, help="the libsplit.so to measure")
    parser.add_argument("--program", type=pathlib.Path, help="the program one_call; built if it is not given")
    parser.add_argument("--pieces", type=int, nargs="+", default=PIECES, metavar="3",
                        help="the numbers of pieces")
    args = parser.parse_args()
    if not args.library.exists():
        sys.exit(f"error: {args.library} does not exist")
    if shutil.which("valgrind") is None:
        sys.exit("error: valgrind is missing: install it")
    with tempfile.TemporaryDirectory() as directory:
        program = args.program or build(pathlib.Path(directory))
        lines = []
        for function in FUNCTIONS:
            for suffix, arrangement in ARRANGEMENTS.items():
                # All functions read lengths in the same way; infer and view always write strides, and write every
                # descriptor; plans get only addresses.
                if suffix in (".strides", ".rest", ".equal") and function != "copy":
                    continue
                if suffix == ".unwanted" and function in ("infer", "view"):
                    continue
                if suffix == ".between" and function not in ("infer", "view"):
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
