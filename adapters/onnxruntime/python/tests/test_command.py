"""python -m libsplit_onnxruntime.rewrite: what it prints, and what it does to files."""

from __future__ import annotations

import contextlib
import io
import pathlib
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from libsplit_onnxruntime.rewrite.__main__ import main
from models import assert_same_results, bits, by_onnxruntime, operators, pieces_model, sample, value
from onnx import helper

NUMBERS = sample([7, 3])


@dataclass
class Done:
    code: int
    output: str
    error: str


def run(*arguments: object) -> Done:
    """Runs the command in this process, which is faster than starting one each time."""
    output, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(error):
        code = main([str(argument) for argument in arguments])
    return Done(code, output.getvalue(), error.getvalue())


def fails(done: Done, *messages: str) -> None:
    assert (done.code, done.output) == (1, "")
    assert done.error.startswith("error: ")
    for message in messages:
        assert message in done.error


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "model.onnx"
    onnx.save(pieces_model([7, 3], [3, 4], [0, 1]), path)
    return path


def test_a_model_is_rewritten(path: pathlib.Path) -> None:
    out = path.with_name("out.onnx")
    before = onnx.load(path)
    done = run(path, out)
    assert (done.code, done.error) == (0, "")
    assert done.output.splitlines() == [
        "pieces: Split of axis 0 into 3, 4",
        f"{out}: 1 of 1 SplitToSequence rewritten",
    ]
    assert onnx.load(path) == before
    assert_same_results(before, onnx.load(out), {"x": NUMBERS})
    assert sorted(file.name for file in path.parent.iterdir()) == ["model.onnx", "out.onnx"]


