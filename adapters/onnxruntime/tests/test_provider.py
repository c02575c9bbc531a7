"""The plugin execution provider on unmodified models."""

import concurrent.futures

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from onnx.backend.test.loader import load_model_tests
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

from support import (CPU, EP, RELEASE, assert_same, constant, model_of, pieces, ran, random_bits, run_bits,
                     split_model, value)

# Types that ONNX Runtime has and Split's schema lets through, and their sizes.
FLOATS = {TensorProto.FLOAT: 4, TensorProto.FLOAT16: 2, TensorProto.DOUBLE: 8}
SIZES = FLOATS | {
    TensorProto.UINT8: 1, TensorProto.INT8: 1, TensorProto.UINT16: 2, TensorProto.INT16: 2,
    TensorProto.INT32: 4, TensorProto.INT64: 8, TensorProto.BOOL: 1, TensorProto.UINT32: 4,
    TensorProto.UINT64: 8,
}
TYPES = {1: FLOATS, 2: SIZES, 11: SIZES, 13: SIZES | {TensorProto.BFLOAT16: 2},
         18: SIZES | {TensorProto.BFLOAT16: 2}}
# Opset imports that mean each version, its first and its last; ONNX Runtime takes up to 26 or more.
OPSETS = {1: [1], 2: [2, 10], 11: [11, 12], 13: [13, 17], 18: [18, 24]}


@pytest.mark.parametrize("version, opset, dtype", [
    (version, opset, dtype)
    for version, opsets in OPSETS.items() for opset in opsets for dtype in TYPES[version]
])
@pytest.mark.parametrize("given", ["lengths", "parts"])
def test_every_type_at_every_version(session, version, opset, dtype, given):
    if given == "parts":
        lengths, options = [2, 2, 2], {"num_outputs": 3} if version >= 18 else {}
    elif version < 13:
        lengths, options = [1, 0, 5], {"split": [1, 0, 5]}
    else:
        lengths, options = [1, 0, 5], {"lengths": [1, 0, 5]}
    model = split_model(["a", "b", "c"], opset=opset, dtype=dtype, axis=-2, **options)
    opened = session(model)
    bits = random_bits(SIZES.get(dtype, 2), (3, 6, 5))
    if dtype == TensorProto.BOOL:
        bits &= 1
    expected = pieces(bits, lengths, 1)
    actual = run_bits(opened, dtype, bits, [piece.shape for piece in expected])
    assert_same(actual, expected)
    assert ran(opened) == {EP: 1}


STRINGS = np.array([["", "nul\0inside", "ünïcödé", "長さ"],
                    ["\0", "a" * 1000, "🧩", "\0\0end"]], object)


@pytest.mark.parametrize("opset", [2, 11, 13, 18])
@pytest.mark.parametrize("axis, lengths", [(0, [1, 1]), (1, [1, 3]), (-1, [4, 0]), (1, [0, 4])])
def test_strings(session, opset, axis, lengths):
    options = {"lengths": lengths} if opset >= 13 else {"split": lengths}
    model = split_model(["a", "b"], opset=opset, dtype=TensorProto.STRING, axis=axis, **options)
    opened = session(model)
    assert_same(opened.run(None, {"x": STRINGS}), pieces(STRINGS, lengths, axis))
    assert ran(opened) == {EP: 1}


def test_a_string_output_that_is_not_used(session):
    model = split_model(["a", "", "c"], dtype=TensorProto.STRING, axis=1, lengths=[1, 2, 1])
    opened = session(model)
    a, _, c = pieces(STRINGS, [1, 2, 1], 1)
    assert_same(opened.run(None, {"x": STRINGS}), [a, c])


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2,
                                   TensorProto.INT4, TensorProto.UINT2])
def test_types_that_the_schema_of_split_has_not_are_refused_by_onnx_runtime(session, dtype):
    with pytest.raises(Exception, match="Type Error: Type 'tensor|is not currently registered"):
        session(split_model(["a", "b"], dtype=dtype, num_outputs=2))


def official():
    """The cases of the onnx package in which there is a Split, in the body of an If too."""

    def has_split(graph):
        return any(node.op_type == "Split" or any(has_split(attribute.g)
                                                  for attribute in node.attribute)
                   for node in graph.node)

    cases = load_model_tests(kind="node")
    return [case for case in cases if case.model is not None and has_split(case.model.graph)]


