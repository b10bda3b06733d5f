#!/usr/bin/env python3
"""Compares freshly made goldens with golden/, and computes the answers of the given ones again."""

import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
import transformers

from kvgold import container, player, suites

FRESH = 1e-12  # the same program on another processor: the order of a sum, no more
GIVEN = {"float64": 1e-10, "float32": 1e-6}  # made by another program


def compare_documents(path, found, expected):
    for key in sorted(expected.keys() | found.keys()):
        if found.get(key) != expected.get(key):
            sys.exit(f"{path}: {key}: found {found.get(key)}, expected {expected.get(key)}")


def compare_tensors(path, found, expected, bound):
    """Worst difference where rows are compared; stops at the first tensor beyond the bound."""
    if found.keys() != expected.keys():
        sys.exit(f"{path}: found tensors {sorted(found)}, expected {sorted(expected)}")
    return max((compare_tensor(path, name, found, expected, bound) for name in expected), default=0.0)


def compare_tensor(path, name, found, expected, bound):
    got, want = found[name], expected[name]
    if got.shape != want.shape:
        sys.exit(f"{path}: {name}: found shape {got.shape}, expected {want.shape}")
    gap = np.abs(got.astype(np.float64) - want)
    gap[counts(name, expected) == 0] = 0
    if not gap.size:
        return 0.0
    worst = np.unravel_index(np.argmax(np.where(np.isnan(gap), np.inf, gap)), gap.shape)
    if not gap[worst] <= bound:
        at = list(map(int, worst))
        sys.exit(f"{path}: {name} element {at}: found {got[worst]}, expected {want[worst]} within {bound}")
    return float(gap[worst])


def counts(name, tensors):
    """Which elements are judged: `compared` is [B, T] beside logits and [B, S] beside keys and values."""
    step, which = name.rsplit(".", 1)
    if which in ("compared", "ids"):
        return np.ones(tensors[name].shape)
    rows = tensors[f"{step}.compared"]
    return np.broadcast_to(rows[:, :, None] if which == "logits" else rows[:, None, :, None], tensors[name].shape)


def check_fresh(fresh):
    """Every file made is there, with the same bytes or nearly the same numbers; nothing there is left unmade."""
    made = {path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file()}
    kept = {path.relative_to(suites.HOME) for name in suites.SUITES for path in (suites.HOME / name).iterdir()}
    kept.remove(Path("seed/seed.golden.safetensors"))  # given, not made
    if made != kept:
        sys.exit(f"golden/: made and kept files differ: {sorted(map(str, made ^ kept))}")
    same, worst = 0, 0.0
    for path in sorted(made):
        if (fresh / path).read_bytes() == (suites.HOME / path).read_bytes():
            same += 1
        elif path.name.endswith(".golden.safetensors"):
            (found, tensors), (expected, wanted) = container.read(fresh / path), container.read(suites.HOME / path)
            compare_documents(path, found, expected)
            worst = max(worst, compare_tensors(path, tensors, wanted, FRESH))
        else:
            sys.exit(f"{path}: made again, it has other bytes, and every number of its folder hangs on it")
    others = f", the others within {FRESH} (worst {worst:.1e})" if same < len(made) else ""
    print(f"made again: {len(made)} files, {same} byte for byte{others}")


def check_given():
    """The traces of others, replayed: refusals, lengths and logits."""
    given = [suites.HOME / "seed" / "seed.golden.safetensors", *sorted(suites.HOME.glob("transformers-*/*/*.golden.*"))]
    worst = dict.fromkeys(GIVEN, 0.0)
    for path in given:
        document, expected = container.read(path)
        if (found := container.weights_sha256(path.parent)) != document["weights_sha256"]:
            sys.exit(f"{path}: found weights {found}, expected {document['weights_sha256']}")
        tensors = replay(path, document["trace"])
        compute = document["producer"]["compute"]
        worst[compute] = max(worst[compute], compare_tensors(path, tensors, expected, GIVEN[compute]))
    figures = ", ".join(f"{worst[compute]:.1e} for {compute}" for compute in GIVEN)
    print(f"given: {len(given)} files computed again; worst difference {figures}")


def replay(path, trace):
    """The tensors of a recorded trace, computed anew; its refusals and lengths must be those of the contract."""
    try:
        return player.Player(player.Models(path.parent)).play(trace).tensors
    except ValueError as error:
        sys.exit(f"{path}: {error}")


def check_seed_weights(fresh):
    """A remark, not a judgement: torch promises no equal random numbers across processors."""
    torch.manual_seed(11)
    config = transformers.GPT2Config.from_pretrained(suites.HOME / "seed")
    transformers.GPT2LMHeadModel(config).save_pretrained(fresh / "seed")
    same = container.weights_sha256(fresh / "seed") == container.weights_sha256(suites.HOME / "seed")
    print(f"torch.manual_seed(11) gives {'the' if same else 'OTHER'} weights of golden/seed on this machine")


def main():
    fresh = Path(sys.argv[1])
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    check_fresh(fresh)
    check_given()
    check_seed_weights(fresh)


if __name__ == "__main__":
    main()
