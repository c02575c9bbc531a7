"""What the proofs share: small made-up models of whole numbers, so that sums are exact, and what ranks
compute with their parts."""

import json

import numpy as np
from safetensors.numpy import load_file, save_file

from common import ToolTest

TP = [1, 2, 4, 8]
HIDDEN, HEADS, HEAD_DIM, INTER, VOCAB, LAYERS = 24, 8, 4, 32, 40, 2
RANDOM = np.random.default_rng(1)


def whole_numbers(*shape):
    return RANDOM.integers(-4, 5, shape).astype("<f8")


def attention(q, k, v, width=HEAD_DIM):
    """What heads give: [tokens, heads * width], from q of many heads and k and v of fewer. The
    softmax is left out, so that everything stays exact; what it would be taken of is multiplied."""
    q, k, v = (x.reshape(len(x), -1, width) for x in (q, k, v))
    shared = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, shared, axis=1), np.repeat(v, shared, axis=1)
    scores = np.einsum("ihd,jhd->hij", q, k)
    return np.einsum("hij,jhd->ihd", scores, v).reshape(len(q), -1)


def relu(x):
    return np.maximum(x, 0)


class ProofTest(ToolTest):
    def shard(self, tensors, tp, plan, config=None, *more):
        """The tensors of each rank, once all is well and joined again."""
        source = self.dir / "model"
        source.mkdir(exist_ok=True)
        save_file(tensors, source / "model.safetensors", {"format": "np"})
        if config is not None:
            (source / "config.json").write_text(json.dumps(config))
        out = self.dir / f"tp{tp}"
        run = self.run_tool("shard", source, "--tp", tp, "--plan", plan, "-o", out, "--force", *more)
        self.assert_succeeds(run)
        joined = self.dir / f"joined{tp}.safetensors"
        self.assert_succeeds(self.run_tool("join", out, "-o", joined, "--force"))
        self.assertEqual(joined.read_bytes(), (source / "model.safetensors").read_bytes())
        return [load_file(out / f"rank-{rank}/model.safetensors") for rank in range(tp)]

    def own_plan(self, text):
        plan = self.dir / "plan.toml"
        plan.write_text("[tensors]\n" + text)
        return plan

    def assert_equal(self, found, expected):
        np.testing.assert_array_equal(found, expected)

    def assert_replicated(self, ranks, tensors, *endings):
        for name in (name for name in tensors if name.endswith(endings)):
            for rank in ranks:
                self.assert_equal(rank[name], tensors[name])

    def assert_looked_up(self, ranks, tensors, name):
        """Embeddings that are cut by the vocabulary: a token that a rank does not have adds zeros."""
        tokens = RANDOM.integers(0, len(tensors[name]), 9)
        rows, first = 0, 0
        for rank in ranks:
            here = (first <= tokens) & (tokens < first + len(rank[name]))
            rows = rows + np.where(here[:, None], rank[name][np.where(here, tokens - first, 0)], 0)
            first += len(rank[name])
        self.assert_equal(rows, tensors[name][tokens])
