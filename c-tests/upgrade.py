"""An upgrade is rehearsed. A next release is made up, with a new status and with a new field at the end of the structures for
parameters and for errors. Programs that were built with the last release's header and library run with it, and programs that
were built with it run with today's library: where they use what is new, today's library refuses that.

usage: upgrade.py --library FILE --soname NAME --work DIRECTORY --cmake PROGRAM --cc PROGRAM
"""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--library", type=Path, help="today's shared library")
parser.add_argument("--soname")
parser.add_argument("--work", type=Path)
parser.add_argument("--cmake")
parser.add_argument("--cc")
args = parser.parse_args()

TESTS = Path(__file__).resolve().parent
SOURCES = TESTS.parent
LAST = max(TESTS.glob("abi/*/libsplit.h"), key=lambda header: [int(part) for part in header.parent.name.split(".")]).parent
NEXT = args.work / "next"

# What the made-up release changes, file by file: each text must be there once.
VERSION = re.search(r'^version = "(\d+\.\d+\.)(\d+)"', (SOURCES / "Cargo.toml").read_text("utf-8"), re.M)
OLD, NEW = f"{VERSION[1]}{VERSION[2]}", f"{VERSION[1]}{int(VERSION[2]) + 1}"
STATUS = 1 + max(int(number) for number in re.findall(
    r"^#define LIBSPLIT_STATUS_ERROR_\w+ (\d+)$", (SOURCES / "include/libsplit.h").read_text("utf-8"), re.M))
CHANGES = {
    "Cargo.toml": [(f'version = "{OLD}"\nedition', f'version = "{NEW}"\nedition')],
    "Cargo.lock": [(f'name = "libsplit"\nversion = "{OLD}"', f'name = "libsplit"\nversion = "{NEW}"')],
    "include/libsplit.h": [
        (f"#define LIBSPLIT_VERSION_PATCH {VERSION[2]}\n", f"#define LIBSPLIT_VERSION_PATCH {int(VERSION[2]) + 1}\n"),
        ("#define LIBSPLIT_STATUS_OK 0\n", f"#define LIBSPLIT_STATUS_OK 0\n#define LIBSPLIT_STATUS_ERROR_SCALAR {STATUS}\n"),
        ("(opset), 0, NULL, 0, 1, 0 }", "(opset), 0, NULL, 0, 1, 0, 0 }"),
        ("LIBSPLIT_WORDS_C, 0, { 0 } }", "LIBSPLIT_WORDS_C, 0, { 0 }, 0 }"),
        ("} libsplit_params;", "  int64_t max_outputs;\n} libsplit_params;"),
        ("} libsplit_error;", "  uint64_t rule;\n} libsplit_error;"),
    ],
    "src/types.rs": [
        (f"VERSION_PATCH: u32 = {VERSION[2]};", f"VERSION_PATCH: u32 = {int(VERSION[2]) + 1};"),
        ("    pub const OK: Self = Self(0);\n    /// A required",
         f"    pub const OK: Self = Self(0);\n    /// New.\n    pub const ERROR_SCALAR: Self = Self({STATUS});\n    /// A required"),
        ("    pub flags: u32,\n}\n\n/// Details of an error",
         "    pub flags: u32,\n    /// New.\n    pub max_outputs: i64,\n}\n\n/// Details of an error"),
        ("            flags: 0,\n        }\n", "            flags: 0,\n            max_outputs: 0,\n        }\n"),
        ("    pub message: [c_char; 240],\n", "    pub message: [c_char; 240],\n    /// New.\n    pub rule: u64,\n"),
        ("        message: [0; 240],\n", "        message: [0; 240],\n        rule: 0,\n"),
    ],
    "src/error.rs": [
        ("kinds! {\n    Null", 'kinds! {\n    Scalar = ERROR_SCALAR, "New.";\n    Null'),
        ("    RankZero: Rank,\n", "    RankZero: Scalar,\n"),
    ],
    "src/ffi/parse.rs": [(
        "        Ok(ParsedCall { input, geometry, pieces, reads })\n",
        "        if stated.max_outputs != 0 && stated.max_outputs < pieces.count() {\n"
        "            return Err(Error::NumOutputsParam { expected: pieces.count(), actual: stated.max_outputs });\n"
        "        }\n"
        "        Ok(ParsedCall { input, geometry, pieces, reads })\n")],
    "src/ffi/guard.rs": [(
        "            (*error).actual = actual;\n",
        "            (*error).actual = actual;\n"
        "            if (*error).struct_size >= size_of::<libsplit_error>() {\n"
        "                (*error).rule = 1000 + status.0 as u64;\n"
        "            }\n")],
}


