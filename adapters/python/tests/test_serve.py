"""An adapter as a process: clean output whatever prints, exit codes, limits."""

import struct
import time

import numpy as np
import pytest
from conftest import HELLO

from kvproof_adapter.message import encode

PRINTING = """
import ctypes, os, subprocess
class Printing(Counting):
    def forward(self, model, cache, call):
        print("python says")
        sys.stdout.write("no newline")
        os.write(1, b"descriptor says\\n")
        libc.puts(b"c says"); libc.fflush(None)
        subprocess.run(["sh", "-c", "echo a process says; cat"], check=True)
        return super().forward(model, cache, call)
libc = ctypes.CDLL(None)
print("printed before")
serve(Printing())
print("printed after")
"""
SAYS = ["python says", "no newline", "descriptor says", "c says", "a process says", "printed before", "printed after"]


def test_nothing_that_an_engine_prints_gets_into_the_protocol(start):
    child = start(PRINTING)
    child.ask(**HELLO)
    child.ask(op="open", model="main", folder="/m")
    assert child.ask(op="forward", cache=None, input_ids=[[1]]) == {"ok": {}}
    assert child.ask(op="close") == {"ok": {}}
    code, out, err = child.end()
    assert (code, out) == (0, b"")
    assert [word for word in SAYS if word not in err] == []


def test_what_is_printed_while_the_engine_is_imported_is_kept_away_by_the_launcher(start):
    text = "import os\nos.write(1, b'welcome to the engine\\n')\nserve(Counting())\n"
    child = start(text, "-m", "kvproof_adapter")
    assert "ok" in child.ask(**HELLO)
    child.ask(op="close")
    code, out, err = child.end()
    assert (code, out) == (0, b"") and "welcome" in err


def test_without_the_launcher_such_a_greeting_comes_first(start):
    child = start("import os\nos.write(1, b'welcome to the engine\\n')\nserve(Counting())\n")
    assert child.end()[1] == b"welcome to the engine\n"


def test_the_launcher_hands_arguments_on(start):
    text = "assert sys.argv == [__file__, '--threads', '1'], sys.argv\nserve(Counting())\n"
    child = start(text, "-m", "kvproof_adapter", arguments=("--threads", "1"))
    assert "ok" in child.ask(**HELLO)
    assert child.end()[0] == 0


def test_what_was_printed_before_a_crash_is_not_lost(start):
    text = "class Dying(Counting):\n    def open(self, folder): print('last words'); os.abort()\n"
    child = start(f"import os\n{text}serve(Dying())\n")
    child.send(encode({"id": 1, "op": "open", "model": "main", "folder": ""}))
    code, out, err = child.end()
    assert (code, out) == (-6, b"") and "last words" in err


def test_a_process_that_the_engine_leaves_behind_holds_no_pipe(start):
    text = """
import subprocess
class Leaving(Counting):
    def open(self, folder):
        subprocess.Popen(["sleep", "300"], stderr=subprocess.DEVNULL, close_fds=False)  # as one started from C
        return folder
serve(Leaving())
"""
    child = start(text)
    child.ask(op="open", model="main", folder="/m")
    child.ask(op="close")
    begun = time.monotonic()
    assert child.process.stdout.read() == b""
    assert time.monotonic() - begun < 100


def test_the_end_of_the_input_means_close(start):
    child = start("serve(Counting())")
    child.ask(**HELLO)
    assert child.end() == (0, b"", "")


def test_nothing_is_read_behind_close(start):
    child = start("serve(Counting())")
    child.send(encode({"id": 1, "op": "close"}) + b"more")
    assert child.receive().document == {"id": 1, "ok": {}}
    assert child.end()[:2] == (0, b"")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x10", "the stream ends 7 bytes early"),
        (encode({"id": 1, "op": "close"})[:-1], "bytes early"),
        (struct.pack("<Q", 1 << 60), "a header of"),
        (struct.pack("<Q", 5) + b"hello", "is no JSON"),
        (encode({"id": "1", "op": "close"}), "without an integer id and an op"),
        (encode({"id": True, "op": "close"}), "without an integer id and an op"),
        (encode({"op": "close"}), "without an integer id and an op"),
        (encode({"id": 1}), "without an integer id and an op"),
    ],
)
def test_what_is_no_message_ends_it_with_3_and_the_reason(start, data, words):
    child = start("serve(Counting())")
    child.ask(**HELLO)
    child.send(data)
    code, out, err = child.end()
    assert (code, out) == (3, b"")
    assert words in err and "Traceback" not in err


