"""The contract in small: refusals, lengths and what each column could see. No numbers; nothing of the project's C++."""

from dataclasses import dataclass, field, replace

import numpy as np

STATIC = ("static", "static_sliding_window")


def _nothing(dtype, rank=2):
    return field(default_factory=lambda: np.zeros((0,) * rank, dtype))


@dataclass(frozen=True)
class Cache:
    """A history. Arrays are replaced, never written, so that a clone or a saved copy is the same object."""

    kind: str = "dynamic"
    capacity: int | None = None
    window: int | None = None
    ids: np.ndarray = _nothing(np.int64)  # [B, P]
    positions: np.ndarray = _nothing(np.int64)  # [B, P]
    bits: np.ndarray = _nothing(bool)  # [B, P], the mask as it is now
    seen: np.ndarray = _nothing(bool, 3)  # [B, P, P], what each query could see when it was fed
    gone: int = 0

    @property
    def length(self):
        return self.ids.shape[1]

    @property
    def window_in_force(self):
        return min(self.window, self.capacity) if self.window else None

    def empty(self):
        return Cache(self.kind, self.capacity, self.window)

    def append(self, ids, mask=None, positions=None):
        """The history after these columns; an absent mask is all ones, absent positions count columns."""
        ids = np.array(ids, np.int64)
        old, total = self.length, self.length + ids.shape[1]
        bits = np.ones((len(ids), total), bool) if mask is None else np.array(mask, bool)
        default = np.broadcast_to(np.arange(old, total), ids.shape)
        positions = default if positions is None else np.array(positions, np.int64)
        seen = np.zeros((len(ids), total, total), bool)
        if old:
            seen[:, :old, :old] = self.seen
        seen[:, old:] = (bits[:, None, :] & self._band(total))[:, old:]
        window = self.window_in_force
        gone = max(self.gone, total - window) if window else 0
        return replace(
            self, ids=_join(self.ids, ids), positions=_join(self.positions, positions), bits=bits, seen=seen, gone=gone
        )

    def _band(self, total):
        distance = np.arange(total)[:, None] - np.arange(total)[None, :]
        return (distance >= 0) & (distance < (self.window_in_force or total))

    def crop(self, length):
        if length == 0:
            return self.empty()
        head = {name: getattr(self, name)[:, :length] for name in ("ids", "positions", "bits")}
        return replace(self, **head, seen=self.seen[:, :length, :length], gone=min(self.gone, length))

    def gather(self, rows):
        return replace(self, **{name: getattr(self, name)[rows] for name in ("ids", "positions", "bits", "seen")})


def _join(old, new):
    return np.concatenate([old, new], axis=1) if old.size else new


def positions_from_mask(mask):
    """Running sum - 1, clamped at 0: what generate uses."""
    return np.maximum(np.cumsum(np.array(mask, np.int64), axis=1) - 1, 0)


