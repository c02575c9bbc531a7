#!/usr/bin/env python3
"""Compares two builds of libsplit side by side in one process.

Both builds work on the same memory. They take turns of a fifth of a millisecond, or of one call, until
several turns of each have come close to its fastest one. The fastest turn is reported, because other
programs on the machine only ever make turns slower. Before they are timed, both builds fill poisoned
outputs, and all bytes, including the gaps between outputs, must be the same.

    compare.py --old OLD.so --new NEW.so                 the workloads of bench.py
    compare.py --old OLD.so --new NEW.so --rows W5,L1    these workloads; R12* means all that begin with R12
    compare.py --old OLD.so --new NEW.so --class W,U,L   these classes, of W U L R RL X S
    compare.py --old OLD.so --new NEW.so --random 300    random splits
    compare.py --old OLD.so --new NEW.so --pipeline      between code that writes the input and code that
                                                         reads the outputs
    compare.py --old OLD.so --new NEW.so --split 'uint16 [3000,37,5] axis 1: 12,13,12'
    compare.py --old OLD.so --new NEW.so --split 'uint8 [3,80] strides [96,1] axis 0: 2,1 into strides [128,1]'

A ratio is the old build's time divided by the new one's: above 1, the new build is faster.
"""

from __future__ import annotations

import argparse
import collections
import csv
import ctypes
import dataclasses
import functools
import gc
import hashlib
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import bench
import pipeline
import turns
import workloads
from native import Libsplit, Native, Split
from workloads import CLASSES, MIB, TOGETHER, Layout, Workload, class_of

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = ["u1", "f2", "f4", "i8", "c16"]
QUICK_TURN_NS = 100_000


def up_to(r: random.Random, least: int, most: int) -> int:
    """Draws a number between `least` and `most`; all orders of magnitude are equally likely."""
    return round(math.exp(r.uniform(math.log(least), math.log(most))))


# For each family, a function that draws the lengths of the pieces' runs in bytes.
FAMILIES = {
    "columns": lambda r, unit: [unit] * r.randint(2, 16),
    "transposed": lambda r, unit: [unit] * up_to(r, 17, 2000),
    "equal short runs": lambda r, unit: [r.randint(3, 63)] * r.randint(2, 16),
    "unequal short runs": lambda r, unit: [r.randint(1, 40) for _ in range(r.randint(2, 16))],
    "equal runs": lambda r, unit: [r.randint(64, 512)] * r.randint(2, 10),
    "unequal runs": lambda r, unit: [r.randint(16, 700) for _ in range(r.randint(2, 10))],
    "many pieces": lambda r, unit: [r.randint(1, 100) for _ in range(r.randint(17, 200))],
    "long runs": lambda r, unit: [up_to(r, 512, 65536) for _ in range(r.randint(2, 8))],
}
LAYOUTS = ["packed", "packed", "pitch", "step", "reversed", "transposed view", "into a pitch"]


