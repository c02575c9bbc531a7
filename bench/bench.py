#!/usr/bin/env python3
"""Measures libsplit against the fastest flat copy of the same bytes and against other libraries.

All competitors run in this one process, on the same memory, and take turns in each round, in a random
order. A turn is one call that is not timed, followed by as many timed calls as take a fifth of a
millisecond. The reports give medians over the rounds, and ratios of these medians. Before a competitor
is timed, it fills poisoned outputs, which are compared byte by byte with NumPy's slices.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import math
import mmap
import os
import pathlib
import platform
import random
import re
import subprocess
import sys
import time

import numpy as np
from tqdm import tqdm

import calls
import pipeline
import report
import workloads
from competitors import PEERS, Case, FlatCopy, LibsplitCopy, MemcpyRows, Run
from native import POOLS, Libsplit, Native
from workloads import SubByte, Workload

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE = 64
HUGE_PAGE = 2 << 20
POISON = 0xA5
TURN_NS = 200_000
WARM_UP_NS = 5_000_000  # until all threads run, each on its own core
WORTH_THREADS = 256 << 10  # bytes
IDLE_S = 0.01  # until other libraries' threads stop looking for work, which takes up to 4 ms


class Area:
    """Memory that starts at a huge page and has been touched once."""

    def __init__(self, size: int):
        self.map = mmap.mmap(-1, size + HUGE_PAGE, flags=mmap.MAP_PRIVATE)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self.map.madvise(mmap.MADV_HUGEPAGE)
        everything = np.frombuffer(self.map, np.uint8)
        start = -everything.ctypes.data % HUGE_PAGE
        self.bytes = everything[start : start + size]
        self.bytes[:] = POISON


class Memory:
    """The memory for the inputs and outputs of all workloads."""

    def __init__(self, selected: list[Workload]):
        largest = max(max(work.bytes, work.input_bytes) for work in selected)
        self.source = Area(largest)
        # A flat copy's target is as large as its source.
        self.targets = Area(2 * LINE + max(max(work.bytes, work.output_bytes) for work in selected))
        words = self.source.bytes[: largest // 8 * 8].view(np.uint64)
        words[:] = np.random.default_rng(1).integers(0, 2**64, words.size, np.uint64)
        # No infinities or NaNs, because a library that computes might change them.
        words &= np.uint64(0xBFFF_BFFF_BFFF_BFFF)

    def case(self, work: Workload, threads: int, offset: int) -> Case:
        """Makes a case in this memory. Each output starts `offset` bytes into a new cache line."""
        memory = self.targets.bytes[offset : offset + max(work.bytes, work.output_bytes)]
        return Case(work, threads, offset, work.input(self.source.bytes), work.outputs(memory),
                    self.source.bytes[: work.bytes], memory)


def verify(case: Case, run: Run) -> tuple[bool, float]:
    """Returns whether a call on poisoned outputs gives the same as NumPy's slices, and how many
    nanoseconds it took."""
    case.memory.fill(POISON)
    duration = run.per_call(1)
    if not run.splits:
        return np.array_equal(case.area, case.flat), duration
    found = case.targets if run.outputs is None else run.outputs()
    expected = case.workload.slices(case.source)
    right = len(found) == len(expected) and all(
        tuple(a.shape) == tuple(b.shape) and np.array_equal(_bits(a), _bits(b)) for a, b in zip(found, expected))
    return right, duration


def _bits(array: np.ndarray | SubByte) -> np.ndarray:
    if isinstance(array, SubByte):
        return array.unpacked()
    size = array.dtype.itemsize
    return array.view(np.dtype("V16") if size == 16 else np.dtype(f"u{size}"))


def measure(case: Case, runs: dict[str, Run], args: argparse.Namespace,
            order: random.Random) -> list[report.Row]:
    """Verifies and times each competitor."""
    right, durations = {}, {}
    for name, run in runs.items():
        right[name], durations[name] = verify(case, run)
    samples = timed(case.threads, runs, durations, args, order)
    return [report.Row(case.workload, case.threads, case.offset, name, right[name], [samples[name]])
            for name in runs]


def timed(threads: int, runs: dict[str, Run], durations: dict[str, float],
          args: argparse.Namespace, order: random.Random) -> dict[str, list[float]]:
    """Returns the nanoseconds per call of each competitor, one number for each round. `durations` are
    those of a first call."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    end = time.perf_counter() + args.seconds
    rounds = 0
    while rounds < args.rounds or time.perf_counter() < end:
        rounds += 1
        for name in order.sample(list(runs), len(runs)):
            if threads > 1:
                time.sleep(IDLE_S)
                if args.pool == "spinning":
                    runs[name].per_call(math.ceil(WARM_UP_NS / durations[name]))
            samples[name].append(runs[name].per_call(math.ceil(TURN_NS / durations[name])))
    return samples


