"""A Split is left to ONNX Runtime where its optimizer works across it: the optimized graph must have the same
nodes with libsplit as without."""

import collections

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from support import EP, assert_same, constant, model_of, ran, value

FLOAT, FLOAT16, UINT8, INT8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UINT8, TensorProto.INT8
UINT16, INT16 = TensorProto.UINT16, TensorProto.INT16
# 18 MiB in float16, which libsplit takes for their size.
SHAPE = [1, 64, 384, 384]
INT_LISTS = {"halves": [32, 32], "quarters": [16, 16], "flat": [-1], "planes": [1, 64, -1]}


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def dequantize(before, after, scale="scale", zero="zero", **options):
    return node("DequantizeLinear", f"{before} {scale} {zero}", after, **options)


def quantize(before, after, scale="scale", zero="zero", **options):
    return node("QuantizeLinear", f"{before} {scale} {zero}", after, **options)


def halve(before="x", after="a b", opset=18, axis=1):
    if opset < 13:
        return node("Split", before, after, axis=axis, split=INT_LISTS["halves"])
    return node("Split", f"{before} halves", after, axis=axis)


def relu(before, after):
    return node("Relu", before, after)


def softplus(before, after):
    """ONNX Runtime's CPU provider has no kernel for it in float16."""
    return node("Softplus", before, after)


def reshape(before, after, shape):
    return node("Reshape", f"{before} {shape}", after)


def conv(before, after, weights):
    return node("Conv", f"{before} {weights}", after, kernel_shape=[1, 1])


def graph(*nodes, dtype=FLOAT, shape=SHAPE, opset=18, outputs=None, scale_dtype=UINT8):
    """A model from 'x' to all values that no node takes, or to these `outputs`, with their types inferred."""
    if outputs is None:
        taken = {name for node in nodes for name in node.input}
        outputs = [name for node in nodes for name in node.output if name not in taken]
    else:
        outputs = outputs.split()
    random = np.random.default_rng(0)
    weights = {name: random.integers(-50, 50, shape).astype(np.int8)
               for name, shape in (("w_in", (64, 8, 1, 1)), ("w_half", (16, 32, 1, 1)))}
    quantized = np.array(3, helper.tensor_dtype_to_np_dtype(scale_dtype))
    arrays = {name: np.array(numbers, np.int64) for name, numbers in INT_LISTS.items()} | weights | {
        "scale": np.array(0.02, np.float32), "other_scale": np.array(0.05, np.float32),
        "zero": quantized, "zero_w": np.array(0, np.int8), "yes": np.array(True), "twice": np.array(2)}
    return model_of(list(nodes), [value("x", dtype, shape)],
                    [helper.make_empty_tensor_value_info(name) for name in outputs],
                    [constant(name, array) for name, array in arrays.items()], opset, ["com.microsoft"])


def between(opset=18, dtype=UINT8, domain=""):
    options = {"domain": domain}
    return graph(dequantize("x", "d", **options), halve("d", opset=opset), quantize("a", "qa", **options),
                 quantize("b", "qb", **options), dtype=dtype, opset=opset, scale_dtype=dtype)


def quantized_conv(before, after, weights):
    return node("QLinearConv", f"{before} scale zero {weights} scale zero_w scale zero", after,
                kernel_shape=[1, 1])


def block(*last):
    """Quantized convolutions, whose Split has these nodes behind it."""
    return graph(dequantize("x", "dx"), dequantize("w_in", "dw", zero="zero_w"), conv("dx", "c", "dw"),
                 quantize("c", "qc"), dequantize("qc", "d"), halve("d"), quantize("a", "qa"),
                 dequantize("qa", "da"), dequantize("w_half", "dh", zero="zero_w"), conv("da", "ca", "dh"),
                 quantize("ca", "y"), *last, dtype=UINT8, shape=[1, 8, 512, 512])


def subgraph(name, inputs=(), outputs=(), first=()):
    nodes = [*first, dequantize("x", "d"), halve("d"), quantize("a", "qa"), quantize("b", "qb")]
    return helper.make_graph(nodes, name, list(inputs), [*outputs, value("qa", UINT8), value("qb", UINT8)])


def in_if():
    return graph(node("ReduceMax", "x", "most", keepdims=0), node("Cast", "most", "bright", to=TensorProto.BOOL),
                 node("If", "bright", "y z", then_branch=subgraph("then"), else_branch=subgraph("else")),
                 dtype=UINT8)


def in_loop():
    body = subgraph("body", [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, [])],
                    [value("on", TensorProto.BOOL, [])], [node("Identity", "go", "on")])
    return graph(node("Loop", "twice yes", "y z", body=body), dtype=UINT8)


