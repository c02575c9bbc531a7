"""Users' programs for another system, built with a copy of libsplit that was installed and then moved: by the plain
compiler, by pkg-config, and by CMake. An emulator runs them, if there is one.

usage: elsewhere.py --build DIRECTORY --system NAME --cmake PROGRAM --cc PROGRAM [--cxx PROGRAM]
                    [--toolchain FILE] [--flags WORDS] [--emulator WORDS]
"""

import argparse
import os
import shlex
import shutil
import subprocess
from pathlib import Path

CONSUMER = Path(__file__).resolve().parent / "consumer"
EXPECTED = "1 2 | 3 4 5 6\n"

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--build", type=Path, help="the build directory of libsplit")
parser.add_argument("--system")
parser.add_argument("--cmake")
parser.add_argument("--cc")
parser.add_argument("--cxx", default="")
parser.add_argument("--toolchain", default="", help="the toolchain file that libsplit was built with")
parser.add_argument("--flags", default="", help="of the C compiler for that system")
parser.add_argument("--emulator", default="", help="what runs the programs")
args = parser.parse_args()

work = args.build.resolve() / "elsewhere"
moved = work / "moved"
cc = [args.cc, *shlex.split(args.flags)]
emulator = shlex.split(args.emulator)
suffix = ".exe" if args.system == "Windows" else ""
count = 0


def run(*command, **env):
    command = [str(word) for word in command]
    print("+", shlex.join(command), flush=True)
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env={**os.environ, **env})
    print(done.stdout, end="", flush=True)
    return done.stdout


def check(program):
    global count
    program = program.with_name(program.name + suffix)
    assert program.exists(), program
    count += 1
    if not emulator:
        return
    env = {"LD_LIBRARY_PATH": str(moved / "lib")}
    if args.system == "Windows":
        path = f"Z:{moved}/bin".replace("/", "\\")
        env = {"WINEPATH": f"{path};{os.environ.get('WINEPATH', '')}"}
    output = run(*emulator, program, **env)
    assert output == EXPECTED, f"{program} printed {output!r}, not {EXPECTED!r}"


shutil.rmtree(work, ignore_errors=True)
run(args.cmake, "--install", args.build, "--prefix", work / "installed", "--component", "runtime")
run(args.cmake, "--install", args.build, "--prefix", work / "installed", "--component", "development")
(work / "installed").rename(moved)

main, library = CONSUMER / "main.c", moved / "lib"
run(*cc, main, "-I", moved / "include", "-L", library, "-lsplit", "-o", work / "plain")
check(work / "plain")
names = ["libsplit", "libsplit-static"] if shutil.which("pkg-config") else []
if not names:
    print("not tried: pkg-config, which this machine does not have")
for name in names:
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", name, PKG_CONFIG_PATH=str(library / "pkgconfig")))
    run(*cc, main, *flags, "-o", work / name)
    check(work / name)
    if args.system != "Darwin":  # which has no static libc
        run(*cc, "-static", main, *flags, "-o", work / f"{name}-all-static")
        check(work / f"{name}-all-static")
options = [f"-DCMAKE_TOOLCHAIN_FILE={args.toolchain}"] if args.toolchain else [f"-DCMAKE_C_COMPILER={args.cc}"]
run(args.cmake, "-S", CONSUMER, "-B", work / "cmake", *options, f"-Dlibsplit_ROOT={moved}",
    f"-DWITH_CXX={bool(args.cxx)}", "-DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH")
run(args.cmake, "--build", work / "cmake")
for name in "shared", "static", *(["cpp"] if args.cxx else []):
    check(work / "cmake" / name)
print(f"{count} programs")
