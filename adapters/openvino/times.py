"""Prints the times of splits in OpenVINO's CPU plugin, without and with the extension.

Usage: times.py EXTENSION [THREADS]

Both take turns in one process. 'Inside' a model means between two other operators: there OpenVINO
may make a split without a copy, which an extension cannot.
"""

import platform
import statistics
import sys
import tempfile
import time

import numpy as np
import openvino
from openvino import Model, Tensor, Type, opset13

ROUNDS = 21
# OpenVINO's issue 24288: 96 pieces.
MANY = [1] * 8 + [10] + [1] * 15 + [30] * 3 + [1] * 8 + [30] + [1] * 41 + [30, 1, 30] + [1] * 16
CASES = [
    ("picture into its colours", [2160, 3840, 3], 2, [1, 1, 1], Type.u8, False),
    ("columns by four", [262144, 12], 1, [4, 4, 4], Type.f32, False),
    ("Q, K, V of 128 tokens", [1, 128, 2304], 2, [768] * 3, Type.f32, False),
    ("Q, K, V of one token", [1, 1, 2304], 2, [768] * 3, Type.f32, False),
    ("96 pieces", [256, sum(MANY), 81], 1, MANY, Type.f32, False),
    ("rows", [4096, 4096], 0, [1000, 3096], Type.f32, False),
    ("rows, inside a model", [4096, 4096], 0, [1000, 3096], Type.f32, True),
    ("Q, K, V of 128 tokens, inside a model", [1, 128, 2304], 2, [768] * 3, Type.f32, True),
]


def make(shape, axis, lengths, element, inside):
    data = opset13.parameter(shape, element)
    before = opset13.relu(data) if inside else data
    split = opset13.variadic_split(before, opset13.constant(axis), opset13.constant(lengths))
    return Model([opset13.result(opset13.relu(output) if inside else output)
                  for output in split.outputs()], [data])


def request_of(core, model, tensor):
    with tempfile.TemporaryDirectory() as directory:
        openvino.serialize(model, f"{directory}/model.xml")
        model = core.read_model(f"{directory}/model.xml")
        request = core.compile_model(model, "CPU").create_infer_request()
    request.set_input_tensor(tensor)
    request.infer()
    return request


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if "model name" in line),
                    platform.machine())


def main(extension, threads=1):
    cores = [openvino.Core(), openvino.Core()]
    cores[1].add_extension(extension)
    for core in cores:
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads,
                                  "INFERENCE_PRECISION_HINT": "f32"})
    print(f"OpenVINO {openvino.__version__}, {cpu()}, threads: {threads}; milliseconds a run, "
          f"median of {ROUNDS}. Made by times.py.\n")
    print("| split | OpenVINO | libsplit |\n| --- | --- | --- |")
    for name, shape, axis, lengths, element, inside in CASES:
        array = np.ones(shape, element.to_dtype())
        requests = [request_of(core, make(shape, axis, lengths, element, inside),
                               Tensor(array, shared_memory=True)) for core in cores]
        times = [[], []]
        for _ in range(ROUNDS):
            for request, taken in zip(requests, times):
                start = time.perf_counter()
                request.infer()
                taken.append(time.perf_counter() - start)
        told = " | ".join(f"{statistics.median(taken) * 1e3:.3f}" for taken in times)
        print(f"| {name} | {told} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
