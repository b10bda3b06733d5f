#!/usr/bin/env python3
"""Backends behind a pipe, seen from the command line: pipe_test.py KVPROOF MISBEHAVING_CHILD SOURCE_FOLDER

The embedded engine behind the pipe gives the same report lines as in process; a child that misbehaves fails its case in words
(exit 1); a command that cannot be judged is exit 2.
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

KVPROOF, CHILD, SOURCE = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
GOLDENS = sorted(str(p) for p in (SOURCE / "golden").rglob("*.golden.safetensors"))
CONFIG = {"n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 8, "vocab_size": 2, "initializer_range": 0.12}
FORWARD = {"op": "forward", "cache": "a", "input_ids": [[1]]}
FAILURES = []


def expect(holds, what):
    if not holds:
        FAILURES.append(what)


def run(*arguments):
    done = subprocess.run([KVPROOF, *arguments], capture_output=True, text=True, timeout=600, check=False)
    return done.returncode, done.stdout, done.stderr


def numbers(text):
    """The report lines without the words that name the backend."""
    lines = [json.loads(line) for line in text.splitlines()]
    return [{k: v for k, v in line.items() if k not in ("backend", "replay")} for line in lines]


def same_numbers(backend):
    told = ["golden", "verify", *GOLDENS, "--report", "jsonl", "--backend"]
    code, inside, _ = run(*told, backend)
    piped_code, piped, errors = run(*told, f"exec:'{KVPROOF}' serve --backend {backend}")
    expect(code == piped_code == 0, f"{backend}: exit {code} in process, {piped_code} through the pipe: {errors}")
    expect(len(numbers(inside)) >= len(GOLDENS) > 0 and numbers(inside) == numbers(piped), f"{backend}: other lines through the pipe")


def verdict(trace_file, mode, *words, timeout=60):
    code, out, err = run("replay", trace_file, "--timeout", str(timeout), "--backend", f"exec:'{CHILD}' {mode}")
    expect(code == 1, f"{mode}: exit {code}, expected 1: {out}{err}")
    for word in words:
        expect(word in out, f"{mode}: \"{word}\" is not in: {out}")


def no_backend(command, *words, timeout=60):
    code, out, err = run("golden", "verify", GOLDENS[0], "--timeout", str(timeout), "--backend", f"exec:{command}")
    expect(code == 2 and out == "", f"{command}: exit {code}, expected 2: {out}{err}")
    for word in words:
        expect(word in err, f"{command}: \"{word}\" is not in: {err}")


def lost_on_the_way(trace_file, mode, *words):
    code, out, err = run("replay", trace_file, "--backend", f"exec:'{CHILD}' {mode}")
    expect(code == 2, f"{mode}: exit {code}, expected 2: {out}{err}")
    for word in words:
        expect(word in out, f"{mode}: \"{word}\" is not in: {out}")


def children_of(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def wait_until(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def ends_with_us(sent):
    """A child that does not even notice the end of its input does not outlive a kvproof that is interrupted."""
    with subprocess.Popen([KVPROOF, "golden", "verify", GOLDENS[0], "--backend", f"exec:'{CHILD}' deaf"], stdout=subprocess.DEVNULL) as process:
        expect(wait_until(lambda: children_of(process.pid)), f"{sent.name}: no child started")
        child = (children_of(process.pid) or [0])[0]
        process.send_signal(sent)
        code = process.wait(timeout=30)
    expect(code == -sent, f"{sent.name}: ended with {code}, expected {-sent}")
    expect(child != 0 and wait_until(lambda: not runs(child)), f"{sent.name}: the child still runs")


def next_file_passes(folder, misdeed, code):
    """The first file's models lie in a folder that is gone when the child that ended over it is replaced."""
    first, second = write_trace(folder, "two_models", ["main", "other"]), write_trace(folder, "one_model")
    ended = pathlib.Path(folder) / "ended"
    ends_once = f"if [ -e '{ended}' ]; then exec '{KVPROOF}' serve; fi; touch '{ended}'; exec '{CHILD}' {misdeed}"
    got, out, err = run("replay", first, second, "--backend", f"exec:sh -c \"{ends_once}\"")
    ended.unlink()
    expect(got == code, f"the file after {misdeed}: exit {got}, expected {code}: {out}{err}")
    expect(f"ok   {second}" in out, f"the file after {misdeed} does not pass: {out}")


def write_trace(folder, name="x", models=("main",)):
    path = pathlib.Path(folder) / f"{name}.trace.json"
    path.write_text(json.dumps({"format": "kvproof-trace", "version": [1, 0], "models": {model: {"config": CONFIG, "seed": 3} for model in models}, "run": {},
                                "trace": [{"op": "new", "cache": "a", "kind": "dynamic"}, FORWARD, {"op": "length", "cache": "a"}]}),
                    encoding="utf-8")
    return str(path)


def main():
    same_numbers("engine")
    same_numbers("oracle")
    with tempfile.TemporaryDirectory() as folder:
        trace = write_trace(folder)
        verdict(trace, "crash forward", "crashed: the process was killed by signal 11 (", "asked for forward")
        verdict(trace, "exit3 forward", "crashed: the process exited with code 3", "cannot go on")
        verdict(trace, "hang forward", "timed_out: no whole reply to forward", "within 3 s", timeout=3)
        verdict(trace, "noise forward", "protocol_error: ", "does something print to standard output?")
        verdict(trace, "nan", "non_finite", "logit 1 is nan")
        verdict(trace, "wrong_id forward", "protocol_error: ", "it has id 7")
        next_file_passes(folder, "crash forward", 1)
        next_file_passes(folder, "exit3 open:2", 2)
        lost_on_the_way(trace, "exit3 open", "exited with code 3", "cannot go on")
    ends_with_us(signal.SIGINT)
    ends_with_us(signal.SIGTERM)
    no_backend("no-such-command", "cannot start \"no-such-command\": ")
    no_backend("true", "exited with code 0 while it was asked for hello")
    no_backend("cat", "exactly one of ok, error and unsupported")
    no_backend(f"'{CHILD}' deaf", "no whole reply to hello", timeout=1)
    no_backend(f"'{CHILD}' exit3 hello", "exited with code 3", "cannot go on")
    print("\n".join(FAILURES) or "pipe: all as expected")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
