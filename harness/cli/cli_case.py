"""What the tests of the command share: running it as a process, and files for it made from nothing but the formats' text.

The environment names the command (KVPROOF) and the project's folder (KVPROOF_SOURCE_DIR).
"""

import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

KVPROOF = os.environ["KVPROOF"]
GOLDEN = Path(os.environ["KVPROOF_SOURCE_DIR"]) / "golden"
SIZES = {"F64": 8, "F32": 4, "I64": 8, "U8": 1}
LETTERS = {"F64": "d", "F32": "f", "I64": "q", "U8": "B"}


class Tensor:
    """dtype, shape and bytes; numbers by flat index."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), bytearray(data)

    @classmethod
    def of(cls, dtype, shape, numbers):
        return cls(dtype, shape, struct.pack(f"<{len(numbers)}{LETTERS[dtype]}", *numbers))

    def numbers(self):
        return list(struct.unpack(f"<{len(self.data) // SIZES[self.dtype]}{LETTERS[self.dtype]}", self.data))

    def __setitem__(self, index, number):
        size = SIZES[self.dtype]
        self.data[index * size : (index + 1) * size] = struct.pack("<" + LETTERS[self.dtype], number)


def read_container(path):
    """(metadata, {name: Tensor}) of a safetensors file."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    metadata = header.pop("__metadata__", {})
    return metadata, {k: Tensor(v["dtype"], v["shape"], body[slice(*v["data_offsets"])]) for k, v in header.items()}


def write_container(path, metadata, tensors):
    header, body = {"__metadata__": metadata} if metadata else {}, b""
    for name in sorted(tensors, key=lambda n: (-SIZES[tensors[n].dtype], n)):
        tensor = tensors[name]
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [len(body), len(body) + len(tensor.data)]}
        body += tensor.data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


class Run:
    def __init__(self, arguments, process):
        self.arguments, self.code, self.out, self.err = arguments, process.returncode, process.stdout, process.stderr

    @property
    def last(self):
        return self.out.splitlines()[-1] if self.out else ""

    def __str__(self):
        return f"kvproof {' '.join(self.arguments)}\nexit {self.code}\n--- out\n{self.out[-3000:]}\n--- err\n{self.err[-3000:]}"


class CliCase(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="kvproof-cli-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_kvproof(self, *arguments, **options):
        arguments = [str(a) for a in arguments]
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 600} | options
        return Run(arguments, subprocess.run([KVPROOF, *arguments], text=True, check=False, **options))

    def expect(self, code, *arguments, out=(), err=(), **options):
        """Runs the command and looks at its exit code and at words of both streams (a string, or several)."""
        run = self.run_kvproof(*arguments, **options)
        self.assertEqual(run.code, code, run)
        for words, text in ((out, run.out), (err, run.err)):
            for word in [words] if isinstance(words, str) else words:
                self.assertIn(word, text, run)
        return run

    def expect_complaint(self, code, *arguments, says=()):
        """A complaint is one line on standard error, and nothing on standard output."""
        run = self.expect(code, *arguments, err=says)
        self.assertEqual(run.out, "", run)
        self.assertEqual(len(run.err.splitlines()), 1, run)
        return run

    def model_of(self, golden, name="model"):
        """A copy of a golden folder's model without its goldens."""
        target = self.folder / name
        target.mkdir()
        for file in (GOLDEN / golden).iterdir():
            if not file.name.endswith(".golden.safetensors"):
                shutil.copy(file, target)
        return target

    def golden(self, name="seed/seed-float64", folder=None):
        """(document, tensors, path): the parts of a golden and where to put a changed one, with its model beside it."""
        metadata, tensors = read_container(GOLDEN / f"{name}.golden.safetensors")
        folder = folder or self.model_of(name.split("/")[0])
        return json.loads(metadata["kvproof"]), tensors, folder / "changed.golden.safetensors"

    def write_golden(self, path, document, tensors):
        write_container(path, {"kvproof": json.dumps(document)}, tensors)
        return path

    def write_trace(self, steps, name="a.trace.json", run=None, models=None):
        models = models or {"main": {"config": CONFIG, "seed": 1}}
        path = self.folder / name
        path.write_text(json.dumps({"format": "kvproof-trace", "version": [1, 0], "models": models, "run": run or {}, "trace": steps}))
        return path


CONFIG = {"model_type": "gpt2", "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "n_embd": 20, "n_head": 5, "n_layer": 2,
          "n_positions": 32, "vocab_size": 29, "initializer_range": 0.12, "tie_word_embeddings": True}

# Each op once, with pads, a refusal, a window and an eos.
EVERY_OP = [
    {"op": "new", "cache": "a", "kind": "dynamic"},
    {"op": "new", "cache": "w", "kind": "static_sliding_window", "capacity": 8, "window": 3},
    {"op": "forward", "cache": "a", "input_ids": [[0, 9, 6], [4, 9, 6]], "attention_mask": [[0, 1, 1], [1, 1, 1]]},
    {"op": "forward", "cache": "a", "input_ids": [[7], [7]], "attention_mask": [[1], [1]]},
    {"op": "forward", "cache": "a", "input_ids": [[7], [8]], "attention_mask": [[0, 1, 1, 1], [1, 1, 1, 1]], "logits": "last"},
    {"op": "forward", "cache": "w", "input_ids": [[1, 2, 3, 4, 5]]},
    {"op": "clone", "cache": "b", "from": "a"},
    {"op": "gather", "cache": "b", "rows": [1, 0]},
    {"op": "crop", "cache": "b", "length": 3},
    {"op": "save", "cache": "b", "to": "s"},
    {"op": "reset", "cache": "b"},
    {"op": "load", "cache": "b", "from": "s"},
    {"op": "read", "cache": "b", "layer": 1},
    {"op": "read", "cache": "w", "layer": 0},
    {"op": "length", "cache": "b", "expect": 3},
    {"op": "drop", "cache": "b"},
    {"op": "forward", "cache": None, "input_ids": [[4, 9, 6, 7]]},
    {"op": "generate", "kind": "static", "capacity": 12, "input_ids": [[4, 9, 6]], "max_new_tokens": 4, "eos_token_id": 28},
]
