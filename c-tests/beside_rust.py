"""libsplit.a links beside another static library written in Rust, in any order and as a whole.

usage: beside_rust.py STATIC_LIBRARY CC RUSTC WORK
"""

import re
import subprocess
import sys
from pathlib import Path

libsplit, cc, rustc, work = sys.argv[1:]
source = Path(__file__).resolve().parent
work = Path(work)
work.mkdir(exist_ok=True)
other = work / "libother.a"
EXPECTED = "LIBSPLIT_STATUS_ERROR_NULL, 45\n"

built = subprocess.run(
    [rustc, "--edition=2021", "--crate-type=staticlib", "--print=native-static-libs", "-o", other,
     source / "beside_rust" / "other.rs"], check=True, text=True, stderr=subprocess.PIPE)
needed = re.search(r"native-static-libs: (.*)", built.stderr)[1].split()

for libraries in [libsplit, other], [other, libsplit], ["-Wl,--whole-archive", other, libsplit]:
    subprocess.run([cc, "-I", source.parent / "include", "-o", work / "program",
                    source / "beside_rust" / "main.c", *libraries, "-Wl,--no-whole-archive",
                    *needed], check=True)
    output = subprocess.run([work / "program"], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert output == EXPECTED, f"printed {output!r}, not {EXPECTED!r}"
    print("links:", *map(str, libraries))
