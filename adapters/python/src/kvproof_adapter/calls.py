"""What an engine is asked, and what it answers."""

from dataclasses import dataclass
from typing import Any

Rows = list[list[int]]
"""Integers of a batch as the caller wrote them, a list per row; ragged or empty too: wrong calls are asked too."""


@dataclass(frozen=True)
class Forward:
    """Feeds T new columns. Nothing here is checked: refusing what is wrong is the engine's to do."""

    input_ids: Rows  # [B][T]
    attention_mask: Rows | None  # [B][P + T], P columns being in the cache already
    position_ids: Rows | None  # [B][T]
    use_cache: bool  # False: answer as if the columns were appended, and leave the cache as it was
    logits: str  # "all", "last" (the last column of every row) or "none"


@dataclass(frozen=True)
class Generate:
    """Greedy ids behind a prompt; kind None = without a cache."""

    input_ids: Rows  # [B][T]
    attention_mask: Rows | None  # [B][T]
    max_new_tokens: int
    eos_token_id: int | None
    kind: str | None
    capacity: int | None
    window: int | None


@dataclass(frozen=True)
class Answer:
    """Arrays, or anything that `numpy.asarray` takes. Floats stay in their precision: float16, float32 or float64."""

    logits: Any = None  # [B, T or 1, vocab_size]
    keys: Any = None  # [B, H, S, D], oldest column first
    values: Any = None  # [B, H, S, D]
    ids: Any = None  # [B, n], int64 or int32
