"""The ready plans for the models that --plan auto knows, plain and quantized: what the ranks compute
together is what the whole model computes. In NumPy, on small made-up models, with weights that are
dequantized as the formats say."""

import itertools
import unittest

import numpy as np

from proof import TP, ProofTest, attention, relu, whole_numbers

HIDDEN, HEADS, WIDTH, INTER, VOCAB, GROUP = 16, 8, 8, 64, 40, 8
RANDOM = np.random.default_rng(3)


# Quantizations: each turns a weight [out, in] of 4-bit numbers into tensors by their suffixes.

def plain(name, out, inputs):
    return {f"{name}.weight": whole_numbers(out, inputs)}


def fp8_tensor(name, out, inputs):
    return {f"{name}.weight": whole_numbers(out, inputs).astype("i1"),
            f"{name}.weight_scale": np.array([2.0], "f4"), f"{name}.input_scale": np.array(1.0, "f4")}


def fp8_channel(name, out, inputs):
    return {f"{name}.weight": whole_numbers(out, inputs).astype("i1"),
            f"{name}.weight_scale": RANDOM.integers(1, 4, (out, 1)).astype("f4")}


def fp8_block(name, out, inputs):
    blocks = -(-out // GROUP), -(-inputs // GROUP)
    return {f"{name}.weight": whole_numbers(out, inputs).astype("i1"),
            f"{name}.weight_scale_inv": RANDOM.integers(1, 4, blocks).astype("f4")}


def pack(array, axis, order=range(8)):
    """Eight numbers of 4 bits in one of 32, along an axis, in this order."""
    array = np.moveaxis(array, axis, -1).astype("u4")
    array = array.reshape(*array.shape[:-1], -1, 8)[..., list(order)]
    packed = (array << (4 * np.arange(8, dtype="u4"))).sum(-1, dtype="u4").view("i4")
    return np.ascontiguousarray(np.moveaxis(packed, -1, axis))


def unpack(array, axis, order=range(8)):
    array = np.moveaxis(array.view("u4"), axis, -1)[..., None]
    numbers = (array >> (4 * np.arange(8, dtype="u4"))) & 15
    numbers = numbers[..., np.argsort(list(order))]
    return np.moveaxis(numbers.reshape(*array.shape[:-2], -1), -1, axis).astype("f8")


AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def gptq(name, out, inputs, is_shuffled=True):
    groups = inputs // GROUP
    g_idx = np.arange(inputs, dtype="i4") // GROUP
    if is_shuffled:  # desc_act
        RANDOM.shuffle(g_idx)
    return {f"{name}.qweight": pack(RANDOM.integers(0, 16, (inputs, out)), 0),
            f"{name}.qzeros": pack(RANDOM.integers(0, 15, (groups, out)), 1),
            f"{name}.scales": RANDOM.integers(1, 3, (groups, out)).astype("f2"),
            f"{name}.g_idx": g_idx}


def awq(name, out, inputs):
    groups = inputs // GROUP
    return {f"{name}.qweight": pack(RANDOM.integers(0, 16, (inputs, out)), 1, AWQ_ORDER),
            f"{name}.qzeros": pack(RANDOM.integers(0, 16, (groups, out)), 1, AWQ_ORDER),
            f"{name}.scales": RANDOM.integers(1, 3, (groups, out)).astype("f2")}


def weight(of, name):
    """Returns a weight [out, in] as the numbers that it represents."""
    if (found := of.get(f"{name}.weight")) is not None:
        found = found.astype("f8")
        scale = of.get(f"{name}.weight_scale", of.get(f"{name}.weight_scale_inv"))
        if scale is not None and (scale.ndim < 2 or scale.shape == (len(found), 1)):
            found = found * scale
        elif scale is not None:
            scale = np.repeat(np.repeat(scale, GROUP, 0), GROUP, 1)
            found = found * scale[:found.shape[0], :found.shape[1]]
        return found
    scales = of[f"{name}.scales"].astype("f8")
    if (g_idx := of.get(f"{name}.g_idx")) is not None:
        zeros = unpack(of[f"{name}.qzeros"], 1) + 1
        return ((unpack(of[f"{name}.qweight"], 0) - zeros[g_idx]) * scales[g_idx]).T
    zeros = unpack(of[f"{name}.qzeros"], 1, AWQ_ORDER)
    numbers = unpack(of[f"{name}.qweight"], 1, AWQ_ORDER)
    return ((numbers - np.repeat(zeros, GROUP, 0)) * np.repeat(scales, GROUP, 0)).T


def linear(of, name, x):
    out = x @ weight(of, name).T
    return out + of[f"{name}.bias"] if f"{name}.bias" in of else out


QUANTIZATIONS = {
    "plain": (plain, None),
    "fp8 by tensor": (fp8_tensor, {"quant_method": "fp8"}),
    "fp8 by channel": (fp8_channel, {"quant_method": "fbgemm_fp8"}),
    "fp8 of compressed-tensors": (fp8_channel, {"quant_method": "compressed-tensors",
                                                "format": "float-quantized"}),
    "int8 of compressed-tensors": (fp8_channel, {"quant_method": "compressed-tensors",
                                                 "format": "int-quantized"}),
    "fp8 by block of compressed-tensors": (
        lambda *what: {name.replace("_inv", ""): it for name, it in fp8_block(*what).items()},
        {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {
            "group_0": {"weights": {"strategy": "block", "block_structure": [GROUP, GROUP]}}}}),
    "fp8 by block": (fp8_block, {"quant_method": "fp8", "weight_block_size": [GROUP, GROUP]}),
    "GPTQ": (lambda *what: gptq(*what, is_shuffled=False),
             {"quant_method": "gptq", "bits": 4, "group_size": GROUP}),
    "GPTQ with desc_act": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": GROUP}),
    "AWQ": (awq, {"quant_method": "awq", "bits": 4, "version": "gemm", "group_size": GROUP}),
}


class ReadyPlans(ProofTest):
    def prove(self, tensors, config, plan, computed, embeddings=(), whole=(), more=()):
        """The ranks' sums are what the whole model gives, of each of the functions."""
        for tp in TP:
            with self.subTest(config=config, tp=tp):
                ranks = self.shard(tensors, tp, plan, config, *more)
                for compute in computed:
                    self.assert_equal(sum(compute(rank, tp) for rank in ranks), compute(tensors, 1))
                for name in embeddings:
                    self.assert_looked_up(ranks, tensors, name)
                self.assert_replicated(ranks, tensors, *whole)

    def attention_of(self, at, kv_heads, x, q="q_proj"):
        def attend(of, tp):
            q_, k, v = (linear(of, f"{at}{name}", x) for name in [q, "k_proj", "v_proj"])
            return attention(q_, k, v, WIDTH) @ weight(of, at + "o_proj").T
        return attend

    def feed_of(self, at, x, names=("gate_proj", "up_proj", "down_proj")):
        def feed(of, tp):
            gate, up = (linear(of, at + name, x) for name in names[:2])
            return relu(gate) * up @ weight(of, at + names[2]).T
        return feed

    def llama_like(self, kv_heads, quantized, mlp, prefix="model."):
        """A layer of attention and what 'mlp' gives; the embedding and the norms."""
        at = prefix + "layers.0."
        tensors = {prefix + "embed_tokens.weight": whole_numbers(VOCAB, HIDDEN),
                   prefix + "norm.weight": whole_numbers(HIDDEN),
                   at + "input_layernorm.weight": whole_numbers(HIDDEN),
                   at + "post_attention_layernorm.weight": whole_numbers(HIDDEN),
                   at + "self_attn.q_norm.weight": whole_numbers(WIDTH)}
        for name, heads in [("q", HEADS), ("k", kv_heads), ("v", kv_heads)]:
            tensors |= quantized(f"{at}self_attn.{name}_proj", heads * WIDTH, HIDDEN)
            tensors[f"{at}self_attn.{name}_proj.bias"] = whole_numbers(heads * WIDTH)
        tensors |= quantized(at + "self_attn.o_proj", HIDDEN, HEADS * WIDTH)
        for name in mlp:
            is_down = name.endswith(("down_proj", "w2"))
            tensors |= quantized(at + name, *((HIDDEN, INTER) if is_down else (INTER, HIDDEN)))
        return tensors

    def test_llama_of_every_quantization(self):
        x = RANDOM.integers(-1, 2, (3, HIDDEN)).astype("f8")
        for kind, (quantized, method) in QUANTIZATIONS.items():
            for kv_heads in [1, 2, 8]:
                with self.subTest(kind=kind, kv_heads=kv_heads):
                    mlp = [f"mlp.{name}_proj" for name in ["gate", "up", "down"]]
                    tensors = self.llama_like(kv_heads, quantized, mlp)
                    tensors["lm_head.weight"] = whole_numbers(VOCAB, HIDDEN)
                    config = {"model_type": "llama", "num_attention_heads": HEADS,
                              "num_key_value_heads": kv_heads}
                    if method:
                        config["quantization_config"] = method
                    at = "model.layers.0."
                    self.prove(tensors, config, "auto",
                               [self.attention_of(at + "self_attn.", kv_heads, x),
                                self.feed_of(at + "mlp.", x)],
                               ["model.embed_tokens.weight", "lm_head.weight"], ["norm.weight"])

    def test_mixtures_of_every_quantization(self):
        x = RANDOM.integers(-1, 2, (3, HIDDEN)).astype("f8")
        at = "model.layers.0."
        mixtral = ["w1", "w3", "w2"]
        qwen = ["gate_proj", "up_proj", "down_proj"]
        for kind, (quantized, method) in QUANTIZATIONS.items():
            for model, experts, names in [
                ("mixtral", [f"block_sparse_moe.experts.{index}." for index in range(3)], mixtral),
                ("qwen2_moe", [*(f"mlp.experts.{index}." for index in range(3)), "mlp.shared_expert."],
                 qwen),
                ("qwen3_moe", ["mlp.experts.0.", "mlp.experts.12."], qwen),
            ]:
                tensors = self.llama_like(2, quantized, [expert + name for expert in experts
                                                         for name in names])
                router = at + experts[0].split(".")[0] + ".gate.weight"
                tensors[router] = whole_numbers(3, HIDDEN)
                whole = ["norm.weight", router]
                if model == "qwen2_moe":
                    tensors[at + "mlp.shared_expert_gate.weight"] = whole_numbers(1, HIDDEN)
                    whole.append("shared_expert_gate.weight")
                config = {"model_type": model, "num_attention_heads": HEADS, "num_key_value_heads": 2}
                if method:
                    config["quantization_config"] = method
                with self.subTest(kind=kind, model=model):
                    self.prove(tensors, config, "auto",
                               [self.attention_of(at + "self_attn.", 2, x),
                                *(self.feed_of(at + expert, x, names) for expert in experts)],
                               ["model.embed_tokens.weight"], whole)

    def test_gemma_and_a_model_that_sees(self):
        x = RANDOM.integers(-1, 2, (3, HIDDEN)).astype("f8")
        text = {"model_type": "gemma3_text", "num_attention_heads": HEADS, "num_key_value_heads": 2}
        seeing = {"model_type": "gemma3", "text_config": text}
        for prefix, config, kind in [("model.", {**text, "model_type": "gemma2"}, "plain"),
                                     ("model.", text, "plain"),
                                     *(("language_model.model.", seeing, kind) for kind in QUANTIZATIONS)]:
            at = prefix + "layers.0."
            quantized, method = QUANTIZATIONS[kind]
            if method:
                config = {**config, "quantization_config": method}
            tensors = self.llama_like(2, quantized, [f"mlp.{name}_proj" for name in ["gate", "up", "down"]],
                                      prefix)
            tensors[at + "pre_feedforward_layernorm.weight"] = whole_numbers(HIDDEN)
            tensors[at + "self_attn.k_norm.weight"] = whole_numbers(WIDTH)
            if prefix != "model.":
                tensors["vision_tower.q_proj.weight"] = whole_numbers(3, 3)
                tensors["multi_modal_projector.weight"] = whole_numbers(5)
            self.prove(tensors, config, "auto",
                       [self.attention_of(at + "self_attn.", 2, x), self.feed_of(at + "mlp.", x)],
                       [prefix + "embed_tokens.weight"], ["norm.weight", "tower.q_proj.weight"])

    def test_phi_of_every_quantization(self):
        x = RANDOM.integers(-1, 2, (3, HIDDEN)).astype("f8")
        at, kv_heads = "model.layers.0.", 2
        for kind, (quantized, method) in QUANTIZATIONS.items():
            tensors = {"model.embed_tokens.weight": whole_numbers(VOCAB, HIDDEN),
                       "model.norm.weight": whole_numbers(HIDDEN)}
            tensors |= quantized(at + "self_attn.qkv_proj", (HEADS + 2 * kv_heads) * WIDTH, HIDDEN)
            tensors |= quantized(at + "self_attn.o_proj", HIDDEN, HEADS * WIDTH)
            tensors |= quantized(at + "mlp.gate_up_proj", 2 * INTER, HIDDEN)
            tensors |= quantized(at + "mlp.down_proj", HIDDEN, INTER)
            config = {"model_type": "phi3", "num_attention_heads": HEADS, "num_key_value_heads": kv_heads}
            if method:
                config["quantization_config"] = method

            def attend(of, tp):
                ends = np.cumsum([HEADS // tp, max(1, kv_heads // tp)]) * WIDTH
                parts = np.split(linear(of, at + "self_attn.qkv_proj", x), ends, 1)
                return attention(*parts, WIDTH) @ weight(of, at + "self_attn.o_proj").T

            def feed(of, tp):
                gate, up = np.split(linear(of, at + "mlp.gate_up_proj", x), 2, 1)
                return relu(gate) * up @ weight(of, at + "mlp.down_proj").T

            with self.subTest(kind=kind):
                self.prove(tensors, config, "auto", [attend, feed], ["model.embed_tokens.weight"],
                           ["norm.weight"])

    def fused(self, at, qkv, dense, groups, heads_of_groups):
        """Attention and feed forward of GPT-NeoX and Falcon: groups of q, k and v, and two layers."""
        x = RANDOM.integers(-1, 2, (3, HIDDEN)).astype("f8")

        def attend(of, tp):
            fused = linear(of, at + qkv, x).reshape(len(x), max(1, groups // tp), -1, WIDTH)
            parts = (fused[:, :, :-2], fused[:, :, -2:-1], fused[:, :, -1:])
            q, k, v = (part.reshape(len(x), -1) for part in parts)
            return attention(q, k, v, WIDTH) @ weight(of, at + dense).T

        def feed(of, tp):
            inner = relu(linear(of, at + "mlp.dense_h_to_4h", x))
            return inner @ weight(of, at + "mlp.dense_4h_to_h").T

        shapes = [(qkv, (heads_of_groups + 2) * groups * WIDTH, HIDDEN), (dense, HIDDEN, HEADS * WIDTH),
                  ("mlp.dense_h_to_4h", INTER, HIDDEN), ("mlp.dense_4h_to_h", HIDDEN, INTER)]
        return shapes, [attend, feed]

    def test_falcon_of_all_three_kinds(self):
        at = "transformer.h.0."
        for kind, (groups, numbers) in itertools.product(["plain", "fp8 by tensor", "fp8 by channel"], [
            (1, {"num_kv_heads": HEADS, "multi_query": True, "new_decoder_architecture": False}),
            (2, {"num_kv_heads": 2, "multi_query": True, "new_decoder_architecture": True}),
            (HEADS, {"multi_query": False}),
        ]):
            quantized, method = QUANTIZATIONS[kind]
            config = {"model_type": "falcon", "num_attention_heads": HEADS, **numbers}
            if method:
                config["quantization_config"] = method
            tensors = {"transformer.word_embeddings.weight": whole_numbers(VOCAB, HIDDEN),
                       "transformer.ln_f.weight": whole_numbers(HIDDEN),
                       at + "ln_attn.bias": whole_numbers(HIDDEN),
                       at + "input_layernorm.bias": whole_numbers(HIDDEN)}
            shapes, computed = self.fused(at, "self_attention.query_key_value", "self_attention.dense",
                                          groups, HEADS // groups)
            for name, out, inputs in shapes:
                tensors |= quantized(at + name, out, inputs)
            self.prove(tensors, config, "auto", computed, ["transformer.word_embeddings.weight"],
                       ["ln_f.weight", "ln_attn.bias", "layernorm.bias"])

    def test_gpt_neox_in_fp8(self):  # it is proved plain, with its biases, in test_proofs.py
        at = "gpt_neox.layers.0."
        for kind in ["fp8 by tensor", "fp8 by channel"]:
            quantized, method = QUANTIZATIONS[kind]
            tensors = {"gpt_neox.embed_in.weight": whole_numbers(VOCAB, HIDDEN),
                       "gpt_neox.final_layer_norm.weight": whole_numbers(HIDDEN)}
            shapes, computed = self.fused(at, "attention.query_key_value", "attention.dense", HEADS, 1)
            for name, out, inputs in shapes:
                tensors |= quantized(at + name, out, inputs)
            config = {"model_type": "gpt_neox", "num_attention_heads": HEADS,
                      "quantization_config": method}
            self.prove(tensors, config, "auto", computed, ["gpt_neox.embed_in.weight"], ["norm.weight"])

    def test_gpt2(self):
        x = RANDOM.integers(-1, 2, (3, HIDDEN)).astype("f8")
        width, vocab = HEADS * WIDTH, 37
        for prefix in ["", "transformer."]:
            at = prefix + "h.0."
            tensors = {prefix + "wte.weight": whole_numbers(vocab, HIDDEN),
                       prefix + "wpe.weight": whole_numbers(9, HIDDEN),
                       prefix + "ln_f.weight": whole_numbers(HIDDEN),
                       at + "ln_1.bias": whole_numbers(HIDDEN), at + "attn.bias": whole_numbers(1, 1, 3, 3)}
            for name, inputs, out in [("attn.c_attn", HIDDEN, 3 * width), ("attn.c_proj", width, HIDDEN),
                                      ("mlp.c_fc", HIDDEN, INTER), ("mlp.c_proj", INTER, HIDDEN)]:
                tensors[f"{at}{name}.weight"] = whole_numbers(inputs, out)
                tensors[f"{at}{name}.bias"] = whole_numbers(out)

            def attend(of, tp):
                fused = x @ of[at + "attn.c_attn.weight"] + of[at + "attn.c_attn.bias"]
                return attention(*np.split(fused, 3, 1), WIDTH) @ of[at + "attn.c_proj.weight"]

            def feed(of, tp):
                inner = relu(x @ of[at + "mlp.c_fc.weight"] + of[at + "mlp.c_fc.bias"])
                return inner @ of[at + "mlp.c_proj.weight"]

            config = {"model_type": "gpt2", "n_head": HEADS}
            self.prove(tensors, config, "auto", [attend, feed], [prefix + "wte.weight"],
                       ["wpe.weight", "ln_f.weight", "ln_1.bias", ".0.attn.bias", "c_proj.bias"],
                       ["--set", "vocab_multiple=8"])
            # Without the padding, 37 words cannot be shared.
            run = self.run_tool("shard", self.dir / "model", "--tp", 2, "--plan", "auto", "--dry-run")
            self.assert_fails(run, 4, "wte.weight", "37", "--set vocab_multiple=2")

    def test_deepseek(self):
        x = RANDOM.integers(-1, 2, (3, HIDDEN)).astype("f8")
        latent, rope = 16, 8
        at = "model.layers.0."
        kinds = [kind for kind in QUANTIZATIONS if not kind.startswith(("GPTQ", "AWQ"))]
        for kind in kinds:
            quantized, method = QUANTIZATIONS[kind]
            tensors = {"model.embed_tokens.weight": whole_numbers(VOCAB, HIDDEN),
                       "lm_head.weight": whole_numbers(VOCAB, HIDDEN),
                       "model.norm.weight": whole_numbers(HIDDEN),
                       at + "self_attn.q_a_layernorm.weight": whole_numbers(latent),
                       at + "self_attn.kv_a_layernorm.weight": whole_numbers(latent),
                       at + "mlp.gate.weight": whole_numbers(2, HIDDEN),
                       at + "mlp.gate.e_score_correction_bias": whole_numbers(2),
                       at + "eh_proj.weight": whole_numbers(HIDDEN, 2 * HIDDEN)}
            experts = ["mlp.experts.0.", "mlp.experts.1.", "mlp.shared_experts."]
            shapes = [("self_attn.q_a_proj", latent, HIDDEN),
                      ("self_attn.q_b_proj", HEADS * WIDTH, latent),
                      ("self_attn.kv_a_proj_with_mqa", latent + rope, HIDDEN),
                      ("self_attn.kv_b_proj", HEADS * 2 * WIDTH, latent),
                      ("self_attn.o_proj", HIDDEN, HEADS * WIDTH)]
            for expert in experts:
                shapes += [(expert + "gate_proj", INTER, HIDDEN), (expert + "up_proj", INTER, HIDDEN),
                           (expert + "down_proj", HIDDEN, INTER)]
            for name, out, inputs in shapes:
                tensors |= quantized(at + name, out, inputs)
            small = RANDOM.integers(-1, 2, (3, latent)).astype("f8")

            def attend(of, tp):
                q = linear(of, at + "self_attn.q_b_proj", small)
                kv = linear(of, at + "self_attn.kv_b_proj", small).reshape(len(x), -1, 2, WIDTH)
                k, v = (kv[:, :, part].reshape(len(x), -1) for part in range(2))
                return attention(q, k, v, WIDTH) @ weight(of, at + "self_attn.o_proj").T

            config = {"model_type": "deepseek_v3", "num_attention_heads": HEADS}
            if method:
                config["quantization_config"] = method
            with self.subTest(kind=kind):
                self.prove(tensors, config, "auto",
                           [attend, *(self.feed_of(at + expert, x) for expert in experts)],
                           ["model.embed_tokens.weight", "lm_head.weight"],
                           ["norm.weight", "q_a_proj.weight", "kv_a_proj_with_mqa.weight", "gate.weight",
                            "correction_bias", "eh_proj.weight"])

    def test_gpt_oss(self):
        hidden, inter, experts, kv_heads = 32, 256, 2, 2
        x = RANDOM.integers(-1, 2, (3, hidden)).astype("f8")
        at = "model.layers.0."
        fp4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])

        def unpacked(of, name):
            blocks, scales = of[name + "_blocks"], of[name + "_scales"]
            numbers = np.stack([fp4[blocks & 15], fp4[blocks >> 4]], -1)
            numbers = numbers.reshape(*blocks.shape[:-1], 32) * 2.0 ** (scales[..., None].astype(int) - 127)
            return numbers.reshape(*blocks.shape[:2], -1)

        for is_quantized in [False, True]:
            mlp = at + "mlp.experts."
            tensors = {"model.embed_tokens.weight": whole_numbers(VOCAB, hidden),
                       "lm_head.weight": whole_numbers(VOCAB, hidden),
                       "model.norm.weight": whole_numbers(hidden),
                       at + "mlp.router.weight": whole_numbers(experts, hidden),
                       at + "mlp.router.bias": whole_numbers(experts),
                       at + "self_attn.sinks": whole_numbers(HEADS),
                       mlp + "gate_up_proj_bias": whole_numbers(experts, 2 * inter),
                       mlp + "down_proj_bias": whole_numbers(experts, hidden)}
            for name, out, inputs in [("q", HEADS * WIDTH, hidden), ("k", kv_heads * WIDTH, hidden),
                                      ("v", kv_heads * WIDTH, hidden), ("o", hidden, HEADS * WIDTH)]:
                tensors |= plain(f"{at}self_attn.{name}_proj", out, inputs)
                tensors[f"{at}self_attn.{name}_proj.bias"] = whole_numbers(out)
            for name, out, inputs in [("gate_up_proj", 2 * inter, hidden), ("down_proj", hidden, inter)]:
                if is_quantized:
                    shape = experts, out, inputs // 32
                    tensors[f"{mlp}{name}_blocks"] = RANDOM.integers(0, 256, (*shape, 16)).astype("u1")
                    tensors[f"{mlp}{name}_scales"] = RANDOM.integers(127, 129, shape).astype("u1")
                else:
                    tensors[mlp + name] = whole_numbers(experts, inputs, out)

            def attend(of, tp):
                q, k, v = (linear(of, f"{at}self_attn.{name}_proj", x) for name in "qkv")
                q = q * np.repeat(of[at + "self_attn.sinks"], WIDTH)  # something for each head
                return attention(q, k, v, WIDTH) @ weight(of, at + "self_attn.o_proj").T

            def feed(of, tp):
                if is_quantized:
                    up, down = (unpacked(of, mlp + name) for name in ["gate_up_proj", "down_proj"])
                else:
                    up, down = (of[mlp + name].transpose(0, 2, 1) for name in ["gate_up_proj", "down_proj"])
                inner = np.einsum("ti,eoi->eto", x, up) + of[mlp + "gate_up_proj_bias"][:, None]
                inner = relu(inner[..., ::2]) * inner[..., 1::2]
                return np.einsum("eto,eio->eti", inner, down)

            config = {"model_type": "gpt_oss", "num_attention_heads": HEADS,
                      "num_key_value_heads": kv_heads, "intermediate_size": inter}
            if is_quantized:
                config["quantization_config"] = {"quant_method": "mxfp4"}
            self.prove(tensors, config, "auto", [attend, feed],
                       ["model.embed_tokens.weight", "lm_head.weight"],
                       ["norm.weight", "router.weight", "router.bias", "o_proj.bias", "down_proj_bias"])


if __name__ == "__main__":
    unittest.main()
