"""Writes measurements as tables, as CSV and as a chart.

'bench/report.py bench/results/zen4' rewrites the list of losses in that directory from its CSV.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import pathlib
import re
import statistics
import sys

from calls import FORMS, Cost
from workloads import ALL, MIB, Workload

FLAT = ["plain", "stream", "wide", "strings"]

# The competitors in the chart, with their colours and markers, and the workloads in it.
MARKS = {"libsplit": ("#c1272d", "D"), "onnxruntime": ("#0072b2", "o"),
         "openvino": ("#7a4fa3", "s"), "torch": ("#e69f00", "v"), "numpy": ("#009e73", "^"),
         "cv2": ("#56b4e9", "P"), "memcpy": ("#777777", "x")}
CHARTED = ["W1", "W2", "W4", "W4b", "W5", "W5b", "W5c", "W6", "W7", "W8", "W9", "W11", "W11u",
           "W12", "W13", "W15", "W16", "W17", "W18", "U96", "U31", "R12x3", "R48x3", "R12x3L"]


@dataclasses.dataclass(frozen=True)
class Goal:
    """The share of the flat copy's speed that libsplit should reach, and the times of other libraries
    relative to libsplit."""

    share: float = 0
    times: dict[str, float] = dataclasses.field(default_factory=dict)  # by peer; of any, on a CPU
    past_l3: float = 0  # the share if input and outputs do not fit in L3, if that is different

    def of(self, peer: str, cpu: str) -> float:
        """Returns the goal for this peer's time relative to libsplit; by default 1, nobody should be faster."""
        times = self.times
        return times.get(peer, times.get(f"any on {cpu}", times.get("any", 1)))


EQUAL_RUNS = [work for work in ALL
              if work.is_packed and not work.sub_byte and work.rows > 1 and len(set(work.runs)) == 1]


def lines_in_cache() -> str:
    """Returns the names of workloads of equal runs, each of a cache line or more."""
    return " ".join(work.name for work in EQUAL_RUNS
                    if 64 <= work.runs[0] <= 512 and work.bytes <= 4 * MIB)


def odd_runs(pieces: range) -> str:
    """Returns the names of workloads of equal runs of less than a cache line that are not a power of two."""
    return " ".join(work.name for work in EQUAL_RUNS if 3 <= work.runs[0] <= 63
                    and work.runs[0].bit_count() > 1 and len(work.lengths) in pieces)


CHANNELS = {"cv2": 1.3, "onnxruntime": 4}

GOALS = {name: goal for names, goal in [
    # Packed tensors.
    ("W1 W7 W8 W14 W18", Goal(0.97, {"any": 1.4, "any on zen5": 1.25})),
    ("W2 W3 W19 W15 W10b", Goal(0.90, {"onnxruntime": 1.05, "memcpy": 1.1})),
    ("W4 W5 W5b W13 W16", Goal(0.88, CHANNELS)),
    ("W4b W5c", Goal(0.97, CHANNELS)),
    ("W6", Goal(0.97)),
    ("W9 W9c W9L W9cL", Goal(0.78, {"cv2": 1.1}, past_l3=0.95)),
    (lines_in_cache(), Goal(0.92, {"any": 1.4})),
    (odd_runs(range(2, 6)), Goal(0.90, {"any": 4})),
    (odd_runs(range(6, 17)), Goal(0.60, {"any": 3})),
    ("X13", Goal(0.60, {"any": 3})),
    ("W11", Goal(0.75, {"cv2": 3})),
    ("W11u", Goal(0.50, {"cv2": 3})),
    ("W12", Goal(0.78, {"cv2": 3})),
    # A pitch: .9 of what the packed case's share should be.
    ("L1 L1a", Goal(0.79, {"cv2": 1.3})),
    ("L1f", Goal(0.87, {"cv2": 1.3})),
    ("L2s L3p L4u", Goal(0.79)),
    ("L1r L2r L2c L2b L3", Goal(0.87)),
    # Blocks, heads, outer axes that are reversed or stepped; a row that is repeated.
    ("L2k L2z L4s L4r L4q L4v L4h", Goal(0.85, {"any": 1.2})),
    ("L4o", Goal(1.80)),
    # The innermost axis stepped, reversed.
    ("L5 L5u L5s", Goal(0.50, {"any": 3})),
    ("L5r L5b L5c", Goal(0.80, {"any": 2})),
    # Transposed; interleaved.
    ("L6n L6c L6r L6h L6u", Goal(0.55, {"any": 3})),
    ("L7u L7a L7f L7s L7m L8u L8a L8f L8s L8i L8m", Goal(0.75)),
] for name in names.split()}

