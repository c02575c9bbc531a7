"""Tensors of other libraries through DLPack: real partners, and partners that misbehave."""

import gc
import importlib
import importlib.util
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import libsplit
from capsules import COPIED, PADDED, READ_ONLY, Old, Producer, read

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Partner:
    make: Callable[[Array], Any]
    kind: type
    address: Callable[[Any], int]
    numpy: Callable[[Any], Array] = np.asarray


def of_arrow(x: Array) -> Any:
    return pa.array(x)


PARTNERS = {
    "libsplit": Partner(
        libsplit.Tensor,
        libsplit.Tensor,
        lambda x: int(np.from_dlpack(x).__array_interface__["data"][0]),
        np.from_dlpack,
    ),
}
# `make test` does not install the large libraries.
jnp: Any = None
if importlib.util.find_spec("jax"):
    jnp = importlib.import_module("jax.numpy")
    PARTNERS["jax"] = Partner(
        jnp.asarray, type(jnp.zeros(1)), lambda x: int(x.unsafe_buffer_pointer())
    )
pa: Any = None
if importlib.util.find_spec("pyarrow"):
    pa = importlib.import_module("pyarrow")
    PARTNERS["pyarrow"] = Partner(
        of_arrow, pa.Array, lambda x: int(x.buffers()[1].address) + x.offset * 4
    )
if importlib.util.find_spec("warp"):
    warp: Any = importlib.import_module("warp")
    warp.config.log_level = warp.LOG_WARNING
    PARTNERS["warp"] = Partner(
        lambda x: warp.array(x, dtype=warp.float32, device="cpu"),
        warp.array,
        lambda x: int(x.ptr),
        lambda x: np.asarray(x.numpy()),
    )
if importlib.util.find_spec("tensorflow"):
    tensorflow: Any = importlib.import_module("tensorflow")
    # Its tensors have no from_dlpack, so pieces are libsplit's.
    PARTNERS["tensorflow"] = Partner(
        tensorflow.constant,
        libsplit.Tensor,
        lambda x: int(libsplit.Tensor(x).numpy().__array_interface__["data"][0]),
        lambda x: libsplit.Tensor(x).numpy(),
    )
needs_jax = pytest.mark.skipif(jnp is None, reason="JAX is not installed")
needs_pyarrow = pytest.mark.skipif(pa is None, reason="PyArrow is not installed")
if importlib.util.find_spec("torch"):
    import torch  # type: ignore[import-not-found,unused-ignore]

    PARTNERS["torch"] = Partner(torch.from_numpy, torch.Tensor, lambda x: int(x.data_ptr()))

    def test_torch() -> None:
        x = torch.arange(24.0).reshape(4, 6)
        pieces = libsplit.split(x, [2, -1], axis=1)
        assert pieces[1].stride() == (6, 1)
        pieces[1][0, 0] = -9
        assert x[0, 2] == -9
        out = [torch.empty(4, 3), torch.empty(3, 4).T]
        libsplit.copy(x, 2, axis=1, out=out)
        assert torch.equal(torch.cat(out, 1), x)
        assert libsplit.onnx_split(x.bfloat16(), num_outputs=2)[1].dtype == torch.bfloat16
        for refused in torch.ones(4, requires_grad=True), torch.zeros(4).to(torch.complex64).conj():
            with pytest.raises((BufferError, RuntimeError)):
                libsplit.split(refused, 2)
        for extent in range(13):
            for parts in range(1, 9):
                x = torch.arange(extent)
                mine = libsplit.split(x, parts, uneven="chunk")
                assert [p.tolist() for p in mine] == [p.tolist() for p in torch.chunk(x, parts)]


@pytest.fixture(params=PARTNERS)
def partner(request: pytest.FixtureRequest) -> Partner:
    return PARTNERS[request.param]


