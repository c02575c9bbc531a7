"""Prints a table of what a call costs in libsplit, in NumPy and, if it is installed, in torch.

Competitors take turns; each figure is the best of many turns, in microseconds. On a busy machine
run it more than once.
"""

import importlib.util
import platform
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import libsplit

TURNS, SECONDS = 20, 0.01


def best(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Returns the least time of each call, in microseconds."""
    timers = {name: timeit.Timer(call) for name, call in calls.items()}
    numbers = {}
    for name, timer in timers.items():
        once = max(timer.timeit(10) / 10, 1e-7)
        numbers[name] = max(int(SECONDS / once), 1)
    times = {name: float("inf") for name in calls}
    for _ in range(TURNS):
        for name, timer in timers.items():
            time = timer.timeit(numbers[name]) / numbers[name]
            times[name] = min(times[name], time * 1e6)
    return times


def rows() -> dict[str, dict[str, Callable[[], Any]]]:
    x = np.arange(36, dtype=np.float32).reshape(3, 12)
    big = np.ones((4096, 3072), np.float32)  # zeros would all lie in one page
    plan, big_plan = libsplit.Plan(x, 3, axis=1), libsplit.Plan(big, 3, axis=1)
    pieces = [np.ascontiguousarray(piece) for piece in np.split(x, 3, 1)]
    out = [np.empty_like(piece) for piece in pieces]
    big_out = [np.empty((4096, 1024), np.float32) for _ in range(3)]
    whole = np.empty_like(x)

    def numpy_copy(x: Any, out: Any) -> None:
        for target, piece in zip(out, np.split(x, 3, 1)):
            np.copyto(target, piece)

    found: dict[str, dict[str, Callable[[], Any]]] = {
        "views, 3 equal parts": {
            "libsplit": lambda: libsplit.split(x, 3, axis=1),
            "libsplit.Plan": lambda: plan.split(x),
            "NumPy": lambda: np.split(x, 3, axis=1),
        },
        "views, 3 lengths": {
            "libsplit": lambda: libsplit.split(x, [4, 4, 4], axis=1),
            "libsplit.Plan": lambda: plan.split(x),
            "NumPy": lambda: np.split(x, [4, 8], axis=1),
        },
        "views, 5 uneven parts": {
            "libsplit": lambda: libsplit.split(x, 5, axis=1, uneven="even_out"),
            "NumPy": lambda: np.array_split(x, 5, axis=1),
        },
        "copies of 3 × 4 floats, into arrays of one's own": {
            "libsplit": lambda: libsplit.copy(x, 3, axis=1, out=out),
            "libsplit.Plan": lambda: plan.copy(x, out=out),
            "NumPy": lambda: numpy_copy(x, out),
        },
        "join of them": {
            "libsplit": lambda: libsplit.join(pieces, axis=1, out=whole),
            "NumPy": lambda: np.concatenate(pieces, axis=1, out=whole),
        },
        "copies of 4,096 × 1,024 floats, one thread": {
            "libsplit": lambda: libsplit.copy(big, 3, axis=1, out=big_out),
            "libsplit.Plan": lambda: big_plan.copy(big, out=big_out),
            "NumPy": lambda: numpy_copy(big, big_out),
        },
        "the same, threads=0": {
            "libsplit": lambda: libsplit.copy(big, 3, axis=1, out=big_out, threads=0),
            "libsplit.Plan": lambda: big_plan.copy(big, out=big_out, threads=0),
        },
    }
    if importlib.util.find_spec("torch"):
        import torch

        tensor, lengths = torch.from_numpy(x), [4, 4, 4]
        tensors = [torch.from_numpy(piece) for piece in out]
        views, named = list(found.values())[:3], "of torch's tensors: libsplit"
        views[0] |= {"torch": lambda: torch.chunk(tensor, 3, 1)}
        views[0] |= {named: lambda: libsplit.split(tensor, 3, axis=1)}
        views[1] |= {"torch": lambda: torch.split(tensor, lengths, 1)}
        views[1] |= {named: lambda: libsplit.split(tensor, lengths, axis=1)}
        views[2] |= {"torch": lambda: torch.tensor_split(tensor, 5, 1)}
        copies = list(found.values())[3]
        copies |= {"torch": lambda: torch.split_with_sizes_copy(tensor, lengths, 1, out=tensors)}
        copies |= {named: lambda: libsplit.copy(tensor, 3, axis=1, out=tensors)}
    return found


def main() -> None:
    found = rows()
    names = list(dict.fromkeys(name for calls in found.values() for name in calls))
    print(f"{platform.python_implementation()} {platform.python_version()}, NumPy {np.__version__}")
    print(f"| microseconds a call | {' | '.join(names)} |\n|---{'|--:' * len(names)}|")
    for label, calls in found.items():
        times = best(calls)
        cells = [f"{times[name]:,.2f}" if name in times else "–" for name in names]
        print(f"| {label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
