"""python -m kvproof_adapter FILE [ARGUMENT...]: runs an adapter's file with the protocol's descriptors moved away.

For engines that print while they are imported, from C or in a process of their own.
"""

import runpy
import sys
from pathlib import Path

from .pipe import take_standard_streams


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    take_standard_streams()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
