"""libsplit.json: what README.md says of it, and that shards which were written before can still be read.

For each release, c-tests/abi/<version>/shards holds shards that it wrote, and checkpoint/ what they were made from. Both stay
as they are once that version has been released; until then, 'python test_manifest.py keep' makes them anew.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import xxhash

from common import INVALID, LIBSPLIT, ROOT, ToolTest, read_safetensors, write_index

RELEASES = sorted((ROOT / "c-tests/abi").glob("*/"), key=lambda path: [int(part) for part in path.name.split(".")])
MODEL, SHARDS = RELEASES[-1] / "checkpoint", RELEASES[-1] / "shards"
PLAN = """# Every rule, and what each of them may say – é
[values]
groups = 2
[tensors]
"embed" = { rule = "colwise", pad_to = "{multiple}" }
"q" = { rule = "colwise", heads = "{num_attention_heads}", head_dim = "{head_dim?}" }
"k" = { rule = "colwise", heads = 1, head_dim_of = "q", replicate_kv = true }
"o" = { rule = "rowwise", heads = "{num_attention_heads}", pairs_with = "q" }
"qkv" = { rule = "packed", parts = "q:4,k:2,v:2", layout = "grouped", groups = "{groups}" }
"mamba" = { rule = "packed", parts = "x:2x3,B:1x2 replicate,C:1x2 whole" }
"gate_up" = { rule = "packed", split_factor = 2 }
"experts.*" = { rule = "by_index", by = "experts", of = 2 }
"norm" = "replicate"
"*.scale" = { scale_of = "weight", block = [2, -1] }
"""


def keep():
    """Makes the directories of the newest release."""
    random = np.random.default_rng(1)
    shapes = {"embed.weight": (5, 2), "q.weight": (8, 4), "q.scale": (4, 1), "k.weight": (2, 4), "o.weight": (4, 8),
              "qkv.weight": (16, 2), "mamba.weight": (10, 2), "gate_up.weight": (8, 2), "experts.0.weight": (2, 2),
              "experts.1.weight": (2, 2), "norm.weight": (4,)}
    tensors = {name: ("F16", shape, random.bytes(2 * int(np.prod(shape)))) for name, shape in shapes.items()}
    names = list(tensors)
    for directory in [MODEL, SHARDS]:
        shutil.rmtree(directory, ignore_errors=True)
    MODEL.mkdir(parents=True)
    files = {"a.safetensors": {name: tensors[name] for name in names[:5]},
             "b.safetensors": {name: tensors[name] for name in [*names[5:], "q.weight"]}}
    write_index(MODEL / "model.safetensors.index.json", files)
    index = json.loads((MODEL / "model.safetensors.index.json").read_text())
    index["weight_map"]["q.weight"] = "a.safetensors"  # the other is a stale one
    (MODEL / "model.safetensors.index.json").write_text(json.dumps(index))
    (MODEL / "config.json").write_text('{"num_attention_heads": 4, "head_dim": 2}')
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as plan:
        plan.write(PLAN)
        plan.flush()
        subprocess.run([LIBSPLIT, "shard", MODEL, "--tp", "2", "--plan", plan.name, "--set", "multiple=2", "-o", SHARDS],
                       check=True)


class Manifest(ToolTest):
    def test_shards_of_every_release_are_read(self):
        for release in RELEASES:
            with self.subTest(release.name):
                self.assert_read(release / "shards", release / "checkpoint", self.dir / release.name)

    def assert_read(self, shards, model, work):
        work.mkdir()
        self.assert_succeeds(self.run_tool("verify", shards))
        self.assert_succeeds(self.run_tool("join", shards, "-o", work / "joined"))
        kept = sorted(path.name for path in model.iterdir())
        self.assertEqual(sorted(path.name for path in (work / "joined").iterdir()), kept)
        for name in kept:
            self.assertEqual((work / "joined" / name).read_bytes(), (model / name).read_bytes(), name)
        told = json.loads(self.run_tool("info", shards, "--json").stdout)
        self.assertEqual((told["format"], told["tp"]), ("shards", 2))
        self.assert_succeeds(self.run_tool("join", shards, "--tp", 1, "-o", work / "anew"))
        self.assert_succeeds(self.run_tool("join", work / "anew", "-o", work / "again"))
        for name in kept:
            self.assertEqual((work / "again" / name).read_bytes(), (model / name).read_bytes(), name)

    def test_another_program_can_compute_the_checksums(self):
        manifest = json.loads((SHARDS / "libsplit.json").read_text())
        whole = {**manifest, "xxh3": ""}
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        self.assertEqual(xxhash.xxh3_64_hexdigest(text.encode()), manifest["xxh3"])
        self.assertIn("é", text)
        for file in manifest["files"]:
            tensors, _ = read_safetensors(MODEL / file["name"])
            self.assertEqual({name: xxhash.xxh3_64_hexdigest(tensor[2]) for name, tensor in tensors.items()},
                             file["xxh3"])
        # And write a manifest: one without small files, say.
        shutil.copytree(SHARDS, self.out)
        whole["copied"] = []
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        whole["xxh3"] = xxhash.xxh3_64_hexdigest(text.encode())
        (self.out / "libsplit.json").write_text(json.dumps(whole))
        self.assert_succeeds(self.run_tool("verify", self.out))

    def test_a_manifest_of_another_kind_is_named(self):
        shutil.copytree(SHARDS, self.out)
        text = (self.out / "libsplit.json").read_text()
        names = [path.name for path in self.out.iterdir()]
        for old, new, *words in [('"libsplit-shards"', '"other-shards"', "other-shards", "libsplit-shards"),
                                 ('"version": 1', '"version": 2', "version 2", "reads version 1", "a newer libsplit"),
                                 ('"format"', '"form"', "format"), ("{", "[", "not a manifest")]:
            (self.out / "libsplit.json").write_text(text.replace(old, new, 1))
            self.assert_fails(self.run_tool("verify", self.out), INVALID, *words, left=names)
        # A later version may have other fields.
        later = {"format": "libsplit-shards", "version": 3, "ranks": 2}
        (self.out / "libsplit.json").write_text(json.dumps(later))
        self.assert_fails(self.run_tool("verify", self.out), INVALID, "version 3", left=names)

    def test_every_field_is_documented_in_its_order(self):
        readme = (ROOT / "cli/README.md").read_text()
        table = re.findall(r"^\| `([\w\[\].]+)` \|", readme.split("### libsplit.json")[1].split("\n## ")[0], re.M)
        manifest = json.loads((SHARDS / "libsplit.json").read_text())
        fields = []
        for field, value in manifest.items():
            fields += [field, *([f"files[].{inner}" for inner in value[0]] if field == "files" else [])]
        self.assertEqual(table, fields)
        self.assertEqual((manifest["format"], manifest["version"]), ("libsplit-shards", 1))
        version = self.run_tool("--version").stdout.strip()
        self.assertTrue(version.startswith("libsplit "))
        self.assertRegex(manifest["written_by"], r"^libsplit \d+\.\d+\.\d+$")

    def test_every_field_of_json_is_documented(self):
        readme = (ROOT / "cli/README.md").read_text().split("## For programs")[1].split("### libsplit.json")[0]
        self.assertIn("Fields may be added", readme)
        rows = {row.split("|")[1].strip(): set(re.findall(r"`(\w+)`", row)) for row in readme.splitlines()
                if row.startswith("| ")}
        np.save(self.dir / "a.npy", np.arange(4))
        plan = self.dir / "plan.toml"
        plan.write_text(PLAN)
        how = [MODEL, "--tp", 2, "--plan", plan, "--set", "multiple=2"]
        for row, command in [
            ("`shard`, `join`", ["shard", *how, "-o", self.out]), ("`map`", ["map", *how]),
            ("`shard`, `join`", ["join", self.out, "-o", self.dir / "whole"]), ("`verify`", ["verify", self.out]),
            ("`info` of a checkpoint", ["info", MODEL]), ("`info` of shards", ["info", self.out]),
            ("`info` of an array", ["info", self.dir / "a.npy"]),
            ("`npy`", ["npy", self.dir / "a.npy", self.dir / "p", "--parts", 2]),
        ]:
            told = json.loads(self.run_tool(*command, "--json").stdout)
            inner = [it for value in told.values() if isinstance(value, list) for it in value if isinstance(it, dict)]
            inner += [tensor for it in inner for tensor in it.get("tensors", [])]
            fields = set(told).union(*inner)
            self.assertEqual(fields - rows[row], set(), command)
            self.assertEqual(rows[row] - fields - {"shard", "join", "map", "verify", "info", "npy"}, set(), command)


if __name__ == "__main__":
    keep() if sys.argv[1:] == ["keep"] else unittest.main()