@pytest.mark.filterwarnings("ignore:::onnx")
def test_official_cases(session):
    cases = official()
    assert sum(case.name.startswith("test_split_") for case in cases) == 16
    assert len(cases) >= 28
    for case in cases:
        opened = session(case.model)
        for inputs, outputs in case.data_sets:
            names = [meta.name for meta in opened.get_inputs()]
            actual = opened.run(None, dict(zip(names, inputs)))
            for got, wanted in zip(actual, outputs, strict=True):
                np.testing.assert_allclose(got, wanted, case.rtol, case.atol, err_msg=case.name)
        assert set(ran(opened)) == {EP}, case.name


class TestWhereTheBuiltInKernelFails:
    """Models on which ONNX Runtime 1.31.1 crashes or refuses; 1.32.0 some of them."""

    def test_an_output_without_a_name(self, session):
        x = np.arange(6, dtype=np.float32)
        for outputs in (["", "b", "c"], ["a", "", "c"], ["a", "b", ""], ["", "", "c"]):
            for lengths in ([1, 2, 3], "input"):
                opened = session(split_model(outputs, lengths=lengths))
                feeds = {"x": x} | ({"lengths": np.array([1, 2, 3])} if lengths == "input" else {})
                wanted = [piece for name, piece in zip(outputs, pieces(x, [1, 2, 3])) if name]
                assert_same(opened.run(None, feeds), wanted)
                assert ran(opened) == {EP: 1}

    def test_split_1_with_lengths_as_numbers_of_the_inputs_type(self, session):
        node = helper.make_node("Split", ["x", "lengths"], ["a", "b"], axis=0)
        outputs = [value("a"), value("b")]
        model = model_of([node], [value("x"), value("lengths")], outputs, opset=1)
        opened = session(model)
        x = np.arange(7, dtype=np.float32)
        actual = opened.run(None, {"x": x, "lengths": np.array([3, 4], np.float32)})
        assert_same(actual, pieces(x, [3, 4]))
        with pytest.raises(Exception, match="libsplit: .*is not a whole number"):
            opened.run(None, {"x": x, "lengths": np.array([2.5, 4.5], np.float32)})

    def test_an_extent_that_a_float_cannot_count(self, session):
        extent = 16_777_217
        x = np.arange(extent).astype(np.uint8)
        opened = session(split_model(["a", "b"], dtype=TensorProto.UINT8, num_outputs=2))
        assert_same(opened.run(None, {"x": x}), pieces(x, [8_388_609, 8_388_608]))

    @pytest.mark.parametrize("parts", [1, 3])
    def test_an_extent_of_0(self, session, parts):
        x = np.empty((0, 4), np.float32)
        opened = session(split_model(list("abc"[:parts]), num_outputs=parts))
        assert_same(opened.run(None, {"x": x}), [x] * parts)

    def test_a_last_part_of_0(self, session):
        x = np.arange(6, dtype=np.float32)
        opened = session(split_model(list("abcd"), num_outputs=4))
        assert_same(opened.run(None, {"x": x}), pieces(x, [2, 2, 2, 0]))

    def test_more_than_2_31_elements(self, session):
        lengths = [1, 2**31 - 2, 3]
        x = np.zeros(2**31 + 2, np.uint8)
        marks = {0: 1, 1: 2, 2**30: 3, 2**31 - 2: 4, 2**31 - 1: 5, 2**31 + 1: 6}
        for at, mark in marks.items():
            x[at] = mark
        model = split_model(["a", "b", "c"], dtype=TensorProto.UINT8, lengths=lengths)
        a, b, c = session(model).run(None, {"x": x})
        assert (a.size, b.size, c.size) == tuple(lengths)
        for begin, piece in ((0, a), (1, b), (2**31 - 1, c)):
            found = {begin + int(at): int(piece[at]) for at in np.flatnonzero(piece)}
            assert found == {at: mark for at, mark in marks.items()
                             if begin <= at < begin + piece.size}


