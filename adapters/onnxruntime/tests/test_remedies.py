"""Every remedy in a message works: a row has a call, its message, and the call after following it to the letter.

A message without a row fails. Those of libsplit itself are in tests/messages.txt, by the rules of src/error.rs;
those of the adapter are in its sources.
"""

import re

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from support import LIBRARY, RELEASE, ROOT, assert_same, model_of, pieces, split_model, value

X = np.arange(12, dtype=np.float32).reshape(2, 6)
WIDE = np.arange(10, dtype=np.float32).reshape(2, 5)


def node(outputs="ab", lengths=None, x=X, axis=1, **options):
    """A model of one Split, and what it is given."""
    feeds = {"x": np.asarray(x)}
    if lengths is not None:
        feeds["lengths"] = np.array(lengths)
        options["lengths"] = "input"
    return split_model(list(outputs), axis=axis, **options), feeds


def variadic(outputs="ab", lengths=(2, 4)):
    return node(outputs, lengths, op="VariadicSplit", domain="libsplit")


def split_1(lengths):
    split = helper.make_node("Split", ["x", "lengths"], ["a", "b"], axis=1)
    model = model_of([split], [value("x"), value("lengths")], [value("a"), value("b")], opset=1)
    return model, {"x": X, "lengths": np.array(lengths, np.float32)}


# For each rule of libsplit's: the call, a part of its message, and what it becomes if one follows the remedy, or each
# of several; with the lengths of the pieces that the new call gives.
ROWS = {
    "RankZero": (node("a", x=X[0, 0], axis=0, num_outputs=1), "give it an axis of extent 1",
                 [(node("a", x=X[0, :1], axis=0, num_outputs=1), [1])]),
    "Axis": (node(axis=2, num_outputs=2), r"axis 2 is outside \[-2, 1\] of rank 2: choose one inside",
             [(node(axis=1, num_outputs=2), [3, 3])]),
    "LengthsAbsent": (variadic(lengths=np.array([], int)), "needs lengths: give split_lengths",
                      [(variadic(lengths=[2, 4]), [2, 4])]),
    "LengthsAndNumOutputs": (
        node(lengths=[2, 4], num_outputs=2),
        "takes only one of them; leave out the lengths, or remove the attribute num_outputs",
        [(node(num_outputs=2), [3, 3]), (node(lengths=[2, 4]), [2, 4])]),
    "LengthsScalar": (node(lengths=6), r"the rank of split is 0 \(a scalar\), but ONNX Split-18 takes a list: use rank 1",
                      [(node("a", lengths=[6]), [6])]),
    "LengthsRank": (node(lengths=[[2, 4]]), "the rank of split is 2, but lengths are a list: use rank 1",
                    [(node(lengths=[2, 4]), [2, 4])]),
    "LengthNegative": (node(split=[7, -1], opset=2), "only in VariadicSplit may one be -1, for the rest",
                       [(variadic(lengths=[5, -1]), [5, 1])]),
    "LengthNotInteger": (split_1([2.5, 3.5]), "is not a whole number within int64: lengths count elements",
                         [(split_1([2, 4]), [2, 4])]),
    "SecondRest": (variadic(lengths=[-1, -1]), "at most 1 length may be -1, but 2 are; give the others",
                   [(variadic(lengths=[2, -1]), [2, 4])]),
    "LengthsSum": (node(lengths=[3, 4]), "the sum of split is 7, but the extent of the axis is 6: make the lengths add up",
                   [(node(lengths=[2, 4]), [2, 4])]),
    "LengthsExceed": (variadic("abc", [4, -1, 3]), "the sum of split_lengths without the -1 is 7, .*: make the lengths smaller",
                      [(variadic("abc", [3, -1, 2]), [3, 1, 2])]),
    "LengthsSumOverflow": (node(lengths=[2**62, 2**62]), "the sum of split is above .*: make the lengths add up to it",
                           [(node(lengths=[2, 4]), [2, 4])]),
    "Uneven": (node(x=WIDE, opset=13), "cannot divide an extent of 5 into 2 equal parts: split by lengths, or by ONNX Split-18",
               [(node(x=WIDE, opset=13, lengths=[2, 3]), [2, 3]), (node(x=WIDE, opset=18, num_outputs=2), [3, 2])]),
    "LastNegative": (node("abcd", x=WIDE, num_outputs=4), "a last one of -1; use fewer, or lengths",
                     [(node("abc", x=WIDE, num_outputs=3), [2, 2, 1]), (node("abcd", [1, 1, 1, 2], WIDE), [1, 1, 1, 2])]),
    "NumOutputsGiven": (node("ab", [1, 2, 3]), "gives 3 here: pass as many outputs, without a name where unwanted",
                        [(node("abc", [1, 2, 3]), [1, 2, 3]), (node(["a", "b", ""], [1, 2, 3]), [1, 2])]),
}
# What no node can do wrong: ONNX Runtime makes the tensors, and the adapter makes the call.
BEYOND_A_NODE = set("""
    Null NoneWanted Alignment Opset OpenVinoOpset DTypeUnknown DTypeNotAllowed Rank RankNegative ExtentNegative
    ExtentUnknown LengthsExtent LengthsRefused NeitherLengthsNorNumOutputs LengthsDType LengthsUnknown ScalarNotPositive
    NumOutputsParam NumOutputsNegative NumOutputsUnknown NoOutputs NoLengths TooManyOutputs PlanOutputs Capacity
    ViewNotPacked StridesCollide SubByteStrides BitOffset BitOffsetNotZero DataBytes TooManyElements StridesOverflow
    AddressOverflow Overlap NotShownApart NotShownApartFromInput UsedElsewhere ArrayOverlap OutputDType OutputRank OutputShape CountUnknown
    ExecutorFailed ExecutorSkipped""".split())


