"""Producers whose deleters are written in Python, while an exception is pending."""

import gc
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import libsplit
from capsules import Producer

VALUES = np.arange(6, dtype=np.float32)


# A capsule does not keep these alive.
KEPT: list[Producer] = []


def of_ctypes() -> Any:
    KEPT.append(Producer(VALUES.ctypes.data, [6], [1]))
    return KEPT[-1]


MAKERS: dict[str, Callable[[], Any]] = {"ctypes": of_ctypes}
if importlib.util.find_spec("warp"):
    warp: Any = importlib.import_module("warp")
    warp.config.log_level = warp.LOG_WARNING

    def of_warp() -> Any:
        return warp.array(VALUES, dtype=float, device="cpu")

    MAKERS["warp"] = of_warp


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[[], Any]:
    return MAKERS[request.param]


def test_the_exception_arrives(make: Callable[[], Any]) -> None:
    for _ in range(50):
        with pytest.raises(ZeroDivisionError):
            [libsplit.Tensor(make()), 1 / 0]
        with pytest.raises(ValueError, match="does not divide the extent 6"):
            libsplit.split(libsplit.Tensor(make()), 4)
        with pytest.raises(ZeroDivisionError):
            [libsplit.split(libsplit.Tensor(make()), 2), 1 / 0]
        with pytest.raises(ZeroDivisionError):
            [np.from_dlpack(libsplit.Tensor(make())), 1 / 0]
        with pytest.raises(ZeroDivisionError):
            [libsplit.Tensor(make()).__dlpack__(max_version=(1, 0)), 1 / 0]
        with pytest.raises(ValueError, match="does not divide"):
            libsplit.Plan(libsplit.Tensor(make()), 4)
        with pytest.raises(TypeError, match="parts_or_lengths has type"):
            libsplit.copy(make(), "two")  # type: ignore[arg-type]
    gc.collect()


def test_every_deleter_runs_once() -> None:
    producers = [of_ctypes() for _ in range(20)]
    for producer in producers:
        with pytest.raises(ValueError):
            libsplit.split(libsplit.Tensor(producer), 4)
    gc.collect()
    assert [producer.deleted for producer in producers] == [1] * 20


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_deleter_that_raises() -> None:
    class Wrong(Producer):
        def __init__(self) -> None:
            super().__init__(VALUES.ctypes.data, [6], [1])

            def delete(_: int) -> None:
                raise LookupError("in the deleter")

            self._delete = type(self._delete)(delete)
            self._managed.deleter = self._delete

    KEPT.append(Wrong())
    with pytest.raises(ZeroDivisionError):
        [libsplit.Tensor(KEPT[-1]), 1 / 0]


# `make test` does not install the large libraries.
if importlib.util.find_spec("jax"):
    jnp: Any = importlib.import_module("jax.numpy")

    def test_deleters_while_a_library_lets_go_of_the_interpreter() -> None:
        # When JAX exports, it frees what is left over, within our call and without the interpreter's lock.
        x = jnp.arange(8.0)
        for source in x, VALUES:
            for _ in range(20):
                taken = jnp.from_dlpack(libsplit.Tensor(source))
                cast(Any, taken).__dlpack__(max_version=(1, 0))
                del taken
                assert libsplit.split(x, 2)[1].tolist() == [4, 5, 6, 7]
        gc.collect()


if "warp" in MAKERS:

    def test_warp_gets_its_own_kind() -> None:
        x = warp.array(np.arange(24, dtype=np.float32).reshape(4, 6), dtype=float, device="cpu")
        rows = libsplit.split(x, 2)
        assert isinstance(rows[1], warp.array) and rows[1].ptr == x.ptr + 2 * 6 * 4
        columns = libsplit.split(x, [2, 4], axis=1)
        assert np.array_equal(columns[1].numpy(), x.numpy()[:, 2:])
        copies = libsplit.copy(x, [2, 4], axis=1)
        assert np.array_equal(copies[0].numpy(), x.numpy()[:, :2])
        joined = libsplit.join(copies, axis=1)
        assert isinstance(joined, warp.array) and np.array_equal(joined.numpy(), x.numpy())
        vectors = warp.zeros(4, dtype=warp.vec3, device="cpu")
        assert [tuple(piece.shape) for piece in libsplit.split(vectors, 2)] == [(2, 3), (2, 3)]


