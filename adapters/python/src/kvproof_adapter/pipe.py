"""The protocol's own descriptors.

Once they are taken, descriptor 1 points at standard error, so that nothing that an engine or a library of its prints,
from C or in a process it starts, can break a message. Standard input is empty for them.
"""

import io
import os
import sys


class Pipe:
    """Exact reads, whole writes. Neither descriptor is inherited by processes that the engine starts."""

    def __init__(self, read_from: int, write_to: int) -> None:
        self._read_from = read_from
        self._write_to = write_to

    def read(self, count: int) -> bytes:
        """`count` bytes; fewer only at the end of the stream. What is claimed is allocated only as it comes."""
        parts: list[bytes] = []
        while count > 0:
            part = os.read(self._read_from, min(count, 1 << 20))
            if not part:
                break
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def write(self, message: bytes) -> None:
        rest = memoryview(message)
        while rest:
            rest = rest[os.write(self._write_to, rest) :]

    def close(self) -> None:
        os.close(self._read_from)
        os.close(self._write_to)


_taken: list[Pipe] = []


def take_standard_streams() -> Pipe:
    """Moves the protocol away from descriptors 0 and 1. A second call gives the same pipe."""
    if not _taken:
        _taken.append(Pipe(os.dup(0), os.dup(1)))
        os.dup2(2, 1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)  # a process that dies of a signal has said what it had to say
    return _taken[0]