def test_partners_get_their_own_kind(partner: Partner) -> None:
    values = np.arange(48, dtype=np.float32)
    x = partner.make(values)
    pieces = libsplit.split(x, [16, -1])
    copies = libsplit.copy(x, [5, 3, 40])
    assert all(isinstance(piece, partner.kind) for piece in pieces + copies)
    assert [partner.numpy(p).tolist() for p in pieces] == [
        values[:16].tolist(), values[16:].tolist()]  # fmt: skip
    assert [partner.numpy(p).tolist() for p in copies] == [
        values[:5].tolist(), values[5:8].tolist(), values[8:].tolist()]  # fmt: skip
    # 16 floats are 64 bytes, so even JAX shares such a piece.
    assert [partner.address(piece) - partner.address(x) for piece in pieces] == [0, 64]
    whole = libsplit.join(copies)
    assert isinstance(whole, partner.kind) and partner.numpy(whole).tolist() == values.tolist()
    plan = libsplit.Plan(x, [16, -1])
    assert partner.numpy(plan.split(x)[1]).tolist() == values[16:].tolist()
    assert partner.numpy(plan.copy(x)[0]).tolist() == values[:16].tolist()


def test_pieces_outlive_their_source(partner: Partner) -> None:
    x = partner.make(np.arange(1 << 16, dtype=np.float32))
    pieces = libsplit.split(x, 2)
    del x
    gc.collect()
    for _ in range(4):
        np.full(1 << 16, -1, np.float32)  # would reuse freed memory
    assert partner.numpy(pieces[1])[0] == 1 << 15


@needs_jax
def test_jax() -> None:
    x = jnp.arange(32.0).reshape(4, 8)
    # JAX does not accept strides, and says so in its own words.
    for axis, strides in (1, r"\[8, 1\]"), (-1, r"\[8, 1\]"):
        with pytest.raises(BufferError, match=f"jax accepts only packed.*strides {strides}.*libsplit.copy"):
            libsplit.split(x, 2, axis=axis)
    columns = libsplit.copy(x, 2, axis=1)
    assert np.array_equal(np.asarray(columns[1]), np.asarray(x)[:, 4:])
    for dtype in jnp.bfloat16, jnp.float8_e4m3fn:
        pieces = libsplit.onnx_split(x.astype(dtype), num_outputs=2) if dtype == jnp.bfloat16 else (
            libsplit.split(x.astype(dtype), 2))  # fmt: skip
        assert pieces[1].dtype == dtype and float(pieces[1][0, 0]) == 16
    with pytest.raises(ValueError, match="does not say that it may be written"):
        libsplit.copy(x, 2, out=[jnp.zeros((2, 8)), None])  # JAX's arrays are immutable


@needs_pyarrow
@pytest.mark.filterwarnings("ignore:Exporting an unversioned")  # asked twice, text is refused
def test_pyarrow_stays_read_only() -> None:
    x = pa.array(np.arange(4.0))
    assert libsplit.Tensor(x).readonly
    out: Any = pa.array(np.zeros(2))
    with pytest.raises(ValueError, match=r"out\[0\] is read-only"):
        libsplit.copy(x, 2, out=[out, None])
    mine = np.zeros(2)
    libsplit.copy(x, 2, out=[None, mine])
    assert mine.tolist() == [2, 3]
    with pytest.raises(TypeError):
        libsplit.split(pa.array(["text"]), 1)


def test_capsules_of_both_kinds() -> None:
    values = np.arange(6, dtype=np.float32)
    for version in None, (1, 0), (1, 3), (1, 9):
        for kind in Producer, Old:
            x = kind(values.ctypes.data + 4, [4], [1], version=version)
            pieces: list[Any] = libsplit.split(x, 2)
            assert np.from_dlpack(pieces[1]).tolist() == [3, 4]
            assert x.deleted == 0
            del pieces
            gc.collect()
            assert x.deleted == 1
    asked = Producer(values.ctypes.data, [4], [1])
    libsplit.split(asked, 2)
    assert asked.asked == [{"max_version": (1, 3)}]


