"""Installs libsplit, moves it, and builds and runs programs with it in each way users do.

usage: consumer.py install|pkg-config|pkg_check_modules|meson|find_package|components
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
CONSUMER = SOURCE / "consumer"
PROGRAM = CONSUMER / "main.c"
EXPECTED = "1 2 | 3 4 5 6\n"

parser = argparse.ArgumentParser()
parser.add_argument("way")
parser.add_argument("--build", type=Path, help="the build directory of libsplit")
parser.add_argument("--installed", type=Path, help="where it lies already, instead of 'install'")
parser.add_argument("--config", help="its build type")
parser.add_argument("--cmake")
parser.add_argument("--cc")
parser.add_argument("--cxx", default="", help="the C++ compiler, if there is one")
parser.add_argument("--nm", default="nm")
args = parser.parse_args()

work = args.build.resolve() / "consumer"
moved = args.installed or work / "moved"
work.mkdir(exist_ok=True)


def run(*command, check=True, **env):
    command = [str(word) for word in command]
    print("+", shlex.join(command), flush=True)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, env={**os.environ, **env})
    print(done.stdout, end="", flush=True)
    if check:
        done.check_returncode()
    return done.stdout


def check(program, shared=False):
    libraries = str(next(moved.rglob("libsplit.so")).parent) if shared else ""
    output = run(program, LD_LIBRARY_PATH=libraries)
    assert output == EXPECTED, f"{program} printed {output!r}, not {EXPECTED!r}"


def check_plugin(plugin):
    exported = run(args.nm, "-D", "--defined-only", plugin)
    assert "split" in exported and "libsplit_" not in exported, f"{plugin} exports libsplit"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def pkg_config_settings():
    if shutil.which("pkg-config") is None:
        skip("no pkg-config on this machine")
    settings = {"PKG_CONFIG_PATH": str(next(moved.rglob("libsplit.pc")).parent)}
    if args.installed:
        settings["PKG_CONFIG_SYSROOT_DIR"] = str(args.installed.parent)
    return settings


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
    """As make does it, with objects first, and as people do it."""
    settings = pkg_config_settings()

    def flags(*names):
        return shlex.split(run("pkg-config", *names, **settings))

    run(args.cc, "-c", PROGRAM, "-o", work / "main.o", *flags("--cflags", "libsplit"))
    for name in "libsplit", "libsplit-static":
        run(args.cc, work / "main.o", "-o", work / "program", *flags("--libs", name))
        check(work / "program", shared=name == "libsplit")
        run(args.cc, PROGRAM, "-o", work / "program", *flags("--cflags", "--libs", name))
        check(work / "program", shared=name == "libsplit")
        run(args.cc, "-static", PROGRAM, "-o", work / "program", *flags("--cflags", "--libs", name))
        check(work / "program")
    run(args.cc, "-shared", "-fPIC", SOURCE / "linking" / "split.c", "-o", work / "plugin.so",
        *flags("--cflags", "--libs", "libsplit-static"))
    check_plugin(work / "plugin.so")
    if args.cxx:
        run(args.cxx, "-std=c++17", PROGRAM.with_suffix(".cpp"), "-o", work / "cpp",
            *flags("--cflags", "--libs", "libsplit"))
        check(work / "cpp", shared=True)
    # In /usr, what compilers search by themselves is not repeated. (That of PyPI does not know what they search.)
    usr = work / "usr"
    shutil.rmtree(usr, ignore_errors=True)
    run(args.cmake, "--install", args.build, "--prefix", "/usr", "--config", args.config, DESTDIR=str(usr))
    settings = {"PKG_CONFIG_LIBDIR": str(next(usr.rglob("libsplit.pc")).parent),
                "PKG_CONFIG_SYSTEM_INCLUDE_PATH": "/usr/include"}
    assert "-I" not in (said := " ".join(flags("--cflags", "libsplit"))), said
    settings["PKG_CONFIG_SYSROOT_DIR"] = str(usr)
    assert flags("--cflags", "libsplit") == [f"-I{usr}/usr/include"]


def cmake_project(source, *options, **settings):
    build = work / args.way
    shutil.rmtree(build, ignore_errors=True)
    # A Debug build, as users make too.
    run(args.cmake, "-S", source, "-B", build, f"-DCMAKE_C_COMPILER={args.cc}", "-DCMAKE_BUILD_TYPE=Debug",
        *options, **settings)
    run(args.cmake, "--build", build, **settings)
    return build


def find_package():
    options = [f"-DCMAKE_PREFIX_PATH={moved}", f"-DWITH_CXX={bool(args.cxx)}"]
    if args.cxx:
        options.append(f"-DCMAKE_CXX_COMPILER={args.cxx}")
    build = cmake_project(CONSUMER, *options)
    for program in "shared", "static", *(["cpp"] if args.cxx else []):
        check(build / program)
    check_plugin(next(build.glob("*plugin*")))


def components():
    """The libraries may be asked for by name, and versions by the rules of the ABI."""
    def found(*arguments, at=moved):
        build = work / "components"
        shutil.rmtree(build, ignore_errors=True)
        said = run(args.cmake, "-S", CONSUMER / "components", "-B", build, f"-DCMAKE_PREFIX_PATH={at}",
                   f"-DWITH={';'.join(arguments)}", check=False, CMAKE_PREFIX_PATH="")
        return re.search(r"libsplit_FOUND is (\d)", said)[1] == "1"

    version = re.search(r'set\(PACKAGE_VERSION "([0-9.]+)"', next(
        moved.rglob("libsplit-config-version.cmake")).read_text())[1]
    major, minor, patch = map(int, version.split("."))
    assert found() and found(version, "EXACT") and found(f"{major}.{minor}")
    assert not found(f"{major}.{minor}.{patch + 1}") and not found(f"{major + 1}.0")
    assert minor == 0 or found(f"{major}.{minor - 1}"), "a program that was built with an older one works"
    assert found("COMPONENTS", "shared") and found("COMPONENTS", "static", "shared")
    assert found("OPTIONAL_COMPONENTS", "nonsense") and not found("COMPONENTS", "nonsense")
    without = work / "without_static"
    shutil.rmtree(without, ignore_errors=True)
    shutil.copytree(moved, without, symlinks=True)
    next(without.rglob("libsplit.a")).unlink()
    assert found("COMPONENTS", "shared", at=without) and not found("COMPONENTS", "static", at=without)


def pkg_check_modules():
    build = cmake_project(CONSUMER / "pkg_check_modules", **pkg_config_settings())
    for library in "shared", "static":
        programs = list(build.glob(f"{library}-*"))
        assert len(programs) == 5, programs
        for program in programs:
            check(program, shared=library == "shared")
    check_plugin(next(build.glob("*plugin*")))


def meson():
    settings = pkg_config_settings()
    if shutil.which("meson") is None or shutil.which("ninja") is None:
        skip("no meson or no ninja on this machine (PyPI: meson, ninja)")
    source, build = work / "meson-source", work / "meson"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(build, ignore_errors=True)
    source.mkdir()
    for file in CONSUMER / "meson.build", PROGRAM, SOURCE / "linking" / "split.c":
        shutil.copy(file, source)
    run("meson", "setup", source, build, CC=args.cc, **settings)
    run("ninja", "-C", build)
    for program in "shared", "static":
        check(build / program, shared=True)
    check_plugin(next(build.glob("*plugin*.so")))


globals()[args.way.replace("-", "_")]()
