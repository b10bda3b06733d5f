#!/usr/bin/env python3
"""Makes golden files with Hugging Face Transformers.

Of any configuration and seed, of a model folder and trace files, or the project's own set again."""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # everything is made here: a look at the network would only cost time

import torch
import transformers

from kvgold import gpt2, player, random_trace, suites


def random_folder(config, seed, traces, steps, out):
    """A model of this configuration and `traces` random traces on it."""
    gpt2.make(config, seed, out)
    models = player.Models(out)
    for index in range(traces):
        name = f"trace{index:02}"
        trace = random_trace.make(models.config, seed, index, steps)
        say(out, name, player.record(models, f"{out.name}/{name}", trace, out / f"{name}.golden.safetensors"))


def existing_folder(folder, files, out):
    """The calls of trace files on weights that lie there already."""
    models = player.Models(folder)
    out.mkdir(parents=True, exist_ok=True)
    for file in files:
        name = file.name.removesuffix(".trace.json")
        trace = json.loads(file.read_text())["trace"]
        say(out, name, player.record(models, f"{folder.name}/{name}", trace, out / f"{name}.golden.safetensors"))


def say(folder, name, played):
    """One line a file: the figures it was accepted with."""
    figures = f"two ways agree to {played.worst:.1e}, float32 takes {played.float32:.3f} of the tolerance"
    has_numbers = any(not tensor.endswith((".ids", ".compared")) for tensor in played.tensors)
    print(f"{folder.name}/{name}: {figures if has_numbers else 'two ways give the same ids'}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", type=json.loads, help="JSON of GPT2Config settings")
    what.add_argument("--config-file", type=Path, help="a config.json")
    what.add_argument("--folder", type=Path, help="a model folder; its calls come from --trace")
    what.add_argument("--suite", choices=suites.SUITES, help="one suite of the project's own set")
    what.add_argument("--all", action="store_true", help="the whole of the project's own set")
    parser.add_argument("--trace", type=Path, nargs="+", default=[], help="trace files, with --folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--traces", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if bool(args.folder) != bool(args.trace):
        parser.error("--folder and --trace go together")
    return args


def main():
    args = arguments()
    torch.set_num_threads(1)  # and with it one order of every sum
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if args.all or args.suite:
        for name in suites.SUITES if args.all else [args.suite]:
            suites.make(name, args.out, say)
        return
    if args.folder:
        existing_folder(args.folder, args.trace, args.out)
        return
    config = args.config if args.config is not None else json.loads(args.config_file.read_text())
    random_folder(config, args.seed, args.traces, args.steps, args.out)


if __name__ == "__main__":
    try:
        main()
    except player.Doubt as doubt:
        sys.exit(f"make_with_transformers: nothing written for this trace: {doubt}; try another --seed")
