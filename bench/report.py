"""Writes measurements as tables, as CSV and as a chart, and the verdict on them: the splits that are lost.

'bench/report.py bench/results/zen4' rewrites the verdict in that directory from its CSV.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import pathlib
import statistics
import sys

from calls import FORMS, Cost
from workloads import ALL, CLASSES, MIB, TOGETHER, Workload, class_of

FLAT = ["plain", "stream", "wide", "strings"]

# The competitors in the chart, with their colours and markers, and the workloads in it.
MARKS = {"libsplit": ("#c1272d", "D"), "onnxruntime": ("#0072b2", "o"),
         "openvino": ("#7a4fa3", "s"), "torch": ("#e69f00", "v"), "numpy": ("#009e73", "^"),
         "cv2": ("#56b4e9", "P"), "memcpy": ("#777777", "x")}
CHARTED = ["W1", "W2", "W4", "W4b", "W5", "W5b", "W5c", "W6", "W7", "W8", "W9", "W11", "W11u",
           "W12", "W13", "W15", "W16", "W17", "W18", "U96", "U31", "R12x3", "R48x3", "R12x3L"]


# The libraries that no split may be lost to, by the names of competitors.
RIVALS = {"memcpy": "memcpy by rows", "numpy": "NumPy", "cv2": "OpenCV", "onnxruntime": "ONNX Runtime",
          "openvino": "OpenVINO"}
AHEAD = 0.97  # a rival that takes less than this share of libsplit's time is ahead
LEAST_MEMCPY_BYTES = 64 << 10  # memcpy, which checks nothing, may be ahead in a smaller split
# At most so many splits may be lost for a reason that is given here, by the names of workloads.
MOST_EXCEPTED = 3
EXCEPTED: dict[str, str] = {
    "L4o": "a single row is repeated, whose output is just larger than what libsplit writes through the caches; NumPy does so.",
    "W3": "two long contiguous pieces in the caches, where libsplit is within a few per cent of the fastest flat copy.",
    "W15": "a few long runs in the caches, where a call's checks are what it takes longer than memcpy, which has none.",
}

ABOUT_VERDICT = f"""\
On one thread, a split is lost if one of these takes less than {AHEAD} of libsplit's time in most runs: {{rivals}}.
memcpy does not count against splits of less than {LEAST_MEMCPY_BYTES >> 10} KiB. The figures behind a library are its
time relative to libsplit's, in each run."""


@dataclasses.dataclass
class Row:
    """The measurements of one competitor on one case."""

    workload: Workload
    threads: int
    offset: int
    competitor: str
    right: bool
    runs: list[list[float]]  # for each run, nanoseconds per call, one number for each round

    @property
    def key(self) -> tuple[str, int, int]:
        return self.workload.name, self.threads, self.offset

    @property
    def samples(self) -> list[float]:
        return list(itertools.chain(*self.runs))

    @property
    def medians(self) -> list[float]:
        """The median of each run."""
        return list(map(_median, self.runs))

    @property
    def median(self) -> float:
        """The median of the runs' medians."""
        return _median(self.medians)

    @property
    def deviation(self) -> float:
        """The median absolute deviation."""
        return statistics.median(abs(sample - self.median) for sample in self.samples)


def _median(samples: list[float]) -> float:
    return round(statistics.median(samples), 1)  # as in the CSV


def joined(rows: list[Row]) -> list[Row]:
    """Joins the rows of several runs."""
    found: dict[tuple, Row] = {}
    for row in rows:
        first = found.setdefault((row.key, row.competitor), dataclasses.replace(row, runs=[]))
        first.runs += row.runs
        first.right &= row.right
    return list(found.values())


@dataclasses.dataclass
class Results:
    machine: str
    libraries: list[str]  # the builds of libsplit, by name
    versions: dict[str, str]  # of every competitor; of libsplit with the CPU level
    rows: list[Row] = dataclasses.field(default_factory=list)
    costs: list[Cost] = dataclasses.field(default_factory=list)
    empty_python_call: float = 0
    pipeline: str = ""  # a table of pipeline.table
    inside: list[dict] = dataclasses.field(default_factory=list)  # of inside_onnxruntime.rows

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
    text += ["## Verdict", "", verdict(results), ""]
    return "\n".join(text)


def by_threads(results: Results) -> str:
    """Formats a table for each number of threads and offset."""
    cases, text = results.cases(), []
    for threads, offset in dict.fromkeys((key[1], key[2]) for key in cases):
        text.append("## 1 thread" if threads == 1 else f"## {threads} threads")
        text[-1] += f", {_placed(offset)}"
        here = [of for key, of in cases.items() if key[1:] == (threads, offset)]
        text += ["", _ratios(here, results.libraries), ""]
    return "\n".join(text)


@dataclasses.dataclass
class Lost:
    """A split that a build of libsplit loses, and the rivals that are ahead in any run."""

    of: dict[str, Row]  # the case
    library: str
    times: dict[str, list[float]]  # relative to libsplit's, in each run

    @property
    def name(self) -> str:
        return self.of[self.library].workload.name

    @property
    def worst(self) -> float:
        return min(map(statistics.median, self.times.values()))


