#!/usr/bin/env python3
"""Measures libsplit against the fastest flat copy of the same bytes and against other libraries.

All competitors work in this one process on the same memory, in rounds: in each of them every
competitor takes its turn, in an order drawn anew. A turn is one call that is not timed and as many
as fill a fifth of a millisecond that are. What is reported are medians over the rounds, and ratios
as medians of the rounds' ratios. Before it is timed, each competitor fills poisoned outputs, which
are compared with NumPy's slices byte by byte.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import math
import mmap
import pathlib
import random
import sys
import time

import numpy as np
from tqdm import tqdm

import report
import workloads
from competitors import PEERS, Case, FlatCopy, LibsplitCopy, MemcpyRows, Run
from native import Libsplit, Native
from workloads import Workload

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE = 64
HUGE_PAGE = 2 << 20
POISON = 0xA5
TURN_NS = 200_000
IDLE_S = 0.002  # for other libraries' threads to stop looking for work


class Area:
    """Memory from the start of a huge page on, touched once."""

    def __init__(self, size: int):
        self.map = mmap.mmap(-1, size + HUGE_PAGE, flags=mmap.MAP_PRIVATE)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self.map.madvise(mmap.MADV_HUGEPAGE)
        everything = np.frombuffer(self.map, np.uint8)
        start = -everything.ctypes.data % HUGE_PAGE
        self.bytes = everything[start : start + size]
        self.bytes[:] = POISON


class Memory:
    """The input and the outputs of every workload."""

    def __init__(self, selected: list[Workload]):
        largest = max(work.bytes for work in selected)
        padding = max(len(work.lengths) for work in selected) * LINE
        self.source = Area(largest)
        self.targets = Area(largest + padding + 2 * LINE)
        words = self.source.bytes[: largest // 8 * 8].view(np.uint64)
        words[:] = np.random.default_rng(1).integers(0, 2**64, words.size, np.uint64)
        # No infinities and no NaNs: a library that computes may change these.
        words &= np.uint64(0xBFFF_BFFF_BFFF_BFFF)

    def case(self, work: Workload, threads: int, offset: int) -> Case:
        """Outputs begin on a line of their own, `offset` bytes into it."""
        source = self.source.bytes[: work.bytes].view(work.dtype).reshape(work.shape)
        targets, at = [], offset
        for shape in work.piece_shapes():
            size = int(np.prod(shape)) * work.dtype.itemsize
            flat = self.targets.bytes[at : at + size]
            targets.append(flat.view(work.dtype).reshape(shape))
            at += -(-size // LINE) * LINE
        area = self.targets.bytes[offset : offset + work.bytes]
        return Case(work, threads, offset, source.T if work.transposed else source, targets, area)


def verify(case: Case, run: Run) -> bool:
    """Whether a call on poisoned outputs gives what NumPy's slices are."""
    for target in [case.area, *case.targets]:
        target.view(np.uint8).fill(POISON)
    run.per_call(1)
    if not run.splits:
        packed = case.source.T if case.workload.transposed else case.source
        return np.array_equal(case.area, packed.reshape(-1).view(np.uint8))
    found = case.targets if run.outputs is None else run.outputs()
    expected = case.workload.slices(case.source)
    return len(found) == len(expected) and all(
        a.shape == b.shape and np.array_equal(_bits(a), _bits(b)) for a, b in zip(found, expected))


def _bits(array: np.ndarray) -> np.ndarray:
    size = array.dtype.itemsize
    return array.view(np.dtype("V16") if size == 16 else np.dtype(f"u{size}"))


def measure(case: Case, runs: dict[str, Run], budget_ns: float, at_least: int,
            order: random.Random) -> dict[str, list[float]]:
    """Nanoseconds per call of each competitor in every round."""
    calls = {}
    for name, run in runs.items():
        calls[name] = max(1, math.ceil(TURN_NS / max(run.per_call(1), 1)))
    samples: dict[str, list[float]] = {name: [] for name in runs}
    end = time.perf_counter_ns() + budget_ns
    while len(samples[next(iter(runs))]) < at_least or time.perf_counter_ns() < end:
        for name in order.sample(list(runs), len(runs)):
            if case.threads > 1:
                time.sleep(IDLE_S)
            samples[name].append(runs[name].per_call(calls[name]))
    return samples


def cells(selected: list[Workload], args: argparse.Namespace) -> list[tuple[Workload, int, int]]:
    """Which workloads are measured with how many threads and at which offset."""
    found = []
    for threads in args.threads:
        for offset in args.offsets:
            for work in selected:
                rare = threads > 1 or offset > 0
                small = work.bytes < 256 << 10
                if args.full or args.only or not rare:
                    keep = not (threads > 1 and small)
                elif threads > 1:
                    keep = offset == 0 and work.name in workloads.QUICK_THREADS
                else:
                    keep = work.name in workloads.QUICK_MISALIGNED
                if keep:
                    found.append((work, threads, offset))
    return found


