"""Splits tensors of NumPy and of tvm_ffi by libsplit_dlpack.h, and gives the pieces back to both.

usage: dlpack_producers.py LIBRARY, the shared library made of dlpack_shim.c
"""

import ctypes
import sys
import unittest

import numpy as np
import tvm_ffi

READ_ONLY, PADDED = 1, 4


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("dtype", DataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]


class Error(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("status", ctypes.c_int32),
        ("output_index", ctypes.c_int32), ("expected", ctypes.c_int64),
        ("actual", ctypes.c_int64), ("words", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
        ("message", ctypes.c_char * 240),
    ]


class SplitError(Exception):
    pass


shim = ctypes.CDLL(sys.argv.pop(1))
python = ctypes.pythonapi
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
shim.split.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                       ctypes.POINTER(ctypes.POINTER(Managed)), ctypes.POINTER(Error)]

NEW, USED, LEGACY, USED_LEGACY = (
    b"dltensor_versioned", b"used_dltensor_versioned", b"dltensor", b"used_dltensor")


class Piece:
    """A producer of one managed tensor, which its consumer takes over."""

    def __init__(self, managed):
        self.managed = managed

    def __dlpack__(self, **_):
        return python.PyCapsule_New(ctypes.addressof(self.managed), NEW, None)

    def __dlpack_device__(self):
        tensor = self.managed.tensor
        return tensor.device_type, tensor.device_id


def split(producer, axis, parts, legacy=False):
    capsule = producer.__dlpack__() if legacy else producer.__dlpack__(max_version=(1, 3))
    pointer = python.PyCapsule_GetPointer(capsule, LEGACY if legacy else NEW)
    results = (ctypes.POINTER(Managed) * parts)()
    error = Error(struct_size=ctypes.sizeof(Error))
    sources = (None, pointer) if legacy else (pointer, None)
    if shim.split(*sources, axis, parts, results, error) != 0:
        raise SplitError(error.message.decode())
    python.PyCapsule_SetName(capsule, USED_LEGACY if legacy else USED)
    return [Piece(result.contents) for result in results]


def to_tvm_ffi(piece):
    """It takes versioned tensors by their capsules only."""
    return tvm_ffi.from_dlpack(piece.__dlpack__())


def retyped(array, code, bits, lanes=1, flags=0):
    """The bytes of a NumPy array as elements of another type, from tvm_ffi, which knows them all."""
    capsule = array.__dlpack__(max_version=(1, 3))
    managed = Managed.from_address(python.PyCapsule_GetPointer(capsule, NEW))
    python.PyCapsule_SetName(capsule, USED)
    managed.tensor.dtype = DataType(code, bits, lanes)
    managed.flags |= flags
    return Piece(managed)


