"""What an adapter has to be, and what it declares by being so."""

from collections.abc import Sequence
from typing import Any, Protocol

from .calls import Answer, Forward

OPTIONAL_OPS = ("clone", "crop", "gather", "reset", "read", "save", "load", "generate")
FLAGS = ("codes", "threads", "exact", "unbounded_window", "deterministic", "poison")


class Engine(Protocol):
    """The methods that every adapter has. What a model and a cache are is its own affair.

    An op is declared by having the method of its name. Each may raise one of `refusals`, `Refused` or `Unsupported`:

        clone(cache) -> Cache                 save(cache) -> object, load(stored) -> Cache
        crop(cache, length) -> Cache | None   read(cache, layer) -> Answer(keys=, values=)
        gather(cache, rows) -> Cache | None   generate(model, call: Generate) -> Answer(ids=)
        reset(cache) -> Cache | None          (None: it was done in place)

    Hooks: `drop(cache)` when a cache goes; `begin(case, run)` at the start of a case, `run` holding {"poison": True} if
    declared and wanted. Attributes: `refusals`, the exception types by which the engine says no; `max_batch`; and
    the flags `codes`, `threads`, `exact`, `unbounded_window`, `deterministic`, `poison`. What is absent is false.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def kinds(self) -> Sequence[str]:
        """Of caches: "dynamic", "static", "static_sliding_window"."""

    def open(self, folder: str) -> Any:
        """The model in this folder: config.json and model.safetensors, as Transformers writes them."""

    def new(self, model: Any, kind: str, capacity: int | None, window: int | None) -> Any:
        """An empty cache."""

    def forward(self, model: Any, cache: Any, call: Forward) -> Answer:
        """Feeds columns; cache None = a plain full pass. A cache of another model is handed on as it is."""

    def length(self, cache: Any) -> int:
        """Columns fed so far, evicted ones of a sliding window included."""


def ops_of(engine: Engine) -> list[str]:
    """The ops that can be asked of it. `drop` needs no help of the engine."""
    optional = [op for op in OPTIONAL_OPS if callable(getattr(engine, op, None))]
    return sorted(["new", "forward", "length", "drop", *optional])


def capabilities_of(engine: Engine) -> dict[str, object]:
    """The declaration that `hello` is answered with."""
    declared: dict[str, object] = {"kinds": list(engine.kinds), "ops": ops_of(engine)}
    max_batch = getattr(engine, "max_batch", None)
    if max_batch is not None:
        declared["max_batch"] = int(max_batch)
    return declared | {flag: bool(getattr(engine, flag, False)) for flag in FLAGS}