def in_scan():
    nodes = [dequantize("one", "d"), halve("d"), quantize("a", "qa"), quantize("b", "qb")]
    body = helper.make_graph(nodes, "body", [value("one", UINT8, SHAPE)],
                             [value("qa", UINT8), value("qb", UINT8)])
    return graph(node("Scan", "x", "y z", body=body, num_scan_inputs=1), dtype=UINT8, shape=[2, *SHAPE])


def attention(heads=8, size=64, length=1024, batch=4):
    """As MobileCLIP exports it: the optimizer makes a MultiHeadAttention of it."""
    width, random = heads * size, np.random.default_rng(0)
    weights = {"w": (width, 3 * width), "p": (width, width), "bias": (width,)}
    arrays = {name: random.random(shape, np.float32) / 20 for name, shape in weights.items()}
    arrays |= {name: np.array(numbers, np.int64) for name, numbers in {
        "flat": [batch, width, length], "parts": [batch, length, 3, heads, size], "ones": [1, 1, 1],
        "first": [0], "third": [2], "wide": [batch, length, width]}.items()}
    arrays["scale"] = np.array(size ** -0.5, np.float32)
    nodes = [
        reshape("x", "x1", "flat"), node("Transpose", "x1", "x2", perm=[0, 2, 1]),
        node("MatMul", "x2 w", "x3"), reshape("x3", "x4", "parts"), node("Split", "x4 ones", "q k v", axis=2),
        node("Transpose", "q", "q1", perm=[2, 0, 3, 1, 4]), node("Squeeze", "q1 first", "q2"),
        node("Mul", "q2 scale", "q3"), node("Squeeze", "k third", "k1"),
        node("Transpose", "k1", "k2", perm=[0, 2, 3, 1]), node("Transpose", "v", "v1", perm=[2, 0, 3, 1, 4]),
        node("Squeeze", "v1 first", "v2"), node("MatMul", "q3 k2", "s"), node("Softmax", "s", "s1", axis=-1),
        node("MatMul", "s1 v2", "o"), node("Transpose", "o", "o1", perm=[0, 2, 1, 3]),
        reshape("o1", "o2", "wide"), node("MatMul", "o2 p", "o3"), node("Add", "o3 bias", "y")]
    side = int(length ** 0.5)
    return model_of(nodes, [value("x", FLOAT, [batch, width, side, side])], [value("y")],
                    [constant(name, array) for name, array in arrays.items()])


