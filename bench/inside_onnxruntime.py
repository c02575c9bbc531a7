#!/usr/bin/env python3
"""Measures whole models in ONNX Runtime, with libsplit's provider and without it.

Each session runs in its own process, where the threads of other sessions do not disturb it, and on memory
that was bound before (IOBinding). The sessions take turns, with pauses in which the other's threads go to
sleep. In a turn, a session runs several times, either back to back or, like a program that does other
things too, a millisecond after the last run. Times are medians. Ratios are libsplit's time divided by
that of ONNX Runtime alone, as medians over the rounds: below 1, libsplit is faster. 'Split nodes' is the
sum of the times of all Split nodes in a run. It comes from profiles, which have whole microseconds, so
sums of a few microseconds mean little. Unless libsplit takes all nodes, all outputs are compared bit by bit.

To check that no whole run is slower with libsplit:

    inside_onnxruntime.py --only boxes "of a batch" --check
    inside_onnxruntime.py --held-out 7 --check

Environment: BUILD_DIR, the build directory with the provider, from 'make onnxruntime'; MODELS_DIR, see
models.py.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import hashlib
import json
import multiprocessing
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Iterator

import bench
import models
import numpy as np
import onnxruntime as ort
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release"),
                       "lib/libsplit_onnxruntime.so")
PROVIDER = "LibsplitExecutionProvider"
# Seconds; longer than the threads of a session wait for more work before they go to sleep.
PAUSE = 0.05
# Seconds of a turn; with gaps, a turn takes ten times as long.
TURN = 0.02
# How often the sessions of a whole model are opened again, because addresses in memory affect times, too.
OPENINGS = 3
GAPS = {"back to back": 0.0, "1 ms between": 0.001}

# The name, element type, shape, axis and lengths of each split.
WORKLOADS = [
    ("one decoder row, projected", "float32", (1, 3072), 1, [1024] * 3),
    ("query, key, value in cache", "float32", (1, 512, 2304), 2, [768] * 3),
    ("query, key, value of a batch", "float32", (16, 1024, 3072), 2, [1024] * 3),
    ("two halves of channels", "float32", (1, 128, 80, 80), 1, [64, 64]),
    ("gate and up projection", "float16", (4096, 22016), 1, [11008] * 2),
    ("boxes, objectness, classes", "float32", (100_000, 85), 1, [4, 1, 80]),
    ("colours of a picture", "uint8", (1080, 1920, 3), 2, [1] * 3),
    ("coordinates", "int64", (1_000_000, 2), 1, [1, 1]),
    ("four pairs", "float32", (8, 4096, 8), 2, [2] * 4),
    ("frames", "float32", (64, 512, 512), 0, [1] * 64),
]


ABOUT = """\
The columns: the number of Split nodes that libsplit took; the time of a run by ONNX Runtime alone → with libsplit,
back to back and a millisecond after the last run, and the ratios, below 1 if libsplit is faster, ± half of the
interquartile range; and the same for the sum of all Split nodes. If no node is taken, both ran the same code.
"""


def _devices() -> list:
    return [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]


@dataclasses.dataclass(frozen=True)
class Setup:
    """The parameters of a session."""

    model: bytes
    feeds: dict[str, np.ndarray]
    threads: int
    claim: str | None  # the provider's option; None means without the provider
    profiles: bool = False


class Session:
    """A session with its memory bound, in the process that measures it."""

    def __init__(self, setup: Setup, directory: str):
        options = ort.SessionOptions()
        options.intra_op_num_threads = setup.threads
        options.log_severity_level = 3
        options.enable_profiling = setup.profiles
        options.profile_file_prefix = str(pathlib.Path(directory, "profile"))
        if setup.claim:
            devices = _devices()
            if not devices:
                ort.register_execution_provider_library("libsplit", str(LIBRARY))
                devices = _devices()
            options.add_provider_for_devices(devices, {"claim": setup.claim})
        self.session = ort.InferenceSession(setup.model, options, enable_fallback=0)
        self.feeds = setup.feeds
        self.outputs = self.session.run(None, self.feeds)
        self.binding = self.session.io_binding()
        for name, array in self.feeds.items():
            self._bind(self.binding.bind_input, name, array)
        for meta, output in zip(self.session.get_outputs(), self.outputs):
            output.view(np.uint8 if output.dtype.kind != "O" else output.dtype)[...] = 0
            self._bind(self.binding.bind_output, meta.name, output)
        self.run()

    def _bind(self, function, name: str, array: np.ndarray) -> None:
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        function(name, "cpu", 0, element, array.shape, array.ctypes.data)

    def run(self) -> None:
        self.session.run_with_iobinding(self.binding)

    def digest(self) -> str:
        """Returns a digest of all outputs, including their types and shapes."""
        digest = hashlib.sha256()
        for output in self.outputs:
            digest.update(f"{output.dtype}{output.shape}".encode() + output.tobytes())
        return digest.hexdigest()

    def turn(self, gap: float) -> float:
        """Returns the microseconds per run, as the median of a turn."""
        times: list[int] = []
        self.run()
        end = time.perf_counter() + TURN * (10 if gap else 1)
        while time.perf_counter() < end or len(times) < 3:
            wake = time.perf_counter() + gap
            while time.perf_counter() < wake:
                pass
            start = time.perf_counter_ns()
            self.run()
            times.append(time.perf_counter_ns() - start)
        return statistics.median(times) / 1000

    def splits(self) -> tuple[float, float]:
        """Returns, from the profile, how many Split nodes of a run libsplit took, and the microseconds of
        all Split nodes, as the median of the runs."""
        events = json.loads(pathlib.Path(self.session.end_profiling()).read_text())
        sums, sum_of_run, taken = [], 0, 0
        for event in sorted(events, key=lambda event: event["ts"] + event["dur"]):
            if event["cat"] == "Node" and event.get("args", {}).get("op_name") == "Split":
                sum_of_run += event["dur"]
                taken += event["args"]["provider"] == PROVIDER
            elif event["name"] == "model_run":
                sums.append(sum_of_run)
                sum_of_run = 0
        return taken / len(sums), statistics.median(sums[2:])


def _serve(pipe, setup: Setup) -> None:
    """The process of a session: calls the methods that it receives, until it receives None."""
    with tempfile.TemporaryDirectory() as directory:
        session = Session(setup, directory)
        pipe.send(session.digest())
        for name, arguments in iter(pipe.recv, None):
            pipe.send(getattr(session, name)(*arguments))


class Remote:
    """A session in another process."""

    def __init__(self, setup: Setup):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, setup), daemon=True)
        self.process.start()
        other.close()

    def __enter__(self) -> Remote:
        self.digest = self.pipe.recv()
        return self

    def __exit__(self, *_) -> None:
        self.pipe.send(None)
        self.process.join()

    def ask(self, name: str, *arguments):
        self.pipe.send((name, arguments))
        return self.pipe.recv()


def compare(model: bytes, feeds, threads: int, rounds: int, claim: str, *, nodes: bool,
            openings: int = OPENINGS) -> dict:
    """Returns the columns of a row: whole runs and, if `nodes`, the sums of the Split nodes."""
    row: dict = {}
    times: dict[str, list[tuple[float, float]]] = {gap: [] for gap in GAPS}
    sums = []
    for _ in range(openings):
        with opened(model, feeds, threads, claim, profiles=False) as pair:
            for index in range(max(1, rounds // openings)):
                for gap, seconds in GAPS.items():
                    times[gap].append(in_turn(pair, index, seconds))
        if nodes:
            with opened(model, feeds, threads, claim, profiles=True) as pair:
                for index in range(2):
                    in_turn(pair, index, GAPS["1 ms between"])
                sums.append([remote.ask("splits") for remote in pair])
    for gap, found in times.items():
        ratios = sorted(libsplit / own for own, libsplit in found)
        own, libsplit = map(statistics.median, zip(*found))
        quarter = len(ratios) // 4
        row |= {f"own us, {gap}": own, f"libsplit us, {gap}": libsplit,
                f"ratio, {gap}": statistics.median(ratios),
                f"spread, {gap}": (ratios[-1 - quarter] - ratios[quarter]) / 2}
    if nodes:
        own, libsplit = ([us for _, us in side] for side in zip(*sums))
        row |= {"taken": statistics.median(taken for _, (taken, _) in sums),
                "own nodes us": statistics.median(own), "libsplit nodes us": statistics.median(libsplit),
                "nodes ratio": statistics.median(b / a if a else 1.0 for a, b in zip(own, libsplit))}
    return row


@contextlib.contextmanager
def opened(model: bytes, feeds, threads: int, claim: str, profiles: bool) -> Iterator[list[Remote]]:
    """Opens two sessions, one without libsplit and one with it."""
    pair = [Remote(Setup(model, feeds, threads, given, profiles)) for given in (None, claim)]
    with pair[0], pair[1]:
        # With 'all', the optimizer leaves some models another graph, whose floats are rounded elsewhere.
        if pair[0].digest != pair[1].digest and claim != "all":
            raise SystemExit("error: the outputs with and without libsplit differ")
        yield pair


def in_turn(pair: list[Remote], index: int, gap: float) -> tuple[float, float]:
    """Gives both sessions a turn. Which is first alternates."""
    found = [0.0, 0.0]
    for side in (0, 1) if index % 2 else (1, 0):
        time.sleep(PAUSE)
        found[side] = pair[side].ask("turn", gap)
    return found[0], found[1]


def rows(threads=(1, 2), rounds: int = 5, workloads=WORKLOADS, claim: str = "all") -> Iterator[dict]:
    """Yields a row for each model of one Split and each number of intra-op threads: workload, dtype,
    shape, axis, lengths, bytes, threads, and what `compare` measures."""
    for name, dtype, shape, axis, lengths in workloads:
        x = models.random(shape, dtype)
        model = models.single(dtype, shape, axis, lengths)
        for count in threads:
            yield {"workload": name, "dtype": dtype, "shape": list(shape), "axis": axis,
                   "lengths": list(lengths), "bytes": x.nbytes, "threads": count,
                   **compare(model, {"x": x}, count, rounds, claim, nodes=False, openings=1)}


def whole_models(chosen, names: list[str], threads, rounds: int, claim: str) -> Iterator[dict]:
    """Yields a row for each model whose name contains one of `names`, and each number of threads."""
    for model in chosen:
        if names and not any(name.lower() in model.name.lower() for name in names):
            continue
        data, feeds = model.make(), model.feeds()
        for count in threads:
            yield {"model": model.name, "threads": count,
                   **compare(data, feeds, count, rounds, claim, nodes=True)}


# By how much two runs of the same code may differ, in addition to the spread of their rounds.
NOISE = 0.02


def slower(found: list[dict]) -> list[str]:
    """Returns the whole runs that take longer with libsplit by more than noise."""
    return [f"{row['model']}, {row['threads']} threads, {gap}: "
            f"{row[f'ratio, {gap}']:.2f} ± {row[f'spread, {gap}']:.2f}"
            for row in found for gap in GAPS
            if row[f"ratio, {gap}"] - row[f"spread, {gap}"] > 1 + NOISE]


def in_markdown(row: dict) -> str:
    runs = " | ".join(
        f"{row[f'own us, {gap}']:.0f} → {row[f'libsplit us, {gap}']:.0f} | "
        f"{row[f'ratio, {gap}']:.2f} ± {row[f'spread, {gap}']:.2f}" for gap in GAPS)
    return (f"| {row['model']} | {row['threads']} | {row['taken']:.0f} | {runs} | "
            f"{row['own nodes us']:.0f} → {row['libsplit nodes us']:.0f} | {row['nodes ratio']:.2f} |")


def write(found: list[dict], file: pathlib.Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, found[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="the number of rounds")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="the numbers of intra-op threads")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT",
                        help="measure only models whose name contains one of these")
    parser.add_argument("--claim", choices=["benefit", "all"], default="benefit",
                        help="the provider's option: which nodes it takes")
    parser.add_argument("--held-out", type=int, metavar="SEED",
                        help="measure random models, drawn with this seed, instead of those in models.py")
    parser.add_argument("--output", type=pathlib.Path,
                        help="the directory for results; models.csv and models.md go to the directory of "
                             "this CPU in it. By default, results are only printed")
    parser.add_argument("--check", action="store_true",
                        help="fail if a whole run is slower with libsplit")
    args = parser.parse_args()
    chosen = models.MODELS if args.held_out is None else models.held_out(args.held_out)
    head = [f"ONNX Runtime {ort.__version__}, claim={args.claim}", "",
            "| model | threads | taken | run, µs | × own | 1 ms between | × own | Split nodes, µs | × own |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    print("\n".join(head))
    found = []
    for row in whole_models(chosen, args.only, args.threads, args.rounds, args.claim):
        found.append(row)
        print(in_markdown(row), flush=True)
    if not found:
        raise SystemExit(f"error: no model's name contains any of {args.only}")
    if args.output:
        title = f"Measured {time.strftime('%Y-%m-%d')}, commit {bench.commit()}, on {bench.machine()}"
        directory = args.output / bench.cpu()
        write(found, directory / "models.csv")
        (directory / "models.md").write_text(
            "\n".join([title, "", *head, *map(in_markdown, found), "", ABOUT]), encoding="utf-8")
        print(f"This table is in {directory}.")
    if args.check:
        late = slower(found)
        print("\n".join(["slower with libsplit:", *late]) if late else "no whole run is slower")
        raise SystemExit(bool(late))


if __name__ == "__main__":
    main()
