"""Random models, of which NumPy cuts each by itself: what the tool cuts is the same, and joined back, or refused.

Layouts, quantizations, numbers of heads and of ranks are drawn, and what config.json says: some of it lies. A model is
right if its config says the truth and NumPy can cut it; nearly all of these have to be accepted. Environment:
MODELS, how many models (150), and SEED.
"""

import collections
import json
import os
import shutil
import unittest

import numpy as np

from common import INVALID, REFUSED, ToolTest, read_safetensors, write_safetensors

COUNT, SEED = int(os.environ.get("MODELS", 150)), int(os.environ.get("SEED", 50))
NUMPY = {"F32": "f4", "BF16": "u2", "F16": "f2", "I32": "i4", "I8": "i1", "U8": "u1", "F8_E4M3": "u1"}


class NoSuchModel(Exception):
    """The format has no such tensors: another model is drawn."""


class Impossible(Exception):
    """NumPy cannot cut the model for so many ranks."""


# How an axis is cut: functions of its extent and the number of ranks that return the indexes of each rank.

def heads(count, may_repeat=False):
    def cut(extent, tp):
        if extent % count:
            raise Impossible
        units = np.split(np.arange(extent), count)
        if count % tp == 0:
            return [np.concatenate(units[rank * count // tp:(rank + 1) * count // tp]) for rank in range(tp)]
        if may_repeat and tp % count == 0:
            return [units[rank * count // tp] for rank in range(tp)]
        raise Impossible
    return cut


def elements(extent, tp):
    return heads(extent)(extent, tp)


def sections(*parts):
    """Parts one after the other, as (elements, number of heads, whether ranks may have the same ones)."""
    def cut(extent, tp):
        assert extent == sum(size for size, *_ in parts)
        begins = np.cumsum([0, *(size for size, *_ in parts)])
        each = [[begin + indexes for indexes in heads(*units)(size, tp)] for begin, (size, *units) in zip(begins, parts)]
        return [np.concatenate(shares) for shares in zip(*each)]
    return cut


def fused(*parts):
    """Parts one after the other, all with heads of one width, as (number of heads, whether ranks may have the same)."""
    def cut(extent, tp):
        total = sum(count for count, _ in parts)
        if extent % total:
            raise Impossible
        return sections(*((count * (extent // total), count, may) for count, may in parts))(extent, tp)
    return cut


def halves(extent, tp):
    """Gate and up."""
    if extent % 2:
        raise Impossible
    return sections(*[(extent // 2, extent // 2)] * 2)(extent, tp)


def grouped(groups, *parts):
    """Groups, each of such parts; parts of a group are shared by the ranks that have the group."""
    def cut(extent, tp):
        if extent % groups:
            raise Impossible
        within = np.split(np.arange(extent), groups)
        if groups % tp == 0:
            return [np.concatenate(within[rank * groups // tp:(rank + 1) * groups // tp]) for rank in range(tp)]
        if tp % groups:
            raise Impossible
        return [group[indexes] for group in within for indexes in fused(*parts)(extent // groups, tp // groups)]
    return cut


def blocks_of(ranks, extent, block):
    """The blocks of each rank, which has to have whole ones."""
    found = []
    for indexes in ranks:
        runs = np.split(indexes, np.flatnonzero(np.diff(indexes) != 1) + 1)
        if any(run[0] % block or (run[-1] + 1) % block and run[-1] + 1 != extent for run in runs):
            raise Impossible
        found.append(np.concatenate([np.arange(run[0] // block, run[-1] // block + 1) for run in runs]))
    return found


class Model:
    """Tensors, for each how it is cut, and what config.json says."""

    def __init__(self, random):
        self.random, self.tensors, self.cuts, self.config = random, {}, {}, {}
        self.plan, self.lie, self.more = "auto", None, []

    def add(self, name, dtype, shape, axis=None, cut=None):
        """A tensor that is cut along an axis; every rank has the whole, if there is none."""
        data = np.frombuffer(self.random.bytes(int(np.prod(shape)) * np.dtype(NUMPY[dtype]).itemsize), NUMPY[dtype])
        self.tensors[name] = dtype, data.reshape(shape)
        self.cuts[name] = cut and (axis, lambda tp: cut(shape[axis], tp))

    def add_scales(self, name, dtype, shape, axis, cut, extent, block):
        """Scales of blocks of an axis."""
        self.add(name, dtype, shape)
        self.cuts[name] = axis, lambda tp: blocks_of(cut(extent, tp), extent, block)

    def linear(self, name, out, inputs, out_cut=None, in_cut=None, bias=False):
        """A weight [out, in] in the model's quantization, cut along one of its axes."""
        axis, cut = (0, out_cut) if out_cut else (1, in_cut)
        kind = self.quantization
        if bias:
            self.add(f"{name}.bias", "F32", (out,), 0, out_cut)
        if kind in ["gptq", "awq"]:
            return self.packed(name, out, inputs, out_cut, in_cut)
        weight = "F32" if kind == "plain" else "I8" if kind.startswith("int8") else "F8_E4M3"
        self.add(f"{name}.weight", weight, (out, inputs), axis, cut)
        if kind == "plain":
            return
        if self.has_static:
            self.add(f"{name}.input_scale", "F32", (1,))
            if kind.startswith("int8"):
                self.add(f"{name}.input_zero_point", "I8", (1,))
        if kind.endswith("tensor"):
            self.add(f"{name}.{self.scale}", "F32", self.single)
        elif kind.endswith("channel"):
            shape = (out, 1) if self.single else (out,)
            self.add(f"{name}.weight_scale", "F32", shape, 0, out_cut)
        else:
            shape = -(-out // self.block), -(-inputs // self.block)
            extent = (out, inputs)[axis]
            self.add_scales(f"{name}.{self.scale}", "F32", shape, axis, cut, extent, self.block)
            if shape[axis] == 1:
                self.cuts[f"{name}.{self.scale}"] = None

    def packed(self, name, out, inputs, out_cut, in_cut):
        """GPTQ and AWQ: words of 8 numbers, along one axis or the other."""
        group = inputs if self.group == -1 else self.group
        if inputs % group or inputs % 8 or out % 8:
            raise NoSuchModel
        axis, cut = (1, out_cut) if out_cut else (0, in_cut)
        shape = (inputs // 8, out) if self.quantization == "gptq" else (inputs, out // 8)
        self.add(f"{name}.qweight", "I32", shape, axis, cut)
        groups = inputs // group
        if self.quantization == "gptq":
            self.add(f"{name}.g_idx", "I32", (inputs,), 0, in_cut)
        for leaf, dtype, width in [("qzeros", "I32", out // 8), ("scales", "F16", out)]:
            if out_cut:
                self.add(f"{name}.{leaf}", dtype, (groups, width), 1, out_cut)
            elif self.quantization == "gptq" or groups == 1:
                self.add(f"{name}.{leaf}", dtype, (groups, width))
            else:
                self.add_scales(f"{name}.{leaf}", dtype, (groups, width), 0, in_cut, inputs, group)

    def quantize(self, kinds):
        """Draws a quantization, and says in the config which it is."""
        pick = self.random.choice
        self.quantization = kind = str(pick(kinds))
        self.block, self.group = int(pick([4, 8, 16])), int(pick([8, 16, -1]))
        self.has_static = bool(pick([True, False]))
        self.single = [(), (1,), (1, 1)][pick(3)] if kind.endswith("tensor") else bool(pick([True, False]))
        self.scale = "weight_scale"
        compressed = {"quant_method": "compressed-tensors",
                      "format": "int-quantized" if kind.startswith("int8") else "float-quantized"}
        if kind == "plain":
            return
        if kind in ["gptq", "awq"]:
            method = {"quant_method": kind, "bits": 4, "group_size": self.group}
        elif kind.startswith("int8"):
            method = compressed
        elif kind == "fp8 tensor":
            method = {"quant_method": "fp8", "weight_block_size": None}
            self.scale = str(pick(["weight_scale", "weight_scale_inv"]))
        elif kind == "fp8 channel":
            method = [{"quant_method": "fbgemm_fp8"}, compressed][pick(2)]
        elif pick(2):
            method, self.scale = {"quant_method": "fp8", "weight_block_size": [self.block] * 2}, "weight_scale_inv"
        else:
            weights = {"strategy": "block", "block_structure": [self.block] * 2}
            method = {**compressed, "config_groups": {"group_0": {"weights": weights}}}
        self.config["quantization_config"] = method

    def parts_of(self, tp):
        """The tensors of each rank, by NumPy."""
        ranks = [{} for _ in range(tp)]
        for name, (dtype, array) in self.tensors.items():
            if self.cuts[name] is None:
                parts = [array] * tp
            else:
                axis, cut = self.cuts[name]
                parts = [np.take(array, indexes, axis) for indexes in cut(tp)]
            for rank, part in zip(ranks, parts):
                rank[name] = dtype, part.shape, part.tobytes()
        return ranks


ALL = ["plain", "plain", "fp8 tensor", "fp8 channel", "fp8 block", "int8 tensor", "int8 channel", "gptq", "awq"]


def shape_of_attention(model):
    """Draws heads of queries and of keys, and their width."""
    pick = model.random.choice
    kv = int(pick([1, 2, 3, 4, 8]))
    words = model.quantization in ["gptq", "awq"]
    width = int(pick([8, 16] if words else [2, 4, 6, 8]))
    hidden = int(pick([16, 32, 48]))
    return kv * int(pick([1, 2, 4])), kv, width, hidden


def embeddings(model, names, hidden, words=48):
    for name in names:
        model.add(name, "F32", (words, hidden), 0, elements)


def llama(model):
    pick = model.random.choice
    model.quantize(ALL)
    q, kv, width, hidden = shape_of_attention(model)
    inner, has_bias = int(pick([32, 48, 64, 96])), bool(pick(2))
    kind = str(pick(["llama", "mistral", "qwen2", "qwen3_moe", "mixtral", "gemma3"]))
    prefix = "language_model.model." if kind == "gemma3" else "model."
    embeddings(model, [prefix + "embed_tokens.weight", *(["lm_head.weight"] if kind != "gemma3" else [])], hidden)
    model.add(prefix + "norm.weight", "F32", (hidden,))
    for layer in range(2):
        at = f"{prefix}layers.{layer}."
        model.add(at + "input_layernorm.weight", "F32", (hidden,))
        model.linear(at + "self_attn.q_proj", q * width, hidden, heads(q), bias=has_bias)
        for name in "kv":
            model.linear(f"{at}self_attn.{name}_proj", kv * width, hidden, heads(kv, True), bias=has_bias)
        model.linear(at + "self_attn.o_proj", hidden, q * width, None, heads(q))
        if model.quantization.startswith("fp8") and pick(2):
            for name in ["k_scale", "v_scale"]:
                model.add(at + "self_attn." + name, "F32", (1,))
        experts = {"mixtral": ["block_sparse_moe.experts.0.", "block_sparse_moe.experts.1."],
                   "qwen3_moe": ["mlp.experts.0.", "mlp.experts.7."]}.get(kind, ["mlp."])
        gate, up, down = ["w1", "w3", "w2"] if kind == "mixtral" else ["gate_proj", "up_proj", "down_proj"]
        if len(experts) > 1:
            model.add(at + ("block_sparse_moe.gate.weight" if kind == "mixtral" else "mlp.gate.weight"),
                      "F32", (2, hidden))
        for expert in experts:
            model.linear(at + expert + gate, inner, hidden, elements)
            model.linear(at + expert + up, inner, hidden, elements)
            model.linear(at + expert + down, hidden, inner, None, elements)
    numbers = {"num_attention_heads": q, "num_key_value_heads": kv}
    if pick(2):
        numbers["head_dim"] = width
    if kind == "llama" and q == kv and pick(2):
        del numbers["num_key_value_heads"]
    if kind == "gemma3":
        model.config |= {"model_type": kind, "text_config": {"model_type": "gemma3_text", **numbers}}
        model.numbers = model.config["text_config"]
    else:
        model.config |= {"model_type": kind, **numbers}
        model.numbers = model.config
    lie_of_heads(model, q, kv, width)


def lie_of_heads(model, q, kv, width):
    """Numbers of heads that the tensors contradict."""
    if model.random.random() > 0.3:
        return
    pick = model.random.choice
    wrong = [count for count in [1, 2, 3, 4, 6, 8, 12, 16] if count not in [q, kv]]
    lies = [{"num_key_value_heads": int(pick(wrong))}, {"num_attention_heads": int(pick(wrong)), "num_key_value_heads": kv},
            {"num_key_value_heads": str(pick(["four", "2", "1.5"]))}, {"num_attention_heads": -q},
            {"head_dim": width * 2}, {"head_dim": width + 1},
            {"num_attention_heads": 2 * q, "num_key_value_heads": 2 * kv, "head_dim": width}]
    if q != kv and "num_key_value_heads" in model.numbers:
        lies.append({"num_key_value_heads": None})
    model.lie = lies[pick(len(lies))]
    model.numbers |= model.lie


def phi(model):
    pick = model.random.choice
    model.quantize(ALL)
    q, kv, width, hidden = shape_of_attention(model)
    inner, at = int(pick([32, 48, 64])), "model.layers.0."
    embeddings(model, ["model.embed_tokens.weight", "lm_head.weight"], hidden)
    model.add("model.norm.weight", "F32", (hidden,))
    model.linear(at + "self_attn.qkv_proj", (q + 2 * kv) * width, hidden, fused((q, False), (kv, True), (kv, True)))
    model.linear(at + "self_attn.o_proj", hidden, q * width, None, heads(q))
    model.linear(at + "mlp.gate_up_proj", 2 * inner, hidden, halves)
    model.linear(at + "mlp.down_proj", hidden, inner, None, elements)
    model.config |= {"model_type": "phi3", "num_attention_heads": q, "num_key_value_heads": kv}
    model.numbers = model.config
    lie_of_heads(model, q, kv, width)


def neox(model):
    model.quantize(["plain", "fp8 tensor", "fp8 channel"])
    q, _, width, hidden = shape_of_attention(model)
    at = "gpt_neox.layers.0."
    embeddings(model, ["gpt_neox.embed_in.weight", "embed_out.weight"], hidden)
    model.add("gpt_neox.final_layer_norm.weight", "F32", (hidden,))
    model.linear(at + "attention.query_key_value", 3 * q * width, hidden, heads(q), bias=True)
    model.linear(at + "attention.dense", hidden, q * width, None, heads(q), bias=True)
    model.linear(at + "mlp.dense_h_to_4h", 48, hidden, elements, bias=True)
    model.linear(at + "mlp.dense_4h_to_h", hidden, 48, None, elements, bias=True)
    model.config |= {"model_type": "gpt_neox", "num_attention_heads": q}


def falcon(model):
    pick = model.random.choice
    model.quantize(["plain", "fp8 tensor", "fp8 channel", "int8 channel"])
    q, kv, width, hidden = shape_of_attention(model)
    form = int(pick(3))
    kv = [1, kv, q][form]
    at = "transformer.h.0."
    embeddings(model, ["transformer.word_embeddings.weight"], hidden)
    model.add("transformer.ln_f.weight", "F32", (hidden,))
    model.add(at + "input_layernorm.weight", "F32", (hidden,))
    cut = grouped(kv, (q // kv, False), (1, True), (1, True))
    model.linear(at + "self_attention.query_key_value", (q + 2 * kv) * width, hidden, cut)
    model.linear(at + "self_attention.dense", hidden, q * width, None, heads(q))
    model.linear(at + "mlp.dense_h_to_4h", 48, hidden, elements)
    model.linear(at + "mlp.dense_4h_to_h", hidden, 48, None, elements)
    forms = [{"multi_query": True}, {"new_decoder_architecture": True, "num_kv_heads": kv}, {"multi_query": False}]
    model.config |= {"model_type": "falcon", "num_attention_heads": q, **forms[form]}
    if pick(4) == 0 and form == 1:
        wrong = [count for count in [1, 2, 3, 4, 6, 8, 16] if count != kv]
        model.lie = {"num_kv_heads": int(pick(wrong))}
        model.config |= model.lie


def deepseek(model):
    pick = model.random.choice
    model.quantize(["plain", "fp8 tensor", "fp8 block"])
    count, nope, rope, value, hidden, latent = int(pick([2, 4, 6, 8])), 4, int(pick([2, 4])), int(pick([4, 6])), 32, 16
    inner, at = int(pick([32, 48])), "model.layers.0."
    embeddings(model, ["model.embed_tokens.weight", "lm_head.weight"], hidden)
    model.add("model.norm.weight", "F32", (hidden,))
    model.linear(at + "self_attn.q_a_proj", latent, hidden)
    model.linear(at + "self_attn.kv_a_proj_with_mqa", latent + rope, hidden)
    for name in ["q_a_proj", "kv_a_proj_with_mqa"]:
        for leaf in [leaf for leaf in model.cuts if leaf.startswith(f"{at}self_attn.{name}.")]:
            model.cuts[leaf] = None
    model.linear(at + "self_attn.q_b_proj", count * (nope + rope), latent, heads(count))
    model.linear(at + "self_attn.kv_b_proj", count * (nope + value), latent, heads(count))
    model.linear(at + "self_attn.o_proj", hidden, count * value, None, heads(count))
    for expert in ["mlp.experts.0.", "mlp.shared_experts."]:
        for name in ["gate_proj", "up_proj"]:
            model.linear(at + expert + name, inner, hidden, elements)
        model.linear(at + expert + "down_proj", hidden, inner, None, elements)
    model.config |= {"model_type": "deepseek_v3", "num_attention_heads": count, "qk_nope_head_dim": nope,
                     "qk_rope_head_dim": rope, "v_head_dim": value}
    if pick(4) == 0:
        lies = [{"num_attention_heads": 2 * count}, {"num_attention_heads": count // 2}, {"v_head_dim": 2 * value}]
        model.lie = lies[pick(3)]
        model.config |= model.lie


def gpt_oss(model):
    pick = model.random.choice
    model.quantize(["plain"])
    q, kv, width, hidden = shape_of_attention(model)
    blocks, at, is_packed = int(pick([2, 3, 4, 6, 8])), "model.layers.0.", bool(pick(2))
    inner = blocks * 32
    embeddings(model, ["model.embed_tokens.weight", "lm_head.weight"], hidden)
    model.add("model.norm.weight", "F32", (hidden,))
    model.add(at + "self_attn.sinks", "F32", (q,), 0, heads(q))
    model.add(at + "mlp.router.weight", "F32", (2, hidden))
    model.linear(at + "self_attn.q_proj", q * width, hidden, heads(q), bias=True)
    for name in "kv":
        model.linear(f"{at}self_attn.{name}_proj", kv * width, hidden, heads(kv, True), bias=True)
    model.linear(at + "self_attn.o_proj", hidden, q * width, None, heads(q), bias=True)
    mlp = at + "mlp.experts."
    model.add(mlp + "gate_up_proj_bias", "F32", (2, 2 * inner), 1, heads(inner))
    model.add(mlp + "down_proj_bias", "F32", (2, hidden))
    if is_packed:
        model.add(mlp + "gate_up_proj_blocks", "U8", (2, 2 * inner, 2, 16), 1, heads(inner))
        model.add(mlp + "gate_up_proj_scales", "U8", (2, 2 * inner, 2), 1, heads(inner))
        model.add(mlp + "down_proj_blocks", "U8", (2, hidden, blocks, 16), 2, elements)
        model.add(mlp + "down_proj_scales", "U8", (2, hidden, blocks), 2, elements)
        model.config["quantization_config"] = {"quant_method": "mxfp4"}
    else:
        model.add(mlp + "gate_up_proj", "F32", (2, hidden, 2 * inner), 2, heads(inner))
        model.add(mlp + "down_proj", "F32", (2, inner, hidden), 1, elements)
    model.config |= {"model_type": "gpt_oss", "num_attention_heads": q, "num_key_value_heads": kv,
                     "intermediate_size": inner, "head_dim": width}
    model.numbers = model.config
    lie_of_heads(model, q, kv, width)


def gpt2(model):
    model.quantize(["plain"])
    q, _, width, hidden = shape_of_attention(model)
    embeddings(model, ["wte.weight"], hidden)
    model.add("wpe.weight", "F32", (8, hidden))
    model.add("ln_f.weight", "F32", (hidden,))
    model.add("h.0.ln_1.weight", "F32", (hidden,))
    cut = fused((q, False), (q, False), (q, False))
    for name, inputs, out, axis, by in [("attn.c_attn", hidden, 3 * q * width, 1, cut),
                                        ("attn.c_proj", q * width, hidden, 0, heads(q)),
                                        ("mlp.c_fc", hidden, 48, 1, elements), ("mlp.c_proj", 48, hidden, 0, elements)]:
        model.add(f"h.0.{name}.weight", "F32", (inputs, out), axis, by)
        model.add(f"h.0.{name}.bias", "F32", (out,), 0, by if axis == 1 else None)
    model.config |= {"model_type": "gpt2", "n_head": q}


def own(model):
    """A plan of one's own: any parts, in any layout, of tensors with any number of axes."""
    pick = model.random.choice
    plan = ["[tensors]"]
    for index in range(3):
        axis, rank = int(pick(3)), 3
        names = ["q", "k", "v", "z"][:int(pick([2, 3, 4]))]
        counts = [int(pick([1, 2, 4, 6, 8])) for _ in names]
        groups = int(pick([1, 1, 2, 4]))
        counts = [count * groups for count in counts] if groups > 1 else counts
        may_repeat = bool(pick(2))
        parts = [(count // groups, may_repeat and name in "kv") for name, count in zip(names, counts)]
        width = int(pick([1, 2, 3]))
        shape = [int(size) for size in pick([1, 2, 3], rank)]
        shape[axis] = sum(counts) * width
        layout = f"layout = 'grouped', groups = {groups}, " if groups > 1 else ""
        kv = "replicate_kv = true, " if may_repeat and {"k", "v"} & set(names) else ""
        text = ",".join(f"{name}:{count}" for name, count in zip(names, counts))
        plan.append(f"'t{index}' = {{ rule = 'packed', axis = {axis}, {layout}{kv}parts = '{text}' }}")
        model.add(f"t{index}", str(pick(list(NUMPY))), tuple(shape), axis, grouped(groups, *parts))
    experts = int(pick([4, 8]))
    plan.append(f"'stack.experts' = {{ rule = 'by_index', by = 'experts', of = {experts} }}")
    model.add("stack.experts", "F32", (experts, 3, 2), 0, elements)
    state, groups, count = 3, int(pick([1, 2, 4])), int(pick([4, 8]))
    plan.append(f"in = {{ rule = 'packed', parts = 'x:{count}x2,B:{groups}x{state} replicate,"
                f"C:{groups}x{state} replicate,dt:{count}x1' }}")
    parts = [(count * 2, count), (groups * state, groups, True), (groups * state, groups, True), (count, count)]
    model.add("in.weight", "F32", (sum(size for size, *_ in parts), 2), 0, sections(*parts))
    model.plan = "\n".join(plan) + "\n"


LAYOUTS = [llama, llama, llama, phi, neox, falcon, deepseek, gpt_oss, gpt2, own]


def lie_of_quantization(model):
    """A quantization that the tensors contradict."""
    method = model.config.get("quantization_config")
    if model.lie or not method or model.random.random() > 0.25:
        return
    lies = [{"quant_method": "gptq" if method["quant_method"] != "gptq" else "awq"}, {"quant_method": "bitsandbytes"},
            {"quant_method": 8}]
    if method.get("weight_block_size"):
        lies += [{"weight_block_size": [2 * size for size in method["weight_block_size"]]},
                 {"weight_block_size": None}, {"weight_block_size": "128"}, {"weight_block_size": [8.5, 8]}]
    if method.get("group_size", -1) > 0 and method["quant_method"] == "awq":
        lies += [{"group_size": 2 * method["group_size"]}, {"group_size": 0}, {"group_size": "8"}]
    model.lie = lies[model.random.choice(len(lies))]
    method |= model.lie


def draw(random):
    """A model, of which layout it is, and for how many ranks."""
    while True:
        layout = LAYOUTS[random.choice(len(LAYOUTS))]
        model, tp = Model(random), int(random.choice([1, 2, 2, 2, 3, 4, 4, 4, 6, 8, 16]))
        try:
            layout(model)
        except NoSuchModel:
            continue
        lie_of_quantization(model)
        return model, layout, tp


class RandomModels(ToolTest):
    def test_each_is_cut_as_numpy_cuts_it_or_refused(self):
        counts, refusals = collections.Counter(), collections.Counter()
        for number in range(COUNT):
            model, layout, tp = draw(np.random.default_rng([SEED, number]))
            with self.subTest(number=number, layout=layout.__name__, tp=tp, lie=model.lie):
                expected = self.expected(model, tp)
                outcome, message = self.outcome(model, tp, expected)
                kind = "lying" if model.lie else "impossible" if expected is None else "right"
                counts[kind, outcome] += 1
                if (kind, outcome) == ("right", "refused"):
                    refusals[message] += 1
        for key, count in sorted(counts.items()):
            print(f"{count:6}  {', '.join(key)}")
        accepted, refused = counts["right", "equal"], counts["right", "refused"]
        self.assertGreater(accepted, COUNT // 5)
        self.assertGreaterEqual(accepted, 0.95 * (accepted + refused), refusals.most_common(5))

    def outcome(self, model, tp, expected):
        """'equal' or 'refused', and what the tool said; anything else fails."""
        for path in self.dir.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        whole = {name: (dtype, array.shape, array.tobytes()) for name, (dtype, array) in model.tensors.items()}
        source = self.dir / "model"
        source.mkdir()
        write_safetensors(source / "model.safetensors", whole, {"format": "pt"})
        if model.config:
            (source / "config.json").write_text(json.dumps(model.config))
        plan = model.plan
        if plan != "auto":
            plan = self.dir / "plan.toml"
            plan.write_text(model.plan)
        run = self.run_tool("shard", source, "--tp", tp, "--plan", plan, "-o", self.out)
        if run.returncode != 0:
            self.assertIn(run.returncode, [INVALID, REFUSED], run.stderr)
            self.assertFalse(self.out.exists())
            return "refused", run.stderr
        self.assertIsNotNone(expected, "cut, though NumPy cannot")
        for rank, tensors in enumerate(expected):
            found = read_safetensors(self.out / f"rank-{rank}/model.safetensors")[0]
            self.assertEqual(list(found), list(tensors))
            for name, tensor in tensors.items():
                self.assertEqual(found[name], tensor, f"rank {rank}: {name}")
        joined = self.dir / "joined.safetensors"
        self.assert_succeeds(self.run_tool("join", self.out, "-o", joined))
        self.assertEqual(joined.read_bytes(), (source / "model.safetensors").read_bytes())
        return "equal", ""

    def expected(self, model, tp):
        try:
            return model.parts_of(tp)
        except Impossible:
            return None


if __name__ == "__main__":
    unittest.main()
