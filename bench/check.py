"""Tests the benchmark itself, without the other libraries; 'make test' runs it, but for what takes long.

Environment: BUILD_DIR, the directory in which CMake has built libsplit and the benchmark. QUICK leaves out the
tests that run whole programs.
"""

import argparse
import csv
import ctypes
import dataclasses
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import bench
import bounds
import compare
import pipeline
import report
import sweep
import workloads
from competitors import PEERS, FlatCopy, NumPy, Run
from native import Libsplit, Native

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", HERE.parent / "build/release"))
WHOLE = [work for work in workloads.ALL if not work.sub_byte]
SMALL = [work for work in WHOLE if work.bytes <= 2 * workloads.MIB]


class Workloads(unittest.TestCase):
    def test_names_differ(self):
        names = [work.name.lower() for work in workloads.ALL]
        self.assertEqual(len(names), len(set(names)))

    def test_lengths_add_up(self):
        for work in workloads.ALL:
            with self.subTest(work.name):
                self.assertEqual(sum(work.lengths), work.shape[work.axis])

    def test_the_lists_of_names_name_workloads(self):
        names = {work.name for work in workloads.ALL}
        for listed in [workloads.QUICK_MISALIGNED, workloads.QUICK_THREADS, report.CHARTED]:
            self.assertLessEqual(set(listed), names)


