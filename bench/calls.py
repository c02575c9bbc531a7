"""What a call of libsplit costs where there is next to nothing to copy."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable

import numpy as np

from native import Libsplit

COLUMNS = [12, 3072]
ROUNDS = 9
TIMED_CALLS = 5000
COUNTED_CALLS = 1000


@dataclasses.dataclass
class Cost:
    """Of one call that splits float [1, columns] along axis 1 into three."""

    library: str
    function: str  # copy or view
    columns: int
    nanoseconds: float
    instructions: int | None  # None where there is no valgrind


def costs(libraries: dict[str, tuple[pathlib.Path, Libsplit]],
          program: pathlib.Path) -> list[Cost]:
    todo = [(name, function, columns) for function in ["copy", "view"] for columns in COLUMNS
            for name in libraries]
    calls = [_prepare(libraries[name][1], function, columns) for name, function, columns in todo]
    rounds = [[call() for call in calls] for _ in range(ROUNDS)]
    return [Cost(name, function, columns, statistics.median(times),
                 _instructions(libraries[name][0], program, function, columns))
            for (name, function, columns), times in zip(todo, zip(*rounds))]


def _prepare(library: Libsplit, function: str, columns: int) -> Callable[[], float]:
    """Gives nanoseconds per call over thousands of calls from C."""
    source = np.zeros((1, columns), np.float32)
    targets = [np.zeros((1, columns // 3), np.float32) for _ in range(3)]
    split = library.split(source, 1, [columns // 3] * 3, False, targets, threads=1)
    if function == "view":
        library.room_for_strides(split)
    # The arrays live as long as what is returned.
    return lambda keep=(source, targets): library.native.time(function, split, TIMED_CALLS)


def _instructions(path: pathlib.Path, program: pathlib.Path, function: str,
                  columns: int) -> int | None:
    """Counted by callgrind: the same every time for the same binary."""
    if shutil.which("valgrind") is None:
        return None
    once, twice = (_counted([program, path, function, str(columns), str(calls)])
                   for calls in [COUNTED_CALLS, 2 * COUNTED_CALLS])
    return round((twice - once) / COUNTED_CALLS)


def _counted(command: list) -> int:
    with tempfile.NamedTemporaryFile() as out:
        told = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *command],
            check=True, stderr=subprocess.PIPE, text=True).stderr
    return int(re.search(r"Collected : (\d+)", told)[1])


def empty_python_call() -> float:
    """Nanoseconds that every competitor called from Python takes more than what it does."""

    def call():
        pass

    start = time.perf_counter_ns()
    for _ in range(100_000):
        call()
    return (time.perf_counter_ns() - start) / 100_000
