"""What was measured, as a table, as CSV and as a chart."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import pathlib
import platform
import statistics
from collections.abc import Iterable

from competitors import Case
from workloads import MIB, Workload

FLAT = ["plain", "stream"]

# The chart: what it shows, and how.
CHARTED = ["W1", "W2", "W4", "W4b", "W5", "W5b", "W5c", "W6", "W7", "W8", "W9", "W11", "W12", "W13",
           "W15", "W16", "W17", "W18", "U96", "U31", "R12x3", "R48x3"]
MARKS = {"libsplit": ("#c1272d", "D"), "onnxruntime": ("#0072b2", "o"),
         "openvino": ("#7a4fa3", "s"), "torch": ("#e69f00", "v"), "numpy": ("#009e73", "^"),
         "cv2": ("#56b4e9", "P"), "memcpy": ("#777777", "x")}


@dataclasses.dataclass
class Row:
    """One competitor on one case."""

    workload: Workload
    threads: int
    offset: int
    competitor: str
    version: str
    right: bool
    samples: list[float]  # nanoseconds per call, a round each

    @property
    def key(self) -> tuple[str, int, int]:
        return self.workload.name, self.threads, self.offset

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def deviation(self) -> float:
        """Median absolute deviation."""
        return statistics.median(abs(sample - self.median) for sample in self.samples)


def rows(case: Case, samples: dict[str, list[float]], right: dict[str, bool],
         everyone: dict) -> list[Row]:
    return [Row(case.workload, case.threads, case.offset, name, everyone[name].version,
                right[name], times) for name, times in samples.items()]


def ratio(row: Row, to: Row) -> float:
    """How many times as long `row` takes: the median over the rounds both took part in."""
    return statistics.median(a / b for a, b in zip(row.samples, to.samples))


def ceiling(of: dict[str, Row]) -> Row | None:
    """The faster of the flat copies."""
    return min((of[name] for name in FLAT if name in of), key=lambda row: row.median, default=None)


def by_case(found: Iterable[Row]) -> dict[tuple[str, int, int], dict[str, Row]]:
    cases: dict[tuple[str, int, int], dict[str, Row]] = {}
    for row in found:
        cases.setdefault(row.key, {})[row.competitor] = row
    return cases


def tables(found: list[Row], libraries: list[str]) -> str:
    """Markdown: a table for each number of threads and offset."""
    text = []
    settings = dict.fromkeys((row.threads, row.offset) for row in found)
    for threads, offset in settings:
        here = [row for row in found if (row.threads, row.offset) == (threads, offset)]
        title = f"{threads} thread{'s' * (threads > 1)}"
        title += f", outputs {offset} bytes off their lines" if offset else ", outputs on lines"
        text += [f"## {title}", "", _table(here, libraries), ""]
    return "\n".join(text)


def _table(here: list[Row], libraries: list[str]) -> str:
    peers = [name for name in dict.fromkeys(row.competitor for row in here)
             if name not in libraries and name not in FLAT]
    head = ["", "split", "MiB", "flat GB/s", *(f"{name} of flat" for name in libraries),
            *(f"× {name}" for name in peers)]
    lines = []
    for of in by_case(here).values():
        work = next(iter(of.values())).workload
        flat, first = ceiling(of), of.get(libraries[0])
        line = [work.name, work.describe(), f"{work.bytes / MIB:.2f}",
                f"{work.bytes / flat.median:.1f}" if flat else "–"]
        for name in libraries:
            line.append(_marked(of[name], f"{ratio(flat, of[name]):.2f}") if flat else "–")
        for name in peers:
            line.append(_marked(of[name], f"{ratio(of[name], first):.1f}") if name in of else "–")
        lines.append(line)
    return markdown(head, lines)


def _marked(row: Row, text: str) -> str:
    return text if row.right else f"{text} wrong"


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """A table that reads well as it is, too."""
    widths = [max(map(len, column)) for column in zip(head, *lines)]
    rule = ["-" * width if i < 2 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join("| " + " | ".join(
        cell.ljust(width) if i < 2 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(line, widths))) + " |"
        for line in [head, rule, *lines])


def chart(found: list[Row], path: pathlib.Path) -> None:
    """One thread, outputs on lines: everyone's speed as a share of the flat copy's."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "libsplit"
    import matplotlib.pyplot as plt

    cases = [of for (name, threads, offset), of in by_case(found).items()
             if threads == 1 and offset == 0 and ceiling(of) and name in CHARTED]
    if not cases:
        return
    names = [name for name in MARKS if any(name in of for of in cases)]
    figure, axes = plt.subplots(figsize=(9, 1.4 + 0.24 * len(cases)), layout="constrained")
    for name in reversed(names):
        colour, mark = MARKS[name]
        points = [(ratio(ceiling(of), of[name]), y) for y, of in enumerate(cases)
                  if name in of and of[name].right]
        label = f"{name} {next(of[name].version for of in cases if name in of)}"
        axes.scatter(*zip(*points), c=colour, marker=mark, s=70 if name == "libsplit" else 28,
                     label=label, zorder=3 if name == "libsplit" else 2)
    axes.axvline(1, color="0.4", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.005, 1.6)
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
    axes.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(cases)), [next(iter(of.values())).workload.describe()
                                        for of in cases], fontsize=8)
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.grid(color="0.9", zorder=0)
    axes.set_xlabel("speed, of the fastest flat copy of the same bytes (right is faster)")
    figure.legend(*(reversed(part) for part in axes.get_legend_handles_labels()),
                  loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=120)
    plt.close(figure)


def write(found: list[Row], args: argparse.Namespace) -> None:
    libraries = [name for name, _ in args.library]
    args.output.mkdir(parents=True, exist_ok=True)
    text = tables(found, libraries)
    print(text)
    (args.output / "results.md").write_text(text)
    _csv(found, args.output / "results.csv")
    if args.chart:
        chart(found, args.output / "speed")


def _csv(found: list[Row], path: pathlib.Path) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["workload", "split", "bytes", "threads", "offset", "competitor", "version",
                      "right", "rounds", "median_ns", "deviation_ns", "gigabytes_per_s",
                      "of_flat"])
        for of in by_case(found).values():
            flat = ceiling(of)
            for row in of.values():
                work = row.workload
                out.writerow([work.name, work.describe(), work.bytes, row.threads, row.offset,
                              row.competitor, row.version, row.right, len(row.samples),
                              f"{row.median:.1f}", f"{row.deviation:.1f}",
                              f"{work.bytes / row.median:.3f}",
                              f"{ratio(flat, row):.3f}" if flat else ""])
