"""Tests the extension inside OpenVINO's CPU plugin, against NumPy; 'make openvino' runs it.

Environment: LIBSPLIT_OPENVINO, the extension.
"""

import io
import os
import pathlib
import sys
import tempfile
from contextlib import redirect_stdout

import numpy as np
import openvino
import pytest
from onnx import TensorProto, helper
from openvino import Dimension, PartialShape, Tensor, Type, opset13

ADAPTER = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ADAPTER))
import table  # noqa: E402
from table import model_of, onnx_split, outputs_of, split, variadic_split  # noqa: E402

EXTENSION = os.environ["LIBSPLIT_OPENVINO"]


def names(model):
    return [node.get_type_name() for node in model.get_ops()]


def written_and_read(core, model, directory):
    openvino.serialize(model, directory / "model.xml")
    return core.read_model(directory / "model.xml")


def assert_splits(core, model, array, lengths, axis, *inputs):
    request, outputs = outputs_of(core, model, Tensor(array), *inputs)
    expected = np.split(array, np.cumsum(lengths)[:-1], axis)
    assert len(outputs) == len(expected)
    for output, piece in zip(outputs, expected):
        assert output.data.dtype == piece.dtype
        np.testing.assert_array_equal(output.data, piece)


def test_the_committed_table_is_what_runs_give():
    printed = io.StringIO()
    with redirect_stdout(printed):
        table.main(EXTENSION)
    assert (ADAPTER / "table.md").read_text(encoding="utf-8") == printed.getvalue()


def test_libsplit_computes_them(core, tmp_path):
    for model in (variadic_split([6], [2, -1]), split([6], 3)):
        assert "LibsplitSplit" in names(written_and_read(core, model, tmp_path))
    model = core.read_model(onnx_split(13, [6], 2, [2, 4]).SerializeToString())
    assert "LibsplitSplit" in names(model)


def test_random_shapes_axes_and_lengths(core):
    random = np.random.default_rng(2)
    for _ in range(40):
        rank = int(random.integers(1, 6))
        axis = int(random.integers(rank))
        lengths = [int(length) for length in random.integers(0, 6, random.integers(1, 7))]
        shape = [int(extent) for extent in random.integers(1, 7, rank)]
        shape[axis] = sum(lengths)
        array = random.standard_normal(shape).astype("f4")
        given = axis - rank if random.integers(2) else axis
        assert_splits(core, variadic_split(shape, lengths, axis=given), array, lengths, axis)
        assert_splits(core, onnx_split(13, shape, len(lengths), lengths, axis=given), array,
                      lengths, axis)


def test_extents_that_change_from_run_to_run(core, tmp_path):
    model = written_and_read(core, variadic_split([-1, -1], [1, -1, 2], axis=1), tmp_path)
    assert [str(output.partial_shape) for output in model.outputs] == ["[?,1]", "[?,?]", "[?,2]"]
    request = core.compile_model(model, "CPU").create_infer_request()
    for shape in ([2, 5], [3, 9], [1, 3], [2, 5]):
        array = np.random.default_rng(3).standard_normal(shape).astype("f4")
        request.infer([array])
        for index, piece in enumerate(np.split(array, [1, shape[1] - 2], 1)):
            np.testing.assert_array_equal(request.get_output_tensor(index).data, piece)


def shapes_of(core, make, shape):
    """As shape inference has them when the model is read; None: it is refused."""
    try:
        with tempfile.TemporaryDirectory() as directory:
            read = written_and_read(core, make(PartialShape(shape)), pathlib.Path(directory))
            return [output.partial_shape for output in read.outputs]
    except RuntimeError:
        return None


def random_dimension(random):
    low = int(random.integers(0, 9))
    kinds = [Dimension(low), Dimension(), Dimension(low, low + int(random.integers(1, 12))),
             Dimension(low, -1)]
    return kinds[random.integers(len(kinds))]


