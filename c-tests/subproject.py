"""A project that has libsplit within stays as it is without, and gets the same libraries as everybody: whatever its
build type, its generator, its linker flags, and the user's configuration of cargo.

usage: subproject.py CASE --build BUILD --work WORK --cargo-dir DIRECTORY --cmake CMAKE --cc CC --avx512 ON|OFF
"""

import argparse
import filecmp
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
PARENT = SOURCE / "c-tests" / "subproject"
# What distributions, and projects that are careful, give to linkers: Debian, Fedora, KDE and LLVM.
LINKER_FLAGS = [
    "-Wl,-z,defs",
    "-Wl,--no-undefined",
    "-Wl,--as-needed",
    "-Wl,-z,relro -Wl,-z,now -Wl,-z,defs -Wl,--as-needed -Wl,-O1",
    "-Wl,-z,relro -Wl,--as-needed -Wl,-z,now -Wl,--build-id=sha1 -Wl,-z,pack-relative-relocs",
    "-Wl,--fatal-warnings -Wl,--no-undefined -Wl,--no-allow-shlib-undefined",
]
# A user's configuration of cargo. None of it may reach the C library.
CARGO_CONFIG = """
[build]
target = "wasm32-unknown-unknown"
target-dir = "elsewhere"
[profile.release]
opt-level = 0
lto = "off"
panic = "unwind"
strip = true
debug-assertions = true
overflow-checks = true
incremental = true
"""

parser = argparse.ArgumentParser()
parser.add_argument("case")
parser.add_argument("--build", type=Path, help="the build directory of libsplit")
parser.add_argument("--work", type=Path, help="where to work")
parser.add_argument("--cargo-dir", help="of that build, so that cargo need not build again")
parser.add_argument("--cmake")
parser.add_argument("--cc")
parser.add_argument("--avx512", default="ON")
args = parser.parse_args()
work = args.work / args.case


def run(*command, **env):
    command = [str(word) for word in command]
    print("+", shlex.join(command), flush=True)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **env})
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nended with {done.returncode}")
    return done.stdout


def configure(name, *options, how="add_subdirectory", source=SOURCE, **env):
    build = work / name
    run(args.cmake, "-S", PARENT, "-B", build, f"-DHOW={how}", f"-DLIBSPLIT_SOURCE={source}",
        f"-DLIBSPLIT_CARGO_DIR={args.cargo_dir}", f"-DLIBSPLIT_AVX512={args.avx512}", f"-DCMAKE_C_COMPILER={args.cc}", *options, **env)
    return build


def build_and_run(build, programs="", config="", **env):
    run(args.cmake, "--build", build, *(["--config", config] if config else []), **env)
    for program in "asserts", "with-libsplit", "with-libsplit-static":
        run(build / programs / program)
    return next(build.rglob("lib/libsplit.so")).resolve()


def check_same(library):
    """Whether it is optimised, stripped and so on need not be asked: it is the one that is delivered."""
    delivered = (args.build / "lib" / "libsplit.so").resolve()
    assert filecmp.cmp(library, delivered, shallow=False), f"{library} is not as {delivered}"


def cache(build):
    """Returns the entries that users see and set, but for libsplit's own, which have its name."""
    entries = {}
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        match = re.match(r"([^#/][^:]*):([A-Z]+)=(.*)", line)
        if match and match[2] not in ("INTERNAL", "STATIC") and not match[1].lower().startswith("libsplit"):
            entries[match[1]] = match[3]
    del entries["HOW"]
    return entries


def unchanged():
    without = configure("without", how="without")
    within = configure("within")
    assert cache(within) == cache(without)
    assert (within / "found.txt").read_text() == (without / "found.txt").read_text()
    commands = [next(entry["command"] for entry in json.loads((build / "compile_commands.json").read_text())
                     if entry["file"].endswith("asserts.c")) for build in (within, without)]
    assert commands[0] == commands[1], commands
    check_same(build_and_run(within))
    assert "Total Tests: 0" in run(Path(args.cmake).with_name("ctest"), "--test-dir", within, "--show-only")
    installed = work / "installed"
    shutil.rmtree(installed, ignore_errors=True)
    run(args.cmake, "--install", within, "--prefix", installed)
    files = [str(path.relative_to(installed)) for path in installed.rglob("*") if not path.is_dir()]
    assert files == ["bin/asserts"], f"installed {files}"


