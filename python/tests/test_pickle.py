"""Operators and plans can be sent to other processes, and their repr says what they are."""

import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest

import libsplit
from libsplit import Operator

OPERATORS = [
    Operator.onnx_split([2, 3], axis=1, opset=11),
    Operator.onnx_split(num_outputs=2, axis=-1, clamp_uneven=True),
    Operator.onnx_split(np.array([1, 4], np.float32), axis=1, opset=1),
    Operator.split_to_sequence(2, axis=1),
    Operator.split_to_sequence(keepdims=False, opset=11),
    Operator.variadic_split([-1, 2], axis=1),
    Operator.openvino_split(4),
]


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_operators(operator: Operator) -> None:
    again = pickle.loads(pickle.dumps(operator))
    assert repr(again) == repr(operator)
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    assert [p.tolist() for p in libsplit.split(x, again)] == [
        p.tolist() for p in libsplit.split(x, operator)]  # fmt: skip


def layouts() -> list[Any]:
    return [
        np.arange(24.0).reshape(4, 6),
        np.arange(24, dtype=">i2").reshape(6, 4).T,
        np.arange(24)[::-1].reshape(4, 6),
        np.zeros((4, 6), [("x", "f4"), ("y", "i1")])["x"],
        np.zeros((4, 6), "V3"),
        np.zeros((0, 6)),
        libsplit.Tensor(np.arange(12, dtype=np.uint8), dtype="int4", shape=(4, 6)),
        libsplit.Tensor(np.arange(24.0).reshape(6, 4).T),
    ]


def content(piece: Any) -> tuple[Any, bytes]:
    if isinstance(piece, libsplit.Tensor):
        return piece.shape, libsplit.join([piece]).bytes().numpy().tobytes()
    return piece.shape, piece.tobytes()


@pytest.mark.parametrize("x", layouts(), ids=str)
def test_plans(x: Any) -> None:
    plan = libsplit.Plan(x, 2, axis=1)
    again = pickle.loads(pickle.dumps(plan))
    assert repr(again) == repr(plan)
    for pieces in again.split(x), again.copy(x):
        assert list(map(content, pieces)) == list(map(content, plan.split(x)))


def left_sum(job: tuple[libsplit.Plan, Any]) -> float:
    plan, x = job
    return float(plan.split(x)[0].sum())


def test_in_a_worker_process() -> None:
    x = np.arange(24.0).reshape(4, 6)
    plan = libsplit.Plan(x, [2, 4], axis=1)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(left_sum, [(plan, x)]) == [x[:, :2].sum()]


def test_damaged_pickles() -> None:
    restore = OPERATORS[0].__reduce__()[0]
    number, fields, _ = OPERATORS[0].__reduce__()[1]
    for sizes in (1, [1], None), (None, None, (b"123", [1], 7)), (None, None, (b"", [-1], 7)), None:
        with pytest.raises(ValueError, match="the pickle is damaged"):
            restore(number, fields, sizes)
    with pytest.raises(ValueError, match="the pickle is damaged"):
        restore(number, (*fields[:-1], "name"), (None, None, None))


@pytest.mark.parametrize("what", [OPERATORS[0], libsplit.Plan(np.zeros(4), 2)], ids=["Operator", "Plan"])
def test_pickles_of_other_formats_are_refused(what: Any) -> None:
    restore, (number, *contents) = what.__reduce__()
    assert number == 1
    assert repr(restore(number, *contents)) == repr(what)
    # A later format may have anything after its number.
    laters: list[list[Any]] = [contents, [], [*contents, "more"], [{}]]
    for later in laters:
        with pytest.raises(ValueError, match=r"has format 2, but libsplit [\d.]+ reads only format 1"):
            restore(2, *later)


def test_plans_say_what_they_are() -> None:
    plan = libsplit.Plan(np.empty((2, 6), np.float32), [2, 4], axis=1)
    assert repr(plan) == "<libsplit.Plan for float32 (2, 6) into [(2, 2), (2, 4)]>"


def test_a_plan_is_explained_when_it_is_printed() -> None:
    plan = libsplit.Plan(np.empty((1080, 1920, 3), np.uint8), 3, axis=2)
    assert "[1080, 1920, 3], axis 2 into 3 pieces" in str(plan)
    assert not str(plan).endswith("\n") and "\0" not in str(plan)


def test_only_what_is_for_users() -> None:
    names = {name for name in dir(libsplit) if not name.startswith("_")}
    assert names == set(libsplit.__all__) - {"__version__"}