# Where libsplit would be in the way: `claim=all` gives another graph.
CROSSED = {
    **{f"between, opset {opset}, type {dtype}": (lambda opset=opset, dtype=dtype: between(opset, dtype))
       for opset in range(11, 26) for dtype in (UINT8, INT8, UINT16, INT16)
       if opset >= 21 or dtype in (UINT8, INT8)},
    **{f"between, of ONNX Runtime's domain, type {dtype}":
       (lambda dtype=dtype: between(13, dtype, "com.microsoft")) for dtype in (UINT8, INT8, UINT16, INT16)},
    "a Reshape and a Transpose in between": lambda: graph(
        dequantize("x", "d0"), reshape("d0", "d", "planes"), halve("d"), reshape("a", "fa", "flat"),
        quantize("fa", "qa"), node("Transpose", "b", "tb", perm=[1, 0, 2]), quantize("tb", "qb"), dtype=UINT8),
    "between floats": lambda: graph(
        quantize("x", "qx"), dequantize("qx", "d"), halve("d"), quantize("a", "qa"), dequantize("qa", "da"),
        relu("da", "ra"), quantize("b", "qb"), dequantize("qb", "db"), node("Neg", "db", "rb")),
    "two Splits of one value": lambda: graph(
        dequantize("x", "d"), halve("d"), quantize("a", "qa"), quantize("b", "qb"), halve("d", "a2 b2"),
        quantize("a2", "qa2"), quantize("b2", "qb2"), dtype=UINT8),
    "a Split of a piece": lambda: graph(
        dequantize("x", "d"), halve("d"), quantize("a", "qa"), quantize("b", "qb"), dequantize("qb", "db"),
        node("Split", "db quarters", "e f", axis=1), quantize("e", "qe"), quantize("f", "qf"), dtype=UINT8),
    "in If": in_if,
    "in Loop": in_loop,
    "in Scan": in_scan,
    "a block of convolutions": lambda: block(
        quantize("b", "qb"), dequantize("qb", "db"), conv("db", "cb", "dh"), quantize("cb", "z")),
    "a block, and a float": lambda: block(relu("b", "rb")),
    "convolutions of quantized values": lambda: graph(
        quantized_conv("x", "c", "w_in"), halve("c"), quantized_conv("a", "ca", "w_half"),
        quantized_conv("b", "cb", "w_half"), dtype=UINT8, shape=[1, 8, 512, 512]),
    "float16": lambda: graph(softplus("x", "s"), halve("s"), softplus("a", "sa"), softplus("b", "sb"),
                             dtype=FLOAT16),
    "float16, and what moves it": lambda: graph(
        softplus("x", "s"), halve("s"), softplus("a", "sa"), reshape("b", "fb", "flat"), softplus("fb", "sb"),
        dtype=FLOAT16),
    "float16 between floats": lambda: graph(
        node("Cast", "x", "h", to=FLOAT16), softplus("h", "s"), halve("s"), softplus("a", "sa"),
        node("Cast", "sa", "ca", to=FLOAT), softplus("b", "sb"), node("Cast", "sb", "cb", to=FLOAT)),
    "attention": attention,
}
# Where it is not in the way, whether it takes the Split or not.
APART = {
    "one float": lambda: graph(dequantize("x", "d"), halve("d"), quantize("a", "qa"), relu("b", "rb"), dtype=UINT8),
    "an output": lambda: graph(dequantize("x", "d"), halve("d"), quantize("a", "qa"), dtype=UINT8,
                               outputs="qa b"),
    "another scale": lambda: graph(
        dequantize("x", "d"), halve("d"), quantize("a", "qa"), quantize("b", "qb", "other_scale"), dtype=UINT8),
    "a piece for two": lambda: graph(
        dequantize("x", "d"), halve("d"), quantize("a", "qa"), quantize("b", "qb"),
        quantize("b", "qb2", "other_scale"), dtype=UINT8),
    "before only": lambda: graph(dequantize("x", "d"), halve("d"), relu("a", "ra"), relu("b", "rb"), dtype=UINT8),
    "behind only": lambda: graph(relu("x", "r"), halve("r"), quantize("a", "qa"), quantize("b", "qb")),
    "float16 of the model": lambda: graph(halve("x"), softplus("a", "sa"), softplus("b", "sb"), dtype=FLOAT16),
    "float16 that the model gives": lambda: graph(softplus("x", "s"), halve("s"), softplus("a", "sa"),
                                                  dtype=FLOAT16, outputs="sa b"),
    "float16 that is moved": lambda: graph(
        softplus("x", "s"), reshape("s", "r", "planes"), halve("r"), softplus("a", "sa"), softplus("b", "sb"),
        dtype=FLOAT16),
    "float16 that is moved next": lambda: graph(
        softplus("x", "s"), halve("s"), node("Concat", "b a", "c", axis=1), softplus("c", "sc"), dtype=FLOAT16),
    "convolutions": lambda: graph(
        node("Cast", "w_in", "w", to=FLOAT), node("Cast", "w_half", "wh", to=FLOAT), conv("x", "c", "w"),
        relu("c", "r"), halve("r"), conv("a", "ca", "wh"), conv("b", "cb", "wh"), shape=[1, 8, 512, 512]),
    "transposes": lambda: graph(
        node("Transpose", "x", "t", perm=[0, 2, 3, 1]), halve("t", axis=3),
        node("Transpose", "a", "ta", perm=[0, 3, 1, 2]), node("Transpose", "b", "tb", perm=[0, 3, 1, 2])),
}


def columns(*lengths, dtype=FLOAT, before=relu, behind=relu):
    """A Split of columns, whose pieces have nodes behind them."""
    names = [f"p{index}" for index in range(len(lengths))]
    nodes = [before("x", "b"), node("Split", "b lengths", " ".join(names), axis=1)]
    nodes += [behind(name, f"y_{name}") for name in names]
    model = graph(*nodes, dtype=dtype, shape=[40_000, sum(lengths)],
                  scale_dtype=UINT8 if dtype == FLOAT else dtype)
    model.graph.initializer.append(constant("lengths", np.array(lengths)))
    return model


def projected(*nodes):
    """A Split of rows that are multiplied by weights of 8 bits."""
    model = graph(dequantize("w8", "w"), node("MatMul", "x w", "m"), *nodes, shape=[8, 512, 192])
    model.graph.initializer.append(constant("w8", np.ones((192, 2304), np.uint8)))
    model.graph.initializer.append(constant("thirds", np.array([768] * 3)))
    return model


# What libsplit takes nevertheless, because it is faster.
GAINS = {
    "quantized pairs": lambda: columns(2, 2, 2, 2, dtype=UINT8, before=dequantize, behind=quantize),
    "quantized triples": lambda: columns(3, 3, dtype=INT8, before=dequantize, behind=quantize),
    "quantized pieces of a picture": lambda: graph(
        node("Split", "x", "r g b", axis=2, num_outputs=3), dequantize("r", "dr"), quantize("dr", "qr"),
        dtype=UINT8, shape=["height", "width", 3]),
    "boxes": lambda: columns(4, 1, 80),
    "float16 of the model": APART["float16 of the model"],
    "float16 that the model gives": APART["float16 that the model gives"],
    "weights of 8 bits": lambda: projected(
        node("Split", "m thirds", "q k v", axis=2), relu("q", "rq"), relu("k", "rk"), relu("v", "rv")),
}


