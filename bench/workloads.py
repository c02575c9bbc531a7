"""The workloads: shapes from models, shapes from users' reports, and families of short runs."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re

import numpy as np

MIB = 1 << 20
LINE = 64
SUB_BYTE = ["uint4", "int4", "uint2", "int2"]


@dataclasses.dataclass(frozen=True)
class Layout:
    """The layout of a tensor that is a view of a packed one."""

    memory: tuple[int, ...]  # the shape of the packed tensor
    index: tuple[slice, ...] = ()  # the part of it that is viewed
    order: tuple[int, ...] = ()  # the order in which the view has its axes

    def of(self, packed: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Returns the tensor of this shape; axes of extent 1 are repeated."""
        seen = packed.reshape(self.memory)[self.index]
        seen = seen.transpose(self.order) if self.order else seen
        strides = [0 if extent < wanted else stride
                   for extent, wanted, stride in zip(seen.shape, shape, seen.strides)]
        return np.lib.stride_tricks.as_strided(seen, shape, strides)

    def __str__(self) -> str:
        """Formats the layout, as in ' of [1080,1920,3][:,::2]'."""
        shape = ",".join(map(str, self.memory))
        index = ",".join(map(_slice, self.index))
        index = f"[{index}]" if index else ""
        order = f".transpose({','.join(map(str, self.order))})" if self.order else ""
        return f" of [{shape}]{index}{order}"