class State:
    """All caches and saved copies of a trace; `refusal` judges a step, `apply` carries out an accepted one."""

    def __init__(self, config):
        self.vocab_size, self.n_positions, self.n_layer = config["vocab_size"], config["n_positions"], config["n_layer"]
        self.caches, self.saved = {}, {}

    def refusal(self, step):
        """The first code that applies, or None. The checks run lazily: a later one may rely on an earlier."""
        for code, applies in getattr(self, f"_check_{step['op']}")(step):
            if applies:
                return code
        return None

    def target(self, step):
        """The cache a forward is about; the plain full pass has one of its own, gone after the call."""
        return Cache() if step["cache"] is None else self.caches[step["cache"]]

    def appended(self, step):
        """The history that a legal forward answers for, kept or not."""
        return self.target(step).append(step["input_ids"], step.get("attention_mask"), step.get("position_ids"))

    def apply(self, step):
        op, name = step["op"], step.get("cache")
        if op == "new":
            self.caches[name] = Cache(step["kind"], step.get("capacity"), step.get("window"))
        elif op == "forward" and name is not None and step.get("use_cache", True):
            self.caches[name] = self.appended(step)
        elif op == "clone":
            self.caches[name] = self.caches[step["from"]]
        elif op == "crop":
            self.caches[name] = self.caches[name].crop(step["length"])
        elif op == "gather":
            self.caches[name] = self.caches[name].gather(step["rows"])
        elif op == "reset":
            self.caches[name] = self.caches[name].empty()
        elif op == "drop":
            del self.caches[name]
        elif op == "save":
            self.saved[step["to"]] = self.caches[name]
        elif op == "load":
            self.caches[name] = self.saved[step["from"]]
        elif op == "length" and self.caches[name].length != step["expect"]:
            raise ValueError(f"length of {name}: found {step['expect']} recorded, expected {self.caches[name].length}")

    def _check_known(self, step):
        yield "unknown_cache", step["cache"] not in self.caches

    _check_reset = _check_drop = _check_length = _check_save = _check_known

    def _check_new(self, step):
        yield "cache_exists", step["cache"] in self.caches
        yield "bad_argument", not _kind_is_sound(step)

    def _check_clone(self, step):
        yield "unknown_cache", step["from"] not in self.caches
        yield "cache_exists", step["cache"] in self.caches

    def _check_load(self, step):
        yield "name_unknown", step["from"] not in self.saved

    def _check_read(self, step):
        yield from self._check_known(step)
        yield "layer_range", not 0 <= step["layer"] < self.n_layer

    def _check_crop(self, step):
        yield from self._check_known(step)
        cache, length = self.caches[step["cache"]], step["length"]
        yield "crop_range", not 0 <= length <= cache.length
        first_needed = max(length - (cache.window_in_force or 0) + 1, 0)
        yield "crop_evicted", 0 < length < cache.length and first_needed < min(cache.gone, length)

    def _check_gather(self, step):
        yield from self._check_known(step)
        cache, rows = self.caches[step["cache"]], step["rows"]
        held = len(cache.ids)
        yield "row_range", not rows or any(not 0 <= row < held for row in rows)
        yield "row_range", cache.kind in STATIC and len(rows) != held

    def _check_forward(self, step):
        yield "unknown_cache", step["cache"] is not None and step["cache"] not in self.caches
        yield "bad_argument", step.get("logits", "all") not in ("all", "last", "none")
        cache, positions = self.target(step), step.get("position_ids")
        yield from self._check_input(cache, step)
        total = cache.length + len(step["input_ids"][0])
        if positions is not None:
            yield "position_shape", any(len(row) != total - cache.length for row in positions)
            yield "position_range", any(not 0 <= item < self.n_positions for row in positions for item in row)
        yield "context_length", positions is None and total > self.n_positions
        yield "capacity", cache.kind == "static" and total > cache.capacity

    def _check_input(self, cache, step):
        ids, mask = step["input_ids"], step.get("attention_mask")
        yield "empty_input", not any(ids)
        others = [len(rows) for rows in (mask, step.get("position_ids")) if rows is not None]
        held = [len(cache.ids)] if cache.length else []
        yield "batch_mismatch", any(rows != len(ids) for rows in others + held) or len({len(row) for row in ids}) > 1
        yield "token_range", any(not 0 <= item < self.vocab_size for row in ids for item in row)
        total = cache.length + len(ids[0])
        if mask is not None:
            yield "mask_length", any(len(row) != total for row in mask)
            yield "mask_value", any(item not in (0, 1) for row in mask for item in row)
        past = True if mask is None else np.array(mask, bool)[:, : cache.length]
        yield "mask_revival", bool(cache.length) and bool(np.any(~cache.bits & past))

    def _check_generate(self, step):
        extra = step["max_new_tokens"] - 1
        kind_is_sound = _kind_is_sound(step) if "kind" in step else not {"capacity", "window"} & set(step)
        yield "bad_argument", extra < 0 or not kind_is_sound
        yield from self._check_input(Cache(), step)
        mask = step.get("attention_mask", np.ones_like(step["input_ids"]))
        yield "mask_value", any(row[-1] == 0 for row in mask)
        yield "context_length", positions_from_mask(mask).max() + extra >= self.n_positions
        yield "capacity", step.get("kind") == "static" and len(step["input_ids"][0]) + extra > step["capacity"]


def _kind_is_sound(step):
    """A known kind with just the sizes it needs, each at least 1."""
    wanted = {"dynamic": (), "static": ("capacity",), "static_sliding_window": ("capacity", "window")}.get(step["kind"])
    given = [name for name in ("capacity", "window") if name in step]
    return wanted == tuple(given) and all(step[name] >= 1 for name in given)