def contested(results: Results, library: str, offset: int) -> list[dict[str, Row]]:
    """Returns the cases on one thread in which a rival counts against this build."""
    return [of for (_, threads, at), of in results.cases().items()
            if (threads, at) == (1, offset) and _rivals(of, library)]


def _rivals(of: dict[str, Row], library: str) -> list[str]:
    """Returns the rivals that count in this case."""
    is_small = of[library].workload.bytes < LEAST_MEMCPY_BYTES
    return [name for name in RIVALS if name in of and of[name].right and not (is_small and name == "memcpy")]


def lost(results: Results, library: str, offset: int) -> list[Lost]:
    """Returns the splits that this build loses, the worst first. This is the benchmark's verdict."""
    found = []
    for of in contested(results, library, offset):
        own = of[library].medians
        times = {name: [theirs / ours for theirs, ours in zip(of[name].medians, own, strict=True)]
                 for name in _rivals(of, library)}
        lost_runs = sum(min(run) < AHEAD for run in zip(*times.values(), strict=True))
        if 2 * lost_runs > len(own):
            ahead = {name: each for name, each in times.items() if min(each) < AHEAD}
            found.append(Lost(of, library, ahead))
    return sorted(found, key=lambda each: each.worst)


def verdict(results: Results) -> str:
    """Lists the splits that are lost, for each build and offset."""
    rivals = ", ".join(f"{title} ({results.versions.get(name, 'not measured')})" for name, title in RIVALS.items())
    text = [ABOUT_VERDICT.format(rivals=rivals)]
    excepted = set()
    for library in results.libraries:
        for offset in sorted({row.offset for row in results.rows if row.threads == 1}):
            found = lost(results, library, offset)
            excepted |= {each.name for each in found} & EXCEPTED.keys()
            title = f"{library} ({results.versions[library]}), {_placed(offset)}"
            text.append(_verdict_on(found, title, len(contested(results, library, offset))))
    text += [f"{name} is excepted: {EXCEPTED[name]}" for name in sorted(excepted)]
    return "\n\n".join([*text, "### Of a flat copy\n\nGeometric means by class, on one thread.", of_flat(results)])


def _verdict_on(found: list[Lost], title: str, count: int) -> str:
    counted = [each for each in found if each.name not in EXCEPTED]
    head = f"### {title}: {len(counted)} of {count} splits lost"
    if not found:
        return head
    lines = []
    for each in found:
        flat, own = ceiling(each.of), each.of[each.library]
        who = "; ".join(f"{RIVALS[name]} {', '.join(f'{time:.2f}' for time in times)}"
                        for name, times in sorted(each.times.items(), key=lambda of: statistics.median(of[1])))
        lines.append([each.name, own.workload.describe(), who, f"{ratio(flat, own):.2f}" if flat else "–"])
    return f"{head}\n\n{markdown(['', 'split', 'ahead', 'of flat'], lines, text_columns=3)}"


def _placed(offset: int) -> str:
    return f"outputs {offset} bytes off their lines" if offset else "outputs on lines"


def of_flat(results: Results) -> str:
    """Formats the geometric means of libsplit's speed as a share of the fastest flat copy's."""
    groups = {**{name: [name] for name in CLASSES}, **TOGETHER}
    shares: dict[tuple[str, int], dict[str, list[float]]] = {}
    for (_, threads, offset), of in results.cases().items():
        for library in results.libraries if threads == 1 and ceiling(of) else ():
            here = shares.setdefault((library, offset), {})
            for group, classes in groups.items():
                if class_of(of[library].workload) in classes:
                    here.setdefault(group, []).append(ratio(ceiling(of), of[library]))
    lines = [[library, _placed(offset),
              *(f"{statistics.geometric_mean(of[group]):.2f}" if group in of else "–" for group in groups)]
             for (library, offset), of in sorted(shares.items())]
    return markdown(["", "", *groups], lines, text_columns=2)


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
    widths = [max(2, *map(len, column)) for column in zip(head, *lines)]
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
                      "right", "rounds", "median_ns", "deviation_ns", "gb_per_s", "of_flat", "run_medians_ns"])
        for of in results.cases().values():
            flat = ceiling(of)
            for row in of.values():
                work = row.workload
                out.writerow([work.name, work.describe(), work.bytes, row.threads, row.offset,
                              row.competitor, results.versions[row.competitor], row.right,
                              len(row.samples), f"{row.median:.1f}", f"{row.deviation:.1f}",
                              f"{work.bytes / row.median:.3f}",
                              f"{ratio(flat, row):.3f}" if flat else "",
                              " ".join(f"{median:.1f}" for median in row.medians)])


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
                line["competitor"], line["right"] == "True",
                [[float(median)] for median in line["run_medians_ns"].split()])
            for line in lines]
    versions = {line["competitor"]: line["version"] for line in lines}
    return Results(machine, [name for name in versions if name.startswith("libsplit")], versions, rows)


def main() -> None:
    """Rewrites the verdict in results.md, after what it says has changed."""
    for directory in map(pathlib.Path, sys.argv[1:]):
        path = directory / "results.md"
        before = path.read_text(encoding="utf-8").partition("## Verdict")[0].rstrip("\n")
        path.write_text(f"{before}\n\n## Verdict\n\n{verdict(read(directory))}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
