from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar, final, overload

class _Exporter(Protocol):
    def __dlpack__(self) -> Any: ...

# Pieces have the type of the input, or are Tensors if its library has no from_dlpack.
_T = TypeVar("_T", bound=_Exporter)
_Uneven: TypeAlias = Literal["refuse", "last_smaller", "even_out", "chunk"]
_Sections: TypeAlias = SupportsIndex | Iterable[SupportsIndex] | Operator
_Lengths: TypeAlias = SupportsIndex | Iterable[SupportsIndex]

VERSION: str
__all__ = [
    "Operator",
    "Plan",
    "Tensor",
    "VERSION",
    "copy",
    "forget_pool",
    "infer",
    "join",
    "onnx_split",
    "openvino_split",
    "restore_operator",
    "restore_plan",
    "split",
    "split_to_sequence",
    "stack",
    "variadic_split",
]

def forget_pool() -> None: ...
def restore_operator(format: int, *contents: Any) -> Operator: ...
def restore_plan(format: int, *contents: Any) -> Plan: ...
def split(
    x: _T, parts_or_lengths: _Sections, axis: int | None = None, *, uneven: _Uneven | None = None
) -> list[_T]:
    """Splits ``x`` along an axis into views that share its memory.

    ``parts_or_lengths`` is a number of equal parts, a list of lengths (one may be -1, which means
    the rest), or an Operator. If the extent cannot be divided by the number of parts, ``uneven``
    decides: 'refuse' raises ValueError, 'last_smaller' is ONNX Split-18, 'even_out' is
    numpy.array_split, and 'chunk' is torch.chunk, which may return fewer pieces.

    NumPy arrays give NumPy arrays. Tensors with ``__dlpack__`` give tensors of their library,
    through its ``from_dlpack``, or a libsplit.Tensor if it has none. Data is never read, so it
    may be on any device.

    >>> import libsplit, numpy
    >>> x = numpy.arange(7)
    >>> libsplit.split(x, [2, -1])
    [array([0, 1]), array([2, 3, 4, 5, 6])]
    >>> [len(piece) for piece in libsplit.split(x, 3, uneven='last_smaller')]
    [3, 3, 1]
    >>> [len(piece) for piece in libsplit.split(x, 3, uneven='even_out')]
    [3, 2, 2]
    """
# None in out skips a piece, and is in the result, too.
@overload
def copy(
    x: _T,
    parts_or_lengths: _Sections,
    axis: int | None = None,
    *,
    uneven: _Uneven | None = None,
    out: Iterable[_T] | None = None,
    threads: int | None = None,
) -> list[_T]:
    """Splits ``x`` as split does, into packed copies, each in memory of its own.

    ``out`` is a list of writable arrays to copy the pieces into, with the right shapes and dtype
    and any strides; None in it skips a piece. ``threads`` is the number of threads that may work
    on a large copy: None for the calling thread only, 0 for one for each CPU. Data must be on
    the CPU.

    >>> import libsplit, numpy
    >>> x = numpy.arange(12).reshape(2, 6)
    >>> right = numpy.empty((2, 4), x.dtype)
    >>> _ = libsplit.copy(x, [2, 4], axis=1, out=[None, right])
    >>> right
    array([[ 2,  3,  4,  5],
           [ 8,  9, 10, 11]])
    """
@overload
def copy(
    x: _T,
    parts_or_lengths: _Sections,
    axis: int | None = None,
    *,
    uneven: _Uneven | None = None,
    out: Iterable[_T | None],
    threads: int | None = None,
) -> list[_T | None]: ...
def join(
    pieces: Iterable[_T], axis: int = 0, *, out: _T | None = None, threads: int | None = None
) -> _T:
    """Joins ``pieces`` along an axis, which undoes split.

    ``out`` and ``threads`` are as for copy. Without ``out`` the result has the type of the first
    piece.

    >>> import libsplit, numpy
    >>> x = numpy.arange(12).reshape(2, 6)
    >>> bool((libsplit.join(libsplit.split(x, 3, axis=1), axis=1) == x).all())
    True
    """
