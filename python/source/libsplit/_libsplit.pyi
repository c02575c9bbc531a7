from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar, final

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
def restore_operator(fields: Any, sizes: Any) -> Operator: ...
def restore_plan(layout: Any, fields: Any, sizes: Any) -> Plan: ...
def split(
    x: _T, parts_or_lengths: _Sections, axis: int | None = None, *, uneven: _Uneven | None = None
) -> list[_T]: ...
def copy(
    x: _T,
    parts_or_lengths: _Sections,
    axis: int | None = None,
    *,
    uneven: _Uneven | None = None,
    out: Iterable[_T | None] | None = None,
    threads: int | None = None,
) -> list[_T]: ...
def join(
    pieces: Iterable[_T], axis: int = 0, *, out: _T | None = None, threads: int | None = None
) -> _T: ...
def stack(
    pieces: Iterable[_T], axis: int = 0, *, out: _T | None = None, threads: int | None = None
) -> _T: ...
def infer(
    shape: Iterable[SupportsIndex | None],
    parts_or_lengths: _Sections,
    axis: int | None = None,
    *,
    uneven: _Uneven | None = None,
    dtype: object = None,
) -> list[tuple[int | None, ...]]: ...
def onnx_split(
    x: _T,
    split: _Lengths | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    opset: int = 18,
    clamp_uneven: bool = False,
) -> list[_T]: ...
def split_to_sequence(
    x: _T,
    split: _Lengths | None = None,
    *,
    axis: int = 0,
    keepdims: bool = True,
    opset: int = 24,
) -> list[_T]: ...
def variadic_split(x: _T, split_lengths: _Lengths, *, axis: int = 0) -> list[_T]: ...
def openvino_split(x: _T, num_splits: int, *, axis: int = 0) -> list[_T]: ...
@final
class Operator:
    @staticmethod
    def onnx_split(
        split: _Lengths | None = None,
        *,
        axis: int = 0,
        num_outputs: int | None = None,
        opset: int = 18,
        clamp_uneven: bool = False,
    ) -> Operator: ...
    @staticmethod
    def split_to_sequence(
        split: _Lengths | None = None,
        *,
        axis: int = 0,
        keepdims: bool = True,
        opset: int = 24,
    ) -> Operator: ...
    @staticmethod
    def variadic_split(split_lengths: _Lengths, *, axis: int = 0) -> Operator: ...
    @staticmethod
    def openvino_split(num_splits: int, *, axis: int = 0) -> Operator: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Plan:
    def __new__(
        cls,
        x: _Exporter,
        parts_or_lengths: _Sections,
        axis: int | None = None,
        *,
        uneven: _Uneven | None = None,
    ) -> Plan: ...
    @property
    def shapes(self) -> list[tuple[int, ...]]: ...
    def split(self, x: _T) -> list[_T]: ...
    def copy(
        self, x: _T, *, out: Iterable[_T | None] | None = None, threads: int | None = None
    ) -> list[_T]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Tensor:
    def __new__(
        cls, data: _Exporter, *, dtype: object = None, shape: Sequence[int] | None = None
    ) -> Tensor: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def readonly(self) -> bool: ...
    @property
    def bit_offset(self) -> int: ...
    def bytes(self) -> Tensor: ...
    def numpy(self) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
