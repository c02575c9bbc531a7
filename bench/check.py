"""Tests the benchmark itself, without the other libraries; 'make test' runs it.

Environment: BUILD_DIR, where CMake has built libsplit and what the benchmark loads.
"""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import bench
import report
import workloads
from competitors import NumPy, Run

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", HERE.parent / "build/release"))
SMALL = [work for work in workloads.ALL if work.bytes <= 2 * workloads.MIB]


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


class Program(unittest.TestCase):
    def bench(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, HERE / "bench.py", "--build", BUILD, "--quiet", "--no-chart"]
        return subprocess.run([*command, *arguments], capture_output=True, text=True)

    def test_every_competitor_that_needs_no_library_is_right(self):
        only = ["W10", "W11u", "W13", "W15", "R12x3", "Useq", "X5x7"]
        with tempfile.TemporaryDirectory() as directory:
            done = self.bench("--only", ",".join(only), "--competitors", "flat,memcpy,numpy",
                              "--rounds", "2", "--seconds", "0", "--output", directory)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(pathlib.Path(directory) / "results.csv", newline="") as file:
                rows = list(csv.DictReader(file))
            tables = (pathlib.Path(directory) / "results.md").read_text(encoding="utf-8")
        self.assertEqual({row["right"] for row in rows}, {"True"})
        self.assertEqual({row["workload"] for row in rows}, set(only))
        self.assertEqual({(row["threads"], row["offset"]) for row in rows},
                         {("1", "0"), ("1", "16"), ("2", "0"), ("2", "16")})
        self.assertEqual({row["competitor"] for row in rows},
                         {"libsplit", "1 thread", "plain", "stream", "memcpy", "numpy"})
        self.assertTrue(all(float(row["median_ns"]) > 0 for row in rows))
        self.assertIn("| libsplit | copy ", tables)
        self.assertIn(tables, done.stdout)

    def test_an_unknown_workload_is_named(self):
        done = self.bench("--only", "W1,W99")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: no workload W99", done.stderr)


if __name__ == "__main__":
    unittest.main()
