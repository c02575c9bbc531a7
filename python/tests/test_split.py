"""Views: the right pieces of every kind of NumPy array, sharing its memory."""

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import libsplit

Array = np.ndarray[Any, np.dtype[Any]]


def cut(x: Array, lengths: list[int], axis: int) -> list[Array]:
    """Returns the pieces that NumPy makes."""
    return np.split(x, np.cumsum(lengths)[:-1], axis)


def assert_views(pieces: list[Array], expected: list[Array]) -> None:
    assert len(pieces) == len(expected)
    for piece, like in zip(pieces, expected):
        assert type(piece) is np.ndarray
        assert (piece.shape, piece.dtype) == (like.shape, like.dtype)
        assert piece.flags.writeable == like.flags.writeable
        if piece.size:
            assert piece.__array_interface__["data"] == like.__array_interface__["data"]
            moving = [axis for axis, extent in enumerate(piece.shape) if extent > 1]
            assert [piece.strides[axis] for axis in moving] == [like.strides[axis] for axis in moving]


def layouts(x: Array) -> list[Array]:
    """Returns arrays of the same shape in other layouts."""
    gaps = np.zeros([2 * extent for extent in x.shape], x.dtype)
    gaps[tuple(slice(None, None, 2) for _ in x.shape)] = x
    apart = np.zeros(x.shape, [("x", x.dtype), ("y", "i1")])
    apart["x"] = x
    return [
        x,
        np.asfortranarray(x),
        x[tuple(slice(None, None, -1) for _ in x.shape)],
        gaps[tuple(slice(None, None, 2) for _ in x.shape)],
        np.broadcast_to(x[:1], x.shape),
        apart["x"],
        np.frombuffer(b"-" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
    ]


DTYPES = [
    *"?bBhHiIqQefdgFDG",
    ">f4", "S3", "U2", "V5", "M8[ns]", "m8[s]",
    [("a", "f4"), ("b", "i1")],
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e3m4, ml_dtypes.int4,
    ml_dtypes.float6_e2m3fn,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_any_dtype_in_any_layout(dtype: Any) -> None:
    dtype = np.dtype(dtype)
    x = np.frombuffer(np.random.default_rng(1).bytes(24 * dtype.itemsize), dtype).reshape(4, 6)
    for x in layouts(x):
        assert_views(libsplit.split(x, [1, 3, -1], axis=1), cut(x, [1, 3, 2], 1))
        assert_views(libsplit.split(x, 2, axis=-2), cut(x, [2, 2], 0))
        for copied, piece in zip(libsplit.copy(x, 3, axis=1), cut(x, [2, 2, 2], 1)):
            assert (copied.shape, copied.dtype) == (piece.shape, piece.dtype)
            assert copied.flags.c_contiguous and copied.flags.owndata and copied.flags.writeable
            assert copied.tobytes() == piece.tobytes()


@settings(deadline=None)
@given(st.data())
def test_lengths_as_numpy_cuts(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 5))
    axis = data.draw(st.integers(-rank, rank - 1))
    lengths = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    shape = data.draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank))
    shape[axis] = sum(lengths)
    x = np.arange(np.prod(shape, dtype=int), dtype=np.uint16).reshape(shape)
    x = x.transpose(data.draw(st.permutations(range(rank))))
    shape = list(x.shape)
    lengths = lengths if sum(lengths) == shape[axis] else [shape[axis]]
    assert_views(libsplit.split(x, lengths, axis), cut(x, lengths, axis))
    kind: Any = data.draw(st.sampled_from([tuple, np.array, list]))
    copies = libsplit.copy(x, kind(lengths), axis)
    assert [piece.tolist() for piece in copies] == [p.tolist() for p in cut(x, lengths, axis)]
    assert libsplit.infer(shape, lengths, axis) == [piece.shape for piece in copies]


