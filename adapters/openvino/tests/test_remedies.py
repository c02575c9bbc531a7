"""Every remedy in a message works: a row has a model, its message, and the model after following it to the letter.

A message without a row fails. Those of libsplit itself are in tests/messages.txt, by the rules of src/error.rs;
those of the extension are in its sources.

Environment: LIBSPLIT_OPENVINO, the extension.
"""

import pathlib
import re
import sys

import numpy as np
import pytest
from openvino import Shape, Tensor, Type, opset13

ADAPTER = pathlib.Path(__file__).resolve().parent.parent
ROOT = ADAPTER.parents[1]
sys.path.insert(0, str(ADAPTER))
from table import model_of, onnx_split, outputs_of, split, variadic_split  # noqa: E402



def of_bits(convert):
    """Splits a constant of bits, or of the bytes that it is converted to."""
    bits = opset13.constant(Tensor(Type.u1, Shape([6])))
    data = opset13.convert(bits, "u8") if convert else bits
    return model_of([], opset13.variadic_split(data, opset13.constant(0), opset13.constant([2, 4]))), []


def fed(lengths):
    """A VariadicSplit whose lengths are an input of the model."""
    data, given = opset13.parameter([-1], Type.f32), opset13.parameter([len(lengths)], Type.i64)
    return model_of([data, given], opset13.variadic_split(data, opset13.constant(0), given)), [np.array(lengths)]


# For each rule of libsplit's: a model that breaks it, a part of the message, and the models after following each
# remedy; with the lengths of the pieces that these give. The input is as long as the model says, or 6.
ROWS = {
    "RankZero": (lambda: onnx_split(18, [], 1, num_outputs=1),
                 "a tensor without axes cannot be split: give it an axis of extent 1",
                 [(lambda: onnx_split(18, [1], 1, num_outputs=1), [1])]),
    "Axis": (lambda: onnx_split(13, [6], 2, [2, 4], axis=1), r"axis 1 is outside \[-1, 0\] of rank 1: choose one inside",
             [(lambda: onnx_split(13, [6], 2, [2, 4], axis=axis), [2, 4]) for axis in (-1, 0)]),
    "LengthsAndNumOutputs": (
        lambda: onnx_split(18, [6], 2, [2, 4], num_outputs=2),
        "takes only one of them; leave out the lengths, or remove the attribute num_outputs",
        [(lambda: onnx_split(18, [6], 2, num_outputs=2), [3, 3]), (lambda: onnx_split(18, [6], 2, [2, 4]), [2, 4])]),
    "LengthsDType": (lambda: variadic_split([6], [2.0, 4.0]), "takes an integer type: convert the lengths",
                     [(lambda: variadic_split([6], [2, 4]), [2, 4])]),
    "LengthNegative": (
        lambda: onnx_split(13, [6], 2, [7, -1]), "only in VariadicSplit may one be -1, for the rest",
        [(lambda: variadic_split([6], [5, -1]), [5, 1])]),
    "SecondRest": (lambda: fed([-1, -1]), "at most 1 length may be -1, but 2 are; give the others",
                   [(lambda: fed([2, -1]), [2, 4])]),
    "LengthsSum": (lambda: onnx_split(13, [6], 2, [2, 3]), "the sum of split is 5, .* 6: make the lengths add up to it",
                   [(lambda: onnx_split(13, [6], 2, [2, 4]), [2, 4])]),
    "LengthsExceed": (lambda: variadic_split([-1], [4, -1, 3]), "without the -1 is 7, .*: make the lengths smaller",
                      [(lambda: variadic_split([-1], [3, -1, 2]), [3, 1, 2])]),
    "LengthsSumOverflow": (
        lambda: variadic_split([-1], [2**62, 2**62]), "the sum of split_lengths is above .*: make the lengths add up",
        [(lambda: variadic_split([-1], [2, 4]), [2, 4])]),
    "Uneven": (lambda: split([-1], 4), "cannot divide an extent of 6 into 4 equal parts: split by lengths, or by ONNX Split-18",
               [(lambda: variadic_split([-1], [1, 1, 2, 2]), [1, 1, 2, 2]),
                (lambda: onnx_split(18, [6], 4, num_outputs=4), [2, 2, 2, 0])]),
    "LastNegative": (lambda: onnx_split(18, [5], 4, num_outputs=4), "a last one of -1; use fewer, or lengths",
                     [(lambda: onnx_split(18, [5], 3, num_outputs=3), [2, 2, 1]),
                      (lambda: onnx_split(18, [5], 4, [1, 1, 1, 2]), [1, 1, 1, 2])]),
}
# The extension's own, by what they say.
OWN = {
    "libsplit has no element type u1: convert the tensor first": (
        lambda: of_bits(convert=False), [lambda: of_bits(convert=True)]),
}
# What no model can do wrong: OpenVINO or the extension makes the tensors and the call, or OpenVINO keeps such a split.
BEYOND_A_MODEL = set("""
    Null NoneWanted Alignment Opset OpenVinoOpset DTypeUnknown DTypeNotAllowed Rank RankNegative ExtentNegative
    ExtentUnknown LengthsExtent LengthsAbsent LengthsRefused NeitherLengthsNorNumOutputs LengthsScalar LengthsRank
    LengthsUnknown LengthNotInteger ScalarNotPositive NumOutputsParam NumOutputsGiven NumOutputsNegative
    NumOutputsUnknown NoOutputs NoLengths TooManyOutputs PlanOutputs Capacity ViewNotPacked StridesCollide
    SubByteStrides BitOffset BitOffsetNotZero DataBytes TooManyElements StridesOverflow AddressOverflow Overlap
    NotShownApart NotShownApartFromInput UsedElsewhere ArrayOverlap OutputDType OutputRank OutputShape CountUnknown ExecutorFailed
    ExecutorSkipped""".split())
