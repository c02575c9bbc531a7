#!/usr/bin/env python3
"""Measures libsplit on thread pools of 1 to 4 threads, compared with libsplit on one thread.

The program bench/pools.c times each pool of examples/pools that has been built. If ONNX Runtime is
installed, its pool is timed with the provider, in sessions of one Split.
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
# Rounds, seconds of warming up, and seconds that are timed; the same as in pools.c.
WAYS = {"back to back": (15, .005, .005), "after a pause": (41, 0, 0),
        "beside a busy thread": (11, .005, .02)}
SHAPES = {"512 KiB": ((64, 2048), 2), "W4": ((8, 4096, 8), 4), "W17": ((16384, 64), 4),
          "W2": ((1, 512, 2304), 3), "16 MiB": ((2048, 2048), 4)}
PAUSE = .05  # seconds until the threads of a session sleep

ABOUT = """\
Times relative to libsplit on one thread without a pool; the two take turns in one process, and the numbers are
medians. Below 1, the pool is faster. "Back to back": calls without a pause; "after a pause": one call after 10 ms, in
which threads stop looking for work; "beside a busy thread": back to back, while another thread computes all the time.
The columns for one thread show the noise. The splits are of float32, along the last axis, into equal pieces; W2, W4
and W17 are those of results.md. Sessions of ONNX Runtime are compared with a session of one thread, after 50 ms; both
include the other costs of a run.
"""

Found = tuple[str, str, float, float]  # shape, way, ns alone, times as long


def of_program(program: pathlib.Path, threads: int, rounds: int | None) -> Iterator[Found]:
    """Measures a pool with pools.c."""
    command = [program, str(threads), *([str(rounds)] if rounds else [])]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    for line in told.stdout.splitlines():
        shape, way, alone, ratio = line.split("\t")
        yield shape, way, float(alone), float(ratio)


def of_onnxruntime(threads: int, given: int | None) -> Iterator[Found]:
    """Measures ONNX Runtime's pool with the provider, in two sessions that take turns."""
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
                for index in range(given or rounds // 2):  # fewer rounds, because the pauses are long
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
    """Returns the nanoseconds per run."""
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
    """Measures a pool with each number of threads; None if the pool does not exist."""
    if pool == "onnxruntime":
        if not importlib.util.find_spec("onnxruntime"):
            return None
        return {threads: list(of_onnxruntime(threads, rounds)) for threads in THREADS}
    program = build / f"examples/pools/time_{pool}"
    if not program.exists():
        return None
    return {threads: list(of_program(program, threads, rounds)) for threads in THREADS}


def lines(pool: str, by_threads: dict[int, list[Found]]) -> list[list[str]]:
    """Returns the lines of the table, one for each shape."""
    ratios = {(shape, way, threads): f"{ratio:.2f}" for threads, all_found in by_threads.items()
              for shape, way, _, ratio in all_found}
    alone = {(shape, way): f"{nanoseconds / 1000:.0f}" for shape, way, nanoseconds, _ in by_threads[1]}
    return [[POOLS[pool], shape, *(cell for way in WAYS for cell in
                                   [alone[shape, way], *(ratios[shape, way, n] for n in THREADS)])]
            for shape in SHAPES]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=list(POOLS), choices=POOLS, help="measure only these pools")
    parser.add_argument("--rounds", type=int, help="the number of rounds, at most 61")
    parser.add_argument("--build", type=pathlib.Path, default=bench.ROOT / "build/release",
                        help="the directory in which CMake has built libsplit and the examples")
    parser.add_argument("--output", type=pathlib.Path, default=bench.ROOT / "out/bench",
                        help="the directory for results; pools.md goes to the directory of this CPU in it")
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
        print("error: no pool has been built: see examples/pools", file=sys.stderr)
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
