"""Reliable times on a machine that is not idle: all take turns, and the fastest turn of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable

NEAR = 1.015  # a turn is near the fastest one up to this many times its time
SETTLED = 5  # turns that must be near the fastest one, which then was no accident
PATIENCE = 6  # how many times as long as asked for to wait until all are settled


def least(runs: dict[str, Callable[[int], float]], turn_ns: float,
          seconds: float) -> dict[str, float]:
    """Returns the nanoseconds per call of each run in its fastest turn.

    A run makes the given number of calls and returns the nanoseconds per call. A turn takes `turn_ns`,
    or one call.
    """
    calls = dict.fromkeys(runs, 1)
    for _ in range(2):  # the first time, caches and CPU are not yet warm
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
