#!/usr/bin/env python3
"""Compares libsplit with itself as it would be with other values of its tuning constants, one change at a time.

    sweep.py --build build/release --output bench/results
    sweep.py --only PREFETCH_BYTES --quick
    sweep.py --avx2

A constant is found by its name in a throw-away copy of the source, and replaced there; a number of the table of
machines is replaced where it is used. Each library that is built so is compared with an unchanged one from the same
copy, by compare.py, over the rows that the change can matter to. The tables go to constants.md in the directory of
this CPU, before those of earlier sweeps.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import dataclasses
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bench
import compare
import native
import report

BUILDS = 2  # at a time
ENGINE = pathlib.Path("src/copy")

Change = dict[str, int]  # new values by name


def each(name: str, *values: int) -> list[Change]:
    return [{name: value} for value in values]


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Changes, and the rows that they can matter to."""

    rows: str
    changes: list[Change]
    threads: int = 1


KIB, MIB = 1 << 10, 1 << 20
LONG = "W1 W7 W14 L3 L4r U59 U31 W6 W18"
PAST = "W5c W9 W9cL L7f L8f L8i R96x2L R48x3L X5x1 U5M W12"
TRANSPOSED = "L6r L6h W11 L6u L6n W11u W12 L5r"
SHORT = "W5 W6 W18 W13 R12x8 R48x3 R48x3L R12x3L R96x2L X16x3 X5x1 X6x3 L1 L2s W9 U31 X13 R12x12"
FEW_ROWS = "W2 W15 W19 Useq Uqkv Uqk Xmid U96 U59"
MANY_PIECES = "U96 U59 U31 X13 X13L W12 W8"

# What the delivered library has already is passed over.
SWEEPS = [
    Sweep(f"{LONG} {PAST}", [
        *each("INTERLEAVED_RUNS", 1, 2, 4, 8, 16, 32),
        *each("INTERLEAVED_BYTES", 128, 256, 512, 1024),
        {"INTERLEAVED_RUNS": 4, "INTERLEAVED_BYTES": 1024},
        {"INTERLEAVED_RUNS": 8, "INTERLEAVED_BYTES": 1024},
        *each("LEAST_STREAMED_ROWS", 8, 32),
        *each("PREFETCH_BYTES", 512, 1024, 2048, 4096),
        *each("LEAST_STREAMED_RUN_BYTES", 64, 128, 512),
        *each("third_eighths", 3, 8, 16, 64),
        *each("second_eighths", 32, 128),
    ]),
    Sweep(TRANSPOSED, [
        *each("COLUMN_BYTES", 512, 1024, 2048),
        *each("third_eighths", 3, 8, 16, 64),
    ]),
    Sweep(SHORT, [
        *each("BLOCK_BYTES", 8 * KIB, 16 * KIB, 32 * KIB),
        *each("LONG_BLOCK_BYTES", 64 * KIB, 256 * KIB, MIB),
        *each("LONG_RUN_BYTES", 512, 1024, 2048),
        *each("TURNS_OF_SET", 1, 2, 4, 8),
        *each("RUN_COST", 13, 26, 52),
        *each("LOAD_COST", 13, 26, 52),
        *each("PICK_COST", 8, 16, 32),
        *each("STORE_COST", 8, 16, 32),
        *each("STAGE_COST", 32, 64, 128, 256),
        *each("HALF_LINES_COST", 0, 40, 160),
        *each("CHEAP_LINE", 48, 96, 192),
    ]),
    Sweep(f"{MANY_PIECES} L2b L2z L4h L4q L5 L5b L6c", [
        *each("CALL_COST", 160, 320, 640),
        *each("LEAST_ROUND_BYTES", 16 * KIB, 32 * KIB, 64 * KIB),
        *each("LONGEST_GROUP_BYTES", 128, 256, 512),
    ]),
    Sweep("W17 W18 R48x3 R96x2 R96x3 R96x8 R96x2L R96x3L L4h L4q L2k", [
        *each("LONGEST_UNIT_BYTES", 64, 128, 256),
        *each("ALIGNED_RUN_BYTES", 256, 512, 1024),
    ]),
    Sweep(FEW_ROWS, [
        *each("MANY_ROWS", 32, 64, 128),
        *each("SMALL_BYTES", 64 * KIB, 128 * KIB, 256 * KIB),
    ]),
    Sweep(f"W1 W2 W4 W6 W11 W17 W18 {MANY_PIECES}", [
        *each("TASK_BYTES", 128 * KIB, 256 * KIB, 512 * KIB),
        *each("TASK_PIECE_BYTES", KIB, 2 * KIB, 4 * KIB),
        *each("WALK_BYTES", 32, 64, 128),
    ], threads=2),
]
# Constants of machine_constants.rs that no row could tell anything about.
UNSWEPT = {
    "CYCLE": "the unit of costs",
    "DEFAULT_TASKS": "for callers that do not say how many threads they have, as the benchmark does",
    "LEAST_STREAMED_CALL_BYTES": "decides only where caches are tiny or unknown",
    "LEAST_PROGRAM_UNITS": "no row has so few units",
}

