"""Runs the Python of docs/portable_generator.md and compares what it prints with what the page says; the C++ tests compare the
same lines with what the engine's generator makes."""

import subprocess
import sys
from pathlib import Path

docs = Path(__file__).parents[2] / "docs"
run = subprocess.run([sys.executable, docs / "examples/portable_generator.py"], capture_output=True, text=True, check=True)
if not run.stdout or f"```\n{run.stdout}```" not in (docs / "portable_generator.md").read_text(encoding="utf-8"):
    sys.exit(f"docs/portable_generator.md shows other lines than its Python prints:\n{run.stdout}")
print("the page shows what its Python prints")
