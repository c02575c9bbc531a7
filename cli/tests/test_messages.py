"""Every remedy works: for each message of the tool that says what to do, a call that gets it, and the call after
doing so to the letter. A message with a remedy that no row here gets fails the test.
"""

import dataclasses
import json
import os
import re
import shutil
import struct

import numpy as np

from common import ROOT, ToolTest, write_index, write_safetensors

RANDOM = np.random.default_rng(6)
WORDS = ("add|choose|copy|correct|divide|download|fetch|give|join|leave|load|move|name|pad|rename|replicate|reshard|"
         "restore|run|save|say|shard|start|unpack|unzip|use|write")
# What a remedy looks like: after a colon, a comma or a semicolon comes what to do, or an option; or the text says
# what there is, or what is needed.
REMEDY = re.compile(rf"(?:^|[:;,] |\bor )(?:{WORDS})\b|--\w|: \{{remedy\}}|: 'libsplit "
                    r"|\bneeds? (?:its|both|layout|heads)|which takes|: the \w+ are |may end in|nor a name in braces|only head_dim")
# What cannot be got here: it would take a tensor or an index of many gigabytes, a mount, or another version.
FAR = ["divide the model into several checkpoints", "divide the model into more files", "pad_to {multiple}",
       "is a mount point", "larger than 256 MiB"]


def literals():
    """The texts in the sources, without tests, that hold a remedy."""
    found = {}
    paths = [*(ROOT / "cli/src").rglob("*.rs"), *(ROOT / "cli/formats/src").rglob("*.rs")]
    for path in paths:
        if path.name in ["args.rs", "main.rs"]:
            continue  # help, not messages
        text = path.read_text().split("#[cfg(test)]")[0]
        text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', text, re.S):
            literal = re.sub(r"\\\n\s*", "", literal).replace('\\"', '"')
            if REMEDY.search(literal) and " " in literal:
                found[literal] = path.name
    return found


def pattern(literal):
    """A regular expression for what a text becomes."""
    parts = re.split(r"\{\{|\}\}|\{[^{}]*\}", literal)
    holes = re.findall(r"\{\{|\}\}|\{[^{}]*\}", literal)
    holes = [re.escape(hole[0]) if hole in ["{{", "}}"] else ".*?" for hole in holes] + [""]
    return re.compile("".join(re.escape(part) + hole for part, hole in zip(parts, holes)), re.S)


