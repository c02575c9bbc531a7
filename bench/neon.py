#!/usr/bin/env python3
"""Counts the instructions that the loops for NEON take, against loops that are written by hand for one shape.

    neon.py [W5 W6 R12x3 L6r]

The library for 64-bit Arm is built, and runs in QEMU's emulator of one CPU, whose plugin counts. So these are numbers
of instructions, always the same for the same files, and no times. Outputs are checked. Needs Debian's qemu-user and
gcc-aarch64-linux-gnu, and Rust's library for aarch64-unknown-linux-gnu; without them, the exit code is 77.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import shutil
import subprocess
import sys

import bench
import report
import workloads

HERE = bench.ROOT / "bench/neon"
CC = "aarch64-linux-gnu-gcc"
RUST_TARGET = "aarch64-unknown-linux-gnu"
SYSTEM = "/usr/aarch64-linux-gnu"
SPLITS = ["W5", "W6", "R12x3", "L6r"]
LINE = 64
CACHED_BYTES = 4 << 20  # read and written, on any CPU


def run(*command: str | pathlib.Path) -> subprocess.CompletedProcess:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done


def build(directory: pathlib.Path) -> None:
    """Builds the library, the program that makes the calls, and the plugin."""
    run("cmake", "-S", bench.ROOT, "-B", directory, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_SYSTEM_NAME=Linux",
        "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_C_COMPILER={CC}", "-DLIBSPLIT_BUILD_TESTS=OFF",
        "-DLIBSPLIT_BUILD_EXAMPLES=OFF", "-DLIBSPLIT_BUILD_BENCH=OFF")
    run("cmake", "--build", directory, "--target", "libsplit-build")
    strict = ["-std=c11", "-O3", "-Wall", "-Wextra", "-Wpedantic"]
    run(CC, *strict, f"-I{bench.ROOT / 'include'}", "-o", directory / "splits", HERE / "splits.c",
        f"-L{directory / 'lib'}", "-lsplit", f"-Wl,-rpath,{directory / 'lib'}")
    run("cc", *strict, "-shared", "-fPIC", "-fvisibility=hidden", "-o", directory / "count.so", HERE / "count.c")


def executed(directory: pathlib.Path, split: str, way: str, parts: int, calls: int) -> int:
    """Returns the number of instructions that the program executes."""
    done = run("qemu-aarch64", "-L", SYSTEM, "-plugin", directory / "count.so", directory / "splits", split, way,
               str(parts), str(calls))
    return int(done.stderr.splitlines()[-1])


def parts_in_caches(work: workloads.Workload) -> int:
    """Returns into how many parts to cut the rows so that the caches hold the input and the outputs of one."""
    return 1 << max(0, math.ceil(math.log2(2 * work.bytes / CACHED_BYTES)))


def count(directory: pathlib.Path, work: workloads.Workload, way: str, parts: int) -> float:
    """Returns the instructions for a line of output: what two calls take more than one is what a call takes."""
    once, twice = (executed(directory, work.name, way, parts, calls) for calls in [1, 2])
    return (twice - once) * parts * LINE / work.bytes


def missing() -> str:
    """Says what has to be installed first; empty if nothing has."""
    programs = [program for program in ["qemu-aarch64", CC, "cmake", "cc", "rustc"] if shutil.which(program) is None]
    if programs:
        return f"no {', '.join(programs)} (Debian: qemu-user, gcc-aarch64-linux-gnu)"
    library = pathlib.Path(run("rustc", "--print", "target-libdir", "--target", RUST_TARGET).stdout.strip())
    return "" if library.exists() else f"no Rust for {RUST_TARGET} (rustup target add {RUST_TARGET})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("splits", nargs="*", default=SPLITS, metavar="SPLIT", help="count only these")
    parser.add_argument("--build", type=pathlib.Path, default=bench.ROOT / "build/neon",
                        help="the directory in which everything is built")
    args = parser.parse_args()
    if missing():
        print(f"skipped: {missing()}")
        return 77
    build(args.build.resolve())
    works = {work.name: work for work in workloads.ALL}
    lines = []
    for split in args.splits:
        work = works[split]
        ways = [("libsplit", 1), ("libsplit", parts_in_caches(work)), ("by-hand", 1)]
        lines.append([split, work.describe(), *(f"{count(args.build.resolve(), work, *way):.0f}" for way in ways)])
    print(f"Instructions for {LINE} bytes of output:\n")
    head = ["", "split", "libsplit", "libsplit, fewer rows, which caches hold", "by hand"]
    print(report.markdown(head, lines, text_columns=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
