"""The names of one lane, and the ops on them.

The table changes only after the engine has carried out the op: a refused call leaves it as it was. What a call's own
words get wrong is refused here, in the contract's order; everything else goes to the engine as it came.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calls import Answer, Forward, Generate
from .engine import Engine, ops_of
from .fields import Fields, Misread
from .refusal import Refused, Unsupported

KINDS = ("dynamic", "static", "static_sliding_window")
LOGITS = ("all", "last", "none")
LONGEST_TEXT = 2000


@dataclass(frozen=True)
class Reply:
    """Exactly one of ok, error and unsupported, and the tensors beside it."""

    outcome: dict[str, Any]
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass
class Held:
    """A cache or what was saved of one, and the model it belongs to."""

    model: Any
    object: Any


@dataclass(frozen=True)
class Done:
    """What an op gave: arrays, and the cache whose length is told."""

    answer: Answer = Answer()
    cache: Held | None = None


class Lane:
    def __init__(self, engine: Engine, models: Mapping[str, Any]) -> None:
        self._engine = engine
        self._models = models
        self._refusals: tuple[type[Exception], ...] = tuple(getattr(engine, "refusals", ()))
        self._caches: dict[str, Held] = {}
        self._saved: dict[str, Held] = {}
        own = {op: getattr(self, f"_{op}") for op in ops_of(engine)}
        self._ops: dict[str, Callable[[Fields], Done]] = own

    def call(self, step: Fields) -> Reply:
        """Carries out one op. Exceptions of the engine that are no refusals come through."""
        try:
            op = step.text("op")
            if op not in self._ops:
                raise Unsupported(f'unknown op "{op[:60]}"')
            done = self._ops[op](step)
        except (Refused, Unsupported, Misread) as no:
            return reply_to_no(no)
        length = {} if done.cache is None else {"length": int(self._engine.length(done.cache.object))}
        return Reply({"ok": length}, arrays_of(done.answer))

    def drop_all(self) -> None:
        """Forgets every cache and saved name."""
        for held in self._caches.values():
            self._let_go(held)
        self._caches.clear()
        self._saved.clear()

    def _new(self, step: Fields) -> Done:
        name, kind, model = step.text("cache"), step.text("kind"), self._model(step)
        capacity, window = step.maybe_integer("capacity"), step.maybe_integer("window")
        self._require_free(name)
        require_kind(self._engine, kind, capacity, window)
        return self._keep(name, Held(model, self._ask("new", model, kind, capacity, window)))

    def _forward(self, step: Fields) -> Done:
        held = self._cache(step.text("cache")) if step.has("cache") else None
        model = held.model if held is not None and not step.has("model") else self._model(step)
        call = Forward(
            input_ids=step.rows("input_ids"),
            attention_mask=step.maybe_rows("attention_mask"),
            position_ids=step.maybe_rows("position_ids"),
            use_cache=step.flag("use_cache") if step.has("use_cache") else True,
            logits=step.text("logits") if step.has("logits") else "all",
        )
        if call.logits not in LOGITS:  # of two faults the contract names the model first
            mismatch = held is not None and model is not held.model
            raise Refused("model_mismatch" if mismatch else "bad_argument", f'unknown logits "{call.logits[:60]}"')
        return Done(self._ask("forward", model, held and held.object, call), held)

    def _clone(self, step: Fields) -> Done:
        name, held = step.text("cache"), self._cache(step.text("from"))
        self._require_free(name)
        return self._keep(name, Held(held.model, self._ask("clone", held.object)))

    def _crop(self, step: Fields) -> Done:
        return self._change(step, "crop", step.integer("length"))

    def _gather(self, step: Fields) -> Done:
        return self._change(step, "gather", step.row("rows"))

    def _reset(self, step: Fields) -> Done:
        return self._change(step, "reset")

    def _drop(self, step: Fields) -> Done:
        name = step.text("cache")
        self._let_go(self._cache(name))
        del self._caches[name]
        return Done()

    def _length(self, step: Fields) -> Done:
        return Done(cache=self._cache(step.text("cache")))

    def _read(self, step: Fields) -> Done:
        held = self._cache(step.text("cache"))
        return Done(self._ask("read", held.object, step.integer("layer")), held)

    def _save(self, step: Fields) -> Done:
        held = self._cache(step.text("cache"))
        self._saved[step.text("to")] = Held(held.model, self._ask("save", held.object))
        return Done(cache=held)

    def _load(self, step: Fields) -> Done:
        name, stored = step.text("cache"), self._saved.get(step.text("from"))
        if stored is None:
            raise Refused("name_unknown", f"nothing is saved as {step.text('from')[:60]}")
        loaded = Held(stored.model, self._ask("load", stored.object))
        if name in self._caches:
            self._let_go(self._caches[name])
        return self._keep(name, loaded)

    def _generate(self, step: Fields) -> Done:
        call = Generate(
            input_ids=step.rows("input_ids"),
            attention_mask=step.maybe_rows("attention_mask"),
            max_new_tokens=step.integer("max_new_tokens"),
            eos_token_id=step.maybe_integer("eos_token_id"),
            kind=step.maybe_text("kind"),
            capacity=step.maybe_integer("capacity"),
            window=step.maybe_integer("window"),
        )
        model = self._model(step)
        if call.kind is not None:
            require_kind(self._engine, call.kind, call.capacity, call.window)
        elif call.capacity is not None or call.window is not None:
            raise Refused("bad_argument", "capacity or window without kind")
        if call.max_new_tokens < 1:
            raise Refused("bad_argument", f"max_new_tokens is {call.max_new_tokens}")
        return Done(self._ask("generate", model, call))

    def _change(self, step: Fields, op: str, *arguments: Any) -> Done:
        held = self._cache(step.text("cache"))
        changed = self._ask(op, held.object, *arguments)
        if changed is not None:
            held.object = changed
        return Done(cache=held)

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Only what happens in here can be a refusal of the engine."""
        try:
            return getattr(self._engine, method)(*arguments)
        except (Refused, Unsupported):
            raise
        except self._refusals as error:
            raise Refused("other", f"{type(error).__name__}: {error}") from error

    def _model(self, step: Fields) -> Any:
        name = step.text("model") if step.has("model") else "main"
        if name not in self._models:
            raise Misread(f'no model "{name[:60]}" was opened')
        return self._models[name]

    def _cache(self, name: str) -> Held:
        if name not in self._caches:
            raise Refused("unknown_cache", f"no cache {name[:60]}")
        return self._caches[name]

    def _require_free(self, name: str) -> None:
        if name in self._caches:
            raise Refused("cache_exists", f"cache {name[:60]} exists")

    def _keep(self, name: str, held: Held) -> Done:
        self._caches[name] = held
        return Done(cache=held)

    def _let_go(self, held: Held) -> None:
        drop = getattr(self._engine, "drop", None)
        if drop is not None:
            drop(held.object)


