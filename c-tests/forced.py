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
levels = ["portable", "avx2", "avx512", "neon"]
ways = levels + [f"{level} low" for level in levels] + machines().decode().split()
# These take long, and test nothing that depends on a machine's sizes.
of_levels = {"guard_pages": "", "holes": "LABELS slow "}
lines = []
for subject in subjects:
    for words in levels if subject in of_levels else ways:
        name = f"{subject}.{words.replace(' ', '.')}"
        lines += [f'add_test({name} "{directory}/{subject}.forced")',
                  f'set_tests_properties({name} PROPERTIES ENVIRONMENT "LIBSPLIT_TEST_FORCE={words}" '
                  f'{of_levels.get(subject, "")}TIMEOUT 600 SKIP_RETURN_CODE {skipped})']
Path(directory, "forced.cmake").write_text("\n".join(lines) + "\n", "utf-8")
