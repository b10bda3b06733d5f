"""Runs emitted scripts one after the other in this process, so that Transformers is imported once.

python -m kvproof_transformers.scripts ATTENTION SCRIPT...: one line of JSON each, {script, code, said}, `said` being
its last line. A script needs nothing of this: `python SCRIPT --attention eager` says the same.
"""

import contextlib
import io
import json
import os
import runpy
import sys
from pathlib import Path


def run(script: Path, attention: str) -> tuple[int, str]:
    """Exit code and last line of a script that is run as a program."""
    sys.argv = [str(script), "--attention", attention]
    said = io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(said):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            code = end.code
    return (code if isinstance(code, int) else int(code is not None)), said.getvalue().strip().rpartition("\n")[2]


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    attention, *scripts = sys.argv[1:]
    for script in map(Path, scripts):
        code, said = run(script, attention)
        print(json.dumps({"script": script.name, "code": code, "said": said}), flush=True)


if __name__ == "__main__":
    main()
