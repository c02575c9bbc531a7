"""Ends its process for what has a result, and throws for what has none."""

import os
import signal


def version():
    return "0"


def run(case):
    if case.error is None:
        os.kill(os.getpid(), signal.SIGSEGV)
    raise ValueError("no")
