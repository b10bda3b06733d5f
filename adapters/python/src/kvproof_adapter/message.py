"""One message: a safetensors container whose metadata hold one JSON document. Its own header says where it ends."""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

LONGEST_HEADER = 100_000_000  # of the safetensors format
MOST_BYTES = 256 << 20  # of a whole message
SIZES = {
    "F64": 8,
    "I64": 8,
    "U64": 8,
    "F32": 4,
    "I32": 4,
    "U32": 4,
    "F16": 2,
    "BF16": 2,
    "I16": 2,
    "U16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
WRITTEN = {"f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32"}

Tensors = Mapping[str, NDArray[Any]]
Document = dict[str, Any]


class BrokenMessage(Exception):
    """What came is no message; nothing after it can be understood either."""


@dataclass(frozen=True)
class Entry:
    dtype: str
    shape: list[int]
    begin: int
    end: int


@dataclass(frozen=True)
class Message:
    document: Document
    entries: dict[str, Entry]
    data: bytes


def encode(document: Document, tensors: Tensors | None = None) -> bytes:
    """Tensors by element size, largest first, then by name; the data start on a multiple of 8.

    TypeError: a dtype that nobody reads.
    """
    header: dict[str, Any] = {"__metadata__": {"kvproof": ENCODER.encode(document)}}
    data: list[bytes] = []
    end = 0
    tensors = tensors or {}
    for name in sorted(tensors, key=lambda name: (-tensors[name].itemsize, name.encode())):
        dtype, written = _written(name, tensors[name])
        header[name] = {"dtype": dtype, "shape": list(tensors[name].shape), "data_offsets": [end, end + len(written)]}
        end += len(written)
        data.append(written)
    text = ENCODER.encode(header).encode("utf-8", "replace")
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *data])


def _written(name: str, array: NDArray[Any]) -> tuple[str, bytes]:
    dtype = WRITTEN.get(array.dtype.str[1:])
    if dtype is None:
        raise TypeError(f"{name} are {array.dtype}; expected float16, float32, float64, or for ids int32 or int64")
    return dtype, array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def read_message(read: Callable[[int], bytes], most_bytes: int = MOST_BYTES) -> Message | None:
    """The next message of a stream, or None where it ends.

    `read(n)` gives n bytes, fewer only at the end of the stream. BrokenMessage: what came is none.
    """
    prefix = read(8)
    if not prefix:
        return None
    (length,) = struct.unpack("<Q", _whole(prefix, 8))
    if length > min(LONGEST_HEADER, most_bytes):
        raise BrokenMessage(f"a header of {length} bytes, expected at most {min(LONGEST_HEADER, most_bytes)}")
    header = strict_json(_whole(read(length), length), "the header")
    entries, end = _layout(header)
    if 8 + length + end > most_bytes:
        raise BrokenMessage(f"a message of {8 + length + end} bytes, expected at most {most_bytes}")
    return Message(_document(header), entries, _whole(read(end), end))


def _whole(found: bytes, expected: int) -> bytes:
    if len(found) != expected:
        raise BrokenMessage(f"the stream ends {expected - len(found)} bytes early")
    return found


def _document(header: Document) -> Document:
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or list(metadata) != ["kvproof"] or not isinstance(metadata["kvproof"], str):
        raise BrokenMessage('__metadata__ has not exactly one key "kvproof" with a text')
    return strict_json(metadata["kvproof"].encode("utf-8", "surrogatepass"), "the document")


def strict_json(text: bytes, where: str) -> Document:
    """One JSON object in UTF-8, no key twice, no NaN."""
    try:
        found = DECODER.decode(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BrokenMessage(f"{where} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise BrokenMessage(f"{where} is no JSON object")
    return found


def _no_key_twice(pairs: list[tuple[str, Any]]) -> Document:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON number")


ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
DECODER = json.JSONDecoder(object_pairs_hook=_no_key_twice, parse_constant=_no_constant)


def _layout(header: Document) -> tuple[dict[str, Entry], int]:
    """The tensors and where the data end: together they cover the data exactly once."""
    entries = {name: _entry(name, found) for name, found in header.items() if name != "__metadata__"}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != end:
            raise BrokenMessage(f"tensor {name} begins at {entry.begin}, expected {end}")
        end = entry.end
    return entries, end


def _entry(name: str, found: Any) -> Entry:
    if not isinstance(found, dict) or set(found) != {"dtype", "shape", "data_offsets"}:
        raise BrokenMessage(f"tensor {name} has not exactly dtype, shape and data_offsets")
    dtype, shape, offsets = found["dtype"], found["shape"], found["data_offsets"]
    if (
        not isinstance(dtype, str)
        or dtype not in SIZES
        or not _naturals(shape)
        or not _naturals(offsets)
        or len(offsets) != 2
    ):
        raise BrokenMessage(f"tensor {name} has an unknown dtype, or a shape or data_offsets that are none")
    size = SIZES[dtype]
    for extent in shape:
        size *= extent
    if offsets[1] - offsets[0] != size:
        raise BrokenMessage(f"tensor {name} has {offsets[1] - offsets[0]} bytes, its shape says {size}")
    return Entry(dtype, shape, offsets[0], offsets[1])


def _naturals(found: Any) -> bool:
    return (
        isinstance(found, list)
        and len(found) <= 64
        and all(type(each) is int and 0 <= each < 1 << 64 for each in found)
    )