def test_what_the_built_in_kernel_takes_beyond_the_operators_document(session):
    x = np.arange(6, dtype=np.float32)
    models = [split_model(["a", "b"]), split_model(["a", "b"], opset=13, lengths="input")]
    if RELEASE < 32:
        models.append(split_model(["a", "b"], num_outputs=3))
    for model in models:
        feeds = {"x": x, "lengths": np.empty(0, np.int64)}
        feeds = {meta.name: feeds[meta.name] for meta in model.graph.input}
        built_in = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
        assert_same(session(model).run(None, feeds), built_in)


@pytest.mark.parametrize("num_outputs", [-2, 0, 1, 3, 4])
@pytest.mark.parametrize("shape", [None, [2, "n"]])
@pytest.mark.parametrize("extent", [0, 1, 2, 3, 4, 5])
def test_num_outputs_that_is_not_the_number_of_outputs(session, num_outputs, shape, extent):
    """From 1.32 on, ONNX Runtime refuses it; before, it made as many parts as there are outputs, unless
    num_outputs was above the extent. What it gives, the provider gives; what it refuses, too."""
    model = split_model(["a", "b"], num_outputs=num_outputs, axis=-1, shape=shape)
    x = np.arange(2 * extent, dtype=np.float32).reshape(2, extent)
    built_in, opened = ort.InferenceSession(model.SerializeToString()), session(model)
    if RELEASE < 32 and num_outputs <= extent:
        parts = [-(-extent // 2), extent // 2]
        assert_same(opened.run(None, {"x": x}), pieces(x, parts, 1))
        return
    with pytest.raises(Exception, match="num_outputs"):
        built_in.run(None, {"x": x})
    for _ in range(2):
        with pytest.raises(Exception, match=f"libsplit: num_outputs is {num_outputs}, but the node has "
                                            "2 outputs.*: make num_outputs 2"):
            opened.run(None, {"x": x})


def test_num_outputs_does_not_count_beside_lengths(session):
    model = split_model(["a", "b"], lengths="input", num_outputs=3)
    with pytest.raises(Exception, match="both given"):
        session(model).run(None, {"x": np.arange(6, dtype=np.float32), "lengths": np.array([2, 4])})


def test_dynamic_shapes(session):
    model = split_model(["a", "b"], lengths="input", axis=1, shape=["rows", "columns"])
    opened = session(model)
    random = np.random.default_rng(1)
    for _ in range(200):
        rows, *lengths = (int(n) for n in random.integers(0, 40, 3))
        x = random.random((rows, sum(lengths)), np.float32)
        actual = opened.run(None, {"x": x, "lengths": np.array(lengths)})
        assert_same(actual, pieces(x, lengths, 1))
    assert ran(opened) == {EP: 200}


def runs_that_differ():
    """Some alike, then some that differ from them in one thing that a plan depends on."""
    x = np.arange(24, dtype=np.float32)
    for shape, lengths in [((2, 12), [5, 7]), ((2, 12), [7, 5]), ((4, 6), [5, 1]),
                           ((1, 4, 6), [2, 2]), ((4, 6), [6, 0]), ((4, 6), []), ((4, 6), [5, 1])]:
        for _ in range(4):
            yield x.reshape(shape), lengths
            x = x + 1


@pytest.mark.parametrize("outputs", [["a", "b"], ["", "b"]])
@pytest.mark.parametrize("dtype", [np.float32, object])
def test_runs_that_differ_from_the_last_one(session, outputs, dtype):
    element = TensorProto.FLOAT if dtype is np.float32 else TensorProto.STRING
    opened = session(split_model(outputs, lengths="input", axis=1, opset=13, dtype=element))
    for _ in range(3):
        for x, lengths in runs_that_differ():
            x = x if dtype is np.float32 else x.astype(str).astype(object)
            expected = pieces(x, lengths or [x.shape[1] // 2] * 2, 1)
            feeds = {"x": x, "lengths": np.array(lengths, np.int64)}
            assert_same(opened.run(None, feeds), expected[-len(opened.get_outputs()):])
            with pytest.raises(Exception, match="libsplit: .*the sum of split is 99, but the extent of the axis is"):
                opened.run(None, feeds | {"lengths": np.array([98, 1])})


@pytest.mark.parametrize("different", [1, 2])
def test_many_threads_run_the_same_or_two_in_turns(session, different):
    opened = session(split_model(["a", "b", "c"], lengths="input", axis=1))

    def work(seed):
        for run in range(300):
            lengths = [30 + (run + seed) % different, 1, 50]
            x = np.full((20, sum(lengths)), seed * 1000 + run, np.float32)
            x[:, ::7] = run
            assert_same(opened.run(None, {"x": x, "lengths": np.array(lengths)}),
                        pieces(x, lengths, 1))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_unknown_rank(session):
    opened = session(split_model(["a", "b"], num_outputs=2, axis=-1))
    for rank in range(1, 9):
        x = np.arange(2**rank, dtype=np.float32).reshape((2,) * rank)
        assert_same(opened.run(None, {"x": x}), pieces(x, [1, 1], rank - 1))


def test_many_outputs_and_large_tensors(session):
    x = random_bits(4, (3, 5000, 7)).view(np.int32)
    names = [f"o{i}" for i in range(5000)]
    opened = session(split_model(names, dtype=TensorProto.INT32, axis=1, num_outputs=5000))
    assert_same(opened.run(None, {"x": x}), pieces(x, [1] * 5000, 1))
    # Large enough for the thread pool, with pieces that do not begin on a line.
    options = ort.SessionOptions()
    options.intra_op_num_threads = 4
    x = random_bits(1, (1001, 30_001))
    model = split_model(["a", "b", "c"], dtype=TensorProto.UINT8, axis=1, lengths=[1, 17, 29_983])
    assert_same(session(model, options).run(None, {"x": x}), pieces(x, [1, 17, 29_983], 1))


X = np.arange(12, dtype=np.float32).reshape(2, 6)


@pytest.mark.parametrize("lengths, message", [
    ([2, 2, 2], "the number of outputs is 2, but ONNX Split-18 gives 3 here: pass as many outputs, without a name"),
    ([6], "the number of outputs is 2, but ONNX Split-18 gives 1"),
    ([2, 3], "the sum of split is 5, but the extent of the axis is 6"),
    ([2, 5], "the sum of split is 7, but the extent of the axis is 6"),
    ([7, -1], r"split\[1\] is -1"),
    ([-1, 7], r"split\[0\] is -1"),
    ([2**62, 2**62], ""),
    ([-(2**63), 6], ""),
    ([[2, 4]], "the rank of split is 2"),
    (6, "the rank of split is 0"),
])
def test_bad_lengths_at_run_time_are_an_error_with_the_reason(session, lengths, message):
    opened = session(split_model(["a", "b"], lengths="input", axis=1))
    for _ in range(3):
        with pytest.raises(InvalidArgument, match=f"libsplit: .*{message}") as raised:
            opened.run(None, {"x": X, "lengths": np.array(lengths, np.int64)})
        for word in "params", "libsplit_", "LIBSPLIT_", "NULL", "all-zero":
            assert word not in str(raised.value)
        assert opened.get_providers() == [EP, CPU]
        good = opened.run(None, {"x": X, "lengths": np.array([1, 5])})
        assert_same(good, pieces(X, [1, 5], 1))


@pytest.mark.parametrize("x, options, message", [
    (X, {"axis": 2, "num_outputs": 2}, r"axis 2 is outside \[-2, 1\]"),
    (X, {"axis": -3, "num_outputs": 2}, r"axis -3 is outside \[-2, 1\]"),
    (X[0, 0], {"num_outputs": 2}, "rank is 0"),
    (X[:, :5], {"axis": 1, "opset": 13}, "cannot divide an extent of 5 into 2 equal parts"),
    (X, {"axis": 1, "opset": 11, "split": [3, 4]}, "the sum of split is 7"),
    (X, {"axis": 1, "opset": 2, "split": [7, -1]}, r"split\[1\] is -1"),
    (X, {"axis": 1, "lengths": "input", "num_outputs": 2}, "both given"),
])
def test_bad_nodes_are_an_error_with_the_reason(session, x, options, message):
    opened = session(split_model(["a", "b"], **options))
    feeds = {"x": np.asarray(x)}
    if options.get("lengths") == "input":
        feeds["lengths"] = np.array([2, 4])
    for _ in range(3):
        with pytest.raises(Exception, match=f"libsplit: .*{message}"):
            opened.run(None, feeds)


def branch(name, lengths):
    nodes = [helper.make_node("Split", ["x", f"{name}_lengths"], [f"{name}_a", f"{name}_b"])]
    initializers = [constant(f"{name}_lengths", np.array(lengths))]
    outputs = [value(f"{name}_a"), value(f"{name}_b")]
    return helper.make_graph(nodes, name, [], outputs, initializer=initializers)


def test_if_bodies(session):
    node = helper.make_node("If", ["yes"], ["a", "b"], then_branch=branch("then", [1, 4]),
                            else_branch=branch("else", [3, 2]))
    model = model_of([node], [value("yes", TensorProto.BOOL, []), value("x", shape=[5])],
                     [value("a"), value("b")])
    opened = session(model)
    x = np.arange(5, dtype=np.float32)
    assert_same(opened.run(None, {"x": x, "yes": np.array(True)}), pieces(x, [1, 4]))
    assert_same(opened.run(None, {"x": x, "yes": np.array(False)}), pieces(x, [3, 2]))
    assert ran(opened) == {EP: 2}


def test_loop_bodies(session):
    """Each round splits what is left in two and keeps the first half."""
    body = helper.make_graph(
        [helper.make_node("Split", ["carried"], ["left", "right"], num_outputs=2),
         helper.make_node("Identity", ["go"], ["go_on"]),
         helper.make_node("ReduceSum", ["right"], ["sum"], keepdims=0)],
        "body",
        [value("round", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
         value("carried", shape=[None])],
        [value("go_on", TensorProto.BOOL, []), value("left", shape=[None]), value("sum", shape=[])])
    node = helper.make_node("Loop", ["rounds", "", "x"], ["rest", "sums"], body=body)
    model = model_of([node], [value("rounds", TensorProto.INT64, []), value("x", shape=[None])],
                     [value("rest", shape=[None]), value("sums", shape=[None])])
    opened = session(model)
    rest, sums = opened.run(None, {"rounds": np.array(4), "x": np.arange(16, dtype=np.float32)})
    assert rest.tolist() == [0]
    assert sums.tolist() == [sum(range(8, 16)), 4 + 5 + 6 + 7, 2 + 3, 1]
    assert ran(opened) == {EP: 4}


def test_a_split_of_constants_is_folded_as_without_the_provider(session):
    nodes = [helper.make_node("Split", ["c"], ["a", "b"], num_outputs=2),
             helper.make_node("Add", ["x", "b"], ["y"])]
    x, c = np.ones(2, np.float32), np.arange(4, dtype=np.float32)
    opened = session(model_of(nodes, [value("x", shape=[2])], [value("y")], [constant("c", c)]))
    assert_same(opened.run(None, {"x": x}), [x + c[2:]])


def test_many_threads_run_one_session(session):
    opened = session(split_model(["a", "b", "c"], lengths="input", axis=1))

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(100):
            lengths = [int(n) for n in random.integers(0, 300, 3)]
            x = random.random((int(random.integers(1, 300)), sum(lengths)), np.float32)
            if random.random() < 0.1:
                with pytest.raises(Exception, match="libsplit: .*the sum of split"):
                    opened.run(None, {"x": x, "lengths": np.array([*lengths[:2], lengths[2] + 1])})
            assert_same(opened.run(None, {"x": x, "lengths": np.array(lengths)}),
                        pieces(x, lengths, 1))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


class TestOptions:
    # 4,000 bytes and a size that the model does not tell.
    model = model_of(
        [helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2),
         helper.make_node("Split", ["y"], ["c", "d"], num_outputs=2)],
        [value("x", shape=[1000]), value("y", shape=["n"])], [value(name) for name in "abcd"])
    feeds = {"x": np.zeros(1000, np.float32), "y": np.zeros(4, np.float32)}

    @pytest.mark.parametrize("min_bytes, expected", [
        ("0", {EP: 2}), ("4000", {EP: 2}), ("4001", {EP: 1, CPU: 1}), (str(2**64 - 1), {EP: 1, CPU: 1}),
    ])
    def test_nodes_known_to_be_small_are_left_to_onnx_runtime(self, session, min_bytes, expected):
        opened = session(self.model, provider_options={"claim": "all", "min_bytes": min_bytes})
        opened.run(None, self.feeds)
        assert ran(opened) == expected

    def test_but_not_if_it_cannot_run_them(self, session):
        for model in (split_model(["a", ""], shape=[4], num_outputs=2),
                      split_model(["a", "b"], opset=1, shape=[4])):
            opened = session(model, provider_options={"min_bytes": "1000"})
            opened.run(None, {"x": np.zeros(4, np.float32)})
            assert ran(opened) == {EP: 1}

    def test_claims_are_logged_on_request(self, session, capfd):
        options = ort.SessionOptions()
        options.log_severity_level = 2
        model = split_model(["a", "b"], shape=[1000, 64], num_outputs=2)
        session(model, options, {})
        assert "libsplit" not in capfd.readouterr().err
        for claim, expected in (("all", "takes node 'split' (Split-18): claim=all"),
                                ("benefit", "leaves node 'split' (Split-18): the pieces of a row are long")):
            options = ort.SessionOptions()
            options.log_severity_level = 2
            session(model, options, {"log_claims": "1", "claim": claim})
            assert f"libsplit {expected}" in capfd.readouterr().err

    def test_claims_on_what_has_no_name_and_on_sequences(self, session, capfd):
        nodes = [helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2),
                 helper.make_node("SplitToSequence", ["x"], ["s"], name="unbind"),
                 helper.make_node("SequenceAt", ["s", "zero"], ["c"])]
        model = model_of(nodes, [value("x", shape=[4])], [value(name) for name in "abc"],
                         [constant("zero", np.array(0))])
        options = ort.SessionOptions()
        options.log_severity_level = 2
        session(model, options, {"log_claims": "1"})
        logged = capfd.readouterr().err
        assert "libsplit leaves the node without a name that gives 'a' (Split-18): " in logged
        assert "libsplit leaves node 'unbind' (SplitToSequence-11): " in logged
        assert "rewrite_sequences" in logged

    @pytest.mark.filterwarnings("ignore:Specified 'providers'")
    @pytest.mark.parametrize("name, bad, message", [
        ("min_bytes", "-1", "min_bytes=-1: give a whole number of bytes"),
        ("min_bytes", "1k", "min_bytes=1k: give a whole number of bytes"),
        ("claim", "most", "claim=most: give benefit or all"),
        ("log_claims", "yes", "log_claims=yes: give 0 or 1"),
        ("min_byte", "1", "min_byte=1: there is no such option: give claim, min_bytes or log_claims"),
    ])
    def test_a_bad_option_is_an_error_that_names_it(self, session, capfd, name, bad, message):
        """Before 1.32, Python's InferenceSession prints it, and goes on without the provider."""
        if RELEASE >= 32:
            with pytest.raises(InvalidArgument, match=f"libsplit: provider option {message}"):
                session(self.model, provider_options={name: bad})
            return
        opened = session(self.model, provider_options={name: bad})
        assert f"libsplit: provider option {message}" in capfd.readouterr().out
        assert opened.get_providers() == [CPU]

    def test_a_bad_option_is_raised_where_falling_back_is_off(self, devices):
        options = ort.SessionOptions()
        options.add_provider_for_devices(devices, {"min_bytes": "1k"})
        kind = RuntimeError if RELEASE < 32 else InvalidArgument
        with pytest.raises(kind, match="libsplit: provider option min_bytes=1k"):
            ort.InferenceSession(self.model.SerializeToString(), options, enable_fallback=0)


FLOAT16, STRING, UINT8 = TensorProto.FLOAT16, TensorProto.STRING, TensorProto.UINT8
SHORT = "many short pieces of rows"
# As ONNX Runtime did before 1.32; later, it runs them itself.
REFUSED = "refuses a last part of 0" if RELEASE < 32 else None


@pytest.mark.parametrize("shape, axis, outputs, options, expected", [
    # What it is faster at.
    ([25200, 85], 1, 3, {"lengths": [4, 1, 80]}, SHORT),
    ([8, 4096, 8], -1, 4, {"lengths": [2] * 4}, SHORT),
    ([1080, 1920, 3], 2, 3, {"dtype": UINT8, "num_outputs": 3}, SHORT),
    (["height", "width", 3], 2, 3, {"dtype": UINT8, "num_outputs": 3}, SHORT),
    (["batch", 8400, 84], 2, 2, {"lengths": [4, 80]}, SHORT),
    ([8400, 40], 1, 2, {"lengths": "input"}, SHORT),
    ([16384, 128], 1, 2, {"lengths": [4, 124]}, SHORT),
    ([192, 24], 1, 3, {"lengths": [8] * 3}, SHORT),
    ([768, 4], 1, 4, {"num_outputs": 4}, SHORT),
    (["rows", 6], 1, 3, {"num_outputs": 3}, SHORT),
    ([8, 512, 2304], 2, 3, {"lengths": [768] * 3}, "the input does not fit in the caches"),
    ([1, 4096, 22016], 2, 2, {"dtype": FLOAT16, "opset": 13}, "the input does not fit in the caches"),
    # What it is not.
    ([1, 3072], 1, 3, {"lengths": [1024] * 3}, None),
    ([32, 32], 1, 2, {"lengths": [16, 16]}, None),
    ([8, 8], 1, 2, {"opset": 13}, None),
    ([128, 24], 1, 3, {"lengths": [8] * 3}, None),
    ([512, 64], 1, 64, {"num_outputs": 64}, None),
    (["rows", 4], 1, 4, {"num_outputs": 4}, None),
    ([1, 64, 80, 80], 1, 2, {"lengths": [32, 32]}, None),
    ([1, 512, 2304], 2, 3, {"lengths": [768] * 3}, None),
    ([8400, 84], 1, 2, {"lengths": [42, 42]}, None),
    (["rows", 1600], 1, 4, {"opset": 13}, None),
    (["rows", "columns"], 1, 2, {"lengths": "input"}, None),
    (None, 0, 2, {"lengths": [1, 2]}, None),
    ([100_000, 4], 1, 2, {"dtype": STRING, "num_outputs": 2}, None),
    # What ONNX Runtime cannot run, or not whatever the extent is.
    ([4], 0, 2, {"opset": 1}, "no kernel for Split-1"),
    ([4], 0, 3, {"lengths": [1, 2, 1], "unused": True}, "outputs without a name"),
    ([6], 0, 4, {"num_outputs": 4}, REFUSED),
    ([0, 4], 0, 1, {"num_outputs": 1}, REFUSED),
    ([2**24 + 1], 0, 2, {"dtype": UINT8, "num_outputs": 2}, REFUSED or "the input does not fit in the caches"),
    (["n"], 0, 3, {"num_outputs": 3}, REFUSED),
    (None, 0, 4, {"num_outputs": 4}, REFUSED),
    (["n"], 0, 2, {"num_outputs": 2}, None),
    (["n"], 0, 3, {"opset": 13}, None),
    ([2**16, 2**15], 0, 2, {"dtype": UINT8, "lengths": [1, 2**16 - 1]}, "this many elements"),
])
def test_claims_by_benefit(session, capfd, shape, axis, outputs, options, expected):
    """Taken with this reason; None: left to ONNX Runtime."""
    names = [f"o{i}" for i in range(outputs)]
    if options.pop("unused", False):
        names[1] = ""
    log = ort.SessionOptions()
    log.log_severity_level = 2
    session(split_model(names, shape=shape, axis=axis, **options), log, {"log_claims": "1"})
    logged = capfd.readouterr().err
    assert f"libsplit {'takes' if expected else 'leaves'} node 'split'" in logged
    assert (expected or "") in logged


@pytest.mark.parametrize("given", [(4, 6), (8, 6), (4, 9), (2, 4, 3)])
def test_an_input_of_another_shape_than_the_model_declares(session, given):
    """ONNX Runtime checks what a user gives, but not what nodes before give: it only warns."""
    node = helper.make_node("Reshape", ["x", "shape"], ["reshaped"])
    split = helper.make_node("Split", ["reshaped"], ["a", "b", "c"], axis=-1, num_outputs=3)
    model = model_of([node, split], [value("x", shape=["n"]), value("shape", TensorProto.INT64, ["r"])],
                     [value(name) for name in "abc"])
    model.graph.value_info.append(value("reshaped", shape=[4, 6]))
    opened = session(model)
    x = np.arange(np.prod(given), dtype=np.float32)
    for _ in range(3):
        actual = opened.run(None, {"x": x, "shape": np.array(given)})
        assert_same(actual, pieces(x.reshape(given), [given[-1] // 3] * 3, len(given) - 1))
