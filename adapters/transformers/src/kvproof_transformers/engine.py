"""GPT-2 of Hugging Face Transformers, op by op.

An adapter translates and never checks: every list goes to the engine as it came, and what that makes of it is judged.
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from transformers import DynamicCache, GenerationConfig, GPT2LMHeadModel, StaticCache

from kvproof_adapter import Answer, Forward, Generate, Unsupported

from . import dialect
from .clock import Clock, EngineRefusal
from .dialect import Cache

Model = Any  # GPT2LMHeadModel, whose `generate` is typed for a protocol that it does not meet


@dataclass
class Held:
    """A cache and the model it was made for: of an empty one the engine knows neither heads nor their size."""

    kind: str
    cache: Cache
    model: Model


class Transformers:
    """One attention implementation, float32, on the CPU."""

    name = "transformers"
    kinds = ("dynamic", "static")
    refusals = (EngineRefusal,)
    deterministic = True
    threads = True

    def __init__(self, attention: str, clock: Clock) -> None:
        self.attention = attention
        self.version = f"{transformers.__version__} {attention}"
        self.clock = clock

    def open(self, folder: str) -> Model:
        with self.clock.inside():
            model = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32, attn_implementation=self.attention)
            # A trace says when a row ends. GPT-2's own default, token 50256, must not say it too.
            model.generation_config = GenerationConfig()
            return model.eval()

    def new(self, model: Model, kind: str, capacity: int | None, window: int | None) -> Held:
        return Held(kind, self._new_cache(model, kind, capacity), model)

    def _new_cache(self, model: Model, kind: str, capacity: int | None) -> Cache:
        with self.clock.inside():
            if kind == "dynamic":
                return DynamicCache(config=model.config)
            assert capacity is not None  # `serve` sees to it
            return StaticCache(config=model.config, max_cache_len=capacity)

    def forward(self, model: Model, cache: Held | None, call: Forward) -> Answer:
        """`use_cache` goes as it is: if true and without a cache, the engine makes one of its own for the call."""
        with self.clock.inside(), torch.no_grad():
            arguments: dict[str, Any] = {"input_ids": _tensor(call.input_ids), "use_cache": call.use_cache}
            if cache is not None:
                arguments[dialect.CACHE_ARGUMENT] = cache.cache
            if call.attention_mask is not None:
                arguments["attention_mask"] = _tensor(call.attention_mask)
            if call.position_ids is not None:
                arguments["position_ids"] = _tensor(call.position_ids)
            if call.logits == "none":
                model.base_model(**arguments)
                return Answer()
            logits = model(**arguments, logits_to_keep=1 if call.logits == "last" else 0).logits
            return Answer(logits=logits.numpy())

    def length(self, cache: Held) -> int:
        with self.clock.inside():
            return int(cache.cache.get_seq_length())

    def clone(self, cache: Held) -> Held:
        with self.clock.inside():
            return Held(cache.kind, copy.deepcopy(cache.cache), cache.model)

    def crop(self, cache: Held, length: int) -> None:
        if cache.kind == "static" and not dialect.STATIC_CROPS:
            raise Unsupported(f"a StaticCache of Transformers {transformers.__version__} has no crop")
        with self.clock.inside():
            cache.cache.crop(dialect.crop_argument(length, int(cache.cache.get_seq_length())))

    def gather(self, cache: Held, rows: list[int]) -> None:
        with self.clock.inside():
            dialect.gather(cache.cache, rows)

    def drop(self, cache: Held) -> None:
        """Freeing the tensors is the engine's work, too."""
        with self.clock.inside():
            del cache.cache

    def reset(self, cache: Held) -> None:
        with self.clock.inside():
            cache.cache.reset()

    def read(self, cache: Held, layer: int) -> Answer:
        if layer < 0:
            raise Unsupported("cache.layers is a list of Python, which counts a negative layer from its end")
        with self.clock.inside():
            held = cache.cache.layers[layer]
            length = int(held.get_seq_length())
        if held.keys is None or length == 0:  # nothing: Transformers says None, or keeps the rows of what was there
            config = cache.model.config
            nothing = torch.empty(0, config.n_head, 0, config.n_embd // config.n_head).numpy()
            return Answer(keys=nothing, values=nothing)
        return Answer(keys=held.keys[:, :, :length].numpy(), values=held.values[:, :, :length].numpy())

    def save(self, cache: Held) -> tuple[str, Any, Model]:
        with self.clock.inside():
            return cache.kind, dialect.store(cache.cache), cache.model

    def load(self, stored: tuple[str, Any, Model]) -> Held:
        kind, data, model = stored
        with self.clock.inside():
            return Held(kind, dialect.restore(data), model)

    def generate(self, model: Model, call: Generate) -> Answer:
        with self.clock.inside(), torch.no_grad():
            prompt = _tensor(call.input_ids)
            arguments: dict[str, Any] = {"use_cache": call.kind is not None}
            if call.attention_mask is not None:
                arguments["attention_mask"] = _tensor(call.attention_mask)
            if call.kind == "static":
                arguments["past_key_values"] = self._new_cache(model, call.kind, call.capacity)
            ids = model.generate(
                prompt, do_sample=False, max_new_tokens=call.max_new_tokens, eos_token_id=call.eos_token_id, **arguments
            )
        return Answer(ids=ids[:, prompt.shape[1] :].numpy())


def _tensor(rows: list[list[int]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.long)
