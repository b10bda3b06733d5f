"""kvproof check --backend 'exec:python -m kvproof_transformers --attention sdpa'"""

import argparse
import gc
import os
import time
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m kvproof_transformers", description="Transformers behind kvproof's pipe."
    )
    parser.add_argument("--attention", choices=["eager", "sdpa"], default="eager", help="default: eager")
    parser.add_argument("--threads", type=int, default=1, help="of torch; default: 1")
    parser.add_argument("--times", type=Path, help="append to this file how much time was spent inside Transformers")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    os.environ["HF_HUB_OFFLINE"] = "1"  # models are folders: a look at the network would only cost time
    start = time.perf_counter()
    import torch
    import transformers

    from kvproof_adapter import serve

    from .clock import Clock
    from .engine import Transformers

    importing = time.perf_counter() - start
    torch.set_num_threads(args.threads)  # one thread fixes the order of every sum
    gc.freeze()  # the collector need not go through all that was imported again and again
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    clock = Clock()
    try:
        serve(Transformers(args.attention, clock))
    finally:
        if args.times is not None:
            clock.append_to(args.times, importing, args.threads)


if __name__ == "__main__":
    main()
