"""Runs `kvproof check` and reads its lines. Whatever is not a verdict on every law that was asked for is NoVerdict."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERDICTS = ("pass", "fail", "known_failing", "not_covered", "nothing_compared")
JUDGED = {"pass", "fail", "known_failing"}
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
        text = (
            f"{self.law}: {self.line.get('failed')} of {self.line.get('traces')} traces fail; in the smallest form:\n"
        )
        for case in self.line.get("failures", []):
            text += str(case.get("reason", ""))
            for finding in case.get("findings", [])[:1]:
                text += f"{finding['kind']} at step {finding['step']}: {finding['message']}\n"
            text += f"replay: {case.get('replay')}\n"
        return text.rstrip()

    def known(self) -> str:
        """Why its failures are expected, as the list of known failures says."""
        return "; ".join(str(each.get("reason")) for each in self.line.get("known", []))


@dataclass(frozen=True)
class Verdicts:
    """What one run said: a verdict for each law, and what in the list of known failures, if there is one, is not so."""

    laws: dict[str, LawVerdict]
    problems: list[str]
    rewrite: str  # the command that writes the list anew


def law_names(binary: str) -> list[str]:
    """All laws that this kvproof knows."""
    done = _run([binary, "check", "--list"], None)
    names = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    if done.returncode != 0 or not names:
        raise NoVerdict(f"{binary} check --list: exit {done.returncode}, {len(names)} laws{_tail(done.stderr)}")
    return names


def check(binary: str, backend: str, laws: Sequence[str], arguments: Sequence[str], folder: Path) -> Verdicts:
    """The verdict on each of these laws; `arguments` are further ones of `kvproof check`, `folder` is where it runs."""
    if not laws:
        raise NoVerdict("no law is chosen")
    only = [word for law in laws for word in ("--only", law)]
    done = _run([binary, "check", "--backend", backend, "--report", "jsonl", *only, *arguments], folder)
    if done.returncode not in (0, 1):
        raise NoVerdict(f"exit {done.returncode}{_meaning(done)}{_tail(done.stderr)}")
    lines = [_object(line) for line in done.stdout.splitlines()]
    found = [_verdict(line) for line in lines if "known_failing" not in line]
    verdicts = {each.law: each for each in found}
    if sorted(each.law for each in found) != sorted(laws):
        missing, more = set(laws) - set(verdicts), set(verdicts) - set(laws)
        raise NoVerdict(
            f"{len(found)} lines for {len(laws)} laws; missing {sorted(missing)}, not asked for {sorted(more)}"
        )
    words = {each.verdict for each in found}
    lists = [line for line in lines if "known_failing" in line]
    problems = [str(problem.get("message")) for line in lists for problem in line.get("problems", [])]
    if (done.returncode == 1) != ("fail" in words or bool(problems)) or not words & JUDGED:
        raise NoVerdict(f"exit {done.returncode} does not go with the verdicts {sorted(words)}{_tail(done.stderr)}")
    return Verdicts(verdicts, problems, "".join(str(line.get("rewrite", "")) for line in lists))


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise NoVerdict(f"no report line: {line[:200]}")
    return found


def _verdict(line: dict[str, Any]) -> LawVerdict:
    law, verdict = line.get("law"), line.get("verdict")
    if not isinstance(law, str) or verdict not in VERDICTS:
        raise NoVerdict(f"no report line: law {law!r}, verdict {verdict!r}")
    return LawVerdict(law, verdict, line)


def _meaning(done: subprocess.CompletedProcess[str]) -> str:
    """Why nothing was judged, as far as the lines say it."""
    try:
        lines = [_object(line) for line in done.stdout.splitlines()]
        reasons = sorted({_verdict(line).not_covered() for line in lines if "known_failing" not in line} - {""})
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
