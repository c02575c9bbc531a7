"""A program asks the library for the versions of the functions that it calls. Built with the next
release, it runs with today's library where it calls nothing new, and else is refused as it starts.

usage: versions.py LIBRARY STATIC_LIBRARY MAP CC WORK
"""

import os
import re
import subprocess
import sys
from pathlib import Path

library, static, map_file, cc, work = sys.argv[1:]
source = Path(__file__).resolve().parent
work = Path(work)
work.mkdir(exist_ok=True)
today = Path(library).resolve().parent


def build(output, *arguments):
    subprocess.run([cc, "-I", source.parent / "include", "-o", work / output, *arguments], check=True)


def run(program, libraries):
    return subprocess.run([work / program], env={**os.environ, "LD_LIBRARY_PATH": str(libraries)},
                          text=True, capture_output=True)


# The next release: today's, and one function more.
newest = re.findall(r"^(LIBSPLIT_\S+) {", Path(map_file).read_text(), flags=re.M)[-1]
(work / "next.map").write_text(
    Path(map_file).read_text() + f"LIBSPLIT_next {{ global: libsplit_next; }} {newest};\n")
(work / "next.c").write_text("int libsplit_next(void);\nint libsplit_next(void) { return 7; }\n")
(work / "newer.c").write_text('#include <stdio.h>\nint libsplit_next(void);\n'
                              'int main(void) { return printf("%d\\n", libsplit_next()) != 2; }\n')
build("libsplit.so.0", "-shared", work / "next.c", f"-Wl,--version-script={work / 'next.map'}",
      "-Wl,-soname,libsplit.so.0", "-Wl,--whole-archive", static, "-Wl,--no-whole-archive")
build("same", source / "consumer" / "main.c", work / "libsplit.so.0")
build("newer", work / "newer.c", "-Wl,-z,lazy", work / "libsplit.so.0")

for libraries in work, today:
    same = run("same", libraries)
    assert (same.returncode, same.stderr) == (0, ""), same
newer = run("newer", work)
assert (newer.returncode, newer.stdout) == (0, "7\n"), newer
newer = run("newer", today)
assert newer.returncode != 0 and newer.stdout == "", newer
assert "version `LIBSPLIT_next' not found (required by " in newer.stderr, newer
print(newer.stderr, end="")
