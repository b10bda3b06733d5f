"""The package's types: mypy takes an adapter as `serve` does, and says what is missing in one."""

import subprocess
import sys

import pytest

TYPED = """
from kvproof_adapter import Answer, Forward, serve

class Typed:
    name = "typed"
    version = "1"
    kinds = ("dynamic", "static")
    def open(self, folder: str) -> dict[str, int]: return {}
    def new(self, model: dict[str, int], kind: str, capacity: int | None, window: int | None) -> list[int]: return []
    def forward(self, model: dict[str, int], cache: list[int] | None, call: Forward) -> Answer: return Answer()
    def length(self, cache: list[int]) -> int: return len(cache)

serve(Typed())
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What mypy remembers of numpy from one case to the next."""
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("", "", None),
        ("def length", "def len", '"Typed" is missing following "Engine" protocol member'),
        ("kinds =", "kind =", '"Typed" is missing following "Engine" protocol member'),
        ("call: Forward", "call: int", 'incompatible type "Typed"'),
        ("folder: str", "folder: str, dtype: str", 'incompatible type "Typed"'),
    ],
)
def test_an_adapter_is_checked_by_its_types(tmp_path, cache, old, new, complaint):
    (tmp_path / "adapter.py").write_text(TYPED.replace(old, new) if old else TYPED)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "adapter.py"]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 0) == (complaint is None), done.stdout
    assert (complaint or "") in done.stdout