def test_bounds_are_those_of_openvino_or_narrower(core):
    """For each extent within the bounds, OpenVINO's own answer on that extent lies within ours, and
    ours within its own on the bounds."""
    own, random, seen = openvino.Core(), np.random.default_rng(5), 0
    for _ in range(60):
        rank = int(random.integers(1, 4))
        axis = int(random.integers(rank))
        shape = [random_dimension(random) for _ in range(rank)]
        parts = int(random.integers(1, 5))
        lengths = [int(length) for length in random.integers(0, 5, parts)]
        if random.integers(2):
            lengths[random.integers(parts)] = -1
        given = axis - rank if random.integers(2) else axis
        make = ((lambda shape: split(shape, parts, axis=given)) if random.integers(2) else
                (lambda shape: variadic_split(shape, lengths, axis=given)))
        ours, theirs = shapes_of(core, make, shape), shapes_of(own, make, shape)
        if theirs is None:
            continue
        can_be = False
        extent = shape[axis]
        most = extent.get_max_length()
        most = most if most >= 0 else extent.get_min_length() + 12
        for one in range(extent.get_min_length(), most + 1):
            static = list(shape)
            static[axis] = Dimension(one)
            exact = shapes_of(own, make, static)
            # OpenVINO takes lengths that are too long for a -1, which libsplit refuses.
            lengths_of_one = [piece[axis] for piece in exact or []]
            if (not lengths_of_one or any(length.is_dynamic for length in lengths_of_one)
                    or sum(length.get_length() for length in lengths_of_one) != one):
                continue
            can_be = True
            for ours_piece, piece in zip(ours, exact, strict=True):
                assert contains(ours_piece[axis], piece[axis])
        if not can_be:
            continue
        seen += 1
        for piece, theirs_piece in zip(ours, theirs, strict=True):
            assert all(map(contains, theirs_piece, piece))
            assert [d for i, d in enumerate(piece) if i != axis] == [
                d for i, d in enumerate(theirs_piece) if i != axis]
    assert seen > 20


def contains(outer, inner):
    """Whether all extents of one dimension are the other's too."""
    infinite = 2**62
    most = lambda dimension: infinite if dimension.get_max_length() < 0 else dimension.get_max_length()
    return outer.get_min_length() <= inner.get_min_length() and most(inner) <= most(outer)