def run(*command, **environment):
    command = [str(word) for word in command]
    print("+", *command, flush=True)
    done = subprocess.run(command, env={**os.environ, **environment}, text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout


def make_next_release():
    """Returns the directory of its library."""
    for name in ["Cargo.toml", "Cargo.lock", "CMakeLists.txt", "build.rs", ".cargo", "bench/kernels.rs", "bench/tune", "cmake",
                 "include", "src", *(path.name for path in SOURCES.glob("LICENSE-*")),
                 *(["vendor"] if (SOURCES / "vendor").exists() else [])]:
        here, there = SOURCES / name, NEXT / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if here.is_dir():
            shutil.copytree(here, there, dirs_exist_ok=True)
        else:
            shutil.copy2(here, there)
    for name, replacements in CHANGES.items():
        text = (NEXT / name).read_text("utf-8")
        for before, after in replacements:
            assert text.count(before) == 1, f"{name} has {text.count(before)} times {before!r}"
            text = text.replace(before, after)
        (NEXT / name).write_text(text, "utf-8")
    run(args.cmake, "-S", NEXT, "-B", NEXT / "build", f"-DCMAKE_C_COMPILER={args.cc}", "-DLIBSPLIT_BUILD_TESTS=OFF",
        "-DLIBSPLIT_BUILD_EXAMPLES=OFF", "-DLIBSPLIT_BUILD_BENCH=OFF")
    run(args.cmake, "--build", NEXT / "build", "--target", "libsplit-build")
    return NEXT / "build/lib"


def build(name, source, header, libraries):
    program = args.work / name
    run(args.cc, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", header, "-I", TESTS, source, libraries / args.soname, "-o", program)
    return program


def check(program, libraries, expected):
    printed = run(program, LD_LIBRARY_PATH=str(libraries))
    print(printed, end="", flush=True)
    assert [line for line in expected if line not in printed.splitlines()] == [], (program, libraries, expected)
    assert "overwritten" not in printed, (program, libraries)


args.work.mkdir(parents=True, exist_ok=True)
shutil.rmtree(NEXT, ignore_errors=True)
now, then = make_next_release(), args.library.resolve().parent
old = build("upgrade-old", TESTS / "upgrade.c", LAST, then)
new = build("upgrade-new", TESTS / "upgrade.c", NEXT / "include", now)
works = ["infer: 0 LIBSPLIT_STATUS_OK", "copy: 0 LIBSPLIT_STATUS_OK", "pieces: 1 2, 3 4, 5 6"]
has_no_axis, is_scalar = "a scalar: 8 LIBSPLIT_STATUS_ERROR_RANK", f"a scalar: {STATUS} LIBSPLIT_STATUS_ERROR_SCALAR"
check(old, then, [*works, has_no_axis])
# An old program meets the new status, whose name the library knows.
check(old, now, [*works, is_scalar])
check(new, now, [*works, is_scalar, "at most 2: 13 LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS", "at most 2: rule 1013", "copy: rule 1000"])
# A new program learns that this library does not know the new field, whose value is left alone in an error.
check(new, then, [*works, has_no_axis, "at most 2: 3 LIBSPLIT_STATUS_ERROR_STRUCT_SIZE", "at most 2: rule 0"])
# Programs of old, with every structure at the end of its page.
run(build("upgrade-old-program", TESTS / "old_program.c", LAST, then), LD_LIBRARY_PATH=str(now))
for libraries in then, now:
    check(build("upgrade-consumer", TESTS / "consumer/main.c", LAST, then), libraries, ["1 2 | 3 4 5 6"])
