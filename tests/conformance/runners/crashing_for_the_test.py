"""Ends its process for cases that have a result, and raises an error for those that have none."""

import os
import signal


def version():
    return "0"


def run(case):
    if case.error is None:
        os.kill(os.getpid(), signal.SIGSEGV)
    raise ValueError("no")