def cells(selected: list[Workload], args: argparse.Namespace) -> list[tuple[Workload, int, int]]:
    """Returns which workloads are measured with which number of threads and at which offset."""
    def wanted(work: Workload, threads: int, offset: int) -> bool:
        if threads > 1 and work.bytes < WORTH_THREADS:
            return False
        if args.only or args.split or (threads, offset) == (1, 0):
            return True
        if threads > 1 and offset > 0:
            return args.full and work.name in workloads.QUICK_MISALIGNED
        if args.full:
            return work.quick
        return work.name in (workloads.QUICK_THREADS if threads > 1 else workloads.QUICK_MISALIGNED)

    return [(work, threads, offset) for threads in args.threads for offset in args.offsets
            for work in selected if wanted(work, threads, offset)]


def add_avx2(args: argparse.Namespace, native: Native) -> None:
    """Adds the library without AVX-512, unless this CPU's own level is AVX2 or lower."""
    if args.avx2:
        first, without = (Libsplit(path.resolve(), native) for path in [args.library[0][1], args.avx2])
        if first.level != without.level:
            args.library.append(("libsplit avx2", args.avx2.resolve()))


def competitors(args: argparse.Namespace, native: Native) -> dict[str, object]:
    """Returns the competitors that were chosen; by default all, with those libraries that are installed."""
    asked = args.competitors
    everyone: dict[str, object] = {
        name: LibsplitCopy(Libsplit(path, native)) for name, path in args.library}
    first = everyone[args.library[0][0]]
    everyone["1 thread"] = LibsplitCopy(first.library, always_one_thread=True)
    if asked is None or "flat" in asked:
        everyone |= FlatCopy.all(native)
    if asked is None or "memcpy" in asked:
        everyone["memcpy"] = MemcpyRows(native)
    for name, make in PEERS.items():
        if importlib.util.find_spec(name) if asked is None else name in asked:
            everyone[name] = make()
    return everyone


