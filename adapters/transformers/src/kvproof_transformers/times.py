"""Where the time of a run went: python -m kvproof_transformers.times FILE BEGUN, BEGUN in seconds since 1970."""

import json
import sys
import time
from pathlib import Path


def main() -> None:
    wall = time.time() - float(sys.argv[2])
    children = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    importing, inside, calls = (sum(child[key] for child in children) for key in ("importing", "inside", "calls"))
    share = 100 * inside / (wall - importing)
    print(
        f"kvproof: {wall:.0f} s: {importing:.0f} s importing Transformers, {inside:.0f} s in {calls} calls of it, "
        f"{share:.0f} % of the rest; children: {len(children)}, torch threads: {children[0]['threads']}"
    )


if __name__ == "__main__":
    main()