def custom(**options):
    return node(op="Split", domain="libsplit", **options)


BEFORE_1_32 = "num_outputs is 7, but the node has 2 outputs, and axis 1 an extent of 6: make num_outputs 2"
SINCE_1_32 = "num_outputs is 7, but the node has 2 outputs: make num_outputs 2"
# The adapter's own, by what they say: the call as above, or the options of a session.
OWN = {
    "attribute num_outputs is 3, but the node has 2 outputs: remove the attribute, or make it 2": (
        custom(num_outputs=3), [custom(), custom(num_outputs=2)]),
    "attribute split is not a list of integers, or it is empty: remove it, or make it one of the lengths": (
        custom(split=[2.0, 4.0]), [custom(), custom(split=[3, 3])]),
    BEFORE_1_32: (node(num_outputs=7), [node(num_outputs=2)]),
    SINCE_1_32: (node(num_outputs=7), [node(num_outputs=2)]),
    "provider option claim=most: give benefit or all": (
        {"claim": "most"}, [{"claim": "benefit"}, {"claim": "all"}]),
    "provider option min_bytes=10MB: give a whole number of bytes, such as 1048576": (
        {"min_bytes": "10MB"}, [{"min_bytes": "1048576"}]),
    "provider option log_claims=yes: give 0 or 1": ({"log_claims": "yes"}, [{"log_claims": "0"}, {"log_claims": "1"}]),
    "provider option claims=all: there is no such option: give claim, min_bytes or log_claims": (
        {"claims": "all"}, [{"claim": "all"}, {"min_bytes": "0"}, {"log_claims": "0"}]),
    'session config entry libsplit.override_split is "yes": give "0" or "1"': ("yes", ["0", "1"]),
}
# What says no remedy, because there is none but a newer ONNX Runtime or a newer libsplit.
WITHOUT_REMEDY = [
    "attribute {name} is not {kind}: {found}", "provider option {name}={value}: {what}",
    "ONNX Runtime has no room for a provider", "the node has no input to split",
    "needs ONNX Runtime 1.{least} or newer, not {release}",
    "this build of ONNX Runtime has no plugin execution providers",
    "cannot talk to this ONNX Runtime: a kernel definition came back changed",
    "element type {dtype} is not known to this version",
]


@pytest.fixture
def run(session, devices):
    """Runs a call of the rows, or opens a session with options."""

    def with_options(options):
        session_options = ort.SessionOptions()
        session_options.log_severity_level = 4
        model, feeds = node(num_outputs=2)
        if isinstance(options, dict):
            session_options.add_provider_for_devices(devices, options)
        else:
            session_options.add_session_config_entry("libsplit.override_split", options)
            session_options.register_custom_ops_library(str(LIBRARY))
        return ort.InferenceSession(model.SerializeToString(), session_options, enable_fallback=0).run(None, feeds)

    def of_call(call):
        if not isinstance(call, tuple):
            return with_options(call)
        model, feeds = call
        if model.graph.node[0].domain == "libsplit":
            options = ort.SessionOptions()
            options.register_custom_ops_library(str(LIBRARY))
            return ort.InferenceSession(model.SerializeToString(), options).run(None, feeds)
        return session(model).run(None, feeds)

    return of_call


@pytest.mark.parametrize("rule", ROWS)
def test_remedies_of_libsplit(run, rule):
    call, message, remedies = ROWS[rule]
    with pytest.raises(Exception, match=f"libsplit: .*{message}"):
        run(call)
    for remedy, lengths in remedies:
        x = remedy[1]["x"]
        axis = x.ndim - 1
        expected = pieces(x[..., :sum(lengths)], lengths, axis)
        assert_same(run(remedy), expected)


@pytest.mark.parametrize("message", sorted(set(OWN) - {BEFORE_1_32 if RELEASE >= 32 else SINCE_1_32}))
def test_remedies_of_the_adapter(run, message):
    call, remedies = OWN[message]
    with pytest.raises(Exception, match=re.escape(f"libsplit: {message}")):
        run(call)
    for remedy in remedies:
        run(remedy)


def test_every_message_of_libsplit_has_a_row():
    text = (ROOT / "tests/messages.txt").read_text(encoding="utf-8")
    rules = re.split(r"^Error::(\w+)\n", text, flags=re.M)[1:]
    at_this_door = {rule for rule, doors in zip(rules[::2], rules[1::2]) if re.search(r"^ .*\bONNX[,:].*: ", doors, re.M)}
    assert at_this_door == set(ROWS) | BEYOND_A_NODE
    assert not set(ROWS) & BEYOND_A_NODE


def test_every_message_of_the_adapter_has_a_row():
    found = []
    for file in (ROOT / "adapters/onnxruntime/src").glob("*.rs"):
        source = re.sub(r"\\\n\s*", "", file.read_text(encoding="utf-8"))
        for literal in re.findall(r'[rR]efused\(\s*(?:format!\(\s*)?"((?:[^"\\]|\\.)*)"', source):
            found.append(literal.replace('\\"', '"'))
    assert len(found) >= 16
    for template in found:
        pattern = re.escape(template).replace(r"\ ", " ")
        pattern = re.sub(r"\\\{[^}]*\\\}", ".*", pattern)
        assert template in WITHOUT_REMEDY or any(re.search(pattern, message) for message in OWN), template
