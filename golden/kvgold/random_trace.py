"""Random traces: every op of the contract but generate, and each refusal code once in three traces of one seed."""

import numpy as np

from . import refused
from .contract import STATIC, Cache, State, positions_from_mask
from .portable import Random

LONGEST = 24  # columns: longer histories cost time and find nothing new
OPS = {
    "forward": 44,
    "plain": 6,
    "new": 7,
    "clone": 8,
    "crop": 8,
    "gather": 7,
    "read": 8,
    "save": 5,
    "load": 4,
    "reset": 3,
    "drop": 2,
}


class Generator:
    """Keeps the contract's state beside the trace, so that it knows which calls are legal and which code applies."""

    def __init__(self, config, seed, index):
        self.config = config
        self.random = Random(seed, f"trace{index:02}")
        self.state = State(config)
        self.trace, self.made, self.broken = [], 0, []
        codes = Random(seed, "codes")
        self.codes = sorted(refused.BUILDERS, key=lambda _: codes.next())[index % 3 :: 3]

    def make(self, steps):
        """About `steps` steps, the refusals spread evenly; at the end one more forward on every cache alive."""
        self.op_new()
        every = max(steps // (len(self.codes) + 1), 1)
        while len(self.trace) < steps:
            if self.codes and len(self.trace) // every > len(self.broken):
                self._refused(self.codes.pop())
            else:
                getattr(self, f"op_{self.random.weighted(OPS)}")()
        for name in list(self.state.caches):
            self.op_forward(name)
        return self.trace

    def emit(self, step):
        """Adds an accepted step; what the contract would refuse is a fault of this generator."""
        if code := self.state.refusal(step):
            raise AssertionError(f"generator made a step refused as {code}: {step}")
        self.state.apply(step)
        self.trace.append(step)

    def _refused(self, code):
        """A call refused with this code, and what shows that nothing moved."""
        step = refused.BUILDERS[code](self)
        if (found := self.state.refusal(step)) != code:
            raise AssertionError(f"step is refused as {found}, expected {code}: {step}")
        self.trace.append(step | {"error": code})
        self.broken.append(code)
        self.op_length()
        if self.random.chance(50):
            self.op_forward()

    def name(self):
        """A cache alive; there is always one."""
        if not self.state.caches:
            self.op_new()
        return self.random.choice(self.state.caches)

    def fresh(self):
        """A name not in use; beyond five caches one is dropped first."""
        if len(self.state.caches) > 4:
            self.op_drop()
        self.made += 1
        return f"c{self.made - 1}"

    def new(self, kind):
        """An empty cache of this kind. A sliding cache may hold less than its window."""
        step = {"op": "new", "cache": self.fresh(), "kind": kind}
        if kind in STATIC:
            step["capacity"] = self.random.between(6, LONGEST)
        if kind == "static_sliding_window":
            step["window"] = self.random.between(1, 7)
            step["capacity"] = self.random.between(2, LONGEST)
        self.emit(step)
        return step["cache"]

    def op_new(self):
        self.new(self.random.choice(("dynamic", *STATIC)))

    def op_forward(self, name=None):
        """Feeds a cache; a full one is cropped first."""
        name = name or self.name()
        cache = self.state.caches[name]
        if cache.length >= (cache.capacity if cache.kind == "static" else LONGEST):
            self.emit({"op": "crop", "cache": name, "length": self.crop_length(cache, cache.length - 1)})
        self.emit(self.forward(name))

    def op_plain(self):
        """A full pass without a cache: half of them replay a history, with its present mask."""
        cache = self.state.caches[self.name()]
        if self.random.chance(50) or not cache.length:
            return self.emit(self.forward(None))
        rows = {"input_ids": cache.ids, "attention_mask": cache.bits.astype(int), "position_ids": cache.positions}
        self.emit({"op": "forward", "cache": None} | {key: array.tolist() for key, array in rows.items()})

    def op_clone(self):
        name = self.fresh()  # first, for it may drop the source
        self.emit({"op": "clone", "cache": name, "from": self.name()})

    def op_crop(self):
        name = self.name()
        cache = self.state.caches[name]
        self.emit({"op": "crop", "cache": name, "length": self.crop_length(cache, cache.length)})
        self.op_length(name)

    def crop_length(self, cache, longest):
        """A legal one: often the edges, else anything between."""
        for _ in range(8):
            length = self.random.choice((0, max(cache.length - 1, 0), self.random.between(0, longest)))
            trial = State(self.config)
            trial.caches["trial"] = cache
            if trial.refusal({"op": "crop", "cache": "trial", "length": length}) is None:
                return length
        return 0

    def op_gather(self):
        name = self.name()
        cache = self.state.caches[name]
        if not cache.length:
            return
        held = len(cache.ids)
        wanted = held if cache.kind in STATIC else self.random.between(1, 4)
        self.emit({"op": "gather", "cache": name, "rows": [self.random.below(held) for _ in range(wanted)]})

    def op_read(self):
        self.emit({"op": "read", "cache": self.name(), "layer": self.random.below(self.config["n_layer"])})

    def op_save(self):
        self.emit({"op": "save", "cache": self.name(), "to": f"s{self.random.below(2)}"})

    def op_load(self):
        if self.state.saved:
            onto = self.name() if self.random.chance(50) else self.fresh()
            self.emit({"op": "load", "cache": onto, "from": self.random.choice(self.state.saved)})

    def op_reset(self):
        self.emit({"op": "reset", "cache": self.name()})

    def op_drop(self):
        self.emit({"op": "drop", "cache": self.name()})

    def op_length(self, name=None):
        name = name or self.name()
        self.emit({"op": "length", "cache": name, "expect": self.state.caches[name].length})

    def forward(self, name, rows=None):
        """A legal forward: masks, positions, logits and use_cache present or absent."""
        cache = Cache() if name is None else self.state.caches[name]
        rows = len(cache.ids) if cache.length else rows or self.random.between(1, 4)
        room = cache.capacity - cache.length if cache.kind == "static" else 5
        new = self.random.between(1, max(min(room, 5), 1))
        vocabulary = self.config["vocab_size"] - 1
        step = {"op": "forward", "cache": name, "input_ids": self.random.ints((rows, new), 0, vocabulary)}
        mask = self._mask(cache, rows, new)
        if mask is not None:
            step["attention_mask"] = mask.tolist()
        step |= self._positions(cache, mask, rows, new) | self._wishes()
        return step

    def _wishes(self):
        """Which logits, and whether to keep the columns; mostly left to the defaults."""
        logits = self.random.weighted({None: 40, "all": 30, "last": 16, "none": 14})
        wishes = {} if logits is None else {"logits": logits}
        return wishes | ({"use_cache": self.random.chance(30)} if self.random.chance(18) else {})

    def _mask(self, cache, rows, new):
        """Absent only if nothing is hidden; new columns padded left, right or with holes; a past one may be hidden."""
        style = self.random.weighted({"absent": 30, "ones": 20, "left": 22, "right": 14, "holes": 14})
        if style == "absent" and cache.bits.all():
            return None
        bits = np.array([self._row(style, new) for _ in range(rows)])
        if cache.length:
            bits = np.hstack([cache.bits.astype(int), bits])
            if self.random.chance(15):
                bits[self.random.below(rows), self.random.below(cache.length)] = 0
        return bits

    def _row(self, style, new):
        hidden = self.random.below(new)
        rows = {"left": [0] * hidden + [1] * (new - hidden), "right": [1] * (new - hidden) + [0] * hidden}
        return rows.get(style) or [int(style != "holes" or self.random.chance(60)) for _ in range(new)]

    def _positions(self, cache, mask, rows, new):
        """Absent, running sums of the mask, or anything in range. A history may be longer than n_positions."""
        total, limit = cache.length + new, self.config["n_positions"]
        style = self.random.weighted({"absent": 40, "mask": 45, "any": 15})
        if style == "absent" and total <= limit:
            return {}
        derived = positions_from_mask(np.ones((rows, total)) if mask is None else mask)[:, cache.length :]
        if style == "mask" and derived.max() < limit:
            return {"position_ids": derived.tolist()}
        return {"position_ids": self.random.ints((rows, new), 0, limit - 1)}


def make(config, seed, index, steps=40):
    """Trace `index` of this seed."""
    return Generator(config, seed, index).make(steps)