REGION = "libsplit: a region of a tensor: copy it first"


def run(core, model, extent=6):
    """Runs a model on 0, 1, ...; or a pair of a model and what it is given, after these if it has more inputs."""
    model, more = model if isinstance(model, tuple) else (model, None)
    inputs = [] if more == [] else [np.arange(extent, dtype="f4"), *(more or [])]
    return [output.data for output in outputs_of(core, model, *inputs)[1]]


@pytest.mark.parametrize("rule", ROWS)
def test_remedies_of_libsplit(core, rule):
    model, message, remedies = ROWS[rule]
    with pytest.raises(RuntimeError, match=message):
        run(core, model())
    for remedy, lengths in remedies:
        found = run(core, remedy(), sum(lengths))
        expected = np.split(np.arange(sum(lengths), dtype="f4"), np.cumsum(lengths)[:-1])
        for piece, numbers in zip(found, expected, strict=True):
            np.testing.assert_array_equal(piece, numbers)


@pytest.mark.parametrize("message", OWN)
def test_remedies_of_the_extension(core, message):
    model, remedies = OWN[message]
    with pytest.raises(RuntimeError, match=re.escape(message)):
        run(core, model())
    for remedy in remedies:
        run(core, remedy())


def test_every_message_of_libsplit_has_a_row():
    text = (ROOT / "tests/messages.txt").read_text(encoding="utf-8")
    rules = re.split(r"^Error::(\w+)\n", text, flags=re.M)[1:]
    at_this_door = {rule for rule, doors in zip(rules[::2], rules[1::2])
                    if re.search(r"^ .*\bOpenVINO[,:].*: ", doors, re.M)}
    assert at_this_door == set(ROWS) | BEYOND_A_MODEL
    assert not set(ROWS) & BEYOND_A_MODEL


def test_every_message_of_the_extension_has_a_row():
    found = []
    for file in (ADAPTER / "src").glob("*.cpp"):
        source = re.sub(r'"\s*"', "", file.read_text(encoding="utf-8"))
        found += re.findall(r'OPENVINO_(?:THROW|ASSERT)\([^;]*?"([^"]*)"[^;]*?(?:"([^"]*)")?\);', source)
    assert len(found) >= 3
    for start, end in found:
        is_libsplit_s = start == "libsplit: "
        assert is_libsplit_s or start == REGION or any(start + end in text or text in start for text in OWN) or any(
            text.startswith(start) and text.endswith(end) for text in OWN), start
