"""Adapters in front of the real kvproof."""

import re
import subprocess
import sys

import pytest
from test_tutorial import FILE, PAGE

RECORDED = """
import json
from safetensors import safe_open

class Recorded(Counting):
    '''Gives the recorded answers back, forward by forward.'''
    def __init__(self, path):
        super().__init__()
        self.file = safe_open(path, framework="numpy")
        trace = json.loads(self.file.metadata()["kvproof"])["trace"]
        self.steps = iter([i for i, step in enumerate(trace) if step["op"] == "forward"])

    def forward(self, model, cache, call):
        super().forward(model, cache, call)
        return Answer(logits=self.file.get_tensor(f"step.{next(self.steps)}.logits"))

serve(Recorded(sys.argv[1]))
"""


def judge(kvproof, folder, *arguments, code=0):
    done = subprocess.run([kvproof, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=900)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["seed", "seed-float64"])
def test_the_numbers_of_a_golden_pass_through_bit_for_bit(start, kvproof, source, tmp_path, name):
    golden = source / "golden" / "seed" / f"{name}.golden.safetensors"
    start(RECORDED, arguments=(str(golden),)).end()
    backend = f"exec:{sys.executable} adapter.py {golden}"
    exactly = ["golden", "verify", golden, "--atol", "0", "--rtol", "0", "--backend"]
    assert "8 rows compared, worst 0 of the bound" in judge(kvproof, tmp_path, *exactly, backend)
    assert "wrong_logits" in judge(kvproof, tmp_path, *exactly, "engine", code=1)  # so exact is this tolerance


@pytest.fixture
def tutorial(tmp_path):
    """The tutorial's files."""
    for file in FILE.finditer(PAGE.read_text(encoding="utf-8")):
        (tmp_path / file["name"]).write_text(file["text"])
    return tmp_path


def check(kvproof, folder, *arguments, code=0):
    return judge(kvproof, folder, "check", "--backend", f"exec:{sys.executable} adapter.py", *arguments, code=code)


def test_lanes_on_threads_are_judged(kvproof, tutorial):
    adapter = tutorial / "adapter.py"
    adapter.write_text(adapter.read_text().replace("deterministic = True", "deterministic = threads = True"))
    assert "PASS" in check(kvproof, tutorial, "--only", "isolation.threads", "--traces", "6")


def test_an_engine_that_keeps_something_for_all_its_threads_is_found_out(kvproof, tutorial):
    adapter = tutorial / "adapter.py"
    text = adapter.read_text().replace("deterministic = True", "deterministic = threads = True")
    keep = (
        "        self.call = call\n        time.sleep(0.01)\n        call = self.call\n        logits = model.forward("
    )
    adapter.write_text("import time\n" + text.replace("        logits = model.forward(", keep))
    out = check(kvproof, tutorial, "--only", "isolation.threads", "--traces", "6", code=1)
    assert re.search(r"FAIL isolation\.threads/\d+: ", out)


def test_an_engine_that_throws_is_a_finding_with_its_traceback(kvproof, tutorial):
    engine = tutorial / "gpt2.py"
    engine.write_text(
        engine.read_text().replace("        refuse_if(not rows or", "        rows[99]\n        refuse_if(not rows or")
    )
    adapter = tutorial / "adapter.py"
    adapter.write_text(adapter.read_text().replace("(ValueError, IndexError)", "(ValueError,)"))
    out = check(kvproof, tutorial, "--only", "cache.gather", "--traces", "2", code=1)
    assert "broke_down" in out and "exited with code 70 while it was asked for gather" in out
    assert "IndexError: list index out of range" in out
