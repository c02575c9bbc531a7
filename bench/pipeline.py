"""Splits as they occur in a model: the input has just been written, and the outputs are read next.

If a copy is simply repeated, its input is in the caches or in memory, wherever its own last turn left it,
and nobody reads what it wrote. Here, one thread writes the input, splits it, and reads all outputs, in this
order. The same is measured with memcpy for each run of each row, which is what a runtime does without
libsplit. Copying and reading together should take no longer with libsplit.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from ctypes import pointer

import numpy as np

import report
import turns
from competitors import Case, MemcpyRows
from native import NEVER_STREAM, Libsplit, Native, Pipeline
from workloads import LINE, MIB, Workload

MEMCPY = "memcpy"
KIB = 1 << 10
SIZES = [512 * KIB, *(MIB << power for power in range(8))]
QUICK_SIZES = [2 * MIB, 16 * MIB, 64 * MIB]
# The element type and the pieces of a row.
SHAPES = {
    "boxes": ("f4", (4, 1, 80)),  # of a detector: box, score, classes
    "QKV": ("f4", (1024, 1024, 1024)),
    "halves": ("f2", (4096, 4096)),  # of a gate
    "pairs": ("i8", (1, 1)),
}


def _workload(name: str, size: int) -> Workload:
    dtype, lengths = SHAPES[name]
    rows = size // (sum(lengths) * np.dtype(dtype).itemsize)
    label = f"{size // MIB}M" if size >= MIB else f"{size // KIB}K"
    return Workload(f"{name} {label}", "pipeline", np.dtype(dtype), (rows, sum(lengths)), 1, lengths,
                    quick=size in QUICK_SIZES)


WORKLOADS = [_workload(name, size) for name in SHAPES for size in SIZES]


@dataclasses.dataclass
class Steps:
    """The times of one competitor's three steps, in nanoseconds."""

    work: Workload
    competitor: str
    writing: float
    copying: float
    reading: float

    @property
    def judged(self) -> float:
        return self.copying + self.reading


class _Line:
    """A competitor's pipeline, which remembers the steps of its fastest turn."""

    def __init__(self, native: Native, line: Pipeline):
        self.native, self.line = native, line
        self.best = (math.inf,) * 3

    def per_call(self, calls: int) -> float:
        steps = self.native.time_pipeline(self.line, calls)
        self.best = min(self.best, steps, key=lambda of: of[1] + of[2])
        return steps[1] + steps[2]


def _lines(case: Case, libraries: dict[str, Libsplit], native: Native) -> dict[str, _Line]:
    work = case.workload
    make = functools.partial(
        Pipeline, input=case.flat.ctypes.data, input_words=work.bytes // 8,
        outputs=case.memory.ctypes.data, output_words=(work.output_bytes - LINE) // 8)
    memcpy = MemcpyRows(native).job(case)
    lines = {MEMCPY: _Line(native, make(rows=pointer(memcpy)))}
    for name, library in libraries.items():
        for flags, label in [(0, name), (NEVER_STREAM, f"{name}, NEVER_STREAM")]:
            split = library.split(case.source, work.axis, list(work.lengths), work.sequence,
                                  case.targets, case.threads, flags)
            lines[label] = _Line(native, make(split=pointer(split)))
    return lines


def measure(case: Case, libraries: dict[str, Libsplit], native: Native, turn_ns: float,
            seconds: float) -> list[Steps]:
    """Measures all competitors in turn. Changes the input."""
    lines = _lines(case, libraries, native)
    turns.least({name: line.per_call for name, line in lines.items()}, turn_ns, seconds)
    return [Steps(case.workload, name, *line.best) for name, line in lines.items()]


def _of(results: list[Steps], work: Workload) -> dict[str, Steps]:
    return {steps.competitor: steps for steps in results if steps.work is work}


def _cell(steps: Steps) -> str:
    return f"{steps.copying / 1000:,.0f} ({steps.judged / 1000:,.0f})"


def _ratio(of: dict[str, Steps], name: str) -> float:
    """Returns the time of memcpy relative to this competitor's, both including reading."""
    return of[MEMCPY].judged / of[name].judged


def table(results: list[Steps]) -> str:
    """Formats the results in Markdown."""
    names = list(dict.fromkeys(steps.competitor for steps in results))
    others = [name for name in names if name != MEMCPY]
    lines = []
    for work in dict.fromkeys(steps.work for steps in results):
        of = _of(results, work)
        lines.append([work.name, work.describe(), *(_cell(of[name]) for name in names),
                      *(f"{_ratio(of, name):.2f}" for name in others)])
    head = ["", "split", *(f"{name}, µs" for name in names), *(f"× memcpy: {name}" for name in others)]
    return (report.markdown(head, lines, text_columns=2) + "\n\n"
            "Microseconds for the copy; in brackets, for the copy and reading. The last columns give the time with "
            "memcpy, including reading, relative to this one: below 1, memcpy is faster.")
