"""Copies into the caller's memory, threads, and Python's lock."""

import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import libsplit

Array = np.ndarray[Any, np.dtype[Any]]


def test_into_arrays_of_any_layout() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    wide = np.full((2, 8), -1, np.float32)
    out: list[Any] = [
        np.empty((4, 2), np.float32, order="F"),
        np.empty((4, 2), np.float32)[::-1],
        np.zeros((4, 2), [("x", np.float32), ("y", "i1")])["x"],
    ]
    given = libsplit.copy(x, 3, axis=1, out=out)
    assert all(a is b for a, b in zip(given, out, strict=True))
    for piece, like in zip(out, np.split(x, 3, axis=1)):
        assert np.array_equal(piece, like)
    libsplit.copy(x[:2], [2, 4], axis=1, out=(None, wide[:, 2:6]))
    assert wide.tolist() == [[-1, -1, 2, 3, 4, 5, -1, -1], [-1, -1, 8, 9, 10, 11, -1, -1]]


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        ([np.empty(2)], ValueError, "out has length 1, but the number of pieces is 2"),
        ([np.empty(2)] * 3, ValueError, "out has length 3, but the number of pieces is 2"),
        ([np.empty(2), np.empty(3)], ValueError, r"out\[1\].shape\[0\] is 3, but the operator gives 2: see libsplit.infer$"),
        ([np.empty(2), np.empty((2, 1))], ValueError, r"out\[1\].rank is 2, but .* see libsplit.infer$"),
        ([np.empty(2), np.empty(2, "f4")], TypeError, r"out\[1\] has dtype float32, but x has float64"),
        ([np.empty(2), np.empty(2, ">f8")], TypeError, "splitting does not convert"),
        ([np.empty(2), "two"], TypeError, r"out\[1\] has type <class 'str'>"),
        ([np.broadcast_to(1.0, 2), None], ValueError, r"out\[0\] is read-only"),
        (None, None, ""),
    ],
)
def test_wrong_outputs(out: Any, error: Any, message: str) -> None:
    x = np.arange(4.0)
    if error is None:
        both = np.zeros(2)
        with pytest.raises(ValueError, match=r"out\[1\] overlaps out\[0\]"):
            libsplit.copy(x, 2, out=[both, both])
        with pytest.raises(ValueError, match=r"out\[0\] overlaps x "):
            libsplit.copy(x, 2, out=[x[1:3], None])
        same_place = np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (0,))
        with pytest.raises(BufferError, match="share an address"):
            libsplit.copy(x, 2, out=[same_place, None])
        return
    with pytest.raises(error, match=message):
        libsplit.copy(x, 2, out=out)
    assert x.tolist() == [0, 1, 2, 3]


def test_nothing_is_written_after_an_error() -> None:
    first = np.full(2, -1.0)
    with pytest.raises(ValueError):
        libsplit.copy(np.arange(4.0), 2, out=[first, np.empty(3)])
    assert first.tolist() == [-1, -1]


@pytest.mark.parametrize("threads", [None, 0, 1, 2, 64])
def test_threads(threads: int | None) -> None:
    x = np.random.default_rng(1).integers(0, 2**32, (1000, 3000), np.uint32)
    for lengths in [1000, 1999, 1], [1] * 3000:
        pieces = libsplit.copy(x, lengths, axis=1, threads=threads)
        assert np.array_equal(libsplit.join(pieces, axis=1, threads=threads), x)


def test_wrong_numbers_of_threads() -> None:
    for wrong in -1, 2**40:
        with pytest.raises(ValueError, match=f"threads is {wrong}, but must be at least 0"):
            libsplit.copy(np.arange(2), 2, threads=wrong)
    halves: Any = 2.5
    calls: list[Any] = [
        lambda: libsplit.copy(np.arange(2), 2, threads=halves),
        lambda: libsplit.Plan(np.arange(2), 2).copy(np.arange(2), threads=halves),
        lambda: libsplit.join([np.arange(2)], threads=halves),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="threads has type <class 'float'>: pass a whole number"):
            call()


def test_many_threads_at_once() -> None:
    x = np.random.default_rng(2).random((512, 1024))
    wrong: list[int] = []

    def work(seed: int) -> None:
        for _ in range(10):
            pieces = libsplit.copy(x, 4 + seed, axis=1, uneven="even_out", threads=0)
            if not np.array_equal(np.concatenate(pieces, 1), x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_lock_is_free_during_large_copies() -> None:
    x = np.zeros(32 << 20, np.uint8)
    turns: list[int] = []
    done = threading.Event()

    def other() -> None:
        while not done.is_set():
            turns.append(1)
            time.sleep(0)  # releases the lock

    thread = threading.Thread(target=other)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # no thread is asked to release it
    try:
        thread.start()
        for _ in range(200):  # on a busy machine the other thread may miss a turn
            before = len(turns)
            libsplit.copy(x, 2)
            if len(turns) > before:
                break
        else:
            pytest.fail("the other thread had no turn during 200 large copies")
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()


FORK = """
import os
import numpy as np
import libsplit

x = np.random.default_rng(3).random(1 << 18)
libsplit.copy(x, 2, threads=0)  # now the parent has threads
child = os.fork()
if child == 0:
    same = np.array_equal(np.concatenate(libsplit.copy(x, 2, threads=0)), x)
    os._exit(0 if same else 1)
_, status = os.waitpid(child, 0)
assert status == 0
"""


def test_a_forked_child_has_threads_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=100)
