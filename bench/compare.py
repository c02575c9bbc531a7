#!/usr/bin/env python3
"""Compares two builds of libsplit on random splits, and lists where the second one takes longer.

The shapes of `bench.py` are those that everybody looks at; these are the others. Both builds take turns
in one process, every result is compared with NumPy's, and what seems slower is measured twice more
before it is believed.
"""

from __future__ import annotations

import argparse
import collections
import gc
import math
import pathlib
import random
import statistics
import sys

import numpy as np

import bench
from competitors import Case, LibsplitCopy
from native import Libsplit, Native
from workloads import MIB, Layout, Workload

DTYPES = ["u1", "f2", "f4", "i8", "c16"]


def up_to(r: random.Random, least: int, most: int) -> int:
    """A number of which each size is as likely."""
    return round(math.exp(r.uniform(math.log(least), math.log(most))))


# Bytes of each piece's runs.
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


def ratio(case: Case, builds: dict[str, LibsplitCopy], args: argparse.Namespace,
          order: random.Random) -> float:
    """The time of the second one, the first one's being 1."""
    runs = {name: build.prepare(case) for name, build in builds.items()}
    rows = bench.measure(case, runs, args, order)
    if not all(row.right for row in rows):
        sys.exit(f"error: wrong bytes: {case.workload.describe()}")
    return rows[1].median / rows[0].median


def compare(args: argparse.Namespace) -> None:
    native = Native(args.build / "bench" / "bench_native.so")
    builds = {name: LibsplitCopy(Libsplit(path, native))
              for name, path in [("before", args.before), ("now", args.now)]}
    draws, order = random.Random(args.seed), random.Random(1)
    works = [draw(draws, args.most * MIB) for _ in range(args.count)]
    memory = bench.Memory(works)
    ratios, slower = collections.defaultdict(list), []
    for work in works:
        case = memory.case(work, args.threads, args.offset)
        found = [ratio(case, builds, args, order)]
        if found[0] > args.slower:
            found += [ratio(case, builds, args, order) for _ in range(2)]
        ratios[work.group].append(found[0])
        if min(found) > args.slower:
            slower.append((min(found), work.describe()))
        gc.collect()
    for group, values in sorted(ratios.items()):
        print(f"{group:40} {statistics.geometric_mean(values):5.2f} of {len(values)}")
    every = [value for values in ratios.values() for value in values]
    print(f"\nTime of the second build for the first one's: {statistics.geometric_mean(every):.3f}; "
          f"{len(slower)} of {len(works)} are more than {args.slower} times as long:")
    for value, what in sorted(slower, reverse=True):
        print(f"{value:5.2f} {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"),
                        help="where CMake has built the benchmark")
    parser.add_argument("--before", type=pathlib.Path, required=True, help="libsplit.so")
    parser.add_argument("--now", type=pathlib.Path, required=True, help="another one")
    parser.add_argument("--seed", type=int, default=1, help="which random splits")
    parser.add_argument("--count", type=int, default=300, help="how many")
    parser.add_argument("--most", type=int, default=24, help="MiB of the largest")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0, help="of outputs, from a line")
    parser.add_argument("--seconds", type=float, default=0.08, help="for the rounds of one split")
    parser.add_argument("--rounds", type=int, default=5, help="at least so many")
    parser.add_argument("--slower", type=float, default=1.07, help="times as long is listed")
    args = parser.parse_args()
    args.pool = "spinning"
    compare(args)


if __name__ == "__main__":
    main()
