"""What people reported of other tools and of this one: ranks out of order, padding on one side, numbers that
lie, tensors that an index does not list, odd mounts, odd names. Each is done right, or refused."""

import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np

from common import EXISTS, FAILED, INVALID, LIBSPLIT, REFUSED, STOPPED, USAGE, read_safetensors, write_safetensors
from test_checkpoints import CheckpointTest, bits, heed_signals, noise, packed

ATTENTION = "model.layers.0.self_attn."


def llama(q=(32, 16), k=(8, 16), o=None, suffix="weight", dtype="U8"):
    """Attention of a Llama, and what its plan needs besides."""
    shapes = {"q": q, "k": k, "v": k, "o": o or q[::-1]}
    tensors = {f"{ATTENTION}{name}_proj.{suffix}": noise(dtype, *shape) for name, shape in shapes.items()}
    return {**tensors, "model.norm.weight": noise("F32", 16), "model.embed_tokens.weight": noise("F32", 8, 16)}


class ReportTest(CheckpointTest):
    def config(self, **numbers):
        (self.dir / "config.json").write_text(json.dumps(numbers))

    def dry(self, tensors, plan, tp=2, more=(), config=None):
        """Asks for a dry run, and for a run, which has to agree with it."""
        if isinstance(plan, str) and "\n" in plan:
            self.plan.write_text(plan)
            plan = self.plan
        write_safetensors(self.model, tensors)
        if config is not None:
            self.config(**config)
        shutil.rmtree(self.out, ignore_errors=True)
        command = ["shard", self.model, "--tp", tp, "--plan", plan, "-o", self.out, *more]
        dry, run = self.run_tool(*command, "--dry-run", "--json"), self.run_tool(*command)
        self.assertEqual(dry.returncode, run.returncode, (dry.stderr, run.stderr))
        if run.returncode != 0:
            self.assertFalse(self.out.exists())
            self.assertEqual(json.loads(dry.stderr)["error"]["message"].splitlines()[0],
                             run.stderr.removeprefix("error: ").splitlines()[0])
            return run
        self.assert_succeeds(self.run_tool("join", self.out, "-o", self.joined, "--force"))
        self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())
        return {it["name"]: it["rank_shape"] for it in json.loads(dry.stdout)["tensors"]}

    def refused(self, run, *words, code=REFUSED):
        self.assertIsInstance(run, subprocess.CompletedProcess, f"accepted: {run}")
        self.assert_fails(run, code, *words)


class Order(ReportTest):
    """Ranks of other tools, which do not say which they are."""

    def ranks(self, *names):
        for rank, name in enumerate(names):
            write_safetensors(self.dir / name, {"w.weight": ("U8", (1, 1), bytes([rank]))})
        self.plan.write_text("[tensors]\nw = 'colwise'\n")
        self.count = len(names)

    def joined_of(self, *names, more=()):
        paths = [self.dir / name for name in names]
        run = self.run_tool("join", *paths, "--plan", self.plan, "-o", self.joined, "--force", *more)
        if run.returncode == 0:
            self.assert_succeeds(run)
            self.assertEqual(read_safetensors(self.joined)[0]["w.weight"][2], bytes(range(self.count)))
        return run

    def test_numbers_that_count_up_together(self):
        names = [f"rank-{rank}/model-{rank}.safetensors" for rank in range(12)]
        self.ranks(*names)
        self.assert_succeeds(self.joined_of(*names))
        self.assert_fails(self.joined_of(*sorted(names)), REFUSED, "--in-order", "rank-10")
        swapped = [f"rank-{rank}/model-{rank ^ 1}.safetensors" for rank in range(4)]
        self.ranks(*swapped)
        self.assert_fails(self.joined_of(*swapped), REFUSED, "--in-order")
        self.assert_succeeds(self.joined_of(*swapped, more=["--in-order"]))

    def test_names_of_many_kinds(self):
        for names in [["mp_rank_00.safetensors", "mp_rank_01.safetensors"],
                      ["r8.safetensors", "r9.safetensors", "r10.safetensors"],
                      [f"node{rank // 2}/rank{rank}.safetensors" for rank in range(4)],
                      [f"rank-{rank:05}-of-00003/m.safetensors" for rank in range(1, 4)]]:
            self.ranks(*names)
            self.assert_succeeds(self.joined_of(*names))
            for wrong in [names[::-1], [names[0], *names[:0:-1]]]:
                if wrong != names:
                    self.assert_fails(self.joined_of(*wrong), REFUSED, "--in-order")

    def test_names_that_give_no_order(self):
        for names in [["first.safetensors", "second.safetensors"],
                      ["a1.safetensors", "a1b2.safetensors"],
                      [f"node{node}/gpu{gpu}.safetensors" for node in range(2) for gpu in range(2)],
                      [f"r{2 ** 70 + rank}.safetensors" for rank in range(2)]]:
            self.ranks(*names)
            self.assert_fails(self.joined_of(*names), REFUSED, "--in-order")
            self.assert_succeeds(self.joined_of(*names, more=["--in-order"]))

    def test_ranks_that_are_left_out(self):
        names = [f"r{rank}.safetensors" for rank in range(4)]
        self.ranks(*names)
        self.assert_fails(self.joined_of(*names[:3]), REFUSED, "r3.safetensors", "--in-order")
        self.assert_fails(self.joined_of(*names[1:]), REFUSED, "r0.safetensors", "--in-order")

    def test_shards_that_say_which_they_are(self):
        self.save({"w.weight": noise("U8", 4, 1)}, "[tensors]\nw = 'colwise'\n")
        self.assert_succeeds(self.shard(2))
        ranks = [self.out / f"rank-{rank}" for rank in range(2)]
        run = self.run_tool("join", *ranks, "--plan", self.plan, "-o", self.joined, "--in-order")
        self.assert_fails(run, USAGE, "--in-order", "leave it out", left=os.listdir(self.out))
        run = self.run_tool("join", self.out, "-o", self.joined, "--in-order")
        self.assert_fails(run, USAGE, "--in-order", "leave it out", left=os.listdir(self.out))


