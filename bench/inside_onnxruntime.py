#!/usr/bin/env python3
"""Measures Split inside ONNX Runtime: its own kernel against libsplit's provider.

Both sessions run the same model with the same options on the same memory, bound before (IOBinding),
in rounds in which they take turns. Times are medians of the rounds; 'faster' is the median of the
rounds' ratios, above 1 where libsplit is ahead. Outputs are compared with NumPy's slices.

Environment: BUILD_DIR, where 'make onnxruntime' has put the provider.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import time
from collections.abc import Iterator

import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release"),
                       "lib/libsplit_onnxruntime.so")
PROVIDER = "LibsplitExecutionProvider"
TURN_NS = 2_000_000

# Name, element type, shape, axis, lengths.
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


def rows(threads=(1, 2), rounds: int = 15, workloads=WORKLOADS) -> Iterator[dict]:
    """One for each workload and number of intra-op threads: workload, dtype, shape, axis, lengths,
    bytes, threads, onnxruntime_us, libsplit_us, faster."""
    name = "libsplit bench"
    ort.register_execution_provider_library(name, str(LIBRARY))
    try:
        devices = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
        for workload in workloads:
            for count in threads:
                yield measure(workload, devices, count, rounds)
    finally:
        ort.unregister_execution_provider_library(name)


def measure(workload, devices, threads: int, rounds: int) -> dict:
    name, dtype, shape, axis, lengths = workload
    random = np.random.default_rng(0)
    size = np.prod(shape) * np.dtype(dtype).itemsize
    x = random.integers(0, 256, size, np.uint8).view(dtype).reshape(shape)
    outputs = [np.zeros((*shape[:axis], length, *shape[axis + 1:]), dtype) for length in lengths]
    model = split_model(dtype, shape, axis, lengths)
    competitors = [Competitor(model, given, threads, x, outputs) for given in ([], devices)]
    for competitor in competitors:
        competitor.check(x, axis, lengths)
    times = [[competitor.turn() for competitor in competitors] for _ in range(rounds)]
    own, libsplit = (statistics.median(column) for column in zip(*times))
    return {
        "workload": name, "dtype": dtype, "shape": list(shape), "axis": axis,
        "lengths": list(lengths), "bytes": x.nbytes, "threads": threads,
        "onnxruntime_us": own / 1000, "libsplit_us": libsplit / 1000,
        "faster": statistics.median(own / libsplit for own, libsplit in times),
    }


def split_model(dtype, shape, axis, lengths) -> bytes:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    names = [f"piece_{i}" for i in range(len(lengths))]
    graph = helper.make_graph(
        [helper.make_node("Split", ["x", "lengths"], names, axis=axis)], "split",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info(name, element, None) for name in names],
        [numpy_helper.from_array(np.array(lengths, np.int64), "lengths")])
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString()


class Competitor:
    """A session with its memory bound, and how often to run it so that a turn can be timed."""

    def __init__(self, model: bytes, devices, threads: int, x, outputs):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        if devices:
            options.add_provider_for_devices(devices, {})
        self.session = ort.InferenceSession(model, options)
        self.outputs = outputs
        self.binding = self.session.io_binding()
        bind = (("x", x, self.binding.bind_input),)
        bind += tuple((meta.name, output, self.binding.bind_output)
                      for meta, output in zip(self.session.get_outputs(), outputs))
        for name, array, function in bind:
            element = helper.np_dtype_to_tensor_dtype(array.dtype)
            function(name, "cpu", 0, element, array.shape, array.ctypes.data)
        self.run()
        start = time.perf_counter_ns()
        self.run()
        self.calls = max(1, TURN_NS // max(1, time.perf_counter_ns() - start))

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def check(self, x, axis: int, lengths):
        for output in self.outputs:
            output.view(np.uint8)[...] = 0xA5
        self.run()
        for output, piece in zip(self.outputs, np.split(x, np.cumsum(lengths)[:-1], axis)):
            if output.tobytes() != piece.tobytes():
                raise SystemExit("error: an output is not what NumPy's slice is")

    def turn(self) -> float:
        """Nanoseconds a run."""
        self.run()
        start = time.perf_counter_ns()
        for _ in range(self.calls):
            self.run()
        return (time.perf_counter_ns() - start) / self.calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    print(f"ONNX Runtime {ort.__version__}")
    print(f"{'Split of':<30} {'type':<8} {'MiB':>7} {'threads':>7} {'its own us':>11} "
          f"{'libsplit us':>11} {'faster':>7}")
    for row in rows(args.threads, args.rounds):
        print(f"{row['workload']:<30} {row['dtype']:<8} {row['bytes'] / 2**20:>7.2f} "
              f"{row['threads']:>7} {row['onnxruntime_us']:>11.1f} {row['libsplit_us']:>11.1f} "
              f"{row['faster']:>6.2f}x", flush=True)


if __name__ == "__main__":
    main()
