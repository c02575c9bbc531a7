"""Tests splits of shapes: what OpenVINO knows of their values must pass through, because other nodes' shapes
depend on it.

Environment: LIBSPLIT_OPENVINO, the extension.
"""

import os
import pathlib
import sys

import numpy as np
import openvino
import pytest
from onnx import TensorProto, helper, numpy_helper
from openvino import Dimension, Model, PartialShape, Symbol, Type
from openvino import opset13 as ops

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
EXTENSION = os.environ["LIBSPLIT_OPENVINO"]


@pytest.fixture(scope="module")
def cores():
    """OpenVINO alone, and with libsplit."""
    cores = [openvino.Core(), openvino.Core()]
    cores[1].add_extension(EXTENSION)
    return cores


@pytest.fixture
def read(cores, tmp_path):
    """Reads a model, which may be one of ONNX, with both, and gives the dimensions of its inputs these symbols."""

    def as_read(core, model):
        if isinstance(model, Model):
            openvino.serialize(model, tmp_path / "model.xml")
            return core.read_model(tmp_path / "model.xml")
        return core.read_model(model.SerializeToString())

    def of_both(model):
        own, ours = (as_read(core, model) for core in cores)
        assert "LibsplitSplit" in [node.get_type_name() for node in ours.get_ops()]
        for inputs in zip(own.get_parameters(), ours.get_parameters(), strict=True):
            rank = range(len(inputs[0].partial_shape))
            symbols = [Symbol() for _ in rank]
            for node in inputs:
                shape = [node.partial_shape[axis] for axis in rank]
                for dimension, symbol in zip(shape, symbols):
                    dimension.set_symbol(symbol)
                node.set_partial_shape(PartialShape(shape))
        for model in (own, ours):
            model.validate_nodes_and_infer_types()
        return own, ours

    return of_both


def values(shape):
    """The bounds and the symbols of all dimensions; symbols by which of the others they are equal to."""
    return [(dimension.get_min_length(), dimension.get_max_length(), dimension.get_symbol())
            for dimension in shape]


def assert_same_knowledge(own, ours):
    for output, expected in zip(ours.outputs, own.outputs, strict=True):
        assert values(output.partial_shape) == values(expected.partial_shape)


def assert_same_results(cores, models, *arrays):
    results = []
    for core, model in zip(cores, models):
        request = core.compile_model(model, "CPU").create_infer_request()
        request.infer(list(arrays))
        results.append([request.get_output_tensor(i).data.copy() for i in range(len(model.outputs))])
    for ours, own in zip(results[1], results[0], strict=True):
        np.testing.assert_array_equal(ours, own)


def constant(numbers, kind=np.int64):
    return ops.constant(np.array(numbers, kind))


def pieces(lengths=(1, 1, 2), shape=(-1, 8, 8, 8)):
    x = ops.parameter(PartialShape(list(shape)), Type.f32)
    return x, ops.variadic_split(ops.shape_of(x), constant(0), constant(list(lengths))).outputs()


def group_convolution():
    x, (_, groups, _) = pieces()
    weights = ops.constant(np.ones(72, np.float32))
    weights = ops.reshape(weights, ops.concat([groups, constant([1, 1, 3, 3])], 0), False)
    return Model([ops.group_convolution(x, weights, [1, 1], [0, 0], [0, 0], [1, 1])], [x])


def reshape():
    x, (batch, channels, rest) = pieces()
    return Model([ops.reshape(x, ops.concat([rest, channels, batch], 0), False)], [x])


def broadcast():
    x, (batch, channels, rest) = pieces()
    return Model([ops.broadcast(constant([1.0], np.float32), ops.concat([channels, batch, rest], 0))], [x])


def slices():
    x, (_, channels, rest) = pieces()
    half = ops.divide(channels, constant([2]))
    return Model([ops.slice(x, constant([0]), half, constant([1]), constant([1])),
                  ops.slice(x, constant([0, 0]), rest, constant([1, 1]), constant([2, 3]))], [x])


def one_of_four():
    x = ops.parameter(PartialShape([-1, 8, 8, 8]), Type.f32)
    first, *others = ops.split(ops.shape_of(x), constant(0), 4).outputs()
    return Model([ops.reshape(x, ops.concat([first, constant([-1]), others[2]], 0), False)], [x])


