"""What is split: shapes from models, shapes from users' reports, and families of short runs."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Workload:
    """A tensor, and the lengths of its pieces along an axis."""

    name: str
    group: str
    dtype: np.dtype
    shape: tuple[int, ...]
    axis: int  # from the front
    lengths: tuple[int, ...]
    transposed: bool = False  # the input is the transpose of a packed matrix
    sequence: bool = False  # SplitToSequence without lengths
    quick: bool = True

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def rows(self) -> int:
        """Rows of a packed input: each piece takes one run of bytes from every one of them."""
        return math.prod(self.shape[: self.axis])

    @property
    def runs(self) -> list[int]:
        """Bytes of these runs."""
        unit = math.prod(self.shape[self.axis + 1:]) * self.dtype.itemsize
        return [length * unit for length in self.lengths]

    def piece_shapes(self) -> list[tuple[int, ...]]:
        return [self.shape[: self.axis] + (length,) + self.shape[self.axis + 1:]
                for length in self.lengths]

    def slices(self, tensor: np.ndarray) -> list[np.ndarray]:
        """The pieces as views: NumPy's answer."""
        ends = np.cumsum(self.lengths)
        before = (slice(None),) * self.axis
        return [tensor[before + (slice(end - length, end),)]
                for end, length in zip(ends, self.lengths)]

    def describe(self) -> str:
        """As 'float32 [1000000,2] axis 1: 2×1'."""
        shape = ",".join(map(str, self.shape))
        each = set(self.lengths)
        if len(each) == 1 and len(self.lengths) > 1:
            lengths = f"{len(self.lengths)}×{each.pop()}"
        elif len(self.lengths) > 8:
            lengths = f"{len(self.lengths)} of {min(each)} to {max(each)}"
        else:
            lengths = ",".join(map(str, self.lengths))
        return (f"{self.dtype} [{shape}]{'ᵀ' if self.transposed else ''} "
                f"axis {self.axis}: {lengths}")


def _workload(name, group, dtype, shape, axis, lengths, **options) -> Workload:
    return Workload(name, group, np.dtype(dtype), tuple(shape), axis % len(shape), tuple(lengths),
                    **options)


def _models() -> list[Workload]:
    def w(*args, **options):
        return _workload(args[0], "models", *args[1:], **options)

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
        w("W10", "f4", (1, 12), 1, [4] * 3),
        w("W10b", "f4", (1, 1, 3072), -1, [1024] * 3),
        w("W11", "f4", (2048, 2048), 0, [512] * 4, transposed=True),
        w("W11u", "u1", (2048, 2048), 0, [512] * 4, transposed=True),
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
    """From threads of users of other runtimes."""

    def w(*args, **options):
        return _workload(args[0], "reports", *args[1:], **options)

    return [
        w("U96", "f4", (256, 279, 81), 1, ([1] * 13 + [30]) * 6 + [1] * 11 + [10]),
        w("Useq", "i8", (64, 56), 0, [1] * 64, sequence=True),
        w("U31", "i8", (4800, 107, 9), 1, [1] * 30 + [77]),
        w("U5M", "f4", (5_000_000, 2), 1, [1] * 2),
        w("Uqkv", "f2", (1, 13952), 1, [12288, 512, 512, 640]),
        w("Uqk", "f2", (1, 16384), 1, [10240, 6144]),
        w("Ukv", "f2", (1, 640), 1, [512, 128]),
    ]


def _equal_runs() -> list[Workload]:
    """Runs of bytes that fill no vector, in cache and in memory."""
    workloads = []
    for size, suffix in [(1, ""), (96, "L")]:
        for run in [12, 24, 48, 96]:
            for pieces in [2, 3, 4, 5, 8, 12, 16] if size == 1 else [2, 3, 8, 16]:
                rows = size * MIB // (run * pieces)
                quick = pieces in [3, 8] if size == 1 else pieces == 3 and run in [12, 48]
                workloads.append(_workload(f"R{run}x{pieces}{suffix}", "equal runs", "f4",
                                           (rows, run // 4 * pieces), 1, [run // 4] * pieces,
                                           quick=quick))
    return workloads


def _odd() -> list[Workload]:
    """What a stranger might try."""

    def w(*args, **options):
        return _workload(args[0], "odd", *args[1:], **options)

    return [
        w("X5x7", "u1", (150_000, 35), 1, [7] * 5),
        w("X6x3", "i2", (262_144, 18), 1, [3] * 6),
        w("X5x1", "f8", (400_000, 5), 1, [1] * 5),
        w("X13", "u1", (50_000, 91), 1, range(1, 14)),
        w("X16x3", "f2", (100_000, 48), 1, [3] * 16, quick=False),
        w("Xmid", "i1", (7, 333, 1000), 1, [100, 33, 200], quick=False),
        w("X9x1", "i4", (300_000, 9), 1, [1] * 9, quick=False),
        w("X3big", "f8", (3000, 4099), 1, [1365, 1367, 1367], quick=False),
        w("X7x5", "i2", (500_000, 35), 1, [5] * 7, quick=False),
    ]


ALL = _models() + _reports() + _equal_runs() + _odd()

# What the quick mode tries with misaligned outputs, and with more than one thread.
QUICK_MISALIGNED = ["W1", "W2", "W7", "W14", "W19"]
QUICK_THREADS = ["W1", "W2", "W4", "W5", "W6", "W9", "W11", "W12", "W15", "W17", "W18"]
