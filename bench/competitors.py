"""The competitors: libsplit, flat copies, memcpy for each run, and other libraries.

A competitor prepares a case once, and returns a run to be timed, or None if it does not support the
case. All of them work on the same memory, except the few that always allocate their outputs.
"""

from __future__ import annotations

import dataclasses
import functools
import platform
import time
from collections.abc import Callable
from ctypes import c_size_t, c_void_p

import numpy as np

from native import Flat, Libsplit, Native, Rows, describe
from workloads import Workload


@dataclasses.dataclass
class Case:
    """A workload in memory: the input, and the memory for its pieces, one after the other."""

    workload: Workload
    threads: int
    offset: int  # of the outputs, in bytes from a 64-byte line
    source: np.ndarray
    targets: list[np.ndarray]
    flat: np.ndarray  # the first bytes of the input's memory, as many as its elements have
    memory: np.ndarray  # the bytes that contain the outputs

    @property
    def area(self) -> np.ndarray:
        """The part of the outputs' memory that a flat copy fills."""
        return self.memory[: self.flat.size]


class Run:
    """A competitor's call on one case."""

    def __init__(self, per_call: Callable[[int], float],
                 outputs: Callable[[], list[np.ndarray]] | None = None,
                 splits: bool = True):
        self.per_call = per_call  # makes one call and then this many; returns nanoseconds per call
        self.outputs = outputs  # returns the pieces, if they are not in the case's targets
        self.splits = splits  # False: copies the input to the case's area without splitting it


def _python(call: Callable[[], object], outputs=None) -> Run:
    """Makes a run of a call from Python, whose own cost is included."""

    def per_call(calls: int) -> float:
        call()
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        return (time.perf_counter_ns() - start) / calls

    return Run(per_call, outputs)


class LibsplitCopy:
    """libsplit with the case's number of threads, or always with one thread for comparison."""

    def __init__(self, library: Libsplit, always_one_thread: bool = False):
        self.library = library
        self.version = f"{library.version}, {library.level}"
        self.always_one_thread = always_one_thread

    def prepare(self, case: Case) -> Run | None:
        if self.always_one_thread and case.threads == 1:
            return None
        work = case.workload
        split = self.library.split(case.source, work.axis, list(work.lengths), work.sequence,
                                   case.targets, 1 if self.always_one_thread else case.threads)
        return Run(lambda calls: self.library.native.time("copy", split, calls))


class FlatCopy:
    """The yardstick: copies the same number of bytes from the input to the outputs without splitting them."""

    WAYS = {"plain": "AVX2", "stream": "AVX2, past the caches", "wide": "AVX-512",
            "strings": "rep movsb"}

    def __init__(self, native: Native, way: str):
        self.native = native
        self.way = list(self.WAYS).index(way)
        self.version = self.WAYS[way]

    @classmethod
    def all(cls, native: Native) -> dict[str, FlatCopy]:
        """Returns the flat copies that this CPU supports."""
        copies = {way: cls(native, way) for way in cls.WAYS}
        return {way: copy for way, copy in copies.items() if native.library.has_way(copy.way)}

    def prepare(self, case: Case) -> Run:
        flat = Flat(source=case.flat.ctypes.data, target=case.area.ctypes.data,
                    bytes=case.area.nbytes, way=self.way,
                    pool=self.native.pool(case.threads))
        return Run(lambda calls: self.native.time("flat", flat, calls), splits=False)


class MemcpyRows:
    """A loop that calls memcpy for each run, output by output, as runtimes do."""

    version = " ".join(platform.libc_ver()).strip() or "libc"

    def __init__(self, native: Native):
        self.native = native

    def prepare(self, case: Case) -> Run | None:
        if not (case.workload.is_packed and case.workload.has_whole_runs):
            return None
        job = self.job(case)
        return Run(lambda calls: self.native.time("rows", job, calls))

    def job(self, case: Case) -> Rows:
        """Makes the arguments for a packed input."""
        work = case.workload
        count = len(work.lengths)
        return Rows(source=case.flat.ctypes.data, count=work.rows, row=sum(work.runs),
                    runs=(c_size_t * count)(*work.runs),
                    targets=(c_void_p * count)(*(describe(target).data for target in case.targets)),
                    num_outputs=count, threads=case.threads, pool=self.native.pool(case.threads))


class NumPy:
    """One np.copyto for each piece, always on one thread."""

    def __init__(self):
        self.version = np.__version__

    def prepare(self, case: Case) -> Run | None:
        pairs = list(zip(case.targets, case.workload.slices(case.source)))

        def call():
            for target, piece in pairs:
                np.copyto(target, piece)

        return _python(call)