ABOUT = """\
One thread, unless a table says otherwise; outputs on lines. Each library differs from the unchanged one in what the
first column says, and the numbers are its speed relative to the unchanged one: above 1, the change is faster. Both
take turns in one process. The line "unchanged" compares the unchanged library with itself, and shows the noise.
"""


class Source:
    """A throw-away copy of the source, in which constants are changed."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.delivered = {path: path.read_text(encoding="utf-8")
                          for path in sorted((root / ENGINE).rglob("*.rs"))}

    def _definition(self, name: str) -> re.Pattern:
        if name.isupper():
            return re.compile(rf"(?<=const ){name}: (\w+) = ([^;]+)(?=;)")
        return re.compile(rf"\bmodel\.{name}\b")

    def find(self, name: str) -> tuple[pathlib.Path, re.Match]:
        """Returns the one place where a constant is defined, or a number of the table of machines is used."""
        pattern = self._definition(name)
        found = [(path, match) for path, text in self.delivered.items() for match in pattern.finditer(text)]
        if len(found) != 1:
            raise SystemExit(f"error: {name} is in {len(found)} places of {ENGINE}, and should be in one: "
                             "correct SWEEPS in bench/sweep.py")
        return found[0]

    def value(self, name: str) -> int | None:
        """Returns the delivered value; None for a number of the table, which has one for each machine."""
        _, match = self.find(name)
        if not name.isupper():
            return None
        expression = re.sub(r"[A-Z]\w+", lambda other: str(self.value(other[0])), match[2])
        if not re.fullmatch(r"[\d_<*+ ]+", expression):
            raise SystemExit(f"error: {name} = {match[2]} is not understood")
        return eval(expression)

    def is_delivered(self, change: Change) -> bool:
        return all(self.value(name) == value for name, value in change.items())

    def changed(self, change: Change) -> dict[pathlib.Path, str]:
        """Returns all files with the new values."""
        files = dict(self.delivered)
        for name, value in change.items():
            path, match = self.find(name)
            new = f"{name}: {match[1]} = {value}" if name.isupper() else f"{value}"
            files[path] = files[path].replace(match[0], new)
        return files

    def put(self, change: Change) -> None:
        """Writes the changed files, and those that the last change had changed."""
        for path, text in self.changed(change).items():
            if path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")


def export(root: pathlib.Path, to: pathlib.Path) -> None:
    """Copies the working tree, without what git ignores and without results."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file() and not name.startswith("bench/results"):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)


def build(source: Source, change: Change, avx512: bool, library: pathlib.Path) -> None:
    """Builds the library with changed constants."""
    source.put(change)
    configure = ["cmake", "-S", source.root, "-B", source.root / "build", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DLIBSPLIT_AVX512={'ON' if avx512 else 'OFF'}",
                 *(f"-DLIBSPLIT_BUILD_{what}=OFF" for what in ["TESTS", "EXAMPLES", "BENCH"])]
    make = ["cmake", "--build", source.root / "build", "--target", "libsplit-build"]
    for command in [configure, make]:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise SystemExit(f"error: {title(change)} cannot be built:\n{done.stdout}")
    shutil.copyfile(source.root / "build/lib/libsplit.so", library)


