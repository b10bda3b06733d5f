"""Prints a golden file: each step's op, and beside it each tensor's shape and first value. Needs numpy only."""

import hashlib
import json
import struct
import sys
from pathlib import Path

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U8": "u1"}


def read_golden(path):
    """(document, {name: array}); any malformed byte raises, for a wrong golden would blame a right engine."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        raise ValueError(f"{path}: header of {length} bytes, but only {len(data) - 8} follow")
    header = json.loads(data[8 : 8 + length])
    document = json.loads(header.pop("__metadata__")["kvproof"])
    if document["format"] != "kvproof-golden" or document["version"][0] != 1:
        raise ValueError(f"{path}: {document['format']} {document['version']}, expected kvproof-golden 1")
    body, end, tensors = data[8 + length :], 0, {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        if begin != end:
            raise ValueError(f"{path}: {name} begins at {begin}, expected {end}: a hole or an overlap")
        tensors[name] = np.frombuffer(body[begin:stop], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        end = stop
    if end != len(body):
        raise ValueError(f"{path}: {len(body)} bytes of data, expected {end}")
    return document, tensors


def weights_sha256(folder):
    """What `weights_sha256` of the document must equal before any number is compared."""
    shards = sorted(Path(folder).glob("model*.safetensors"), key=lambda shard: shard.name.encode())
    return hashlib.sha256(b"".join(shard.read_bytes() for shard in shards)).hexdigest()


def show(path):
    document, tensors = read_golden(path)
    if document["weights_sha256"] != weights_sha256(Path(path).parent):
        raise ValueError(f"{path}: made from other weights than those in its folder")
    print(document["suite"])
    for index, step in enumerate(document["trace"]):
        print(index, step["op"], step.get("error", "accepted"))
        for name in (name for name in tensors if name.startswith(f"step.{index}.")):
            first = "".join(f" {value:.9g}" for value in tensors[name].ravel()[:1].tolist())
            print(f"  {name} {tensors[name].shape!s}".replace(",)", ")") + first)


if __name__ == "__main__":
    for golden in sys.argv[1:]:
        show(golden)
