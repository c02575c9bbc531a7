"""A Split is left to ONNX Runtime where its optimizer works across it: the optimized graph must have the same
nodes with libsplit as without."""

import collections

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from neighbours import (FLOAT, FLOAT16, INT8, INT16, SHAPE, UINT8, UINT16, attention, between, block, columns, conv,
                        convolutions, dequantize, graph, halve, in_if, in_loop, in_scan, island, negate, node,
                        projected, quantize, quantized_conv, random_graph, relu, reshape)
from support import EP, assert_same, ran

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
    "a block of convolutions": convolutions,
    "a block, and a float": lambda: block(relu("b", "rb")),
    "convolutions of quantized values": lambda: graph(
        quantized_conv("x", "c", "w_in"), halve("c"), quantized_conv("a", "ca", "w_half"),
        quantized_conv("b", "cb", "w_half"), dtype=UINT8, shape=[1, 8, 512, 512]),
    "float16": island,
    "float16, and what moves it": lambda: graph(
        negate("x", "s"), halve("s"), negate("a", "sa"), reshape("b", "fb", "flat"), negate("fb", "sb"),
        dtype=FLOAT16),
    "float16 between floats": lambda: graph(
        node("Cast", "x", "h", to=FLOAT16), negate("h", "s"), halve("s"), negate("a", "sa"),
        node("Cast", "sa", "ca", to=FLOAT), negate("b", "sb"), node("Cast", "sb", "cb", to=FLOAT)),
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
    "float16 of the model": lambda: graph(halve("x"), negate("a", "sa"), negate("b", "sb"), dtype=FLOAT16),
    "float16 that the model gives": lambda: graph(negate("x", "s"), halve("s"), negate("a", "sa"),
                                                  dtype=FLOAT16, outputs="sa b"),
    "float16 that is moved": lambda: graph(
        negate("x", "s"), reshape("s", "r", "planes"), halve("r"), negate("a", "sa"), negate("b", "sb"),
        dtype=FLOAT16),
    "float16 that is moved next": lambda: graph(
        negate("x", "s"), halve("s"), node("Concat", "b a", "c", axis=1), negate("c", "sc"), dtype=FLOAT16),
    "convolutions": lambda: graph(
        node("Cast", "w_in", "w", to=FLOAT), node("Cast", "w_half", "wh", to=FLOAT), conv("x", "c", "w"),
        relu("c", "r"), halve("r"), conv("a", "ca", "wh"), conv("b", "cb", "wh"), shape=[1, 8, 512, 512]),
    "transposes": lambda: graph(
        node("Transpose", "x", "t", perm=[0, 2, 3, 1]), halve("t", axis=3),
        node("Transpose", "a", "ta", perm=[0, 3, 1, 2]), node("Transpose", "b", "tb", perm=[0, 3, 1, 2])),
}


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


@pytest.mark.parametrize("seed", range(200))
def test_random_graphs(optimized, seed):
    model = random_graph(seed)
    assert optimized(model, "benefit") == optimized(model)


@pytest.mark.parametrize("name", CROSSED)
def test_with_all_it_is_another(optimized, name):
    """As the documentation of claim=all says; also, the models of this file would not pass for no reason."""
    model = CROSSED[name]()
    assert optimized(model, "all") != optimized(model)
