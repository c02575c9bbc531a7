"""libsplit and bench_native.so, called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import pathlib
import sys
from ctypes import POINTER, Structure, byref, c_double, c_int32, c_int64, c_long, c_size_t, \
    c_uint32, c_uint64, c_void_p

import numpy as np

from workloads import SubByte

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests/conformance"))
from runners.structures import PARALLEL_FOR, Error, Executor, Params, Tensor  # noqa: E402

OK = 0
ONNX_SPLIT = 1
ONNX_SPLIT_TO_SEQUENCE = 2
OPENVINO_VARIADIC_SPLIT = 3
OPSET = 18
NEVER_STREAM = 4

# The numbers of ONNX TensorProto.DataType.
DTYPES = {np.dtype(name): number for name, number in [
    ("f4", 1), ("u1", 2), ("i1", 3), ("u2", 4), ("i2", 5), ("i4", 6), ("i8", 7), ("?", 9),
    ("f2", 10), ("f8", 11), ("u4", 12), ("u8", 13), ("c8", 14), ("c16", 15)]}


SUB_BYTE = {"uint4": 21, "int4": 22, "uint2": 25, "int2": 26}


class Split(Structure):
    _fields_ = [("copy", c_void_p), ("input", POINTER(Tensor)),
                ("params", POINTER(Params)), ("outputs", POINTER(Tensor)),
                ("num_outputs", c_size_t), ("executor", POINTER(Executor))]


class Planned(Structure):
    _fields_ = [("copy", c_void_p), ("plan", c_void_p), ("input", c_void_p),
                ("outputs", POINTER(c_void_p)), ("num_outputs", c_size_t)]


class Flat(Structure):
    _fields_ = [("source", c_void_p), ("target", c_void_p), ("bytes", c_size_t),
                ("way", c_int32), ("pool", c_void_p)]


class Rows(Structure):
    _fields_ = [("source", c_void_p), ("count", c_size_t), ("row", c_size_t),
                ("runs", POINTER(c_size_t)), ("targets", POINTER(c_void_p)),
                ("num_outputs", c_size_t), ("threads", c_uint32), ("pool", c_void_p)]


class Pipeline(Structure):
    _fields_ = [("split", POINTER(Split)), ("rows", POINTER(Rows)), ("input", c_void_p),
                ("input_words", c_size_t), ("outputs", c_void_p), ("output_words", c_size_t),
                ("sum", c_uint64)]


@functools.cache
def _numbers(*numbers: int) -> ctypes.Array:
    """Makes an array that all tensors with the same numbers share. A thousand arrays all over Python's heap
    would dominate the measurement.
    """
    return (c_int64 * len(numbers))(*numbers)


def describe(array: np.ndarray | SubByte) -> Tensor:
    """Makes a descriptor of the tensor; the caller keeps its memory alive."""
    if isinstance(array, SubByte):
        byte, bit = divmod(array.first * array.bits, 8)
        return Tensor(data=array.memory.ctypes.data + byte, shape=_numbers(*array.shape),
                      strides=_numbers(*array.strides) if array.strides else None,
                      rank=len(array.shape), capacity=len(array.shape),
                      dtype=SUB_BYTE[array.dtype], bit_offset=bit)
    return tensor(array, array.flags.c_contiguous)


def tensor(array: np.ndarray, packed: bool) -> Tensor:
    """Makes a descriptor of the array; the caller keeps the array's memory alive."""
    strides = None
    if not packed:
        strides = _numbers(*(step // array.itemsize for step in array.strides))
    return Tensor(data=array.ctypes.data, data_bytes=array.nbytes if packed else 0,
                  shape=_numbers(*array.shape), strides=strides, rank=array.ndim,
                  capacity=array.ndim, dtype=DTYPES[array.dtype])


# How often a pool's threads look for work before they sleep: for about 100 microseconds, or so long that
# the next call comes first.
POOLS = {"parked": 4_000, "spinning": 100_000}


class Native:
    """bench_native.so: copies written in C, a pool of threads, and the loop that times calls."""

    def __init__(self, path: pathlib.Path, pool: str = "spinning"):
        self.library = ctypes.CDLL(str(path))
        self.library.pool_new.argtypes = [c_uint32, c_long]
        self.library.pool_new.restype = c_void_p
        self._looks = POOLS[pool]
        for name in ["time_copy", "time_planned", "time_flat", "time_rows", "time_bounds"]:
            function = getattr(self.library, name)
            function.argtypes = [c_void_p, c_size_t]
            function.restype = c_double
        self._pools: dict[int, int | None] = {1: None}

    def pool(self, threads: int) -> int | None:
        """Returns a pool with this number of threads, including the caller; None for one thread."""
        if threads not in self._pools:
            self._pools[threads] = self.library.pool_new(threads, self._looks)
            if not self._pools[threads]:
                raise OSError(f"cannot make a pool of {threads} threads")
        return self._pools[threads]

    def time(self, what: str, job: Structure, calls: int) -> float:
        """Returns the nanoseconds per call."""
        return getattr(self.library, f"time_{what}")(byref(job), calls)

    def time_pipeline(self, pipeline: Pipeline, calls: int) -> tuple[float, float, float]:
        """Returns the nanoseconds per call for writing the input, splitting it, and reading the outputs."""
        steps = (c_double * 3)()
        if self.library.time_pipeline(byref(pipeline), c_size_t(calls), steps) != 0:
            raise RuntimeError("a call failed")
        return tuple(steps)


class Libsplit:
    """One build of libsplit."""

    def __init__(self, path: pathlib.Path, native: Native):
        self.library = ctypes.CDLL(str(path))
        self.native = native
        self.version = self._told("version_string")
        # Old versions do not say at which level they run.
        self.level = self._told("cpu_string") if hasattr(self.library, "libsplit_cpu_string") else "unknown level"

    def _told(self, name: str) -> str:
        function = getattr(self.library, f"libsplit_{name}")
        function.restype = ctypes.c_char_p
        return function().decode()

    def split(self, source: np.ndarray | SubByte, axis: int, lengths: list[int], sequence: bool,
              targets: list[np.ndarray | SubByte], threads: int, flags: int = 0) -> Split:
        """Makes a call that is ready to be timed. The flags are those of an executor."""
        params = Params(struct_size=ctypes.sizeof(Params), axis=axis, keepdims=1, opset=OPSET,
                        op=ONNX_SPLIT_TO_SEQUENCE if sequence else ONNX_SPLIT)
        if isinstance(source, SubByte):  # ONNX's operators do not support these types
            params.op, params.opset = OPENVINO_VARIADIC_SPLIT, 1
        if not sequence:
            list_of = np.array(lengths, np.int64)
            params.split = ctypes.pointer(tensor(list_of, packed=True))
            params.keep = list_of
        outputs = (Tensor * len(targets))(*map(describe, targets))
        split = Split(copy=ctypes.cast(self.library.libsplit_copy, c_void_p),
                      input=ctypes.pointer(describe(source)),
                      params=ctypes.pointer(params), outputs=outputs, num_outputs=len(targets))
        if threads > 1:
            run = ctypes.cast(self.native.library.pool_parallel_for, PARALLEL_FOR)
            split.executor = ctypes.pointer(Executor(
                struct_size=ctypes.sizeof(Executor), parallel_for=run,
                pool=self.native.pool(threads), max_tasks=threads, flags=flags))
        elif flags:
            split.executor = ctypes.pointer(
                Executor(struct_size=ctypes.sizeof(Executor), flags=flags))
        self._check(split)
        return split

    def planned(self, split: Split) -> Planned:
        """Makes the same call with a plan, on one thread."""
        size = self.library.libsplit_plan_size
        size.restype = c_size_t
        of, count = split.input.contents, c_size_t(split.num_outputs)
        plan = (c_int64 * (size(of.rank, count) // 8 + 1))()
        status = self.library.libsplit_plan_init(plan, c_size_t(ctypes.sizeof(plan)), split.input, split.params,
                                                 split.outputs, count, None)
        if status != OK:
            raise RuntimeError(f"libsplit_plan_init: {status}")
        outputs = (c_void_p * split.num_outputs)(
            *(split.outputs[i].data for i in range(split.num_outputs)))
        planned = Planned(copy=ctypes.cast(self.library.libsplit_plan_copy, c_void_p),
                          plan=ctypes.addressof(plan), input=of.data, outputs=outputs,
                          num_outputs=split.num_outputs)
        planned.keep = plan
        return planned

    def describe(self, split: Split) -> str | None:
        """Describes what a plan of the call will do; None if this build cannot say."""
        try:
            function = self.library.libsplit_plan_describe
        except AttributeError:
            return None
        function.restype = c_size_t
        planned = self.planned(split)
        buffer = ctypes.create_string_buffer(4096)
        function(c_void_p(planned.plan), buffer, c_size_t(len(buffer)))
        return buffer.value.decode()

    def _check(self, split: Split) -> None:
        """Makes the call once, to report its message if it fails."""
        error = Error(struct_size=ctypes.sizeof(Error))
        status = self.library.libsplit_copy(split.input, split.params, split.outputs,
                                            c_size_t(split.num_outputs), split.executor,
                                            byref(error))
        if status != OK:
            raise RuntimeError(f"libsplit_copy: {error.message.decode()}")