@pytest.mark.parametrize("extent", range(12))
@pytest.mark.parametrize("parts", range(1, 9))
def test_policies(extent: int, parts: int) -> None:
    x = np.arange(extent)

    def sizes(uneven: Any) -> list[int]:
        pieces = libsplit.split(x, parts, uneven=uneven)
        assert np.array_equal(np.concatenate(pieces), x)
        assert libsplit.infer((extent,), parts, uneven=uneven) == [p.shape for p in pieces]
        return [len(piece) for piece in pieces]

    assert sizes("even_out") == [len(piece) for piece in np.array_split(x, parts)]
    piece = -(-extent // parts)
    chunks = [min(piece, extent - start) for start in range(0, extent, piece)] if extent else []
    assert sizes("chunk") == (chunks or [0] * parts)
    last = extent - (parts - 1) * piece
    if last < 0:
        with pytest.raises(ValueError, match="parts_or_lengths"):
            sizes("last_smaller")
    else:
        assert sizes("last_smaller") == [piece] * (parts - 1) + [last]
    if extent % parts:
        with pytest.raises(ValueError, match="does not divide the extent"):
            sizes("refuse")
    else:
        assert sizes("refuse") == [extent // parts] * parts


def test_pieces_share_memory_and_keep_it_alive() -> None:
    class Owner(bytearray):
        pass

    owner = Owner(np.arange(12.0).tobytes())
    gone = weakref.ref(owner)
    x = np.frombuffer(owner)
    pieces = libsplit.split(x, 3)
    pieces[1][0] = -1
    assert x[4] == -1
    del owner, x
    gc.collect()
    assert gone() is not None and pieces[1][0] == -1
    del pieces
    gc.collect()
    assert gone() is None


def test_read_only_stays_so() -> None:
    x = np.arange(4)
    x.flags.writeable = False
    assert not any(piece.flags.writeable for piece in libsplit.split(x, 2))
    assert all(piece.flags.writeable for piece in libsplit.copy(x, 2))


def test_references() -> None:
    x = np.array([1, "two", None, [4]], object)
    assert libsplit.split(x, 2)[1][1] is x[3]
    with pytest.raises(TypeError, match="refer to memory outside"):
        libsplit.copy(x, 2)
    with pytest.raises(TypeError, match="mask would be lost"):
        libsplit.split(np.ma.masked_array([1, 2], [True, False]), 2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, "parts_or_lengths is 0, but at least 1 is needed"),
        ((-1,), ValueError, "parts_or_lengths is -1, but at least 1 is needed"),
        ((2**62,), ValueError, "parts_or_lengths is 4611686018427387904, which does not divide"),
        ((2**64,), ValueError, "parts_or_lengths 18446744073709551616 does not fit in 64 bits"),
        ((2, -(2**63) - 1), ValueError, "-9223372036854775809 does not fit in 64 bits"),
        ((2.5,), TypeError, "parts_or_lengths has type <class 'float'>"),
        ((True,), TypeError, "parts_or_lengths is True: pass a whole number or a list"),
        ((2, "a"), TypeError, "axis has type <class 'str'>: pass a whole number"),
        (("ab",), TypeError, "parts_or_lengths has type <class 'str'>"),
        ((b"\1\5",), TypeError, "parts_or_lengths has type <class 'bytes'>"),
        (([2, 4.0],), TypeError, r"parts_or_lengths\[1\] has type <class 'float'>.*pass int"),
        ((np.array([2.0, 4.0]),), TypeError, r"parts_or_lengths\[0\] has type <class 'numpy.float64'>"),
        (([2, 2**64],), ValueError, r"parts_or_lengths\[1\] 18446744073709551616 does not fit in 64 bits"),
        (({2, 4},), TypeError, "has type <class 'set'>, which is not a sequence: pass a list"),
        ((frozenset((2, 4)),), TypeError, "which is not a sequence"),
        (({2: 1, 4: 1},), TypeError, "has type <class 'dict'>, which is not a sequence"),
        (({2: 1, 4: 1}.keys(),), TypeError, "which is not a sequence"),
        (([2, 5],), ValueError, r"numpy.split's cut points \[2, 5\] pass \[2, 3, 1\]"),
        (([1, 3],), ValueError, r"numpy.split's cut points \[1, 3\] pass \[1, 2, 3\]"),
        (([1, 2],), ValueError, "the sum of parts_or_lengths is 3, but the extent of the axis is 6"),
        (([2, 2],), ValueError, "make the lengths add up to it$"),  # nobody cuts twice at one place
        (([-1, -1],), ValueError, r"parts_or_lengths\[1\] is a second -1: at most 1 length may be -1, but 2 are"),
        (([-2, 8],), ValueError, r"parts_or_lengths\[0\] is -2, but a length is at least 0: one may be -1, for"),
        (([2**63 - 1, 2],), ValueError, "the sum of parts_or_lengths is above"),
        (([],), ValueError, "parts_or_lengths"),
        ((2, 1), ValueError, r"axis 1 is outside \[-1, 0\] of rank 1"),
        ((2, -2), ValueError, "axis -2"),
        ((libsplit.Operator.openvino_split(2), 0), TypeError, "parameters of its own"),
    ],
)
def test_refused(arguments: Any, error: type[Exception], message: str) -> None:
    functions: list[Any] = [libsplit.split, libsplit.copy, libsplit.Plan]
    for function in functions:
        with pytest.raises(error, match=message) as raised:
            function(np.arange(6), *arguments)
        for word in "params", "NULL", "LIBSPLIT_", "libsplit_", "all-zero", "data_bytes":
            assert word not in str(raised.value)