def build_all(changes: list[Change], args: argparse.Namespace, directory: pathlib.Path) -> dict[str, pathlib.Path]:
    """Builds a library for each change, some at a time, and returns their paths by title."""
    sources = []
    for number in range(BUILDS):
        export(bench.ROOT, directory / f"source{number}")
        sources.append(Source(directory / f"source{number}"))
    made = {title(change): directory / f"{number}.so" for number, change in enumerate(changes)}

    def build_some(number: int) -> None:
        for change in changes[number::BUILDS]:
            build(sources[number], change, not args.avx2, made[title(change)])
            print(f"built: {title(change)}", file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(BUILDS) as pool:
        list(pool.map(build_some, range(BUILDS)))
    return made


def title(change: Change) -> str:
    return ", ".join(f"{name}={value}" for name, value in change.items()) or "unchanged"


def selected(source: Source, only: list[str] | None) -> list[Sweep]:
    """Returns the sweeps with the changes that were asked for, without those that change nothing."""
    names = {name for sweep in SWEEPS for change in sweep.changes for name in change}
    unknown = set(only or []) - names
    if unknown:
        raise SystemExit(f"error: {', '.join(sorted(unknown))} is not swept: these are: {', '.join(sorted(names))}")
    found = []
    for sweep in SWEEPS:
        changes = [change for change in sweep.changes
                   if (not only or change.keys() & set(only)) and not source.is_delivered(change)]
        if changes:
            found.append(dataclasses.replace(sweep, changes=changes))
    return found


def speeds(old: pathlib.Path, new: pathlib.Path, sweep: Sweep, args: argparse.Namespace) -> dict[str, float]:
    """Returns the speed of a library relative to another one, by row."""
    command = [sys.executable, pathlib.Path(__file__).parent / "compare.py", "--old", old, "--new", new, "--csv",
               "--rows", ",".join(sweep.rows.split()), "--threads", str(sweep.threads), "--build", args.build]
    done = subprocess.run([*command, *(["--quick"] if args.quick else [])], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"error: compare.py failed for {new}")
    return {row["workload"]: float(row["ratio"]) for row in csv.DictReader(done.stdout.splitlines())}


def table(lines: dict[str, dict[str, float]]) -> str:
    """Formats the speeds by title and then by row."""
    rows = list(next(iter(lines.values())))
    return report.markdown(["changed", *rows, "mean"], [
        [name, *(f"{of[row]:.2f}" for row in rows), f"**{statistics.geometric_mean(of.values()):.2f}**"]
        for name, of in lines.items()], text_columns=1)


def keep(path: pathlib.Path, heading: str, text: str) -> None:
    """Writes a section before all others of the file. It replaces one with the same heading."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") if path.exists() else "# What other values of the constants would do\n"
    begin, *sections = re.split(r"^(?=## )", before, flags=re.MULTILINE)
    others = [section for section in sections if section.partition("\n")[0] != f"## {heading}"]
    path.write_text(f"{begin.rstrip()}\n\n## {heading}\n\n{text.rstrip()}\n\n{''.join(others)}".rstrip() + "\n",
                    encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="NAMES",
                        help="change only these constants: INTERLEAVED_RUNS,PREFETCH_BYTES")
    parser.add_argument("--quick", action="store_true", help="measure less, with an accuracy of about 3 %%")
    parser.add_argument("--avx2", action="store_true", help="build the libraries without AVX-512")
    parser.add_argument("--build", type=pathlib.Path, default=bench.ROOT / "build/release",
                        help="the directory in which the timing loops are built")
    parser.add_argument("--output", type=pathlib.Path, default=bench.ROOT / "out/bench",
                        help="the directory for results; constants.md goes to the directory of this CPU in it")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    sweeps = selected(Source(bench.ROOT), args.only)
    changes: list[Change] = [{}]
    for change in (change for sweep in sweeps for change in sweep.changes):
        changes += [change] if change not in changes else []
    path = args.output / bench.cpu() / "constants.md"
    with tempfile.TemporaryDirectory() as directory:
        made = build_all(changes, args, pathlib.Path(directory))
        unchanged = made[title({})]
        level = native.Libsplit(unchanged, compare.load_native(args)).level
        heading = ", ".join([f"Commit {bench.commit()}", level, *(args.only or []), *["quick"] * args.quick])
        text = [f"Measured {time.strftime('%Y-%m-%d')} on {bench.machine()}.", ABOUT.rstrip()]
        for sweep in sweeps:
            lines = {name: speeds(unchanged, made[name], sweep, args)
                     for name in [title({}), *map(title, sweep.changes)]}
            text += [f"{sweep.threads} threads:"] * (sweep.threads > 1) + [table(lines)]
            print(f"\n{table(lines)}", flush=True)
            keep(path, heading, "\n\n".join(text))
    print(f"\nThese tables are in {path}.")


if __name__ == "__main__":
    main()
