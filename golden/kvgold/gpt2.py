"""Transformers' GPT-2, asked twice: one full pass over a history, and step by step through a DynamicCache."""

import copy
from pathlib import Path

import numpy as np
import torch
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

from .portable import bells


def make(config, seed, folder):
    """Writes config.json and model.safetensors. Biases and norms are random too: at zero and one they would hide faults."""
    config = GPT2Config(**config)
    model = GPT2LMHeadModel(config).to(config.dtype or torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = bells(seed, name, parameter.numel()) * config.initializer_range
            is_scale = name.endswith(".weight") and parameter.ndim == 1
            parameter.copy_(torch.from_numpy(values + is_scale).reshape(parameter.shape))
    model.save_pretrained(folder)
    (Path(folder) / "generation_config.json").unlink()


def load(folder, dtype):
    """The model in this precision, eager. Upcasting attention to float32 is the same sums, so in double it is left out."""
    config = GPT2Config.from_pretrained(folder, reorder_and_upcast_attn=False)
    return GPT2LMHeadModel.from_pretrained(folder, config=config, dtype=dtype, attn_implementation="eager").eval()


def additive(seen, dtype):
    """4-D mask of what each query sees. A query that sees nothing sees itself: its logits are not compared, but finite."""
    seen = torch.from_numpy(seen)
    own = torch.eye(seen.shape[-1], dtype=torch.bool)[-seen.shape[1] :]
    seen = seen | (own & ~seen.any(-1, keepdim=True))
    return torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)[:, None]


@torch.no_grad()
def full_pass(model, history):
    """(logits [B, P, V], DynamicCache) of a whole history, from nothing but its tokens."""
    out = model(
        input_ids=torch.from_numpy(np.array(history.ids)),
        position_ids=torch.from_numpy(np.array(history.positions)),
        attention_mask=additive(history.seen, model.dtype),
        past_key_values=DynamicCache(),
    )
    return out.logits.numpy(), out.past_key_values


def layer_of(cache, layer):
    """(K, V) of a DynamicCache's layer, [B, H, P, D]."""
    return cache.layers[layer].keys.numpy(), cache.layers[layer].values.numpy()


class StepByStep:
    """The caches of a trace as Transformers keeps them; a window is a banded mask over a cache that keeps everything."""

    def __init__(self, model):
        self.model, self.caches, self.saved = model, {}, {}

    def apply(self, step, length):
        """Carries out an accepted step other than forward; `length` is the cache's, before the step."""
        op, name = step["op"], step.get("cache")
        if op in ("new", "reset") or (op == "crop" and step["length"] == 0):
            self.caches[name] = DynamicCache()
        elif op == "clone":
            self.caches[name] = copy.deepcopy(self.caches[step["from"]])
        elif op == "crop" and step["length"] < length:
            self.caches[name].crop(step["length"] - length)
        elif op == "gather":
            self.caches[name].batch_select_indices(torch.tensor(step["rows"]))
        elif op == "drop":
            del self.caches[name]
        elif op == "save":
            self.saved[step["to"]] = copy.deepcopy(self.caches[name])
        elif op == "load":
            self.caches[name] = copy.deepcopy(self.saved[step["from"]])

    @torch.no_grad()
    def forward(self, step, history):
        """Logits [B, T, V]. Without a window Transformers builds the mask itself, from the caller's two dimensions."""
        kept = step["cache"] is not None and step.get("use_cache", True)
        cache = DynamicCache() if step["cache"] is None else self.caches[step["cache"]]
        new = len(step["input_ids"][0])
        mask = _tensor(step.get("attention_mask"))
        if history.window:
            mask = additive(history.seen[:, -new:], self.model.dtype)
        return self.model(
            input_ids=_tensor(step["input_ids"]),
            attention_mask=mask,
            position_ids=_tensor(step.get("position_ids")),
            past_key_values=cache if kept else copy.deepcopy(cache),
        ).logits.numpy()


def _tensor(rows):
    return None if rows is None else torch.tensor(rows)


def generate(model, step):
    """Greedy ids [B, n] of Transformers' own loop. After its eos a row is filled with it, as the contract says."""
    eos = step.get("eos_token_id")
    settings = model.generation_config
    settings.eos_token_id, settings.pad_token_id = eos, 0 if eos is None else eos
    settings.bos_token_id = None
    kind = step.get("kind")
    cache = {"use_cache": False} if kind is None else {"use_cache": True, "cache_implementation": kind}
    ids, mask = step["input_ids"], step.get("attention_mask")
    mask = torch.ones_like(_tensor(ids)) if mask is None else _tensor(mask)
    out = model.generate(_tensor(ids), attention_mask=mask, max_new_tokens=step["max_new_tokens"], do_sample=False, **cache)
    return out[:, mask.shape[1] :].numpy()
