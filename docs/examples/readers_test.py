"""Runs both readers of docs/golden_readers.md on goldens: they must say the same, and refuse a file that was cut.

Arguments: the compiled C reader, the folder of goldens.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

READERS = [[sys.argv[1]], [sys.executable, "-B", Path(__file__).parent / "read_golden.py"]]


def run(reader, *goldens):
    return subprocess.run([*reader, *goldens], text=True, check=False, capture_output=True, timeout=120)


def main():
    goldens = sorted(Path(sys.argv[2]).rglob("*.golden.safetensors"))
    if not goldens:
        sys.exit(f"readers_test: no golden under {sys.argv[2]}")
    in_c, in_python = (run(reader, *goldens) for reader in READERS)
    if in_c.returncode or in_python.returncode:
        sys.exit(f"a reader refuses a golden\n{in_c.stderr}\n{in_python.stderr}")
    if in_c.stdout != in_python.stdout or in_c.stdout.count("\n  step.") < len(goldens):
        sys.exit(f"the readers do not say the same, or nothing\n{in_c.stdout[-2000:]}\n{in_python.stdout[-2000:]}")
    with tempfile.TemporaryDirectory() as folder:
        cut = Path(folder) / "cut.golden.safetensors"
        whole = goldens[0].read_bytes()
        for length in [7, 100, len(whole) - 1]:
            cut.write_bytes(whole[:length])
            for reader in READERS:
                if run(reader, cut).returncode == 0:
                    sys.exit(f"{reader[-1]} accepts the first {length} bytes of {goldens[0]}")
    print(f"both readers say the same of {len(goldens)} goldens")


if __name__ == "__main__":
    main()
