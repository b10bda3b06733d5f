"""Transformers' GPT-2, asked twice: one full pass over a history, and step by step through a DynamicCache."""

import copy
import math
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

from .portable import bells


def make(config, seed, folder, layout="plain"):
    """Writes config.json and model.safetensors; weights ending in the residual stream are smaller, as GPT-2 has it."""
    config = GPT2Config(**config)
    model = GPT2LMHeadModel(config).to(config.dtype or torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mean, deviation = _distribution(config, name, parameter)
            values = mean + deviation * bells(seed, name, parameter.numel())
            parameter.copy_(torch.from_numpy(values).reshape(parameter.shape))
    model.save_pretrained(folder, max_shard_size="12KB" if layout == "sharded" else "5GB")
    (Path(folder) / "generation_config.json").unlink()
    if layout == "legacy":
        _as_first_published(model, Path(folder) / "model.safetensors")


def _as_first_published(model, path):
    """Names without prefix, and each block's causal mask beside its weights."""
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()}
    length = model.config.n_positions
    for layer in range(model.config.n_layer):
        tensors[f"h.{layer}.attn.bias"] = torch.ones(length, length).tril()[None, None]
        tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, path, metadata={"format": "pt"})


def _distribution(config, name, parameter):
    """(mean, deviation). Biases and norms are random too: at zero and one they would hide faults."""
    if parameter.ndim == 1:
        return float(name.endswith(".weight")), 0.1
    shrunk = math.sqrt(2 * config.n_layer) if name.endswith("c_proj.weight") else 1.0
    return 0.0, config.initializer_range / shrunk


def load(folder, dtype):
    """The model in this precision, eager. Upcasting attention to float32 is left out: it would lose digits."""
    config = GPT2Config.from_pretrained(folder, reorder_and_upcast_attn=False)
    return GPT2LMHeadModel.from_pretrained(folder, config=config, dtype=dtype, attn_implementation="eager").eval()


def additive(seen, dtype):
    """4-D mask of what each query sees. One that sees nothing sees itself: its logits do not count, but stay finite."""
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


class StepByStep:
    """The caches of a trace as Transformers keeps them; a window is a banded mask over one that keeps everything."""

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
    out = model.generate(
        _tensor(ids), attention_mask=mask, max_new_tokens=step["max_new_tokens"], do_sample=False, **cache
    )
    return out[:, mask.shape[1] :].numpy()