class OnnxRuntime:
    """A model of one Split, run with IOBinding on the case's memory.

    A sequence cannot be bound to memory: SplitToSequence allocates its outputs.
    """

    def __init__(self):
        import onnx
        import onnxruntime

        self.onnx = onnx
        self.ort = onnxruntime
        self.version = onnxruntime.__version__

    def prepare(self, case: Case) -> Run | None:
        work = case.workload
        if not work.is_packed or work.dtype.kind == "c":
            return None
        session = self.session(self._model(case), case.threads)
        source = case.source
        if work.sequence:
            feeds = {"input": self.ort.OrtValue.ortvalue_from_numpy(source)}
            return _python(lambda: session.run_with_ort_values(["outputs"], feeds),
                           lambda: session.run(["outputs"], {"input": source})[0])
        binding = session.io_binding()
        binding.bind_input("input", "cpu", 0, work.dtype.type, work.shape, source.ctypes.data)
        for i, target in enumerate(case.targets):
            binding.bind_output(f"output{i}", "cpu", 0, work.dtype.type, target.shape,
                                target.ctypes.data)
        return _python(lambda: session.run_with_iobinding(binding))

    def session(self, model: bytes, threads: int):
        options = self.ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Its threads keep looking for work for this time between calls. The default would reach tens
        # of milliseconds into the turns of others.
        options.add_session_config_entry("session.intra_op.spin_duration_us", "1000")
        return self.ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def _model(self, case: Case) -> bytes:
        make = self.onnx.helper
        work = case.workload
        dtype = make.np_dtype_to_tensor_dtype(work.dtype)
        source = make.make_tensor_value_info("input", dtype, work.shape)
        if work.sequence:
            node = make.make_node("SplitToSequence", ["input"], ["outputs"], axis=work.axis)
            outputs = [make.make_tensor_sequence_value_info("outputs", dtype, None)]
            constants = []
        else:
            names = [f"output{i}" for i in range(len(work.lengths))]
            node = make.make_node("Split", ["input", "lengths"], names, axis=work.axis)
            outputs = [make.make_tensor_value_info(name, dtype, shape)
                       for name, shape in zip(names, work.piece_shapes())]
            constants = [make.make_tensor("lengths", self.onnx.TensorProto.INT64,
                                          [len(names)], work.lengths)]
        graph = make.make_graph([node], "split", [source], outputs, constants)
        opset = make.make_opsetid("", 18)
        return make.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString()


class OpenVino:
    """A model of one VariadicSplit on the case's memory, compiled for the CPU."""

    def __init__(self):
        import openvino
        import openvino.opset1

        self.ov = openvino
        self.core = openvino.Core()
        self.version = openvino.__version__.split("-")[0]

    def prepare(self, case: Case) -> Run | None:
        work = case.workload
        if not work.is_packed or work.dtype.kind == "c":
            return None
        ops = self.ov.opset1
        source = ops.parameter(list(work.shape), work.dtype.type)
        node = ops.variadic_split(source, work.axis, list(work.lengths))
        model = self.ov.Model(list(node.outputs()), [source], "split")
        compiled = self.core.compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": case.threads, "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False})
        request = compiled.create_infer_request()
        request.set_input_tensor(self.ov.Tensor(case.source, shared_memory=True))
        for i, target in enumerate(case.targets):
            request.set_output_tensor(i, self.ov.Tensor(target, shared_memory=True))
        return _python(lambda: request.infer(None, share_outputs=True))


