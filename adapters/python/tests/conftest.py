"""What the tests share: an engine that counts, and a child process to talk to.

The environment names the command (KVPROOF) and the project's folder (KVPROOF_SOURCE_DIR).
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kvproof_adapter import message

pytest_plugins = ["pytester"]
HERE = Path(__file__).parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
HELLO = {"op": "hello", "protocol": [1, 0]}
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}


@pytest.fixture(scope="session")
def kvproof() -> str:
    return os.environ["KVPROOF"]


@pytest.fixture(scope="session")
def source() -> Path:
    return Path(os.environ["KVPROOF_SOURCE_DIR"])


class Child:
    """An adapter in a process of its own, spoken to as kvproof does."""

    def __init__(self, *command: str | Path) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, *map(str, command)], env=ENVIRONMENT, **pipes)
        self._id = 4000

    def send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> message.Message | None:
        return message.read_message(self.process.stdout.read)

    def ask(self, **request: object) -> dict[str, object]:
        """The reply's document without its id."""
        return self.ask_for_all(**request)[0]

    def ask_for_all(self, **request: object) -> tuple[dict[str, object], dict[str, NDArray]]:
        """The reply's document without its id, and its tensors."""
        self._id += 7
        self.send(message.encode({"id": self._id, **request}))
        reply = self.receive()
        assert reply is not None, self.end()
        assert reply.document.pop("id") == self._id
        return reply.document, tensors_of(reply)

    def end(self) -> tuple[int, bytes, str]:
        """(exit code, what was left on standard output, standard error) after the end of its input."""
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err.decode()

    def kill(self) -> None:
        self.process.kill()
        with self.process:  # closes the pipes and waits
            pass


def tensors_of(reply: message.Message) -> dict[str, NDArray]:
    def array(entry: message.Entry) -> NDArray:
        return np.frombuffer(reply.data[entry.begin : entry.end], DTYPES[entry.dtype]).reshape(entry.shape)

    return {name: array(entry) for name, entry in reply.entries.items()}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Child]]:
    """Starts an adapter whose text is given, behind the imports that all of them want."""
    children: list[Child] = []

    def start_text(text: str, *before: str, arguments: tuple[str, ...] = ()) -> Child:
        file = tmp_path / "adapter.py"
        file.write_text(f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom engines import *\n" + text)
        children.append(Child(*before, file, *arguments))
        return children[-1]

    yield start_text
    for child in children:
        child.kill()