def twice():
    x, (_, *rest) = pieces((1, 3))
    inner = ops.variadic_split(rest[0], constant(0), constant([2, 1])).outputs()
    return Model([ops.reshape(x, ops.concat([constant([-1]), inner[1]], 0), False)], [x])


def lengths(make):
    x = ops.parameter(PartialShape([-1, 12]), Type.f32)
    more = ops.parameter(PartialShape([-1, 3]), Type.f32)
    split = ops.variadic_split(x, constant(1), make(more))
    return Model([ops.result(ops.relu(output)) for output in split.outputs()], [x, more])


def joined(_):
    return ops.concat([constant([2]), constant([3, -1])], 0)


def converted(_):
    return ops.convert(constant([2, 3, 7], np.int32), "i64")


def added(_):
    return ops.add(constant([1, 1, 1]), constant([3, 3, 3]))


def of_a_shape(more):
    columns = ops.gather(ops.shape_of(more), constant([1]), constant(0))
    return ops.concat([columns, constant([2, -1])], 0)


def unsigned(_):
    return ops.convert(constant([2, 3, 7], np.int64), "i32")


def of_onnx(opset, given):
    """Shape, Split, and a Reshape of one piece with a constant."""
    options = {"split": [1, 3]} if given and opset < 13 else {}
    inputs = ["s", "lengths"] if given and opset >= 13 else ["s"]
    if not given:
        options = {"num_outputs": 2}
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Split", inputs, ["n", "c"], **options),
             helper.make_node("Concat", ["c", "n"], ["t"], axis=0), helper.make_node("Reshape", ["x", "t"], ["y"])]
    arrays = [numpy_helper.from_array(np.array([1, 3]), "lengths")]
    graph = helper.make_graph(
        nodes, "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


X = np.arange(2 * 512, dtype=np.float32).reshape(2, 8, 8, 8)
COLUMNS = [np.arange(24, dtype=np.float32).reshape(2, 12), np.zeros((4, 3), np.float32)]
MODELS = {
    **{make.__name__: (make, [X])
       for make in (group_convolution, reshape, broadcast, slices, one_of_four, twice)},
    **{f"lengths that are {make.__name__}": (lambda make=make: lengths(make), COLUMNS)
       for make in (joined, converted, added, of_a_shape, unsigned)},
    **{f"ONNX, opset {opset}, {'lengths' if given else 'parts'}":
       (lambda opset=opset, given=given: of_onnx(opset, given), [X])
       for opset in (11, 13, 18) for given in (True, False) if given or opset >= 18},
}


@pytest.mark.parametrize("name", MODELS)
def test_as_openvino_alone(cores, read, name):
    make, arrays = MODELS[name]
    models = read(make())
    assert_same_knowledge(*models)
    assert_same_results(cores, models, *arrays)


def random_model(seed):
    """Pieces of a shape, in any order and with numbers between them, are what something is broadcast to."""
    random = np.random.default_rng(seed)
    low = random.integers(1, 4, random.integers(2, 6))
    kinds = [Dimension, lambda _: Dimension(), lambda low: Dimension(low, low + 5), lambda low: Dimension(low, -1)]
    x = ops.parameter(PartialShape([kinds[random.integers(4)](int(extent)) for extent in low]), Type.f32)
    left, given = len(low), []
    while left:
        given.append(int(random.integers(1, left + 1)))
        left -= given[-1]
    shape = ops.shape_of(x, output_type=str(random.choice(["i32", "i64"])))
    wide = shape if shape.get_element_type() == Type.i64 else ops.convert(shape, "i64")
    if random.integers(2):
        given[random.integers(len(given))] = -1
    if random.integers(2):
        parts = ops.variadic_split(wide, constant(0), constant(given)).outputs()
    else:
        parts = ops.split(wide, constant(-1), len(low)).outputs()
    parts = [parts[index] for index in random.permutation(len(parts))]
    if random.integers(2):
        parts.insert(int(random.integers(len(parts))), constant([int(random.integers(1, 4))]))
    if random.integers(2):
        parts[0] = ops.multiply(parts[0], constant([2])).output(0)
    y = ops.broadcast(constant([1.0], np.float32), ops.concat(parts, 0))
    return Model([y], [x]), np.zeros(low, np.float32)


@pytest.mark.parametrize("seed", range(40))
def test_random_shapes(cores, read, seed):
    model, array = random_model(seed)
    models = read(model)
    assert_same_knowledge(*models)
    assert_same_results(cores, models, array)
