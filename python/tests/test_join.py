"""Joining is the inverse of splitting."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import libsplit

PACKED = {"int4": 4, "uint2": 2, "float4_e2m1fn": 4}


@settings(deadline=None)
@given(st.data())
def test_split_and_join(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    shape = data.draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank))
    axis = data.draw(st.integers(-rank, rank - 1))
    dtype: Any = data.draw(st.sampled_from(["u1", "<u2", "f4", "c16", "S3", "M8[s]"]))
    size = int(np.prod(shape))
    x = np.frombuffer(np.random.default_rng(size).bytes(size * np.dtype(dtype).itemsize), dtype)
    x = x.reshape(shape).transpose(data.draw(st.permutations(range(rank))))
    parts = data.draw(st.integers(1, 4))
    pieces = libsplit.split(x, parts, axis, uneven="even_out")
    whole = libsplit.join(pieces, axis)
    assert (whole.shape, whole.dtype, whole.tobytes()) == (x.shape, x.dtype, x.tobytes())
    out = np.empty(x.shape[::-1], x.dtype).T
    assert libsplit.join(pieces, axis, out=out) is out
    assert out.tobytes() == x.tobytes()


@settings(deadline=None)
@given(st.data())
def test_packed(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(sorted(PACKED)))
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    bits = PACKED[dtype] * int(np.prod(shape))
    numbers = np.random.default_rng(bits).integers(0, 256, -(-bits // 8), np.uint8)
    if bits % 8:
        numbers[-1] &= (1 << bits % 8) - 1
    x = libsplit.Tensor(numbers, dtype=dtype, shape=shape)
    parts = data.draw(st.integers(1, 4))
    policies: list[Any] = ["even_out", "chunk"]
    for uneven in policies:
        pieces = libsplit.split(x, parts, axis, uneven=uneven)
        copies = libsplit.copy(x, parts, axis, uneven=uneven)
        for given_pieces in pieces, copies:
            whole = libsplit.join(given_pieces, axis)
            assert (whole.shape, whole.dtype) == (x.shape, dtype)
            assert np.array_equal(np.from_dlpack(whole.bytes()), numbers)


@settings(deadline=None)
@given(st.data())
def test_stack_as_numpy_does(data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, 3))
    shape = data.draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank))
    axis = data.draw(st.integers(-rank - 1, rank))
    dtype: Any = data.draw(st.sampled_from(["u1", "f4", "c16", "S3"]))
    count = data.draw(st.integers(1, 4))
    size = int(np.prod([count, *shape]))
    x = np.frombuffer(np.random.default_rng(size).bytes(size * np.dtype(dtype).itemsize), dtype)
    pieces = list(x.reshape([count, *shape]))
    pieces = [np.asarray(piece, dtype)[::-1] if rank else np.asarray(piece, dtype) for piece in pieces]
    expected = np.stack(pieces, axis)
    whole = libsplit.stack(pieces, axis)
    assert (whole.shape, whole.tobytes()) == (expected.shape, expected.tobytes())
    out = np.empty(expected.shape[::-1], dtype).T
    assert libsplit.stack(pieces, axis, out=out) is out and out.tobytes() == expected.tobytes()
    again = libsplit.split_to_sequence(whole, axis=axis, keepdims=False)
    assert [piece.tobytes() for piece in again] == [piece.tobytes() for piece in pieces]


def test_stack_packed_elements() -> None:
    x = libsplit.Tensor(np.array([0x21, 0x43, 0x65], np.uint8), dtype="int4")
    whole = libsplit.stack(libsplit.split(x, 2), axis=1)
    assert whole.shape == (3, 2)
    assert np.from_dlpack(whole.bytes()).tolist() == [0x41, 0x52, 0x63]


def test_wrong_pieces() -> None:
    x = np.arange(6.0).reshape(2, 3)
    nothing: list[Any] = []
    with pytest.raises(ValueError, match="pieces is empty"):
        libsplit.join(nothing)
    with pytest.raises(ValueError, match=r"pieces\[1\] has shape \[2, 2\], but pieces\[0\] has \[2, 3\]"):
        libsplit.join([x, x[:, :2]])
    with pytest.raises(ValueError, match=r"pieces\[1\] has shape \[6\]"):
        libsplit.join([x, x.ravel()])
    with pytest.raises(TypeError, match=r"pieces\[1\] has dtype int64, but pieces\[0\] has float64"):
        libsplit.join([x, x.astype(int)])
    with pytest.raises(ValueError, match=r"axis 2 is outside \[-2, 1\]"):
        libsplit.join([x, x], axis=2)
    with pytest.raises(ValueError, match=r"pieces\[0\] has no axes to join along: use libsplit.stack"):
        libsplit.join([np.array(1), np.array(2)])
    with pytest.raises(ValueError, match=r"axis 3 is outside \[-3, 2\]"):
        libsplit.stack([x, x], axis=3)
    with pytest.raises(ValueError, match=r"pieces\[1\] has shape \[2, 2\].*libsplit.join"):
        libsplit.stack([x, x[:, :2]])
    with pytest.raises(TypeError, match="which is not a sequence"):
        libsplit.join({1: x})  # type: ignore[arg-type, type-var, unused-ignore]
    with pytest.raises(ValueError, match=r"out has shape \[2, 3\], but the joined pieces have \[4, 3\]"):
        libsplit.join([x, x], out=np.empty((2, 3)))
    with pytest.raises(TypeError, match="out has dtype float32"):
        libsplit.join([x, x], out=np.empty((4, 3), np.float32))
    with pytest.raises(TypeError, match="refer to memory outside"):
        libsplit.join([np.array([None])])


def test_pieces_beside_out_and_in_it() -> None:
    """Both are in one array, and are told apart by their first and last bytes."""
    x: Any = np.arange(9, dtype="<u2")
    parts = [slice(0, 4), slice(4, 8), slice(2, 6), slice(3, 7), slice(1, 5), slice(7, 3, -1), slice(3, None, -1),
             slice(0, 7, 2), slice(1, 8, 2), slice(8, 1, -2)]
    refused = 0
    for of_piece in parts:
        for of_out in parts:
            whole = x.copy()
            piece, out = whole[of_piece], whole[of_out]
            if np.may_share_memory(piece, out):
                with pytest.raises(ValueError, match=r"pieces\[0\] overlaps out"):
                    libsplit.join([piece], out=out)
                assert np.array_equal(whole, x)
                refused += 1
            else:
                libsplit.join([piece], out=out)
                assert np.array_equal(out, x[of_piece])
    assert 0 < refused < len(parts) ** 2


def test_pieces_of_out() -> None:
    x = np.arange(4)
    with pytest.raises(ValueError, match=r"pieces\[0\] overlaps out"):
        libsplit.join([x[2:], x[:2]], out=x)
    assert x.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="overlaps out"):
        libsplit.join([x[::-1]], out=x)
    read_only = np.broadcast_to(0, 4)
    with pytest.raises(ValueError, match="out is read-only"):
        libsplit.join([x], out=read_only)
