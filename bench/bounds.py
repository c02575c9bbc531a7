#!/usr/bin/env python3
"""Measures what loads and stores alone allow: an upper bound of libsplit's speed, as a share of the flat copy's.

A bound reads the cache lines of the input and stores as many in the outputs, without moving any byte within a
register. The best of many ways of each kind counts; they run in one process with libsplit and flat copies:

- by turns: only as many lines as fit in registers are read at a time, each once, and then stored
- through L1: the lines of a part of the input are copied into a buffer, and stored from there
- any order: outputs are filled many lines at a time, for which a real loop would have to read the input repeatedly
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import math
import pathlib
import random
import sys
import time
from collections.abc import Iterator
from ctypes import POINTER, Structure, c_int32, c_size_t, c_ssize_t, c_void_p

import numpy as np

import bench
import report
from competitors import Case, FlatCopy, LibsplitCopy, Run
from native import Libsplit, Native
from workloads import Workload

# Workloads that are, or were, far below a flat copy.
ROWS = ("W1 W4 W4b W5b W7 W8 W10b W11 W11u W12 W13 W16 W17 R12x3 R24x3 R48x3 R96x3 X5x7 X13 X16x3 "
        "L1 L1a L2b L2s L2z L3p L4h L4u L5u L6h L6r L6u L8a L8u").split()
KINDS = TURNS, THROUGH, ANY = "by turns", "through L1", "any order"

# In the order of enum store.
DIRECT = ["by 16", "by 32", "by 64", "masked", "prefetchw", "past the caches"]
STRINGS = ["rep movsb"]
AGAIN = ["L1, by 64", "L1, past the caches", "L1, rep movsb"]
STORES = DIRECT + STRINGS + AGAIN

LINE = 64
BUFFER = 32 << 10
HELD = 16 * LINE  # bytes in registers
LONG = 2048  # bytes of runs that need no buffer
FEW = 16  # at most as many columns are planes to interleave, and not a matrix to transpose
BEST = 3  # ways of each kind that are measured in detail
NOISE = 0.03

ABOUT = """\
Speeds as shares of the fastest flat copy's. A bound loads and stores as much as libsplit does, without moving any
byte within a register. "By turns" reads only as many lines at a time as fit in registers, each once; "through L1"
copies them into a buffer first; "any order" fills outputs many lines at a time. A real loop would have to read the
input repeatedly for that, so "any order" is not a bound, but shows what the order costs. The column "best" names
the best way of the first two kinds. Bounds check nothing: in W10b most of the difference is the cost of a call.
Shares vary by .03 and more from run to run, but those of one row vary together.
"""


class Bound(Structure):
    _fields_ = [("source", c_void_p), ("targets", POINTER(c_void_p)), ("runs", POINTER(c_size_t)),
                ("pitches", POINTER(c_size_t)), ("group", c_size_t), ("extents", c_size_t * 3),
                ("steps", c_ssize_t * 3), ("groups", c_size_t * 3), ("turns", c_size_t * 3),
                ("line_pitch", c_ssize_t), ("lines", c_size_t), ("together", c_size_t),
                ("step", c_size_t), ("ahead", c_size_t), ("store", c_int32)]


class Bounds(Structure):
    _fields_ = [("all", POINTER(Bound)), ("count", c_size_t)]


@dataclasses.dataclass
class Tiles:
    """The fields of struct bound. Each axis has an extent, a step of the input, groups and turns."""

    source: int
    targets: list[int]
    runs: list[int]
    axes: list[tuple[int, int, int, int]]
    lines: int
    line_pitch: int = LINE
    pitches: list[int] | None = None

    @property
    def stored(self) -> int:
        return math.prod(axis[0] for axis in self.axes) * sum(self.runs)

    def bound(self, **way: int) -> Bound:
        group = c_size_t * len(self.runs)
        axes = zip(*([(1, 0, 0, 0)] * (3 - len(self.axes)) + self.axes))
        return Bound(self.source, (c_void_p * len(self.targets))(*self.targets), group(*self.runs),
                     group(*(self.pitches or self.runs)), len(self.runs), *axes,
                     line_pitch=self.line_pitch, lines=self.lines, **way)


@dataclasses.dataclass
class Way:
    """Tiles, one after the other, and how they are stored."""

    kind: str
    label: str
    tiles: list[Tiles]
    stores: list[str]
    together: int = 1
    step: int = 0
    ahead: tuple[int, ...] = (0, 2048)

    def runs(self, case: Case, native: Native) -> Iterator[tuple[str, str, Run]]:
        """Yields a run for each kind of store. Bytes that do not fill a tile are left out, and times are
        scaled to make up for them."""
        share = case.workload.bytes / sum(tiles.stored for tiles in self.tiles)
        for store in self.stores:
            for ahead in self.ahead:
                bounds = [tiles.bound(together=self.together, step=self.step, ahead=ahead,
                                      store=STORES.index(store)) for tiles in self.tiles]
                job = Bounds((Bound * len(bounds))(*bounds), len(bounds))
                run = Run(lambda calls, job=job: native.time("bounds", job, calls) * share)
                yield self.kind, f"{store}, {self.label}{f', {ahead} ahead' if ahead else ''}", run


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def line_of(array: np.ndarray) -> int:
    return address(array) // LINE * LINE


def outer_axes(array: np.ndarray) -> int:
    """Returns the number of axes before those that are contiguous."""
    axis, size = array.ndim, array.itemsize
    while axis and (array.shape[axis - 1] == 1 or array.strides[axis - 1] == size):
        axis -= 1
        size *= array.shape[axis]
    return axis


def ways(case: Case) -> Iterator[Way]:
    """Yields all ways to try."""
    work, source = case.workload, case.source
    outer = max(map(outer_axes, [source, *case.targets]))
    is_turned = source.ndim == 2 and source.strides[0] == source.itemsize
    planes = work.into and work.into.order == (1, 0)
    if planes or (is_turned and source.shape[1] <= FEW):
        yield from interleaved(case)
    elif is_turned or (source.ndim == 2 and len(work.lengths) > FEW and set(work.lengths) == {1}):
        yield from transposed(case)
    elif outer and abs(source.strides[outer - 1]) <= LINE:
        yield from dealt_flat(case, source.strides[0] * source.shape[0])
    elif work.axis < outer or math.prod(work.shape[: work.axis]) == 1:
        yield from in_pieces(case)
    elif outer == 0:
        yield from dealt_flat(case, source.nbytes)
    else:
        yield from dealt_by_rows(case, outer)


def dealt_flat(case: Case, span: int) -> Iterator[Way]:
    """Yields ways for rows without gaps, or with gaps within each line: outputs are filled a chunk at a time."""
    work = case.workload
    count, length = len(work.lengths), sum(work.lengths)
    are_equal = len(set(work.lengths)) == 1

    def tiles(chunk: int) -> list[Tiles]:
        runs = [chunk * count * each // length for each in work.lengths]
        read = sum(runs) * span // work.bytes
        times = min(span // read, *(to.nbytes // run for to, run in zip(case.targets, runs)))
        return [Tiles(line_of(case.source), [*map(address, case.targets)], runs,
                      [(times, read, 0, 1)], read // LINE)]

    run = min(work.runs) if work.is_packed else 0
    for chunk in [256, 512, 4096]:
        label = f"{chunk} bytes an output"
        if are_equal:
            yield Way(TURNS, f"{label} by turns", tiles(chunk), DIRECT, count)
        kind = TURNS if run >= LONG or chunk * count <= HELD else ANY
        yield Way(kind, f"{label} at a time", tiles(chunk), DIRECT)
        if count > 3 and are_equal:
            yield Way(ANY, f"{label}, two by turns", tiles(chunk), DIRECT, 2)
    if not are_equal:
        least = LINE * length // math.gcd(*work.lengths) // count
        for times in [1, 4]:
            yield Way(TURNS, f"{times * least} bytes an output", tiles(times * least), DIRECT)
    for chunk in [256, 1024, 4096, 8192]:
        if chunk * count * span <= BUFFER * work.bytes:
            yield Way(THROUGH, f"{chunk} bytes an output", tiles(chunk), AGAIN)
    if run >= LONG:
        yield Way(TURNS, "4096 bytes an output", tiles(4096), STRINGS, ahead=(0,))
    elif are_equal and 0 < run < LINE and LINE % run:
        step = LINE // run * run
        for together in [1, count]:
            yield Way(TURNS if together > 1 else ANY, f"a store each {step} bytes",
                      tiles(16 * step), DIRECT[2:3], together, step)


def dealt_by_rows(case: Case, outer: int) -> Iterator[Way]:
    """Yields ways for rows with gaps, in the input or in the outputs."""
    work, source = case.workload, case.source
    rows, count = math.prod(work.shape[:outer]), len(work.lengths)
    row = work.bytes // rows
    runs = [row * length // sum(work.lengths) for length in work.lengths]
    pitches = [target.strides[outer - 1] for target in case.targets]
    tiles = [Tiles(line_of(source), [*map(address, case.targets)], runs,
                   [(rows, source.strides[outer - 1], 0, 1)], row // LINE, pitches=pitches)]
    for step, label in [(0, "whole lines"), (LINE, "as rows lie")]:
        stores = DIRECT if step == 0 else DIRECT[:-1]
        if len(set(runs)) == 1:
            yield Way(TURNS, f"{label}, by turns", tiles, stores, count, step)
        yield Way(ANY, f"{label}, a row of an output at a time", tiles, stores, 1, step)
    if row <= BUFFER:
        yield Way(THROUGH, "a row", tiles, AGAIN)


def in_pieces(case: Case) -> Iterator[Way]:
    """Yields ways to copy contiguous runs: output after output, or in the input's order."""
    work, source, targets = case.workload, case.source, case.targets
    pieces = work.slices(source)
    outer = max(map(outer_axes, pieces + targets))
    run = math.prod(pieces[0].shape[outer:]) * source.itemsize

    def tiles(array: np.ndarray, to: list[np.ndarray], group: int) -> Tiles:
        """Makes tiles with a target for each index of axis `group`."""
        steps = zip(range(outer), array.shape, array.strides, to[0].strides)
        axes = [(extent, step, int(axis == group), 0 if axis == group else turn)
                for axis, extent, step, turn in steps if extent > 1]
        places = [address(target) for target in to]
        if group < outer:
            places = [address(target[(slice(None),) * group + (i,)])
                      for target in to for i in range(target.shape[group])]
        return Tiles(address(array), places, [run], axes, run // LINE, pitches=[1])

    ordered = {"as outputs lie": [tiles(*each, outer)
                                  for each in zip(pieces, [[target] for target in targets])]}
    if outer == 0:  # all in one tile
        runs = [target.nbytes for target in targets]
        ordered = {"as outputs lie": [Tiles(address(source), [*map(address, targets)], runs, [],
                                            sum(runs) // LINE)]}
    elif work.axis < outer <= 3 and len(set(work.lengths)) == 1:
        whole = tiles(source, targets, work.axis)
        whole.axes.sort(key=lambda axis: -abs(axis[1]))
        ordered["as the input lies"] = [whole]
    for order, all_tiles in ordered.items():
        yield Way(TURNS, f"whole lines, {order}", all_tiles, DIRECT)
        if run % LINE and run > LINE:
            yield Way(TURNS, order, all_tiles, DIRECT[:-1], step=LINE)
        if run >= LONG:
            yield Way(TURNS, order, all_tiles, STRINGS, ahead=(0,))
        elif LINE < run <= BUFFER:
            yield Way(THROUGH, order, all_tiles, AGAIN)


def transposed(case: Case) -> Iterator[Way]:
    """Yields ways for transposes: a line from each of several rows becomes a few lines in each of several
    targets."""
    work, source = case.workload, case.source
    columns = LINE // source.itemsize
    if work.is_packed:
        matrices = [(source.T, case.targets)]
    elif work.axis == 0:
        matrices = [(source, case.targets)]
    else:
        matrices = [(piece, [target]) for piece, target in zip(work.slices(source), case.targets)]

    def tiles(lines: int) -> list[Tiles]:
        made = []
        for matrix, targets in matrices:
            places = [address(target) + i * target.strides[0] for target in targets
                      for i in range(1 if work.is_packed else target.shape[0])]
            rows, pitch, run = lines * columns, matrix.strides[1], lines * LINE
            made.append(Tiles(address(matrix), places, [run] * columns,
                              [(matrix.shape[1] // rows, rows * pitch, 0, 1),
                               (matrix.shape[0] // columns, LINE, columns, 0)], rows, pitch))
        return made

    for lines in [1, 2, 4, 8]:
        for together in sorted({1, 4, columns}):
            kind = TURNS if together == columns or lines == 1 else ANY
            label = f"{lines} lines a target, {together} by turns"
            yield Way(kind, label, tiles(lines), DIRECT, together, ahead=(0, 128, 256))
        yield Way(THROUGH, f"{lines} lines a target", tiles(lines), AGAIN, ahead=(0, 128, 256))


def interleaved(case: Case) -> Iterator[Way]:
    """Yields ways to interleave planes: a few lines from each plane in turn."""
    source, planes = case.source, min(case.source.shape)
    first = address(min(case.targets, key=address))
    pitch = max(source.shape) * source.itemsize
    for lines in [1, 2, 4, 16]:
        run = lines * LINE
        tiles = Tiles(address(source), [first], [run],
                      [(pitch // run, run, 0, planes), (planes, pitch, 0, 1)], lines)
        yield Way(TURNS, f"{lines} lines of each plane", [tiles], DIRECT)


def measure(case: Case, args: argparse.Namespace, library: Libsplit, native: Native) -> list[str]:
    """Measures a case and returns a line of the table."""
    runs = {name: copy.prepare(case) for name, copy in FlatCopy.all(native).items()}
    runs["libsplit"] = LibsplitCopy(library).prepare(case)
    tried = {(kind, label): run for way in ways(case)
             for kind, label, run in way.runs(case, native)}
    # All of them are tried briefly; the best ones are then measured in detail.
    took = {key: min(run.per_call(1) for _ in range(3)) for key, run in tried.items()}
    for kind in KINDS:
        fastest = sorted((key for key in tried if key[0] == kind), key=took.get)
        runs |= {key: tried[key] for key in fastest[:BEST]}
    durations = {key: run.per_call(1) for key, run in runs.items()}
    samples = bench.timed(1, runs, durations, args, random.Random(1))
    rows = {key: report.Row(case.workload, 1, 0, str(key), True, [of]) for key, of in samples.items()}
    flat = report.ceiling(rows)
    shares = {key: report.ratio(flat, row) for key, row in rows.items()}
    return table_line(case.workload, case.workload.bytes / flat.median, shares)


def table_line(work: Workload, flat: float, shares: dict) -> list[str]:
    share = shares["libsplit"]
    best = {kind: max(((shares[key], key[1]) for key in shares if key[0] == kind), default=None)
            for kind in KINDS}
    bound, way = max(filter(None, [best[TURNS], best[THROUGH]]))
    says = f"{bound - share:.2f} to win" if round(bound - share, 2) > NOISE else "at the bound"
    return [work.name, work.describe(), way, f"{flat:.1f}", f"{share:.2f}",
            *(f"{of[0]:.2f}" if of else "–" for of in best.values()), says]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", type=lambda text: text.split(","), default=ROWS, metavar="W1,W2",
                        help="measure only these workloads")
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds for each case")
    parser.add_argument("--rounds", type=int, default=7, help="the least number of rounds for each case")
    parser.add_argument("--build", type=pathlib.Path, default=bench.ROOT / "build/release",
                        help="the directory in which CMake has built libsplit and the benchmark")
    parser.add_argument("--output", type=pathlib.Path, default=bench.ROOT / "out/bench",
                        help="the directory for results; bounds.md goes to the directory of this CPU in it")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    native = Native(args.build / "bench/bench_native.so")
    if not native.library.has_way(list(FlatCopy.WAYS).index("wide")):
        print("error: bounds need x86-64 with AVX-512", file=sys.stderr)
        return 1
    library = Libsplit(args.build / "lib/libsplit.so", native)
    selected = bench.select(args)
    memory = bench.Memory(selected)
    head = ["", "split", "best", "flat GB/s", "libsplit", *KINDS, ""]
    lines = []
    for work in selected:
        lines.append(measure(memory.case(work, 1, 0), args, library, native))
        print(" | ".join(lines[-1]), flush=True)
    text = (f"Measured {time.strftime('%Y-%m-%d')}, commit {bench.commit()}, on {bench.machine()}\n\n{ABOUT}\n"
            f"{report.markdown(head, lines, text_columns=3)}\n")
    print()
    bench.keep(text, "bounds.md", args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
