#!/usr/bin/env python3
"""Rules that hold for every source file of the project, whatever its room.

  check_sources.py ROOT         exit 0 if all hold, else 1, one line for each breach
  check_sources.py --self-test  plants a breach of each rule and expects it to be found

Length: no C++, C, Python, shell or CMake file passes 500 lines. Floats: nothing asks for value-changing floating point (NaN
would pass comparisons). Randomness: nothing draws from the machine or through a distribution of the C++ library (whose
numbers differ from one library to the next), so that a seed means the same everywhere. Comments may name what is forbidden.
Pages: a page of docs/ that a file names, in a comment too, and a file that a page links to, are there.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LONGEST = 500
SUFFIXES = {".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".cmake"}
CXX = {".cpp", ".hpp", ".c", ".h"}
BUILD_FILES = {"CMakeLists.txt", "CMakePresets.json"}
SHELL_FOLDERS = {"script", ".ci"}

# pattern, where it matters, what to say
FORBIDDEN = [
    (re.compile(r"-f(?:fast|unsafe)-math|-Ofast|-ffinite-math-only|-fassociative-math"), "all", "lets NaN pass comparisons"),
    (re.compile(r"#\s*pragma\s+(?:GCC|clang)\s+(?:optimize|fp)|optimize\s*\(\s*\""), "cxx", "changes floating point for one file"),
    (re.compile(r"\bstd::random_device\b|\brandom_device\b"), "cxx", "is not reproducible; derive a seed with engine/base/seed.hpp"),
    (re.compile(r"\bstd::\w+_distribution\b"), "cxx", "differs between C++ libraries; use engine/base/seed.hpp"),
    (re.compile(r"\bstd::(?:shuffle|sample)\b|\bs?rand\s*\("), "cxx", "differs between C++ libraries; use engine/base/seed.hpp"),
]

NAMED_PAGE = re.compile(r"(?<![\w/])docs/[\w/-]+\.md")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def git_names(root):
    """What git tracks or would track; None if git does not answer."""
    try:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
                                check=True, capture_output=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in listed.split("\0") if name]


def tracked_files(root):
    """Git's list, new files included; without git (a tarball, a fresh container) all that is not hidden or under build/."""
    names = git_names(root) if (root / ".git").exists() else None
    if names is None:
        names = []
        for folder, below, files in os.walk(root):  # which may change meanwhile: other tests write under build/
            below[:] = [name for name in below if name not in (".git", "build", "__pycache__")]
            names += [(pathlib.Path(folder) / name).relative_to(root).as_posix() for name in files]
    return [root / name for name in sorted(names) if (root / name).is_file()]


def is_source(path, root):
    top = path.relative_to(root).parts[0]
    in_shell_folder = top in SHELL_FOLDERS and path.suffix == ""
    return path.suffix in SUFFIXES or path.name in BUILD_FILES or in_shell_folder


def without_comments(text, path):
    """The text with comments blanked, every line kept. Good enough for rules about whole words."""
    if path.suffix in CXX:
        text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
        return re.sub(r"//[^\n]*", "", text)
    if path.suffix == ".json":
        return text
    return re.sub(r"(?m)(^|\s)#[^\n]*", r"\1", text)


def check_file(path, root):
    relative = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    found = []
    count = len(text.splitlines())
    if count > LONGEST and path.suffix != ".json":
        found.append(f"{relative}: {count} lines, at most {LONGEST}: a file that long holds two ideas")
    if relative == "cmake/check_sources.py":  # holds the patterns and the planted breaches
        return found
    for number, line in enumerate(without_comments(text, path).splitlines(), 1):
        for pattern, where, why in FORBIDDEN:
            match = pattern.search(line)
            if match and (where == "all" or path.suffix in CXX):
                found.append(f"{relative}:{number}: {match[0].strip()} {why}")
    return found


def check_pages(path, root):
    """Complaints about pages that a source or a page names and that are not there."""
    relative = path.relative_to(root).as_posix()
    if relative == "cmake/check_sources.py":
        return []
    text = path.read_text(encoding="utf-8")
    named = [(name, root / name) for name in NAMED_PAGE.findall(text)]
    linked = [(name, path.parent / name) for name in LINK.findall(text)] if path.suffix == ".md" else []
    return [f"{relative}: names {name}, which is not there" for name, target in named + linked if not target.exists()]


def check_tree(root):
    tracked = tracked_files(root)
    files = [path for path in tracked if is_source(path, root)]
    pages = [path for path in tracked if path.suffix == ".md"]
    complaints = [line for path in files for line in check_file(path, root)]
    return len(files), complaints + [line for path in files + pages for line in check_pages(path, root)]


BREACHES = [
    ("engine/a.cpp", "x\n" * 501, "501 lines"),
    ("script/a", "x\n" * 501, "501 lines"),
    ("CMakeLists.txt", "add_compile_options(-ffast-math)", "NaN"),
    ("CMakePresets.json", '{"CMAKE_CXX_FLAGS_INIT": "-Ofast"}', "NaN"),
    ("cmake/a.cmake", "set(x -funsafe-math)  # why", "NaN"),
    ("engine/a.cpp", "int x; std::random_device machine;", "not reproducible"),
    ("engine/a.hpp", "std::uniform_real_distribution<float> u;", "differs"),
    ("harness/a.cpp", "std::shuffle(a, b, c);", "differs"),
    ("harness/a.cpp", "int x = rand();", "differs"),
    ("harness/a.cpp", "#pragma GCC optimize (\"O1\")", "floating point"),
    ("engine/a.cpp", "/// Why: docs/nowhere.md.", "docs/nowhere.md"),
    ("docs/a.md", "see [b](b.md#part)", "b.md"),
    ("README.md", "see [b](docs/b/)", "docs/b/"),
]
FINE = [
    ("engine/a.cpp", "x\n" * 500),
    ("engine/a.cpp", "// -ffast-math and std::random_device are forbidden"),
    ("engine/a.cpp", "/* no\n std::shuffle */ int operand(int);"),
    ("docs/a.md", "-ffast-math"),
    ("docs/a.md", "[itself](a.md#top), [above](../docs/), [part](#top), [web](https://example.org/b.md)"),
    ("engine/a.cpp", "// other/docs/nowhere.md is not ours"),
]


def planted(path, text):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
        return check_tree(root)[1]


def self_test():
    wrong = [f"refused though fine: {path}: {text[:60]!r}" for path, text in FINE if planted(path, text)]
    for path, text, reason in BREACHES:
        found = planted(path, text)
        if len(found) != 1 or reason not in found[0]:
            wrong.append(f"planted {path}: {text[:60]!r}: expected one complaint with '{reason}', got {found}")
    print("\n".join(wrong) or f"sources: {len(BREACHES)} planted breaches found, {len(FINE)} fine files passed")
    return 1 if wrong else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 64
    count, complaints = check_tree(pathlib.Path(arguments[0]).resolve())
    if count == 0:
        print(f"sources: no source file under {arguments[0]}")
        return 2
    print("\n".join(complaints) or f"sources: {count} files keep the rules")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