# The goal for the time of one thread relative to more threads that spin, if input and outputs fit in L3.
MORE_THREADS = 1.7

ABOUT_LOSSES = f"""\
With one thread and outputs on lines, many splits have goals: a share of the fastest flat copy, and how many
times libsplit's time the others should take. Everywhere else nobody should be faster; one thread should take
{MORE_THREADS} times as long as more that spin, where input and outputs lie within L3."""


@dataclasses.dataclass
class Row:
    """The measurements of one competitor on one case."""

    workload: Workload
    threads: int
    offset: int
    competitor: str
    right: bool
    samples: list[float]  # nanoseconds per call, one for each round

    @property
    def key(self) -> tuple[str, int, int]:
        return self.workload.name, self.threads, self.offset

    @property
    def median(self) -> float:
        return round(statistics.median(self.samples), 1)  # as in the CSV

    @property
    def deviation(self) -> float:
        """The median absolute deviation."""
        return statistics.median(abs(sample - self.median) for sample in self.samples)


@dataclasses.dataclass
class Results:
    machine: str
    cpu: str  # the directory of its results
    libraries: list[str]  # the builds of libsplit, by name
    versions: dict[str, str]  # of every competitor
    rows: list[Row] = dataclasses.field(default_factory=list)
    costs: list[Cost] = dataclasses.field(default_factory=list)
    empty_python_call: float = 0
    pipeline: str = ""  # a table of pipeline.table
    inside: list[dict] = dataclasses.field(default_factory=list)  # of inside_onnxruntime.rows

    @property
    def l3(self) -> float:
        """The size of L3 in bytes, if Linux gives it."""
        told = re.search(r"L3 (\d+)K", self.machine)
        return int(told[1]) * 1024 if told else math.inf

    def is_past_l3(self, work: Workload) -> bool:
        """Returns whether input and outputs, without gaps, are larger than L3."""
        return min(work.bytes, work.input_bytes) + work.bytes > self.l3

    def cases(self) -> dict[tuple[str, int, int], dict[str, Row]]:
        """Returns the rows by case, and then by competitor."""
        cases: dict[tuple[str, int, int], dict[str, Row]] = {}
        for row in self.rows:
            cases.setdefault(row.key, {})[row.competitor] = row
        return cases


def ratio(row: Row, to: Row) -> float:
    """Returns the time of `row` relative to `to`: the ratio of the medians, which are also in the CSV."""
    return row.median / to.median


def ceiling(of: dict[str, Row]) -> Row | None:
    """Returns the fastest flat copy."""
    return min((of[name] for name in FLAT if name in of), key=lambda row: row.median, default=None)


def tables(results: Results) -> str:
    """Formats the results in Markdown: a table for each number of threads and offset, and one of calls."""
    text = [results.machine, "", by_threads(results)]
    if results.pipeline:
        text += ["## Between code that writes the input and code that reads the outputs, 1 thread", "",
                 results.pipeline, ""]
    if results.costs:
        text += ["## A call, float32 [1,columns] axis 1", "", _costs(results.costs), "",
                 f"A call from Python that does nothing takes {results.empty_python_call:.0f} ns. "
                 "That is included in the times of the other libraries, but not in those of libsplit, memcpy "
                 "and flat copies.",
                 ""]
    if results.inside:
        text += ["## Inside ONNX Runtime: its own Split against libsplit's provider", "",
                 _inside(results.inside), ""]
    text += ["## Losses", "", _losses(results), ""]
    return "\n".join(text)


def by_threads(results: Results) -> str:
    """Formats a table for each number of threads and offset."""
    cases, text = results.cases(), []
    for threads, offset in dict.fromkeys((key[1], key[2]) for key in cases):
        text.append("## 1 thread" if threads == 1 else f"## {threads} threads")
        text[-1] += f", outputs {offset} bytes off their lines" if offset else ", outputs on lines"
        here = [of for key, of in cases.items() if key[1:] == (threads, offset)]
        text += ["", _ratios(here, results.libraries), ""]
    return "\n".join(text)


