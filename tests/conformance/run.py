"""Runs every case on libsplit and, on request, on other libraries, and reports what each returns.

    run.py                 libsplit: C, the provider, the Python package if it can be imported;
                           fails where a result is not the case's
    run.py --table FILE    the peers too; writes the table of all results in Markdown
    run.py --table FILE --also onnxruntime=PYTHON
                           and a peer as another Python has it: of another version, or one that this
                           Python lacks
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import cases
import table

HERE = pathlib.Path(__file__).resolve().parent
LIBSPLIT = {"c": "C", "python": "Python", "provider": "ONNX Runtime provider"}
PEERS = {"onnxruntime": "onnxruntime", "onnx_reference": "onnx.reference",
         "onnx_inference": "onnx shape inference", "openvino": "openvino", "torch": "torch"}
# Cases in which the provider is not at fault, or does what its README says.
KNOWN = {"provider": {
    "Split-18: num_outputs 2, three outputs": "ONNX's shape inference, which ONNX Runtime runs "
    "first, ends the process before it calls the provider",
}}
SECONDS = 60  # for one case, and for the start


class Worker:
    """A process that runs cases in one implementation, and is restarted if it dies."""

    def __init__(self, name, python=sys.executable):
        self.name, self.python, self.process, self.version = name, python, None, None

    def _start(self):
        self.process = subprocess.Popen(
            [self.python, HERE / "worker.py", self.name], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE if self.version is None else
            subprocess.DEVNULL, cwd=HERE.parent)
        # Its output matters only if it does not start.
        said = []
        if self.process.stderr:
            threading.Thread(target=lambda: said.extend(self.process.stderr), daemon=True).start()
        hello = self._answer()
        if "version" not in hello:
            self.process.wait()
            raise ImportError(said[-1].strip() if said else str(hello))
        self.version = hello["version"]

    def _answer(self):
        late = threading.Event()
        timer = threading.Timer(SECONDS, lambda: (late.set(), self.process.kill()))
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if line:
            return json.loads(line)
        code = self.process.wait()
        if late.is_set():
            return {"crash": f"no answer in {SECONDS} seconds"}
        return {"crash": signal.Signals(-code).name if code < 0 else f"exit {code}"}

    def ask(self, case):
        """Returns the case's result. A crash counts only if a new process crashes, too."""
        fresh = self.process is None
        result = self._ask(case)
        if "crash" not in result or fresh:
            return result
        return self._ask(case)

    def _ask(self, case):
        if self.process is None or self.process.poll() is not None:
            self._start()
        try:
            print(case.name, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass
        return self._answer()

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def put(every, name, python):
    """Returns all results of one implementation, and its version; None if it is not installed."""
    worker = Worker(name, python)
    try:
        results = {case.name: worker.ask(case) for case in every.values()}
    except ImportError as error:
        print(f"{name:>14}: not run: {error}")
        return None, None
    worker.stop()
    return results, worker.version


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--only", default="", help="the implementations to run, separated by commas")
    parser.add_argument("--also", action="append", default=[], metavar="PEER=PYTHON")
    options = parser.parse_args()
    # If each peer used all cores, this would be slower without better results.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    every = cases.load()
    titles = LIBSPLIT | (PEERS if options.table else {})
    if options.only:
        titles = {name: (LIBSPLIT | PEERS)[name] for name in options.only.split(",")}
    columns = {name: (name, sys.executable) for name in titles}
    for number, also in enumerate(options.also):
        name, python = also.split("=", 1)
        columns[f"{name} {number}"] = (name, python)
    # Implementations of the same name side by side.
    order = list(LIBSPLIT | PEERS)
    columns = dict(sorted(columns.items(), key=lambda column: order.index(column[1][0])))
    ours = {column: LIBSPLIT[name] for column, (name, _) in columns.items() if name in LIBSPLIT}
    peers = {column: PEERS[name] for column, (name, _) in columns.items() if name in PEERS}
    results, versions, failed, passed = {}, {}, 0, 0
    for column, (name, python) in columns.items():
        results[column], versions[column] = put(every, name, python)
        if results[column] is None:
            failed += name in ("c", "provider")  # these are always there
            continue
        verdicts = {case: table.verdict(every[case], result)
                    for case, result in results[column].items()}
        print(f"{name:>14} {versions[column]}: {table.tally(verdicts)}")
        if name in LIBSPLIT:
            wrong = {case: v for case, v in verdicts.items()
                     if v not in ("same", "none") and case not in KNOWN.get(name, {})}
            for case, verdict in wrong.items():
                print(f"  {case}: {verdict}: {results[column][case]}")
            failed += len(wrong)
            passed += sum(v == "same" for v in verdicts.values())
    # An implementation that another Python has is not missing.
    peers = {column: title for column, title in peers.items()
             if results[column] or list(peers.values()).count(title) == 1}
    if options.table:
        options.table.write_text(table.page(every, results, versions, ours, peers,
                                            KNOWN["provider"]))
    print(f"conformance: {passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
