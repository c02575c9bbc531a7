"""The ready plans, and plans for other layouts: what the ranks compute together is what the whole
model computes. In NumPy, on small made-up models of whole numbers, so that sums are exact."""

import unittest

import numpy as np

from proof import (
    HEAD_DIM, HEADS, HIDDEN, INTER, LAYERS, TP, VOCAB, ProofTest, attention, relu, whole_numbers)


class Proofs(ProofTest):
    def test_llama(self):
        for kv_heads in [1, 2, 8]:
            tensors = {"model.embed_tokens.weight": whole_numbers(VOCAB, HIDDEN),
                       "model.norm.weight": whole_numbers(HIDDEN),
                       "lm_head.weight": whole_numbers(VOCAB, HIDDEN)}
            for layer in range(LAYERS):
                at = f"model.layers.{layer}."
                rows = {"q": HEADS * HEAD_DIM, "k": kv_heads * HEAD_DIM, "v": kv_heads * HEAD_DIM}
                for name, count in rows.items():
                    tensors[f"{at}self_attn.{name}_proj.weight"] = whole_numbers(count, HIDDEN)
                    tensors[f"{at}self_attn.{name}_proj.bias"] = whole_numbers(count)
                tensors[at + "self_attn.o_proj.weight"] = whole_numbers(HIDDEN, rows["q"])
                tensors[at + "self_attn.q_norm.weight"] = whole_numbers(HEAD_DIM)
                tensors[at + "mlp.gate_proj.weight"] = whole_numbers(INTER, HIDDEN)
                tensors[at + "mlp.up_proj.weight"] = whole_numbers(INTER, HIDDEN)
                tensors[at + "mlp.down_proj.weight"] = whole_numbers(HIDDEN, INTER)
                tensors[at + "input_layernorm.weight"] = whole_numbers(HIDDEN)
                tensors[at + "post_attention_layernorm.weight"] = whole_numbers(HIDDEN)
            config = {"num_attention_heads": HEADS, "num_key_value_heads": kv_heads}
            if kv_heads == HEADS:
                config = {"num_attention_heads": HEADS, "model_type": "llama"}  # as older ones are
            x = whole_numbers(3, HIDDEN)

            def attend(of, at):
                q, k, v = (x @ of[f"{at}self_attn.{name}_proj.weight"].T
                           + of[f"{at}self_attn.{name}_proj.bias"] for name in "qkv")
                return attention(q, k, v) @ of[at + "self_attn.o_proj.weight"].T

            def feed(of, at):
                gate, up = (x @ of[f"{at}mlp.{name}_proj.weight"].T for name in ["gate", "up"])
                return relu(gate) * up @ of[at + "mlp.down_proj.weight"].T

            for tp in TP:
                with self.subTest(kv_heads=kv_heads, tp=tp):
                    ranks = self.shard(tensors, tp, "llama", config)
                    for layer in range(LAYERS):
                        at = f"model.layers.{layer}."
                        for compute in [attend, feed]:
                            self.assert_equal(sum(compute(rank, at) for rank in ranks),
                                              compute(tensors, at))
                        q = at + "self_attn.q_proj.weight"
                        self.assert_equal(np.hstack([x @ rank[q].T for rank in ranks]),
                                          x @ tensors[q].T)
                    logits = [x @ rank["lm_head.weight"].T for rank in ranks]
                    self.assert_equal(np.hstack(logits), x @ tensors["lm_head.weight"].T)
                    self.assert_replicated(ranks, tensors, "norm.weight")
                    self.assert_looked_up(ranks, tensors, "model.embed_tokens.weight")

    def test_gpt_neox(self):
        tensors = {"gpt_neox.embed_in.weight": whole_numbers(VOCAB, HIDDEN),
                   "gpt_neox.final_layer_norm.weight": whole_numbers(HIDDEN),
                   "embed_out.weight": whole_numbers(VOCAB, HIDDEN)}
        for layer in range(LAYERS):
            at = f"gpt_neox.layers.{layer}."
            width = HEADS * HEAD_DIM
            for name, rows, columns in [("attention.query_key_value", 3 * width, HIDDEN),
                                        ("attention.dense", HIDDEN, width),
                                        ("mlp.dense_h_to_4h", INTER, HIDDEN),
                                        ("mlp.dense_4h_to_h", HIDDEN, INTER)]:
                tensors[f"{at}{name}.weight"] = whole_numbers(rows, columns)
                tensors[f"{at}{name}.bias"] = whole_numbers(rows)
            tensors[at + "attention.bias"] = whole_numbers(1, 1, 5, 5)
            tensors[at + "attention.masked_bias"] = whole_numbers(1).reshape(())
            tensors[at + "attention.rotary_emb.inv_freq"] = whole_numbers(2)
            tensors[at + "input_layernorm.bias"] = whole_numbers(HIDDEN)
        x = whole_numbers(3, HIDDEN)

        def attend(of, at):
            fused = (x @ of[at + "attention.query_key_value.weight"].T
                     + of[at + "attention.query_key_value.bias"])
            q, k, v = np.moveaxis(fused.reshape(3, -1, 3, HEAD_DIM), 2, 0)
            return attention(*(part.reshape(3, -1) for part in (q, k, v))) @ (
                of[at + "attention.dense.weight"].T)

        def feed(of, at):
            inner = x @ of[at + "mlp.dense_h_to_4h.weight"].T + of[at + "mlp.dense_h_to_4h.bias"]
            return relu(inner) @ of[at + "mlp.dense_4h_to_h.weight"].T

        for tp in TP:
            with self.subTest(tp=tp):
                ranks = self.shard(tensors, tp, "gpt-neox", {"num_attention_heads": HEADS})
                for at in (f"gpt_neox.layers.{layer}." for layer in range(LAYERS)):
                    for compute in [attend, feed]:
                        self.assert_equal(sum(compute(rank, at) for rank in ranks),
                                          compute(tensors, at))
                logits = [x @ rank["embed_out.weight"].T for rank in ranks]
                self.assert_equal(np.hstack(logits), x @ tensors["embed_out.weight"].T)
                # Biases of what is summed over ranks are added once, by whoever sums.
                self.assert_replicated(ranks, tensors, "dense.bias", "4h_to_h.bias", "norm.weight",
                                       "attention.bias", "masked_bias", "inv_freq")
                self.assert_looked_up(ranks, tensors, "gpt_neox.embed_in.weight")

    def test_phi(self):
        for kv_heads in [1, 2, 8]:
            tensors = {"model.embed_tokens.weight": whole_numbers(VOCAB, HIDDEN),
                       "model.norm.weight": whole_numbers(HIDDEN),
                       "lm_head.weight": whole_numbers(VOCAB, HIDDEN)}
            for layer in range(LAYERS):
                at = f"model.layers.{layer}."
                rows = (HEADS + 2 * kv_heads) * HEAD_DIM
                tensors[at + "self_attn.qkv_proj.weight"] = whole_numbers(rows, HIDDEN)
                tensors[at + "self_attn.o_proj.weight"] = whole_numbers(HIDDEN, HEADS * HEAD_DIM)
                tensors[at + "mlp.gate_up_proj.weight"] = whole_numbers(2 * INTER, HIDDEN)
                tensors[at + "mlp.down_proj.weight"] = whole_numbers(HIDDEN, INTER)
                tensors[at + "input_layernorm.weight"] = whole_numbers(HIDDEN)
            config = {"num_attention_heads": HEADS, "num_key_value_heads": kv_heads}
            x = whole_numbers(3, HIDDEN)
            for tp in TP:
                kv_here = max(1, kv_heads // tp)

                def attend(of, at, heads, kv):
                    fused = x @ of[at + "self_attn.qkv_proj.weight"].T
                    ends = np.cumsum([heads * HEAD_DIM, kv * HEAD_DIM])
                    out = of[at + "self_attn.o_proj.weight"].T
                    return attention(*np.split(fused, ends, axis=1)) @ out

                def feed(of, at):
                    gate, up = np.split(x @ of[at + "mlp.gate_up_proj.weight"].T, 2, axis=1)
                    return relu(gate) * up @ of[at + "mlp.down_proj.weight"].T

                with self.subTest(kv_heads=kv_heads, tp=tp):
                    ranks = self.shard(tensors, tp, "phi", config)
                    for at in (f"model.layers.{layer}." for layer in range(LAYERS)):
                        self.assert_equal(
                            sum(attend(rank, at, HEADS // tp, kv_here) for rank in ranks),
                            attend(tensors, at, HEADS, kv_heads))
                        self.assert_equal(sum(feed(rank, at) for rank in ranks), feed(tensors, at))
                    logits = [x @ rank["lm_head.weight"].T for rank in ranks]
                    self.assert_equal(np.hstack(logits), x @ tensors["lm_head.weight"].T)
                    self.assert_replicated(ranks, tensors, "norm.weight")
                    self.assert_looked_up(ranks, tensors, "model.embed_tokens.weight")

    def test_grouped_queries(self):
        # As Falcon has it: a group is some q, one k and one v. Ranks may outnumber groups.
        heads, groups = 16, 4
        tensors = {"qkv.weight": whole_numbers((heads + 2 * groups) * HEAD_DIM, HIDDEN),
                   "dense.weight": whole_numbers(HIDDEN, heads * HEAD_DIM)}
        plan = self.own_plan(
            f"qkv = {{ rule = 'packed', parts = 'q:{heads},k:{groups},v:{groups}', "
            f"layout = 'grouped', replicate_kv = true }}\n"
            f"dense = {{ rule = 'rowwise', heads = {heads} }}\n")
        x = whole_numbers(3, HIDDEN)

        def attend(of, groups):
            fused = (x @ of["qkv.weight"].T).reshape(3, groups, -1, HEAD_DIM)
            q, k, v = fused[:, :, :-2], fused[:, :, -2:-1], fused[:, :, -1:]
            return attention(*(part.reshape(3, -1) for part in (q, k, v))) @ of["dense.weight"].T

        for tp in [*TP, 16]:
            with self.subTest(tp=tp):
                ranks = self.shard(tensors, tp, plan)
                self.assert_equal(sum(attend(rank, max(1, groups // tp)) for rank in ranks),
                                  attend(tensors, groups))

    def test_packed_in_blocks_of_heads(self):
        # As CodeGen has it: four blocks, each of q, v and k, in this order.
        heads, blocks = 16, 4
        tensors = {"qkv.weight": whole_numbers(3 * heads * HEAD_DIM, HIDDEN),
                   "out.weight": whole_numbers(HIDDEN, heads * HEAD_DIM)}
        plan = self.own_plan(
            f"qkv = {{ rule = 'packed', parts = 'q:{heads},v:{heads},k:{heads}', "
            f"layout = 'grouped', groups = {blocks}, head_dim = {HEAD_DIM} }}\n"
            f"out = {{ rule = 'rowwise', heads = {heads} }}\n")
        x = whole_numbers(3, HIDDEN)

        def attend(of, blocks):
            fused = (x @ of["qkv.weight"].T).reshape(3, blocks, 3, -1)
            q, v, k = (fused[:, :, part].reshape(3, -1) for part in range(3))
            return attention(q, k, v) @ of["out.weight"].T

        for tp in [*TP, 16]:
            with self.subTest(tp=tp):
                ranks = self.shard(tensors, tp, plan)
                self.assert_equal(sum(attend(rank, max(1, blocks // tp)) for rank in ranks),
                                  attend(tensors, blocks))

    def test_block_scales(self):
        # As DeepSeek has it: one scale for a block of the weight, in a tensor of its own.
        block = 4
        tensors = {}
        for name, rows, columns in [("up", 32, 24), ("down", 18, 32)]:
            tensors[name + ".weight"] = whole_numbers(rows, columns)
            scales = -(-rows // block), -(-columns // block)
            tensors[name + ".weight_scale_inv"] = whole_numbers(*scales)
        tensors["channel.weight"] = whole_numbers(32, 24)
        tensors["channel.scale"] = whole_numbers(32, 1)
        tensors["tensor.weight"] = whole_numbers(32, 24)
        tensors["tensor.scale"] = whole_numbers(1)
        plan = self.own_plan(
            f"'*.weight_scale_inv' = {{ scale_of = 'weight', block = [{block}, {block}] }}\n"
            "'*.scale' = { scale_of = 'weight' }\n"
            "up = 'colwise'\ndown = 'rowwise'\nchannel = 'colwise'\ntensor = 'colwise'\n")
        x = whole_numbers(3, 24)

        def scaled(of, name):
            weight, scale = of[name + ".weight"], of[name + ".weight_scale_inv"]
            scale = np.repeat(np.repeat(scale, block, axis=0), block, axis=1)
            return weight * scale[:weight.shape[0], :weight.shape[1]]

        def feed(of):
            return relu(x @ scaled(of, "up").T) @ scaled(of, "down").T

        for tp in TP:
            with self.subTest(tp=tp):
                ranks = self.shard(tensors, tp, plan)
                self.assert_equal(sum(map(feed, ranks)), feed(tensors))
                for name in ["channel", "tensor"]:
                    def product(of):
                        return x @ (of[name + ".weight"] * of[name + ".scale"]).T
                    self.assert_equal(np.hstack([product(rank) for rank in ranks]), product(tensors))

    def test_experts_and_weights_the_other_way_round(self):
        # Weights [experts, out, in], and [in, out] as GPT-2's Conv1D has them.
        tensors = {"up.weight": whole_numbers(3, 16, 24), "down.weight": whole_numbers(3, 24, 16),
                   "fc.weight": whole_numbers(24, 16), "fc.bias": whole_numbers(16),
                   "proj.weight": whole_numbers(16, 24), "proj.bias": whole_numbers(24)}
        plan = self.own_plan(
            "up = { rule = 'colwise', axis = 1 }\ndown = { rule = 'rowwise', axis = -1 }\n"
            "fc = { rule = 'colwise', axis = -1 }\n'proj.bias' = 'replicate'\n"
            "proj = { rule = 'rowwise', axis = 0 }\n")
        x = whole_numbers(3, 24)

        def experts(of):
            inner = relu(np.einsum("ti,eoi->eto", x, of["up.weight"]))
            return np.einsum("eto,eio->eti", inner, of["down.weight"])

        def feed(of):
            return relu(x @ of["fc.weight"] + of["fc.bias"]) @ of["proj.weight"]

        for tp in TP:
            with self.subTest(tp=tp):
                ranks = self.shard(tensors, tp, plan)
                for compute in [experts, feed]:
                    self.assert_equal(sum(map(compute, ranks)), compute(tensors))


if __name__ == "__main__":
    unittest.main()
