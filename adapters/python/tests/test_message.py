"""The codec: what is written can be read by the stock reader, and nothing broken gets in."""

import io
import json
import struct

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load

from kvproof_adapter.message import MOST_BYTES, BrokenMessage, encode, read_message

DOCUMENT = {"id": 7, "op": "length", "cache": "ä\n\x00"}


def read(data: bytes, most_bytes: int = MOST_BYTES):
    return read_message(io.BytesIO(data).read, most_bytes)


def message(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def with_tensor(**entry: object) -> dict[str, object]:
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} | entry
    return {"__metadata__": {"kvproof": "{}"}, "a": {name: value for name, value in entry.items() if value is not None}}


def test_a_document_comes_back_as_it_went():
    assert read(encode(DOCUMENT)).document == DOCUMENT


def test_messages_follow_each_other_and_then_the_stream_ends():
    stream = io.BytesIO(encode(DOCUMENT, {"a": np.zeros(3, np.float32)}) + encode({"id": 8}))
    assert [read_message(stream.read).document["id"] for _ in range(2)] == [7, 8]
    assert read_message(stream.read) is None


def test_the_stock_reader_sees_the_same_tensors(tmp_path):
    odd = np.array([[0.0, -0.0, np.inf, 5e-324], [np.nan, 1 / 3, -np.inf, 1e30]])
    tensors = {
        "f64": odd,
        "f32": odd.T.astype(np.float32),
        "f16": np.array([0.1], np.float16),
        "i64": np.array([[1 << 62]]),
        "i32": np.array([-1], np.int32),
        "none": np.zeros((0, 2, 0, 8), np.float32),
        "other_end": np.array([1.5, 2.5], ">f4"),
        "scalar": np.float32(3),
    }
    data = encode(DOCUMENT, {name: np.asarray(array) for name, array in tensors.items()})
    found = load(data)
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        assert found[name].tobytes() == np.asarray(array).astype(found[name].dtype).tobytes(), name
        assert found[name].shape == np.shape(array), name
    (tmp_path / "file").write_bytes(data)
    with safe_open(tmp_path / "file", framework="numpy") as file:
        assert json.loads(file.metadata()["kvproof"]) == DOCUMENT


def test_the_data_start_on_a_multiple_of_8_and_large_elements_come_first():
    for length in range(9):
        data = encode(
            {"id": 1, "x": "x" * length}, {"b": np.zeros(3, np.float32), "c": np.zeros(1), "a": np.zeros(1, np.int32)}
        )
        (header,) = struct.unpack_from("<Q", data)
        assert header % 8 == 0
        entries = read(data).entries
        assert sorted(entries, key=lambda name: entries[name].begin) == ["c", "a", "b"]


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.complex64, object, "U3"])
def test_an_array_that_nobody_reads_is_the_adapters_fault(dtype):
    with pytest.raises(TypeError, match="logits are"):
        encode({"id": 1}, {"logits": np.zeros(1, dtype)})


def test_text_that_is_no_unicode_is_sent_as_what_can_be_said():
    assert read(encode({"id": 1, "x": "a\udc80b"})).document == {"id": 1, "x": "a?b"}


def test_a_nan_is_never_sent_as_json():
    with pytest.raises(ValueError):
        encode({"id": 1, "x": float("nan")})


def test_every_truncation_is_found():
    data = encode(DOCUMENT, {"a": np.zeros(3, np.float32)})
    for length in range(1, len(data)):
        with pytest.raises(BrokenMessage, match="ends .* bytes early"):
            read(data[:length])


@pytest.mark.parametrize("length", [100_000_001, 1 << 40, (1 << 64) - 1, int.from_bytes(b"Welcome ", "little")])
def test_a_giant_header_is_refused_before_it_is_read(length):
    asked = []

    def reading(count: int) -> bytes:
        asked.append(count)
        return struct.pack("<Q", length)

    with pytest.raises(BrokenMessage, match=f"a header of {length} bytes"):
        read_message(reading)
    assert asked == [8]


def test_a_giant_tensor_is_refused_before_it_is_read():
    header = with_tensor(shape=[1 << 40], data_offsets=[0, 4 << 40])
    with pytest.raises(BrokenMessage, match="a message of 4398046511"):
        read(message(header))


def test_the_limit_is_exact():
    data = encode(DOCUMENT, {"a": np.zeros(3, np.float32)})
    assert read(data, len(data)).document == DOCUMENT
    with pytest.raises(BrokenMessage, match=f"a message of {len(data)} bytes, expected at most {len(data) - 1}"):
        read(data, len(data) - 1)


BROKEN_HEADERS = {
    "no json": b"Welcome to the engine",
    "no utf-8": b'{"__metadata__": {"kvproof": "\xff"}}',
    "no object": b"[1]",
    "a key twice": b'{"__metadata__": {"kvproof": "{}"}, "__metadata__": {"kvproof": "{}"}}',
    "deep": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no metadata": {"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}},
    "another key": {"__metadata__": {"other": "{}"}},
    "two keys": {"__metadata__": {"kvproof": "{}", "other": ""}},
    "no text": {"__metadata__": {"kvproof": {}}},
    "document no json": {"__metadata__": {"kvproof": "hello"}},
    "document no object": {"__metadata__": {"kvproof": "7"}},
    "document twice": {"__metadata__": {"kvproof": '{"id": 1, "id": 2}'}},
    "document nan": {"__metadata__": {"kvproof": '{"id": NaN}'}},
    "document surrogate": {"__metadata__": {"kvproof": '{"id": "\ud800"}'}},
    "document long number": {"__metadata__": {"kvproof": '{"id": ' + "9" * 5000 + "}"}},
    "unknown dtype": with_tensor(dtype="F8_E4M3"),
    "dtype a list": with_tensor(dtype=["F32"]),
    "no dtype": with_tensor(dtype=None),
    "unknown field": with_tensor(order="C"),
    "negative extent": with_tensor(shape=[-1]),
    "extent true": with_tensor(shape=[True]),
    "extent 1.0": with_tensor(shape=[1.0]),
    "shape a number": with_tensor(shape=1),
    "many extents": with_tensor(shape=[1] * 65),
    "one offset": with_tensor(data_offsets=[0]),
    "offsets backwards": with_tensor(data_offsets=[4, 0]),
    "wrong size": with_tensor(shape=[2]),
    "a hole": with_tensor(data_offsets=[4, 8]),
    "overlap": with_tensor() | {"b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}},
}


@pytest.mark.parametrize("what", BROKEN_HEADERS)
def test_what_is_no_message_is_said_to_be_none(what):
    with pytest.raises(BrokenMessage):
        read(message(BROKEN_HEADERS[what], b"\0" * 8))
