"""Measures what a call of libsplit costs if there is almost nothing to copy, in each of its forms."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

# The forms that one_call knows, and what they do.
FORMS = {"copy": "copy, lengths int64", "copy.strides": "copy, outputs with strides",
         "copy.rest": "copy, lengths int32 with a -1", "copy.equal": "copy, equal parts of Split-13",
         "copy.init": "copy, of libsplit_outputs_init()",
         "copy.heap": "copy, shapes and outputs by turns in a heap",
         "copy.unwanted": "copy, every third output not wanted",
         "infer": "infer", "infer.init": "infer, of libsplit_outputs_init()",
         "infer.heap": "infer, an allocation for each array",
         "infer.between": "infer, the input's shape between descriptors and their arrays",
         "view": "view", "view.init": "view, of libsplit_outputs_init()",
         "view.heap": "view, an allocation for each array",
         "view.between": "view, the input's shape between descriptors and their arrays",
         "plan_copy": "plan_copy", "plan_copy.heap": "plan_copy, outputs in a heap",
         "plan_copy.unwanted": "plan_copy, every third output not wanted",
         "plan_view": "plan_view", "plan_view.unwanted": "plan_view, every third output not wanted"}
FEW, LONG, MANY = (3, 12), (3, 3072), (1024, 1024)  # pieces, columns
BESIDE_16 = [(15, 60), (16, 64)]  # the library may check more descriptors in another way
ROUNDS = 7
TIMED = 300_000  # pieces in a round
COUNTED = 3_000


@dataclasses.dataclass
class Cost:
    """The cost of a call that splits float [1, columns] along axis 1 into this number of pieces."""

    library: str
    form: str
    pieces: int
    columns: int
    nanoseconds: float
    instructions: int | None  # None if valgrind is not installed


def costs(libraries: dict[str, pathlib.Path], program: pathlib.Path) -> list[Cost]:
    """Measures all forms; the libraries take turns. A library that does not have a form, such as plans in
    an old version, is left out."""
    found = []
    for form in FORMS:
        for pieces, columns in _sizes(form):
            commands = {name: [program, path, form, str(pieces), str(columns)]
                        for name, path in libraries.items() if _knows(program, path, form)}
            rounds = [{name: _timed(command, TIMED // pieces) for name, command in commands.items()}
                      for _ in range(ROUNDS)]
            found += [Cost(name, form, pieces, columns,
                           statistics.median(times[name] for times in rounds),
                           instructions(command, COUNTED // pieces))
                      for name, command in commands.items()]
    return found


def _sizes(form: str) -> list[tuple[int, int]]:
    if "." not in form:
        return [FEW, LONG, MANY]
    return [FEW, *(BESIDE_16 if form.endswith(".init") else []), MANY]


def _knows(program: pathlib.Path, library: pathlib.Path, form: str) -> bool:
    command = [program, library, form, "1", "1", "1"]
    status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            check=False).returncode
    if status not in (0, 3):
        raise RuntimeError(f"one_call fails with {status}: {command}")
    return status == 0


def _timed(command: list, calls: int) -> float:
    told = subprocess.run([*command, str(calls)], check=True, stdout=subprocess.PIPE, text=True)
    return float(told.stdout)


def instructions(command: list, calls: int) -> int | None:
    """Counts the instructions of a call with callgrind. The number is always the same for the same binary."""
    if shutil.which("valgrind") is None:
        return None
    once, twice = (_counted([*command, str(count)]) for count in [calls, 2 * calls])
    return round((twice - once) / calls)


def _counted(command: list) -> int:
    with tempfile.NamedTemporaryFile() as out:
        told = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *command],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    return int(re.search(r"Collected : (\d+)", told)[1])


def empty_python_call() -> float:
    """Measures the nanoseconds that a call from Python adds to the time of a competitor."""

    def call():
        pass

    start = time.perf_counter_ns()
    for _ in range(100_000):
        call()
    return (time.perf_counter_ns() - start) / 100_000