def test_each_argument_has_its_own_name() -> None:
    x = np.arange(10)
    wrongs: list[Any] = [[5.0, 5.0], [2**70, 1], [-2, 12], [3, 3]]
    for wrong in wrongs:
        refusals: list[tuple[str, Any]] = [
            (r"(the sum of )?split_lengths(\[| is)", lambda: libsplit.variadic_split(x, wrong)),
            (r"(the sum of )?split(\[| is)", lambda: libsplit.onnx_split(x, wrong)),
            (r"(the sum of )?split(\[| is)", lambda: libsplit.split_to_sequence(x, wrong)),
            (r"(the sum of )?parts_or_lengths(\[| is)", lambda: libsplit.split(x, wrong)),
        ]
        for name, call in refusals:
            with pytest.raises((TypeError, ValueError), match=f"^{name}") as raised:
                call()
            assert "numpy.split" not in str(raised.value) or "parts" in name
    with pytest.raises(ValueError, match="does not fit in 64 bits"):
        libsplit.openvino_split(x, 2**64)
    with pytest.raises(ValueError, match="does not fit in 64 bits"):
        libsplit.infer((2**64,), 2)
    with pytest.raises(ValueError, match="does not fit in 64 bits"):
        libsplit.copy(x, 2, threads=2**64)
    unordered: list[Any] = [{1: x}, {3: 4}.keys(), frozenset()]
    for wrong_out in unordered:
        with pytest.raises(TypeError, match="out has type .*, which is not a sequence"):
            libsplit.copy(x, 2, out=wrong_out)
    with pytest.raises(TypeError, match="shape has type <class 'set'>"):
        libsplit.infer({3, 4}, 2)
    with pytest.raises(ValueError, match="x has 64 axes and elements that are split byte by byte"):
        libsplit.split(np.zeros((1,) * 64, "V3"), 1)


def test_refused_inputs() -> None:
    with pytest.raises(ValueError, match="without axes"):
        libsplit.split(np.array(1.0), 1)
    no_tensor: Any = [1, 2]
    with pytest.raises(TypeError, match="x has type <class 'list'>: pass a NumPy array"):
        libsplit.split(no_tensor, 2)
    other: Any = "odd"
    with pytest.raises(ValueError, match="uneven is 'odd'"):
        libsplit.split(np.arange(3), 2, uneven=other)
    with pytest.raises(ValueError, match="axis -3 is outside"):
        libsplit.split(layouts(np.zeros((2, 2)))[5], 2, axis=-3)


def test_infer_with_what_is_not_known() -> None:
    assert libsplit.infer((None, 4), [1, -1]) == [(1, 4), (None, 4)]
    assert libsplit.infer((None, None), 2, axis=1) == [(None, None)] * 2
    assert libsplit.infer((None,), 2, uneven="even_out") == [(None,)] * 2
    with pytest.raises(ValueError, match="infer when it is"):
        libsplit.infer((None,), 2, uneven="chunk")
    with pytest.raises(ValueError, match="None stands for an unknown extent"):
        libsplit.infer((-1,), 2)
    halves = libsplit.Operator.onnx_split(num_outputs=2, opset=11)
    assert libsplit.infer((4,), halves, dtype="float16") == [(2,), (2,)]
    with pytest.raises(TypeError, match="BFLOAT16 is not allowed by ONNX Split-11"):
        libsplit.infer((4,), halves, dtype=ml_dtypes.bfloat16)
