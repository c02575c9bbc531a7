#!/usr/bin/env python3
"""Measures what small calls cost at each CPU level of the library, compared with one memcpy for each piece.

The builds take turns in one process, each with a plain call and with a plan. The workloads are rows of
decoders. They are in the caches, so calls of a microsecond and less show the cost of a level's loops and of
everything else that libsplit does.
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
Nanoseconds per call: medians, on one thread, with input and outputs in the caches, each output on its own cache
lines. For each level there are two columns: `libsplit_copy`, which reads and checks everything, and
`libsplit_plan_copy`. `memcpy` is one call of libc's memcpy for each piece. "full" is the library with all levels;
the other builds contain no level above the one that they are named after. A level that the CPU lacks is not used.
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
    """Measures a case and returns a line of the table."""
    rows = bench.measure(case, runs(case, libraries, native), args, random.Random(1))
    if not all(row.right for row in rows):
        raise SystemExit(f"error: wrong bytes for {case.workload.describe()}")
    return [case.workload.describe(), *(f"{row.median:.0f}" for row in rows)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", type=lambda text: tuple(text.split("=", 1)), action="append",
                        default=[], metavar="NAME=PATH", help="a build for a level; repeat it for more levels")
    parser.add_argument("--seconds", type=float, default=3, help="seconds for each row")
    parser.add_argument("--rounds", type=int, default=7, help="the least number of rounds for each row")
    parser.add_argument("--build", type=pathlib.Path, default=bench.ROOT / "build/release",
                        help="the directory in which CMake has built libsplit and the benchmark")
    parser.add_argument("--output", type=pathlib.Path, default=bench.ROOT / "out/bench",
                        help="the directory for results; levels.md goes to the directory of this CPU in it")
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