class OpenCv:
    """cv2.split for pieces of single channels, cv2.merge for outputs that are interleaved, and
    cv2.transpose or cv2.flip for each piece of a matrix that is transposed or reversed.

    Elements are passed as types of the same size that OpenCV supports.
    """

    TYPES = {1: np.uint8, 2: np.int16, 4: np.float32, 8: np.float64}
    MOST_CHANNELS = 16

    def __init__(self):
        import cv2

        self.cv = cv2
        self.version = cv2.__version__

    def prepare(self, case: Case) -> Run | None:
        dtype = self.TYPES.get(case.workload.dtype.itemsize)
        if dtype is None:
            return None
        source = case.source.view(dtype)
        targets = [target.view(dtype) for target in case.targets]
        ways = [self._split, self._merge_pieces, self._merge_planes, self._turn_all, self._each]
        call = next(filter(None, (way(case, source, targets) for way in ways)), None)
        if call is None:
            return None
        timed = _python(call)

        def per_call(calls: int) -> float:
            self.cv.setNumThreads(case.threads)
            return timed.per_call(calls)

        return Run(per_call)

    def _split(self, case: Case, source: np.ndarray, targets: list) -> Callable | None:
        work = case.workload
        columns = work.axis == source.ndim - 1 and set(work.lengths) == {1}
        if not columns or not 1 < len(targets) <= self.MOST_CHANNELS:
            return None
        if work.is_packed:
            image = source.reshape(-1, 1, len(targets))
            planes = [target.reshape(-1, 1) for target in targets]
        elif source.ndim == 3 and source.strides[2] == source.itemsize:
            image, planes = source, [target[:, :, 0] for target in targets]
        else:
            return None
        return lambda: self.cv.split(image, planes)

    def _merge_pieces(self, case: Case, source: np.ndarray, targets: list) -> Callable | None:
        """For pieces that are channels of one matrix, whose columns the outputs are."""
        work = case.workload
        if not work.into or work.axis != 0 or work.into.order != (1, 0) or work.layout:
            return None
        planes = [plane.reshape(-1, 1) for plane in source]
        image = case.memory[: work.bytes].view(source.dtype).reshape(-1, 1, len(planes))
        return lambda: self.cv.merge(planes, image)

    def _merge_planes(self, case: Case, source: np.ndarray, targets: list) -> Callable | None:
        """For one output with few columns, each of which is a plane of the input."""
        if len(targets) != 1 or source.ndim != 2 or source.strides[0] != source.itemsize:
            return None
        planes = [plane.reshape(-1, 1) for plane in source.T]
        image = targets[0].reshape(-1, 1, len(planes))
        return lambda: self.cv.merge(planes, image)

    def _turn_all(self, case: Case, source: np.ndarray, targets: list) -> Callable | None:
        """For all pieces of a transposed matrix at once: they lie one after the other."""
        work = case.workload
        rows, columns = source.shape[0], source[0].size
        columns_of_packed = work.axis == 1 and set(work.lengths) == {1}
        if source.ndim != 2 or work.into or sum(t.nbytes for t in targets) != self._spread(targets):
            return None
        if work.is_packed and columns_of_packed:
            target = case.area.view(source.dtype).reshape(columns, rows)
            return lambda: self.cv.transpose(source, target)
        if not work.is_packed and work.layout.order == (1, 0) and work.axis == 0:
            target = case.area.view(source.dtype).reshape(rows, columns)
            return lambda: self.cv.transpose(source.T, target)
        return None

    @staticmethod
    def _spread(targets: list) -> int:
        """Returns the number of bytes from the start of the first output to the end of the last."""
        return targets[-1].ctypes.data + targets[-1].nbytes - targets[0].ctypes.data

    def _each(self, case: Case, source: np.ndarray, targets: list) -> Callable | None:
        """One call for each piece of a matrix that is transposed or reversed."""
        work = case.workload
        if source.ndim != 2 or work.is_packed or work.into:
            return None
        pieces, size = work.slices(source), source.itemsize
        outer, inner = source.strides
        if outer == size:
            pieces = [piece.T for piece in pieces]
            way = self.cv.transpose
        elif outer < 0 and inner == size:
            pieces = [piece[::-1] for piece in pieces]
            way = functools.partial(self.cv.flip, flipCode=0)
        elif outer > 0 and inner == -size:
            pieces = [piece[:, ::-1] for piece in pieces]
            way = functools.partial(self.cv.flip, flipCode=1)
        else:
            return None
        pairs = list(zip(pieces, targets))

        def call():
            for piece, target in pairs:
                way(piece, dst=target)

        return call


class Torch:
    """torch.split_with_sizes_copy on the case's memory."""

    def __init__(self):
        import torch

        self.torch = torch
        self.version = torch.__version__

    def prepare(self, case: Case) -> Run | None:
        if any(stride < 0 for stride in case.source.strides):
            return None
        source = self.torch.from_numpy(case.source)
        targets = [self.torch.from_numpy(target) for target in case.targets]
        lengths = list(case.workload.lengths)
        axis = case.workload.axis

        def per_call(calls: int) -> float:
            self.torch.set_num_threads(case.threads)
            with self.torch.inference_mode():
                return timed.per_call(calls)

        timed = _python(lambda: self.torch.split_with_sizes_copy(source, lengths, axis,
                                                                 out=targets))
        return Run(per_call)


PEERS = {"numpy": NumPy, "onnxruntime": OnnxRuntime, "openvino": OpenVino, "cv2": OpenCv,
         "torch": Torch}
