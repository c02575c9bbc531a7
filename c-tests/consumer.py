"""Installs libsplit, moves it, and builds and runs programs with it in each way users do.

usage: consumer.py install|pkg-config|find_package|add_subdirectory
"""

import argparse
import os
import shlex
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
PROGRAM = SOURCE / "c-tests" / "consumer" / "main.c"
EXPECTED = "1 2 | 3 4 5 6\n"

parser = argparse.ArgumentParser()
parser.add_argument("way")
parser.add_argument("--build", type=Path, help="the build directory of libsplit")
parser.add_argument("--installed", type=Path, help="where it lies already, instead of 'install'")
parser.add_argument("--config", help="its build type")
parser.add_argument("--cmake")
parser.add_argument("--cc")
parser.add_argument("--cxx", default="c++")
args = parser.parse_args()

work = args.build / "consumer"
moved = args.installed or work / "moved"
work.mkdir(exist_ok=True)


def run(*command, **env):
    command = [str(word) for word in command]
    print("+", shlex.join(command), flush=True)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, env={**os.environ, **env})
    print(done.stdout, end="", flush=True)
    done.check_returncode()
    return done.stdout


def check(program, **env):
    output = run(program, **env)
    assert output == EXPECTED, f"{program} printed {output!r}, not {EXPECTED!r}"


def install():
    """Nothing may depend on where it was installed, so that directory is gone afterwards."""
    first = work / "installed"
    shutil.rmtree(first, ignore_errors=True)
    shutil.rmtree(moved, ignore_errors=True)
    run(args.cmake, "--install", args.build, "--prefix", first, "--config", args.config)
    empty = [str(path) for path in first.rglob("*") if path.is_dir() and not any(path.iterdir())]
    assert not empty, f"empty directories were installed: {empty}"
    first.rename(moved)


def pkg_config():
    (pc,) = moved.rglob("libsplit.pc")

    def flags(name):
        path = {"PKG_CONFIG_PATH": str(pc.parent)}
        return shlex.split(run("pkg-config", "--cflags", "--libs", name, **path))

    libdir = pc.parent.parent
    run(args.cc, PROGRAM, "-o", work / "shared", *flags("libsplit"))
    check(work / "shared", LD_LIBRARY_PATH=str(libdir))
    run(args.cxx, "-std=c++17", PROGRAM.with_suffix(".cpp"), "-o", work / "cpp",
        *flags("libsplit"))
    check(work / "cpp", LD_LIBRARY_PATH=str(libdir))

    run(args.cc, PROGRAM, "-o", work / "static", *flags("libsplit-static"))
    check(work / "static")
    for libsplit in flags("libsplit-static"), flags("libsplit"):
        run(args.cc, "-static", PROGRAM, "-o", work / "all-static", *libsplit)
        check(work / "all-static")


def cmake_project(name, *options):
    # A Debug build, as users make too; with add_subdirectory it runs cargo's dev profile.
    build = work / name
    run(args.cmake, "-S", PROGRAM.parent, "-B", build, f"-DCMAKE_C_COMPILER={args.cc}",
        f"-DCMAKE_CXX_COMPILER={args.cxx}", "-DCMAKE_BUILD_TYPE=Debug", *options)
    run(args.cmake, "--build", build)
    check(build / "shared")
    check(build / "static")
    check(build / "cpp")


ways = {
    "install": install,
    "pkg-config": pkg_config,
    "find_package": lambda: cmake_project("find_package", f"-DCMAKE_PREFIX_PATH={moved}"),
    "add_subdirectory": lambda: cmake_project("add_subdirectory", f"-DLIBSPLIT_SOURCE={SOURCE}"),
}
ways[args.way]()
