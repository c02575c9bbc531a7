"""DLPack capsules made by hand, which may be wrong."""

import ctypes
from typing import Any


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


# Not ctypes.pythonapi, because Warp changes the declarations of its functions for everybody.
_python = ctypes.PyDLL(None)
_new = _python.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer = _python.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

READ_ONLY, COPIED, PADDED = 1, 2, 4


class Producer:
    """Exports one tensor with the given description, and counts what happens to it."""

    def __init__(
        self,
        data: int | None,
        shape: list[int],
        strides: list[int] | None = None,
        *,
        dtype: tuple[int, int, int] = (2, 32, 1),
        device: tuple[int, int] = (1, 0),
        version: tuple[int, int] | None = (1, 3),
        flags: int = 0,
        ndim: int | None = None,
        byte_offset: int = 0,
        name: bytes | None = None,
    ) -> None:
        self.deleted = 0
        self.asked: list[dict[str, Any]] = []
        self.device = device
        self._shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self._strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        tensor = Tensor(
            data,
            Device(*device),
            len(shape) if ndim is None else ndim,
            DataType(*dtype),
            ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64)),
            None
            if self._strides is None
            else ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64)),
            byte_offset,
        )

        def delete(_: int) -> None:
            self.deleted += 1

        self._delete = DELETER(delete)
        if version is None:
            self._managed: Any = Managed(tensor, None, self._delete)
        else:
            self._managed = Versioned(*version, None, self._delete, flags, tensor)
        self._name = name or (b"dltensor" if version is None else b"dltensor_versioned")

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        return _new(ctypes.addressof(self._managed), self._name, None)


class Old(Producer):
    """A producer from before DLPack had versions, which does not know max_version."""

    def __dlpack__(self, *, stream: Any = None) -> Any:  # type: ignore[override]
        return super().__dlpack__(stream=stream)


def read(capsule: Any) -> tuple[Any, Tensor]:
    """Returns the managed structure in a capsule and its tensor, which are valid as long as the capsule."""
    legacy = '"dltensor"' in repr(capsule)
    kind, name = (Managed, b"dltensor") if legacy else (Versioned, b"dltensor_versioned")
    managed: Any = kind.from_address(_pointer(capsule, name))
    managed.capsule = capsule
    return managed, managed.tensor
