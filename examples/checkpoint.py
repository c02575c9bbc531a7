"""Shards a real checkpoint, joins it again and compares; run.sh calls it.

checkpoint.py LIBSPLIT OUTDIR     with the path of the command-line tool

The checkpoint is Silero VAD, which the Python package silero-vad ships.
"""

import filecmp
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
from safetensors.numpy import load_file

PLAN = pathlib.Path(os.path.relpath(__file__)).with_name("silero.toml")
TP = 4


def libsplit(*arguments):
    command = [str(argument) for argument in [sys.argv[1], *arguments]]
    print("$ libsplit", *command[1:])
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def checkpoint():
    package = importlib.util.find_spec("silero_vad").submodule_search_locations[0]
    return pathlib.Path(os.path.relpath(package)) / "data/silero_vad_16k.safetensors"


def table(told):
    print(f"\n  {'tensor':22}{'whole':18}{'on each rank':18}pattern")
    for tensor in told["tensors"]:
        whole, rank = (" x ".join(map(str, tensor[key])) for key in ["shape", "rank_shape"])
        print(f"  {tensor['name']:22}{whole:18}{rank if rank != whole else 'whole':18}"
              f"{tensor['pattern']}")
    print(f"\n  {told['bytes_read']:,} bytes read, {told['bytes_written']:,} written")


def step(weights, x, h, c):
    """A step of the LSTM, by the hidden states that these weights are for."""
    gates = sum(weights[f"lstm_cell.weight_{name}"] @ of + weights[f"lstm_cell.bias_{name}"]
                for name, of in [("ih", x), ("hh", h)])
    i, f, g, o = np.split(gates, 4)
    sigmoid = lambda value: 1 / (1 + np.exp(-value))
    return sigmoid(o) * np.tanh(sigmoid(f) * c + sigmoid(i) * np.tanh(g))


def main():
    out = pathlib.Path(sys.argv[2])
    source, shards, fewer = checkpoint(), out / "shards", out / "shards-2"
    joined = out / "joined.safetensors"
    shutil.rmtree(out, ignore_errors=True)
    told = libsplit("shard", source, "--tp", TP, "--plan", PLAN, "-o", shards, "--json")
    table(json.loads(told))
    print()
    for more, target in [(["--tp", 2], fewer), ([], joined)]:
        print(" ", libsplit("join", shards if more else fewer, *more, "-o", target), end="")
    same = filecmp.cmp(source, joined, shallow=False)
    print(f"\n  4 ranks, then 2, then joined: {'identical' if same else 'NOT identical'} to the original")

    whole = load_file(source)
    ranks = [load_file(shards / f"rank-{rank}" / source.name) for rank in range(TP)]
    random = np.random.default_rng(0)
    x, h, c = (random.standard_normal(128).astype("f4") for _ in range(3))
    apart = np.concatenate([step(rank, x, h, part) for rank, part in zip(ranks, np.split(c, TP))])
    difference = np.abs(apart - step(whole, x, h, c)).max()
    print(f"  a step of the LSTM on {TP} ranks and on one: largest difference {difference:.1e}")
    sys.exit(not (same and difference < 1e-5))


if __name__ == "__main__":
    main()
