"""Plays a trace on the contract and on Transformers: the expected tensors, or a refusal to vouch for them."""

import json
from pathlib import Path

import numpy as np
import torch

from . import gpt2
from .contract import Cache, State, positions_from_mask
from .container import weights_sha256, write

TOLERANCE = {"atol": 1e-5, "rtol": 1e-4}
AGREEMENT = 1e-10  # between the two ways of Transformers in double
FLOAT32_SHARE = 0.3  # of the tolerance: more, and a correct float32 engine could fail
CLEAR_GAP = 1e-3  # between the best two logits: less, and greedy ids would be a matter of rounding


class Doubt(ValueError):
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


class Player:
    """`tensors` after `play`: what a golden file records. `worst` and `float32` are the figures it was accepted with."""

    def __init__(self, models, *, judge_float32=True):
        self.models, self.judge_float32 = models, judge_float32
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
        rows = {"all": slice(-new, None), "last": slice(-1, None)}.get(step.get("logits", "all"))
        stepwise = self.steps.forward(step, history)[:, -new:]
        if rows is None:
            return
        compared = history.bits[:, rows]
        logits = gpt2.full_pass(self.models.double, history)[0][:, rows]
        self._agree(f"{name}.logits", stepwise[:, rows][compared], logits[compared])
        if self.judge_float32:
            self._fit_for_float32(f"{name}.logits", gpt2.full_pass(self.models.single, history)[0][:, rows][compared], logits[compared])
        self.tensors[f"{name}.logits"] = np.ascontiguousarray(logits)
        self.tensors[f"{name}.compared"] = np.ascontiguousarray(compared, np.uint8)

    def _read(self, name, step):
        history = self.state.caches[step["cache"]]
        compared = history.bits[:, history.gone :]
        self.tensors[f"{name}.compared"] = np.ascontiguousarray(compared, np.uint8)
        if not history.length:
            heads = self.models.config["n_head"]
            empty = np.zeros((0, heads, 0, self.models.config["n_embd"] // heads))
            self.tensors |= {f"{name}.keys": empty, f"{name}.values": empty}
            return
        whole, single = (gpt2.full_pass(model, history)[1] for model in (self.models.double, self.models.single))
        caches = whole, self.steps.caches[step["cache"]], single
        for which, arrays in zip(("keys", "values"), zip(*(gpt2.layer_of(cache, step["layer"]) for cache in caches)), strict=True):
            full, stepwise, rounded = (np.ascontiguousarray(array[:, :, history.gone :]) for array in arrays)
            rows = np.broadcast_to(compared[:, None, :, None], full.shape)
            self._agree(f"{name}.{which}", stepwise[rows], full[rows])
            self._fit_for_float32(f"{name}.{which}", rounded[rows], full[rows])
            self.tensors[f"{name}.{which}"] = full

    def _agree(self, name, stepwise, full):
        found = difference(stepwise, full)
        self.worst = max(self.worst, found)
        if not found <= AGREEMENT:
            raise Doubt(f"{name}: step by step and full pass differ by {found:.2e}, expected at most {AGREEMENT}")

    def _fit_for_float32(self, name, single, double):
        found = share(single, double)
        self.float32 = max(self.float32, found)
        if not found <= FLOAT32_SHARE:
            raise Doubt(f"{name}: plain float32 takes {found:.2f} of the tolerance, expected at most {FLOAT32_SHARE}")

    def _generate(self, name, step):
        ids = self._greedy(name, step)
        if step.get("kind") != "static_sliding_window":
            theirs = gpt2.generate(self.models.double, step)
            if not np.array_equal(theirs, ids):
                raise Doubt(f"{name}.ids: generate says {theirs.tolist()}, full passes say {ids.tolist()}")
        return ids

    def _greedy(self, name, step):
        """Ids from one full pass a token; a row that has ended is filled with its eos."""
        eos = step.get("eos_token_id")
        mask = np.array(step.get("attention_mask", np.ones_like(step["input_ids"])))
        prompt = np.array(step["input_ids"])
        ids = np.zeros((len(prompt), 0), np.int64)
        ended = np.zeros(len(prompt), bool)
        while ids.shape[1] < step["max_new_tokens"] and not ended.all():
            bits = np.pad(mask, ((0, 0), (0, ids.shape[1])), constant_values=1)
            empty = Cache(step.get("kind", "dynamic"), step.get("capacity"), step.get("window"))
            history = empty.append(np.hstack([prompt, ids]), bits, positions_from_mask(bits))
            last = gpt2.full_pass(self.models.double, history)[0][:, -1]
            gap = np.diff(np.sort(last, axis=1)[:, -2:], axis=1)[:, 0]
            if not (gap[~ended] > CLEAR_GAP).all():
                raise Doubt(f"{name}.ids: the best two logits are {gap.min():.1e} apart, expected more than {CLEAR_GAP}")
            best = np.where(ended, eos if eos is not None else 0, last.argmax(axis=1))
            ids = np.hstack([ids, best[:, None]])
            ended = ended | (best == eos) if eos is not None else ended
        return ids


def producer(compute="float64"):
    """Who computed, in the words of the given files."""
    import transformers

    return {
        "name": "transformers",
        "version": transformers.__version__,
        "torch": torch.__version__,
        "attention": "eager",
        "compute": compute,
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