def installs():
    build = configure("installs", "-DLIBSPLIT_INSTALL=ON")
    build_and_run(build)
    installed = work / "installed"
    shutil.rmtree(installed, ignore_errors=True)
    run(args.cmake, "--install", build, "--prefix", installed)
    for file in "bin/asserts", "include/libsplit.h", "lib*/libsplit.so.0", "lib*/cmake/libsplit/libsplit-config.cmake":
        assert list(installed.glob(file)), f"{file} was not installed"


def build_types():
    generators = ["Unix Makefiles"] if shutil.which("make") else []
    if shutil.which("ninja"):
        generators += ["Ninja", "Ninja Multi-Config"]
    for generator in generators:
        name = generator.replace(" ", "-")
        if generator == "Ninja Multi-Config":
            build = configure(name, "-G", generator)
            check_same(build_and_run(build, "Debug", "Debug"))
        else:
            for build_type in "", "Debug":
                build = configure(f"{name}-{build_type}", "-G", generator, f"-DCMAKE_BUILD_TYPE={build_type}")
                check_same(build_and_run(build))


def linker_flags():
    flags = list(LINKER_FLAGS)
    if shutil.which("dpkg-buildflags"):
        flags.append(run("dpkg-buildflags", "--get", "LDFLAGS", DEB_BUILD_MAINT_OPTIONS="hardening=+all").strip())
    for linker in "gold", "lld":
        if shutil.which(f"ld.{linker}"):
            flags.append(f"-fuse-ld={linker} -Wl,-z,defs")
    for number, each in enumerate(flags):
        build = configure(f"flags-{number}", f"-DCMAKE_SHARED_LINKER_FLAGS={each}", f"-DCMAKE_EXE_LINKER_FLAGS={each}")
        build_and_run(build)
    # As distributions set them.
    environment = {"LDFLAGS": LINKER_FLAGS[0], "CFLAGS": "-O2 -g -flto=auto -ffat-lto-objects -fstack-protector-strong"}
    build_and_run(configure("environment", **environment), **environment)


def cargo_settings():
    """The same settings as in CARGO_CONFIG, from the environment."""
    environment, section = {}, ""
    for line in CARGO_CONFIG.split("\n"):
        if line.startswith("["):
            section = line.strip("[]")
        elif line:
            name, value = line.split(" = ")
            variable = f"cargo_{section}_{name}".replace(".", "_").replace("-", "_").upper()
            environment[variable] = value.strip('"')
    build = configure("environment", **environment)
    check_same(build_and_run(build, **environment))


def archive():
    """FetchContent of an archive, among files of a user who has a configuration of cargo."""
    global work
    git = shutil.which("git")
    if not git or not (SOURCE / ".git").exists():
        print("skipped: no git, which tells what belongs into an archive")
        sys.exit(77)
    listed = subprocess.run([git, "ls-files", "-z"], cwd=SOURCE, text=True, stdout=subprocess.PIPE, check=True)
    # Elsewhere, because cargo also reads the configurations in all directories above.
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        (work / ".cargo").mkdir()
        (work / ".cargo" / "config.toml").write_text(CARGO_CONFIG)
        with tarfile.open(work / "libsplit.tar.gz", "w:gz", compresslevel=1) as tar:
            for name in filter(None, listed.stdout.split("\0")):
                tar.add(SOURCE / name, f"libsplit-0.1.0/{name}")
        build = configure("fetched", how="FetchContent", source=work / "libsplit.tar.gz")
        check_same(build_and_run(build))


def unoptimised():
    """Who debugs libsplit itself gets it with its checks."""
    build = configure("unoptimised", "-DCMAKE_BUILD_TYPE=Debug", "-DLIBSPLIT_OPTIMIZE=OFF")
    library = build_and_run(build)
    assert library.stat().st_size > 2 * (args.build / "lib/libsplit.so").stat().st_size, f"{library} is optimised"


def local_directory():
    build = configure("fetched", how="FetchContent", source=SOURCE)
    check_same(build_and_run(build))


shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
globals()[args.case]()
