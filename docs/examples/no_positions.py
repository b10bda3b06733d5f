"""An engine with a fault, to see what a failing report looks like: it forgets the position ids it is given.

It stands between kvproof and `kvproof serve` and passes every message on, after taking `position_ids` out of it. A message is
one safetensors container whose metadata hold a JSON document (docs/pipe_protocol.md).
"""

import json
import struct
import subprocess
import sys


def read_message(stream):
    """(header, data) or None at the end of the stream."""
    start = stream.read(8)
    if len(start) < 8:
        return None
    header = json.loads(stream.read(struct.unpack("<Q", start)[0]))
    ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    return header, stream.read(max(ends, default=0))


def write_message(stream, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    stream.write(struct.pack("<Q", len(text)) + text + data)
    stream.flush()


engine = subprocess.Popen(["kvproof", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
while message := read_message(sys.stdin.buffer):
    document = json.loads(message[0]["__metadata__"]["kvproof"])
    document.pop("position_ids", None)  # the fault
    message[0]["__metadata__"]["kvproof"] = json.dumps(document)
    write_message(engine.stdin, *message)
    write_message(sys.stdout.buffer, *read_message(engine.stdout))