def draw(r: random.Random, most: int) -> Workload:
    """Draws a random split of a matrix of at most `most` bytes."""
    dtype = np.dtype(r.choice(DTYPES))
    family = r.choice(list(FAMILIES))
    runs = FAMILIES[family](r, dtype.itemsize)
    lengths = tuple(max(1, run // dtype.itemsize) for run in runs)
    columns = sum(lengths)
    rows = max(1, up_to(r, 4096, most) // (columns * dtype.itemsize))
    layout = r.choice(LAYOUTS)
    wide, left = columns + r.randint(1, 1 + columns), r.randint(0, 1)
    part = Layout((rows, wide), (slice(None), slice(left, left + columns)))
    views = {
        "pitch": part,
        "step": Layout((rows, 2 * columns), (slice(None), slice(None, None, 2))),
        "reversed": Layout((rows, columns), (slice(None, None, -1),)),
        "transposed view": Layout((columns, rows), (), (1, 0)),
    }
    into = part if layout == "into a pitch" else None
    return Workload("", f"{family}, {layout}", dtype, (rows, columns), 1, lengths,
                    views.get(layout), into)


def select(args: argparse.Namespace) -> list[Workload]:
    """Returns the workloads that were chosen, or all."""
    chosen = []
    for asked in args.rows or []:
        begin = asked.rstrip("*").lower()
        exact = [work for work in workloads.ALL if work.name.lower() == asked.lower()]
        found = exact or [work for work in workloads.ALL if work.name.lower().startswith(begin)]
        if not found:
            sys.exit(f"error: no workload's name is or begins with {asked}: bench.py --list shows them all")
        chosen += found
    if args.classes:
        unknown = set(args.classes) - set(CLASSES)
        if unknown:
            sys.exit(f"error: there is no class {', '.join(sorted(unknown))}: the classes are {', '.join(CLASSES)}")
        chosen += [work for work in workloads.ALL if class_of(work) in args.classes]
    chosen = [each for at, each in enumerate(chosen) if each not in chosen[:at]] or workloads.ALL
    # No build uses other threads for a small split.
    return [work for work in chosen if args.threads == 1 or work.bytes >= bench.WORTH_THREADS]


def load_native(args: argparse.Namespace) -> Native:
    """Loads the timing loops, which are written in C. The C compiler is called directly, so make is not needed."""
    sources = [HERE / name for name in ["native.c", "bounds.c", "pool.c"]]
    content = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.[ch]")))
    made = args.build / "bench" / f"by_compare-{hashlib.sha256(content).hexdigest()[:16]}.so"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        new = made.with_suffix(f".{os.getpid()}")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O3", "-fPIC", "-shared", "-pthread",
                        f"-I{HERE.parent / 'include'}", "-o", new, *sources], check=True)
        new.rename(made)
    return Native(made)


def force(path: pathlib.Path, library: ctypes.CDLL, words: str) -> None:
    """Forces a test build to use a CPU level, the row of another machine, or low thresholds."""
    try:
        function = library.libsplit_test_force
    except AttributeError:
        sys.exit(f"error: {path} has no libsplit_test_force: build it with --cfg libsplit_test_switch")
    status = function(words.encode())
    if status == 1:
        sys.exit(f"error: --force {words}: this CPU does not support that")
    if status == 3:
        sys.exit(f"error: --force {words}: {path} was built without that level")
    if status != 0:
        sys.exit(f"error: --force {words}: libsplit_test_force() does not know one of the words (status {status})")


@dataclasses.dataclass
class Result:
    """The times of the two builds for a split, in nanoseconds per call."""

    work: Workload
    old: float
    new: float

    @property
    def ratio(self) -> float:
        return self.old / self.new


class Pair:
    """Two builds and the memory that they work on."""

    def __init__(self, args: argparse.Namespace, works: list[Workload]):
        self.args = args
        self.native = load_native(args)
        # The files are copied because a rebuild must not change them while this runs, and because two
        # names of the same file would be loaded as one library.
        with tempfile.TemporaryDirectory() as directory:
            self.builds = {}
            for name, path in [("old", args.old), ("new", args.new)]:
                copy = pathlib.Path(directory) / f"{name}.so"
                shutil.copyfile(path, copy)
                self.builds[name] = Libsplit(copy, self.native)
        if args.force:
            force(args.new, self.builds["new"].library, args.force)
        self.memory = bench.Memory(works)
        self.expected = bench.Area(self.memory.targets.bytes.size)

    def measure(self, work: Workload) -> Result:
        """Checks that both builds write the same bytes, and times them."""
        case = self.memory.case(work, self.args.threads, self.args.offset)
        splits = {name: build.split(case.source, work.axis, list(work.lengths), work.sequence,
                                    case.targets, self.args.threads)
                  for name, build in self.builds.items()}
        written = case.memory[: work.output_bytes]
        expected = self.expected.bytes[: written.size]
        for name, split in splits.items():
            written.fill(bench.POISON)
            self.per_call(split, 0)
            if name == "old":
                np.copyto(expected, written)
            elif not np.array_equal(expected, written):
                at = int(np.flatnonzero(expected != written)[0])
                sys.exit(f"error: bytes differ, first at {at} of {written.size}: {work.name} {work.spec()}")
        return Result(work, *self.times(splits))

    def per_call(self, split: Split, calls: int) -> float:
        taken = self.native.time("copy", split, calls)
        if taken == -1:
            sys.exit("error: a call fails")
        return taken

    def times(self, splits: dict[str, Split]) -> list[float]:
        """Returns the nanoseconds per call of both builds."""
        runs = {name: functools.partial(self.per_call, split) for name, split in splits.items()}
        return list(turns.least(runs, self.args.turn_ns, self.args.seconds).values())


def mean(results: list[Result]) -> float:
    return statistics.geometric_mean(result.ratio for result in results)


def print_summary(title: str, results: list[Result], label) -> None:
    if results:
        worst = min(results, key=lambda result: result.ratio)
        print(f"{title:32} {len(results):4} {mean(results):7.3f}   worst {worst.ratio:6.3f} {label(worst.work)}")


def print_rows(pair: Pair, works: list[Workload]) -> list[Result]:
    results = []
    table = csv.writer(sys.stdout) if pair.args.csv else None
    if table:
        table.writerow(["workload", "old_ns", "new_ns", "ratio", "split"])
    else:
        print(f"{'':9} {'old ns':>12} {'new ns':>12} {'ratio':>7}")
    for work in works:
        result = pair.measure(work)
        results.append(result)
        if table:
            table.writerow([work.name, f"{result.old:.2f}", f"{result.new:.2f}", f"{result.ratio:.4f}", work.spec()])
        else:
            print(f"{work.name:9} {result.old:12,.1f} {result.new:12,.1f} {result.ratio:7.3f}   {work.describe()}",
                  flush=True)
        gc.collect()
    return results


def compare_workloads(args: argparse.Namespace) -> None:
    works = select(args)
    results = print_rows(Pair(args, works), works)
    if args.csv:
        return
    print()
    found = {name: [result for result in results if class_of(result.work) == name] for name in CLASSES}
    for name, title in CLASSES.items():
        print_summary(f"{name} ({title})", found[name], lambda work: work.name)
    for title, names in TOGETHER.items():
        print_summary(title, [result for name in names for result in found[name]], lambda work: work.name)


def compare_random(args: argparse.Namespace) -> None:
    draws = random.Random(args.seed)
    works = [draw(draws, args.most * MIB) for _ in range(args.random)]
    pair = Pair(args, works)
    if args.csv:
        print_rows(pair, works)
        return
    results, slower = [], []
    for work in works:
        found = [pair.measure(work)]
        # A split that seems slower is measured two more times before it is reported.
        if found[0].ratio < 1 / args.slower:
            found += [pair.measure(work) for _ in range(2)]
        best = max(found, key=lambda result: result.ratio)
        results.append(best)
        if best.ratio < 1 / args.slower:
            slower.append(best)
        gc.collect()
    groups = collections.defaultdict(list)
    for result in results:
        groups[result.work.group].append(result)
    for group, of in sorted(groups.items()):
        print(f"{group:40} {mean(of):6.3f} of {len(of)}")
    print()
    print_summary("random splits", results, Workload.spec)
    print(f"{len(slower)} of {len(works)} take more than {args.slower} times as long:")
    for result in sorted(slower, key=lambda result: result.ratio):
        print(f"{result.old:12,.0f} {result.new:12,.0f} {result.ratio:6.3f}  {result.work.spec()}")


def compare_splits(args: argparse.Namespace) -> None:
    try:
        works = [workloads.parse(text) for text in args.split]
    except ValueError as error:
        sys.exit(f"error: --split: {error}")
    print_rows(Pair(args, works), works)


def compare_pipelines(args: argparse.Namespace) -> None:
    works = pipeline.WORKLOADS
    pair = Pair(args, works)
    results = []
    for work in works:
        results += pipeline.measure(pair.memory.case(work, args.threads, args.offset), pair.builds,
                                    pair.native, args.turn_ns, args.seconds)
        print(work.name, file=sys.stderr, flush=True)
    print(pipeline.table(results))


def arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [name for name in text.split(",") if name]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=pathlib.Path, required=True, help="the libsplit.so to compare with")
    parser.add_argument("--new", type=pathlib.Path, required=True, help="the libsplit.so to judge")
    parser.add_argument("--rows", type=names, metavar="W5,L1",
                        help="compare on these workloads; R12* means all that begin with R12")
    parser.add_argument("--class", type=names, dest="classes", metavar="W,U,L",
                        help="compare on these classes of workloads, of W U L R RL X S")
    parser.add_argument("--random", "--count", type=int, nargs="?", const=300, metavar="300",
                        help="compare on this number of random splits")
    parser.add_argument("--split", action="append", metavar="SPLIT",
                        help="compare on this split; repeat it for more splits")
    parser.add_argument("--pipeline", action="store_true",
                        help="write the input, split it and read the outputs; also with memcpy for each row")
    parser.add_argument("--threads", type=int, default=1, help="the number of threads in the benchmark's pool")
    parser.add_argument("--force", metavar="WORDS",
                        help="what to pass to libsplit_test_force() of the new build, such as 'avx2 low'")
    parser.add_argument("--quick", action="store_true",
                        help="take a minute for all workloads, with an accuracy of about 3 %%")
    parser.add_argument("--csv", action="store_true", help="print only the rows, as CSV")
    parser.add_argument("--seed", type=int, default=1, help="the seed for random splits")
    parser.add_argument("--most", type=int, default=24, help="the size of the largest random split in MiB")
    parser.add_argument("--slower", type=float, default=1.07,
                        help="list random splits that take more than this many times as long")
    parser.add_argument("--offset", type=int, default=0, help="the outputs' offset from a 64-byte line, in bytes")
    parser.add_argument("--seconds", type=float, help="the least number of seconds for each split")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release",
                        help="the directory in which the timing loops are built")
    args = parser.parse_args()
    if args.seconds is None:
        args.seconds = 0.1 if args.quick or args.random else 0.5
    args.turn_ns = QUICK_TURN_NS if args.quick or args.random else bench.TURN_NS
    return args


def main() -> None:
    args = arguments()
    gc.disable()
    if args.split:
        compare_splits(args)
    elif args.pipeline:
        compare_pipelines(args)
    elif args.random:
        compare_random(args)
    else:
        compare_workloads(args)


if __name__ == "__main__":
    main()
