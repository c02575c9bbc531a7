#!/usr/bin/env python3
"""Measures what small calls cost at each level of the library, beside one memcpy for each piece.

The builds take turns in one process, each with a call that says everything and one by a plan. What a row
of a decoder is cut into: it lies in the caches, so calls of a microsecond and less show what a level's
loops and what libsplit does besides cost.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
import time

import numpy as np

import bench
import report
from competitors import Case, MemcpyRows, Run
from native import Libsplit, Native
from workloads import Workload

COLUMNS = [768, 1536, 3072, 4096, 8192, 16384]
DECODERS = [(12288, 512, 512, 640), (10240, 6144), (512, 128)]

ABOUT = """\
Nanoseconds a call, medians, one thread, input and outputs in the caches, outputs on lines of their own. Of each
level, what `libsplit_copy` takes, which reads and checks everything, and what `libsplit_plan_copy` takes. `memcpy`
is one call of libc's for each piece. "full" is the library as it is delivered, the others are built with no
higher level than they say; what the CPU does not have, it does not get.
"""


def workloads() -> list[Workload]:
    def row(dtype: str, lengths: tuple[int, ...]) -> Workload:
        return Workload("", "", np.dtype(dtype), (1, sum(lengths)), 1, lengths)

    equal = [(-(-n // 3), -(-n // 3), n - 2 * -(-n // 3)) for n in COLUMNS]
    unequal = [(n // 2, n // 3, n - n // 2 - n // 3) for n in COLUMNS]
    return [row("f2", lengths) for lengths in DECODERS] + [
        row("f4", lengths) for pair in zip(equal, unequal) for lengths in pair]


def runs(case: Case, libraries: dict[str, Libsplit], native: Native) -> dict[str, Run]:
    found = {"memcpy": MemcpyRows(native).prepare(case)}
    for name, library in libraries.items():
        split = library.split(case.source, 1, list(case.workload.lengths), False, case.targets, 1)
        plan = library.planned(split)
        found[name] = Run(lambda calls, job=split: native.time("copy", job, calls))
        found[f"{name}, plan"] = Run(lambda calls, job=plan: native.time("planned", job, calls))
    return found


def measure(case: Case, libraries: dict[str, Libsplit], native: Native,
            args: argparse.Namespace) -> list[str]:
    """A line of the table."""
    rows = bench.measure(case, runs(case, libraries, native), args, random.Random(1))
    if not all(row.right for row in rows):
        raise SystemExit(f"error: wrong bytes for {case.workload.describe()}")
    return [case.workload.describe(), *(f"{row.median:.0f}" for row in rows)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", type=lambda text: tuple(text.split("=", 1)), action="append",
                        default=[], metavar="NAME=PATH", help="a build of a level, again for more")
    parser.add_argument("--seconds", type=float, default=3, help="for the rounds of one row")
    parser.add_argument("--rounds", type=int, default=7, help="at least so many")
    parser.add_argument("--build", type=pathlib.Path, default=bench.ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path, default=bench.ROOT / "out/bench",
                        help="levels.md goes to a directory of this CPU's below it")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    native = Native(args.build / "bench/bench_native.so")
    paths = [*args.library, ("full", args.build / "lib/libsplit.so")]
    libraries = {name: Libsplit(pathlib.Path(path).resolve(), native) for name, path in paths}
    selected = workloads()
    memory = bench.Memory(selected)
    lines = [measure(memory.case(work, 1, 0), libraries, native, args) for work in selected]
    head = ["split", "memcpy", *(title for name in libraries for title in (name, "plan"))]
    text = (f"Measured {time.strftime('%Y-%m-%d')}, commit {bench.commit()}, on {bench.machine()}\n\n{ABOUT}\n"
            f"{report.markdown(head, lines, text_columns=1)}\n")
    bench.keep(text, "levels.md", args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
