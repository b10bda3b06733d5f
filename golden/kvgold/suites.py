"""The project's own goldens: which folder, which weights, which traces. Everything follows from the numbers here."""

import shutil
from pathlib import Path

from . import gpt2, player, random_trace, scenes
from .portable import Random

HOME = Path(__file__).parent.parent  # golden/

FIVE_HEADS = {"n_embd": 40, "n_head": 5, "n_layer": 3, "n_positions": 32, "vocab_size": 37, "initializer_range": 0.15}
LIVELY = {"n_embd": 32, "n_head": 4, "n_layer": 3, "n_positions": 28, "vocab_size": 31, "initializer_range": 0.2}
LIVELY |= {"tie_word_embeddings": False}
SHARDED = {"n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 28, "vocab_size": 31, "initializer_range": 0.2}
SHARDED |= {"activation_function": "gelu_fast", "tie_word_embeddings": False, "dtype": "float16"}
LEGACY = {"n_embd": 20, "n_head": 2, "n_layer": 2, "n_positions": 16, "vocab_size": 19, "initializer_range": 0.2}
LEGACY |= {"activation_function": "tanh", "scale_attn_by_inverse_layer_idx": True}
SPECIAL = {"bos_token_id": 0, "eos_token_id": 1}


def make(name, out, say):
    """Makes one suite in `out`/`name`."""
    folder = Path(out) / name
    folder.mkdir(parents=True, exist_ok=True)
    for trace_name, trace in SUITES[name](folder):
        path = folder / f"{trace_name}.golden.safetensors"
        played = player.record(player.Models(folder), f"{name}/{trace_name}", trace, path)
        say(folder, trace_name, played)


def _seed(folder):
    """The source text's example in double, on the weights that came with it."""
    for file in ("config.json", "model.safetensors"):
        shutil.copy(HOME / "seed" / file, folder)
    yield "seed-float64", scenes.source_text()


def _five_heads(folder):
    """The one with everything: more heads than rows, three layers, GPT-2's own settings."""
    gpt2.make(FIVE_HEADS | SPECIAL, 21, folder)
    config = player.Models(folder).config
    yield from _random(config, 21)
    for name, start, rows, more in (
        ("dynamic", {}, [2, 0, 0, 1], 6),
        ("static", {"kind": "static", "capacity": 12}, [2, 2, 0], 3),
        ("sliding", {"kind": "static_sliding_window", "capacity": 9, "window": 4}, [1, 2, 0], 7),
    ):
        yield f"keys-values-{name}", scenes.keys_and_values(start, rows, more, config)
    for window, capacity in ((1, 6), (2, 20), (5, 20), (5, 5), (30, 40), (9, 3)):
        yield f"window-{window}-of-{capacity}", scenes.windows(window, capacity, config)
    yield "refusals", scenes.refusals(config)
    yield "first-applies", scenes.first_applies(config)


def _random(config, seed):
    for index in range(3):
        yield f"trace{index:02}", random_trace.make(config, seed, index)


def _lively(folder):
    """An untied head, so that greedy ids vary. The same prompts for every way to cache, to be compared across files."""
    gpt2.make(LIVELY | SPECIAL, 25, folder)
    models = player.Models(folder)
    prompts, mask, eos, ids = _clear_prompts(models)
    yield "ten-tokens", scenes.ten_tokens(prompts[-1], ids[-1][:10])
    for kind in (None, "dynamic", "static", "static_sliding_window"):
        name = {None: "none", "static_sliding_window": "sliding"}.get(kind, kind)
        yield f"generate-{name}", scenes.generations(kind, prompts, mask, eos, models.config)


def _clear_prompts(models):
    """The first ragged prompts whose ids are clear up to n_positions, and an eos that ends each row at another step."""
    for attempt in range(100):
        prompts = Random(attempt, "prompts").ints((3, 5), 0, models.config["vocab_size"] - 1)
        mask = [[0] * pad + [1] * (5 - pad) for pad in (3, 1, 0)]
        step = {"op": "generate", "input_ids": prompts, "attention_mask": mask, "max_new_tokens": 24}
        try:
            ids = player.greedy(models.double, step).tolist()
        except player.Doubt:
            continue
        for eos in ids[-1][3:10]:
            if len({row[:10].index(eos) for row in ids if eos in row[:10]}) == 3:
                return prompts, mask, eos, ids
    raise player.Doubt("no prompts with clear greedy ids: choose another seed for the weights")


def _sharded(folder):
    """Weights in several files, in half precision, with a head of their own."""
    gpt2.make(SHARDED | SPECIAL, 22, folder, layout="sharded")
    yield from _random(player.Models(folder).config, 22)


def _legacy(folder):
    """The names of the first published GPT-2: no prefix, and the causal mask stored as if it were a weight."""
    gpt2.make(LEGACY | SPECIAL, 23, folder, layout="legacy")
    yield from _random(player.Models(folder).config, 23)


SUITES = {"seed": _seed, "five-heads": _five_heads, "lively": _lively, "sharded": _sharded, "legacy": _legacy}