def stack(
    pieces: Iterable[_T], axis: int = 0, *, out: _T | None = None, threads: int | None = None
) -> _T:
    """Stacks ``pieces`` of one shape along a new axis, which undoes split_to_sequence with
    ``keepdims=False``.

    ``out`` and ``threads`` are as for copy. Without ``out`` the result has the type of the first
    piece.

    >>> import libsplit, numpy
    >>> left, right = numpy.arange(3), numpy.arange(3, 6)
    >>> libsplit.stack([left, right], axis=1)
    array([[0, 3],
           [1, 4],
           [2, 5]])
    """
def infer(
    shape: Iterable[SupportsIndex | None],
    parts_or_lengths: _Sections,
    axis: int | None = None,
    *,
    uneven: _Uneven | None = None,
    dtype: object = None,
) -> list[tuple[int | None, ...]]:
    """Returns the shapes of the pieces of a tensor of this shape. None is an extent that is not
    known yet.

    With ``dtype``, a name or a dtype, an Operator's rules on element types are checked too.

    >>> import libsplit
    >>> libsplit.infer((None, 6), [2, -1], axis=1)
    [(None, 2), (None, 4)]
    """
def onnx_split(
    x: _T,
    split: _Lengths | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    opset: int = 18,
    clamp_uneven: bool = False,
) -> list[_T]:
    """ONNX Split: returns views of ``x``, by the rules on lengths and element types of the version
    that applies at ``opset``. See Operator.onnx_split for the parameters.

    >>> import libsplit, numpy
    >>> x = numpy.arange(7)
    >>> libsplit.onnx_split(x, num_outputs=3)
    [array([0, 1, 2]), array([3, 4, 5]), array([6])]
    >>> libsplit.onnx_split(x, num_outputs=3, opset=13)
    Traceback (most recent call last):
        ...
    ValueError: num_outputs is 3, but ONNX Split-13 cannot divide an extent of 7 into 3 equal parts...
    """
def split_to_sequence(
    x: _T,
    split: _Lengths | None = None,
    *,
    axis: int = 0,
    keepdims: bool = True,
    opset: int = 24,
) -> list[_T]:
    """ONNX SplitToSequence: returns views of ``x``. See Operator.split_to_sequence for the parameters.

    >>> import libsplit, numpy
    >>> libsplit.split_to_sequence(numpy.arange(5), 2)
    [array([0, 1]), array([2, 3]), array([4])]
    >>> libsplit.split_to_sequence(numpy.eye(2), keepdims=False)
    [array([1., 0.]), array([0., 1.])]
    """
def variadic_split(x: _T, split_lengths: _Lengths, *, axis: int = 0) -> list[_T]:
    """OpenVINO VariadicSplit-1: returns views of ``x``. See Operator.variadic_split for the parameters.

    >>> import libsplit, numpy
    >>> libsplit.variadic_split(numpy.arange(5), [1, -1])
    [array([0]), array([1, 2, 3, 4])]
    """
def openvino_split(x: _T, num_splits: int, *, axis: int = 0) -> list[_T]:
    """OpenVINO Split-1: returns views of ``x``. See Operator.openvino_split for the parameters.

    >>> import libsplit, numpy
    >>> libsplit.openvino_split(numpy.arange(4), 2)
    [array([0, 1]), array([2, 3])]
    """
