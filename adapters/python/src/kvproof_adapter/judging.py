"""Runs `kvproof check` and reads its lines. Whatever is not a verdict on every law that was asked for is NoVerdict."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERDICTS = ("pass", "fail", "not_covered", "nothing_compared")
TAIL = 2000  # characters of kvproof's standard error in a message


class NoVerdict(Exception):
    """kvproof did not judge; the message says what it did instead."""


@dataclass(frozen=True)
class LawVerdict:
    """One line of `kvproof check --report jsonl`."""

    law: str
    verdict: str
    line: dict[str, Any]

    def summary(self) -> str:
        """How much was judged, and what was not."""
        said = f"{self.line.get('traces', 0)} traces, {self.line.get('rows', 0)} rows compared"
        if "worst" in self.line:
            said += f", worst {float(self.line['worst']):.3g} of the bound"  # "inf" and "nan" come as text
        return said + (f"; not covered: {self.not_covered()}" if self.line.get("not_covered") else "")

    def not_covered(self) -> str:
        return ", ".join(f"{reason} ({traces} traces)" for reason, traces in self.line.get("not_covered", {}).items())

    def failure(self) -> str:
        """The smallest failing trace, what is wrong in it, and the command that replays it."""
        text = f"{self.law}: {self.line.get('failed')} of {self.line.get('traces')} traces fail"
        for case in self.line.get("failures", []):
            text += f"; the smallest form of the first:\n{case.get('reason', '')}"
            for finding in case.get("findings", [])[:1]:
                text += f"{finding['kind']} at step {finding['step']}: {finding['message']}\n"
            text += f"replay: {case.get('replay')}"
        return text


def law_names(binary: str) -> list[str]:
    """All laws that this kvproof knows."""
    done = _run([binary, "check", "--list"], None)
    names = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    if done.returncode != 0 or not names:
        raise NoVerdict(f"{binary} check --list: exit {done.returncode}, {len(names)} laws{_tail(done.stderr)}")
    return names


def check(
    binary: str, backend: str, laws: Sequence[str], arguments: Sequence[str], folder: Path
) -> dict[str, LawVerdict]:
    """The verdict on each of these laws; `arguments` are further ones of `kvproof check`, `folder` is where it runs."""
    only = [word for law in laws for word in ("--only", law)]
    done = _run([binary, "check", "--backend", backend, "--report", "jsonl", *only, *arguments], folder)
    if done.returncode not in (0, 1):
        raise NoVerdict(f"exit {done.returncode}{_meaning(done)}{_tail(done.stderr)}")
    found = [_verdict(line) for line in done.stdout.splitlines()]
    verdicts = {each.law: each for each in found}
    if sorted(each.law for each in found) != sorted(laws):
        missing, more = set(laws) - set(verdicts), set(verdicts) - set(laws)
        raise NoVerdict(
            f"{len(found)} lines for {len(laws)} laws; missing {sorted(missing)}, not asked for {sorted(more)}"
        )
    words = {each.verdict for each in found}
    if (done.returncode == 1) != ("fail" in words) or not words & {"pass", "fail"}:
        raise NoVerdict(f"exit {done.returncode} does not go with the verdicts {sorted(words)}{_tail(done.stderr)}")
    return verdicts


def _verdict(line: str) -> LawVerdict:
    try:
        found = json.loads(line)
        law, verdict = found["law"], found["verdict"]
    except (ValueError, TypeError, KeyError) as error:
        raise NoVerdict(f"no report line: {line[:200]}") from error
    if verdict not in VERDICTS:
        raise NoVerdict(f"{law}: unknown verdict {verdict!r}")
    return LawVerdict(law, verdict, found)


def _meaning(done: subprocess.CompletedProcess[str]) -> str:
    """Why nothing was judged, as far as the lines say it."""
    try:
        reasons = sorted({each.not_covered() for each in map(_verdict, done.stdout.splitlines())} - {""})
    except NoVerdict:
        return ""
    return f", nothing was judged; not covered: {'; '.join(reasons)}" if reasons else ""


def _run(command: list[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    pipe = subprocess.PIPE
    try:
        return subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
        )
    except OSError as error:
        raise NoVerdict(f"cannot run {command[0]}: {error.strerror}") from error


def _tail(stderr: str) -> str:
    return f"\n{stderr.strip()[-TAIL:]}" if stderr.strip() else ""