@pytest.fixture
def optimized(devices, tmp_path):
    """The operators of the graph that ONNX Runtime makes of a model: with this claim, or without libsplit."""

    def operators(graph):
        for node in graph.node:
            yield node.op_type
            for attribute in node.attribute:
                yield from operators(attribute.g)

    def of(model, claim=None):
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
        if claim:
            options.add_provider_for_devices(devices, {"claim": claim})
        ort.InferenceSession(model.SerializeToString(), options)
        return collections.Counter(operators(onnx.load(options.optimized_model_filepath).graph))

    return of


@pytest.mark.parametrize("name", [*CROSSED, *APART])
def test_the_optimized_graph_is_the_same(optimized, name):
    model = (CROSSED | APART)[name]()
    assert optimized(model, "benefit") == optimized(model)


@pytest.mark.parametrize("name", GAINS)
def test_what_gains_is_taken(session, name):
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    opened = session(GAINS[name](), options, {})
    taken = [node.op_type for part in opened.get_provider_graph_assignment_info() if part.ep_name == EP
             for node in part.get_nodes()]
    assert taken == ["Split"]


def test_quantized_pairs_are_the_same(session):
    model = GAINS["quantized pairs"]()
    x = np.random.default_rng(1).integers(0, 256, (40_000, 8), np.uint8)
    without = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    opened = session(model, provider_options={})
    assert_same(opened.run(None, {"x": x}), without)
    assert ran(opened) == {EP: 1}


def random_graph(seed):
    """Splits of columns between random operators, with shapes that libsplit takes."""
    random, rows = np.random.default_rng(seed), 40_000
    dtype = FLOAT16 if random.random() < 0.3 else FLOAT
    nodes, constants, live = [], {}, [("x", 32)]

    def add(operator, inputs, count=1, **attributes):
        names = [f"v{len(nodes)}_{index}" for index in range(count)]
        nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names

    def quantized(name):
        (quantized,) = add("QuantizeLinear", [name, f"scale{random.integers(2)}", "zero"])
        return add("DequantizeLinear", [quantized, f"scale{random.integers(2)}", "zero"])[0]

    constants |= {"scale0": np.array(0.02, np.float32), "scale1": np.array(0.05, np.float32),
                  "zero": np.array(3, np.uint8)}
    for _ in range(int(random.integers(4, 16))):
        name, width = live.pop(int(random.integers(len(live))))
        kind = random.random()
        if kind < 0.35 and width >= 8:
            parts = int(random.choice([part for part in (2, 3, 4) if width // part >= 4]))
            lengths = [width // parts] * (parts - 1)
            lengths.append(width - sum(lengths))
            constants[f"lengths{len(nodes)}"] = np.array(lengths)
            pieces = add("Split", [name, f"lengths{len(nodes)}"], parts, axis=1)
            live += zip(pieces, lengths)
        elif kind < 0.6 and dtype == FLOAT:
            live.append((quantized(name), width))
        elif kind < 0.7:
            constants[f"shape{len(nodes)}"] = np.array([rows, width])
            live.append((add("Reshape", [name, f"shape{len(nodes)}"])[0], width))
        elif kind < 0.8:
            constants[f"weights{len(nodes)}"] = np.eye(width).astype(helper.tensor_dtype_to_np_dtype(dtype))
            live.append((add("MatMul", [name, f"weights{len(nodes)}"])[0], width))
        elif kind < 0.9 and len(live) > 1:
            other, more = live.pop(int(random.integers(len(live))))
            live.append((add("Concat", [name, other], axis=1)[0], width + more))
        else:
            live.append((add(str(random.choice(["Softplus", "Relu", "Sigmoid"])), [name])[0], width))
    return model_of(nodes, [value("x", dtype, [rows, 32])],
                    [helper.make_empty_tensor_value_info(name) for name, _ in live],
                    [constant(name, array) for name, array in constants.items()], 18, [])


@pytest.mark.parametrize("seed", range(200))
def test_random_graphs(optimized, seed):
    model = random_graph(seed)
    assert optimized(model, "benefit") == optimized(model)


@pytest.mark.parametrize("name", CROSSED)
def test_with_all_it_is_another(optimized, name):
    """As the documentation of claim=all says; also, the models of this file would not pass for no reason."""
    model = CROSSED[name]()
    assert optimized(model, "all") != optimized(model)
