"""Where the releases of Transformers differ in their words. Found out from the release itself, not from its number."""

import inspect
import io
from typing import Any

import torch
from transformers import DynamicCache, GPT2LMHeadModel, StaticCache
from transformers.cache_utils import DynamicLayer, StaticLayer

Cache = Any  # of Transformers; what its layers have differs between releases

# 5.19 calls it `cache`; before, and as a deprecated name after, it is `past_key_values`.
CACHE_ARGUMENT = "cache" if "cache" in inspect.signature(GPT2LMHeadModel.forward).parameters else "past_key_values"
# 4.57: crop(n) keeps n columns for n >= 0. 5.x: crop(-n) removes n columns; a positive n has 4.57's meaning,
# deprecated, and is refused later.
CROP_KEEPS = "max_length" in inspect.signature(DynamicLayer.crop).parameters
STATIC_CROPS = hasattr(StaticLayer, "crop")
LEGACY_TUPLES = hasattr(DynamicCache, "to_legacy_cache")


def crop_argument(length: int, past: int) -> int:
    """What `cache.crop` is to be given so that `length` of `past` columns stay.

    A negative length is "remove more than there is", which both conventions can say. More than there is can only be
    said in the convention of 4.57: in the other, "remove minus two" is a positive number, which has another meaning.
    """
    if length < 0 or (not CROP_KEEPS and length <= past):
        return length - past
    return length


def gather(cache: Cache, rows: list[int]) -> None:
    """Beam search's `reorder_cache` where the number of rows stays, and for a static cache, which has nothing else."""
    index = torch.tensor(rows, dtype=torch.long)
    if isinstance(cache, StaticCache) or len(rows) == batch_of(cache):
        cache.reorder_cache(index)
    else:
        cache.batch_select_indices(index)


def batch_of(cache: Cache) -> int:
    keys = cache.layers[0].keys
    return 0 if keys is None else len(keys)


def store(cache: Cache) -> Any:
    """A cache outside of the cache: the legacy tuples of 4.57 for a dynamic one, else what `torch.save` makes of it."""
    if LEGACY_TUPLES and isinstance(cache, DynamicCache):
        return cache.to_legacy_cache()  # type: ignore[attr-defined, unused-ignore]
    file = io.BytesIO()
    torch.save(cache, file)
    return file.getvalue()


def restore(stored: Any) -> Cache:
    if isinstance(stored, tuple):
        return DynamicCache.from_legacy_cache(stored)  # type: ignore[attr-defined, unused-ignore]
    return torch.load(io.BytesIO(stored), weights_only=False)