def _losses(results: Results) -> str:
    """Lists the cases that miss a goal, and the workloads with goals that were not measured."""
    lines = []
    for (name, threads, offset), of in results.cases().items():
        why = _missed(results, of)
        if why:
            split = of[results.libraries[0]].workload.describe()
            lines.append([name, split, str(threads), str(offset), "; ".join(why)])
    text = ("None: nobody is faster, and every goal is met." if not lines else
            markdown(["", "split", "threads", "offset", "why"], lines, text_columns=2))
    missing = GOALS.keys() - {row.workload.name for row in results.rows}
    if missing:
        text += f"\n\nNot measured: {', '.join(name for name in GOALS if name in missing)}."
    return f"{ABOUT_LOSSES}\n\n{text}"


def _missed(results: Results, of: dict[str, Row]) -> list[str]:
    """Says which goals one case misses."""
    libsplit, flat = of[results.libraries[0]], ceiling(of)
    if not libsplit.right:
        return ["wrong"]
    is_past_l3 = results.is_past_l3(libsplit.workload)
    goal = Goal()
    if libsplit.threads > 1 and not is_past_l3 and "parked" not in results.machine:
        goal = Goal(times={"1 thread": MORE_THREADS})
    elif (libsplit.threads, libsplit.offset) == (1, 0):
        goal = GOALS.get(libsplit.workload.name, goal)
    share = goal.past_l3 if goal.past_l3 and is_past_l3 else goal.share
    missed = []
    if flat and ratio(flat, libsplit) < share:
        missed.append(f"{ratio(flat, libsplit):.2f} of flat, the goal is {share:.2f}")
    ahead: dict[float, list[str]] = {}
    for peer, row in of.items():
        took, times = ratio(row, libsplit), goal.of(peer, results.cpu)
        if peer not in [*results.libraries, *FLAT] and row.right and took < times:
            ahead.setdefault(times, []).append(f"{peer} takes {took:.2f}")
    for times, peers in ahead.items():
        missed.append(", ".join(peers) + " of the time"
                      + (f", the goal is {times}" if times != 1 else ""))
    return missed


def _inside(rows: list[dict]) -> str:
    gaps = ["back to back", "1 ms between"]
    head = ["", "split", "MiB", "threads"]
    head += [column for gap in gaps for column in (f"own µs, {gap}", "libsplit µs", "× own")]
    return markdown(head, [
        [row["workload"], f"{row['dtype']} {row['shape']} axis {row['axis']}",
         f"{row['bytes'] / MIB:.2f}", str(row["threads"]),
         *(cell for gap in gaps for cell in (f"{row[f'own us, {gap}']:.0f}",
                                             f"{row[f'libsplit us, {gap}']:.0f}",
                                             f"{row[f'ratio, {gap}']:.2f}"))]
        for row in rows], text_columns=2)


def _ratios(here: list[dict[str, Row]], libraries: list[str]) -> str:
    peers = [name for name in dict.fromkeys(name for of in here for name in of)
             if name not in libraries and name not in FLAT]
    head = ["", "split", "MiB", "flat GB/s", *(f"{name} of flat" for name in libraries),
            *(f"× {name}" for name in peers)]
    lines = []
    for of in here:
        flat, libsplit = ceiling(of), of[libraries[0]]
        work = libsplit.workload
        line = [work.name, work.describe(), f"{work.bytes / MIB:.2f}",
                f"{work.bytes / flat.median:.1f}" if flat else "–"]
        for name in libraries:
            line.append(_marked(of[name], f"{ratio(flat, of[name]):.2f}") if flat else "–")
        for name in peers:
            found = name in of
            line.append(_marked(of[name], f"{ratio(of[name], libsplit):.1f}") if found else "–")
        lines.append(line)
    return markdown(head, lines, text_columns=2)


def _marked(row: Row, text: str) -> str:
    return text if row.right else f"wrong {text}"


