"""Runs cases in one implementation: reads names from standard input, and prints a line of JSON for each result.

Crashes end this process, not the one that asks; see run.py. What a result is:

    {"shapes": [...], "digests": [...]}   the outputs; null for an output that was not asked for
    {"element": [...]}                    shape inference: the one shape of all pieces
    {"error": "...", "status": "..."}     an error, and libsplit's kind of it
    {"none": "..."}                       there is no such operator or way to ask
"""

import importlib
import json
import os
import sys

import cases


def main():
    # What implementations print must not get into the results.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    runner = importlib.import_module(f"runners.{sys.argv[1]}")
    every = cases.load()
    print(json.dumps({"version": runner.version()}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            result = runner.run(every[line.strip()])
        except cases.NotThere as reason:
            result = {"none": str(reason)}
        except Exception as error:  # whatever an implementation throws is its answer
            status = getattr(error, "status_name", None)
            result = {"error": f"{type(error).__name__}: {error}", "status": status}
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
