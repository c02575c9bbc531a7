"""On Windows and macOS, the libraries have the header's functions and nothing else for programs, and need nothing but
the functions that move bytes. The shared one says which version it is.

usage: symbols.py --system Windows|Darwin --header FILE --shared FILE --static FILE --version NUMBER
                  --nm PROGRAM --inspect PROGRAM [--archive-of-cargo]
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--system", choices=["Windows", "Darwin"])
parser.add_argument("--header", type=Path)
parser.add_argument("--shared")
parser.add_argument("--static")
parser.add_argument("--version")
parser.add_argument("--nm", help="lists an archive's symbols")
parser.add_argument("--inspect", help="objdump for Windows, otool for macOS")
parser.add_argument("--archive-of-cargo", action="store_true", help="the archive is as cargo made it")
args = parser.parse_args()
errors = []


def run(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def expect(what, actual, allowed, required=()):
    print(f"{what}: {sorted(actual)}")
    if actual - set(allowed) or set(required) - actual:
        errors.append(f"{what} differ from {sorted(required or allowed)}")


def globals_of(file, kind):
    """Names of the global symbols that nm lists as defined or undefined, as C spells them."""
    lines = run(args.nm, "-g", file).splitlines()
    found = {words[-1] for words in map(str.split, lines) if len(words) > 1 and (words[-2] == "U") == (kind == "undefined")}
    return {name.removeprefix("_") for name in found} if args.system == "Darwin" else found


header = re.sub(r"/\*.*?\*/", "", args.header.read_text("utf-8"), flags=re.S)
functions = set(re.findall(r"^(?:LIBSPLIT_API )?[a-z][^;{}#]*?\b(libsplit_[a-z_]+)\(", header, flags=re.M))
functions -= set(re.findall(r"^static inline [^;{}]*?(libsplit_[a-z_]+)\(", header, flags=re.M))
bytes_are_moved_by = {"memcpy", "memmove", "memset", "memcmp"}

if args.system == "Windows":
    text = run(args.inspect, "-p", args.shared)
    exported = set(re.findall(r"^\s*\[ *\d+\] (?:\+base\[ *\d+\] +[0-9a-f]+ )?(\w+)$", text, flags=re.M))
    imported = set(re.findall(r"^\t[0-9a-f]+\t +\d+  (\w+)$", text, flags=re.M))
    print("DLLs:", *re.findall(r"DLL Name: (.*)", text))
    for flag in "HIGH_ENTROPY_VA", "DYNAMIC_BASE", "NX_COMPAT":
        if flag not in text:
            errors.append(f"{args.shared} lacks {flag}")
    if args.version.encode("utf-16-le") not in Path(args.shared).read_bytes():
        errors.append(f"{args.shared} has no version resource of {args.version}")
else:
    # All of libSystem. x86-64 has its own name for clearing memory, and there is one division of 128 bits.
    bytes_are_moved_by |= {"bzero", "__bzero", "dyld_stub_binder", "__udivti3"}
    exported, imported = globals_of(args.shared, "defined"), globals_of(args.shared, "undefined")
    libraries = run(args.inspect, "-L", args.shared)
    print(libraries)
    if f"current version {args.version}" not in libraries:
        errors.append(f"{args.shared} does not say that it is version {args.version}")
    if not re.search(r"^\t@rpath/libsplit\.\d+\.dylib \(compatibility version \d+\.0\.0", libraries, flags=re.M):
        errors.append(f"{args.shared} has a wrong install name")
    if re.findall(r"^\t(/\S+)", libraries, flags=re.M) != ["/usr/lib/libSystem.B.dylib"]:
        errors.append(f"{args.shared} needs more than libSystem")
expect("exports", exported, functions, functions)
expect("imports", imported, bytes_are_moved_by)
if not args.archive_of_cargo:
    expect("globals of the archive", globals_of(args.static, "defined"), functions, functions)
    expect("wants of the archive", globals_of(args.static, "undefined"), bytes_are_moved_by)
sys.exit("\n".join(errors) or None)
