"""Does what TUTORIAL.md does: writes its files, runs its commands, compares what they print."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "TUTORIAL.md"
FILE = re.compile(r"^<!-- file (?P<name>\S+) -->\n```python\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
LONGEST_ADAPTER = 45  # lines: what the page promises


@pytest.fixture
def console(source):
    """The runner of console blocks that the project's other pages go through."""
    spec = importlib.util.spec_from_file_location("console_test", source / "docs" / "console_test.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.self_test() == []
    return module


def complaints(console, folder, text, kvproof, monkeypatch):
    (folder / "build" / "release").mkdir(parents=True)
    (folder / "build" / "release" / "kvproof").symlink_to(kvproof)
    for name in ["PYTEST_ADDOPTS", "FORCE_COLOR", "PY_COLORS", "COLUMNS"]:  # the page shows pytest as it is by itself
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for file in FILE.finditer(text):
        (folder / file["name"]).write_text(file["text"])
    found, count = [], 0
    for block in console.BLOCK.finditer(text):
        commands = console.commands_of(block["text"])
        for command, shown in commands:
            code = int(block["exit"] or 0) if command == commands[-1][0] else 0
            complaint = console.complaint_about(command, shown, code, folder)
            found += [f"$ {command}\n{complaint}"] if complaint else []
            count += 1
    return count, found


def test_every_command_does_what_the_page_shows(console, tmp_path, kvproof, monkeypatch):
    count, found = complaints(console, tmp_path, PAGE.read_text(encoding="utf-8"), kvproof, monkeypatch)
    assert not found, "\n".join(found)
    assert count >= 8


def test_a_page_that_shows_something_else_is_found_out(console, tmp_path, kvproof, monkeypatch):
    text = PAGE.read_text(encoding="utf-8")
    text = text[: text.index("## A bug")].replace("--traces 10", "--traces 10 --only mask.absent")
    _, found = complaints(console, tmp_path, text, kvproof, monkeypatch)
    assert len(found) == 1 and "PASS exec:python adapter.py: 1 law, 10 traces" in found[0]


def test_the_adapter_is_as_short_as_promised():
    adapter = {file["name"]: file["text"] for file in FILE.finditer(PAGE.read_text(encoding="utf-8"))}["adapter.py"]
    assert len(adapter.splitlines()) <= LONGEST_ADAPTER
