"""Confirms the findings by scripts that need no kvproof, and keeps what they said.

python -m kvproof_transformers.findings FOLDER KVPROOF ATTENTION [--write]

Emits the script of each FOLDER/*.trace.json and runs it on the Transformers that is installed here. Compares with
FOLDER/confirmed.json what was shown and what was not; --write keeps it there and writes FOLDER/../findings.md anew.
Exit codes: 0 as kept, 1 not, 2 nothing is kept of this release and attention.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

Said = dict[str, str]  # finding -> the last line of its script

SHOWN = "SHOWN: "
TITLE = """# What was found in Hugging Face Transformers

Written by `script/backend transformers --findings --write`; do not edit. Each finding is a legal call that goes wrong
or a misuse that nothing refuses ([the contract](../../docs/contract.md)), in the fewest calls that show it. A script
needs only torch and Transformers: `kvproof replay --emit transformers FILE` writes it. Below stands what it said on
each release and attention; on those not named it did not show the finding.
"""


def emit(kvproof: str, traces: list[Path], into: Path) -> list[Path]:
    scripts = []
    for trace in traces:
        command = [kvproof, "replay", "--emit", "transformers", str(trace)]
        script = into / trace.name.replace(".trace.json", ".py")
        script.write_bytes(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        scripts.append(script)
    return scripts


def run(scripts: list[Path], attention: str) -> Said:
    command = [sys.executable, "-m", "kvproof_transformers.scripts", attention, *map(str, scripts)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    said = {each["script"].removesuffix(".py"): each for each in map(json.loads, lines)}
    for name, each in said.items():
        if (each["code"] == 0) != each["said"].startswith(SHOWN):
            raise SystemExit(f"{name}: exit code {each['code']}, but it says {each['said']!r}")
    return {name: each["said"] for name, each in said.items()}


def shown(said: Said) -> set[str]:
    return {name for name, line in said.items() if line.startswith(SHOWN)}


def compare(kept: Said, said: Said) -> list[str]:
    lost, new = shown(kept) - shown(said), shown(said) - shown(kept)
    return [f"no longer shown: {name}: {said.get(name, 'no such trace')}" for name in sorted(lost)] + [
        f"not shown before: {name}: {said[name]}" for name in sorted(new)
    ]


def page(folder: Path, confirmed: dict[str, Said]) -> str:
    """findings.md: what was found where, and what its script says."""
    entries = json.loads((folder / "index.json").read_text())
    everywhere = f"all: {', '.join(confirmed)}; torch {version('torch').split('+')[0]}\n"
    lines = [TITLE, everywhere, "| | finding | law | class | shown on |", "| --- | --- | --- | --- | --- |"]
    for number, entry in enumerate(entries, 1):
        law, kind, _ = of_trace(folder, entry["name"])
        where = [here for here, said in confirmed.items() if said.get(entry["name"], "").startswith(SHOWN)]
        lines.append(f"| {number} | {entry['name']} | `{law}` | {kind} | {releases(where, confirmed)} |")
    lines.append("")
    for number, entry in enumerate(entries, 1):
        lines += section(folder, number, entry, confirmed)
    return "\n".join(lines)


def of_trace(folder: Path, name: str) -> tuple[str, str, list[dict[str, Any]]]:
    """The law, what is found, and the steps of a finding's trace."""
    trace = json.loads((folder / f"{name}.trace.json").read_text())
    run = trace["run"]
    return run["law"], " ".join(run[key] for key in ("finding", "code") if key in run), trace["trace"]


def releases(where: list[str], confirmed: dict[str, Said]) -> str:
    """`all`, or the releases, with the attention where it is one of two."""
    if set(where) == set(confirmed):
        return "all"
    known: dict[str, list[str]] = {}
    for here in confirmed:
        known.setdefault(here.split()[0], []).append(here)
    words = []
    for release, both in known.items():
        shown_here = [here for here in both if here in where]
        words += [release] if shown_here == both else shown_here
    return ", ".join(words)


def section(folder: Path, number: int, entry: dict[str, str], confirmed: dict[str, Said]) -> list[str]:
    name = entry["name"]
    law, kind, steps = of_trace(folder, name)
    lines = [f"## {number}. {name}\n", f"{entry['what']}\n", f"Law `{law}`, {kind}.", "```"]
    lines += [json.dumps(step, ensure_ascii=False) for step in steps]
    lines += ["```", f"`kvproof replay --emit transformers adapters/transformers/findings/{name}.trace.json`\n"]
    lines += ["| Transformers | the script says |", "| --- | --- |"]
    for words, where in by_words(name, confirmed):
        lines.append(f"| {releases(where, confirmed)} | {words.replace('|', chr(92) + '|')} |")
    return [*lines, ""]


def by_words(name: str, confirmed: dict[str, Said]) -> list[tuple[str, list[str]]]:
    """What the script says, and the releases on which it says so."""
    found: dict[str, list[str]] = {}
    for where, said in confirmed.items():
        if said.get(name, "").startswith(SHOWN):
            found.setdefault(said[name].removeprefix(SHOWN), []).append(where)
    return list(found.items())


def ordered(confirmed: dict[str, Said]) -> dict[str, Said]:
    def key(where: str) -> tuple[Any, ...]:
        release, attention = where.split()
        return tuple(map(int, release.split("."))), attention

    return {where: confirmed[where] for where in sorted(confirmed, key=key)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kvproof_transformers.findings")
    parser.add_argument("folder", type=Path)
    parser.add_argument("kvproof")
    parser.add_argument("attention", choices=["eager", "sdpa"])
    parser.add_argument("--write", action="store_true", help="keep what was said, and write findings.md anew")
    args = parser.parse_args()
    here, kept_in = f"{version('transformers')} {args.attention}", args.folder / "confirmed.json"
    traces = sorted(args.folder.glob("*.trace.json"))
    with tempfile.TemporaryDirectory() as scripts:
        said = run(emit(args.kvproof, traces, Path(scripts)), args.attention)
    confirmed: dict[str, Said] = json.loads(kept_in.read_text()) if kept_in.exists() else {}
    if args.write:
        confirmed = ordered(confirmed | {here: said})
        kept_in.write_text(json.dumps(confirmed, indent=1, ensure_ascii=False) + "\n")
        (args.folder.parent / "findings.md").write_text(page(args.folder, confirmed))
    if here not in confirmed:
        print(f"nothing is kept of {here}; {len(shown(said))} of {len(traces)} findings are shown on it")
        return 2
    differences = compare(confirmed[here], said)
    print("\n".join([*differences, f"{here}: {len(shown(said))} of {len(traces)} findings shown, each by its script"]))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