@final
class Operator:
    """An operator of ONNX or OpenVINO with its parameters, which can be passed to `split`, `copy`,
    `infer` and `Plan` instead of a number of parts.

    >>> import libsplit
    >>> halves = libsplit.Operator.onnx_split(num_outputs=2, axis=1)
    >>> libsplit.infer((4, 7), halves)
    [(4, 4), (4, 3)]
    """
    @staticmethod
    def onnx_split(
        split: _Lengths | None = None,
        *,
        axis: int = 0,
        num_outputs: int | None = None,
        opset: int = 18,
        clamp_uneven: bool = False,
    ) -> Operator:
        """ONNX Split: equal parts, or pieces with the lengths in ``split``.

        The newest version that is not above ``opset``, the model's opset import, applies. Before
        version 18, ``num_outputs`` is the number of outputs of the node. From 18 on the last piece
        may be smaller; if its length would be below 0, ``clamp_uneven`` shortens other pieces too
        instead of raising an error.
        """
    @staticmethod
    def split_to_sequence(
        split: _Lengths | None = None,
        *,
        axis: int = 0,
        keepdims: bool = True,
        opset: int = 24,
    ) -> Operator:
        """ONNX SplitToSequence: a number as ``split`` is the length of every piece (the last may be
        smaller), a list has one length for each piece. Without ``split`` each piece has length 1,
        and ``keepdims=False`` drops the axis, as torch.unbind does.
        """
    @staticmethod
    def variadic_split(split_lengths: _Lengths, *, axis: int = 0) -> Operator:
        """OpenVINO VariadicSplit-1: pieces with these lengths; one may be -1, which means the rest."""
    @staticmethod
    def openvino_split(num_splits: int, *, axis: int = 0) -> Operator:
        """OpenVINO Split-1: ``num_splits`` equal parts, which must divide the extent."""
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Plan:
    """A split that is prepared once, for tensors with the dtype, shape and strides of ``x``.

    >>> import libsplit, numpy
    >>> plan = libsplit.Plan(numpy.empty((2, 6), numpy.float32), [2, 3, 1], axis=1)
    >>> plan.shapes
    [(2, 2), (2, 3), (2, 1)]
    >>> for step in range(3):
    ...     q, k, v = plan.split(numpy.full((2, 6), step, numpy.float32))
    >>> v
    array([[2.],
           [2.]], dtype=float32)
    """
    def __new__(
        cls,
        x: _Exporter,
        parts_or_lengths: _Sections,
        axis: int | None = None,
        *,
        uneven: _Uneven | None = None,
    ) -> Plan: ...
    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the pieces."""
    def split(self, x: _T) -> list[_T]:
        """Splits ``x`` into views that share its memory, as libsplit.split does."""
    @overload
    def copy(
        self, x: _T, *, out: Iterable[_T] | None = None, threads: int | None = None
    ) -> list[_T]:
        """Splits ``x`` into copies, as libsplit.copy does."""
    @overload
    def copy(
        self, x: _T, *, out: Iterable[_T | None], threads: int | None = None
    ) -> list[_T | None]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Tensor:
    """A tensor that every library with DLPack accepts: ``numpy.from_dlpack(tensor)``,
    ``torch.from_dlpack(tensor)``. It shares the memory of ``data`` and keeps it alive.

    With ``dtype`` (a name such as ``'int4'``, or a dtype of NumPy or ml_dtypes), the bytes of
    ``data``, which must be packed, are interpreted as elements of that type. A byte holds two int4,
    the first in its low bits.

    >>> import libsplit, numpy
    >>> packed = numpy.array([0x21, 0x43, 0x65], numpy.uint8)
    >>> tensor = libsplit.Tensor(packed, dtype='int4', shape=(3, 2))
    >>> tensor
    libsplit.Tensor(shape=(3, 2), dtype='int4')
    >>> left, right = libsplit.copy(tensor, 2, axis=1)
    >>> [hex(byte) for byte in numpy.from_dlpack(left.bytes())]
    ['0x31', '0x5']
    """
    def __new__(
        cls, data: _Exporter, *, dtype: object = None, shape: Sequence[int] | None = None
    ) -> Tensor: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
    @property
    def strides(self) -> tuple[int, ...]:
        """The strides, in elements."""
    @property
    def dtype(self) -> str:
        """The element type's name, as NumPy and ml_dtypes spell it."""
    @property
    def readonly(self) -> bool:
        """Whether consumers must not write to it."""
    @property
    def bit_offset(self) -> int:
        """For packed elements: the bit of the first byte at which the first element begins."""
    def bytes(self) -> Tensor:
        """The bytes of a packed tensor, as a tensor of uint8 over the same memory."""
    def numpy(self) -> Any:
        """A NumPy array over the same memory; bfloat16 and float8 have the dtypes of ml_dtypes."""
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