def _costs(costs: list[Cost]) -> str:
    return markdown(["", "call", "pieces", "columns", "ns", "ns a piece", "instructions"], [
        [cost.library, FORMS[cost.form], str(cost.pieces), str(cost.columns),
         f"{cost.nanoseconds:.1f}", f"{cost.nanoseconds / cost.pieces:.1f}",
         "valgrind is not installed" if cost.instructions is None else f"{cost.instructions}"]
        for cost in costs], text_columns=2)


def markdown(head: list[str], lines: list[list[str]], text_columns: int) -> str:
    """Formats a table in Markdown that is also readable as plain text."""
    widths = [max(map(len, column)) for column in zip(head, *lines)]
    rule = ["-" * width if i < text_columns else "-" * (width - 1) + ":"
            for i, width in enumerate(widths)]
    return "\n".join("| " + " | ".join(
        cell.ljust(width) if i < text_columns else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(line, widths))) + " |"
        for line in [head, rule, *lines])


def write(results: Results, directory: pathlib.Path, with_chart: bool) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "results.md").write_text(tables(results), encoding="utf-8")
    _write_csv(results, directory / "results.csv")
    if results.inside:
        with open(directory / "inside_onnxruntime.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, results.inside[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(results.inside)
    if with_chart:
        _draw(results, directory / "speed")


def _write_csv(results: Results, path: pathlib.Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["workload", "split", "bytes", "threads", "offset", "competitor", "version",
                      "right", "rounds", "median_ns", "deviation_ns", "gb_per_s", "of_flat"])
        for of in results.cases().values():
            flat = ceiling(of)
            for row in of.values():
                work = row.workload
                out.writerow([work.name, work.describe(), work.bytes, row.threads, row.offset,
                              row.competitor, results.versions[row.competitor], row.right,
                              len(row.samples), f"{row.median:.1f}", f"{row.deviation:.1f}",
                              f"{work.bytes / row.median:.3f}",
                              f"{ratio(flat, row):.3f}" if flat else ""])


def _draw(results: Results, path: pathlib.Path) -> None:
    """Draws the speed of all competitors as a share of the flat copy's, for one thread and aligned outputs."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "libsplit"
    import matplotlib.pyplot as plt

    cases = [of for key, of in results.cases().items()
             if key[0] in CHARTED and key[1:] == (1, 0) and ceiling(of)]
    figure, axes = plt.subplots(figsize=(9, 1.4 + 0.24 * len(cases)), layout="constrained")
    for name, (colour, mark) in MARKS.items():
        points = [(ratio(ceiling(of), of[name]), y) for y, of in enumerate(cases)
                  if name in of and of[name].right]
        if points:
            ours = name == results.libraries[0]
            axes.scatter(*zip(*points), c=colour, marker=mark, s=70 if ours else 28,
                         label=f"{name} {results.versions[name]}", zorder=3 if ours else 2)
    axes.axvline(1, color="0.4", linewidth=1)
    axes.set_xscale("log")
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]
    axes.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
    axes.minorticks_off()
    labels = [of[results.libraries[0]].workload.describe() for of in cases]
    axes.set_yticks(range(len(cases)), labels, fontsize=8)
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.grid(color="0.9", zorder=0)
    axes.set_xlabel("speed, of the fastest flat copy of the same bytes (further right is faster)")
    figure.legend(loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=120)
    plt.close(figure)


def read(directory: pathlib.Path) -> Results:
    """Reads the results from the CSV in a directory."""
    works = {work.name: work for work in ALL}
    with open(directory / "results.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    machine = (directory / "results.md").read_text(encoding="utf-8").split("\n")[0]
    rows = [Row(works[line["workload"]], int(line["threads"]), int(line["offset"]),
                line["competitor"], line["right"] == "True", [float(line["median_ns"])])
            for line in lines]
    versions = {line["competitor"]: line["version"] for line in lines}
    return Results(machine, directory.name, [lines[0]["competitor"]], versions, rows)


def main() -> None:
    """Rewrites the list of losses in results.md, after goals have changed."""
    for directory in map(pathlib.Path, sys.argv[1:]):
        path = directory / "results.md"
        before = path.read_text(encoding="utf-8").partition("## Losses")[0].rstrip("\n")
        path.write_text(f"{before}\n\n## Losses\n\n{_losses(read(directory))}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
