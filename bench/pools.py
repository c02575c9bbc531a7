#!/usr/bin/env python3
"""Measures pools of threads that libsplit is lent, of 1 to 4, beside libsplit on one thread.

Each pool of examples/pools that was built is timed by a program, bench/pools.c; ONNX Runtime's, where
it is installed, by the provider in sessions of one Split.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import bench
import report

POOLS = {"pthread": "pthread", "std_thread": "std::thread", "openmp": "OpenMP", "tbb": "oneTBB",
         "onnxruntime": "ONNX Runtime"}
THREADS = [1, 2, 3, 4]
# As in pools.c: rounds, seconds of warming up and of what is timed.
WAYS = {"back to back": (15, .005, .005), "after a pause": (41, 0, 0),
        "beside a busy thread": (11, .005, .02)}
SHAPES = {"512 KiB": ((64, 2048), 2), "W4": ((8, 4096, 8), 4), "W17": ((16384, 64), 4),
          "W2": ((1, 512, 2304), 3), "16 MiB": ((2048, 2048), 4)}
PAUSE = .05  # until the threads of a session sleep

ABOUT = """\
Times relative to one thread of libsplit without a pool, by turns in one process, medians: below 1 the pool is
faster. "Back to back": calls without a gap; "after a pause": one call after 10 ms, in which threads stop looking for
work; "beside a busy thread": back to back, while another thread computes all the time. The columns of one thread show
the noise. float32, split along the last axis into equal pieces; W2, W4 and W17 are those of results.md. Sessions of
ONNX Runtime are compared with one of one thread, after 50 ms; what a run costs besides is part of both.
"""

Found = tuple[str, str, float, float]  # shape, way, ns alone, times as long


def of_program(program: pathlib.Path, threads: int, rounds: int | None) -> Iterator[Found]:
    """By pools.c."""
    command = [program, str(threads), *([str(rounds)] if rounds else [])]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    for line in told.stdout.splitlines():
        shape, way, alone, ratio = line.split("\t")
        yield shape, way, float(alone), float(ratio)


def of_onnxruntime(threads: int, given: int | None) -> Iterator[Found]:
    """By the provider, in two sessions that take turns."""
    import inside_onnxruntime as inside
    import models

    for shape, (extents, pieces) in SHAPES.items():
        axis = len(extents) - 1
        model = models.single("float32", extents, axis, [extents[axis] // pieces] * pieces)
        feeds = {"x": models.random(extents, "float32")}
        with tempfile.TemporaryDirectory() as directory:
            alone, pool = (inside.Session(inside.Setup(model, feeds, count, "all"), directory).run
                           for count in (1, threads))
        for way, (rounds, warm_up, timed) in WAYS.items():
            busy = way == "beside a busy thread" and subprocess.Popen(
                [sys.executable, "-c", "while True: pass"])
            try:
                pairs = []
                for index in range(given or rounds // 2):  # their pauses are long
                    turns = {run: turn(run, warm_up, timed)
                             for run in ((alone, pool) if index % 2 else (pool, alone))}
                    pairs.append((turns[alone], turns[pool]))
            finally:
                if busy:
                    busy.kill()
                    busy.wait()
            yield (shape, way, statistics.median(one for one, _ in pairs),
                   statistics.median(other / one for one, other in pairs))


def turn(run: Callable[[], None], warm_up: float, timed: float) -> float:
    """Nanoseconds of a run."""
    def runs(seconds: float) -> float:
        start, count = time.perf_counter(), 0
        while not count or time.perf_counter() - start < seconds:
            run()
            count += 1
        return (time.perf_counter() - start) / count * 1e9

    time.sleep(PAUSE)
    if warm_up:
        runs(warm_up)
    return runs(timed)


def found(pool: str, build: pathlib.Path, rounds: int | None) -> dict[int, list[Found]] | None:
    """By numbers of threads; None where there is no such pool."""
    if pool == "onnxruntime":
        if not importlib.util.find_spec("onnxruntime"):
            return None
        return {threads: list(of_onnxruntime(threads, rounds)) for threads in THREADS}
    program = build / f"examples/pools/time_{pool}"
    if not program.exists():
        return None
    return {threads: list(of_program(program, threads, rounds)) for threads in THREADS}


def lines(pool: str, by_threads: dict[int, list[Found]]) -> list[list[str]]:
    """Of the table: a shape each."""
    ratios = {(shape, way, threads): f"{ratio:.2f}" for threads, all_found in by_threads.items()
              for shape, way, _, ratio in all_found}
    alone = {(shape, way): f"{nanoseconds / 1000:.0f}" for shape, way, nanoseconds, _ in by_threads[1]}
    return [[POOLS[pool], shape, *(cell for way in WAYS for cell in
                                   [alone[shape, way], *(ratios[shape, way, n] for n in THREADS)])]
            for shape in SHAPES]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=list(POOLS), choices=POOLS)
    parser.add_argument("--rounds", type=int, help="fewer or more of them, 61 at the most")
    parser.add_argument("--build", type=pathlib.Path, default=bench.ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path, default=bench.ROOT / "out/bench",
                        help="pools.md goes to a directory of this CPU's below it")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    table, missing = [], []
    for pool in args.only:
        by_threads = found(pool, args.build, args.rounds)
        if by_threads:
            table += lines(pool, by_threads)
        else:
            missing.append(POOLS[pool])
    if not table:
        print("error: no pool was built: see examples/pools", file=sys.stderr)
        return 1
    head = ["pool", "split", *(title for way in WAYS
                               for title in [f"{way}, µs alone", *(f"{n}" for n in THREADS)])]
    text = (f"Measured {time.strftime('%Y-%m-%d')}, commit {bench.commit()}, on {bench.machine()}\n\n{ABOUT}"
            + f"Not found: {', '.join(missing)}.\n" * bool(missing)
            + f"\n{report.markdown(head, table, text_columns=2)}\n")
    bench.keep(text, "pools.md", args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
