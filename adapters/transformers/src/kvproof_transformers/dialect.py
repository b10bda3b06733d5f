"""Where the releases of Transformers differ in their words. Found out from the release itself, not from its number."""

import copy
import inspect
import io
from typing import Any

import torch
from transformers import Cache, DynamicCache, GPT2LMHeadModel
from transformers.cache_utils import DynamicLayer, StaticLayer

# 5.19 calls it `cache`; before, and as a deprecated name after, it is `past_key_values`.
CACHE_ARGUMENT = "cache" if "cache" in inspect.signature(GPT2LMHeadModel.forward).parameters else "past_key_values"
# 4.57: crop(n) keeps n columns for n >= 0. 5.x: crop(-n) removes n columns; a positive n is 4.57's meaning, deprecated, then refused.
CROP_KEEPS = "max_length" in inspect.signature(DynamicLayer.crop).parameters
STATIC_CROPS = hasattr(StaticLayer, "crop")
LEGACY_TUPLES = hasattr(DynamicCache, "to_legacy_cache")


def crop_argument(length: int, past: int) -> int:
    """What `cache.crop` is to be given so that `length` of `past` columns stay.

    A negative length is "remove more than there is", which both conventions can say. More than there is can only be said in the
    convention of 4.57: in the other, "remove minus two" is a positive number, which has another meaning.
    """
    if length < 0 or (not CROP_KEEPS and length <= past):
        return length - past
    return length


def store(cache: Cache) -> Any:
    """A cache outside of the cache: the legacy tuples of 4.57 if it is a dynamic one, otherwise what `torch.save` makes of it."""
    if LEGACY_TUPLES and isinstance(cache, DynamicCache):
        return cache.to_legacy_cache()
    file = io.BytesIO()
    torch.save(cache, file)
    return file.getvalue()


def restore(stored: Any) -> Cache:
    if isinstance(stored, tuple):
        return DynamicCache.from_legacy_cache(stored)
    return torch.load(io.BytesIO(stored), weights_only=False)


def copy_of(cache: Cache) -> Cache:
    return copy.deepcopy(cache)