class Pairs(ReportTest):
    """Tensors that are computed with each other."""

    def gpt_oss(self, blocks=6):
        at, inner = "model.layers.0.", blocks * 32
        tensors = {f"{at}self_attn.{name}_proj.weight": noise("F32", 16, 16) for name in "qkvo"}
        tensors[at + "self_attn.sinks"] = noise("F32", 8)
        tensors[at + "mlp.router.weight"] = noise("F32", 2, 16)
        for name, shape in [("gate_up_proj", (2, 2 * inner, 2)), ("down_proj", (2, 64, blocks))]:
            tensors[f"{at}mlp.experts.{name}_blocks"] = noise("U8", *shape, 16)
            tensors[f"{at}mlp.experts.{name}_scales"] = noise("U8", *shape)
        for name in ["embed_tokens", "norm"]:
            tensors[f"model.{name}.weight"] = noise("F32", *(16, 16)[:1 if name == "norm" else 2])
        tensors["lm_head.weight"] = noise("F32", 16, 16)
        config = {"model_type": "gpt_oss", "num_attention_heads": 8, "num_key_value_heads": 8,
                  "intermediate_size": inner, "quantization_config": {"quant_method": "mxfp4"}}
        return tensors, config

    def test_blocks_are_padded_on_both_sides_or_not_at_all(self):
        tensors, config = self.gpt_oss()
        run = self.dry(tensors, "auto", 4, config=config)
        self.refused(run, "down_proj_blocks", "6", "4 ranks")
        self.assertNotIn("pad_to", run.stderr)
        text = self.run_tool("plan", "gpt-oss").stdout
        down = '"model.layers.*.mlp.experts.down_proj_{blocks,scales}" = { rule = "rowwise", axis = 2'
        up = '"model.layers.*.mlp.experts.gate_up_proj_{blocks,scales}" = { rule = "colwise", axis = 1'
        self.assertIn(down, text)
        one_side = text.replace(down, down + ", pad_to = 4")
        self.refused(self.dry(tensors, one_side, 4), "down_proj_blocks", "gate_up_proj_blocks", "pairs_with")
        both = one_side.replace(up, up + ", pad_to = 128")
        shapes = self.dry(tensors, both, 4)
        at = "model.layers.0.mlp.experts."
        self.assertEqual(shapes[at + "gate_up_proj_blocks"], [2, 128, 2, 16])
        self.assertEqual(shapes[at + "down_proj_blocks"], [2, 64, 2, 16])
        # A plan of one's own that names no pair.
        (self.dir / "config.json").unlink()
        plan = ("[tensors]\n'up_blocks' = { rule = 'colwise', axis = 0, heads = 192 }\n"
                "'down_blocks' = { rule = 'rowwise', axis = 0, pad_to = 4 }\n")
        own = {"up_blocks": noise("U8", 384), "down_blocks": noise("U8", 6)}
        self.refused(self.dry(own, plan, 4), "down_blocks", "pairs_with")
        told = plan.replace("pad_to = 4", "pad_to = 4, pairs_with = 'up_blocks'")
        self.refused(self.dry(own, told, 4), "down_blocks", "up_blocks", "not cut alike")
        self.assertEqual(self.dry(own, told.replace("heads = 192", "heads = 192, pad_to = 128"), 4),
                         {"up_blocks": [128], "down_blocks": [2]})

    def test_whole_weights_may_be_padded_on_both_sides(self):
        tensors = {"up.weight": noise("F32", 6, 4), "down.weight": noise("F32", 4, 6)}
        plan = "[tensors]\nup = 'colwise'\ndown = 'rowwise'\n"
        self.refused(self.dry(tensors, plan, 4), "up.weight", "pad_to = 4")
        padded = plan.replace("'colwise'", "{ rule = 'colwise', pad_to = 4 }")
        self.refused(self.dry(tensors, padded, 4), "down.weight", "pad_to = 4")
        padded = padded.replace("'rowwise'", "{ rule = 'rowwise', pad_to = 4 }")
        self.assertEqual(self.dry(tensors, padded, 4), {"up.weight": [2, 4], "down.weight": [4, 2]})
        one = padded.replace("pad_to = 4 }\n", "pad_to = 12, pairs_with = 'up' }\n").replace(
            "'colwise', pad_to = 12, pairs_with = 'up'", "'colwise', pad_to = 4")
        self.assertEqual(self.dry(tensors, one.replace("12", "8"), 4), {"up.weight": [2, 4], "down.weight": [4, 2]})
        self.refused(self.dry(tensors, one, 2), "down.weight", "up.weight", "pairs_with")

    def test_padding_on_one_side_alone_is_refused_without_a_pair_too(self):
        tensors = {f"mlp.{name}.weight": noise("F32", *shape)
                   for name, shape in [("gate", (6, 4)), ("up", (6, 4)), ("down", (4, 6)), ("other", (4, 4))]}
        plan = ("[tensors]\n'mlp.{gate,up}' = { rule = 'colwise', pad_to = 4 }\n'mlp.down' = 'rowwise'\n"
                "'mlp.other' = 'colwise'\n")
        self.refused(self.dry(tensors, plan), "mlp.down.weight", "mlp.gate.weight", "pairs_with")
        both = plan.replace("'rowwise'", "{ rule = 'rowwise', pad_to = 4 }")
        self.assertEqual(self.dry(tensors, both)["mlp.down.weight"], [4, 4])
        gate = both.replace("'mlp.{gate,up}'", "'mlp.up' = 'colwise'\n'mlp.gate'")
        self.refused(self.dry(tensors, gate), "mlp.up.weight", "pairs_with")
        apart = plan.replace("'rowwise'", "{ rule = 'rowwise', pairs_with = 'other' }")
        self.assertEqual(self.dry(tensors, apart)["mlp.down.weight"], [4, 3])  # as the plan says so

    def test_pairs_have_to_be_there(self):
        tensors = {"up.weight": noise("F32", 6, 4), "down.weight": noise("F32", 4, 6)}
        plan = "[tensors]\nup = 'colwise'\ndown = { rule = 'rowwise', pairs_with = 'upp' }\n"
        self.refused(self.dry(tensors, plan), "down", "pairs_with", "upp")

    def test_key_heads_that_the_tensors_do_not_have(self):
        for q, k in [((32, 16), (8, 16))]:
            for lying in [1, 4, 8, None]:
                config = {"model_type": "llama", "num_attention_heads": 8, "num_key_value_heads": lying}
                for tp in [1, 2, 4, 8]:
                    run = self.dry(llama(q, k), "auto", tp, config=config)
                    self.refused(run, "k_proj.weight", "q_proj", "num_key_value_heads")
            right = {"model_type": "llama", "num_attention_heads": 8, "num_key_value_heads": 2}
            for dim in [4, None]:
                self.assertEqual(self.dry(llama(q, k), "auto", 4, config={**right, "head_dim": dim})[
                    ATTENTION + "k_proj.weight"], [4, 16])
            run = self.dry(llama(q, k), "auto", 4, config={**right, "head_dim": 8})
            self.refused(run, "4 wide", "head_dim is 8")
            # Query heads, too: all three lie alike, and the width of a head is at hand.
            lying = {"model_type": "llama", "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 4}
            self.refused(self.dry(llama(q, k), "auto", 4, config=lying), "2 wide", "head_dim is 4")

    def test_fused_heads_are_as_wide_as_those_that_are_summed(self):
        tensors = {f"{ATTENTION}qkv_proj.weight": noise("F32", 12 * 4, 16),
                   f"{ATTENTION}o_proj.weight": noise("F32", 16, 8 * 4),
                   "model.layers.0.mlp.gate_up_proj.weight": noise("F32", 32, 16),
                   "model.layers.0.mlp.down_proj.weight": noise("F32", 16, 16),
                   "model.norm.weight": noise("F32", 16), "model.embed_tokens.weight": noise("F32", 8, 16)}
        config = {"model_type": "phi3", "num_attention_heads": 8, "num_key_value_heads": 2}
        self.assertEqual(self.dry(tensors, "auto", config=config)[ATTENTION + "qkv_proj.weight"], [24, 16])
        self.refused(self.dry(tensors, "auto", config={**config, "num_key_value_heads": 4}), "o_proj", "qkv_proj")


class Numbers(ReportTest):
    def test_a_number_is_what_it_is_or_an_error(self):
        plan = "[tensors]\nk = { rule = 'colwise', heads = '{num_key_value_heads|num_attention_heads}' }\n"
        tensors = {"k.weight": noise("U8", 8, 4)}

        def given(value, more=()):
            config = {"num_key_value_heads": value, "num_attention_heads": 8}
            return self.dry(tensors, plan, 4, more, config)
        for good in [4, 4.0, None]:  # none is like no key at all
            self.assertEqual(given(good), {"k.weight": [2, 4]})
        self.refused(given(2.0), "2 heads", "4 ranks")
        for bad in ["2", "two", 2.5, -1, 0, True, [], [2], {}, 1e300, float("nan"), float("inf"), 2 ** 64]:
            run = given(bad)
            self.assertIn(run.returncode, [INVALID, REFUSED], bad)
            self.refused(run, "num_key_value_heads", code=run.returncode)
            text = {True: "true", -1: "-1", "2": '"2"', 2.5: "2.5"}.get(bad if not isinstance(bad, (list, dict))
                                                                       else None)
            if text:
                self.assertIn(text, run.stderr)
            self.assertEqual(given(bad, ["--set", "num_key_value_heads=4"]), {"k.weight": [2, 4]})

    def test_words_and_flags_of_the_config(self):
        falcon = {"transformer.h.0.self_attention.query_key_value.weight": noise("F32", 40, 16),
                  "transformer.h.0.self_attention.dense.weight": noise("F32", 16, 32),
                  "transformer.h.0.mlp.dense_h_to_4h.weight": noise("F32", 16, 16),
                  "transformer.h.0.mlp.dense_4h_to_h.weight": noise("F32", 16, 16),
                  "transformer.word_embeddings.weight": noise("F32", 8, 16),
                  "transformer.h.0.input_layernorm.weight": noise("F32", 16),
                  "transformer.ln_f.weight": noise("F32", 16)}
        config = {"model_type": "falcon", "num_attention_heads": 8}
        self.dry(falcon, "auto", config={**config, "multi_query": True})
        for bad in ["yes", 1, {}]:
            self.refused(self.dry(falcon, "auto", config={**config, "multi_query": bad}), "multi_query",
                         json.dumps(bad), code=INVALID)
        for bad in [3, ["llama"], {}]:
            self.refused(self.dry(falcon, "auto", config={**config, "model_type": bad}), "model_type",
                         code=INVALID)
        gptq = {"quant_method": "gptq", "group_size": 8}
        for bad in ["4", 4.5, {}]:
            run = self.dry(falcon, "auto", config={**config, "quantization_config": {**gptq, "bits": bad}})
            self.refused(run, "bits", json.dumps(bad), code=INVALID)
        run = self.dry(falcon, "auto", config={**config, "quantization_config": {"quant_method": 5}})
        self.refused(run, "quant_method", "5", code=INVALID)
        run = self.dry(falcon, "auto", config={**config, "quantization_config": "fp8"})
        self.refused(run, "quantization_config", '"fp8"', code=INVALID)

    def test_keys_that_mean_nothing(self):
        tensors = {"in.weight": noise("F32", 8, 4)}
        for rule, *words in [
            ("{ rule = 'packed', parts = 'B:4,C:4', replicate_kv = true }", "replicate_kv", "key or value"),
            ("{ rule = 'packed', parts = 'q:8', replicate_kv = true }", "replicate_kv", "key or value"),
            ("{ rule = 'packed', parts = 'q:2,q:2' }", "q", "twice"),
            ("{ rule = 'packed', parts = 'q:2x2,k:2x2 often' }", "often"),
            ("{ rule = 'colwise', heads = 8.0 }", "heads", "8.0", "whole number"),
            ("{ rule = 'colwise', heads = -8 }", "heads", "-8", "whole number"),
            ("{ rule = 'colwise', heads = true }", "heads", "true"),
            ("{ rule = 'colwise', heads = 2, head_dim = '{head_dim?' }", "{head_dim?"),
            ("{ rule = 'colwise', heads = '{heads?}' }", "heads", "?"),
            ("{ scale_of = 'weight', block = [0, 8] }", "block", "0"),
            ("{ scale_of = 'weight', block = [-2, 8] }", "block", "-2"),
        ]:
            self.refused(self.dry(tensors, f"[tensors]\nin = {rule}\n"), *words, code=INVALID)
        run = self.dry(tensors, "[tensors]\nlayers.up = 'colwise'\n")
        self.refused(run, "layers", "quotes", code=INVALID)
        plan = "[values]\nnum_kv_heads = 2\n[tensors]\nin = { rule = 'colwise', heads = 8 }\n"
        self.refused(self.dry(tensors, plan), "num_kv_heads", "uses no", code=INVALID)
        used = "[values]\nn = 2\n[tensors]\nin = 'colwise'\n[quantized.x]\nin = { rule = 'colwise', heads = '{n}' }\n"
        self.assertEqual(self.dry(tensors, used), {"in.weight": [4, 4]})  # by another of its tables

    def test_query_heads_are_never_replicated(self):
        tensors = {"a.q_proj.weight": noise("F32", 8, 4), "a.k_proj.weight": noise("F32", 8, 4)}
        plan = "[tensors]\n'a.{q,k}_proj' = { rule = 'colwise', heads = 2, replicate_kv = true }\n"
        self.refused(self.dry(tensors, plan, 4), "q_proj", "replicate_kv")
        plan = ("[tensors]\n'a.q_proj' = 'colwise'\n"
                "'a.k_proj' = { rule = 'colwise', heads = 2, replicate_kv = true }\n")
        self.assertEqual(self.dry(tensors, plan, 4)["a.k_proj.weight"], [4, 4])

    def test_groups_of_mamba_between_one_and_the_ranks(self):
        heads, state = 8, 3
        for groups in [1, 2, 4]:
            array = noise("F32", 2 * heads * 4 + 2 * groups * state + heads, 2)
            plan = (f"[tensors]\nin = {{ rule = 'packed', parts = 'z:{heads}x4,x:{heads}x4,B:{groups}x{state} "
                    f"replicate,C:{groups}x{state} replicate,dt:{heads}x1' }}\n")
            for tp in [1, 2, 4, 8]:
                self.assertIsInstance(self.dry({"in.weight": array}, plan, tp), dict)
                parts = np.split(bits(array), np.cumsum([heads * 4] * 2 + [groups * state] * 2))
                for rank in range(tp):
                    cut = [np.split(part, tp)[rank] if index in [0, 1, 4] or groups >= tp
                           else np.split(part, groups)[rank * groups // tp] for index, part in enumerate(parts)]
                    self.assertEqual(self.rank(rank)["in.weight"], packed("F32", np.concatenate(cut)))
            self.refused(self.dry({"in.weight": array}, plan.replace(" replicate", ""), 8), "of B")


class Indexes(ReportTest):
    """What an index does not give to a file is not the model's."""

    def index(self, **weight_map):
        path = self.dir / "model.safetensors.index.json"
        path.write_text(json.dumps({"metadata": {"total_size": 1, "total_parameters": 1}, "weight_map": weight_map}))
        return path

    def total(self, text):
        told = json.loads(text)["metadata"]
        return told["total_size"], told.get("total_parameters")

    def test_stale_tensors_never_count(self):
        new, old, o = noise("F32", 8, 4), noise("F32", 16, 4), noise("F32", 4, 8)
        scale = noise("F32", 8, 1)
        write_safetensors(self.dir / "a.safetensors", {"q.weight": new, "q.scale": scale})
        write_safetensors(self.dir / "b.safetensors", {"o.weight": o, "q.weight": old, "lost.shape": old})
        index = self.index(**{"q.weight": "a.safetensors", "q.scale": "a.safetensors", "o.weight": "b.safetensors"})
        told = json.loads(index.read_text())
        told["metadata"] = {"total_size": 4 * (32 + 8 + 32), "total_parameters": 72}
        index.write_text(json.dumps(told))
        self.plan.write_text("[tensors]\nq = 'colwise'\no = 'rowwise'\n'q.scale' = { scale_of = 'weight' }\n")
        run = self.run_tool("map", index, "--tp", 2, "--plan", self.plan, "--json")
        self.assert_succeeds(run)
        entries = [(it["rank"], it["name"], it["file"]) for it in json.loads(run.stdout)["tensors"]]
        self.assertEqual(len(entries), 6)
        self.assertEqual(len(set(entries)), 6)
        self.assertNotIn((0, "q.weight", "b.safetensors"), entries)
        self.assert_succeeds(self.shard(2, source=index))
        for rank in range(2):
            found = read_safetensors(self.out / f"rank-{rank}/a.safetensors")[0]
            self.assertEqual(found["q.weight"], packed("F32", np.split(bits(new), 2)[rank]))
            self.assertEqual(found["q.scale"], packed("F32", np.split(bits(scale), 2)[rank]))
            found = read_safetensors(self.out / f"rank-{rank}/b.safetensors")[0]
            self.assertEqual((found["q.weight"], found["lost.shape"]), (old, old))
            text = (self.out / f"rank-{rank}/{index.name}").read_text()
            self.assertEqual(self.total(text), (4 * (16 + 4 + 16), 36))
        joined = self.dir / "joined"
        self.assert_succeeds(self.join(out=joined))
        ranks = [self.out / f"rank-{rank}" for rank in range(2)]
        by_hand = self.dir / "by-hand"
        self.assert_succeeds(self.run_tool("join", *ranks, "--plan", self.plan, "-o", by_hand))
        for name in ["a.safetensors", "b.safetensors"]:
            self.assertEqual((joined / name).read_bytes(), (self.dir / name).read_bytes())
            self.assertEqual(read_safetensors(by_hand / name), read_safetensors(self.dir / name))
        self.assertEqual(self.total((by_hand / index.name).read_text()), (4 * 72, 72))
        # Scales that do not fit are not saved by a weight that does not count.
        write_safetensors(self.dir / "b.safetensors", {"o.weight": noise("F32", 4, 2), "q.weight": old})
        write_safetensors(self.dir / "a.safetensors", {"q.weight": new, "q.scale": scale, "o.scale": noise("F32", 4, 2),
                                                       "o.weight": noise("F32", 4, 8)})
        index = self.index(**{"q.weight": "a.safetensors", "q.scale": "a.safetensors", "o.weight": "a.safetensors",
                              "o.scale": "a.safetensors"})
        told = json.loads(index.read_text())
        told["weight_map"]["extra"] = "b.safetensors"
        write_safetensors(self.dir / "b.safetensors", {"extra": old, "o.weight": noise("F32", 4, 2)})
        index.write_text(json.dumps(told))
        self.plan.write_text("[tensors]\nq = 'colwise'\no = 'rowwise'\n'*.scale' = { scale_of = 'weight' }\n"
                             "extra = 'replicate'\n")
        run = self.shard(2, "--force", source=index)
        self.assert_fails(run, REFUSED, "o.scale", "2 scales", "8 elements", left=os.listdir(self.out))

    def test_a_total_that_counts_something_else_is_dropped(self):
        write_safetensors(self.dir / "a.safetensors", {"w.weight": noise("U8", 4, 2)})
        index = self.index(**{"w.weight": "a.safetensors"})
        self.plan.write_text("[tensors]\nw = 'colwise'\n")
        self.assert_succeeds(self.shard(2, source=index))
        self.assertEqual(self.total((self.out / f"rank-1/{index.name}").read_text()), (4, None))

    def test_a_single_file_beside_the_index_of_others(self):
        write_safetensors(self.dir / "a.safetensors", {"w.weight": noise("U8", 4, 2)})
        index = self.index(**{"w.weight": "a.safetensors"})
        self.plan.write_text("[tensors]\nw = 'colwise'\n")
        write_safetensors(self.dir / "consolidated.safetensors", {"v.weight": noise("U8", 4, 2)})
        self.assert_succeeds(self.shard(2, source=self.dir))
        write_safetensors(self.model, {"w.weight": noise("U8", 4, 2)})
        run = self.shard(2, "--force", source=self.dir)
        self.assert_fails(run, INVALID, "model.safetensors and model.safetensors.index.json", "name the one",
                          left=os.listdir(self.out))
        for one in [index, self.model]:
            self.assert_succeeds(self.shard(2, "--force", source=one))


class Scales(ReportTest):
    def test_they_fit_their_weight_on_every_axis(self):
        weight = {"w.weight": noise("F8_E4M3", 32, 16)}
        plan = "[tensors]\nw = '%s'\n'w.weight_scale' = { scale_of = 'weight'%s }\n"
        for rule in ["colwise", "rowwise"]:
            for shape, block, is_right in [
                ((1, 32), "", False), ((1, 16), "", True), ((32, 1), "", True), ((32, 16), "", True),
                ((16, 1), "", False), ((8, 5), "[4, 4]", False), ((8, 4), "[4, 4]", True), ((7, 4), "[4, 4]", False),
                ((8, 4), "", False), ((1, 1), "[4, 4]", False), ((1,), "[4, 4]", False), ((32, 4), "[1, 4]", True),
                ((1, 4), "[-1, 4]", True), ((8, 1), "[4, -1]", True), ((1, 1), "", True), ((), "", True),
                ((32, 32), "[1, '1/2']", rule == "colwise"), ((32, 31), "[1, '1/2']", False),
            ]:
                tensors = {**weight, "w.weight_scale": noise("F32", *shape)}
                found = self.dry(tensors, plan % (rule, f", block = {block}" if block else ""))
                with self.subTest(rule=rule, shape=shape, block=block):
                    if is_right:
                        self.assertIsInstance(found, dict, found)
                    else:
                        self.refused(found, "w.weight_scale")

    def test_plans_for_scales_that_were_missing(self):
        def model(**more):
            tensors = llama(dtype="F8_E4M3")
            for name in "qkvo":
                tensors[f"{ATTENTION}{name}_proj.weight_scale"] = noise("F32", 1)
            tensors |= {ATTENTION + name.replace("__", "."): tensor for name, tensor in more.items()}
            return tensors
        config = {"model_type": "llama", "num_attention_heads": 8, "num_key_value_heads": 2,
                  "quantization_config": {"quant_method": "fp8", "weight_block_size": None}}
        one = noise("F32", 1)
        for names in [["k_scale", "v_scale", "q_scale"], ["kv_scale"], ["k_proj__k_scale", "v_proj__v_scale"],
                      ["k_proj__output_scale", "v_proj__output_scale"]]:
            found = self.dry(model(**dict.fromkeys(names, one)), "auto", config=config)
            self.assertIsInstance(found, dict, names)
        self.refused(self.dry(model(k_scale=noise("F32", 3)), "auto", config=config), "k_scale", "3")
        # One scale for a weight, in the name that is for blocks elsewhere.
        inverse = {name.replace("weight_scale", "weight_scale_inv"): it for name, it in model().items()}
        self.assertIsInstance(self.dry(inverse, "auto", config=config), dict)
        blocks = {**inverse, ATTENTION + "q_proj.weight_scale_inv": noise("F32", 2, 1)}
        self.refused(self.dry(blocks, "auto", config=config), "q_proj.weight_scale_inv", "--set weight_block_size=A,B")
        self.refused(self.dry(blocks, "auto", more=["--set", "weight_block_size=16,16"]), "k_proj.weight_scale_inv")
        # Static int8: where its zero is.
        static = {"quant_method": "compressed-tensors", "format": "int-quantized"}
        zero = {f"{name}_proj__{kind}_zero_point": noise("I8", 1) for name in "qkvo" for kind in ["input", "weight"]}
        found = self.dry(model(**zero), "auto", config={**config, "quantization_config": static})
        self.assertIsInstance(found, dict, found)

    def test_awq_with_one_group(self):
        tensors = {"model.norm.weight": noise("F32", 16), "model.embed_tokens.weight": noise("F32", 8, 16)}
        for name, (out, inputs) in {"q": (64, 16), "k": (64, 16), "v": (64, 16), "o": (16, 64)}.items():
            at = f"{ATTENTION}{name}_proj."
            tensors |= {at + "qweight": noise("I32", inputs, out // 8), at + "qzeros": noise("I32", 1, out // 8),
                        at + "scales": noise("F16", 1, out)}
        method = {"quant_method": "awq", "bits": 4, "version": "gemm", "group_size": -1}
        config = {"model_type": "llama", "num_attention_heads": 8, "quantization_config": method}
        found = self.dry(tensors, "auto", config=config)
        self.assertIsInstance(found, dict, found)
        self.assertEqual(found[ATTENTION + "o_proj.scales"], [1, 16])
        self.refused(self.dry({**tensors, ATTENTION + "o_proj.scales": noise("F16", 2, 16)}, "auto"), "o_proj.scales")


class Names(ReportTest):
    def test_a_pattern_for_any_name_cuts_weights_biases_and_what_is_as_long(self):
        plan = "[tensors]\n'*.q_proj.*' = { rule = 'colwise', axis = 0 }\n"
        weight = {"a.q_proj.weight": noise("U8", 8, 4), "a.q_proj.bias": noise("U8", 8)}
        self.assertEqual(self.dry({**weight, "a.q_proj.magnitude": noise("U8", 8)}, plan)["a.q_proj.magnitude"], [4])
        for name in ["shape", "weight.quant_state.bitsandbytes__nf4", "codes", "codebooks", "W_q", "zero", "meta",
                     "lut", "perm", "hadamard", "rank", "bits", "group_size", "weight.quant_map", "lora_A.weight_x",
                     "qscale", "weight_g"]:
            for more in [[], ["--allow-unmatched"]]:
                run = self.dry({**weight, f"a.q_proj.{name}": noise("U8", 4)}, plan, more=more)
                self.refused(run, f"a.q_proj.{name}", "any name")
        leaf = plan + "'*.q_proj.shape' = 'replicate'\n"
        run = self.dry({**weight, "a.q_proj.shape": noise("U8", 4)}, "[tensors]\n" + leaf.split("\n")[2] + "\n"
                       + leaf.split("\n")[1] + "\n")
        self.assertEqual(run["a.q_proj.shape"], [4])

    def test_scale_in_a_name_is_not_always_a_quantization(self):
        tensors = {"w.weight": noise("F32", 8, 4), "logit_scale": noise("F32"), "blocks.0.layer_scale": noise("F32", 4)}
        plan = "[tensors]\nw = 'colwise'\n"
        self.refused(self.dry(tensors, plan), "logit_scale", "--allow-unmatched")
        for config in [None, {"model_type": "x"}]:
            (self.dir / "config.json").unlink(missing_ok=True)
            write_safetensors(self.model, tensors)
            self.plan.write_text(plan)
            if config:
                self.config(**config)
            run = self.shard(2, "--allow-unmatched", "--force")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(self.rank(1)["logit_scale"], tensors["logit_scale"])
        for quantized in [{**tensors, "w.weight_scale": noise("F32", 1)},
                          {"w.weight": noise("F8_E4M3", 8, 4), "w.scale": noise("F32", 1)}]:
            self.refused(self.dry(quantized, plan, more=["--allow-unmatched"]), "quantized weights")
        run = self.dry(tensors, plan + "[quantized.fp8]\n", more=["--allow-unmatched"],
                       config={"quantization_config": {"quant_method": "fp8"}})
        self.refused(run, "logit_scale", "quantized weights")

    def test_paths_that_are_not_utf_8(self):
        place = os.fsencode(self.dir) + b"/caf\xe9"
        os.mkdir(place)
        np.save(os.fsdecode(place + b"/a\xfe.npy"), np.arange(4))
        write_safetensors(self.model, {"w.weight": noise("U8", 4, 2)})
        shutil.copy(self.model, place + b"/m.safetensors")
        self.plan.write_text("[tensors]\nw = 'colwise'\n")
        plan = ["--plan", self.plan]
        model, shards = place + b"/m.safetensors", place + b"/shards"
        for command in [["npy", place + b"/a\xfe.npy", place + b"/pieces", "--parts", "2"],
                        ["npy", place + b"/a\xfe.npy", place + b"/pieces-2", "--parts", "2", "--dry-run"],
                        ["info", model], ["info", place + b"/a\xfe.npy"], ["map", model, "--tp", "2", *plan],
                        ["shard", model, "--tp", "2", *plan, "-o", shards],
                        ["shard", model, "--tp", "2", *plan, "-o", shards + b"\xff", "--dry-run"], ["info", shards],
                        ["verify", shards], ["join", shards, "-o", place + b"/joined.safetensors"],
                        ["info", place + b"/gone"], ["shard", place + b"/gone", "--tp", "2", *plan, "-o", shards],
                        ["verify", place], ["join", place, "-o", place]]:
            words = [word if isinstance(word, bytes) else os.fsencode(str(word)) for word in [LIBSPLIT, *command]]
            run = subprocess.run([*words, b"--json"], capture_output=True)
            with self.subTest(command=command):
                self.assertIn(run.returncode, [0, FAILED, USAGE, INVALID])
                is_wrong = command[1] == place + b"/gone" or command[1] == place
                self.assertEqual(run.returncode != 0, is_wrong, run.stderr)
                told = json.loads(run.stderr if is_wrong else run.stdout)
                if is_wrong or command[0] in ["npy", "shard", "join"] or command[1] == model and command[0] == "info":
                    self.assertIn("caf\ufffd", json.dumps(told, ensure_ascii=False))
        self.assertEqual(len(os.listdir(place + b"/pieces")), 2)

    def test_marks_that_change_a_line_are_spelt_out(self):
        marks = "\u202e\u2066\u200b\ufeff\u00ad\u2028\U000e0041\n"
        names = [f"a{mark}b.weight" for mark in marks]
        tensors = {name: noise("U8", 4, 2) for name in [*names, "é.weight", "日本.weight", "it's \"so\".weight"]}
        write_safetensors(self.model, tensors)
        self.plan.write_text("[tensors]\n'*.weight' = 'colwise'\n")
        for run in [self.run_tool("info", self.model), self.shard(2, "--dry-run"),
                    self.run_tool("map", self.model, "--tp", 1, "--plan", self.plan)]:
            self.assert_succeeds(run)
            for mark in marks[:-1]:
                self.assertNotIn(mark, run.stdout)
            self.assertIn("a\\u{202e}b", run.stdout)
            self.assertIn("a\\nb", run.stdout)
            self.assertIn("é", run.stdout)
            self.assertIn("日本", run.stdout)
            self.assertEqual(len([line for line in run.stdout.split("\n") if "weight" in line]), len(tensors))
        self.plan.write_text("[tensors]\n'a*.weight' = 'replicate'\n")
        run = self.shard(2, out=self.dir / "no")
        self.assertEqual(run.stderr.count("\n"), 1)
        write_safetensors(self.model, {"a\nb.weight": noise("U8", 3, 2)})
        self.plan.write_text("[tensors]\n'a*.weight' = 'colwise'\n")
        run = self.shard(2, out=self.dir / "no")
        self.assert_fails(run, REFUSED, "a\\nb.weight")


class Files(ReportTest):
    def test_small_files_are_copied_or_named(self):
        source = self.dir / "source"
        (source / "additional_chat_templates").mkdir(parents=True)
        write_safetensors(source / "model.safetensors", {"w.weight": noise("U8", 4, 2)})
        self.plan.write_text("[tensors]\nw = 'colwise'\n")
        copied = ["config.json", "tokenizer.model.v3", "source.spm", "bpe.codes.bpe", "merges.txt", "vocab.txt",
                  "sentencepiece.bpe.model", "tekken.json", "NOTICE.txt", "USE_POLICY.md", "tokenizer.mm"]
        left = ["additional_chat_templates", "pytorch_model.bin", "picture.png"]
        for name in [*copied, *left[1:], ".gitattributes"]:
            (source / name).write_text("{}")
        run = self.shard(2, source=source)
        self.assert_succeeds(run)
        self.assertEqual(set(os.listdir(self.out)), {*copied, "rank-0", "rank-1", "libsplit.json"})
        for name in left:
            self.assertIn(name, run.stdout)
        self.assertNotIn("gitattributes", run.stdout)
        told = json.loads(self.shard(2, "--dry-run", "--json", source=source, out=self.dir / "no").stdout)
        self.assertEqual((sorted(told["copied"]), sorted(told["not_copied"])), (sorted(copied), sorted(left)))
        run = self.shard(2, "--force", "--no-copy", source=source)
        self.assertNotIn("not copied", run.stdout)

    def test_what_cannot_be_read_back_is_not_written(self):
        # A header of almost the longest that there may be, to which each shard adds a few words.
        name = "w" * 99_999_850
        write_safetensors(self.model, {name: noise("U8", 2, 2)}, {"a": "b"})
        self.assertLess(self.model.stat().st_size, 100_000_012)
        self.plan.write_text("[tensors]\n'*' = 'replicate'\n")
        for more in [[], ["--dry-run"]]:
            run = self.shard(2, *more)
            self.assertEqual(run.returncode, REFUSED, run.stderr[-300:])
            self.assertIn("100000000", run.stderr[-400:])
            self.assertFalse(self.out.exists())

    def test_a_dry_run_says_what_the_run_does(self):
        plan = "[tensors]\nw = { rule = 'rowwise'%s }\n"
        for tensor, tp, more in [(("F6_E2M3", 4, 2), 2, ""), (("F4", 4, 3), 2, ", pad_to = 4, pairs_with = 'w'"),
                                 (("F6_E2M3", 4, 6), 2, "")]:
            self.refused(self.dry({"w.weight": noise(*tensor)}, plan % more, tp), "w.weight", "within a byte")
        self.save({"w.weight": noise("F32", 4, 2)}, plan % "")
        file = self.dir / "file"
        file.write_text("")
        array = self.dir / "a.npy"
        np.save(array, np.arange(4))
        self.assert_succeeds(self.shard(2))
        long = "n" * 300
        for out in [file / "out", file / "deep/er", self.dir / long, self.dir / long / "x"]:
            for command in [["shard", self.model, "--tp", 2, "--plan", self.plan, "-o", out],
                            ["join", self.out, "-o", out], ["join", self.out, "--tp", 1, "-o", out],
                            ["npy", array, out, "--parts", 2]]:
                runs = [self.run_tool(*command, *more) for more in [["--dry-run"], []]]
                self.assertEqual([run.returncode for run in runs], [FAILED] * 2, (command, runs[0].stderr))
                self.assertEqual(runs[0].stderr, runs[1].stderr)
        # A name that is too long only with its number.
        long = self.dir / ("n" * 250 + ".npy")
        shutil.copy(array, long)
        runs = [self.run_tool("npy", long, self.dir / "p", "--parts", 2, *more) for more in [["--dry-run"], []]]
        self.assertEqual([run.returncode for run in runs], [FAILED] * 2, runs)

    def test_inode_numbers_do_not_matter(self):
        # Some mounts give a file another number after a while, others give all files the same.
        self.save({"w.weight": noise("U8", 12, 2)}, "[tensors]\nw = 'colwise'\n")
        shim = self.dir / "shim.so"
        code = self.dir / "shim.c"
        code.write_text("""
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <stdlib.h>
            #include <sys/stat.h>
            int statx(int at, const char *path, int flags, unsigned mask, struct statx *found) {
                static unsigned long count;
                int (*next)(int, const char *, int, unsigned, struct statx *) = dlsym(RTLD_NEXT, "statx");
                int done = next(at, path, flags, mask, found);
                if (found) found->stx_ino = getenv("SAME") ? 7 : __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
                return done;
            }""")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, code, "-ldl"], check=True)
        plain = self.dir / "plain"
        self.assert_succeeds(self.shard(3, out=plain))
        for path in plain.rglob("model.safetensors"):
            tensors, metadata = read_safetensors(path)
            write_safetensors(self.dir / f"r{path.parent.name[-1]}.safetensors", tensors)
        ranks = [self.dir / f"r{rank}.safetensors" for rank in range(3)]
        for more in [{}, {"SAME": "1"}]:
            env = {**os.environ, "LD_PRELOAD": str(shim), **more}
            self.assert_succeeds(self.shard(3, "--force", env=env))
            self.assert_succeeds(self.run_tool("verify", self.out, env=env))
            self.assert_succeeds(self.join("--force", env=env))
            self.assertEqual(self.joined.read_bytes(), self.model.read_bytes())
            self.assert_succeeds(self.join("--force", env=env))
            self.assert_succeeds(self.join("--tp", 2, "--force", out=self.dir / "two", env=env))
            run = self.run_tool("join", *ranks, "--plan", self.plan, "-o", self.joined, "--force", env=env)
            self.assert_succeeds(run)
            self.assertEqual(read_safetensors(self.joined)[0], read_safetensors(self.model)[0])
        os.link(ranks[0], self.dir / "r3.safetensors")
        run = self.run_tool("join", *ranks, self.dir / "r3.safetensors", "--plan", self.plan, "-o", self.joined, "--force")
        self.assert_fails(run, REFUSED, "given twice", left=os.listdir(self.out))

    def test_files_of_other_kinds(self):
        np.savez(self.dir / "a.npz", a=np.arange(4))
        run = self.run_tool("npy", self.dir / "a.npz", self.out, "--parts", 2)
        self.assert_fails(run, INVALID, ".npz", "unzip")
        self.assertNotIn("PyTorch", run.stderr)
        write_safetensors(self.model, {"w.weight": noise("U8", 4, 2)})
        self.plan.write_text("[tensors]\nw = 'colwise'\n")
        (self.dir / "config.json").write_bytes(b"\xef\xbb\xbf{}")
        self.assert_fails(self.shard(2), INVALID, "config.json", "byte order mark")


class Stops(ReportTest):
    def stopped(self, *command, after):
        with open(self.dir / "told", "w") as told:
            run = subprocess.Popen([str(word) for word in [LIBSPLIT, *command]], stdout=subprocess.DEVNULL,
                                   stderr=told, preexec_fn=heed_signals)
        time.sleep(after)
        if run.poll() is not None:
            return None  # it was too fast
        run.send_signal(signal.SIGINT)
        since = time.monotonic()
        code = run.wait()
        return time.monotonic() - since, code, (self.dir / "told").read_text()

    def test_every_command_stops_within_a_second(self):
        header, end = {}, 0
        for index in range(60_000):
            header[f"layers.{index}.w.weight"] = {"dtype": "U8", "shape": [64, 1], "data_offsets": [end, end + 64]}
            end += 64
        text = json.dumps(header).encode()
        with open(self.model, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + end)
        self.plan.write_text("[tensors]\n'*.w' = 'colwise'\n")
        plan = ["--tp", 64, "--plan", self.plan]
        count = 0
        for command in [["map", self.model, *plan, "--json"], ["map", self.model, *plan], ["info", self.model],
                        ["info", self.model, "--json"], ["shard", self.model, *plan, "--dry-run"],
                        ["shard", self.model, *plan, "-o", self.out]]:
            for after in [0.05, 0.3, 1.5, 4]:
                found = self.stopped(*command, after=after)
                if found is None:
                    break
                count += 1
                with self.subTest(command=command[0], after=after):
                    self.assertLess(found[0], 1)
                    self.assertEqual((found[1], found[2].count("\n")), (STOPPED, 1), found)
                    self.assertIn("stopped", found[2])
                    self.assertFalse(self.out.exists())
                    self.assertEqual([], list(self.dir.glob(".libsplit-*")))
        self.assertGreater(count, 6)

    def test_a_pipe_that_never_ends(self):
        run = subprocess.Popen([str(LIBSPLIT), "npy", "-", str(self.out), "--parts", "2"], stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals)
        time.sleep(0.2)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=2), STOPPED)
        self.assertIn("stopped", run.stderr.read())
        run.stdin.close()
        run.stderr.close()


if __name__ == "__main__":
    import unittest
    unittest.main()