class Producers(unittest.TestCase):
    def assert_split(self, array, axis, parts, producer=None, legacy=False):
        """The pieces are views of the array with the right elements, for both consumers."""
        for consumer in [np.from_dlpack, to_tvm_ffi]:
            pieces = split(array if producer is None else producer, axis, parts, legacy)
            self.assertEqual(len(pieces), parts)
            for piece, expected in zip(pieces, np.split(array, parts, axis)):
                self.assertTrue(piece.managed.tensor.ndim == 0 or piece.managed.tensor.strides)
                taken = consumer(piece)
                found = np.from_dlpack(taken)
                self.assertEqual(found.dtype, array.dtype)
                np.testing.assert_array_equal(found, expected)
                if expected.size > 0:
                    self.assertEqual(found.ctypes.data, expected.ctypes.data)

    def test_every_type_of_numpy(self):
        names = "?bBhHiIlLefdFD"
        for name in names:
            array = np.arange(24).reshape(2, 3, 4).astype(name)
            for axis in range(3):
                with self.subTest(dtype=array.dtype, axis=axis):
                    self.assert_split(array, axis, array.shape[axis])
                    self.assert_split(array, axis, 1, legacy=True)

    def test_layouts(self):
        whole = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
        for array in [whole.T, whole[::-1, ::2, 1:], whole[:, 2], whole.transpose(1, 0, 2),
                      np.broadcast_to(whole[0, 0], (4, 6)), whole[:, :0], whole[1:1]]:
            for axis, extent in enumerate(array.shape):
                with self.subTest(shape=array.shape, strides=array.strides, axis=axis):
                    self.assert_split(array, axis, max(extent, 1))

    def test_tensors_of_tvm_ffi(self):
        array = np.arange(24, dtype=np.float32).reshape(2, 12)
        for legacy in [False, True]:
            self.assert_split(array, 1, 3, tvm_ffi.from_dlpack(array), legacy)

    def test_pieces_of_pieces(self):
        array = np.arange(16, dtype=np.int16).reshape(2, 8)
        for half, expected in zip(split(array, 1, 2), np.split(array, 2, 1)):
            self.assert_split(expected, 1, 4, np.from_dlpack(half))

    def test_read_only_is_passed_on(self):
        for writeable in [True, False]:
            array = np.arange(6)
            array.flags.writeable = writeable
            for piece in split(array, 0, 2):
                self.assertEqual(bool(piece.managed.flags & READ_ONLY), not writeable)
                self.assertEqual(np.from_dlpack(piece).flags.writeable, writeable)

    def test_the_producer_lives_as_long_as_a_piece(self):
        array = np.arange(6)
        before = sys.getrefcount(array)
        for legacy in [False, True]:
            taken = [np.from_dlpack(piece) for piece in split(array, 0, 3, legacy)]
            for left in range(3, 0, -1):
                self.assertEqual(len(taken), left)
                self.assertEqual(sys.getrefcount(array), before + 1)
                taken.pop()
            self.assertEqual(sys.getrefcount(array), before)

    def test_types_that_numpy_does_not_have(self):
        types = [(4, 16, 1, "bfloat16")] + [
            (7 + number, 8, 1, f"float8_{name}") for number, name in enumerate(
                "e3m4 e4m3 e4m3b11fnuz e4m3fn e4m3fnuz e5m2 e5m2fnuz e8m0fnu".split())
        ] + [(17, 4, 2, "float4_e2m1fnx2"), (2, 32, 4, "float32x4")]
        for code, bits, lanes, name in types:
            size = bits * lanes // 8
            array = np.zeros(24, {1: "u1", 2: "u2", 16: "c16"}[size])
            with self.subTest(name=name):
                tensor = to_tvm_ffi(retyped(array.reshape(2, 12), code, bits, lanes))
                self.assertEqual(str(tensor.dtype), name)
                for number, piece in enumerate(split(tensor, 1, 3)):
                    taken = to_tvm_ffi(piece)
                    self.assertEqual(str(taken.dtype), name)
                    self.assertEqual((tuple(taken.shape), tuple(taken.strides)), ((2, 4), (12, 1)))
                    self.assertEqual(piece.managed.tensor.data,
                                     array.ctypes.data + 4 * number * size)

    def test_elements_below_a_byte(self):
        array = np.arange(12, dtype=np.uint8)
        for code in [0, 1, 17]:  # int4, uint4, float4, two a byte
            piece = split(retyped(array, code, 4), 0, 6)[5]
            self.assertEqual(piece.managed.tensor.data, array.ctypes.data + 5)
            with self.assertRaisesRegex(SplitError, "4 bits into a byte"):
                split(retyped(array, code, 4), 0, 4)
            with self.assertRaisesRegex(SplitError, "padded to bytes"):
                split(retyped(array, code, 4, flags=PADDED), 0, 6)

    def test_types_that_are_refused(self):
        array = np.arange(12, dtype=np.uint8)
        for code, bits, name in [(3, 64, "OpaqueHandle"), (15, 6, "Float6_e2m3fn"),
                                 (16, 6, "Float6_e3m2fn"), (99, 8, "code 99"), (2, 8, "Float")]:
            with self.assertRaisesRegex(SplitError, name):
                split(retyped(array, code, bits), 0, 2)


if __name__ == "__main__":
    unittest.main()