def machine() -> str:
    """Describes the machine, as far as Linux says."""
    told = [f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"]
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = re.search(r"model name\s*: (.*)", cpuinfo.read_text())
        told += [model[1]] if model else []
    for cache in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((cache / name).read_text().strip()
                             for name in ["level", "type", "size"])
        if kind != "Instruction":
            told.append(f"L{level} {size}")
    return ", ".join(told)


def commit() -> str:
    """Returns the commit that is checked out, with a + if files have changed since."""
    try:
        told = subprocess.run(["git", "describe", "--always", "--dirty=+", "--exclude=*"], cwd=ROOT,
                              capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return told.stdout.strip() or "unknown"


def keep(text: str, name: str, output: pathlib.Path) -> None:
    """Prints a table, and writes it to a file of this name in this CPU's directory."""
    directory = output / cpu()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text, encoding="utf-8")
    print(f"{text}\nThis table is in {directory}.")


# The names of the directories for the CPUs that have been measured.
CPUS = {("GenuineIntel", 6, 143): "sapphire-rapids", ("AuthenticAMD", 25, 1): "zen3",
        ("AuthenticAMD", 25, 17): "zen4", ("AuthenticAMD", 26, 2): "zen5"}


def cpu(cpuinfo: pathlib.Path = pathlib.Path("/proc/cpuinfo")) -> str:
    """Returns the name of the directory for this CPU's results: a known name, or vendor, family and
    model if Linux gives them."""
    text = cpuinfo.read_text() if cpuinfo.exists() else ""

    def told(key: str) -> str:
        found = re.search(rf"^{key}\s*: (.*)$", text, re.MULTILINE)
        return found[1].strip() if found else ""

    vendor, family, model = told("vendor_id"), told("cpu family"), told("model")
    if not vendor:
        return platform.machine()
    known = CPUS.get((vendor, int(family), int(model)))
    return known or f"{vendor}-{family}-{model}".lower()


def run(args: argparse.Namespace) -> report.Results:
    native = Native(args.build / "bench/bench_native.so", args.pool)
    add_avx2(args, native)
    everyone = competitors(args, native)
    libraries = [name for name, _ in args.library]
    today = time.strftime("%Y-%m-%d")
    rows: list[report.Row] = []
    selected = asked_for(args)
    pipelines = select_pipelines(args)
    memory = Memory(selected + pipelines)
    order = random.Random(1)
    bar = tqdm(cells(selected, args) * args.runs, unit="case", disable=args.quiet)
    results = report.Results(f"Measured {today}, commit {commit()}, on {machine()}; threads {args.pool}; "
                             f"{args.runs} run{'s' * (args.runs > 1)}",
                             libraries, {name: one.version for name, one in everyone.items()})
    gc.disable()
    try:
        for work, threads, offset in bar:
            bar.set_description(f"{work.name}, {threads} thread{'s' * (threads > 1)}, +{offset}")
            case = memory.case(work, threads, offset)
            # Other libraries have no elements smaller than a byte.
            prepared = {name: one.prepare(case) for name, one in everyone.items()
                        if not work.sub_byte or isinstance(one, (LibsplitCopy, FlatCopy, MemcpyRows))}
            runs = {name: one for name, one in prepared.items() if one}
            rows += measure(case, runs, args, order)
            del prepared, runs
            gc.collect()
        if pipelines:
            results.pipeline = run_pipelines(pipelines, memory, args, native)
        if args.calls:
            results.empty_python_call = calls.empty_python_call()
            results.costs = calls.costs(dict(args.library), args.build / "bench/one_call")
        if args.inside:
            results.inside = inside_onnxruntime(args)
    except KeyboardInterrupt:
        print("\ninterrupted: these results are incomplete", file=sys.stderr)
    results.rows = report.joined(rows)
    return results


def inside_onnxruntime(args: argparse.Namespace) -> list[dict]:
    import inside_onnxruntime as inside  # needs ONNX Runtime, which is not always installed

    rounds = 15 if args.full else 5
    rows = inside.rows(args.threads, rounds)
    total = len(inside.WORKLOADS) * len(args.threads)
    return list(tqdm(rows, "inside ONNX Runtime", total, unit="case", disable=args.quiet))


def run_pipelines(works: list[Workload], memory: Memory, args: argparse.Namespace,
                  native: Native) -> str:
    """Measures the pipelines and returns a table. Changes the input."""
    libraries = {name: Libsplit(path, native) for name, path in args.library}
    steps = []
    for work in tqdm(works, "pipelines", unit="case", disable=args.quiet):
        steps += pipeline.measure(memory.case(work, 1, 0), libraries, native, TURN_NS, args.seconds)
    return pipeline.table(steps)


def select_pipelines(args: argparse.Namespace) -> list[Workload]:
    if args.only or args.split or not args.pipeline:
        return []
    return [work for work in pipeline.WORKLOADS if args.full or work.quick]


def explain(args: argparse.Namespace) -> None:
    """Prints what libsplit plans for the chosen splits."""
    native = Native(args.build / "bench/bench_native.so", args.pool)
    for work in asked_for(args):
        case = Memory([work]).case(work, 1, 0)
        print(work.spec())
        for name, path in args.library:
            library = Libsplit(path, native)
            split = library.split(case.source, work.axis, list(work.lengths), work.sequence,
                                  case.targets, 1)
            told = library.describe(split)
            print(f"{name}: {told or 'this build has no libsplit_plan_describe()'}")
        print()


def asked_for(args: argparse.Namespace) -> list[Workload]:
    if not args.split:
        return select(args)
    try:
        return [workloads.parse(text, f"split {i + 1}") for i, text in enumerate(args.split)]
    except ValueError as error:
        raise SystemExit(f"error: --split: {error}") from None


def select(args: argparse.Namespace) -> list[Workload]:
    if not args.only:
        return [work for work in workloads.ALL if args.full or work.quick]
    by_name = {work.name.lower(): work for work in workloads.ALL}
    unknown = [name for name in args.only if name.lower() not in by_name]
    if unknown:
        raise SystemExit(f"error: there is no workload {', '.join(unknown)}: --list shows them all")
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
                        help="measure more workloads with more rounds: ten minutes for each run instead of one")
    parser.add_argument("--only", type=names, metavar="W1,W2", help="measure only these workloads")
    parser.add_argument("--split", action="append", metavar="'uint16 [3000,37,5] axis 1: 12,13,12'",
                        help="measure only this split, and print what libsplit plans for it; with strides: "
                             "'uint8 [3,80] strides [96,1] axis 0: 2,1 into strides [128,1]'")
    parser.add_argument("--competitors", type=names, metavar="NAMES",
                        help="compare only with these: flat, memcpy, " + ", ".join(PEERS))
    parser.add_argument("--threads", type=numbers, default=[1, 2], metavar="1,2",
                        help="the numbers of threads to measure")
    parser.add_argument("--pool", choices=POOLS, default="spinning",
                        help="whether threads, also those of other libraries, are awake when a turn begins")
    parser.add_argument("--offsets", type=numbers, default=[0, 16], metavar="0,16",
                        help="the outputs' offsets from a 64-byte line, in bytes")
    parser.add_argument("--seconds", type=float, help="seconds for each case")
    parser.add_argument("--rounds", type=int, help="the least number of rounds for each case")
    parser.add_argument("--runs", type=int, default=1,
                        help="how often to measure all of it: the verdict is on most of the runs")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release",
                        help="the directory in which CMake has built libsplit and the benchmark")
    parser.add_argument("--library", type=library, action="append", metavar="NAME=PATH",
                        help="a build of libsplit; repeat it to compare builds")
    parser.add_argument("--avx2", type=pathlib.Path, metavar="PATH",
                        help="the library built without AVX-512, to be measured too if this CPU's level is AVX-512")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "out/bench",
                        help="the directory for results, in which each CPU has its own")
    parser.add_argument("--no-calls", dest="calls", action="store_false",
                        help="do not measure the cost of a call and its instructions")
    parser.add_argument("--no-pipeline", dest="pipeline", action="store_false",
                        help="do not measure splits between code that writes the input and code that reads "
                             "the outputs")
    parser.add_argument("--inside", action="store_true",
                        help="also measure the provider inside ONNX Runtime")
    parser.add_argument("--no-chart", dest="chart", action="store_false", help="do not draw the chart")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    parser.add_argument("--list", action="store_true", help="list the workloads and exit")
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
    if args.split:
        args.calls = args.inside = False
        explain(args)
        results = run(args)
        print(report.by_threads(results))
    else:
        results = run(args)
        directory = args.output / cpu()
        report.write(results, directory, args.chart)
        print(report.tables(results))
        print(f"These tables and more are in {directory}.")
    wrong = [row for row in results.rows if not row.right and row.competitor in results.libraries]
    for row in wrong:
        print(f"error: {row.competitor} gives wrong bytes for {row.workload.name}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