def test_exports() -> None:
    tensor = libsplit.Tensor(np.arange(6, dtype=np.int16).reshape(2, 3))
    piece = libsplit.split(tensor, [1, 2], axis=1)[1]
    for max_version in None, (0, 8), (1, 0), (1, 3), (2, 0):
        managed, exported = read(piece.__dlpack__(max_version=max_version))
        legacy = max_version is None or max_version[0] < 1
        assert hasattr(managed, "major") != legacy
        assert (exported.dtype.code, exported.dtype.bits, exported.dtype.lanes) == (0, 16, 1)
        assert exported.shape[:2] == [2, 2] and exported.strides[:2] == [3, 1]
    assert piece.__dlpack_device__() == (1, 0)
    scalar = libsplit.split_to_sequence(libsplit.Tensor(np.arange(2)), keepdims=False)[1]
    assert scalar.shape == () and np.from_dlpack(scalar) == 1
    empty = libsplit.split(tensor, [0, 3], axis=1)[0]
    _, exported = read(empty.__dlpack__())
    assert exported.data is None and exported.strides[:2] == [3, 1]


def test_requests_of_consumers() -> None:
    values = np.arange(4)
    tensor = libsplit.Tensor(values)
    assert np.from_dlpack(tensor, device="cpu", copy=False)[0] == 0
    copied = np.from_dlpack(tensor, copy=True)
    copied[0] = 9
    assert values[0] == 0
    managed, _ = read(tensor.__dlpack__(copy=True, max_version=(1, 0)))
    assert managed.flags & COPIED
    with pytest.raises(BufferError, match="cross-device"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream is 7, but the CPU has no streams"):
        tensor.__dlpack__(stream=7)


def test_read_only_is_passed_on() -> None:
    values = np.arange(4)
    values.flags.writeable = False
    piece = libsplit.split(libsplit.Tensor(values), 2)[0]
    assert piece.readonly and not np.from_dlpack(piece).flags.writeable
    assert not piece.numpy().flags.writeable
    with pytest.raises(BufferError, match="legacy"):
        piece.__dlpack__()
    managed, _ = read(piece.__dlpack__(max_version=(1, 0)))
    assert managed.flags & READ_ONLY
    assert np.from_dlpack(piece, copy=True).flags.writeable


def test_strides() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    for version in None, (1, 1), (1, 3):  # NULL means packed in every version
        x: Any = Producer(values.ctypes.data, [4, 6], None, version=version)
        assert np.array_equal(np.from_dlpack(libsplit.split(x, 2, axis=1)[1]), values[:, 3:])
    backwards: Any = Producer(values.ctypes.data, [4, 6], [-6, -1], byte_offset=23 * 4)
    pieces = libsplit.split(backwards, 3, axis=1)
    assert np.array_equal(np.from_dlpack(pieces[0]), values[::-1, ::-1][:, :2])
    assert np.array_equal(np.from_dlpack(libsplit.copy(backwards, 3, axis=1)[2]),
                          values[::-1, ::-1][:, 4:])  # fmt: skip
    repeated: Any = Producer(values.ctypes.data, [4, 6], [0, 1])
    assert np.from_dlpack(libsplit.copy(repeated, 2)[1]).tolist() == [values[0].tolist()] * 2


@pytest.mark.parametrize(
    ("producer", "error", "message"),
    [
        (Producer(1, [2], [1], name=b"used_dltensor_versioned"), ValueError, "already been consumed"),
        (Producer(1, [2], [1], version=None, name=b"used_dltensor"), ValueError, "consumed"),
        (Producer(1, [2], [1], name=b"tensor"), ValueError, "not a DLPack capsule"),
        (Producer(1, [2], [1], version=(2, 0)), BufferError, "version"),
        (Producer(1, [2], [1], version=(0, 8), name=b"dltensor_versioned"), BufferError, "version"),
        (Producer(1, [2], [1], ndim=-1), BufferError, "ndim is negative"),
        (Producer(1, [-2], [1]), ValueError, r"x.shape\[0\] is -2, but"),
        (Producer(None, [2], [1]), ValueError, "x.data is missing: give an array with data"),
        (Producer(1, [2], [1], dtype=(2, 32, 4)), TypeError, "32 bits and 4 lanes"),
        (Producer(1, [2], [1], dtype=(15, 6, 1)), TypeError, "code 15 with 6 bits"),
        (Producer(1, [2], [1], dtype=(99, 8, 1)), TypeError, "code 99"),
        (Producer(1, [2], [1], dtype=(0, 4, 1), flags=PADDED), BufferError, "padded to whole"),
        (Producer(1, [1] * 65, [1] * 65), ValueError, "rank 65"),
        (Producer(1, [2], [2**62]), ValueError, "x.strides reach further"),
        (Producer(1, [2**62, 2**62], None), MemoryError, "not enough memory"),
        (Producer(8, [0, 4], [2**62, 1]), None, ""),
    ],
)
def test_wrong_tensors(producer: Any, error: Any, message: str) -> None:
    if error is None:
        assert len(libsplit.split(producer, 2)) == 2
        return
    with pytest.raises(error, match=message):
        libsplit.split(producer, 1)


def test_wrong_objects() -> None:
    class Odd:
        def __init__(self, answer: Any) -> None:
            self.answer = answer

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **_: Any) -> Any:
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    for answer in None, 7, "capsule":
        with pytest.raises(ValueError, match="which is not a DLPack capsule"):
            libsplit.split(Odd(answer), 2)
    with pytest.raises(KeyError, match="mine"):
        libsplit.split(Odd(KeyError("mine")), 2)
    with pytest.raises(TypeError, match="mine"):
        libsplit.split(Odd(TypeError("mine")), 2)


