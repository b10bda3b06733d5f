#!/usr/bin/env python3
"""Reads the #include lines of engine/ and harness/ against the order of the rooms.

  check_layers.py ROOT         exit 0 if every include is allowed, else 1, one line for each that is not
  check_layers.py --self-test  plants each kind of violation in a small tree and expects it to be found

A room may include itself and the rooms before it; docs/decisions/one-way-streets.md says why and what is narrower.
"""
import pathlib
import re
import sys
import tempfile

ORDER = {
    "engine": ["base", "safetensors", "weights", "model", "kernels", "cache", "forward", "session"],
    "harness": ["contract", "trace", "history", "laws", "oracle", "runner", "verdict", "report", "backends", "defects", "cli"],
}
# Engine rooms that know nothing of GPT-2: sums and storage must serve a second family of models unchanged.
ONLY = {
    "engine/kernels": {"engine/base"},
    "engine/cache": {"engine/base", "engine/safetensors"},
}
READERS = {"engine/base", "engine/safetensors", "engine/weights"}  # the harness shares one codec, one reader of model folders
SEES_THE_ENGINE = {"harness/backends", "harness/defects", "harness/cli"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".hpp", ".cpp", ".h", ".c"}


def refusal(room, target):
    """Why a file of `room` may not include one of `target`; None if it may. Both are known rooms."""
    if room == target:
        return None
    side, name = room.split("/")
    target_side, target_name = target.split("/")
    if room in ONLY and target not in ONLY[room]:
        return f"{room} may include only itself and {', '.join(sorted(ONLY[room]))}"
    if side == target_side:
        order = ORDER[side]
        return None if order.index(target_name) < order.index(name) else f"{target} comes after {room}"
    if side == "engine":
        return "the engine knows nothing of the harness"
    if target in READERS or room in SEES_THE_ENGINE:
        return None
    return f"of the engine, {room} may include only {', '.join(sorted(READERS))}"


def room_of(path):
    """engine/cache/x.hpp -> engine/cache; None outside engine/ and harness/."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 and parts[0] in ORDER else None


def known(room):
    side, name = room.split("/")
    return name in ORDER[side]


def complaints_about_include(room, quoted, target):
    target_room = room_of(target)
    if target_room is None:
        return ["is neither root-relative nor in <>"] if quoted else []
    if not known(target_room):
        return [f"names no room: {target_room} is not in cmake/check_layers.py"]
    why = refusal(room, target_room)
    return [f"is not allowed: {why}"] if why else []


def check_file(root, path):
    relative = path.relative_to(root).as_posix()
    room = room_of(relative)
    if room is None:
        return [f"{relative}: lies in no room"]
    if not known(room):
        return [f"{relative}: {room} is not in cmake/check_layers.py; say there where it stands in the order"]
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            for what in complaints_about_include(room, match[1] == '"', match[2]):
                found.append(f"{relative}:{number}: #include {match[2]} {what}")
    return found


def check_tree(root):
    """The number of files read, and the complaints."""
    files = [p for side in ORDER for p in sorted((root / side).rglob("*")) if p.suffix in SUFFIXES]
    return len(files), [line for path in files for line in check_file(root, path)]


ALLOWED = [
    ("engine/session/a.cpp", '#include "engine/base/b.hpp"'),
    ("engine/cache/a.cpp", '#include "engine/cache/b.hpp"'),
    ("engine/cache/a.cpp", "#include <vector>"),
    ("harness/oracle/a.cpp", '#include "engine/weights/b.hpp"'),
    ("harness/backends/a.cpp", '#include "engine/session/b.hpp"'),
    ("harness/cli/a_test.cpp", '#include "engine/kernels/b.hpp"'),
    ("harness/report/a.cpp", '#include "harness/contract/b.hpp"'),
]
VIOLATIONS = [
    ("engine/base/a.hpp", '#include "engine/safetensors/b.hpp"', "comes after"),
    ("engine/session/a.cpp", '#include "harness/trace/b.hpp"', "knows nothing of the harness"),
    ("engine/session/a_test.cpp", "#  include <harness/trace/b.hpp>", "knows nothing of the harness"),
    ("engine/cache/a.cpp", '#include "engine/model/b.hpp"', "may include only itself"),
    ("engine/kernels/a.cpp", '#include "engine/weights/b.hpp"', "may include only itself"),
    ("engine/cache/a.cpp", '#include "b.hpp"', "root-relative"),
    ("engine/cache/a.cpp", '#include "../base/b.hpp"', "root-relative"),
    ("engine/util/a.cpp", "#include <vector>", "is not in"),
    ("engine/base/a.cpp", '#include "engine/util/b.hpp"', "names no room"),
    ("engine/a.cpp", "", "lies in no room"),
    ("harness/trace/a.hpp", '#include "harness/oracle/b.hpp"', "comes after"),
    ("harness/contract/a.hpp", '#include "harness/cli/b.hpp"', "comes after"),
    ("harness/oracle/a.cpp", '#include "engine/kernels/b.hpp"', "of the engine"),
    ("harness/runner/a.cpp", '#include "engine/session/b.hpp"', "of the engine"),
]


def planted(path, text):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        file = root / path
        file.parent.mkdir(parents=True)
        file.write_text(f"// first line\n{text}\n", encoding="utf-8")
        return check_tree(root)[1]


def self_test():
    wrong = [f"refused though allowed: {path}: {text}" for path, text in ALLOWED if planted(path, text)]
    for path, text, reason in VIOLATIONS:
        found = planted(path, text)
        if len(found) != 1 or reason not in found[0]:
            wrong.append(f"planted {path}: {text}: expected one complaint with '{reason}', got {found}")
    print("\n".join(wrong) or f"layers: {len(VIOLATIONS)} planted violations found, {len(ALLOWED)} allowed includes passed")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 64
    count, complaints = check_tree(pathlib.Path(arguments[0]).resolve())
    if count == 0:
        print(f"layers: no source file under {arguments[0]}")
        return 2
    print("\n".join(complaints) or f"layers: {count} files in order")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