@dataclasses.dataclass(frozen=True)
class Strided:
    """The layout of a tensor with given strides, in elements, in as much memory as they span."""

    strides: tuple[int, ...]

    def reach(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Returns the number of elements of memory before the first element, and from it on."""
        steps = [(extent - 1) * stride for extent, stride in zip(shape, self.strides, strict=True)]
        return (-sum(step for step in steps if step < 0),
                1 + sum(step for step in steps if step > 0))

    def of(self, packed: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Returns the tensor of this shape in this memory."""
        before, _ = self.reach(shape)
        return np.lib.stride_tricks.as_strided(
            packed[before:], shape, [stride * packed.itemsize for stride in self.strides])

    def __str__(self) -> str:
        """Formats the layout, as in ' strides [128,1]'."""
        return f" strides [{','.join(map(str, self.strides))}]"


@dataclasses.dataclass
class SubByte:
    """A tensor of elements smaller than a byte; the first element of a byte is in its lowest bits."""

    memory: np.ndarray  # bytes
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None  # in elements; None: packed
    first: int = 0  # the position of its first element in memory, in elements

    @property
    def bits(self) -> int:
        """The bits of an element."""
        return bits_of(self.dtype)

    def unpacked(self) -> np.ndarray:
        """Returns an array with one byte for each element."""
        shifts = np.arange(0, 8, self.bits, dtype=np.uint8)
        elements = ((self.memory[:, None] >> shifts) & (2**self.bits - 1)).reshape(-1)
        if self.strides is None:
            return elements[: math.prod(self.shape)].reshape(self.shape)
        return np.lib.stride_tricks.as_strided(elements[self.first:], self.shape, self.strides)


def bits_of(sub_byte: str) -> int:
    """Returns the bits of an element of this dtype: 4 for int4."""
    return int(sub_byte[-1])


def _slice(taken: slice) -> str:
    begin, end, step = ("" if of is None else str(of)
                        for of in [taken.start, taken.stop, taken.step])
    return f"{begin}:{end}" + (f":{step}" if step else "")


@dataclasses.dataclass(frozen=True)
class Workload:
    """A tensor, and the lengths of its pieces along an axis."""

    name: str
    group: str
    dtype: np.dtype
    shape: tuple[int, ...]
    axis: int  # not negative
    lengths: tuple[int, ...]
    layout: Layout | Strided | None = None  # the layout of the input, if it is not packed
    # The layout of the tensor that the outputs are slices of, or of each output, if they are not packed.
    into: Layout | Strided | None = None
    sequence: bool = False  # SplitToSequence without lengths
    quick: bool = True
    sub_byte: str = ""  # the type of the elements if a byte of the dtype holds several, such as "int4"

    @property
    def bytes(self) -> int:
        return self._bytes(math.prod(self.shape))

    def _bytes(self, elements: int) -> int:
        if self.sub_byte:
            return -(-elements * bits_of(self.sub_byte) // 8)
        return elements * self.dtype.itemsize

    @property
    def is_packed(self) -> bool:
        return not self.layout and not self.into

    @property
    def input_bytes(self) -> int:
        """The bytes of memory that the input spans."""
        return self._bytes_of(self.layout, self.shape)

    def _bytes_of(self, layout: Layout | Strided | None, shape: tuple[int, ...]) -> int:
        """Returns the bytes of memory that a tensor of this shape spans."""
        if isinstance(layout, Strided):
            elements = sum(layout.reach(shape)) if math.prod(shape) else 0
        else:
            elements = math.prod(layout.memory if layout else shape)
        return self._bytes(elements)

    @property
    def output_bytes(self) -> int:
        """The bytes of memory that the outputs span, each on its own cache lines unless they are slices."""
        if isinstance(self.into, Layout):
            return self._bytes_of(self.into, self.shape)
        return sum(self._bytes_of(self.into, shape) + LINE for shape in self.piece_shapes())

    def input(self, memory: np.ndarray) -> np.ndarray | SubByte:
        """Returns the input, at the start of this memory."""
        if self.sub_byte:
            strides = self.layout.strides if self.layout else None
            first = self.layout.reach(self.shape)[0] if self.layout else 0
            return SubByte(memory[: self.input_bytes], self.sub_byte, self.shape, strides, first)
        packed = memory[: self.input_bytes].view(self.dtype)
        return self.layout.of(packed, self.shape) if self.layout else packed.reshape(self.shape)

    def outputs(self, memory: np.ndarray) -> list[np.ndarray | SubByte]:
        """Returns the outputs, at the start of this memory."""
        if isinstance(self.into, Layout):
            packed = memory[: self.output_bytes].view(self.dtype)
            return self.slices(self.into.of(packed, self.shape))
        outputs, at = [], 0
        for shape in self.piece_shapes():
            size = self._bytes_of(self.into, shape)
            packed = memory[at : at + size].view(self.dtype)
            if self.sub_byte:
                outputs.append(SubByte(packed, self.sub_byte, shape))
            else:
                outputs.append(self.into.of(packed, shape) if self.into else packed.reshape(shape))
            at += -(-size // LINE) * LINE
        return outputs

    @property
    def rows(self) -> int:
        """The number of rows of a packed input. Each piece takes one run of bytes from each row."""
        return math.prod(self.shape[: self.axis])

    @property
    def runs(self) -> list[int]:
        """The lengths of these runs in bytes, if they are whole bytes."""
        unit = math.prod(self.shape[self.axis + 1:])
        return [self._bytes(length * unit) for length in self.lengths]

    @property
    def has_whole_runs(self) -> bool:
        """Whether the runs are whole bytes."""
        if not self.sub_byte:
            return True
        unit = math.prod(self.shape[self.axis + 1:]) * bits_of(self.sub_byte)
        return all(length * unit % 8 == 0 for length in self.lengths)

    def piece_shapes(self) -> list[tuple[int, ...]]:
        return [self.shape[: self.axis] + (length,) + self.shape[self.axis + 1:]
                for length in self.lengths]

    def slices(self, tensor: np.ndarray | SubByte) -> list[np.ndarray]:
        """Returns the pieces as NumPy views; elements smaller than a byte get one byte each."""
        if isinstance(tensor, SubByte):
            tensor = tensor.unpacked()
        ends = np.cumsum(self.lengths)
        before = (slice(None),) * self.axis
        return [tensor[before + (slice(end - length, end),)]
                for end, length in zip(ends, self.lengths)]

    def describe(self) -> str:
        """Describes the split, as in 'float32 [1000000,2] axis 1: 2×1', with the layout if it is not packed."""
        shape = ",".join(map(str, self.shape))
        each = set(self.lengths)
        if len(each) == 1 and len(self.lengths) > 1:
            lengths = f"{len(self.lengths)}×{each.pop()}"
        elif len(self.lengths) > 8:
            lengths = f"{len(self.lengths)} of {min(each)} to {max(each)}"
        else:
            lengths = ",".join(map(str, self.lengths))
        return self._spec(lengths)

    def spec(self) -> str:
        """Describes the split with every length, so that parse() can read it."""
        groups = [(length, len(list(same))) for length, same in itertools.groupby(self.lengths)]
        return self._spec(",".join(f"{count}×{length}" if count > 1 else str(length)
                                   for length, count in groups))

    def _spec(self, lengths: str) -> str:
        shape = ",".join(map(str, self.shape))
        into = " into slices" if isinstance(self.into, Layout) else " into"
        return (f"{self.sub_byte or self.dtype} [{shape}]{self.layout or ''} axis {self.axis}: {lengths}"
                + (f"{into}{self.into}" if self.into else ""))


_NUMBERS = r"\[[-0-9, ]*\]"
_LAYOUT = rf"of\s*{_NUMBERS}\s*(?:\[[-0-9:, ]*\])?(?:\.transpose\([0-9, ]*\))?"
_STRIDES = rf"strides\s*{_NUMBERS}"
_SPEC = re.compile(
    rf"(?P<dtype>\w+)\s*(?P<shape>{_NUMBERS})\s*(?P<layout>{_LAYOUT}|{_STRIDES})?\s*"
    rf"axis\s*(?P<axis>-?\d+)\s*:\s*(?P<lengths>[0-9×x*, ]+?)\s*"
    rf"(?:into\s*(?:slices\s*(?P<slices>{_LAYOUT})|(?P<into>{_STRIDES})))?")


def parse(text: str, name: str = "", group: str = "asked for") -> Workload:
    """Makes a workload from the text that Workload.spec() returns.

    Examples: 'uint16 [3000,37,5] axis 1: 12,13,12', 'float32 [4096,8] axis 1: 8×1' and, not packed,
    'uint8 [3,100,80] strides [80,8192,1] axis 0: 2,1 into strides [8000,80,1]',
    'uint8 [100,3] of [200,4][::2,1:] axis 1: 3×1 into slices of [3,128][:,:100].transpose(1,0)'.
    Strides are in elements.
    """
    found = _SPEC.fullmatch(text.strip())
    if not found:
        raise ValueError(f"'{text}' is not like 'uint16 [3000,37,5] axis 1: 12,13,12' or "
                         "'uint8 [3,80] strides [96,1] axis 0: 2,1 into strides [128,1]'")
    sub_byte = found["dtype"] if found["dtype"] in SUB_BYTE else ""
    try:
        dtype = np.dtype("u1" if sub_byte else found["dtype"])
    except TypeError as error:
        raise ValueError(f"'{found['dtype']}' is not a dtype of NumPy") from error
    shape = _numbers(found["shape"])
    axis = int(found["axis"])
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"axis {axis} is outside [{-len(shape)}, {len(shape) - 1}]")
    lengths = _lengths(found["lengths"])
    if sum(lengths) != shape[axis]:
        raise ValueError(f"the lengths add up to {sum(lengths)}, but axis {axis} has extent {shape[axis]}")
    layout, into = _layout(found["layout"]), _layout(found["slices"] or found["into"])
    for kind in [layout, into]:
        if isinstance(kind, Strided) and len(kind.strides) != len(shape):
            raise ValueError(f"{len(kind.strides)} strides for {len(shape)} axes")
    if sub_byte and (isinstance(layout, Layout) or into):
        raise ValueError(f"an input of {sub_byte} may be packed or have strides; its outputs must be packed")
    return _workload(group, name, dtype, shape, axis, lengths, layout, into=into, sub_byte=sub_byte)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"-?\d+", text))


