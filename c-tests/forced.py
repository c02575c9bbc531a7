"""Writes forced.cmake, the tests that CTest runs with each way of the library forced.

The library names the levels of its architecture and the rows of its table of machines. Rows that come to the
same on this machine are run once. A program that finds that this CPU cannot go that way exits with the code
SKIPPED.
"""

import argparse
import ctypes
import itertools
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--without", default="", help="a level that this build has been told to leave out")
parser.add_argument("library")
parser.add_argument("directory")
parser.add_argument("skipped", help="the exit code of a program that has nothing to test")
parser.add_argument("subjects", nargs="+")
arguments = parser.parse_args()

library = ctypes.CDLL(arguments.library)
library.libsplit_test_level.argtypes = [ctypes.c_size_t]
library.libsplit_test_level.restype = library.libsplit_test_machines.restype = ctypes.c_char_p
library.libsplit_cpu_string.restype, library.libsplit_test_cached_bytes.restype = ctypes.c_char_p, ctypes.c_size_t
names = map(library.libsplit_test_level, itertools.count())
levels = [name.decode() for name in itertools.takewhile(bool, names)]
levels = [level for level in levels if level != arguments.without]
machines = library.libsplit_test_machines().decode().split()


def forced(words):
    """Returns what decides about copies on such a machine; the words themselves if this CPU cannot go that way."""
    if library.libsplit_test_force(words.encode()) != 0:
        return words
    return library.libsplit_cpu_string(), library.libsplit_test_cached_bytes()


# Of several words for the same machine, the first are kept.
ways = {}
low = [f"{level} low" for level in levels]
for words in levels + low + machines:
    ways.setdefault(forced(words), words)
# These take long, and test nothing that depends on a machine's sizes.
of_subject = {"guard_pages": levels, "holes": levels + low}
own_low = [words for words in low if library.libsplit_test_force(words.encode()) == 0][-1]


def label(subject, words):
    """Returns the label of a test: 'make check' runs those of the engine, and 'make test' all that are not slow."""
    if subject == "holes":  # takes longest
        return "" if words == own_low else "slow"
    if subject == "guard_pages":
        return "engine" if words != levels[0] else ""
    is_of_engine = subject in {"copy", "parallel", "strides", "sub_byte"} and words in levels + low
    return "engine" if is_of_engine else ""


lines = []
for subject in arguments.subjects:
    for words in of_subject.get(subject, ways.values()):
        name = f"{subject}.{words.replace(' ', '.')}"
        lines += [f'add_test({name} "{arguments.directory}/{subject}.forced")',
                  f'set_tests_properties({name} PROPERTIES ENVIRONMENT "LIBSPLIT_TEST_FORCE={words}" '
                  f'LABELS "{label(subject, words)}" '
                  f'COST {100 if subject in of_subject else 1} TIMEOUT 600 SKIP_RETURN_CODE {arguments.skipped})']
Path(arguments.directory, "forced.cmake").write_text("\n".join(lines) + "\n", "utf-8")