@pytest.mark.parametrize("bounds, parts, expected", [
    ((9, 10), 3, ["3..4", "3..4", "..4"]),
    ((9, 12), 3, ["3..4", "3..4", "..4"]),
    ((7, 7), 3, ["3", "3", "1"]),
    ((4, 30), 2, ["2..15", "..15"]),
    ((4, -1), 2, ["2..", "?"]),
])
def test_bounds_of_onnx_s_equal_parts(core, bounds, parts, expected):
    """The last part does not grow with the extent: 3, 3, 3 of 9 and 4, 4, 2 of 10."""
    model = core.read_model(onnx_split(18, ["n"], parts, num_outputs=parts).SerializeToString())
    model.reshape(PartialShape([Dimension(*bounds)]))
    found = [output.partial_shape[0] for output in model.outputs]
    low, high = bounds
    for extent in range(low, (high if high >= 0 else low + 20) + 1):
        piece = -(-extent // parts)
        lengths = [piece] * (parts - 1) + [extent - piece * (parts - 1)]
        for dimension, length in zip(found, lengths):
            assert contains(dimension, Dimension(length))
    assert [str(dimension) for dimension in found] == expected


def test_symbols_of_dimensions_are_kept(core):
    model = core.read_model(onnx_split(13, ["n", 6], 2, [2, 4], axis=1).SerializeToString())
    shape = model.inputs[0].partial_shape
    batch = shape[0]
    symbol = openvino.Symbol()
    batch.set_symbol(symbol)
    model.get_parameters()[0].set_partial_shape(PartialShape([batch, Dimension(6)]))
    model.validate_nodes_and_infer_types()
    for output in model.outputs:
        assert output.partial_shape[0].get_symbol() == symbol


@pytest.mark.parametrize("shape, axis", [([6], 0), (["n"], 0), ([2, 6], 1), ([2, 6, 3], -2), (["a", "b"], 1)])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_as_many_equal_parts_as_outputs(core, shape, axis, parts):
    model = onnx_split(13, shape, parts, axis=axis)
    extents = {"n": 6, "a": 2, "b": 6}
    array = np.random.default_rng(6).random([extents.get(extent, extent) for extent in shape], np.float32)
    lengths = [array.shape[axis] // parts] * parts
    assert_splits(core, model, array, lengths, axis)


def test_equal_parts_within_a_model(core, tmp_path):
    """The parts go to other nodes, one of them is not used, and the model is saved before it is compiled."""
    nodes = [helper.make_node("Split", ["x"], ["a", "b", "c"], axis=1),
             helper.make_node("MatMul", ["a", "w"], ["m"]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("Concat", ["r", "m"], ["y"], axis=1)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "graph", [info("x", TensorProto.FLOAT, ["n", 6])],
                              [info("y", TensorProto.FLOAT, None)],
                              [helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [0, 1, 1, 0])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    read = core.read_model(model.SerializeToString())
    array = np.arange(12, dtype="f4").reshape(2, 6)
    for one in read, written_and_read(core, read, tmp_path):
        compiled = core.compile_model(one, "CPU")
        np.testing.assert_array_equal(compiled(array)[0], array[:, [4, 5, 1, 0]])


@pytest.mark.parametrize("element, kind", [
    ("FLOAT8E4M3FN", "f8e4m3"), ("FLOAT8E5M2", "f8e5m2"), ("UINT4", "u4"), ("INT4", "i4"),
])
@pytest.mark.parametrize("given", [{"lengths": [2, 6]}, {"num_outputs": 2}])
def test_types_that_openvino_has_and_onnx_split_does_not(core, element, kind, given):
    model = onnx_split(18, [8], 2, element=element, **given)
    data = Tensor(getattr(Type, kind), openvino.Shape([8]))
    bits = data.data.view(np.uint8).reshape(-1)
    bits[:] = np.arange(1, bits.size + 1)
    for cores in (openvino.Core(), core):
        request, outputs = outputs_of(cores, model, data)
        found = [output.data.view(np.uint8).reshape(-1) for output in outputs]
        np.testing.assert_array_equal(np.concatenate(found), bits)


def test_an_empty_name_is_an_absent_input(core):
    model = onnx_split(18, [6], 2, num_outputs=2)
    model.graph.node[0].input.append("")
    assert_splits(core, model, np.arange(6, dtype="f4"), [3, 3], 0)


def test_large_tensors_on_many_threads(core):
    array = np.random.default_rng(4).integers(0, 256, (1500, 2000, 3), dtype="u1")
    assert_splits(core, variadic_split(array.shape, [1, 1, 1], Type.u8, 2), array, [1, 1, 1], 2)


def test_many_requests_at_once(core):
    model = core.compile_model(variadic_split([64, 30], [10, 15, 5], axis=1), "CPU")
    arrays = [np.full((64, 30), index, "f4") for index in range(32)]
    queue = openvino.AsyncInferQueue(model, 8)
    found = {}
    queue.set_callback(lambda request, index: found.__setitem__(
        index, [request.get_output_tensor(piece).data.copy() for piece in range(3)]))
    for index, array in enumerate(arrays):
        queue.start_async([array], index)
    queue.wait_all()
    for index, array in enumerate(arrays):
        for piece, expected in zip(found[index], np.split(array, [10, 25], 1)):
            np.testing.assert_array_equal(piece, expected)


def test_an_ir_that_was_saved_with_it_is_read_again(core, tmp_path):
    model = core.read_model(onnx_split(18, ["n"], 3, num_outputs=3).SerializeToString())
    assert_splits(core, model, np.arange(7, dtype="f4"), [3, 3, 1], 0)
    openvino.serialize(model, tmp_path / "saved.xml")
    with pytest.raises(RuntimeError, match="LibsplitSplit"):
        openvino.Core().read_model(tmp_path / "saved.xml")


def test_an_axis_that_the_model_computes_is_openvino_s(core, tmp_path):
    data, axis = opset13.parameter([2, 6], Type.f32), opset13.parameter([], Type.i64)
    for split in (opset13.split(data, axis, 2),
                  opset13.variadic_split(data, axis, opset13.constant([2, 2]))):
        model = written_and_read(core, model_of([data, axis], split), tmp_path)
        assert "LibsplitSplit" not in names(model)


@pytest.mark.parametrize("message, model", [
    ("the sum of split_lengths without the -1 is 7, .*: make the lengths smaller",
     lambda: variadic_split([-1], [4, -1, 3])),
    ("the sum of split is 5, but", lambda: onnx_split(13, [6], 2, [2, 3])),
    ("equal parts", lambda: split([-1], 4)),
    ("only in VariadicSplit may one be -1", lambda: onnx_split(13, [6], 2, [-1, 7])),
    ("num_outputs is 4: an extent of 5 would give 3 parts of 2 and a last one of -1; use fewer, or lengths",
     lambda: onnx_split(18, [5], 4, num_outputs=4)),
    ("num_splits is 4, but OpenVINO Split-1 cannot divide", lambda: split([-1], 4)),
    ("element type u1", lambda: variadic_split([6], [2, 4], Type.u1)),
])
def test_errors_are_in_libsplit_s_words(core, message, model):
    with pytest.raises(RuntimeError, match=message) as raised:
        outputs_of(core, model(), Tensor(np.zeros(6, "f4")))
    for word in "params", "libsplit_", "LIBSPLIT_", "NULL", "all-zero":
        assert word not in str(raised.value)


def test_a_failed_run_is_followed_by_a_good_one(core, tmp_path):
    model = written_and_read(core, variadic_split([-1], [2, 4]), tmp_path)
    request = core.compile_model(model, "CPU").create_infer_request()
    with pytest.raises(RuntimeError, match="add up"):
        request.infer([np.zeros(7, "f4")])
    request.infer([np.arange(6, dtype="f4")])
    assert request.get_output_tensor(1).data.tolist() == [2, 3, 4, 5]
