"""Writes forced.cmake, the tests that CTest runs with each way of the library forced.

usage: forced.py LIBRARY DIRECTORY SKIPPED SUBJECT...

The library has libsplit_test_machines(). A program that finds that this CPU cannot go that way exits with
the code SKIPPED.
"""

import ctypes
import sys
from pathlib import Path

library, directory, skipped, *subjects = sys.argv[1:]
machines = ctypes.CDLL(library).libsplit_test_machines
machines.restype = ctypes.c_char_p
words = ["portable", "avx2", "avx512", "neon", "low", *machines().decode().split()]
lines = []
for subject in subjects:
    for word in words:
        name = f"{subject}.{word}"
        lines += [f'add_test({name} "{directory}/{subject}.forced")',
                  f'set_tests_properties({name} PROPERTIES ENVIRONMENT LIBSPLIT_TEST_FORCE={word} '
                  f'TIMEOUT 300 SKIP_RETURN_CODE {skipped})']
Path(directory, "forced.cmake").write_text("\n".join(lines) + "\n", "utf-8")
