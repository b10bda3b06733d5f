"""Plays a trace on the contract and on Transformers: the expected tensors, or a refusal to vouch for them."""

import json
from pathlib import Path

import numpy as np
import torch
import transformers

from . import gpt2
from .container import weights_sha256, write
from .contract import Cache, State, positions_from_mask

TOLERANCE = {"atol": 1e-5, "rtol": 1e-4}
AGREEMENT = 1e-10  # between the two ways of Transformers in double
FLOAT32_SHARE = 0.3  # of the tolerance: more, and a correct float32 engine could fail
CLEAR_GAP = 1e-3  # between the best two logits: less, and greedy ids would be a matter of rounding


class Doubt(ValueError):  # noqa: N818 - it is not an error of this program
    """The numbers are not fit to judge anybody, so no file may be written from them."""


def difference(got, want):
    """Largest absolute difference; NaN counts as infinite, so that no comparison lets it through."""
    gap = np.abs(got.astype(np.float64) - want)
    return float(np.where(np.isnan(gap), np.inf, gap).max(initial=0.0))


def share(got, want):
    """Largest difference in units of the tolerance."""
    bound = TOLERANCE["atol"] + TOLERANCE["rtol"] * np.abs(want)
    return difference(got / bound, want / bound)


class Models:
    """One folder of weights in double and in single precision."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.config = json.loads((self.folder / "config.json").read_text())
        self.double = gpt2.load(folder, torch.float64)
        self.single = gpt2.load(folder, torch.float32)

    def __iter__(self):
        return iter((self.double, self.single))


class Player:
    """`tensors` after `play`: what a golden file records; `worst` and `float32`: the figures it was accepted with."""

    def __init__(self, models):
        self.models = models
        self.state = State(models.config)
        self.steps = gpt2.StepByStep(models.double)
        self.tensors, self.worst, self.float32 = {}, 0.0, 0.0

    def play(self, trace):
        for index, step in enumerate(trace):
            code = self.state.refusal(step)
            if code != step.get("error"):
                raise ValueError(f"step {index} {step['op']}: found error {step.get('error')}, expected {code}")
            if code is None:
                self._accepted(f"step.{index}", step)
        return self

    def _accepted(self, name, step):
        if step["op"] == "forward":
            self._forward(name, step)
        elif step["op"] == "read":
            self._read(name, step)
        elif step["op"] == "generate":
            self.tensors[f"{name}.ids"] = self._generate(name, step)
        else:
            held = self.state.caches.get(step["cache"])
            self.steps.apply(step, held.length if held else 0)
        self.state.apply(step)

    def _forward(self, name, step):
        history = self.state.appended(step)
        new = len(step["input_ids"][0])
        stepwise = self.steps.forward(step, history)
        asked = step.get("logits", "all")
        if asked == "none":
            return
        last = slice(-new if asked == "all" else -1, None)
        double, single = (gpt2.full_pass(model, history)[0][:, last] for model in self.models)
        counts = history.bits[:, last]
        self._keep(f"{name}.logits", stepwise[:, last], double, single, counts[:, :, None])
        self._keep_compared(name, counts)

    def _read(self, name, step):
        """K and V of the columns held. Transformers has nothing to say about an empty cache: the contract has."""
        history = self.state.caches[step["cache"]]
        counts = history.bits[:, history.gone :]
        self._keep_compared(name, counts)
        if not history.length:
            heads, width = self.models.config["n_head"], self.models.config["n_embd"]
            self.tensors |= {f"{name}.{which}": np.zeros((0, heads, 0, width // heads)) for which in ("keys", "values")}
            return
        caches = [self.steps.caches[step["cache"]], *(gpt2.full_pass(model, history)[1] for model in self.models)]
        for which in ("keys", "values"):
            arrays = [getattr(cache.layers[step["layer"]], which).numpy()[:, :, history.gone :] for cache in caches]
            self._keep(f"{name}.{which}", *arrays, counts[:, None, :, None])

    def _keep_compared(self, name, counts):
        self.tensors[f"{name}.compared"] = np.ascontiguousarray(counts, np.uint8)

    def _keep(self, name, stepwise, double, single, counts):
        """Records `double` once the other two bear it out where it counts."""
        counts = np.broadcast_to(counts, double.shape)
        apart = difference(stepwise[counts], double[counts])
        if not apart <= AGREEMENT:
            raise Doubt(f"{name}: step by step and full pass differ by {apart:.2e}, expected at most {AGREEMENT}")
        taken = share(single[counts], double[counts])
        if not taken <= FLOAT32_SHARE:
            raise Doubt(f"{name}: plain float32 takes {taken:.2f} of the tolerance, expected at most {FLOAT32_SHARE}")
        self.worst, self.float32 = max(self.worst, apart), max(self.float32, taken)
        self.tensors[name] = np.ascontiguousarray(double)

    def _generate(self, name, step):
        """Transformers' own loop must say the same; with a window, which GPT-2 has not, full passes stand alone."""
        ids = greedy(self.models.double, step)
        if step.get("kind") != "static_sliding_window":
            theirs = gpt2.generate(self.models.double, step)
            if not np.array_equal(theirs, ids):
                raise Doubt(f"{name}.ids: generate says {theirs.tolist()}, full passes say {ids.tolist()}")
        return ids


def greedy(model, step):
    """Greedy ids [B, n] from one full pass a token; Doubt if the best two logits are ever close."""
    prompt = np.array(step["input_ids"])
    mask = np.array(step.get("attention_mask", np.ones_like(prompt)))
    eos = step.get("eos_token_id", -1)
    ids, ended = np.zeros((len(prompt), 0), np.int64), np.zeros(len(prompt), bool)
    while ids.shape[1] < step["max_new_tokens"] and not ended.all():
        bits = np.pad(mask, ((0, 0), (0, ids.shape[1])), constant_values=1)
        empty = Cache(step.get("kind", "dynamic"), step.get("capacity"), step.get("window"))
        history = empty.append(np.hstack([prompt, ids]), bits, positions_from_mask(bits))
        last = gpt2.full_pass(model, history)[0][:, -1]
        gap = np.diff(np.sort(last)[:, -2:]).min(axis=1, where=~ended[:, None], initial=np.inf).min()
        if not gap > CLEAR_GAP:
            raise Doubt(f"greedy ids: the best two logits are {gap:.1e} apart, expected more than {CLEAR_GAP}")
        best = np.where(ended, eos, last.argmax(axis=1))
        ids, ended = np.hstack([ids, best[:, None]]), ended | (best == eos)
    return ids


def producer():
    """Who computed. The build of torch (cpu, cuda) is left out: it would make other bytes of the same numbers."""
    return {
        "name": "transformers",
        "version": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
        "attention": "eager",
        "compute": "float64",
    }


def record(models, suite, trace, path):
    """Plays the trace and writes the golden file; raises Doubt, and writes nothing, if the numbers are not fit."""
    played = Player(models).play(trace)
    document = {
        "format": "kvproof-golden",
        "version": [1, 0],
        "suite": suite,
        "weights_sha256": weights_sha256(models.folder),
        "config": models.config,
        "producer": producer(),
        "tolerance": TOLERANCE,
        "trace": trace,
    }
    write(path, document, played.tensors)
    return played