def test_an_exception_of_the_engine_ends_it_with_70_and_the_traceback(start):
    child = start("serve(Counting())")
    child.ask(op="open", model="main", folder="/m")
    child.send(encode({"id": 5, "op": "forward", "cache": None, "input_ids": [[93]]}))
    code, out, err = child.end()
    assert (code, out) == (70, b"")
    assert "Traceback" in err and "ninety-three" in err


def test_a_thread_of_the_engine_does_not_keep_the_other_side_waiting(start):
    text = """
import threading, time
class Busy(Counting):
    def open(self, folder):
        threading.Thread(target=time.sleep, args=(300,)).start()
        raise KeyError("gone")
serve(Busy())
"""
    child = start(text)
    begun = time.monotonic()
    child.send(encode({"id": 1, "op": "open", "model": "main", "folder": ""}))
    assert child.process.stdout.read() == b""
    assert time.monotonic() - begun < 100


def test_an_engine_may_end_the_process(start):
    child = start("class Quitting(Counting):\n    def open(self, folder): sys.exit(5)\nserve(Quitting())\n")
    child.send(encode({"id": 1, "op": "open", "model": "main", "folder": ""}))
    assert child.end()[:2] == (5, b"")


def test_a_reply_longer_than_the_other_side_reads_is_unsupported(start):
    text = """
class Large(Counting):
    def forward(self, model, cache, call):
        return Answer(logits=np.zeros((1, 1, call.input_ids[0][0]), np.float32))
serve(Large())
"""
    child = start(text)
    child.ask(**HELLO, limits={"message_bytes": 3000})
    child.ask(op="open", model="main", folder="")
    assert child.ask(op="forward", cache=None, input_ids=[[500]]) == {"ok": {}}
    reply = child.ask(op="forward", cache=None, input_ids=[[1000]])
    assert "you read at most 3000" in reply["unsupported"]["reason"]


def test_the_bytes_of_an_array_arrive_as_they_were(start):
    text = """
odd = np.array([0, 1 << 63, 0x7FF0000000000000, 0x7FF8000000000123, 1], np.uint64).view(np.float64).reshape(1, 1, 5)
class Odd(Counting):
    def forward(self, model, cache, call):
        return Answer(logits=odd[..., ::-1] if call.use_cache else odd.astype(np.float16))
serve(Odd())
"""
    child = start(text)
    child.ask(op="open", model="main", folder="")
    _, tensors = child.ask_for_all(op="forward", cache=None, input_ids=[[1]])
    assert tensors["logits"].view(np.uint64).tolist() == [[[1, 0x7FF8000000000123, 0x7FF0000000000000, 1 << 63, 0]]]
    _, tensors = child.ask_for_all(op="forward", cache=None, input_ids=[[1]], use_cache=False)
    assert tensors["logits"].dtype == np.float16


def test_an_array_of_another_kind_ends_it_with_70(start):
    child = start(
        "class Bool(Counting):\n    def forward(self, *_): return Answer(logits=np.ones(1, bool))\nserve(Bool())\n"
    )
    child.ask(op="open", model="main", folder="")
    child.send(encode({"id": 1, "op": "forward", "cache": None, "input_ids": [[1]]}))
    code, _, err = child.end()
    assert code == 70 and "logits are bool" in err


def test_a_request_of_a_megabyte_is_read(start):
    child = start("serve(Counting())")
    child.ask(op="open", model="main", folder="")
    assert child.ask(op="forward", cache=None, input_ids=[[1] * 500_000]) == {"ok": {}}