def competitors(args: argparse.Namespace, native: Native) -> dict[str, object]:
    """Those asked for; of the other libraries those that are installed, if none are asked for."""
    everyone: dict[str, object] = {}
    for name, path in args.library:
        everyone[name] = LibsplitCopy(Libsplit(path, native))
    wanted = args.competitors
    for name, make in [("plain", lambda: FlatCopy(native, False)),
                       ("stream", lambda: FlatCopy(native, True)),
                       ("memcpy", lambda: MemcpyRows(native))]:
        if wanted is None or name in wanted or (name != "memcpy" and "flat" in wanted):
            everyone[name] = make()
    for name, make in PEERS.items():
        if name in wanted if wanted is not None else importlib.util.find_spec(name):
            everyone[name] = make()
    return everyone


def run(args: argparse.Namespace) -> list[report.Row]:
    native = Native(args.build / "bench/bench_native.so")
    everyone = competitors(args, native)
    selected = select(args)
    memory = Memory(selected)
    order = random.Random(1)
    rows: list[report.Row] = []
    todo = cells(selected, args)
    bar = tqdm(todo, unit="case", disable=args.quiet)
    gc.disable()
    try:
        for work, threads, offset in bar:
            bar.set_description(f"{work.name}, {threads} thread{'s' * (threads > 1)}, +{offset}")
            case = memory.case(work, threads, offset)
            prepared = {name: one.prepare(case) for name, one in everyone.items()}
            runs = {name: one for name, one in prepared.items() if one}
            right = {name: verify(case, one) for name, one in runs.items()}
            samples = measure(case, runs, args.seconds * 1e9, args.rounds, order)
            rows += report.rows(case, samples, right, everyone)
            del prepared, runs
            gc.collect()
    except KeyboardInterrupt:
        print(f"\ninterrupted: the results end before {work.name}", file=sys.stderr)
    return rows


def select(args: argparse.Namespace) -> list[Workload]:
    if not args.only:
        return [work for work in workloads.ALL if args.full or work.quick]
    by_name = {work.name.lower(): work for work in workloads.ALL}
    unknown = [name for name in args.only if name.lower() not in by_name]
    if unknown:
        raise SystemExit(f"error: no workload {', '.join(unknown)}: --list names them all")
    return [by_name[name.lower()] for name in args.only]


def arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [name for name in text.split(",") if name]

    def numbers(text: str) -> list[int]:
        return [int(number) for number in names(text)]

    def library(text: str) -> tuple[str, pathlib.Path]:
        name, found, path = text.partition("=")
        if not found:
            raise argparse.ArgumentTypeError(f"'{text}' is not NAME=PATH")
        return name, pathlib.Path(path).resolve()

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true",
                        help="every workload, thread and offset: about ten minutes, not one")
    parser.add_argument("--only", type=names, metavar="W1,W2", help="these workloads alone")
    parser.add_argument("--competitors", type=names, metavar="NAMES",
                        help="beside libsplit, these alone, of flat, memcpy, " + ", ".join(PEERS))
    parser.add_argument("--threads", type=numbers, default=[1, 2], metavar="1,2")
    parser.add_argument("--offsets", type=numbers, default=[0, 16], metavar="0,16",
                        help="of the outputs, in bytes from a 64-byte line")
    parser.add_argument("--seconds", type=float, help="for the rounds of one case")
    parser.add_argument("--rounds", type=int, help="at least so many")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release",
                        help="where CMake has built libsplit and the benchmark")
    parser.add_argument("--library", type=library, action="append", metavar="NAME=PATH",
                        help="a build of libsplit, again for a second one to compare with")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "out/bench",
                        help="directory for the results")
    parser.add_argument("--no-chart", dest="chart", action="store_false")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--list", action="store_true", help="name the workloads and exit")
    args = parser.parse_args()
    args.seconds = args.seconds if args.seconds is not None else (1.0 if args.full else 0.25)
    args.rounds = args.rounds or (7 if args.full else 3)
    args.library = args.library or [("libsplit", args.build / "lib/libsplit.so")]
    return args


def main() -> int:
    args = arguments()
    if args.list:
        for work in workloads.ALL:
            print(f"{work.name:9} {work.bytes / workloads.MIB:8.2f} MiB  {work.describe()}")
        return 0
    rows = run(args)
    report.write(rows, args)
    wrong = [row for row in rows if not row.right and row.competitor in dict(args.library)]
    for row in wrong:
        print(f"error: {row.workload.name}: {row.competitor} gives wrong bytes", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