class Layouts(unittest.TestCase):
    def test_views_are_what_their_descriptions_say(self):
        for work in WHOLE:
            if not work.layout or 1 in work.layout.memory:
                continue
            with self.subTest(work.name):
                memory = np.arange(work.input_bytes, dtype=np.uint8)
                packed = memory.view(work.dtype).reshape(work.layout.memory)
                expected = eval("packed" + re.sub(r"^ of \[[0-9,]*\]", "", str(work.layout)))
                found = work.input(memory)
                self.assertEqual((found.shape, found.strides, found.ctypes.data),
                                 (work.shape, expected.strides, expected.ctypes.data))

    def test_a_row_is_repeated_without_a_copy(self):
        work = next(work for work in workloads.ALL if work.name == "L4o")
        found = work.input(np.zeros(work.input_bytes, np.uint8))
        self.assertEqual((found.shape, found.strides), (work.shape, (0, 4)))

    def test_outputs_are_apart_and_within_their_memory(self):
        for work in SMALL:
            with self.subTest(work.name):
                memory = np.zeros(work.output_bytes, np.uint8)
                for output, shape in zip(work.outputs(memory), work.piece_shapes(), strict=True):
                    self.assertEqual(output.shape, shape)
                    output[...] = output.view(work.dtype) + np.ones((), work.dtype)
                elements = np.count_nonzero(np.frombuffer(memory, work.dtype))
                self.assertEqual(elements, work.bytes // work.dtype.itemsize)
                for output in work.outputs(memory):
                    self.assertTrue((output == 1).all())


class Specs(unittest.TestCase):
    def test_a_workload_is_what_its_spec_says(self):
        for work in workloads.ALL:
            with self.subTest(work.name):
                found = workloads.parse(work.spec(), work.name, work.group)
                found = dataclasses.replace(found, sequence=work.sequence, quick=work.quick)
                self.assertEqual(found, work)

    def test_strides_are_those_of_the_tensors(self):
        work = workloads.parse("uint16 [3,4] strides [-8,2] axis -1: 2×1,2 into strides [-1,5]")
        found = work.input(np.zeros(work.input_bytes, np.uint8))
        self.assertEqual((found.shape, found.strides), ((3, 4), (-16, 4)))
        memory = np.zeros(work.output_bytes, np.uint8)
        outputs = work.outputs(memory)
        self.assertEqual([(output.shape, output.strides) for output in outputs],
                         [((3, 1), (-2, 10))] * 2 + [((3, 2), (-2, 10))])
        for output in outputs:
            self.assertTrue((output == 0).all())
            output[...] = 0x0101
        self.assertEqual(np.count_nonzero(memory), work.bytes)

    def test_what_is_no_spec_is_refused(self):
        for text, message in [("W1", "is not like"), ("flaot [3] axis 0: 3", "not a dtype"),
                              ("uint8 [3] axis 1: 3", r"outside \[-1, 0\]"), ("uint8 [3] axis 0: 4", "add up to 4"),
                              ("uint8 [3] strides [3,1] axis 0: 3", "2 strides for 1 axes")]:
            with self.assertRaisesRegex(ValueError, message):
                workloads.parse(text)


class Cpu(unittest.TestCase):
    def test_results_of_each_cpu_have_a_directory_of_their_own(self):
        def name(text: str) -> str:
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
                file.write(text)
                file.flush()
                return bench.cpu(pathlib.Path(file.name))

        told = "vendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: any\n"
        self.assertEqual(name(told.format("GenuineIntel", 6, 143)), "sapphire-rapids")
        self.assertEqual(name(told.format("AuthenticAMD", 25, 17)), "zen4")
        self.assertEqual(name(told.format("AuthenticAMD", 25, 33)), "authenticamd-25-33")
        self.assertTrue(name(""))
        for directory in (HERE / "results").iterdir():
            self.assertIn(directory.name, bench.CPUS.values())


class Verdict(unittest.TestCase):
    WORK = {work.name: work for work in workloads.ALL}

    def results(self, *cases: tuple[str, int, int, dict[str, list[float]]]) -> report.Results:
        """Returns results of cases: a name, threads, an offset, and nanoseconds by competitor and run."""
        rows = [report.Row(self.WORK[name], threads, offset, competitor, True, [[time] for time in times])
                for name, threads, offset, of in cases for competitor, times in of.items()]
        libraries = [name for name in dict.fromkeys(row.competitor for row in rows) if name.startswith("libsplit")]
        return report.Results("here", libraries, {row.competitor: "1.0" for row in rows}, rows)

    def lost(self, name: str, offset=0, **times: list[float]) -> dict[str, dict[str, list[float]]]:
        found = report.lost(self.results((name, 1, offset, times)), "libsplit", offset)
        return {each.name: each.times for each in found}

    def test_a_split_is_lost_in_most_of_the_runs_or_not_at_all(self):
        for theirs, is_lost in [([96, 96, 99], True), ([96, 99, 99], False), ([97, 97, 97], False),
                                ([98, 50, 96], True)]:
            found = self.lost("W13", libsplit=[100, 100, 100], cv2=theirs)
            self.assertEqual(found, {"W13": {"cv2": [time / 100 for time in theirs]}} if is_lost else {})

    def test_different_rivals_may_win_it(self):
        found = self.lost("W13", libsplit=[10, 10, 10], cv2=[9, 11, 11], numpy=[11, 9, 11], openvino=[12, 12, 12])
        self.assertEqual(found, {"W13": {"cv2": [.9, 1.1, 1.1], "numpy": [1.1, .9, 1.1]}})

    def test_the_smallest_splits_are_not_lost_to_memcpy(self):
        self.assertEqual(self.lost("W10", libsplit=[10], memcpy=[1]), {})
        self.assertEqual(self.lost("W10", libsplit=[10], memcpy=[1], numpy=[5]), {"W10": {"numpy": [.5]}})
        self.assertEqual(self.lost("W15", libsplit=[10], memcpy=[5]), {"W15": {"memcpy": [.5]}})

    def test_who_is_no_rival_does_not_win_it(self):
        self.assertEqual(self.lost("W13", libsplit=[10], torch=[5], plain=[1], **{"1 thread": [5]}), {})
        of = self.results(("W13", 1, 0, {"libsplit": [10], "cv2": [5]}))
        of.rows[1].right = False
        self.assertEqual(report.lost(of, "libsplit", 0), [])

    def test_each_build_and_offset_has_a_verdict_of_its_own(self):
        both = {"libsplit": [10, 10], "libsplit avx2": [20, 20], "plain": [10, 10], "cv2": [12, 12]}
        quick = {**both, "libsplit avx2": [10, 10]}
        text = report.verdict(self.results(("W13", 1, 0, both), ("W5", 1, 0, quick), ("W13", 1, 16, quick),
                                           ("W13", 2, 0, both)))
        self.assertEqual(re.findall(r"^### .*lost$", text, re.MULTILINE), [
            "### libsplit (1.0), outputs on lines: 0 of 2 splits lost",
            "### libsplit (1.0), outputs 16 bytes off their lines: 0 of 1 splits lost",
            "### libsplit avx2 (1.0), outputs on lines: 1 of 2 splits lost",
            "### libsplit avx2 (1.0), outputs 16 bytes off their lines: 0 of 1 splits lost"])
        self.assertRegex(text, r"\| W13 \| float32 .* \| OpenCV 0.60, 0.60 \| +0.50 \|")
        self.assertIn("OpenCV (1.0)", text)
        self.assertIn("OpenVINO (not measured)", text)

    def test_what_is_excepted_is_named_and_not_counted(self):
        of = self.results(("W13", 1, 0, {"libsplit": [10], "cv2": [5]}))
        with mock.patch.dict(report.EXCEPTED, {"W13": "a reason.", "W5": "not lost."}, clear=True):
            text = report.verdict(of)
        self.assertIn("0 of 1 splits lost\n\n|", text)
        self.assertIn("W13 is excepted: a reason.", text)
        self.assertNotIn("not lost.", text)
        self.assertLessEqual(len(report.EXCEPTED), report.MOST_EXCEPTED)
        self.assertLessEqual(report.EXCEPTED.keys(), self.WORK.keys())

    def test_rivals_are_competitors(self):
        self.assertLessEqual(report.RIVALS.keys(), {"memcpy", *PEERS})

    def test_shares_of_a_flat_copy_are_means_by_class(self):
        of = self.results(*((name, 1, 0, {"libsplit": [10], "plain": [time]})
                            for name, time in [("W1", 2), ("W5", 8), ("L1", 9)]))
        head, _, line = report.of_flat(of).splitlines()
        shares = dict(zip(*([cell.strip() for cell in text.split("|")[3:]] for text in [head, line])))
        self.assertEqual((shares["W"], shares["L"], shares["U"]), ("0.40", "0.90", "–"))

    def test_runs_are_joined(self):
        runs = [self.results(("W13", 1, 0, {"libsplit": [time]})).rows[0] for time in [3, 1, 2]]
        runs[1].right = False
        [row] = report.joined(runs)
        self.assertEqual((row.medians, row.median, row.right), ([3, 1, 2], 2, False))

    def test_the_committed_results_end_with_their_verdict(self):
        for path in (HERE / "results").glob("*/results.md"):
            text = path.read_text(encoding="utf-8")
            self.assertTrue(text.startswith("Measured 20"))
            verdict = report.verdict(report.read(path.parent))
            self.assertEqual(text.partition("## Verdict\n\n")[2], verdict + "\n", path)


class Verify(unittest.TestCase):
    def test_right_bytes_are_right(self):
        memory = bench.Memory(SMALL)
        for work in SMALL:
            for offset in [0, 16]:
                with self.subTest(work.name, offset=offset):
                    case = memory.case(work, 1, offset)
                    self.assertTrue(bench.verify(case, NumPy().prepare(case))[0])

    def test_a_byte_that_is_wrong_or_not_written_is_found(self):
        work = next(work for work in SMALL if work.name == "R12x3")
        case = bench.Memory([work]).case(work, 1, 0)
        copy = NumPy().prepare(case)
        for piece in range(len(work.lengths)):
            def per_call(calls, last=case.targets[piece].reshape(-1).view(np.uint8)[-1:]):
                duration = copy.per_call(calls)
                last[0] ^= 1
                return duration

            self.assertFalse(bench.verify(case, Run(per_call))[0])
        self.assertFalse(bench.verify(case, Run(lambda calls: 1.0))[0])
        self.assertFalse(bench.verify(case, Run(copy.per_call, lambda: case.targets[1:]))[0])


class Bounds(unittest.TestCase):
    def test_each_way_stores_as_much_as_it_says_and_nowhere_else(self):
        native = Native(BUILD / "bench/bench_native.so")
        if "wide" not in FlatCopy.all(native):
            self.skipTest("bounds need AVX-512")
        selected = [work for work in workloads.ALL
                    if work.name in bounds.ROWS and work.bytes <= 6 * workloads.MIB]
        memory = bench.Memory(selected)
        for work in selected:
            case = memory.case(work, 1, 0)
            for way in bounds.ways(case):
                stored = sum(tiles.stored for tiles in way.tiles)
                self.assertGreater(stored, 0.8 * work.bytes)
                for kind, label, run in way.runs(case, native):
                    with self.subTest(work.name, kind=kind, label=label):
                        memory.targets.bytes.fill(bench.POISON)
                        self.assertGreater(run.per_call(1), 0)
                        # One byte of 256 is what it was.
                        changed = np.count_nonzero(case.memory != bench.POISON) * 256 / 255
                        self.assertAlmostEqual(changed / stored, 1, delta=0.02)
                        after = memory.targets.bytes[work.output_bytes :]
                        self.assertTrue((after == bench.POISON).all())


class Levels(unittest.TestCase):
    def test_the_library_without_avx512_is_measured_where_it_runs_at_another_level(self):
        own, without = pathlib.Path("/own.so"), pathlib.Path("/without.so")
        for level, expected in [("AVX-512", ["libsplit", "libsplit avx2"]), ("AVX2", ["libsplit"])]:
            args = argparse.Namespace(library=[("libsplit", own)], avx2=without)
            levels = {own: level, without: "AVX2"}
            with mock.patch.object(bench, "Libsplit", lambda path, _: mock.Mock(level=levels[path])):
                bench.add_avx2(args, None)
            self.assertEqual([name for name, _ in args.library], expected)


class Sweeps(unittest.TestCase):
    ENGINE = HERE.parent / "src/copy"

    def source(self, **files: str) -> sweep.Source:
        """Makes a source of these files of the engine."""
        root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (root / sweep.ENGINE / "deeper").mkdir(parents=True)
        for name, text in files.items():
            (root / sweep.ENGINE / f"{name.replace('_', '/')}.rs").write_text(text)
        return sweep.Source(root)

    def test_every_tuning_constant_is_swept_or_has_a_reason_not_to_be(self):
        text = (self.ENGINE / "machine_constants.rs").read_text(encoding="utf-8")
        constants = set(re.findall(r"const (\w+):", text))
        swept = {name for each in sweep.SWEEPS for change in each.changes for name in change}
        self.assertEqual(constants - swept - sweep.UNSWEPT.keys(), set())
        self.assertLessEqual(sweep.UNSWEPT.keys(), constants - swept)

    def test_every_change_is_of_a_constant_of_the_engine_and_of_rows_that_exist(self):
        source = sweep.Source(HERE.parent)
        names = {work.name for work in workloads.ALL}
        for each in sweep.SWEEPS:
            self.assertLessEqual(set(each.rows.split()), names)
            for change in each.changes:
                with self.subTest(sweep.title(change)):
                    changed = source.changed(change)
                    files = [path for path, text in changed.items() if text != source.delivered[path]]
                    if not source.is_delivered(change):
                        self.assertIn(len(files), range(1, 1 + len(change)))

    def test_a_constant_is_found_by_its_name_and_replaced(self):
        source = self.source(a="pub(super) const RUNS: usize = 4 << 10;\nconst LONG_RUNS: usize = 2 * RUNS;\n",
                             deeper_b="let limit = third / 8 * model.eighths;\n")
        self.assertEqual((source.value("RUNS"), source.value("LONG_RUNS"), source.value("eighths")), (4096, 8192, None))
        self.assertTrue(source.is_delivered({"RUNS": 4096}))
        self.assertFalse(source.is_delivered({"RUNS": 4096, "LONG_RUNS": 1}))

        def now() -> list[str]:
            return [path.read_text() for path in source.delivered]

        source.put({"RUNS": 8, "eighths": 3})
        self.assertEqual(now(), ["pub(super) const RUNS: usize = 8;\nconst LONG_RUNS: usize = 2 * RUNS;\n",
                                 "let limit = third / 8 * 3;\n"])
        source.put({"LONG_RUNS": 5})
        self.assertEqual(now(), ["pub(super) const RUNS: usize = 4 << 10;\nconst LONG_RUNS: usize = 5;\n",
                                 "let limit = third / 8 * model.eighths;\n"])
        source.put({})
        self.assertEqual(now(), list(source.delivered.values()))

    def test_what_is_not_in_one_place_is_refused(self):
        source = self.source(a="const RUNS: usize = 4;", deeper_b="const RUNS: u32 = 4;")
        for name, places in [("RUNS", 2), ("BYTES", 0), ("eighths", 0)]:
            with self.assertRaisesRegex(SystemExit, f"{name} is in {places} places"):
                source.find(name)

    def test_what_was_asked_for_and_is_not_delivered_is_built(self):
        source = self.source(a="const RUNS: usize = 4;\nconst BYTES: usize = 8;")
        sweeps = [sweep.Sweep("W1", [{"RUNS": 4}, {"RUNS": 8}, {"RUNS": 8, "BYTES": 16}]),
                  sweep.Sweep("W2", [{"BYTES": 8}])]
        with mock.patch.object(sweep, "SWEEPS", sweeps):
            for only, expected in [(None, [{"RUNS": 8}, {"RUNS": 8, "BYTES": 16}]),
                                   (["BYTES"], [{"RUNS": 8, "BYTES": 16}])]:
                self.assertEqual(sweep.selected(source, only), [sweep.Sweep("W1", expected)])
            with self.assertRaisesRegex(SystemExit, "LINES is not swept: these are: BYTES, RUNS"):
                sweep.selected(source, ["LINES"])

    def test_earlier_records_stay_below_the_new_one(self):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "zen9/constants.md"
        for heading, text in [("one", "a"), ("two", "b"), ("one", "c")]:
            sweep.keep(path, heading, f"{text}\n")
        title, *rest = path.read_text().splitlines()
        self.assertTrue(title.startswith("# "))
        self.assertEqual(rest, ["", "## one", "", "c", "", "## two", "", "b"])

    def test_a_line_ends_with_its_geometric_mean(self):
        self.assertEqual(sweep.table({"RUNS=8": {"W1": 2.0, "W5": 0.5}}).splitlines(),
                         ["| changed |   W1 |   W5 |     mean |", "| ------- | ---: | ---: | -------: |",
                          "| RUNS=8  | 2.00 | 0.50 | **1.00** |"])


@unittest.skipIf("QUICK" in os.environ, "slow")
class Program(unittest.TestCase):
    def bench(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, HERE / "bench.py", "--build", BUILD, "--quiet", "--no-chart"]
        return subprocess.run([*command, *arguments], capture_output=True, text=True)

    def test_every_competitor_that_needs_no_library_is_right(self):
        only = ["S1", "S5", "S8", "S10", "W10", "W11u", "W13", "W15", "R12x3", "Useq", "X5x7", "L2b",
                "L2s", "L5u", "L6n", "L8m"]
        with tempfile.TemporaryDirectory() as directory:
            done = self.bench("--only", ",".join(only), "--competitors", "flat,memcpy,numpy",
                              "--rounds", "2", "--runs", "2", "--seconds", "0", "--output", directory,
                              "--avx2", BUILD / "lib/libsplit.so")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(pathlib.Path(directory) / bench.cpu() / "results.csv", newline="") as file:
                rows = list(csv.DictReader(file))
            tables = (pathlib.Path(directory) / bench.cpu() / "results.md").read_text(encoding="utf-8")
        self.assertEqual({row["right"] for row in rows}, {"True"})
        self.assertEqual({row["workload"] for row in rows}, set(only))
        self.assertEqual({(row["threads"], row["offset"]) for row in rows},
                         {("1", "0"), ("1", "16"), ("2", "0"), ("2", "16")})
        self.assertEqual({row["competitor"] for row in rows},
                         {"libsplit", "1 thread", "memcpy", "numpy",
                          *FlatCopy.all(Native(BUILD / "bench/bench_native.so"))})
        for row in rows:
            first, second = map(float, row["run_medians_ns"].split())
            self.assertAlmostEqual(float(row["median_ns"]), (first + second) / 2, delta=.051)
            self.assertGreater(min(first, second), 0)
        self.assertIn("| libsplit | copy, lengths int64 ", tables)
        self.assertIn("| libsplit | view, of libsplit_outputs_init() ", tables)
        self.assertRegex(tables, r"## Verdict\n\n.*(.*\n)+### libsplit \(0.*\), outputs on lines: ")
        self.assertIn(tables, done.stdout)

    def test_tables_say_what_the_csv_says(self):
        for path in sorted((HERE / "results").glob("*/results.csv")):
            with open(path, newline="", encoding="utf-8") as file:
                times = {(row["workload"], row["threads"], row["offset"], row["competitor"]):
                         float(row["median_ns"]) for row in csv.DictReader(file)}
            text = path.with_suffix(".md").read_text(encoding="utf-8")
            sections = re.findall(r"^## (\d) threads?, outputs (on|16).*\n\n((?:\|.*\n)+)", text,
                                  re.MULTILINE)
            self.assertGreaterEqual(len(sections), 3)
            for threads, offset, table in sections:
                head, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")]
                                   for line in table.splitlines()]
                offset = "0" if offset == "on" else offset
                for line in lines:
                    key = line[0], threads, offset
                    flat = min(times.get((*key, name), math.inf)
                               for name in ("plain", "stream", "wide", "strings"))
                    libsplit = times[*key, "libsplit"]
                    cells = dict(zip(head, line))
                    rounding = .05 / libsplit  # the CSV has tenths of nanoseconds
                    if flat < math.inf:
                        self.assertAlmostEqual(float(cells["libsplit of flat"]), flat / libsplit,
                                               delta=.0051 + 2 * rounding, msg=key)
                    for name in head:
                        if name.startswith("× ") and cells[name] != "–":
                            found = float(cells[name].removeprefix("wrong "))
                            self.assertAlmostEqual(found, times[*key, name[2:]] / libsplit,
                                                   delta=.051 + rounding * (1 + found),
                                                   msg=(*key, name))

    def test_bounds_are_a_table_or_a_message(self):
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, HERE / "bounds.py", "--build", BUILD, "--output", directory]
            command += ["--only", "W13,L2z", "--seconds", "0", "--rounds", "1"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 1:
                self.assertIn("error: bounds need x86-64 with AVX-512", done.stderr)
                return
            self.assertEqual(done.returncode, 0, done.stderr)
            path = pathlib.Path(directory) / bench.cpu() / "bounds.md"
            table = path.read_text(encoding="utf-8")
        self.assertIn(table, done.stdout)
        self.assertEqual(re.findall(r"^\| (\w+)", table, re.MULTILINE), ["W13", "L2z"])

    def test_levels_and_pools_are_tables(self):
        for program, options, each in [("levels", ["--seconds", "0", "--rounds", "1"], 15),
                                       ("pools", ["--only", "pthread", "--rounds", "1"], 5)]:
            with self.subTest(program), tempfile.TemporaryDirectory() as directory:
                command = [sys.executable, HERE / f"{program}.py", "--build", BUILD, *options,
                           "--output", directory]
                done = subprocess.run(command, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                path = pathlib.Path(directory) / bench.cpu() / f"{program}.md"
                table = path.read_text(encoding="utf-8")
                self.assertIn(table, done.stdout)
                self.assertEqual(len(re.findall(r"^\| \w", table, re.MULTILINE)), each + 1)

    def compare(self, *arguments: str, new=BUILD / "lib/libsplit.so") -> subprocess.CompletedProcess:
        command = [sys.executable, HERE / "compare.py", "--build", BUILD, "--old", BUILD / "lib/libsplit.so",
                   "--new", new, "--seconds", "0", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def test_builds_are_compared_on_random_splits_of_all_kinds(self):
        done = self.compare("--random", "40", "--most", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        kinds = re.findall(r"^([\w ]+), ([\w ]+?) +\d+\.\d+ of (\d+)$", done.stdout, re.MULTILINE)
        self.assertEqual(sum(int(count) for _, _, count in kinds), 40)
        self.assertEqual({family for family, _, _ in kinds}, set(compare.FAMILIES))
        self.assertEqual({layout for _, layout, _ in kinds}, set(compare.LAYOUTS))
        self.assertRegex(done.stdout, r"\d of 40 take more than 1.07 times as long:")

    def test_builds_are_compared_on_workloads_and_on_splits_of_any_layout(self):
        done = self.compare("--rows", "W10*,Useq,R12x2,L2b,W10", "--class", "S", "--csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(done.stdout.splitlines()))
        sub_byte = [work.name for work in workloads.ALL if work.sub_byte]
        self.assertEqual([row["workload"] for row in rows],
                         ["W10", "W10b", "Useq", "R12x2", "L2b", *sub_byte])
        for text in ["uint16 [300,37,5] axis 1: 12,13,12",
                     "uint8 [3,80] strides [-96,1] axis 0: 2,1 into strides [1,-128]",
                     "float32 [3,5] of [6,6][::2,1:] axis 1: 2×1,3 into slices of [5,4][:,:3].transpose(1,0)"]:
            done = self.compare("--split", text)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = self.compare("--split", "uint8 [3] axis 0: 2,2")
        self.assertIn("the lengths add up to 4, but axis 0 has extent 3", done.stderr)

    def made(self, directory: str, source: str) -> pathlib.Path:
        """Builds a library that only looks like libsplit."""
        path = pathlib.Path(directory) / "made.so"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-w", "-xc", "-", "-o", path,
                        f"-I{HERE.parent}/include"], input=source, text=True, check=True)
        return path

    COPIES_NOTHING = """
        #include <libsplit.h>
        #include <string.h>
        const char *libsplit_version_string(void) { return "made"; }
        libsplit_status libsplit_copy(const libsplit_tensor *input, const libsplit_params *params,
                                      const libsplit_tensor *outputs, size_t count,
                                      const libsplit_executor *executor, libsplit_error *error) {
            return 0;
        }"""

    def test_a_build_that_writes_other_bytes_is_told(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.compare("--rows", "W10b", new=self.made(directory, self.COPIES_NOTHING))
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: bytes differ, first at 0 of", done.stderr)

    def test_the_new_build_is_forced_or_says_why_not(self):
        force = """
            int32_t libsplit_test_force(const char *words) {
                return strcmp(words, "avx2 low") == 0 ? 0 : strcmp(words, "neon") == 0 ? 1 : 2;
            }"""
        with tempfile.TemporaryDirectory() as directory:
            new = self.made(directory, self.COPIES_NOTHING + force)
            for words, message in [("avx2 low", "bytes differ"), ("neon", "this CPU does not support that"),
                                   ("avx3", "does not know one of the words")]:
                self.assertIn(message, self.compare("--rows", "W10b", "--force", words, new=new).stderr)
        if not hasattr(ctypes.CDLL(str(BUILD / "lib/libsplit.so")), "libsplit_test_force"):
            self.assertIn("has no libsplit_test_force", self.compare("--force", "low").stderr)

    def test_a_plan_describes_itself(self):
        describe = """
            size_t libsplit_plan_size(int32_t rank, size_t count) { return 64; }
            libsplit_status libsplit_plan_init(libsplit_plan *plan, size_t size, const libsplit_tensor *input,
                                               const libsplit_params *params, const libsplit_tensor *outputs,
                                               size_t count, libsplit_error *error) {
                memcpy(plan, "a plan", 7);
                return 0;
            }
            libsplit_status libsplit_plan_copy(const libsplit_plan *plan, const void *input, void *const *outputs,
                                               size_t count, const libsplit_executor *executor,
                                               libsplit_error *error) { return 0; }
            size_t libsplit_plan_describe(const libsplit_plan *plan, char *buffer, size_t size) {
                memcpy(buffer, plan, 7);
                return 6;
            }"""
        with tempfile.TemporaryDirectory() as directory:
            path = self.made(directory, self.COPIES_NOTHING + describe)
            done = self.bench("--split", "uint8 [2,3] axis 1: 1,2", "--competitors", "flat", "--rounds", "1",
                              "--seconds", "0", "--library", f"made={path}")
        self.assertIn("made: a plan\n", done.stdout, done.stderr)

    def test_any_split_is_measured_and_explained(self):
        done = self.bench("--split", "uint16 [300,37,5] axis 1: 12,13,12", "--competitors", "flat,numpy",
                          "--rounds", "1", "--seconds", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("uint16 [300,37,5] axis 1: 12,13,12\nlibsplit: "), done.stdout)
        self.assertRegex(done.stdout, r"\| split 1 \| uint16 \[300,37,5\] axis 1: 12,13,12 ")
        done = self.bench("--split", "uint16 [300]")
        self.assertIn("error: --split: 'uint16 [300]' is not like", done.stderr)

    def test_pipelines_are_beside_memcpy(self):
        works = [work for work in pipeline.WORKLOADS if work.bytes <= workloads.MIB]
        memory = bench.Memory(works)
        native = Native(BUILD / "bench/bench_native.so")
        libraries = {"libsplit": Libsplit(BUILD / "lib/libsplit.so", native)}
        steps = []
        for work in works:
            case = memory.case(work, 1, 0)
            steps += pipeline.measure(case, libraries, native, 0, 0)
            for target, piece in zip(case.targets, work.slices(case.source), strict=True):
                self.assertEqual(target.tobytes(), piece.tobytes())
        table = pipeline.table(steps)
        self.assertEqual(len(re.findall(r"^\| \w+ (512K|1M) ", table, re.MULTILINE)), 8)
        self.assertIn("| memcpy, µs | libsplit, µs | libsplit, NEVER_STREAM, µs |", re.sub(" +", " ", table))
        self.assertTrue(all(min(step.writing, step.copying, step.reading) > 0 for step in steps))

    def test_instructions_are_counted_in_each_arrangement(self):
        if shutil.which("valgrind") is None:
            self.skipTest("needs valgrind")
        command = [sys.executable, HERE / "instructions.py", BUILD / "lib/libsplit.so", "--pieces", "3",
                   "--program", BUILD / "bench/one_call"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^\| (\w+) +\| (.*?) +\| +(\d+) \|$", done.stdout, re.MULTILINE)
        self.assertEqual({row[0] for row in rows}, {"copy", "infer", "view", "plan_copy", "plan_view"})
        self.assertTrue(all(50 < int(row[2]) < 100_000 for row in rows))

    def test_an_unknown_workload_is_named(self):
        done = self.bench("--only", "W1,W99")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: there is no workload W99", done.stderr)


if __name__ == "__main__":
    unittest.main()
