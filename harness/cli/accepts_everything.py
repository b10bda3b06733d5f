"""kvproof serve, but for its refusals: each is answered as if the call had been carried out. For the tests: an engine that checks nothing."""

import json
import struct
import subprocess
import sys


def message(stream):
    """(bytes, document) of one message, or nothing at the end."""
    length = stream.read(8)
    if len(length) < 8:
        return None
    header = stream.read(struct.unpack("<Q", length)[0])
    fields = json.loads(header)
    document = json.loads(fields.pop("__metadata__")["kvproof"])
    return length + header + stream.read(max((tensor["data_offsets"][1] for tensor in fields.values()), default=0)), document


def written(document):
    header = json.dumps({"__metadata__": {"kvproof": json.dumps(document)}}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header


def main():
    engine = subprocess.Popen([sys.argv[1], "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    while request := message(sys.stdin.buffer):
        engine.stdin.write(request[0])
        engine.stdin.flush()
        reply, document = message(engine.stdout)
        sys.stdout.buffer.write(written({"id": document["id"], "ok": {"length": 0}}) if "error" in document else reply)
        sys.stdout.buffer.flush()


main()