def require_kind(engine: Engine, kind: str, capacity: int | None, window: int | None) -> None:
    if kind not in KINDS:
        raise Refused("bad_argument", f'unknown kind "{kind[:60]}"')
    for name, value, wanted in (
        ("capacity", capacity, kind != "dynamic"),
        ("window", window, kind == "static_sliding_window"),
    ):
        if wanted and (value is None or value < 1):
            raise Refused("bad_argument", f"{name} missing or below 1 on a cache of kind {kind}")
        if value is not None and not wanted:
            raise Refused("bad_argument", f"{name} on a cache of kind {kind}")
    if kind not in engine.kinds:
        raise Unsupported(f"kind {kind}")


def reply_to_no(no: Refused | Unsupported | Misread) -> Reply:
    text = str(no)[:LONGEST_TEXT]
    if isinstance(no, Unsupported):
        return Reply({"unsupported": {"reason": text}})
    code = no.code if isinstance(no, Refused) else "bad_argument"
    return Reply({"error": {"code": code, "message": text}})


def arrays_of(answer: Answer) -> dict[str, NDArray[Any]]:
    found = {name: np.asarray(value) for name, value in vars(answer).items() if value is not None}
    if "ids" in found and found["ids"].size == 0:
        found["ids"] = found["ids"].astype(np.int64)  # of no number numpy says float64
    return found
