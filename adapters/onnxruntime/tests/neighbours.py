"""Models with a Split, and with nodes around it across which ONNX Runtime's optimizer works, or might."""

import numpy as np
from onnx import TensorProto, helper

from support import constant, model_of, value

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


def negate(before, after):
    """ONNX Runtime's CPU provider has no kernel for it in float16."""
    return node("Neg", before, after)


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
    """Quantized convolutions, whose Split's second piece goes to these nodes."""
    return graph(dequantize("x", "dx"), dequantize("w_in", "dw", zero="zero_w"), conv("dx", "c", "dw"),
                 quantize("c", "qc"), dequantize("qc", "d"), halve("d"), quantize("a", "qa"),
                 dequantize("qa", "da"), dequantize("w_half", "dh", zero="zero_w"), conv("da", "ca", "dh"),
                 quantize("ca", "y"), *last, dtype=UINT8, shape=[1, 8, 512, 512])


def convolutions():
    return block(quantize("b", "qb"), dequantize("qb", "db"), conv("db", "cb", "dh"), quantize("cb", "z"))


def island():
    """A Split of float16 between operators that the CPU provider has for float32 alone."""
    return graph(negate("x", "s"), halve("s"), negate("a", "sa"), negate("b", "sb"), dtype=FLOAT16)


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


def columns(*lengths, rows=40_000, dtype=FLOAT, before=relu, behind=relu):
    """A Split of columns, between nodes of these kinds."""
    names = [f"p{index}" for index in range(len(lengths))]
    nodes = [before("x", "b"), node("Split", "b lengths", " ".join(names), axis=1)]
    nodes += [behind(name, f"y_{name}") for name in names]
    model = graph(*nodes, dtype=dtype, shape=[rows, sum(lengths)],
                  scale_dtype=UINT8 if dtype == FLOAT else dtype)
    model.graph.initializer.append(constant("lengths", np.array(lengths)))
    return model


def projected(*nodes):
    """A Split of rows that are multiplied by weights of 8 bits."""
    model = graph(dequantize("w8", "w"), node("MatMul", "x w", "m"), *nodes, shape=[8, 512, 192])
    model.graph.initializer.append(constant("w8", np.ones((192, 2304), np.uint8)))
    model.graph.initializer.append(constant("thirds", np.array([768] * 3)))
    return model


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
            live.append((add(str(random.choice(["Neg", "Softplus", "Relu", "Sigmoid"])), [name])[0], width))
    return model_of(nodes, [value("x", dtype, [rows, 32])],
                    [helper.make_empty_tensor_value_info(name) for name, _ in live],
                    [constant(name, array) for name, array in constants.items()], 18, [])
