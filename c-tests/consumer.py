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
parser.add_argument("--system", default="Linux", help="for which the programs are built")
parser.add_argument("--toolchain", help="the toolchain file for CMake, if they are not built for this machine")
parser.add_argument("--target", default="", help="Rust's name of the machine that they are built for")
parser.add_argument("--emulator", default="", help="what runs them, a list of CMake; 'none' if nothing can")
args = parser.parse_args()

windows = args.system == "Windows"
suffix = ".exe" if windows else ""
emulator = [word for word in args.emulator.split(";") if word]
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


def check(program, *libraries):
    """Runs a program that finds the shared library in one of these directories, or needs none."""
    program = program.with_name(program.name + suffix)
    assert program.exists(), program
    if emulator == ["none"]:
        return
    variable = "PATH" if windows else "LD_LIBRARY_PATH"
    paths = [str(path) for path in libraries]
    before = [os.environ[variable]] if variable in os.environ else []
    env = {variable: os.pathsep.join(paths + before)} if paths else {}
    if windows and emulator:
        paths = [f"Z:{path}".replace("/", "\\") for path in paths]
        env = {"WINEPATH": ";".join([*paths, os.environ.get("WINEPATH", "")])}
    output = run(*emulator, program, **env)
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

    libdir = moved / "bin" if windows else pc.parent.parent
    run(args.cc, PROGRAM, "-o", work / "shared", *flags("libsplit"))
    check(work / "shared", libdir)
    run(args.cxx, "-std=c++17", PROGRAM.with_suffix(".cpp"), "-o", work / "cpp",
        *flags("libsplit"))
    check(work / "cpp", libdir)

    run(args.cc, PROGRAM, "-o", work / "static", *flags("libsplit-static"))
    check(work / "static")
    if args.system == "Darwin":  # which has no static libc
        return
    for libsplit in flags("libsplit-static"), flags("libsplit"):
        run(args.cc, "-static", PROGRAM, "-o", work / "all-static", *libsplit)
        check(work / "all-static")


def cmake_project(name, *options):
    # A Debug build, as users make too; with add_subdirectory it runs cargo's dev profile.
    build = work / name
    if args.toolchain:
        options = (f"-DCMAKE_TOOLCHAIN_FILE={args.toolchain}", f"-DLIBSPLIT_CARGO_TARGET={args.target}", *options)
    run(args.cmake, "-S", PROGRAM.parent, "-B", build, f"-DCMAKE_C_COMPILER={args.cc}",
        f"-DCMAKE_CXX_COMPILER={args.cxx}", "-DCMAKE_BUILD_TYPE=Debug", *options)
    run(args.cmake, "--build", build)
    directory = [moved / "bin", build / "libsplit/lib"] if windows else []
    check(build / "shared", *directory)
    check(build / "static")
    check(build / "cpp", *directory)


ways = {
    "install": install,
    "pkg-config": pkg_config,
    "find_package": lambda: cmake_project("find_package", f"-DCMAKE_PREFIX_PATH={moved}"),
    "add_subdirectory": lambda: cmake_project("add_subdirectory", f"-DLIBSPLIT_SOURCE={SOURCE}"),
}
ways[args.way]()