def test_a_model_may_be_overwritten(path: pathlib.Path) -> None:
    """The command runs in the model's directory, and its arguments name no directory."""
    command = [sys.executable, "-m", "libsplit_onnxruntime.rewrite", "model.onnx", "model.onnx"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=path.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("model.onnx: 1 of 1 SplitToSequence rewritten\n")
    assert operators(onnx.load(path).graph) == ["Constant", "Split"]


def test_both_models_are_run(path: pathlib.Path) -> None:
    inputs = path.with_name("inputs.npz")
    np.savez(inputs, x=NUMBERS)
    done = run(path, path, "--run", inputs)
    assert (done.code, done.error) == (0, "")
    assert "both models run: 2 outputs, all identical" in done.output


def test_a_declared_shape_that_is_wrong_is_found_by_running(tmp_path: pathlib.Path) -> None:
    path, out, inputs = (tmp_path / name for name in ["in.onnx", "out.onnx", "inputs.npz"])
    proto = pieces_model([7, 3], 3, [0], declared=["N", 3])
    proto.graph.node.insert(0, helper.make_node("Neg", ["x"], ["n"]))
    proto.graph.node[1].input[0] = "n"
    proto.graph.value_info.append(value("n", [8, 3]))  # it is 7
    onnx.save(proto, path)
    np.savez(inputs, x=NUMBERS)
    done = run(path, out, "--trust-shapes", "--run", inputs)
    fails(done, f"onnxruntime on {out}.part: ")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.onnx", "inputs.npz"]


def test_inputs_that_do_not_fit(path: pathlib.Path) -> None:
    inputs = path.with_name("inputs.npz")
    np.savez(inputs, y=NUMBERS)
    fails(run(path, path, "--run", inputs), f"onnxruntime on {path}: ", "x")


def test_files_that_are_no_models(tmp_path: pathlib.Path) -> None:
    (tmp_path / "text").write_text("no model at all\n")
    fails(run(tmp_path / "text", tmp_path / "out"), f"{tmp_path}/text is not an ONNX model")
    fails(run(tmp_path / "none", tmp_path / "out"), f"{tmp_path}/none")
    fails(run(tmp_path, tmp_path / "out"), "directory")


def test_a_directory_that_is_not_there(path: pathlib.Path) -> None:
    fails(run(path, path.parent / "none" / "out.onnx"), "none/out.onnx")


def test_a_model_that_is_not_right(path: pathlib.Path) -> None:
    proto = onnx.load(path)
    proto.graph.node.append(helper.make_node("Neg", ["nothing"], ["z"]))
    onnx.save(proto, path)
    out = path.with_name("out.onnx")
    fails(run(path, out), "ONNX's checker", "--no-check", "nothing")
    assert not out.exists()
    assert run(path, out, "--no-check").code == 0
    assert operators(onnx.load(out).graph) == ["Constant", "Split", "Neg"]


def test_outputs_without_a_shape_are_no_reason_to_refuse(path: pathlib.Path) -> None:
    """ONNX's checker requires shapes, but runtimes do not."""
    proto = onnx.load(path)
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    onnx.save(proto, path)
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(str(path))
    out = path.with_name("out.onnx")
    assert run(path, out).code == 0
    assert "Split" in operators(onnx.load(out).graph)


def test_what_lacks_a_shape_is_named(path: pathlib.Path) -> None:
    proto = onnx.load(path)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(proto, path)
    fails(run(path, path.with_name("out.onnx")), "Field 'shape'", "without a shape: x")


def save_external(path: pathlib.Path) -> None:
    """Every constant is in a file beside the model, including a large one that is not needed."""
    proto = pieces_model([7, 3], 3, [0, -1])
    weights = onnx.numpy_helper.from_array(sample([7, 3]), "weights")
    proto.graph.initializer.append(weights)
    proto.graph.node.insert(0, helper.make_node("Max", ["x", "weights"], ["m"]))
    proto.graph.node[1].input[0] = "m"
    onnx.save(proto, path, save_as_external_data=True, location="model.data", size_threshold=0)


def test_external_data_beside_the_model(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    save_external(path)
    data = (tmp_path / "model.data").read_bytes()
    assert run(path, tmp_path / "out.onnx").code == 0
    assert (tmp_path / "model.data").read_bytes() == data
    kept = onnx.load(path, load_external_data=False).graph.initializer[-1]
    (weights,) = onnx.load(tmp_path / "out.onnx", load_external_data=False).graph.initializer
    assert weights == kept
    numbers = {"x": np.zeros([7, 3], np.float32)}
    expected = by_onnxruntime(onnx.load(path), numbers)
    assert bits(by_onnxruntime(onnx.load(tmp_path / "out.onnx"), numbers)) == bits(expected)


def test_external_data_that_tells_the_extent(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    proto = pieces_model([7, 3], 3, [0, -1])
    proto.graph.node.insert(0, helper.make_node("Reshape", ["x", "shape"], ["r"]))
    proto.graph.node[1].input[0] = "r"
    shape = onnx.numpy_helper.from_array(np.array([3, 7]), "shape")
    proto.graph.initializer.append(shape)
    onnx.save(proto, path, save_as_external_data=True, location="data", size_threshold=0)
    assert run(path, path).output.startswith("pieces: Split of axis 0 into 3\n")


def test_external_data_comes_along(tmp_path: pathlib.Path) -> None:
    path, other = tmp_path / "model.onnx", tmp_path / "other"
    other.mkdir()
    save_external(path)
    for _ in range(2):  # what is there already may stay
        assert run(path, other / "out.onnx").code == 0
    assert (other / "model.data").read_bytes() == (tmp_path / "model.data").read_bytes()
    onnx.checker.check_model(str(other / "out.onnx"), full_check=True)
    assert "Split" in operators(onnx.load(other / "out.onnx").graph)


def test_external_data_of_others_is_not_overwritten(tmp_path: pathlib.Path) -> None:
    path, other = tmp_path / "model.onnx", tmp_path / "other"
    other.mkdir()
    save_external(path)
    (other / "model.data").write_text("another model's")
    fails(run(path, other / "out.onnx"), "model.data", "write to another directory")
    assert (other / "model.data").read_text() == "another model's"
    assert not (other / "out.onnx").exists()


def test_external_data_that_is_missing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    save_external(path)
    (tmp_path / "model.data").unlink()
    fails(run(path, tmp_path / "out.onnx"), "model.data")


def test_more_than_2_gb(tmp_path: pathlib.Path) -> None:
    path, data = tmp_path / "model.onnx", tmp_path / "weights"
    rows = 2**31 // 4
    proto = pieces_model([7, 3], 3, [0, -1])
    weights = proto.graph.initializer.add(name="weights", data_type=1, dims=[rows, 1])
    weights.external_data.add(key="location", value="weights")
    weights.data_location = onnx.TensorProto.EXTERNAL
    proto.graph.node.add(op_type="Shape", input=["weights"], output=["shape"])
    path.write_bytes(proto.SerializeToString())
    with data.open("wb") as file:
        file.truncate(rows * 4)  # takes no room on the disk
    assert run(path, path).code == 0
    after = onnx.load(path, load_external_data=False)
    assert operators(after.graph) == ["Constant", "Split", "Shape"]
    assert after.graph.initializer[:] == [weights]
