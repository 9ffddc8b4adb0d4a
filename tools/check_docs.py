#!/usr/bin/env python3
"""Checks that what the Markdown pages say is there is there.

    tools/check_docs.py [--update]

- A relative link leads to a file, and its #anchor to a heading of that file.
- A test cited in a table as `Suite.Name`, or `test_file.py::test_name`, exists in the sources.
- Every code of a finding in the sources stands in docs/findings.md or docs/review.md.
- A block of code after `<!-- region: examples/x.cc#name -->` equals that region of the example:
  the lines between `[name]` and `[/name]` in comments, with the common indentation removed.
  --update copies the regions into the pages.
"""

import re
import sys
import textwrap
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tree import ROOT, files, finish

LINK = re.compile(r"(?<!!)!?\[(?:[^\]\\]|\\.)*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
CITED = re.compile(r"`([A-Z][A-Za-z0-9]*(?:/[A-Za-z0-9]+)?\.[A-Z][A-Za-z0-9_]*|test_\w+\.py::\w+)`")
DEFINED = re.compile(
    r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)"
)
CODE = re.compile(
    r"(?:\.code = (?:[^,;{}\"]*\? )?"
    r"|\b\w*(?:log|findings|mine|out)_?\.(?:add|fatal)\(\s*|refuse\(\s*)"
    r'"([a-z0-9_]+)"(?:\s*:\s*"([a-z0-9_]+)")?'
)
CODE_PAGES = ("docs/findings.md", "docs/review.md")
REGION = re.compile(r"<!-- region: (\S+?)#([\w-]+) -->\n+```(\w*)\n(.*?)```", re.DOTALL)


def anchors(text: str) -> set[str]:
    """Returns the anchors of the headings, as the common renderers form them.

    >>> sorted(anchors("# A b, `c`!\\n\\n## A b, `c`!\\n"))
    ['a-b-c', 'a-b-c-1']
    """
    found: set[str] = set()
    for title in re.findall(r"^#+ +(.+?) *$", strip_code(text), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        unique, count = slug, 0
        while unique in found:
            count += 1
            unique = f"{slug}-{count}"
        found.add(unique)
    return found


def strip_code(text: str) -> str:
    """Blanks the fenced blocks, keeping the line numbers."""
    return re.sub(
        r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE
    )


def region_of(source: str, name: str) -> str | None:
    """Returns the lines between the comments `[name]` and `[/name]`, or None.

    >>> region_of("  // [a]\\n  x();\\n  // [/a]\\n", "a")
    'x();\\n'
    """
    match = re.search(
        rf"^[ \t]*(?://|#) *\[{re.escape(name)}\][ \t]*\n(.*?)"
        rf"^[ \t]*(?://|#) *\[/{re.escape(name)}\]",
        source,
        re.DOTALL | re.MULTILINE,
    )
    return textwrap.dedent(match[1]) if match else None


def defined_tests(root: Path, names: list[str]) -> set[str]:
    """Returns every test of the sources as `Suite.Name` or `test_file.py::test_name`."""
    found = set()
    for name in names:
        if name.endswith((".cc", ".h")):
            text = (root / name).read_text("utf-8", errors="replace")
            found |= {f"{suite}.{test}" for suite, test in DEFINED.findall(text)}
        elif name.endswith(".py") and PurePosixPath(name).name.startswith("test_"):
            text = (root / name).read_text("utf-8")
            tests = re.findall(r"^\s*def (test_\w+)", text, re.MULTILINE)
            found |= {f"{PurePosixPath(name).name}::{test}" for test in tests}
    return found


def codes_of(source: str) -> set[str]:
    """Returns the codes of findings that a source adds.

    >>> sorted(codes_of('log.add("a_b", {.file = f}); x.add({.code = bad ? "c" : "d", .row = 1});'))
    ['a_b', 'c', 'd']
    """
    return {code for match in CODE.findall(source) for code in match if code}


def check_codes(root: Path, names: list[str]) -> list[str]:
    """Returns the codes of findings that no page explains."""
    pages = "".join((root / page).read_text("utf-8") for page in CODE_PAGES)
    explained = set(re.findall(r"`([a-z0-9_]+)`", pages))
    faults = []
    for name in names:
        if not name.startswith("src/") or not name.endswith((".cc", ".h")):
            continue
        if name.endswith("_test.cc"):
            continue
        for code in sorted(codes_of((root / name).read_text("utf-8")) - explained):
            faults.append(
                f"{name}: the finding {code} stands in no page; add it to {CODE_PAGES[0]}"
            )
    return faults


def check_page(root: Path, name: str, text: str, tests: set[str]) -> list[str]:
    """Returns the faults of one page."""
    faults = []
    prose = strip_code(text)
    for number, line in enumerate(prose.splitlines(), 1):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            path, _, anchor = target.partition("#")
            where = (root / name).parent / path if path else root / name
            if not where.exists():
                faults.append(f"{name}:{number}: link to {target}: no such file")
            elif (
                anchor and where.suffix == ".md" and anchor not in anchors(where.read_text("utf-8"))
            ):
                faults.append(f"{name}:{number}: link to {target}: no such heading")
        if line.lstrip().startswith("|"):
            for cited in CITED.findall(line):
                if cited.rsplit("/", 1)[-1] not in tests:
                    faults.append(f"{name}:{number}: cites the test {cited}, which does not exist")
    for path, region, _, block in REGION.findall(text):
        source = root / path
        wanted = region_of(source.read_text("utf-8"), region) if source.is_file() else None
        if wanted is None:
            faults.append(f"{name}: region {path}#{region}: no such region")
        elif wanted != block:
            faults.append(
                f"{name}: the code of {path}#{region} differs from the example; "
                "run: tools/check_docs.py --update"
            )
    return faults


def update_page(root: Path, text: str) -> str:
    """Returns the page with every region copied from its example."""

    def fresh(match: re.Match) -> str:
        source = root / match[1]
        wanted = region_of(source.read_text("utf-8"), match[2]) if source.is_file() else None
        if wanted is None:
            return match[0]
        return f"<!-- region: {match[1]}#{match[2]} -->\n```{match[3]}\n{wanted}```"

    return REGION.sub(fresh, text)


def main(arguments: list[str]) -> int:
    names = files(ROOT)
    pages = [name for name in names if name.endswith(".md")]
    if arguments == ["--update"]:
        for name in pages:
            text = (ROOT / name).read_text("utf-8")
            (ROOT / name).write_text(update_page(ROOT, text), "utf-8")
    tests = defined_tests(ROOT, names)
    faults = []
    for name in pages:
        faults += check_page(ROOT, name, (ROOT / name).read_text("utf-8"), tests)
    faults += check_codes(ROOT, names)
    return finish("docs", faults, f"{len(pages)} pages, {len(tests)} tests known")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
