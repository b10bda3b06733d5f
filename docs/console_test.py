"""Runs what the documentation shows: every ```console block of README.md, CONTRIBUTING.md, golden/ and docs/.

Lines that start with "$ " are commands (a line that ends in \\ goes on in the next), what follows them is their output, both streams
together. Where output is shown it must be what comes: "…" stands for anything within a line, a line that is only "…" for any number
of lines. A comment <!-- exit N --> before the block says how its last command ends (default 0). All blocks of a page run in one
scratch copy, in which `kvproof` is the command under test and script/check judges with it and builds nothing.

The environment names the command (KVPROOF) and the project's folder (KVPROOF_SOURCE_DIR). Arguments: pages; none = all.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ["KVPROOF_SOURCE_DIR"])
KVPROOF = os.environ["KVPROOF"]
BLOCK = re.compile(r"(?:<!-- exit (?P<exit>\d+) -->\n)?^```console\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = ("script/test", "script/setup", ".ci/run", "script/golden", "script/check --real")  # build, install, or would run this very test


def pages():
    found = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "CHANGELOG.md", *SOURCE.glob("golden/*.md"), *SOURCE.glob("docs/**/*.md")]
    return sorted(page for page in found if page.exists())


def scratch_copy(folder):
    """The project as a reader has it after script/check: sources, goldens, and the command on the PATH."""
    for name in ["golden", "docs", "script", "README.md"]:
        if (SOURCE / name).is_dir():
            shutil.copytree(SOURCE / name, folder / name)
        elif (SOURCE / name).exists():
            shutil.copy(SOURCE / name, folder / name)
    (folder / "build" / "release").mkdir(parents=True)
    (folder / "build" / "release" / "kvproof").symlink_to(KVPROOF)
    check = folder / "script" / "check"
    check.rename(folder / "script" / "check.real")
    check.write_text('#!/bin/sh\nexec "$(dirname "$0")/check.real" --binary "$(command -v kvproof)" "$@"\n')
    check.chmod(0o755)


def commands_of(block):
    """[(command, lines of output shown)]"""
    commands = []
    for line in block.splitlines():
        if commands and commands[-1][0].endswith("\\"):
            commands[-1] = (commands[-1][0][:-1].rstrip() + " " + line.removeprefix(">").strip(), [])
        elif line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
        else:
            raise ValueError(f"output before the first command: {line}")
    return commands


def pattern_of(lines):
    parts = [r"(?:.*\n)*?" if line == "…" else ".*".join(re.escape(part) for part in line.split("…")) + "\n" for line in lines]
    return re.compile("".join(parts))


def run(command, folder):
    environment = os.environ | {"PATH": f"{folder}/build/release:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, check=False, timeout=600, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def complaint_about(command, shown, code, folder):
    done = run(command, folder)
    if done.returncode != code:
        return f"exit {done.returncode}, the page says {code}; it printed:\n{done.stdout}"
    if shown and not pattern_of(shown).fullmatch(done.stdout):
        return f"printed:\n{done.stdout}the page shows:\n" + "".join(line + "\n" for line in shown)
    return None


def check_page(page):
    """(number of commands run, complaints)"""
    count, complaints = 0, []
    with tempfile.TemporaryDirectory(prefix="kvproof-docs-") as name:
        folder = Path(name)
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            if count == 0:
                scratch_copy(folder)
            commands = commands_of(block["text"])
            for index, (command, shown) in enumerate(commands):
                if command.startswith(NOT_RUN):
                    continue
                count += 1
                code = int(block["exit"] or 0) if index == len(commands) - 1 else 0
                complaint = complaint_about(command, shown, code, folder)
                if complaint:
                    complaints.append(f"{page.relative_to(SOURCE)}: $ {command}\n{complaint}")
    return count, complaints


def self_test():
    """What the comparison accepts and what it does not."""
    cases = [(["a"], "a\n", True), (["a"], "b\n", False), (["a"], "", False), (["a…c"], "abbc\n", True), (["a…"], "a\n", True), (["a…c"], "a\nc\n", False),
             (["a", "…", "c"], "a\nx\ny\nc\n", True), (["a", "…", "c"], "a\nc\n", True), (["a"], "a\nb\n", False), (["a.c"], "abc\n", False)]
    wrong = [case for case in cases if bool(pattern_of(case[0]).fullmatch(case[1])) != case[2]]
    split = commands_of("$ a \\\n>   b\nout\n$ c\n")
    if split != [("a b", ["out"]), ("c", [])]:
        wrong.append(split)
    with tempfile.TemporaryDirectory() as folder:
        wrong += [line for line, code in [("exit 3", 0), ("true", 1)] if not complaint_about(line, [], code, Path(folder))]
        if complaint_about("echo a b", ["a …"], 0, Path(folder)) or not complaint_about("echo a", ["b"], 0, Path(folder)):
            wrong.append("echo")
    return wrong


def main():
    wrong = self_test()
    if wrong:
        sys.exit(f"console_test: the comparison itself is wrong: {wrong}")
    total, complaints = 0, []
    for page in [Path(p).resolve() for p in sys.argv[1:]] or pages():
        count, found = check_page(page)
        total += count
        complaints += found
    if complaints:
        sys.exit("\n".join(complaints))
    if total == 0:
        sys.exit("console_test: no page shows a command")
    print(f"{total} commands do what the pages show")


if __name__ == "__main__":
    main()