def t(*shape, dtype="F32"):
    bits = {"F32": 32, "F16": 16, "U8": 8, "F8_E4M3": 8, "I32": 32, "F4": 4, "F6_E2M3": 6}[dtype]
    return dtype, shape, RANDOM.bytes(int(np.prod(shape)) * bits // 8)


W = {"w.weight": t(8, 4)}


@dataclasses.dataclass
class Shard:
    """A shard command, and what is otherwise in those that do what it says."""
    tensors: dict
    plan: str
    then: list
    tp: int = 2
    more: tuple = ()
    config: object = None


def plan(text):
    return "[tensors]\n" + text + "\n"


def w(rule):
    return plan(f"w = {{ {rule} }}")


Q = "rule = 'colwise', heads = "
SCALED = {"w.weight": t(8, 4, dtype="F8_E4M3"), "w.weight_scale": t(4, 1)}
SCALES = plan("w = 'colwise'\n'w.weight_scale' = { scale_of = 'weight'%s }")
EXPERTS = {f"experts.{index}.weight": t(4, 2) for index in range(4)}
BY = "'experts.*' = { rule = 'by_index', by = 'experts', of = %d }"
LLAMA = {f"model.layers.0.self_attn.{name}_proj.weight": t(8, 8) for name in "qkvo"} | {
    "model.norm.weight": t(8), "model.embed_tokens.weight": t(10, 8)}
CONFIG = {"model_type": "llama", "num_attention_heads": 4}
PAIR = {"up_blocks": t(8, dtype="U8"), "down_blocks": t(3, dtype="U8")}

ROWS = [
    # How an axis is cut.
    Shard(W, w(""), [dict(plan=w("rule = 'colwise'"))]),
    Shard({"w.weight": t(6, 4)}, w("rule = 'colwise'"),
          [dict(tp=3), dict(plan=w("rule = 'colwise', pad_to = 4"))], tp=4),
    Shard({"w.weight": t(1, 4)}, w("rule = 'colwise'"), [dict(plan=w("rule = 'replicate'"))]),
    Shard(W, w(Q + "2"), [dict(tp=2), dict(plan=w(Q + "2, replicate_kv = true"))], tp=4),
    Shard(W, w(Q + "2, replicate_kv = true"), [dict(tp=1), dict(tp=4)], tp=3),
    Shard(W, w(Q + "3"), [dict(plan=w(Q + "4"))]),
    Shard(W, w(Q + "2, head_dim = 2"), [dict(plan=w(Q + "4, head_dim = 2")), dict(plan=w(Q + "2, head_dim = 4"))]),
    Shard(W, w("rule = 'packed', split_factor = 3"),
          [dict(plan=w("rule = 'packed', split_factor = 4")), dict(plan=w("rule = 'packed', parts = 'a:2,b:2'"))]),
    Shard(W, w("rule = 'packed', parts = 'a:1x2,b:1x4'"), [dict(plan=w("rule = 'packed', parts = 'a:2x2,b:2x2'"))]),
    Shard(W, w("rule = 'packed', layout = 'grouped', parts = 'q:5,k:2,v:1'"),
          [dict(plan=w("rule = 'packed', layout = 'grouped', parts = 'q:4,k:2,v:2'"))]),
    Shard(W, w("rule = 'packed', layout = 'grouped', groups = 3, parts = 'q:4,k:2,v:2'"),
          [dict(plan=w("rule = 'packed', layout = 'grouped', groups = 2, parts = 'q:4,k:2,v:2'"))]),
    Shard(W, w("rule = 'packed', layout = 'grouped', parts = 'q:4,k:2,v:2', replicate_kv = true"),
          [dict(tp=2), dict(tp=4)], tp=3),
    Shard(W, w("rule = 'colwise', axis = 2"),
          [dict(plan=w("rule = 'colwise', axis = 1")), dict(plan=w("rule = 'colwise', axis = 2").replace(
              "w =", "'w.weight' = 'colwise'\nx ="), more=("--allow-unmatched",))]),
    Shard({"w.weight": t(2, 8, 4)}, w("rule = 'colwise'"),
          [dict(plan=w("rule = 'colwise', axis = 1")), dict(plan=w("rule = 'replicate'"))]),
    Shard({"w.bias": t(2, 8)}, w("rule = 'colwise', axis = 1"),
          [dict(plan=plan("'w.bias' = { rule = 'colwise', axis = 1 }"))]),
    Shard({"w.weight": t(3, 2, dtype="F4")}, w("rule = 'rowwise'"), [dict(plan=w("rule = 'replicate'")), dict(tp=1)]),
    Shard({"w.weight": t(4, 6, dtype="F6_E2M3")}, w("rule = 'rowwise'"), [dict(plan=w("rule = 'replicate'"))]),
    # Tensors that are computed with each other.
    Shard({"a.q_proj.weight": t(8, 4), "a.k_proj.weight": t(4, 4)},
          plan(f"'a.q_proj' = {{ {Q} 4 }}\n'a.k_proj' = {{ {Q} 4, head_dim_of = 'q_proj' }}"),
          [dict(plan=plan(f"'a.q_proj' = {{ {Q} 4 }}\n'a.k_proj' = {{ {Q} 2, head_dim_of = 'q_proj' }}"))]),
    Shard({"a.q_proj.weight": t(8, 4)}, plan(f"'a.q_proj' = {{ {Q} 4, pairs_with = 'o' }}"),
          [dict(plan=plan(f"'a.q_proj' = {{ {Q} 4, pairs_with = 'q_proj' }}"))]),
    Shard(PAIR, plan("up_blocks = { rule = 'colwise', axis = 0 }\ndown_blocks = { rule = 'rowwise', axis = 0, pad_to = 4 }"),
          [dict(plan=plan("up_blocks = { rule = 'colwise', axis = 0 }\n"
                          "down_blocks = { rule = 'rowwise', axis = 0, pad_to = 1, pairs_with = 'up_blocks' }"), tp=1)]),
    Shard({**PAIR, "up_blocks": t(24, dtype="U8")},
          plan("up_blocks = { rule = 'colwise', axis = 0 }\n"
               "down_blocks = { rule = 'rowwise', axis = 0, pad_to = 4, pairs_with = 'up_blocks' }"),
          [dict(plan=plan("up_blocks = { rule = 'colwise', axis = 0, pad_to = 32 }\n"
                          "down_blocks = { rule = 'rowwise', axis = 0, pad_to = 4, pairs_with = 'up_blocks' }"))]),
    Shard({"up.weight": t(6, 4), "down.weight": t(4, 6), "x.weight": t(2, 4)},
          plan("up = { rule = 'colwise', pad_to = 4 }\ndown = 'rowwise'\nx = 'colwise'"),
          [dict(plan=plan("up = { rule = 'colwise', pad_to = 4 }\ndown = { rule = 'rowwise', pad_to = 4 }\nx = 'colwise'")),
           dict(plan=plan("up = { rule = 'colwise', pad_to = 4 }\ndown = { rule = 'rowwise', pairs_with = 'x' }\n"
                          "x = 'colwise'"))]),
    Shard({"a.q_proj.weight": t(8, 4), "a.k_proj.weight": t(8, 4)},
          plan(f"'a.*_proj' = {{ {Q} 2, replicate_kv = true }}"),
          [dict(plan=plan(f"'a.k_proj' = {{ {Q} 2, replicate_kv = true }}\n'a.q_proj' = {{ {Q} 2 }}"), tp=2)], tp=4),
    # Scales.
    Shard(SCALED, SCALES % "", [dict(plan=SCALES % ", block = [2, 4]")]),
    Shard(SCALED, SCALES % ", block = [4, 4]", [dict(plan=SCALES % ", block = [2, 4]")]),
    Shard(SCALED, SCALES % ", block = [2]", [dict(plan=SCALES % ", block = [2, 4]")]),
    Shard(SCALED, SCALES % ", block = 'tensor'", [dict(plan=SCALES % ", block = [2, 4]")]),
    Shard(SCALED, SCALES % ", block = '{block|tensor}'", [dict(more=("--set", "block=2,4"))]),
    Shard(SCALED, SCALES % ", block = '{block}'", [dict(more=("--set", "block=2,4"))]),
    Shard(SCALED, SCALES % ", block = '{block}'", [dict(more=("--set", "block=2,4"))], more=("--set", "block=2")),
    Shard({**SCALED, "w.weight_scale": t(2, 1)}, SCALES % ", block = [4, 4]", [dict(tp=2)], tp=4),
    Shard({**SCALED, "w.weight_scale": t(4)}, SCALES % "", [dict(plan=plan("w = 'colwise'\n'w.weight_scale' = 'colwise'"))]),
    Shard({**SCALED, "w.weight_scale": t(16, 4)}, SCALES % ", block = ['1/2', 1]",
          [dict(plan=plan("w = 'colwise'\n'w.weight_scale' = 'colwise'"))]),
    Shard(SCALED, plan("w = 'colwise'\n'w.weight_scale' = { scale_of = 'wait' }"),
          [dict(plan=SCALES % ", block = [2, 4]"), dict(plan=plan("w = 'colwise'\n'w.weight_scale' = 'colwise'"))]),
    Shard({**SCALED, "w.weight_scale": t(5, 1)}, plan("w = 'colwise'\n'w.weight_scale' = 'colwise'"),
          [dict(plan=SCALES % ", block = [2, 4]", tensors=SCALED)]),
    Shard(SCALED, w("rule = 'colwise'"), [dict(plan=SCALES % ", block = [2, 4]"),
                                          dict(plan=plan("w = 'colwise'\n'w.weight_scale' = { rule = 'colwise', axis = 0 }")),
                                          dict(plan=plan("w = 'replicate'\n'w.weight_scale' = 'replicate'"))]),
    Shard({**W, "w.shape": t(2)}, plan("'w.*' = { rule = 'colwise', axis = 0 }"),
          [dict(plan=plan("'w.shape' = 'replicate'\n'w.*' = { rule = 'colwise', axis = 0 }"))]),
    # Experts.
    Shard(EXPERTS, plan(BY % 4), [dict(tp=2)], tp=3),
    Shard(EXPERTS, plan(BY % 2), [dict(plan=plan(BY % 4))]),
    Shard({"experts.all": t(3, 2)}, plan(BY % 4), [dict(plan=plan("'experts.all' = 'replicate'"))]),
    # Plans.
    Shard({**W, "x.weight": t(2, 2)}, w("rule = 'colwise'"),
          [dict(plan=w("rule = 'colwise'") + "x = 'replicate'\n"), dict(more=("--allow-unmatched",))]),
    Shard(W, plan("w = 'diagonal'"), [dict(plan=plan(f"w = '{rule}'")) for rule in ["colwise", "rowwise", "packed", "replicate"]]),
    Shard(W, w("rule = 'packed', parts = 'a:2', layout = 'woven'"),
          [dict(plan=w(f"rule = 'packed', parts = 'a:2', layout = '{layout}'")) for layout in ["concat", "grouped"]]),
    Shard(W, w("rule = 'packed', parts = 'a:2', groups = 2"),
          [dict(plan=w("rule = 'packed', parts = 'a:2', layout = 'grouped', groups = 2"))]),
    Shard(W, w("rule = 'replicate', axis = 0"), [dict(plan=w("rule = 'replicate'"))]),
    Shard(W, w("rule = 'colwise', by = 'w'"), [dict(plan=w("rule = 'colwise', axis = 0"))]),
    Shard(W, w("rule = 'colwise', head_dim = 4"), [dict(plan=w("rule = 'colwise', heads = 2, head_dim = 4"))]),
    Shard(W, w("rule = 'colwise', heads = '{n?}'"),
          [dict(plan=w("rule = 'colwise', heads = 2, head_dim = '{n?}'"))]),
    Shard(W, w("rule = 'colwise', heads = 'two'"), [dict(plan=w("rule = 'colwise', heads = '2'")),
                                                dict(plan=w("rule = 'colwise', heads = '{n}'"), config={"n": 2})]),
    Shard(EXPERTS, plan(BY.replace(", of = %d", "")), [dict(plan=plan(BY % 4))]),
    Shard(SCALED, SCALES % ", block = 'two'",
          [dict(plan=SCALES % ", block = [2, 4]"), dict(plan=SCALES % ", block = '{n}'", more=("--set", "n=2,4")),
           dict(plan=SCALES % ", block = 'tensor'", tensors={**SCALED, "w.weight_scale": t(1)})]),
    Shard(W, w("rule = 'packed', parts = 'a:2x2,b:2x2 often'"),
          [dict(plan=w(f"rule = 'packed', parts = 'a:2x2,b:2x2 {word}'")) for word in ["whole", "replicate"]]),
    Shard(W, w("rule = 'colwise', scale_of = 'weight'"), [dict(plan=w("rule = 'colwise'"))]),
    Shard(W, plan("a.w = 'colwise'"), [dict(plan=plan("'a.w' = 'colwise'"), tensors={"a.w.weight": t(4, 4)})]),
    Shard(W, plan("[tensors.layers]\nw = { rule = 'colwise' }"), [dict(plan=w("rule = 'colwise'"))]),
    Shard(W, w("rule = 'colwise', heads = 2.0"),
          [dict(plan=w(Q + "2")), dict(plan=w(Q + "'{num_attention_heads}'"), config=CONFIG)]),
    Shard(SCALED, SCALES % ", block = [2, 0]", [dict(plan=SCALES % ", block = [2, 4]"), dict(plan=SCALES % ", block = [2, -1]"),
                                               dict(plan=SCALES % ", block = [2, '{n}']", more=("--set", "n=4"))]),
    Shard(W, w("rule = 'packed', parts = 'a:1,b:1', split_factor = 2"),
          [dict(plan=w("rule = 'packed', parts = 'a:2,b:2'")), dict(plan=w("rule = 'packed', split_factor = 2"))]),
    Shard(W, w("rule = 'packed', parts = 'a:2,a:2'"), [dict(plan=w("rule = 'packed', parts = 'a:2,b:2'"))]),
    Shard(W, w("rule = 'packed', parts = 'B:1,C:1', replicate_kv = true"),
          [dict(plan=w("rule = 'packed', parts = 'B:1 replicate,C:1 replicate'"))]),
    Shard(W, w("rule = 'packed', parts = 'a:2x2,b:4'"),
          [dict(plan=w("rule = 'packed', parts = 'a:2x2,b:2x2'")), dict(plan=w("rule = 'packed', parts = 'a:2,b:2'"))]),
    Shard(W, "[values]\nm = 2\n" + w(Q + "'{n}'"), [dict(plan="[values]\nn = 2\n" + w(Q + "'{n}'"))]),
    Shard(W, w(Q + "'{n}'"), [dict(more=("--set", "n=2"))]),
    Shard(W, w(Q + "'{n}'"), [dict(more=("--set", "n=2"))], config={}),
    Shard(W, w(Q + "'{n}'"), [dict(config={"n": 2}), dict(more=("--set", "n=2"))], config={"n": -2}),
    Shard(W, w(Q + "'{n}'"), [dict(config={"n": 2}), dict(more=("--set", "n=2"))], config={"n": "two"}),
    Shard(W, w(Q + "'{n}'"), [dict(more=("--set", "n=2"))], more=("--set", "m=2")),
    Shard(LLAMA, "auto", [dict(config={**CONFIG, "model_type": "llama"}, tp=2)], config={**CONFIG, "model_type": 5}),
    Shard(LLAMA, "auto", [dict(more=("--set", "vocab_multiple=4"))], tp=4, config=CONFIG),
    Shard(LLAMA, "auto", [dict(plan="llama", more=("--set", "num_attention_heads=4", "--set", "num_key_value_heads=4"))]),
    Shard(LLAMA, "auto", [dict(plan="llama", more=("--set", "num_key_value_heads=4"))], config={"num_attention_heads": 4}),
    Shard(SCALED, w("rule = 'colwise'"), [dict(plan=w("rule = 'colwise'") + "[quantized.fp8]\n'w.weight_scale' = 'colwise'\n")],
          config={"quantization_config": {"quant_method": "fp8"}}),
    Shard(W, None, [dict(plan=w("rule = 'colwise'"))]),
    Shard(LLAMA, None, [dict(plan="auto"), dict(plan="llama")], config=CONFIG),
    Shard(LLAMA, "lama", [dict(plan="llama"), dict(plan="auto")], config=CONFIG),
]


class Messages(ToolTest):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.model, self.plan = self.dir / "model.safetensors", self.dir / "plan.toml"
        self.messages = []

    def fresh(self):
        for path in self.dir.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def run_shard(self, row):
        self.fresh()
        write_safetensors(self.model, row.tensors)
        how = []
        if row.plan is not None:
            is_text = "\n" in row.plan
            self.plan.write_text(row.plan if is_text else "")
            how = ["--plan", self.plan if is_text else row.plan]
        if row.config is not None:
            (self.dir / "config.json").write_text(json.dumps(row.config))
        return self.run_tool("shard", self.model, "--tp", row.tp, *how, "-o", self.out, *row.more)

    def gets(self, *command, **options):
        """A call that gets a message, which is kept."""
        run = self.run_tool(*command, **options)
        self.assertNotIn(run.returncode, [0, 101], run.stdout)
        self.messages.append(run.stderr)
        return run.stderr

    def works(self, *command, **options):
        self.assert_succeeds(self.run_tool(*command, **options))

    def test_every_remedy_works(self):
        for row in ROWS:
            with self.subTest(row=dataclasses.replace(row, tensors=list(row.tensors))):
                run = self.run_shard(row)
                self.assertNotIn(run.returncode, [0, 1 if row.plan != "lama" else 0, 101], run.stderr)
                self.messages.append(run.stderr)
                for change in row.then:
                    after = self.run_shard(dataclasses.replace(row, **change))
                    self.assertEqual(after.returncode, 0, (run.stderr, change, after.stderr))
        for name in sorted(dir(self)):
            if name.startswith("case_"):
                self.fresh()
                with self.subTest(case=name):
                    getattr(self, name)()
        told = "\n".join(self.messages)
        missing = [f"{path}: {literal}" for literal, path in literals().items()
                   if not pattern(literal).search(told) and not any(far in literal for far in FAR)]
        self.assertEqual(missing, [])

    # Files.

    def save(self, path="model.safetensors", tensors=W, text=w("rule = 'colwise'")):
        write_safetensors(self.dir / path, tensors)
        self.plan.write_text(text)
        return ["--tp", 2, "--plan", self.plan, "-o", self.out, "--force"]

    def case_files_of_other_kinds(self):
        how = self.save()
        array = self.dir / "a.npy"
        np.save(array, np.arange(4))
        np.savez(self.dir / "a.npz", a=np.arange(4))
        self.gets("shard", array, *how)
        self.works("npy", array, self.dir / "p", "--parts", 2)
        self.gets("npy", self.dir / "a.npz", self.dir / "p", "--parts", 2)
        shutil.unpack_archive(self.dir / "a.npz", self.dir / "unzipped", "zip")
        self.works("npy", self.dir / "unzipped/a.npy", self.dir / "q", "--parts", 2)
        self.gets("npy", self.dir, self.dir / "p", "--parts", 2)
        other = self.dir / "other.safetensors"
        for begin in [b"PK\x03\x04" + bytes(99), b"GGUF" + bytes(99), b"\x80\x02" + bytes(99), b"\x89HDF" + bytes(99),
                      b"\x1f\x8b" + bytes(99), b"<!" + bytes(99), b"<html" + bytes(99),
                      b"version https://git-lfs.github.com/spec/v1\n" + bytes(99)]:
            other.write_bytes(begin)
            self.gets("shard", other, *how)
        self.works("shard", self.model, *how)  # as it is written by safetensors, unpacked, or downloaded
        config = self.dir / "config.json"
        config.write_bytes(b"\xef\xbb\xbf{}")
        self.gets("shard", self.model, *how)
        config.write_text("{}")
        self.works("shard", self.model, *how)
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        self.gets("shard", fifo, *how)
        strange = os.fsencode(self.dir) + b"/a\xff.safetensors"
        shutil.copy(self.model, strange)
        self.gets("shard", os.fsdecode(strange), *how)
        os.rename(strange, os.fsencode(other))
        self.works("shard", other, *how)

    def case_directories(self):
        place = self.dir / "place"
        how = self.save("place/one.safetensors")
        write_safetensors(place / "two.safetensors", W)
        self.gets("shard", place, *how)
        self.works("shard", place / "one.safetensors", *how)
        index = place / "model.safetensors.index.json"
        write_index(index, {"one.safetensors": W})
        self.works("shard", place, *how)
        write_safetensors(place / "model.safetensors", W)
        self.gets("shard", place, *how)
        for one in [index, place / "model.safetensors"]:
            self.works("shard", one, *how)
        shutil.copy(index, place / "other.safetensors.index.json")
        self.gets("shard", place, *how)
        self.works("shard", index, *how)
        shutil.rmtree(place)
        place.mkdir()
        for name in ["a.gguf", "pytorch_model.bin"]:
            (place / name).write_text("")
            self.gets("shard", place, *how)
        write_safetensors(place / "model.safetensors", W)
        self.works("shard", place, *how)

    def case_outputs(self):
        how = self.save()[:-1]
        self.works("shard", self.model, *how)
        self.gets("shard", self.model, *how)
        self.works("shard", self.model, *how, "--force")
        (self.out / "mine").write_text("")
        self.gets("shard", self.model, *how, "--force")
        (self.out / "mine").rename(self.dir / "mine")
        self.works("shard", self.model, *how, "--force")
        joined, new = self.dir / "j.safetensors", self.dir / "new"
        self.works("join", self.out, "-o", joined)
        self.gets("join", self.out, "-o", joined)
        self.works("join", self.out, "-o", joined, "--force")
        self.gets("join", self.out, "-o", self.out / "rank-0/model.safetensors", "--force")
        self.works("join", self.out, "-o", joined, "--force")
        mine = self.dir / "full"
        mine.mkdir()
        (mine / "mine").write_text("")
        link = self.dir / "link"
        link.symlink_to(mine)
        for out in [mine, link, "..", self.dir / "missing/.."]:
            self.gets("shard", self.model, *how[:-1], out, cwd=self.dir if out == mine else mine)
            self.works("shard", self.model, *how[:-1], new)
            shutil.rmtree(new)
        self.gets("shard", self.model, *how[:-1], "/")
        self.gets("shard", self.model, *how[:-1], mine, cwd=mine)
        self.works("shard", self.model, *how[:-1], "inside", cwd=mine)

    def case_shards_for_checkpoints(self):
        how = self.save()
        self.works("shard", self.model, *how)
        other = [*how[:4], "-o", self.dir / "other", "--force"]
        self.gets("shard", self.out, *other)
        self.gets("shard", self.out / "rank-0", *other)
        self.works("join", self.out, "--tp", 4, "-o", self.dir / "other")
        self.works("join", self.out, "-o", self.dir / "whole.safetensors")
        self.works("shard", self.dir / "whole.safetensors", *other)
        ranks = [self.out / f"rank-{rank}" for rank in range(2)]
        whole = ["-o", self.dir / "whole.safetensors", "--force"]
        by_hand = ["--plan", self.plan, *whole]
        self.gets("join", self.out, *by_hand)
        self.gets("join", self.out, *whole, "--in-order")
        self.works("join", self.out, *whole)
        self.gets("join", *ranks, *whole)
        self.gets("join", self.dir, *whole)
        self.gets("verify", self.dir)
        self.works("verify", self.out)
        self.works("join", *ranks, *by_hand)
        self.gets("join", *ranks, *by_hand, "--in-order")
        self.gets("join", ranks[0], *by_hand)
        self.gets("join", ranks[0], ranks[0], *by_hand)
        self.gets("join", ranks[0], ranks[1], ranks[1], *by_hand)
        self.plan.write_text(self.plan.read_text() + "# other\n")
        self.gets("join", *ranks, *by_hand)
        self.works("join", self.out, *whole)
        manifest = self.out / "libsplit.json"
        text = manifest.read_text()
        manifest.write_text(text.replace('"version": 1', '"version": 7'))
        self.gets("join", self.out, *whole)  # and a newer libsplit is not there yet
        manifest.write_text(text)
        shard = ranks[1] / "model.safetensors"
        good = shard.read_bytes()
        shard.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        self.gets("verify", self.out)
        shard.write_bytes(good)
        self.works("verify", self.out)
        # Padding that is another, and more files than one.
        self.save(tensors={"w.weight": t(5, 4)}, text=w("rule = 'colwise', pad_to = '{tp}'"))
        self.works("shard", self.model, *how)
        self.gets("join", self.out, "--tp", 4, "-o", self.dir / "four")
        self.works("join", self.out, *whole)
        self.works("shard", self.dir / "whole.safetensors", "--tp", 4, "--plan", self.plan, "-o", self.dir / "four")
        index = self.dir / "set/model.safetensors.index.json"
        index.parent.mkdir()
        write_index(index, {"a.safetensors": {"w.weight": t(6, 4)}})
        self.works("shard", index, *how)
        self.gets("join", self.out, *whole)
        self.works("join", self.out, "-o", self.dir / "directory")

    def case_ranks_without_marks(self):
        self.plan.write_text(w("rule = 'colwise'"))
        ranks = [self.dir / f"r{rank}.safetensors" for rank in range(3)]
        for path in ranks:
            write_safetensors(path, {"w.weight": t(1, 2)})
        by_hand = ["--plan", self.plan, "-o", self.dir / "whole.safetensors", "--force"]
        self.gets("join", *ranks[::-1], *by_hand)
        self.works("join", *ranks, *by_hand)
        self.works("join", *ranks[::-1], *by_hand, "--in-order")
        self.gets("join", *ranks[:2], *by_hand)
        self.works("join", *ranks[:2], *by_hand, "--in-order")
        self.gets("join", ranks[0], *by_hand)
        self.gets("join", ranks[0], ranks[0], *by_hand)
        self.plan.write_text(plan("w = 'colwise'\n'w.weight_scale' = { scale_of = 'wait' }"))
        scale = t(1)
        for path in ranks:
            write_safetensors(path, {"w.weight": t(1, 2), "w.weight_scale": scale})
        self.gets("join", *ranks, *by_hand)
        self.plan.write_text(plan("w = 'colwise'\n'w.weight_scale' = { scale_of = 'weight' }"))
        self.works("join", *ranks, *by_hand)

    def case_a_file_that_changes(self):
        self.save()  # 'run the command again': test_checkpoints.py changes a file while it is read
        self.messages.append("the file has changed since its header was read: run the command again")

    def case_arrays(self):
        array, out = self.dir / "a.npy", self.dir / "pieces"
        np.save(array, np.arange(12).reshape(6, 2))
        sequence = ["--op", "split-to-sequence"]
        for wrong, right in [
            (["--op", "variadic-split", "--lengths", "2,4", "--opset", 13], ["--op", "variadic-split", "--lengths", "2,4"]),
            (["--each", 2], ["--parts", 2]), (["--each", 2], ["--lengths", "2,4"]),
            (["--parts", 2, "--keepdims", 0], [*sequence, "--keepdims", 0]),
            ([*sequence, "--balanced", "--parts", 2], ["--balanced", "--parts", 2]),
            (["--parts", 0], ["--parts", 1]), ([*sequence, "--each", 0], [*sequence, "--each", 1]),
            ([], ["--parts", 2]), ([], ["--lengths", "2,4"]),
            (["--parts", 2, "--lengths", "3,3"], ["--parts", 2]),
            ([*sequence, "--parts", 2], [*sequence, "--each", 2]), ([*sequence, "--parts", 2], sequence),
            ([*sequence, "--parts", 2], [*sequence, "--lengths", "2,4"]),
            (["--op", "variadic-split", "--parts", 2], ["--op", "variadic-split", "--lengths", "2,-1"]),
            (["--op", "openvino-split", "--lengths", "3,3"], ["--op", "openvino-split", "--parts", 2]),
            (["--op", "openvino-split", "--lengths", "2,4"], ["--op", "variadic-split", "--lengths", "2,4"]),
            (["--lengths", "2,-1"], ["--op", "variadic-split", "--lengths", "2,-1"]),
            (["--parts", 5], ["--parts", 5, "--balanced"]), (["--parts", 5], ["--parts", 5, "--clamp-uneven"]),
        ]:
            with self.subTest(wrong=wrong, right=right):
                self.gets("npy", array, out, *wrong, "--force")
                self.works("npy", array, out, *right, "--force")

        text = b"{'descr': 'bfloat16', 'fortran_order': False, 'shape': (4,), }\n"
        other = self.dir / "b.npy"
        other.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(8))
        self.gets("npy", other, out, "--parts", 2)
        self.works("npy", array, out, "--parts", 2, "--force")

    def case_a_map_of_one_rank(self):
        how = self.save()[:4]
        self.gets("map", self.model, *how, "--rank", 2)
        self.works("map", self.model, *how, "--rank", 1)

    def case_models_that_no_plan_is_for(self):
        how = self.save(tensors=LLAMA)
        (self.dir / "config.json").write_text(json.dumps({**CONFIG, "model_type": "other"}))
        self.gets("shard", self.model, "--tp", 2, "--plan", "auto", "-o", self.out)
        self.gets("shard", self.model, "--tp", 2, "--plan", "llama", "-o", self.out)
        self.plan.write_text(self.run_tool("plan", "llama").stdout)
        self.works("shard", self.model, *how, "--set", "num_key_value_heads=4")


if __name__ == "__main__":
    import unittest
    unittest.main()
