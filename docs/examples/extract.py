"""Checks that the code in docs/*.md is the code in docs/examples/; with --write, puts it there.

A block is tied to its file by the line before it: <!-- examples/NAME -->.
"""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent
BLOCK = re.compile(
    r"<!-- examples/(?P<name>\S+) -->\n```(?P<language>\w+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)


def with_code_of_files(text):
    def block(match):
        code = (DOCS / "examples" / match["name"]).read_text(encoding="utf-8")
        return f"<!-- examples/{match['name']} -->\n```{match['language']}\n{code}```"

    return BLOCK.sub(block, text)


def main():
    blocks = 0
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        blocks += len(BLOCK.findall(text))
        if text == with_code_of_files(text):
            continue
        if "--write" not in sys.argv[1:]:
            sys.exit(f"{page}: a block differs from its file; run: python3 docs/examples/extract.py --write")
        page.write_text(with_code_of_files(text), encoding="utf-8")
    if not blocks:
        sys.exit(f"{DOCS}: no block is tied to a file, so nothing was compared")
    print(f"{blocks} blocks equal their files")


if __name__ == "__main__":
    main()
