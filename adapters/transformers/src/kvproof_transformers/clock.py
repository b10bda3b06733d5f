"""The border to the engine: what is timed as the engine's, and whose exceptions are its refusals."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# What torch and Transformers raise when an argument does not suit them. An AttributeError, an AssertionError or an
# UnboundLocalError from inside is no answer to a caller but a breakdown: it ends the program, and the harness says so.
ARGUMENT_ERRORS = (ValueError, IndexError, KeyError, TypeError, RuntimeError)


class EngineRefusal(Exception):
    """The engine declined a call. Only exceptions from inside the engine become one: no mistake of the adapter does."""


@dataclass
class Clock:
    """Seconds in which some thread was inside the engine, and how many calls there were."""

    seconds: float = 0.0
    calls: int = 0
    started: float = field(default_factory=time.perf_counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _within: int = 0
    _since: float = 0.0

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Everything in this block is the engine's doing."""
        self._enter()
        try:
            yield
        except ARGUMENT_ERRORS as error:
            raise EngineRefusal(f"{type(error).__name__}: {error}") from error
        finally:
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            if self._within == 0:
                self._since = time.perf_counter()
            self._within += 1
            self.calls += 1

    def _leave(self) -> None:
        with self._lock:
            self._within -= 1
            if self._within == 0:
                self.seconds += time.perf_counter() - self._since

    def append_to(self, path: Path, importing: float, threads: int) -> None:
        """Adds this process's figures as one line of JSON; several children of one run append to the same file."""
        figures = {
            "threads": threads,
            "importing": round(importing, 3),
            "inside": round(self.seconds, 3),
            "calls": self.calls,
            "wall": round(time.perf_counter() - self.started, 3),
        }
        with path.open("a") as lines:
            lines.write(json.dumps(figures) + "\n")
