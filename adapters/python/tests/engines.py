"""An engine that counts columns, and fails on order: what the tests of `serve` put behind it."""

import copy
from typing import Any

import numpy as np

from kvproof_adapter import Answer, Forward, Generate, Refused, Unsupported, serve

__all__ = ["Answer", "Counting", "Forward", "Generate", "Refused", "Smallest", "Unsupported", "np", "serve"]

ODD = {
    90: ValueError("no 90"),
    91: Refused("token_range", "91 it is"),
    92: Unsupported("no 92"),
    93: KeyError("ninety-three"),
}


class Smallest:
    """The least that an adapter has. A cache is a list of its columns."""

    name, version, kinds = "smallest", "0", ("dynamic",)

    def open(self, folder: str) -> str:
        return folder

    def new(self, model: str, kind: str, capacity: int | None, window: int | None) -> list[Any]:
        return []

    def forward(self, model: str, cache: list[Any] | None, call: Forward) -> Answer:
        if cache is not None:
            cache += call.input_ids[0]
        return Answer(logits=np.zeros((1, 1, 2), np.float32))

    def length(self, cache: list[Any]) -> int:
        return len(cache)


class Counting(Smallest):
    """All ops. Tokens from 90 on go wrong in one way each, after the cache has been written to."""

    name, version, kinds = "counting", "1.5", ("dynamic", "static", "static_sliding_window")
    refusals = (ValueError,)

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def open(self, folder: str) -> str:
        if folder == "nowhere":
            raise ValueError("nothing lies there")
        return folder

    def new(self, model: str, kind: str, capacity: int | None, window: int | None) -> list[Any]:
        self.asked.append(("new", model, kind, capacity, window))
        if capacity == 90:
            raise ValueError("no 90")
        return []

    def forward(self, model: str, cache: list[Any] | None, call: Forward) -> Answer:
        self.asked.append(("forward", model, cache, call))
        super().forward(model, cache, call)
        for row in call.input_ids:
            for token in row:
                if token in ODD:
                    raise ODD[token]
        return Answer(logits=np.full((1, 1, 2), len(cache or []), np.float32))

    def clone(self, cache: list[Any]) -> list[Any]:
        if len(cache) == 9:
            raise ValueError("not of nine")
        return copy.copy(cache)

    def crop(self, cache: list[Any], length: int) -> None:
        if length > len(cache):
            raise ValueError("beyond the end")
        del cache[length:]

    def gather(self, cache: list[Any], rows: list[int]) -> list[Any]:
        return [*cache, *rows]

    def reset(self, cache: list[Any]) -> None:
        cache.clear()

    def drop(self, cache: list[Any]) -> None:
        self.asked.append(("drop", list(cache)))

    def read(self, cache: list[Any], layer: int) -> Answer:
        return Answer(keys=np.full((1, 1, 1, 1), layer, np.float64), values=np.zeros((1, 1, 1, 1), np.float16))

    def save(self, cache: list[Any]) -> tuple[Any, ...]:
        return tuple(cache)

    def load(self, stored: tuple[Any, ...]) -> list[Any]:
        if len(stored) == 9:
            raise ValueError("not of nine")
        return list(stored)

    def generate(self, model: str, call: Generate) -> Answer:
        self.asked.append(("generate", model, call))
        return Answer(ids=[[] for _ in call.input_ids] if call.max_new_tokens == 1 else [[5, 6]])

    def begin(self, case: str, run: dict[str, Any]) -> None:
        self.asked.append(("begin", case, run))