def _lengths(text: str) -> list[int]:
    lengths = []
    for part in text.split(","):
        count, times, length = re.fullmatch(r"\s*(?:(\d+)\s*([×x*])\s*)?(\d+)\s*", part).groups()
        lengths += [int(length)] * (int(count) if times else 1)
    return lengths


def _layout(text: str | None) -> Layout | Strided | None:
    if text is None:
        return None
    if text.startswith("strides"):
        return Strided(_numbers(text))
    memory, index, order = re.fullmatch(
        r"of\s*(\[.*?\])\s*(\[.*\])?(?:\.transpose\((.*)\))?", text).groups()
    slices = []
    for part in (index or "[]").strip("[] ").split(",") if index else []:
        slices.append(slice(*(int(end) if end.strip() else None for end in part.split(":"))))
    return Layout(_numbers(memory), tuple(slices), _numbers(order or ""))


def _workload(group, name, dtype, shape, axis, lengths, layout=None, **options) -> Workload:
    return Workload(name, group, np.dtype(dtype), tuple(shape), axis % len(shape), tuple(lengths),
                    layout, **options)


def _turned(rows: int, columns: int) -> Layout:
    """Makes the layout of the transpose of a packed matrix."""
    return Layout((rows, columns), order=(1, 0))


def _models() -> list[Workload]:
    w = functools.partial(_workload, "models")

    return [
        w("W1", "f4", (16, 1024, 3072), -1, [1024] * 3),
        w("W2", "f4", (1, 512, 2304), -1, [768] * 3),
        w("W3", "f4", (1, 128, 80, 80), 1, [64] * 2),
        w("W4", "f4", (8, 4096, 8), -1, [2] * 4),
        w("W4b", "f4", (1024, 4096, 8), -1, [2] * 4),
        w("W5", "u1", (1080, 1920, 3), -1, [1] * 3),
        w("W5b", "u1", (1080, 1920, 4), -1, [1] * 4),
        w("W5c", "f4", (1080, 1920, 3), -1, [1] * 3),
        w("W6", "f4", (100_000, 85), -1, [4, 1, 80]),
        w("W7", "f2", (4096, 22016), -1, [11008] * 2),
        w("W8", "f4", (64, 512, 512), 0, [1] * 64),
        w("W9", "i8", (1_000_000, 2), 1, [1] * 2),
        w("W9c", "c8", (1_000_000, 2), 1, [1] * 2),
        w("W9L", "i8", (8_000_000, 2), 1, [1] * 2, quick=False),
        w("W9cL", "c8", (8_000_000, 2), 1, [1] * 2, quick=False),
        w("W10", "f4", (1, 12), 1, [4] * 3),
        w("W10b", "f4", (1, 1, 3072), -1, [1024] * 3),
        w("W11", "f4", (2048, 2048), 0, [512] * 4, layout=_turned(2048, 2048)),
        w("W11u", "u1", (2048, 2048), 0, [512] * 4, layout=_turned(2048, 2048)),
        w("W12", "f4", (4096, 1024), 1, [1] * 1024),
        w("W13", "f4", (100_000, 4), 1, [1] * 4),
        w("W14", "f2", (2048, 6144), 1, [4096, 1024, 1024]),
        w("W15", "f4", (32, 2048), 1, [512] * 4),
        w("W16", "f4", (1_000_000, 2), 1, [1] * 2),
        w("W17", "f4", (16384, 64), 1, [16] * 4),
        w("W18", "f4", (65536, 96), 1, [32] * 3),
        w("W19", "f4", (1, 512, 3072), -1, [1024] * 3),
    ]


