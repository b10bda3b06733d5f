"""Golden files as bytes. The stock writer orders tensors otherwise, and metadata keys at random; ours is fixed."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np

DTYPES = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "I64": np.dtype("<i8"), "U8": np.dtype("u1")}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def encode(document, tensors):
    """Bytes of a container: tensors by dtype size descending, then by name; data start 8-byte aligned."""
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name.encode()))
    header = {"__metadata__": {"kvproof": json.dumps(document, sort_keys=True)}}
    end = 0
    for name in order:
        begin, end = end, end + tensors[name].nbytes
        header[name] = {
            "dtype": NAMES[tensors[name].dtype],
            "shape": list(tensors[name].shape),
            "data_offsets": [begin, end],
        }
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + b"".join(tensors[name].tobytes() for name in order)


def read(path):
    """(document, tensors) of a golden file of this major version."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    document = json.loads(header.pop("__metadata__")["kvproof"])
    if document.get("format") != "kvproof-golden" or document["version"][0] != 1:
        found = document.get("format"), document.get("version")
        raise ValueError(f"{path}: found {found}, expected kvproof-golden version 1")
    return document, {name: _tensor(data[8 + length :], entry) for name, entry in header.items()}


def _tensor(data, entry):
    begin, end = entry["data_offsets"]
    return np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])


def write(path, document, tensors):
    """Writes beside the target and renames, so that a broken run leaves no half file."""
    part = Path(f"{path}.part")
    part.write_bytes(encode(document, tensors))
    part.replace(path)


def weights_sha256(folder):
    """Hash of model.safetensors, or of all shards in byte order of their names."""
    digest = hashlib.sha256()
    for shard in sorted(Path(folder).glob("model*.safetensors"), key=lambda path: path.name.encode()):
        digest.update(shard.read_bytes())
    return digest.hexdigest()