def test_a_consumer_that_raises() -> None:
    values = np.arange(4, dtype=np.float32)

    class Picky(Producer):
        taken: list[Any] = []

        @classmethod
        def from_dlpack(cls, piece: Any) -> Any:
            if cls.taken:
                piece.__dlpack__(max_version=(1, 3))  # a capsule that nobody consumes
                raise LookupError("no more")
            cls.taken.append(np.from_dlpack(piece))
            return piece

    for function in libsplit.split, libsplit.copy:
        x = Picky(values.ctypes.data, [4], [1])
        with pytest.raises(LookupError, match="no more"):
            function(x, 2)
        assert Picky.taken[0].tolist() == [0, 1]
        Picky.taken.clear()
        gc.collect()
        assert x.deleted == 1


def test_another_device() -> None:
    # Addresses that cannot be read, which a view does not need to do.
    x: Any = Producer(0x1000, [4, 6], [6, 1], device=(2, 1))
    pieces: list[Any] = libsplit.split(x, 2, axis=1)
    assert pieces[1].__dlpack_device__() == (2, 1)
    _, tensor = read(pieces[1].__dlpack__(stream=5))
    assert tensor.data == 0x1000 + 3 * 4 and (tensor.device.type, tensor.device.id) == (2, 1)
    assert x.asked[-1] == {"stream": 5}  # the producer has to wait for it
    for wrong in (
        lambda: libsplit.copy(x, 2),
        lambda: libsplit.join(pieces),
        lambda: libsplit.copy(np.zeros((4, 6), "f4"), 2, axis=1, out=pieces),
        lambda: pieces[0].numpy(),
        lambda: pieces[0].__dlpack__(copy=True),
    ):
        with pytest.raises(BufferError, match=r"device \(2, 1\)"):
            wrong()