def _reports() -> list[Workload]:
    """Shapes that users of other runtimes have reported."""

    w = functools.partial(_workload, "reports")

    return [
        w("U96", "f4", (256, 279, 81), 1, ([1] * 13 + [30]) * 6 + [1] * 11 + [10]),
        w("U59", "f4", (176, 29754), 1, [29696] + [1] * 58),
        w("Useq", "i8", (64, 56), 0, [1] * 64, sequence=True),
        w("U31", "i8", (4800, 107, 9), 1, [1] * 30 + [77]),
        w("U5M", "f4", (5_000_000, 2), 1, [1] * 2),
        w("Uqkv", "f2", (1, 13952), 1, [12288, 512, 512, 640]),
        w("Uqk", "f2", (1, 16384), 1, [10240, 6144]),
        w("Ukv", "f2", (1, 640), 1, [512, 128]),
    ]


def _equal_runs() -> list[Workload]:
    """Runs of bytes that do not fill a vector register, in cache and in memory."""
    workloads = []
    for size, suffix in [(1, ""), (96, "L")]:
        for run in [12, 24, 48, 96]:
            for pieces in [2, 3, 4, 5, 8, 12, 16] if size == 1 else [2, 3, 8, 16]:
                rows = size * MIB // (run * pieces)
                quick = pieces in [3, 8] if size == 1 else pieces == 3 and run in [12, 48]
                workloads.append(_workload("equal runs", f"R{run}x{pieces}{suffix}", "f4",
                                           (rows, run // 4 * pieces), 1, [run // 4] * pieces,
                                           quick=quick))
    return workloads


def _odd() -> list[Workload]:
    """Shapes that somebody might try who does not know libsplit."""

    w = functools.partial(_workload, "odd")

    return [
        w("X5x7", "u1", (150_000, 35), 1, [7] * 5),
        w("X6x3", "i2", (262_144, 18), 1, [3] * 6),
        w("X5x1", "f8", (400_000, 5), 1, [1] * 5),
        w("X13", "u1", (50_000, 91), 1, range(1, 14)),
        w("X13L", "u1", (400_000, 91), 1, range(1, 14), quick=False),
        w("X16x3", "f2", (100_000, 48), 1, [3] * 16, quick=False),
        w("Xmid", "i1", (7, 333, 1000), 1, [100, 33, 200], quick=False),
        w("X9x1", "i4", (300_000, 9), 1, [1] * 9, quick=False),
        w("X3big", "f8", (3000, 4099), 1, [1365, 1367, 1367], quick=False),
        w("X7x5", "i2", (500_000, 35), 1, [5] * 7, quick=False),
    ]


def _layouts() -> list[Workload]:
    """Views, as tensors of C++ runtimes often are, as inputs and as outputs."""

    w = functools.partial(_workload, "layouts")

    s = np.s_
    picture = Layout((1080, 1920, 3), s[10:1070, 10:1910])
    wide = (2048, 3072)
    frames = 48_000
    return [
        # With a pitch: parts of pictures and matrices.
        w("L1", "u1", (1060, 1900, 3), -1, [1] * 3, picture),
        w("L1r", "u1", (1060, 1900, 3), 0, [530] * 2, picture),
        w("L1f", "f4", (1060, 1900, 3), -1, [1] * 3, picture),
        w("L1a", "u1", (1060, 1900, 4), -1, [1] * 4,
          Layout((1080, 1920, 4), s[10:1070, 10:1910])),
        w("L2r", "f4", (2048, 2048), 0, [512] * 4, Layout(wide, s[:, :2048])),
        w("L2c", "f4", (2048, 2048), 1, [1024] * 2, Layout(wide, s[:, 512:2560])),
        w("L2s", "f4", (100_000, 6), 1, [2, 4], Layout((100_000, 8), s[:, 1:7])),
        w("L2k", "f2", (2, 32, 1024, 128), 1, [16] * 2,
          Layout((2, 32, 2048, 128), s[:, :, :1024])),
        w("L2b", "u1", (32, 3, 224, 224), 1, [1] * 3,
          Layout((32, 3, 256, 256), s[:, :, 16:240, 16:240])),
        w("L2z", "f4", (64, 64, 64), 0, [32] * 2,
          Layout((96, 96, 96), s[16:80, 16:80, 16:80])),
        # Outputs with a pitch.
        w("L3", "f4", (2048, 2048), 1, [1024] * 2, into=Layout((2048, 2560), s[:, :2048])),
        w("L3p", "u1", (1080, 1920, 3), 2, [1] * 3,
          into=Layout((3, 1080, 2048), s[:, :, :1920], (1, 2, 0))),
        # Outer axes that are reversed, stepped, permuted, repeated.
        w("L4s", "f4", (1024, 3072), 1, [1536] * 2, Layout(wide, s[::2,])),
        w("L4r", "f4", wide, 1, [1536] * 2, Layout(wide, s[::-1,])),
        w("L4v", "u1", (24576, 1024), 1, [512] * 2, Layout((24576, 1024), s[::-1,])),
        w("L4u", "u1", (1080, 1920, 3), -1, [1] * 3, Layout((1080, 1920, 3), s[::-1,])),
        w("L4q", "f4", (3, 4, 16, 512, 64), 0, [1] * 3,
          Layout((4, 512, 3, 16, 64), order=(2, 0, 3, 1, 4))),
        w("L4h", "f4", (4, 16, 512, 64), 1, [4] * 4, Layout((4, 512, 16, 64), order=(0, 2, 1, 3))),
        w("L4o", "f4", wide, 1, [1536] * 2, Layout((1, 3072))),
        # The innermost axis stepped and reversed.
        w("L5", "f4", (2048, 1536), 1, [768] * 2, Layout(wide, s[:, ::2])),
        w("L5u", "u1", (1080, 1920), 1, [960] * 2, Layout((1080, 5760), s[:, ::3])),
        w("L5s", "u1", (61440, 200), 1, [100] * 2, Layout((61440, 400), s[:, ::2])),
        w("L5r", "f4", wide, 1, [1536] * 2, Layout(wide, s[:, ::-1])),
        w("L5b", "u1", (2160, 3840), 0, [1080] * 2, Layout((2160, 3840), s[:, ::-1])),
        w("L5c", "u1", (1080, 1920, 3), -1, [1] * 3, Layout((1080, 1920, 3), s[:, :, ::-1])),
        # Transposed.
        w("L6n", "f4", (4, 56, 56, 64), 3, [32] * 2, Layout((4, 64, 56, 56), order=(0, 2, 3, 1))),
        w("L6c", "f4", (4, 64, 56, 56), 1, [32] * 2, Layout((4, 56, 56, 64), order=(0, 3, 1, 2))),
        w("L6r", "f2", (3072, 4096), 0, [1536] * 2, _turned(4096, 3072)),
        w("L6h", "f2", (3072, 4096), 1, [2048] * 2, _turned(4096, 3072)),
        w("L6u", "u1", (3000, 3000), 0, [1500] * 2, _turned(3000, 3000)),
        # Joining channels: planes into one output, and outputs that are channels of one picture.
        w("L7u", "u1", (1080 * 1920, 3), 0, [1080 * 1920], _turned(3, 1080 * 1920)),
        w("L7a", "u1", (1080 * 1920, 4), 0, [1080 * 1920], _turned(4, 1080 * 1920)),
        w("L7f", "f4", (1080 * 1920, 3), 0, [1080 * 1920], _turned(3, 1080 * 1920)),
        w("L7s", "f4", (1_000_000, 2), 0, [1_000_000], _turned(2, 1_000_000)),
        w("L7m", "f4", (frames, 6), 0, [frames], _turned(6, frames)),
        w("L8u", "u1", (3, 1080 * 1920), 0, [1] * 3, into=_turned(1080 * 1920, 3)),
        w("L8a", "u1", (4, 1080 * 1920), 0, [1] * 4, into=_turned(1080 * 1920, 4)),
        w("L8f", "f4", (3, 1080 * 1920), 0, [1] * 3, into=_turned(1080 * 1920, 3)),
        w("L8s", "f4", (2, 1_000_000), 0, [1] * 2, into=_turned(1_000_000, 2)),
        w("L8i", "i8", (2, 1_000_000), 0, [1] * 2, into=_turned(1_000_000, 2)),
        w("L8m", "f4", (6, frames), 0, [1] * 6, into=_turned(frames, 6)),
    ]


def _sub_byte() -> list[Workload]:
    """Elements smaller than a byte, such as quantized weights."""

    def w(name, sub_byte, shape, axis, lengths, layout=None, **options):
        return _workload("sub-byte", name, "u1", shape, axis, lengths, layout, sub_byte=sub_byte, **options)

    return [
        w("S1", "int4", (4096, 6144), 1, [4096, 1024, 1024]),
        w("S2", "int4", (4096, 11008), 0, [2048] * 2),
        w("S3", "int4", (2048, 999), 1, [333] * 3),
        w("S4", "int4", (100_000, 48), 1, [16] * 3),
        w("S5", "int4", (2_000_000, 2), 1, [1] * 2),
        w("S6", "int4", (500_000, 8), 1, [1] * 8),
        w("S7", "int4", (2048, 2048), 0, [1024] * 2, Strided((1, 2048))),
        w("S8", "int4", (1024, 2048), 1, [1024] * 2, Strided((4096, 2))),
        w("S9", "uint2", (4096, 4096), 1, [1024] * 4),
        w("S10", "uint2", (1_000_000, 4), 1, [1] * 4),
    ]


ALL = _models() + _reports() + _equal_runs() + _odd() + _layouts() + _sub_byte()

# The workloads of the quick mode with misaligned outputs, and with more than one thread.
QUICK_MISALIGNED = ["W1", "W2", "W7", "W14", "W19"]
QUICK_THREADS = ["W1", "W2", "W4", "W5", "W6", "W9", "W11", "W12", "W15", "W17", "W18"]

# The classes of workloads, and those that are judged together.
CLASSES = {"W": "models", "U": "reports", "L": "layouts", "R": "equal runs in cache",
           "RL": "equal runs past the caches", "X": "odd", "S": "sub-byte"}
TOGETHER = {"W U L": ["W", "U", "L"], "R X": ["R", "RL", "X"],
            "all but S": ["W", "U", "L", "R", "RL", "X"]}


def class_of(work: Workload) -> str:
    """Returns the workload's class, a key of CLASSES."""
    return "RL" if work.name[0] == "R" and work.name.endswith("L") else work.name[0]
