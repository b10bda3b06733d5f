"""The fields of a request, read by type. A field that is null is absent; one that nobody asks for is ignored."""

from typing import Any

from .calls import Rows


class Misread(Exception):
    """A field is missing or of another type. Such a call cannot even be put to the engine."""


LEAST, MOST = -(1 << 63), (1 << 63) - 1


def _is_integer(value: Any) -> bool:
    return type(value) is int and LEAST <= value <= MOST  # bool is an int to Python


def _is_row(value: Any) -> bool:
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        return False
    return not value or (min(value) >= LEAST and max(value) <= MOST)


class Fields:
    def __init__(self, document: Any) -> None:
        if not isinstance(document, dict):
            raise Misread("a request or step is no JSON object")
        self._document: dict[str, Any] = document

    def has(self, name: str) -> bool:
        return self._document.get(name) is not None

    def text(self, name: str) -> str:
        return str(self._get(name, isinstance(self._document.get(name), str), "a string"))

    def integer(self, name: str) -> int:
        return int(self._get(name, _is_integer(self._document.get(name)), "a 64-bit integer"))

    def flag(self, name: str) -> bool:
        return bool(self._get(name, isinstance(self._document.get(name), bool), "true or false"))

    def row(self, name: str) -> list[int]:
        return list(self._get(name, _is_row(self._document.get(name)), "a list of 64-bit integers"))

    def rows(self, name: str) -> Rows:
        value = self._document.get(name)
        fits = isinstance(value, list) and all(map(_is_row, value))
        return list(self._get(name, fits, "a list of lists of 64-bit integers"))

    def array(self, name: str) -> list[Any]:
        return list(self._get(name, isinstance(self._document.get(name), list), "a list"))

    def object(self, name: str) -> dict[str, Any]:
        return dict(self._get(name, isinstance(self._document.get(name), dict), "an object"))

    def maybe_text(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def maybe_integer(self, name: str) -> int | None:
        return self.integer(name) if self.has(name) else None

    def maybe_rows(self, name: str) -> Rows | None:
        return self.rows(name) if self.has(name) else None

    def _get(self, name: str, fits: bool, expected: str) -> Any:
        if not self.has(name):
            raise Misread(f'field "{name}" is missing')
        value = self._document[name]
        if not fits:
            raise Misread(f'field "{name}" is {str(value)[:60]}, expected {expected}')
        return value