def test_released_by_another_thread() -> None:
    values = np.arange(4, dtype=np.float32)
    x: Any = Producer(values.ctypes.data, [4], [1])
    pieces = [np.from_dlpack(piece) for piece in libsplit.split(x, 2)]
    thread = threading.Thread(target=pieces.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert x.deleted == 1


def test_float8_codes_are_kept() -> None:
    for code, name in enumerate(
        ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"), 7
    ):
        x: Any = Producer(np.arange(4, dtype=np.uint8).ctypes.data, [4], [1], dtype=(code, 8, 1))
        piece: Any = libsplit.copy(x, 2)[1]
        assert piece.dtype == f"float8_{name}"
        assert read(piece.__dlpack__())[1].dtype.code == code
        assert piece.numpy().dtype == getattr(ml_dtypes, f"float8_{name}")


def test_packed_pieces() -> None:
    values = np.array([0x21, 0x43, 0x65], np.uint8)
    x = libsplit.Tensor(values, dtype=ml_dtypes.int4)
    assert (x.shape, x.dtype, x.bit_offset) == ((6,), "int4", 0)
    halves = libsplit.split(x, 2)
    assert [half.bit_offset for half in halves] == [0, 4]
    assert read(halves[0].__dlpack__())[1].dtype.bits == 4
    with pytest.raises(BufferError, match="begins 4 bits into a byte"):
        halves[1].__dlpack__()
    assert np.from_dlpack(libsplit.copy(halves[1], 1)[0].bytes()).tolist() == [0x54, 0x06]
    assert read(halves[1].__dlpack__(copy=True, max_version=(1, 0)))[1].dtype.bits == 4
    with pytest.raises(TypeError, match="NumPy has no packed int4"):
        x.numpy()
    with pytest.raises(TypeError, match="INT4 is not allowed by ONNX Split-18"):
        libsplit.onnx_split(x, num_outputs=2)
    assert [p.shape for p in libsplit.openvino_split(x, 3)] == [(2,)] * 3


def test_tensors_of_bytes() -> None:
    values = np.arange(8, dtype=np.uint8)
    assert libsplit.Tensor(values, dtype="float32").shape == (2,)
    assert libsplit.Tensor(values, dtype=np.dtype("f8")).shape == (1,)
    assert libsplit.Tensor(values, dtype=np.int16, shape=(2, 2)).strides == (2, 1)
    assert libsplit.Tensor(values, dtype="uint2", shape=(5, 6)).shape == (5, 6)  # 60 bits
    with pytest.raises(ValueError, match="data has 8 bytes, float32 of shape .3. need 12"):
        libsplit.Tensor(values, dtype="float32", shape=(3,))
    with pytest.raises(ValueError, match="need more"):
        libsplit.Tensor(values, dtype="float32", shape=(2**62, 2**62))
    with pytest.raises(ValueError, match="need more"):
        libsplit.Tensor(values, dtype="float32", shape=(-2, -1))
    with pytest.raises(BufferError, match="not packed"):
        libsplit.Tensor(values[::2], dtype="int4")
    with pytest.raises(TypeError, match="'float6_e2m3fn', which libsplit does not know"):
        libsplit.Tensor(values, dtype="float6_e2m3fn")
    with pytest.raises(TypeError, match="DLPack has no elements of dtype int4"):
        libsplit.Tensor(values.astype(ml_dtypes.int4))  # one per byte
    with pytest.raises(TypeError, match="data has type <class 'bytes'>"):
        libsplit.Tensor(b"bytes")  # type: ignore[arg-type]


def test_bfloat16_crosses_over() -> None:
    values = np.arange(4).astype(ml_dtypes.bfloat16)
    with pytest.raises(BufferError):
        values.__dlpack__()  # NumPy itself cannot
    tensor = libsplit.Tensor(values)
    if jnp is not None:
        assert jnp.from_dlpack(tensor).tolist() == [0, 1, 2, 3]
    assert tensor.numpy().dtype == ml_dtypes.bfloat16
    tensor.numpy()[0] = 7
    assert values[0] == 7
