"""libsplit shard, join and info on files of every kind: what comes out, and what is refused."""

import itertools
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

import numpy as np
from safetensors import safe_open

from common import (
    EXISTS, FAILED, INVALID, LIBSPLIT, REFUSED, STOPPED, USAGE, ToolTest, limit, read_safetensors,
    without_mark, write_index, write_safetensors)

RANDOM = np.random.default_rng(2)

# Bits of an element.
DTYPES = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8,
          "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16,
          "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64,
          "U64": 64}


def noise(dtype, *shape):
    """A tensor of arbitrary bytes."""
    return dtype, shape, RANDOM.bytes(int(np.prod(shape)) * DTYPES[dtype] // 8)


def bits(tensor):
    """A tensor with its elements' bits as a last axis."""
    dtype, shape, content = tensor
    found = np.unpackbits(np.frombuffer(content, "u1"), bitorder="little")
    return found.reshape(*shape, DTYPES[dtype])


def packed(dtype, array):
    """A tensor of such bits."""
    return dtype, array.shape[:-1], np.packbits(array, bitorder="little").tobytes()


MODEL = {"q.weight": noise("F32", 16, 6), "q.bias": noise("F32", 16), "up.weight": noise("BF16", 24, 5),
         "o.weight": noise("F16", 6, 16), "o.bias": noise("F16", 6), "norm": noise("F64", 3),
         "scalar": noise("I64"), "none": noise("I32", 0, 4), "kv.weight": noise("U8", 8, 3)}
PLAN = """[tensors]
q = { rule = "colwise", heads = 8 }
"up" = { rule = "packed", split_factor = 3 }
o = { rule = "rowwise", heads = 8 }
kv = { rule = "colwise", heads = 2, replicate_kv = true }
none = { rule = "colwise", optional = true }
norm = "replicate"
scalar = { rule = "replicate", optional = true }
"""


# A process inherits the largest memory of the one that starts it: start it from a small one.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
told = dict(line.split(": ") for line in open(f"/proc/{pid}/io").read().splitlines())
_, status, used = os.wait4(pid, 0)
print(used.ru_maxrss, told["rchar"])
sys.exit(os.waitstatus_to_exitcode(status))
"""


class CheckpointTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.model = self.dir / "model.safetensors"
        self.plan = self.dir / "plan.toml"
        self.joined = self.dir / "joined.safetensors"

    def save(self, tensors=MODEL, plan=PLAN, metadata=None, **options):
        write_safetensors(self.model, tensors, metadata, **options)
        self.plan.write_text(plan)

    def shard(self, tp, *more, source=None, out=None, **options):
        return self.run_tool("shard", source or self.model, "--tp", tp, "--plan", self.plan,
                             "-o", out or self.out, *more, **options)

    def join(self, *more, source=None, out=None, **options):
        return self.run_tool("join", source or self.out, "-o", out or self.joined, *more, **options)

    def rank(self, rank, out=None):
        return read_safetensors((out or self.out) / f"rank-{rank}/model.safetensors")[0]


def parts_of(rank, tp):
    """What a rank has of MODEL, by NumPy."""
    whole = {name: bits(tensor) for name, tensor in MODEL.items()}
    for name, axis in [("q.weight", 0), ("q.bias", 0), ("o.weight", 1), ("none", 0)]:
        whole[name] = np.split(whole[name], tp, axis)[rank]
    up = whole["up.weight"].reshape(3, 8, 5, 16)
    whole["up.weight"] = np.split(up, tp, 1)[rank].reshape(-1, 5, 16)
    heads = whole["kv.weight"].reshape(2, 4, 3, 8)
    heads = np.split(heads, tp)[rank] if tp <= 2 else heads[rank * 2 // tp][None]
    whole["kv.weight"] = heads.reshape(-1, 3, 8)
    return {name: packed(MODEL[name][0], array) for name, array in whole.items()}


class ShardAndJoin(CheckpointTest):
    def test_shards_are_the_parts_and_joined_again_the_same_file(self):
        for tp, metadata in [(1, None), (2, {"format": "pt", "z": "ü\n\"", "a": ""}), (4, {}), (8, {})]:
            with self.subTest(tp=tp):
                self.save(metadata=metadata)
                self.assert_succeeds(self.shard(tp, "--force"))
                for rank in range(tp):
                    self.assertEqual(self.rank(rank), parts_of(rank, tp))
                    path = self.out / f"rank-{rank}/model.safetensors"
                    found = read_safetensors(path)[1]
                    self.assertEqual(without_mark(found), metadata or None)
                    self.assertEqual((found["libsplit.rank"], found["libsplit.ranks"]),
                                     (str(rank), str(tp)))
                    with safe_open(path, "np") as file:  # as the reference library sees it
                        self.assertEqual(set(file.keys()), set(MODEL))
                        self.assertEqual(without_mark(file.metadata()), metadata or None)
                self.assertEqual(sorted(os.listdir(self.out)),
                                 sorted(["libsplit.json", *(f"rank-{rank}" for rank in range(tp))]))
                self.assert_succeeds(self.join("--force"))
                self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())

    def test_every_chunk_gives_the_same(self):
        self.save({name: noise("F32", *shape) for name, shape in
                   [("q.weight", (16, 30)), ("up.weight", (24, 7)), ("o.weight", (9, 16)),
                    ("kv.weight", (8, 50)), ("norm", (100,))]})
        expected = None
        for chunk in [64, 65, 100, 128, 1000, "8M"]:
            with self.subTest(chunk=chunk):
                self.assert_succeeds(self.shard(8, "--force", "--chunk", chunk))
                found = [self.rank(rank) for rank in range(8)]
                expected = expected or found
                self.assertEqual(found, expected)
                self.assert_succeeds(self.join("--force", "--chunk", chunk))
                self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())

    def test_shards_of_shards(self):
        self.save(metadata={"format": "pt"})
        for before, after in itertools.product([1, 2, 4, 8], repeat=2):
            with self.subTest(before=before, after=after):
                direct, anew = self.dir / "direct", self.dir / "anew"
                self.assert_succeeds(self.shard(before, "--force"))
                self.assert_succeeds(self.shard(after, "--force", out=direct))
                self.assert_succeeds(self.join("--tp", after, "--force", out=anew))
                for path in direct.rglob("*.*"):
                    self.assertEqual((anew / path.relative_to(direct)).read_bytes(),
                                     path.read_bytes(), path)
                self.assert_succeeds(self.join("--force", source=anew))
                self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())

    def test_every_dtype(self):
        tensors = {f"{dtype}.{rule}": noise(dtype, 8, 16) for dtype in DTYPES
                   for rule in ["colwise", "rowwise", "packed"]}
        self.save(tensors, "[tensors]\n" + "".join(
            f"'*.{rule}' = '{rule}'\n" for rule in ["colwise", "rowwise", "packed"]))
        for tp in [2, 4]:
            self.assert_succeeds(self.shard(tp, "--force"))
            for rank in range(tp):
                found = self.rank(rank)
                for name, tensor in tensors.items():
                    array, rule = bits(tensor), name.split(".")[1]
                    if rule == "packed":
                        halves = np.split(array, 2)
                        part = np.concatenate([np.split(half, tp)[rank] for half in halves])
                    else:
                        part = np.split(array, tp, 1 if rule == "rowwise" else 0)[rank]
                    self.assertEqual(found[name], packed(tensor[0], part), name)
            self.assert_succeeds(self.join("--force"))
            self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())

    def test_four_bits_cut_within_a_byte(self):
        plan = ("[tensors]\n'{row,row.b}' = 'rowwise'\npacked = {rule = 'packed', parts = 'q:2,k:4', axis = 1}\n"
                "kv = {rule = 'packed', parts = 'q:2,k:1,v:1', axis = 1, replicate_kv = true}\n")
        tensors = {"row": noise("F4", 8, 6), "packed": noise("F4", 12, 18), "row.b": noise("F4", 4, 10),
                   "kv": noise("F4", 6, 12)}
        self.save(tensors, plan)
        for chunk in [64, "8M"]:
            self.assert_succeeds(self.shard(2, "--force", "--chunk", chunk))
            for rank in range(2):
                found = self.rank(rank)
                for name in ["row", "row.b"]:
                    part = np.split(bits(tensors[name]), 2, 1)[rank]
                    self.assertEqual(found[name], packed("F4", part))
                q, k = np.split(bits(tensors["packed"]), [6], 1)
                part = np.concatenate([np.split(it, 2, 1)[rank] for it in (q, k)], 1)
                self.assertEqual(found["packed"], packed("F4", part))
                kv = bits(tensors["kv"])
                part = np.concatenate([np.split(kv[:, :6], 2, 1)[rank], kv[:, 6:]], 1)
                self.assertEqual(found["kv"], packed("F4", part))
            self.assert_succeeds(self.join("--force", "--chunk", chunk))
            self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())
        plan = "[tensors]\nrow = 'rowwise'\n"
        self.save({"row": noise("F4", 3, 2)}, plan)
        self.assert_fails(self.shard(2, out=self.dir / "no"), REFUSED, "row", "[3, 1]", "whole",
                          left=os.listdir(self.out))
        self.save({"row": noise("F6_E2M3", 4, 6)}, plan)
        self.assert_fails(self.shard(2, out=self.dir / "no"), REFUSED, "row", "6 bits",
                          left=os.listdir(self.out))

    def test_random_cuts(self):
        # Fused parts in any layout, against NumPy's own splits and concatenations.
        for number in range(40):
            heads = [int(count) for count in RANDOM.integers(1, 4, 3) * 4]
            width, inner, outer = (int(size) for size in RANDOM.integers(1, 4, 3))
            groups = int(RANDOM.choice([1, 2, 4]))
            tp = int(RANDOM.choice([1, 2, 4]))
            dtype = str(RANDOM.choice(["U8", "F16", "F32", "C64"]))
            tensor = noise(dtype, outer, sum(heads) * width, inner)
            layout = f"layout = 'grouped', groups = {groups}" if groups > 1 else "layout = 'concat'"
            parts = ",".join(f"{name}:{count}" for name, count in zip("qkv", heads))
            self.save({"w": tensor}, f"[tensors]\nw = {{rule = 'packed', axis = 1, "
                                     f"parts = '{parts}', {layout}}}\n")
            with self.subTest(heads=heads, groups=groups, tp=tp, dtype=dtype):
                self.assert_succeeds(self.shard(tp, "--force", "--chunk", 64))
                array = bits(tensor)
                chunks = np.split(array, groups, 1)
                if groups >= tp:
                    expected = [np.concatenate(chunks[r * groups // tp:(r + 1) * groups // tp], 1)
                                for r in range(tp)]
                else:
                    expected = []
                    ends = np.cumsum([count * width // groups for count in heads])[:-1]
                    for chunk in chunks:
                        shares = [np.split(part, tp // groups, 1) for part in np.split(chunk, ends, 1)]
                        expected += [np.concatenate(share, 1) for share in zip(*shares)]
                for rank, part in enumerate(expected):
                    self.assertEqual(self.rank(rank)["w"], packed(dtype, part))
                self.assert_succeeds(self.join("--force", "--chunk", 64))
                self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())

    def test_headers_as_others_write_them(self):
        # Data in another order than the header, spaces, no padding: all of it comes back.
        self.save(metadata={"b": "2", "a": "1"}, order=list(reversed(MODEL)))
        self.assert_succeeds(self.shard(2))
        self.assertEqual(self.rank(1), parts_of(1, 2))
        self.assert_succeeds(self.join())
        self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())

    def test_a_file_without_tensors(self):
        self.save({}, "[tensors]\n")
        self.assert_succeeds(self.shard(2))
        self.assert_succeeds(self.join())
        self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())

    def test_indexed_sets(self):
        names = list(MODEL)
        files = {"b-1.safetensors": {name: MODEL[name] for name in names[:4]},
                 "a-2.safetensors": {name: MODEL[name] for name in names[4:]}}
        source = self.dir / "source"
        source.mkdir()
        self.plan.write_text(PLAN)
        index = source / "model.safetensors.index.json"
        for total in [True, False]:
            write_index(index, files, total)
            for given in [index, source]:
                self.assert_succeeds(self.shard(4, "--force", source=given))
            for rank in range(4):
                place = self.out / f"rank-{rank}"
                told = json.loads((place / index.name).read_text())
                before = json.loads(index.read_text())
                self.assertEqual(told["weight_map"], before["weight_map"])
                found = {}
                for name in files:
                    tensors, metadata = read_safetensors(place / name)
                    self.assertEqual(without_mark(metadata), {"format": "pt", "of": name})
                    self.assertEqual({told["weight_map"][tensor] for tensor in tensors}, {name})
                    found.update(tensors)
                self.assertEqual(found, parts_of(rank, 4))
                if total:
                    size = sum(len(tensor[2]) for tensor in found.values())
                    self.assertEqual(told["metadata"], {"total_size": size, "note": "é"})
            joined = self.dir / f"joined-{total}"
            self.assert_succeeds(self.join(out=joined))
            self.assertEqual(sorted(os.listdir(joined)), sorted(os.listdir(source)))
            for path in source.iterdir():
                self.assertEqual((joined / path.name).read_bytes(), path.read_bytes())
            self.assert_fails(self.join(), USAGE, "2 files", left=os.listdir(self.out))
            two = self.dir / f"two-{total}"
            self.assert_succeeds(self.join("--tp", 2, out=two))
            self.assert_succeeds(self.join("--force", source=two, out=joined))
            self.assertEqual((joined / index.name).read_bytes(), index.read_bytes())

    def test_ranks_that_others_made(self):
        for tp in [2, 4]:
            self.save(metadata={"format": "pt"})
            self.assert_succeeds(self.shard(tp, "--force"))
            ranks = [self.out / f"rank-{rank}" for rank in range(tp)]
            joined = self.dir / "by-hand.safetensors"
            command = ["join", *ranks, "--plan", self.plan, "-o", joined, "--force"]
            self.assert_succeeds(self.run_tool(*command))
            self.assertEqual(read_safetensors(joined), read_safetensors(self.model))
            anew, direct = self.dir / "anew", self.dir / "direct"
            command = ["join", *ranks, "--plan", self.plan, "--tp", 1, "-o", anew, "--force"]
            self.assert_succeeds(self.run_tool(*command))
            self.assert_succeeds(self.shard(1, "--force", out=direct))
            self.assertEqual(self.rank(0, anew), self.rank(0, direct))
            self.plan.write_text(PLAN + "# another\n")
            self.assert_fails(self.run_tool(*command), REFUSED, "different plan",
                              left=os.listdir(self.out))
            self.assert_fails(self.run_tool("join", *ranks, "-o", joined, "--force"), USAGE,
                              "libsplit.json", str(self.out), left=os.listdir(self.out))
        (self.out / "libsplit.json").unlink()
        self.assert_fails(self.join("--force"), USAGE, "libsplit.json", "--plan",
                          left=[f"rank-{rank}" for rank in range(4)])

    def test_numbers_from_the_command_line_the_plan_and_the_config(self):
        plan = "[values]\nb = 3\n[tensors]\nw = {rule = 'packed', parts = 'x:{a},y:{b},z:{c|d}'}\n"
        self.save({"w": noise("U8", 12, 1)}, plan)
        (self.dir / "config.json").write_text(json.dumps({"a": 4, "b": 9, "d": 5}))
        self.assert_succeeds(self.shard(1, "--dry-run"))
        self.assert_fails(self.shard(2, "--dry-run"), REFUSED, "3 heads of y (width 1)", "2 ranks")
        self.assert_fails(self.shard(1, "--dry-run", "--set", "b=9"), REFUSED, "12", "4 heads of x + 9 heads of y + 5 heads of z")
        self.assert_succeeds(self.shard(1, "--set", "a=2", "--set", "c=7"))
        manifest = json.loads((self.out / "libsplit.json").read_text())
        self.assertEqual(manifest["values"], {"a": 2, "b": 3, "c": 7})
        (self.dir / "config.json").unlink()  # the shards have their numbers with them
        self.assert_succeeds(self.join())
        out = self.dir / "other"
        self.assert_fails(self.shard(1, out=out), REFUSED, "a is not known", "--set a=N",
                          left=os.listdir(self.out))


class Told(CheckpointTest):
    def test_what_matches_nothing(self):
        extra = {f"extra.{number}.b": noise("U8", 3) for number in range(1000)}
        self.save({**MODEL, **extra}, PLAN + "'lost.*' = 'colwise'\n")
        self.assert_fails(self.shard(2), REFUSED, "1000 tensors: extra.N.b (1000)",
                          "1 pattern: lost.*", "--allow-unmatched")
        self.assertFalse(self.out.exists())
        run = self.shard(2, "--allow-unmatched")
        self.assertEqual(run.returncode, 0)
        self.assertEqual(run.stderr.splitlines(), [
            "warning: no pattern matches 1000 tensors: extra.N.b (1000)",
            "warning: no tensor matches 1 pattern: lost.*"])
        self.assertEqual(self.rank(1)["extra.7.b"], extra["extra.7.b"])
        told = json.loads(self.shard(2, "--json", "--force", "--allow-unmatched").stdout)
        self.assertEqual(len(told["warnings"]), 2)
        self.assert_succeeds(self.join())  # it has been accepted before

    def test_refusals(self):
        for plan, tp, words in [
            ("q = 'colwise'", 3, ["q.", "16", "3 ranks", "--tp"]),
            ("q = {rule = 'colwise', heads = 6}", 2, ["q.", "16", "6 heads"]),
            ("'q.weight' = {rule = 'rowwise', heads = 3}", 2,
             ["q.weight", "6", "3 heads (width 2)", "2 ranks"]),
            ("o = {rule = 'rowwise', heads = 4}", 8, ["o.weight", "4 heads (width 4)", "8 ranks", "divides 4"]),
            ("q = {rule = 'packed', split_factor = 5}", 1, ["q.", "16", "5 equal parts"]),
            ("'q.weight' = {rule = 'colwise', axis = 2}", 1, ["q.weight", "axis 2", "2 axes"]),
            ("o = {rule = 'rowwise', heads = 4}", 3, ["4 heads (width 4)", "divides 4"]),
            ("q = 'colwise'", 3, ["divides 16, or pad_to = 3"]),
            ("kv = {rule = 'packed', parts = 'q:1,k:1', layout = 'grouped', replicate_kv = true}", 2,
             ["1 head of q", "replicate it"]),
            ("'q.weight' = {rule = 'packed', parts = 'q:6,k:2', layout = 'grouped'}", 3,
             ["2 groups", "divides 2,"]),
            ("scalar = 'colwise'", 2, ["scalar", "0", "axis"]),
        ]:
            self.save(plan="[tensors]\n" + plan)
            with self.subTest(plan=plan):
                run = self.shard(tp)
                self.assertEqual((run.returncode, run.stdout), (REFUSED, ""), run.stderr)
                for word in words:
                    self.assertIn(word, run.stderr.splitlines()[-1])
                self.assertFalse(self.out.exists())

    def test_plans_that_are_none(self):
        for plan, code, words in [
            ("q = 'colwise'", INVALID, ["q"]),
            ("[tensors]\nq = 'columns'", INVALID, ['"q"', "columns", "colwise"]),
            ("[tensors", INVALID, ["line 1"]),
        ]:
            self.save(plan=plan)
            run = self.shard(2)
            self.assertEqual((run.returncode, run.stdout), (code, ""))
            for word in [str(self.plan), *words]:
                self.assertIn(word, run.stderr)
        run = self.run_tool("shard", self.model, "--tp", 2, "--plan", "lama", "-o", self.out)
        self.assert_fails(run, FAILED, "lama", "neither a ready plan (auto, llama, phi, gpt-neox")
        run = self.run_tool("shard", self.model, "--tp", 2, "-o", self.out)
        self.assert_fails(run, USAGE, "--plan auto", "llama")

    def test_a_dry_run_writes_nothing(self):
        self.save()
        run = self.shard(2, "--dry-run")
        self.assert_succeeds(run)
        self.assertFalse(self.out.exists())
        self.assertIn('q.weight  F32 [16, 6]  cut on axis 0, [8, 6] per rank, by "q"\n', run.stdout)
        self.assertIn('norm  F64 [3]  whole, by "norm"\n', run.stdout)
        size = sum(len(tensor[2]) for tensor in parts_of(0, 2).values())
        self.assertIn(f"2 ranks of {size} B, ", run.stdout.splitlines()[-1])
        self.save({f"{layer}.q.weight": noise("U8", 4, 4) for layer in range(30)},
                  "[tensors]\n'*.q' = 'colwise'\n")
        self.assertIn("N.q.weight (30)  U8 [4, 4]  cut on axis 0", self.shard(2, "--dry-run").stdout)
        self.save()
        told = json.loads(self.shard(2, "--dry-run", "--json").stdout)
        shapes = {tensor["name"]: tuple(tensor["rank_shape"]) for tensor in told["tensors"]}
        self.assertEqual(shapes, {name: tensor[1] for name, tensor in parts_of(0, 2).items()})
        self.assertEqual((told["tp"], told["dry_run"], told["bytes_written"]), (2, True, 0))

    def test_info(self):
        self.save(metadata={"format": "pt"})
        text = self.run_tool("info", self.model).stdout
        self.assertIn("9 tensors", text)
        self.assertIn('format = "pt"', text)
        told = json.loads(self.run_tool("info", self.model, "--json").stdout)
        content = self.model.read_bytes()
        for tensor in told["files"][0]["tensors"]:
            found = content[tensor["begin"]:tensor["begin"] + tensor["bytes"]]
            self.assertEqual((tensor["dtype"], tuple(tensor["shape"]), found), MODEL[tensor["name"]])
        self.assertEqual(told["files"][0]["metadata"], {"format": "pt"})
        self.shard(4)
        self.assertIn("shards for 4 ranks", self.run_tool("info", self.out).stdout)
        self.assertEqual(json.loads(self.run_tool("info", self.out, "--json").stdout)["tp"], 4)
        self.assertIn("[4, 6]", self.run_tool("info", self.out / "rank-3").stdout)
        np.save(self.dir / "a.npy", np.asfortranarray(np.zeros((2, 3), "<f4")))
        text = self.run_tool("info", self.dir / "a.npy").stdout
        self.assertIn("'<f4'  (2, 3)  Fortran order, 24 B", text)
        told = json.loads(self.run_tool("info", self.dir / "a.npy", "--json").stdout)
        self.assertEqual((told["shape"], told["begin"], told["bytes"]), ([2, 3], 128, 24))
        self.assert_fails(self.run_tool("info", self.dir / "gone"), FAILED, "gone",
                          left=os.listdir(self.out))

    def test_a_reader_that_goes_away(self):
        self.save({f"tensor-{number}": noise("U8", 1) for number in range(10000)})
        command = [LIBSPLIT, "info", self.model]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            run.stdout.readline()
            run.stdout.close()
            self.assertEqual((run.wait(), run.stderr.read()), (0, b""))


class Corrupt(CheckpointTest):
    def assert_invalid(self, *words):
        for command in [["info", self.model], ["shard", self.model, "--tp", "2", "--plan", self.plan,
                                               "-o", self.out]]:
            self.assert_fails(self.run_tool(*command), INVALID, str(self.model), *words)

    def test_truncated_and_too_long_files(self):
        self.save({"q.weight": MODEL["q.weight"]})
        content = self.model.read_bytes()
        for size in [0, 1, 7, 8, 9, 50, len(content) - 385, len(content) - 384, len(content) - 1]:
            self.model.write_bytes(content[:size])
            with self.subTest(size=size):
                self.assert_invalid("truncated")
        self.model.write_bytes(content + b"x")
        self.assert_invalid("384", "385")

    def test_headers_that_are_wrong(self):
        good = {"w": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                "v": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}}
        self.plan.write_text("[tensors]\n")
        for key, value, *words in [
            ("data_offsets", [3, 7], "v", "w", "3", "4"),
            ("data_offsets", [5, 9], "v", "5", "4"),
            ("data_offsets", [4, 9], "v", "4", "9"),
            ("data_offsets", [8, 4], "v", "8", "4"),
            ("data_offsets", [-4, 0], "-4"),
            ("data_offsets", [4, 2**64 - 1], "v", "18446744073709551611"),
            ("data_offsets", [4, 2**64], "header"),
            ("shape", [2**63, 2**63], "v"),
            ("shape", [2**64], "header"),
            ("shape", 4, "header"),
            ("dtype", "U9", "v", "U9"),
        ]:
            header = json.dumps({**good, "v": {**good["v"], key: value}}).encode()
            self.model.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
            with self.subTest(key=key, value=value):
                self.assert_invalid(*words)
        for header in [b"", b"[]", b"{", b"{}}", b"\xff", b'{"w": 1}', b'{"w":' * 100000]:
            self.model.write_bytes(struct.pack("<Q", len(header)) + header)
            self.assert_invalid()
        for length in [2**64 - 1, 2**63, 100_000_001, 5]:
            self.model.write_bytes(struct.pack("<Q", length) + b"{}")
            self.assert_invalid(str(length))

    def test_indexes_that_are_wrong(self):
        self.plan.write_text("[tensors]\n")
        index = self.dir / "model.safetensors.index.json"
        write_safetensors(self.dir / "a.safetensors", {"w": noise("U8", 1), "v": noise("U8", 1)})
        for content, *words in [
            ("", "not an index"),
            ("{}", "weight_map"),
            ('{"weight_map": {"w": 1}}', "w"),
            ('{"weight_map": {"w": "../a.safetensors"}}', "../a.safetensors"),
            ('{"weight_map": {"w": "/a.safetensors"}}', "/a.safetensors"),
            ('{"weight_map": {"w": "a.safetensors", "v": "a.safetensors", "x": "a.safetensors"}}',
             "x", "does not contain"),
        ]:
            index.write_text(content)
            with self.subTest(content=content):
                run = self.run_tool("shard", index, "--tp", 1, "--plan", self.plan, "-o", self.out)
                self.assert_fails(run, INVALID, str(index), *words)
        index.write_text('{"weight_map": {"w": "gone.safetensors"}}')
        self.assert_fails(self.shard(1, source=index), FAILED, "gone.safetensors", "No such file")
        index.unlink()
        write_safetensors(self.model, {"w": noise("U8", 1)})
        self.assert_fails(self.shard(1, source=self.dir), INVALID, "2 .safetensors files and no",
                          ".safetensors.index.json")
        for name in ["a", "b"]:
            (self.dir / f"{name}.safetensors.index.json").write_text("{}")
        self.assert_fails(self.shard(1, source=self.dir), INVALID, "both a.safetensors.index.json and b")

    def test_shards_that_are_not_what_they_were(self):
        self.save()
        self.assert_succeeds(self.shard(4))
        names = os.listdir(self.out)
        keep = shutil.copytree(self.out, self.dir / "keep")

        def damage(path, content):
            shutil.rmtree(self.out)
            shutil.copytree(keep, self.out)
            if content is None:
                (self.out / path).unlink()
            else:
                (self.out / path).write_bytes(content)

        one = (self.out / "rank-1/model.safetensors").read_bytes()
        two = (self.out / "rank-2/model.safetensors").read_bytes()
        other = self.dir / "other.safetensors"
        manifest = (self.out / "libsplit.json").read_text()
        path = "rank-1/model.safetensors"
        tensors, metadata = read_safetensors(self.out / path)

        def changed(**changes):
            write_safetensors(other, {**tensors, **changes}, metadata)
            return other.read_bytes()

        norm = tensors["norm"]
        flipped = bytes([norm[2][0] ^ 1]) + norm[2][1:]
        kv, q = tensors["kv.weight"], tensors["q.weight"]
        for place, content, code, *words in [
            (path, None, FAILED, "rank-1", "No such file"),
            (path, one[:-1], INVALID, "rank-1", "truncated"),
            (path, changed(more=norm), INVALID, "rank-1", "10 tensors", "9"),
            (path, changed(norm=("F32", (6,), norm[2])), INVALID, "rank-1", "norm", "F32", "F64"),
            (path, changed(norm=(*norm[:2], flipped)), INVALID, "norm", "rank-1", "differs"),
            (path, changed(**{"kv.weight": (*kv[:2], bytes(12))}), INVALID, "kv.weight", "rank-1"),
            (path, changed(**{"q.weight": (*q[:2], bytes(96))}), INVALID, "q.weight", "checksum"),
            (path, two, INVALID, "rank 2 of 4, in the place of rank 1 of 4", "rank-1"),
            ("libsplit.json", b"{}", INVALID, "libsplit.json"),
            ("libsplit.json", manifest.replace('"version": 1', '"version": 9').encode(), INVALID,
             "version 9", "newer libsplit"),
            ("libsplit.json", manifest.replace('"libsplit-shards"', '"shards"').encode(), INVALID,
             '"shards"', "libsplit-shards"),
            ("libsplit.json", manifest.replace('"tp": 4', '"tp": 0').encode(), INVALID, "tp 0"),
            ("libsplit.json", manifest.replace("model.saf", "../model.saf").encode(), INVALID,
             "../model.safetensors"),
            *(("libsplit.json", manifest.replace(old, new).encode(), INVALID, "libsplit.json", "checksum")
              for old, new in [('"tp": 4', '"tp": 2'), ("F32", "F16"), ("heads = 8", "heads = 4"),
                               ('"q.bias": "', '"q.bias": "0'), ("kv.weight", "kw.weight")]),
        ]:
            damage(place, content)
            with self.subTest(place=place, words=words):
                self.assert_fails(self.join(), code, *words, left=names)
                self.assertFalse(self.joined.exists())
                self.assert_fails(self.run_tool("verify", self.out), code, *words, left=names)


def heed_signals():
    """Whoever runs the tests may ignore signals, as nohup does, and children inherit that."""
    for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
        signal.signal(number, signal.SIG_DFL)


class Outputs(CheckpointTest):
    def test_nothing_is_overwritten_unasked(self):
        self.save()
        self.assert_succeeds(self.shard(2))
        names = os.listdir(self.out)
        for more in [[], ["--dry-run"]]:
            self.assert_fails(self.shard(4, *more), EXISTS, "out already contains shards", "--force", left=names)
        self.assert_succeeds(self.shard(4, "--force"))
        self.assertEqual(len(os.listdir(self.out)), 5)
        self.joined.write_text("mine")
        for more in [[], ["--dry-run"]]:
            self.assert_fails(self.join(*more), EXISTS, "joined.safetensors", "--force",
                              left=os.listdir(self.out))
        self.assertEqual(self.joined.read_text(), "mine")
        self.assert_succeeds(self.join("--force"))
        # A directory with something else in it is never replaced; an empty one always.
        other = self.dir / "other"
        other.mkdir()
        self.assert_succeeds(self.shard(2, out=other))
        shutil.rmtree(other)
        other.mkdir()
        (other / "thesis.txt").write_text("mine")
        run = self.shard(2, "--force", out=other)
        self.assert_fails(run, EXISTS, "thesis.txt", left=os.listdir(self.out))
        self.assertEqual((other / "thesis.txt").read_text(), "mine")

    def test_a_joined_file_beside_others(self):
        self.save()
        self.assert_succeeds(self.shard(2))
        place = self.dir / "model"
        place.mkdir()
        (place / "config.json").write_text("{}")
        self.assert_succeeds(self.join(out=place))
        self.assertEqual(sorted(os.listdir(place)), ["config.json", "model.safetensors"])
        self.assertEqual((place / "model.safetensors").read_bytes(), self.model.read_bytes())
        self.assertEqual((place / "model.safetensors").stat().st_mode, self.model.stat().st_mode)
        self.assertEqual(self.out.stat().st_mode, place.stat().st_mode)

    def test_more_ranks_than_open_files(self):
        self.save({"w": noise("U8", 64)}, "[tensors]\nw = { rule = 'colwise', axis = 0 }\n")
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 256))
        self.assert_succeeds(self.shard(64, preexec_fn=few))
        self.assert_succeeds(self.join(preexec_fn=few))
        self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())

    def test_a_full_disk(self):
        self.save({"w": noise("U8", 1000, 1000)}, "[tensors]\nw = 'colwise'\n")
        full = limit(resource.RLIMIT_FSIZE, 300_000)
        self.assert_fails(self.shard(2, preexec_fn=full), FAILED, "rank-0", "File too large")
        self.assertFalse(self.out.exists())
        self.assert_succeeds(self.shard(4, preexec_fn=full))
        names = os.listdir(self.out)
        self.assert_fails(self.join(preexec_fn=full), FAILED, "joined", "File too large", left=names)
        self.assertFalse(self.joined.exists())

    def test_a_disk_that_is_full(self):
        self.save({"w": noise("U8", 3000, 1000)}, "[tensors]\nw = 'colwise'\n")
        disk = self.dir / "disk"
        disk.mkdir()
        script = """mount -t tmpfs -o size=2m tmpfs "$0" && "$@"
                    code=$?; ls -A "$0"; exit $code"""  # nothing may be left
        mount = ["unshare", "-m", "sh", "-c", script, disk]
        tool = [LIBSPLIT, "shard", self.model, "--tp", "2", "--plan", self.plan, "-o", disk / "out"]
        if subprocess.run([*mount, "true"], capture_output=True).returncode != 0:
            return self.test_a_full_disk()  # no right to mount here; the other way to fill a disk
        run = subprocess.run([*mount, *tool], capture_output=True, text=True)
        self.assert_fails(run, FAILED, "rank-1", "No space left")

    def start_and_send(self, number, command):
        """Runs a command, and sends it a signal as soon as there is something of its output."""
        pipe = subprocess.PIPE
        for _ in range(10):  # for it may be done before the signal comes
            run = subprocess.Popen([str(word) for word in command], stdout=pipe, stderr=pipe, text=True,
                                   preexec_fn=heed_signals)
            while run.poll() is None and not list(self.dir.glob(".libsplit-*/rank-1/*")):
                time.sleep(0.001)
            run.send_signal(number)
            stdout, stderr = run.communicate()
            if run.returncode != 0:
                break
            shutil.rmtree(self.out)
        return subprocess.CompletedProcess(command, run.returncode, stdout, stderr)

    def test_signals(self):
        self.save({"w": noise("U8", 400_000, 400)}, "[tensors]\nw = 'rowwise'\n")
        command = [LIBSPLIT, "shard", self.model, "--tp", 200, "--plan", self.plan, "-o", self.out]
        for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
            self.assert_fails(self.start_and_send(number, command), STOPPED, "stopped")
            self.assertFalse(self.out.exists())
        self.assertEqual(self.start_and_send(signal.SIGKILL, command).returncode, -signal.SIGKILL)
        self.assertFalse(self.out.exists())
        for path in self.dir.glob(".libsplit-*"):
            shutil.rmtree(path)
        self.assert_succeeds(self.shard(2))  # nothing is in the way of another attempt
        before = {path: path.read_bytes() for path in self.out.rglob("*.*")}
        self.assertEqual(self.start_and_send(signal.SIGKILL, [*command, "--force"]).returncode,
                         -signal.SIGKILL)
        self.assertEqual({path: path.read_bytes() for path in self.out.rglob("*.*")}, before)

    def measured(self, *arguments):
        """Runs the tool; gives its largest memory in bytes, and what it read."""
        command = [sys.executable, "-I", "-S", "-c", MEASURE, LIBSPLIT, *arguments]
        run = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assert_succeeds(run)
        memory, read = run.stdout.split()[-2:]
        return int(memory) * 1024, int(read)

    def test_memory_does_not_grow_with_tensors_times_ranks(self):
        tensors = {f"layers.{layer}.w.weight": noise("U8", 64, 1) for layer in range(4000)}
        self.save(tensors, "[tensors]\n'*.w' = 'colwise'\n")
        plan = ["--plan", self.plan]
        ranks = [self.out / f"rank-{rank}" for rank in range(64)]
        for command in [["shard", self.model, "--tp", 64, *plan, "-o", self.out], ["verify", self.out],
                        ["join", self.out, "-o", self.joined],
                        ["join", *ranks, *plan, "-o", self.dir / "other.safetensors"]]:
            memory, _ = self.measured(*command)
            self.assertLess(memory, 32 << 20)

    def test_memory_is_that_of_chunks_and_the_input_is_read_once(self):
        # One tensor, mostly a hole in the file, with numbers here and there.
        rows, columns = 48 * 1024, 4096
        for rule, shape in [("colwise", (rows, columns)), ("rowwise", (rows, columns)),
                            ("rowwise", (2, rows * columns // 2)), ("packed", (rows, columns)),
                            ("replicate", (rows, columns))]:
            header = {"w": {"dtype": "U8", "shape": shape, "data_offsets": [0, rows * columns]}}
            text = json.dumps(header).encode()
            with open(self.model, "wb") as file:
                file.write(struct.pack("<Q", len(text)) + text)
                file.truncate(8 + len(text) + rows * columns)
            data = np.memmap(self.model, "u1", "r+", 8 + len(text), shape)
            data.reshape(-1)[::99_991] = RANDOM.integers(0, 256, -(-rows * columns // 99_991))
            data.flush()
            self.plan.write_text(f"[tensors]\nw = '{rule}'\n")
            size = self.model.stat().st_size
            with self.subTest(rule=rule, shape=shape):
                plan = ["--plan", self.plan, "-o", self.out, "--force", "--chunk", "1M"]
                memory, read = self.measured("shard", self.model, "--tp", 2, *plan)
                self.assertLess(memory, 16 << 20)
                self.assertLess(read, size + (1 << 20))
                memory, _ = self.measured("join", self.out, "-o", self.joined, "--force",
                                          "--chunk", "1M")
                self.assertLess(memory, 16 << 20)
                same = subprocess.run(["cmp", self.joined, self.model])
                self.assertEqual(same.returncode, 0)


class NothingLost(CheckpointTest):
    """What --force replaces, and in which order ranks are joined."""

    def test_force_replaces_what_the_manifest_lists_and_nothing_else(self):
        self.save()
        self.assert_succeeds(self.shard(2))
        for place in ["config.json", "joined.safetensors", "rank-0/extra", "rank-1/deep/er", "rank-7/a"]:
            path = self.out / place
            path.parent.mkdir(exist_ok=True)
            path.write_text("mine")
            before = {path: path.read_bytes() for path in self.out.rglob("*") if path.is_file()}
            for more in [[], ["--dry-run"]]:
                run = self.shard(4, "--force", *more)
                self.assert_fails(run, EXISTS, place.split("/er")[0], left=os.listdir(self.out))
            after = {path: path.read_bytes() for path in self.out.rglob("*") if path.is_file()}
            self.assertEqual(after, before)
            path.unlink()
            if path.parent != self.out and not list(path.parent.iterdir()):
                path.parent.rmdir()
        self.assert_succeeds(self.shard(4, "--force"))

    def test_an_input_is_never_replaced(self):
        self.save()
        self.assert_succeeds(self.shard(2))
        inside = self.out / "model.safetensors"
        shutil.move(self.model, inside)
        names = sorted(os.listdir(self.out))
        run = self.shard(4, "--force", source=inside)
        self.assert_fails(run, EXISTS, "model.safetensors", left=names)
        link = self.dir / "link.safetensors"
        link.symlink_to(inside)
        self.assert_fails(self.shard(4, "--force", source=link), EXISTS, left=names)
        link.unlink()
        shutil.move(inside, self.model)
        names = sorted(os.listdir(self.out))
        # A reshard onto itself, and a joined file in the place of a shard.
        self.assert_fails(self.join("--tp", 4, "--force", out=self.out), EXISTS, "one of the inputs", left=names)
        shard = self.out / "rank-0/model.safetensors"
        for target in [shard, self.out / "rank-0"]:
            self.assert_fails(self.join("--force", out=target), EXISTS, "one of the inputs", left=names)
        link = self.dir / "linked"
        link.symlink_to(self.out)
        for target in [link / "rank-1/model.safetensors", link / "rank-1"]:
            self.assert_fails(self.join("--force", out=target), EXISTS, "one of the inputs", left=names)
        self.assert_succeeds(self.join())
        self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())

    def test_nothing_is_replaced_through_a_link(self):
        self.save()
        real = self.dir / "real"
        self.assert_succeeds(self.shard(2, out=real))
        self.out.symlink_to(real)
        before = {path: path.read_bytes() for path in real.rglob("*.*")}
        run = self.shard(4, "--force")
        self.assertEqual(run.returncode, EXISTS)
        self.assertIn("is a link", run.stderr)
        run = self.shard(4, "--force", out=f"{self.out}/")
        self.assertEqual(run.returncode, EXISTS)
        self.assertIn("is a link", run.stderr)
        self.out.unlink()
        shard = real / "rank-0/model.safetensors"
        shutil.move(shard, self.dir / "elsewhere")
        shard.symlink_to(self.dir / "elsewhere")
        run = self.shard(4, "--force", out=real)
        self.assertEqual(run.returncode, EXISTS)
        self.assertIn("rank-0/model.safetensors", run.stderr)
        shard.unlink()
        shutil.move(self.dir / "elsewhere", shard)
        shutil.move(real / "rank-1", self.dir / "elsewhere")
        (real / "rank-1").symlink_to(self.dir / "elsewhere")
        run = self.shard(4, "--force", out=real)
        self.assertEqual(run.returncode, EXISTS)
        self.assertIn("rank-1", run.stderr)
        (real / "rank-1").unlink()
        shutil.move(self.dir / "elsewhere", real / "rank-1")
        self.assertEqual({path: path.read_bytes() for path in real.rglob("*.*")}, before)

    def test_the_current_directory_is_refused_at_once(self):
        self.save()
        self.out.mkdir()
        for out in [".", "../out", "..", str(self.out)]:
            run = self.shard(2, out=out, cwd=self.out)
            self.assert_fails(run, EXISTS, "give a new one inside it")

    def test_ranks_are_joined_in_their_order(self):
        self.save({"w": noise("U8", 24)}, "[tensors]\nw = { rule = 'colwise', axis = 0 }\n")
        self.assert_succeeds(self.shard(12))
        ranks = sorted(self.out.glob("rank-*"))  # as the shell has it: 0, 1, 10, 11, 2
        self.assertEqual(ranks[2].name, "rank-10")
        by_hand = ["--plan", self.plan, "-o", self.joined, "--force"]
        names = os.listdir(self.out)
        self.assert_succeeds(self.run_tool("join", *ranks, *by_hand))
        self.assertEqual(read_safetensors(self.joined), read_safetensors(self.model))
        for wrong, *words in [
            (ranks[:-1], "12 ranks", "names 11"),
            ([*ranks[:-1], ranks[0]], "both are rank 0 of 12"),
            ([ranks[3]], "one of 12 ranks", "names 1"),
        ]:
            run = self.run_tool("join", *wrong, *by_hand)
            self.assert_fails(run, INVALID, *words, left=names)
        # Shards that do not say which they are have to be given by their numbers.
        for path in ranks:
            tensors, metadata = read_safetensors(path / "model.safetensors")
            write_safetensors(path / "model.safetensors", tensors, without_mark(metadata))
        for wrong in [ranks, ranks[:2] + [ranks[0]], [ranks[0], ranks[4]], [ranks[1], ranks[0]]]:
            run = self.run_tool("join", *wrong, *by_hand)
            self.assert_fails(run, REFUSED, "do not give this order" if len(wrong) != 3 else "twice",
                              left=names)
        (self.dir / "link").symlink_to(ranks[0])
        run = self.run_tool("join", ranks[0], self.dir / "link", *by_hand)
        self.assert_fails(run, REFUSED, "given twice", left=names)
        self.assert_fails(self.run_tool("join", ranks[0], *by_hand), REFUSED, "the only one", left=names)
        ranks = [self.out / f"rank-{rank}" for rank in range(12)]
        self.assert_succeeds(self.run_tool("join", *ranks, *by_hand))
        self.assertEqual(read_safetensors(self.joined), read_safetensors(self.model))

    def test_ranks_of_two_models_are_not_joined(self):
        # With the same plan and the same shapes, and without the manifest. What every rank has is alike.
        plan = "[tensors]\nw = 'colwise'\nn = 'replicate'\n"
        n, w = noise("U8", 3), noise("U8", 8, 2)
        self.save({"w.weight": w, "n": n}, plan)
        self.assert_succeeds(self.shard(2, out=self.dir / "one"))
        self.save({"w.weight": noise("U8", 8, 2), "n": n}, plan)
        self.assert_succeeds(self.shard(2, out=self.dir / "two"))
        ranks = [self.dir / "one/rank-0", self.dir / "two/rank-1"]
        run = self.run_tool("join", *ranks, "--plan", self.plan, "-o", self.joined)
        self.assert_fails(run, INVALID, "rank 1", "a different model")
        path = self.dir / "one/rank-1/model.safetensors"
        content = path.read_bytes()
        path.write_bytes(content[:-4] + bytes([content[-4] ^ 1]) + content[-3:])
        ranks = [self.dir / f"one/rank-{rank}" for rank in range(2)]
        run = self.run_tool("join", *ranks, "--plan", self.plan, "-o", self.joined)
        self.assert_fails(run, INVALID, "damaged")
        # The same model gives the same shards, wherever it lies.
        self.save({"w.weight": w, "n": n}, plan)
        self.assert_succeeds(self.shard(2, out=self.dir / "three"))
        ranks = [self.dir / "one/rank-0", self.dir / "three/rank-1"]
        run = self.run_tool("join", *ranks, "--plan", self.plan, "-o", self.joined)
        self.assert_succeeds(run)
        self.assertEqual(read_safetensors(self.joined), read_safetensors(self.model))

    def test_ranks_of_two_plans_are_not_joined(self):
        # Of one model, and with the same shapes on every rank: only their order in the whole differs.
        tensors = {"w.weight": noise("U8", 8, 2)}
        one, two = [self.dir / name for name in ("one", "two")]
        self.save(tensors, "[tensors]\nw = { rule = 'packed', split_factor = 2 }\n")
        self.assert_succeeds(self.shard(2, out=two))
        self.save(tensors, "[tensors]\nw = 'colwise'\n")
        self.assert_succeeds(self.shard(2, out=one))
        for other in [0, 1]:
            ranks = [(two if rank == other else one) / f"rank-{rank}" for rank in range(2)]
            run = self.run_tool("join", *ranks, "--plan", self.plan, "-o", self.joined)
            self.assert_fails(run, INVALID, "rank-1", "a different plan from rank 0")
        shutil.rmtree(one / "rank-1")
        shutil.copytree(two / "rank-1", one / "rank-1")
        self.assert_fails(self.join(source=one), INVALID, "rank-1", "a different plan or different numbers")
        self.assertFalse(self.joined.exists())

    def test_ranks_are_joined_by_a_ready_plan(self):
        at = "model.layers.0.self_attn."
        tensors = {f"{at}{name}_proj.weight": noise("U8", 8, 8) for name in "qkvo"}
        tensors |= {"model.norm.weight": noise("U8", 8), "model.embed_tokens.weight": noise("U8", 8, 4)}
        write_safetensors(self.model, tensors)
        how = ["--plan", "llama", "--set", "num_attention_heads=4", "--set", "num_key_value_heads=4"]
        self.assert_succeeds(self.run_tool("shard", self.model, "--tp", 2, *how, "-o", self.out))
        ranks = [self.out / f"rank-{rank}" for rank in range(2)]
        self.assert_succeeds(self.run_tool("join", *ranks, *how, "-o", self.joined))
        self.assertEqual(read_safetensors(self.joined), read_safetensors(self.model))
        run = self.run_tool("join", *ranks, *how, "--set", "vocab_multiple=8", "-o", self.joined, "--force")
        self.assert_fails(run, REFUSED, "padding", left=os.listdir(self.out))

    def test_swapped_ranks_are_found(self):
        self.save()
        self.assert_succeeds(self.shard(2))
        os.rename(self.out / "rank-0", self.out / "t")
        os.rename(self.out / "rank-1", self.out / "rank-0")
        os.rename(self.out / "t", self.out / "rank-1")
        self.assert_fails(self.join(), INVALID, "rank 1 of 2, in the place of rank 0 of 2",
                          left=os.listdir(self.out))

    def test_a_shard_is_not_taken_for_a_checkpoint(self):
        self.save()
        self.assert_succeeds(self.shard(2))
        run = self.shard(2, source=self.out / "rank-0", out=self.dir / "again")
        self.assert_fails(run, REFUSED, "rank 0 of 2", "join", left=os.listdir(self.out))

    def test_a_flipped_bit_in_any_shard_is_found(self):
        self.save()
        self.assert_succeeds(self.shard(2))
        self.assertIn("match their checksums", self.run_tool("verify", self.out).stdout)
        told = json.loads(self.run_tool("verify", self.out, "--json").stdout)
        self.assertEqual((told["tp"], told["tensors"]), (2, 9))
        path = self.out / "rank-1/model.safetensors"
        good = path.read_bytes()
        begin = 8 + struct.unpack("<Q", good[:8])[0]
        for at in range(begin, len(good), 37):
            path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:])
            for run in [self.join(), self.run_tool("verify", self.out)]:
                self.assert_fails(run, INVALID, "tensor ", "rank-", left=os.listdir(self.out))

    def test_an_input_that_changes_meanwhile(self):
        self.save({"w": noise("U8", 4000, 4000)}, "[tensors]\nw = 'rowwise'\n")
        for _ in range(10):  # for it may be done before the file changes
            run = subprocess.Popen([LIBSPLIT, "shard", self.model, "--tp", "8", "--plan", self.plan,
                                    "-o", self.out], stderr=subprocess.PIPE, text=True)
            while run.poll() is None and not list(self.dir.glob(".libsplit-*/rank-7/*")):
                time.sleep(0.0005)
            os.utime(self.model)
            _, stderr = run.communicate()
            if run.returncode != 0:
                break
            shutil.rmtree(self.out)
        self.assertEqual(run.returncode, FAILED)
        self.assertIn("has changed", stderr)
        self.assertFalse(self.out.exists())


class Layouts(CheckpointTest):
    """What a rule takes, and what it refuses."""

    def refused(self, tensors, plan, *words, tp=2, code=REFUSED, config=None, more=()):
        self.save(tensors, plan)
        if config is not None:
            (self.dir / "config.json").write_text(json.dumps(config))
        run = self.shard(tp, "--dry-run", *more)
        self.assert_fails(run, code, *words)

    def shapes(self, tensors, plan, tp=2, more=()):
        self.save(tensors, plan)
        run = self.shard(tp, "--dry-run", "--json", *more)
        self.assertEqual(run.returncode, 0, run.stderr)
        return {it["name"]: it["rank_shape"] for it in json.loads(run.stdout)["tensors"]}

    def test_a_module_s_pattern_takes_weight_and_bias_only(self):
        tensors = {"q.weight": noise("U8", 8, 4), "q.bias": noise("U8", 8)}
        for leaf in ["qweight", "qzeros", "scales", "g_idx", "weight_scale", "weight_scale_inv", "norm"]:
            self.refused({**tensors, f"q.{leaf}": noise("U8", 8, 4)}, "[tensors]\nq = 'colwise'\n",
                         "no pattern matches", f"q.{leaf}")
            if leaf != "norm":  # not even by permission
                self.refused({**tensors, f"q.{leaf}": noise("U8", 8, 4)}, "[tensors]\nq = 'colwise'\n",
                             "no pattern matches", f"q.{leaf}", "quantized", more=["--allow-unmatched"])
        # A pattern that matches any name does not cut what belongs to a quantized weight.
        for leaf in ["qweight", "qzeros", "scales", "g_idx", "weight_scale", "weight_packed"]:
            self.refused({**tensors, f"q.{leaf}": noise("U8", 8, 4)}, "[tensors]\n'q.*' = 'colwise'\n",
                         leaf, "any name", f"ends with .{leaf}")
        plan = "[tensors]\nq = 'colwise'\n'q.qweight' = { rule = 'colwise', axis = 1 }\n"
        found = self.shapes({**tensors, "q.qweight": noise("U8", 8, 4)}, plan)
        self.assertEqual(found, {"q.weight": [4, 4], "q.bias": [4], "q.qweight": [8, 2]})

    def test_biases_of_any_axis(self):
        bias = {"c.weight": noise("U8", 8, 4), "c.bias": noise("U8", 4)}
        for axis in [0, -2]:
            plan = f"[tensors]\nc = {{ rule = 'rowwise', axis = {axis} }}\n"
            self.assertEqual(self.shapes(bias, plan), {"c.weight": [4, 4], "c.bias": [4]})
        self.assertEqual(self.shapes(bias, "[tensors]\n'c.*' = { rule = 'rowwise', axis = 0 }\n"),
                         {"c.weight": [4, 4], "c.bias": [4]})
        for axis in [1, -1]:
            plan = f"[tensors]\nc = {{ rule = 'colwise', axis = {axis} }}\n"
            self.assertEqual(self.shapes(bias, plan), {"c.weight": [8, 2], "c.bias": [2]})
        stacked = {"e.weight": noise("U8", 2, 8, 4), "e.bias": noise("U8", 2, 8)}
        self.refused(stacked, "[tensors]\ne = { rule = 'colwise', axis = 1 }\n", "e.bias", "2 axes")
        self.assertEqual(self.shapes(stacked, "[tensors]\ne = { rule = 'rowwise', axis = -1 }\n"),
                         {"e.weight": [2, 8, 2], "e.bias": [2, 8]})

    def test_weights_of_another_rank(self):
        for rule, shape in [("colwise", (8,)), ("rowwise", (8,)), ("colwise", (2, 8, 4)),
                            ("packed", (8,)), ("packed", (8, 2, 2))]:
            self.refused({"w.weight": noise("U8", *shape)}, f"[tensors]\nw = '{rule}'\n",
                         "w.weight", f"has {len(shape)}", "axis = N")

    def test_scales_are_never_guessed(self):
        weight = {"w.weight": noise("U8", 960, 4)}
        plan = "[tensors]\nw = 'colwise'\n'*.scale' = { scale_of = 'weight'%s }\n"
        self.refused({**weight, "w.scale": noise("F32", 8, 1)}, plan % "", "8 scales", "960", "give block")
        self.refused({**weight, "w.scale": noise("F32", 8, 1)}, plan % ", block = [128, 4]", "cut at 480",
                     "block of 128")
        self.refused({**weight, "w.scale": noise("F32", 8, 1)}, plan % ", block = [100, 4]", "8 scales",
                     "need 10")
        self.refused({**weight, "w.scale": noise("F32", 8, 1)}, plan % ", block = 'tensor'", "8")
        self.refused({**weight, "w.scale": noise("F32", 8)}, plan % "", "1 axes", "2")
        self.refused({**weight, "w.scale": noise("F32", 4)}, plan % "", "not clear")
        for scale, here in [((960, 1), [480, 1]), ((1, 1), [1, 1]), ((1,), [1]), ((), []), ((960,), [480])]:
            found = self.shapes({**weight, "w.scale": noise("F32", *scale)}, plan % "")
            self.assertEqual(found["w.scale"], here)
        found = self.shapes({**weight, "w.scale": noise("F32", 8, 1)}, plan % ", block = [120, 4]")
        self.assertEqual(found["w.scale"], [4, 1])
        # A row of scales for the outputs belongs to every rank where inputs are cut.
        found = self.shapes({**weight, "w.scale": noise("F32", 960)}, plan.replace("col", "row") % "")
        self.assertEqual(found["w.scale"], [960])

    def test_the_block_stands_in_the_config(self):
        tensors = {"w.weight": noise("F8_E4M3", 960, 4), "w.weight_scale_inv": noise("F32", 8, 1)}
        plan = ("[tensors]\nw = 'colwise'\n[quantized.fp8]\n'*.weight_scale_inv' = "
                "{ scale_of = 'weight', block = '{weight_block_size}' }\n")
        config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [120, 128]}}
        (self.dir / "config.json").write_text(json.dumps(config))
        self.assertEqual(self.shapes(tensors, plan)["w.weight_scale_inv"], [4, 1])
        config["quantization_config"]["weight_block_size"] = [128, 128]
        self.refused(tensors, plan, "cut at 480", "block of 128", config=config)
        self.refused(tensors, plan, "weight_block_size is not known", "--set weight_block_size=A,B",
                     config={"quantization_config": {"quant_method": "fp8"}})
        shapes = self.shapes(tensors, plan, more=["--set", "weight_block_size=120,128"])
        self.assertEqual(shapes["w.weight_scale_inv"], [4, 1])
        self.refused(tensors, plan, "weight_block_size", "not a list",
                     more=["--set", "weight_block_size=120"], code=INVALID)

    def test_a_quantization_that_the_plan_does_not_know(self):
        tensors = {"w.weight": noise("U8", 8, 4)}
        plan = "[tensors]\nw = 'colwise'\n[quantized.'fp8, awq']\n"
        for method, name in [({"quant_method": "bitsandbytes"}, "bitsandbytes"),
                             ({"quant_method": "compressed-tensors", "format": "int-quantized",
                               "config_groups": {"group_0": {"weights": {"strategy": "group"}}}},
                              "compressed-tensors-group"),
                             ({"bits": 4}, "an unnamed method"),
                             ({"quant_method": "gptq", "bits": 3}, "gptq-3-bit"),
                             ({"quant_method": "awq", "version": "gemv"}, "awq-gemv")]:
            self.refused(tensors, plan, f"quantized with {name}", "fp8, awq", f"[quantized.\"{name}\"]",
                         config={"quantization_config": method})
            self.refused(tensors, plan, f"quantized with {name}",
                         config={"text_config": {"quantization_config": method}})

    def test_numbers_and_keys_that_mean_nothing(self):
        tensors = {"w.weight": noise("U8", 8, 4)}
        plan = "[tensors]\nw = { rule = 'colwise', heads = '{n}' }\n"
        self.refused(tensors, plan, "--set num_kv_heads", "it uses: n", code=USAGE,
                     more=["--set", "n=2", "--set", "num_kv_heads=2"])
        self.refused(tensors, plan, "--set n is given twice", code=USAGE,
                     more=["--set", "n=2", "--set", "n=4"])
        for rule, *words in [
            ("{ rule = 'replicate', groups = 2 }", "groups", "replicate"),
            ("{ rule = 'replicate', axis = 0 }", "axis", "replicate"),
            ("{ scale_of = 'weight', layout = 'grouped' }", "layout", "scale_of"),
            ("{ scale_of = 'weight', rule = 'colwise' }", "both"),
            ("{ rule = 'rowwise', heads = 2, replicate_kv = true }", "replicate_kv", "rowwise"),
            ("{ rule = 'colwise', split_factor = 2 }", "split_factor", "colwise"),
            ("{ rule = 'packed', heads = 2 }", "heads", "packed"),
            ("{ rule = 'packed', parts = 'a:1', split_factor = 2 }", "parts and split_factor"),
            ("{ rule = 'packed', parts = 'a:1x2,b:1' }", "every part"),
            ("{ rule = 'packed', parts = 'a:1,b:1 whole' }", "whole"),
            ("{ rule = 'colwise', by = 'experts' }", "by", "colwise"),
            ("{ rule = 'by_index', by = 'experts' }", "by_index", "of"),
        ]:
            self.refused(tensors, f"[tensors]\nw = {rule}\n", *words, code=INVALID)

    def test_a_vision_tower_is_not_cut_by_the_text_model_s_numbers(self):
        names = ["q_proj", "k_proj", "v_proj", "o_proj"]
        text = {f"language_model.model.layers.0.self_attn.{name}.weight": noise("U8", 8, 8)
                for name in names}
        tower = {f"vision_tower.layers.0.self_attn.{name}.weight": noise("U8", 8, 8) for name in names}
        rest = {"language_model.model.embed_tokens.weight": noise("U8", 8, 4),
                "language_model.model.norm.weight": noise("U8", 4)}
        config = {"text_config": {"num_attention_heads": 4, "model_type": "llama"},
                  "vision_config": {"num_attention_heads": 3}, "eos": 1e400}
        text_of_config = json.dumps(config)
        self.assertIn("Infinity", text_of_config)  # as Python writes it
        (self.dir / "config.json").write_text(text_of_config)
        write_safetensors(self.model, {**text, **tower, **rest})
        run = self.run_tool("shard", self.model, "--tp", 2, "--plan", "auto", "--dry-run", "--json")
        self.assert_succeeds(run)
        shapes = {it["name"]: it["rank_shape"] for it in json.loads(run.stdout)["tensors"]}
        self.assertEqual({tuple(shapes[name]) for name in tower}, {(8, 8)})
        self.assertEqual({tuple(shapes[name]) for name in text}, {(4, 8), (8, 4)})
        other = {name.replace("vision_tower", "audio_tower"): it for name, it in tower.items()}
        write_safetensors(self.model, {**text, **other, **rest})
        run = self.run_tool("shard", self.model, "--tp", 2, "--plan", "auto", "--dry-run")
        self.assert_fails(run, REFUSED, "4 tensors", "audio_tower.layers.N.self_attn.q_proj.weight")

    def test_a_ready_plan_is_only_for_its_models(self):
        # OLMo 2 names its tensors as Llama does, and its q_norm would have to be cut.
        at = "model.layers.0.self_attn."
        tensors = {f"{at}{name}_proj.weight": noise("U8", 8, 8) for name in "qkvo"}
        tensors |= {at + "q_norm.weight": noise("U8", 8), "model.embed_tokens.weight": noise("U8", 8, 4)}
        write_safetensors(self.model, tensors)
        config = {"model_type": "olmo2", "num_attention_heads": 4, "num_key_value_heads": 4}
        for model in ["olmo2", "phi"]:  # there is a plan named phi, but it is for Phi-3
            (self.dir / "config.json").write_text(json.dumps({**config, "model_type": model}))
            for plan in ["llama", "mistral", "auto"]:
                run = self.run_tool("shard", self.model, "--tp", 2, "--plan", plan, "-o", self.out)
                self.assert_fails(run, REFUSED, f'"{model}"', "libsplit plan NAME")
        text = self.run_tool("plan", "llama")
        self.assert_succeeds(text)
        self.plan.write_text(text.stdout)
        self.assert_succeeds(self.shard(2, "--dry-run"))
        self.assert_fails(self.run_tool("plan", "olmo2"), USAGE, "llama, phi")

    def test_key_heads_are_never_guessed(self):
        at = "model.layers.0.self_attn."
        tensors = {f"{at}{name}_proj.weight": noise("U8", 8, 8) for name in "qkvo"}
        tensors |= {"model.norm.weight": noise("U8", 8), "model.embed_tokens.weight": noise("U8", 8, 4)}
        write_safetensors(self.model, tensors)
        for model, is_known in [("llama", True), ("mistral", False)]:  # whose default is 8
            config = {"model_type": model, "num_attention_heads": 4}
            (self.dir / "config.json").write_text(json.dumps(config))
            run = self.run_tool("shard", self.model, "--tp", 2, "--plan", "auto", "--dry-run")
            if is_known:
                self.assert_succeeds(run)
            else:
                self.assert_fails(run, REFUSED, "--set num_key_value_heads=N")

    def test_plans_by_themselves(self):
        write_safetensors(self.model, {"w": noise("U8", 1)})
        command = ["shard", self.model, "--tp", 2, "--plan", "auto", "--dry-run"]
        self.assert_fails(self.run_tool(*command), REFUSED, "config.json")
        for config, *words in [({}, "no model_type"), ({"model_type": "bert"}, "bert", "llama"),
                               ({"model_type": "qwen3_moe"}, "no pattern matches 1 tensor: w")]:
            (self.dir / "config.json").write_text(json.dumps(config))
            self.assert_fails(self.run_tool(*command), REFUSED, *words)

    def test_padding_is_undone_by_join(self):
        tensors = {"e.weight": noise("F16", 5, 3), "h.weight": noise("F32", 6, 4), "o.weight": noise("U8", 4, 6)}
        plan = ("[tensors]\ne = { rule = 'colwise', pad_to = '{tp}' }\n"
                "h = { rule = 'colwise', heads = 3, pad_to = 4 }\n"
                "o = { rule = 'rowwise', heads = 3, pad_to = 4 }\n")
        self.save(tensors, plan)
        for tp, chunk in [(2, 64), (4, "1M"), (1, 64)]:
            self.assert_succeeds(self.shard(tp, "--force", "--chunk", chunk))
            ranks = [self.rank(rank) for rank in range(tp)]
            for name, axis, extent in [("e.weight", 0, -(-5 // tp) * tp), ("h.weight", 0, 8),
                                       ("o.weight", 1, 8)]:
                array = bits(tensors[name])
                pads = [(0, 0)] * 3
                pads[axis] = (0, extent - array.shape[axis])
                for rank, part in enumerate(np.split(np.pad(array, pads), tp, axis)):
                    self.assertEqual(ranks[rank][name], packed(tensors[name][0], part), name)
            self.assert_succeeds(self.join("--force", "--chunk", chunk))
            self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())
            self.assert_succeeds(self.run_tool("verify", self.out))
        self.assert_succeeds(self.shard(2, "--force"))
        names = os.listdir(self.out)
        run = self.join("--tp", 4, out=self.dir / "four")
        self.assert_fails(run, REFUSED, "padded to 6", "to 8", "join", left=names)
        path = self.out / "rank-1/model.safetensors"
        content = path.read_bytes()
        found, metadata = read_safetensors(path)
        dtype, shape, data = found["e.weight"]
        write_safetensors(path, {**found, "e.weight": (dtype, shape, data[:-1] + b"\1")}, metadata)
        self.assert_fails(self.join("--force", out=self.dir / "j.safetensors"), INVALID, "e.weight",
                          "zero", left=names)

    def test_parts_of_several_widths_and_parts_that_every_rank_has(self):
        # Mamba-2: z and x in heads, B and C for all of them, and one number a head.
        z, b, heads = 4 * 6, 10, 4
        tensor = noise("F32", 2 * z + 2 * b + heads, 3)
        self.save({"in.weight": tensor}, "[tensors]\nin = { rule = 'packed', parts = "
                  "'z:{n}x6,x:{n}x{p},B:1x10 whole,C:1x10 whole,dt:{n}x1' }\n[values]\nn = 4\np = 6\n")
        self.refused({"in.weight": noise("F32", 71, 3)}, self.plan.read_text(), "71", "take 72")
        self.save({"in.weight": tensor}, self.plan.read_text())
        array = bits(tensor)
        parts = np.split(array, np.cumsum([z, z, b, b]))
        for tp in [1, 2, 4]:
            self.assert_succeeds(self.shard(tp, "--force", "--chunk", 64))
            for rank in range(tp):
                expected = [part if index in [2, 3] else np.split(part, tp)[rank]
                            for index, part in enumerate(parts)]
                self.assertEqual(self.rank(rank)["in.weight"], packed("F32", np.concatenate(expected)))
            self.assert_succeeds(self.join("--force"))
            self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())
            ranks = [self.out / f"rank-{rank}" for rank in range(tp)]
            self.assert_succeeds(self.run_tool("join", *ranks, "--plan", self.plan, "-o", self.joined,
                                               "--force"))
            self.assertEqual(read_safetensors(self.joined)[0], {"in.weight": tensor})

    def test_experts_and_layers_by_index(self):
        separate = {f"layers.{layer}.experts.{expert}.up.weight": noise("U8", 3, 2)
                    for layer in range(2) for expert in range(8)}
        stacked = {f"layers.{layer}.stack.experts.up": noise("U8", 8, 3, 2) for layer in range(2)}
        norm = {"norm.weight": noise("U8", 3)}
        experts = ("[tensors]\n'*.experts.*' = { rule = 'by_index', by = 'experts', of = '{n}' }\n"
                   "norm = 'replicate'\n")
        self.save({**separate, **stacked, **norm}, experts)
        for tp in [1, 2, 4, 8]:
            self.assert_succeeds(self.shard(tp, "--force", "--set", "n=8"))
            for rank in range(tp):
                here = range(rank * 8 // tp, (rank + 1) * 8 // tp)
                expected = {name: tensor for name, tensor in separate.items()
                            if int(name.split(".")[3]) in here}
                for name, tensor in stacked.items():
                    expected[name] = packed("U8", bits(tensor)[here.start:here.stop])
                self.assertEqual(self.rank(rank), {**expected, **norm})
            self.assert_succeeds(self.join("--force"))
            self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())
            anew = self.dir / "anew"
            self.assert_succeeds(self.join("--tp", 2, "--force", out=anew))
            self.assert_succeeds(self.join("--force", source=anew))
            self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())
        for tp, n, *words in [(3, 8, "8 experts", "3 ranks"), (1, 4, "number 4 of experts", "4")]:
            run = self.shard(tp, "--set", f"n={n}", "--dry-run")
            self.assert_fails(run, REFUSED, *words, left=os.listdir(self.out))
        # Layers to stages, and an index that lists for each rank what it has.
        source = self.dir / "source"
        source.mkdir()
        files = {"a.safetensors": {**separate, **norm}, "b.safetensors": stacked}
        write_index(source / "model.safetensors.index.json", files)
        self.plan.write_text("[tensors]\n'layers.*' = { rule = 'by_index', by = 'layers', of = 2 }\n"
                             "norm = 'replicate'\n")
        self.assert_succeeds(self.shard(2, "--force", source=source))
        for rank in range(2):
            place = self.out / f"rank-{rank}"
            listed = json.loads((place / "model.safetensors.index.json").read_text())["weight_map"]
            found = {tensor: name for name in files for tensor in read_safetensors(place / name)[0]}
            self.assertEqual(listed, found)
            self.assertEqual({name.split(".")[1] for name in found} - {"weight"}, {str(rank)})
        joined = self.dir / "joined"
        self.assert_succeeds(self.join(out=joined))
        for path in source.iterdir():
            self.assertEqual((joined / path.name).read_bytes(), path.read_bytes())


class Beside(CheckpointTest):
    """Small files, maps, and what a file is."""

    def test_small_files_come_along(self):
        source = self.dir / "source"
        self.plan.write_text(PLAN)
        write_safetensors(source / "model.safetensors", MODEL)
        small = {"config.json": "{}", "tokenizer.json": "[1]", "tokenizer.model": "m", "LICENSE": "free",
                 "chat_template.jinja": "{{ a }}"}
        others = {"notes.toml": "a", "pytorch_model.bin": "b", ".hidden.json": "c"}
        for name, text in {**small, **others}.items():
            (source / name).write_text(text)
        run = self.shard(2, source=source)
        self.assert_succeeds(run)
        self.assertIn("5 small files copied", run.stdout)
        ranks = {"rank-0", "rank-1", "libsplit.json"}
        self.assertEqual(set(os.listdir(self.out)), {*small, *ranks})
        self.assert_succeeds(self.shard(4, "--force", source=source))  # they are listed, so replaced
        joined, again = self.dir / "joined", self.dir / "again"
        self.assert_succeeds(self.join(out=joined))
        self.assertEqual(set(os.listdir(joined)), {*small, "model.safetensors"})
        for name, text in small.items():
            self.assertEqual((joined / name).read_text(), text)
        self.assert_succeeds(self.join("--tp", 2, out=again))
        self.assertEqual(set(os.listdir(again)), {*small, *ranks})
        self.assert_succeeds(self.shard(2, "--force", "--no-copy", source=source))
        self.assertEqual(set(os.listdir(self.out)), ranks)
        (source / "config.json").unlink()  # then it is not the directory of a model
        self.assert_succeeds(self.shard(2, "--force", source=source))
        self.assertEqual(set(os.listdir(self.out)), ranks)

    def test_a_map_leads_a_loader_to_its_part(self):
        self.save()
        content = self.model.read_bytes()
        for tp in [1, 2, 8]:
            run = self.run_tool("map", self.model, "--tp", tp, "--plan", self.plan, "--json")
            self.assert_succeeds(run)
            found = [{} for _ in range(tp)]
            for it in json.loads(run.stdout)["tensors"]:
                rows = (it["begin"] + row * it["row_bytes"] for row in range(it["rows"]))
                data = b"".join(content[row + begin:row + end] for row in rows
                                for begin, end in it["columns"])
                self.assertEqual(it["file"], "model.safetensors")
                found[it["rank"]][it["name"]] = it["dtype"], tuple(it["shape"]), data
            self.assertEqual(found, [parts_of(rank, tp) for rank in range(tp)])
        run = self.run_tool("map", self.model, "--tp", 2, "--plan", self.plan, "--rank", 1)
        self.assertEqual(len(run.stdout.splitlines()), 9)
        self.assertIn("rank 1  q.weight  F32 [8, 6]  model.safetensors at", run.stdout)
        run = self.run_tool("map", self.model, "--tp", 2, "--plan", self.plan, "--rank", 2)
        self.assert_fails(run, USAGE, "--rank 2")

    def test_files_that_are_taken_for_others(self):
        self.plan.write_text(PLAN)
        for begin, *words in [
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer", "git lfs pull"),
            (b"PK\x03\x04" + bytes(60), "PyTorch", "safetensors.torch.save_file"),
            (b"GGUF" + bytes(60), "GGUF"),
            (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19", "pickle", "save_file"),
            (b"<!doctype html>" + bytes(60), "HTML", "download"),
            (b"\x93NUMPY" + bytes(60), "libsplit npy"),
        ]:
            self.model.write_bytes(begin)
            run = self.shard(2)
            self.assert_fails(run, INVALID, str(self.model), *words)
        # A header may be as long as those look.
        header = b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'.ljust(0x280)
        self.model.write_bytes(struct.pack("<Q", 0x280) + header + b"x")
        self.assert_succeeds(self.run_tool("info", self.model))
        self.model.unlink()
        (self.dir / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
        self.assert_fails(self.shard(2, source=self.dir), INVALID, "PyTorch", "download")

    def test_what_never_ends_or_leads_to_itself(self):
        self.save()
        config = self.dir / "config.json"
        os.mkfifo(config)
        self.assert_fails(self.shard(2), FAILED, "config.json", "not a file")
        config.unlink()
        config.write_bytes(b"{\xff}")
        self.assert_fails(self.shard(2), INVALID, "config.json", "UTF-8")
        config.unlink()
        self.model.unlink()
        os.mkfifo(self.model)
        self.assert_fails(self.shard(2), INVALID, "model.safetensors", "not a file")
        self.model.unlink()
        self.model.symlink_to(self.dir)
        run = self.shard(2, source=self.dir)
        self.assertEqual((run.returncode, run.stdout), (FAILED, ""))
        self.model.unlink()
        index = self.dir / "model.safetensors.index.json"
        index.write_text("version https://git-lfs.github.com/spec/v1\n")
        self.assert_fails(self.shard(2, source=self.dir), INVALID, "index.json", "Git LFS")

    def test_the_index_decides(self):
        source = self.dir / "source"
        source.mkdir()
        self.plan.write_text("[tensors]\n'{w,v}' = { rule = 'colwise', axis = 0 }\n")
        first, second = noise("U8", 4), noise("U8", 4)
        index = source / "model.safetensors.index.json"
        write_index(index, {"a.safetensors": {"w": first}, "b.safetensors": {"w": second, "v": first}})
        told = json.loads(index.read_text())
        told["weight_map"] = {"w": "a.safetensors", "v": "b.safetensors"}
        index.write_text(json.dumps(told))
        self.assert_succeeds(self.shard(2, source=source))
        rank = self.out / "rank-1"
        self.assertEqual(read_safetensors(rank / "a.safetensors")[0], {"w": ("U8", (2,), first[2][2:])})
        self.assertEqual(json.loads((rank / index.name).read_text())["weight_map"], told["weight_map"])
        joined = self.dir / "joined"
        self.assert_succeeds(self.join(out=joined))
        for path in source.iterdir():
            self.assertEqual((joined / path.name).read_bytes(), path.read_bytes())

    def test_names_of_any_length_that_do_not_reach_the_terminal(self):
        write_safetensors(self.model, {"w" * 70_000: noise("U8", 1), "a\x1b[31m": noise("U8", 2)})
        run = self.run_tool("info", self.model)
        self.assert_succeeds(run)
        self.assertNotIn("\x1b", run.stdout)
        self.assertIn("a\\u{1b}[31m", run.stdout)
        self.plan.write_text("[tensors]\n")
        run = self.shard(2)
        self.assertEqual(run.returncode, REFUSED)
        self.assertNotIn("\x1b", run.stderr)

    def test_errors_as_json(self):
        for command, code, word in [(["info", self.dir / "gone", "--json"], FAILED, "gone"),
                                    (["shard", "--json"], USAGE, "--tp"),
                                    (["info", self.dir, "--json"], INVALID, "no *.safetensors")]:
            run = self.run_tool(*command)
            self.assertEqual((run.returncode, run.stdout), (code, ""))
            told = json.loads(run.stderr)["error"]
            self.assertEqual(told["exit_code"], code)
            self.assertIn(word, told["message"])

    def test_a_disk_that_cannot_take_room_in_advance(self):
        self.save()
        disk = self.dir / "disk"
        disk.mkdir()
        mount = ["unshare", "-m", "sh", "-c", 'mount -t ramfs ramfs "$0" && "$@"', disk]
        if subprocess.run([*mount, "true"], capture_output=True).returncode != 0:
            return self.assert_succeeds(self.shard(2))  # no right to mount here
        script = 'set -e; "$1" shard "$2" --tp 2 --plan "$3" -o "$0/s"; "$1" join "$0/s" -o "$4"'
        tool = ["sh", "-c", script, disk, LIBSPLIT, self.model, self.plan, self.joined]
        run = subprocess.run([*mount, *tool], capture_output=True, text=True)
        self.assert_succeeds(run)
        self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())


if __name__ == "__main__":
    import unittest
    unittest.main()
