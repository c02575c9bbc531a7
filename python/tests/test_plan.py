"""A split that is prepared once gives the same as split and copy."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import libsplit
from libsplit import Operator


@settings(deadline=None)
@given(st.data())
def test_as_split_and_copy(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    shape = data.draw(st.lists(st.integers(0, 6), min_size=rank, max_size=rank))
    axis = data.draw(st.integers(-rank, rank - 1))
    dtype: Any = data.draw(st.sampled_from(["u1", "f4", "c16", "S3"]))
    order = data.draw(st.permutations(range(rank)))

    def fresh(seed: int) -> Any:
        size = int(np.prod(shape))
        values = np.random.default_rng(seed).bytes(size * np.dtype(dtype).itemsize)
        return np.frombuffer(bytearray(values), dtype).reshape(shape).transpose(order)

    parts_or_lengths: Any = data.draw(st.sampled_from([1, 3, [-1], Operator.split_to_sequence(2, axis=axis)]))
    options: Any = {} if isinstance(parts_or_lengths, Operator) else {"axis": axis}
    if isinstance(parts_or_lengths, int):
        options["uneven"] = "even_out"
    plan = libsplit.Plan(fresh(0), parts_or_lengths, **options)
    for seed in 1, 2:
        x = fresh(seed)
        expected = libsplit.split(x, parts_or_lengths, **options)
        assert plan.shapes == [piece.shape for piece in expected]
        for views in plan.split(x), expected:
            for view, piece in zip(views, expected, strict=True):
                assert view.__array_interface__ == piece.__array_interface__
        out = [np.empty(piece.shape[::-1], dtype).T for piece in expected]
        for copies in plan.copy(x), plan.copy(x, threads=0), plan.copy(x, out=out):
            assert [piece.tobytes() for piece in copies] == [p.tobytes() for p in expected]


def test_only_what_it_was_made_for() -> None:
    x = np.zeros((4, 6), np.float32)
    plan = libsplit.Plan(x, 2, axis=1)
    wrongs: list[tuple[Any, type[Exception], str]] = [
        (x.astype(int), TypeError, "x has dtype int64, but the plan is for float32"),
        (x[:2], ValueError, r"x has shape \[2, 6\], but the plan is for \[4, 6\]"),
        (np.asfortranarray(x), ValueError, "x does not have the strides"),
        (np.zeros((4, 6), [("x", "f4"), ("y", "i1")])["x"], ValueError, "does not have the strides"),
        ([1], TypeError, "x has type <class 'list'>"),
    ]
    for wrong, error, message in wrongs:
        for function in plan.split, plan.copy:
            with pytest.raises(error, match=message):
                function(wrong)
    assert len(plan.split(np.ones((4, 6), np.float32))) == 2
    with pytest.raises(ValueError, match="out has length 1, but the number of pieces is 2"):
        plan.copy(x, out=[np.empty((4, 3), np.float32)])


def test_it_does_not_hold_what_it_was_made_from() -> None:
    x = np.zeros((4, 6))
    before = sys.getrefcount(x)
    plan = libsplit.Plan(x, 2)
    assert sys.getrefcount(x) == before
    x[:] = 1
    assert plan.split(x)[0].base is x


def test_tensors_and_packed_elements() -> None:
    values = np.array([0x21, 0x43, 0x65], np.uint8)
    plan = libsplit.Plan(libsplit.Tensor(values, dtype="int4"), [3, 3])
    pieces = plan.copy(libsplit.Tensor(values + 1, dtype="int4"))
    assert np.from_dlpack(pieces[1].bytes()).tolist() == [0x64, 0x06]
    assert plan.split(libsplit.Tensor(values, dtype="int4"))[1].bit_offset == 4
    with pytest.raises(TypeError, match="x has dtype uint4, but the plan is for int4"):
        plan.split(libsplit.Tensor(values, dtype="uint4"))
    floats = libsplit.Plan(np.zeros(4, np.float32), 2)
    assert np.from_dlpack(floats.split(libsplit.Tensor(np.ones(4, np.float32)))[1]).tolist() == [1, 1]
