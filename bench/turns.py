"""Times that hold on a machine that is not idle: who is compared takes turns, and the fastest turn counts."""

from __future__ import annotations

import time
from collections.abc import Callable

NEAR = 1.015  # times the least
SETTLED = 5  # turns that came near it: then it was no accident
PATIENCE = 6  # times the seconds, until all are settled


def least(runs: dict[str, Callable[[int], float]], turn_ns: float,
          seconds: float) -> dict[str, float]:
    """Nanoseconds per call of each, its fastest turn's.

    A run makes so many calls and gives nanoseconds per call. A turn takes `turn_ns`, or one call.
    """
    calls = dict.fromkeys(runs, 1)
    for _ in range(2):  # the first time is that of caches and of a CPU that did something else
        calls = {name: max(1, round(turn_ns / run(calls[name]))) for name, run in runs.items()}
    samples = {name: [] for name in runs}
    order = list(runs)
    begin = time.perf_counter()
    while True:
        for name in order:
            samples[name].append(runs[name](calls[name]))
        order.reverse()
        taken = time.perf_counter() - begin
        if taken > seconds and (taken > PATIENCE * seconds or all(map(_is_settled, samples.values()))):
            return {name: min(times) for name, times in samples.items()}


def _is_settled(times: list[float]) -> bool:
    return sum(taken < NEAR * min(times) for taken in times) >= SETTLED
