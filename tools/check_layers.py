#!/usr/bin/env python3
"""Checks every #include of src/ and apps/ against the tables of ARCHITECTURE.md.

    tools/check_layers.py [FILE…]       without FILE: the whole tree

Three rules:

1. A module includes itself and the modules its row names. The rows themselves run downward:
   core < base < format < episode < dataset, stage < engine < apps, never sideways.
2. A third-party header is included by its owners alone.
3. A public header (a .h of src/ that does not end in _internal.h) includes no third-party header,
   except arrow/type_fwd.h where the dependency table allows it.
"""

import fnmatch
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tree import ROOT, files, finish

# The layer of a directory: an edge is downward if it leads to a smaller number.
LAYERS = [
    (r"base/core", 0),
    (r"base/[a-z0-9_]+", 1),
    (r"format/[a-z0-9_]+", 2),
    (r"episode", 3),
    (r"dataset/[a-z0-9_]+", 4),
    (r"stage/[a-z0-9_]+", 4),
    (r"engine", 5),
    (r"apps/[a-z0-9_]+", 6),
]
SYSTEM_HEADER = re.compile(
    r"^(?:[a-z_0-9]+"  # the C++ standard library
    r"|(?:sys|linux|arpa|netinet|net|asm)/[a-z_0-9/]+\.h"
    r"|(?:assert|cpuid|ctype|dirent|dlfcn|errno|fcntl|fenv|float|immintrin|inttypes|langinfo"
    r"|limits|locale|malloc|math|netdb|poll|pthread|pwd|sched|semaphore|setjmp|signal|spawn"
    r"|stdalign|stdarg|stddef|stdint|stdio|stdlib|string|strings|syslog|termios|time|unistd"
    r"|utime|wchar|x86intrin|ftw|glob|fnmatch|getopt|libgen)\.h)$"
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


@dataclass
class Rules:
    """The tables, read: module directory -> names it may include, and who owns a header."""

    modules: dict[str, str] = field(default_factory=dict)  # directory -> name
    may_include: dict[str, set[str]] = field(default_factory=dict)  # name -> names
    owners: list[tuple[str, set[str], str]] = field(default_factory=list)  # pattern, names, where
    faults: list[str] = field(default_factory=list)


def table(text: str, mark: str) -> list[list[str]]:
    """Returns the body rows of the Markdown table after `<!-- mark -->`, cells stripped.

    >>> table("<!-- m -->\\n| a | b |\\n|---|---|\\n| `x` | y, z |\\n", "m")
    [['`x`', 'y, z']]
    """
    after = text.split(f"<!-- {mark} -->", 1)
    if len(after) < 2:
        return []
    rows = []
    for line in after[1].strip().splitlines():
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows[2:]


def code_words(cell: str) -> list[str]:
    """Returns the words in backticks; prose around them is for people.

    >>> code_words("`core` `exec`, and Arrow")
    ['core', 'exec']
    """
    return [word for span in re.findall(r"`([^`]+)`", cell) for word in span.split()]


def layer_of(directory: str) -> int | None:
    """Returns the number of the layer, or None for a directory that is in none."""
    for pattern, number in LAYERS:
        if re.fullmatch(pattern, directory):
            return number
    return None


def read_rules(text: str) -> Rules:
    """Reads the tables marked `modules` and `dependencies` of ARCHITECTURE.md."""
    rules = Rules()
    rows = table(text, "modules")
    if not rows:
        rules.faults.append("ARCHITECTURE.md: no table after <!-- modules -->")
    for row in rows:
        directory = code_words(row[0])[0].rstrip("/")
        name = directory.rsplit("/", 1)[-1]
        if layer_of(directory) is None:
            rules.faults.append(f"ARCHITECTURE.md: module {directory} lies in no known layer")
            continue
        if name in rules.may_include:
            rules.faults.append(f"ARCHITECTURE.md: module {name} has two rows")
        rules.modules[directory] = name
        rules.may_include[name] = set(code_words(row[2]))
    directory_of = {name: directory for directory, name in rules.modules.items()}
    for name, allowed in rules.may_include.items():
        if "base" in allowed:
            allowed.discard("base")
            allowed |= {n for d, n in rules.modules.items() if d.startswith("base/")}
        for other in sorted(allowed):
            if other not in directory_of:
                rules.faults.append(f"ARCHITECTURE.md: {name} may include {other}: no such module")
            elif layer_of(directory_of[other]) >= layer_of(directory_of[name]):
                rules.faults.append(
                    f"ARCHITECTURE.md: {name} may include {other}: this edge is not downward"
                )
    for row in table(text, "dependencies"):
        for pattern in code_words(row[1]):
            rules.owners.append((pattern, set(code_words(row[2])), row[3]))
    return rules


def module_of(path: str, rules: Rules) -> str | None:
    """Returns the directory of the module that holds `path`, as its row writes it."""
    inner = path.removeprefix("src/ropewalk/")
    for directory in rules.modules:
        if inner.startswith(directory + "/"):
            return directory
    return None


def check_text(path: str, text: str, rules: Rules) -> list[str]:
    """Returns the faults of one file, each as `path:line: what is wrong`."""
    faults = []
    home = module_of(path, rules)
    if home is None:
        return [f"{path}:1: lies in no module of ARCHITECTURE.md"]
    name = rules.modules[home]
    is_test = path.endswith("_test.cc") or "_test_" in path.rsplit("/", 1)[-1]
    public_header = (
        path.startswith("src/")
        and path.endswith(".h")
        and not path.endswith("_internal.h")
        and not is_test
    )

    for match in INCLUDE.finditer(text):
        quote, header = match.groups()
        place = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
        if header.startswith("ropewalk/"):
            target = module_of("src/" + header, rules)
            if target is None:
                faults.append(f"{place}: {header} lies in no module of ARCHITECTURE.md")
            elif target != home and rules.modules[target] not in rules.may_include[name]:
                faults.append(f"{place}: {name} may not include {rules.modules[target]} ({header})")
            elif target != home and header.endswith("_internal.h"):
                faults.append(f"{place}: {header} is private to {rules.modules[target]}")
            continue
        if header.startswith("apps/"):
            if module_of(header, rules) != home:
                faults.append(f"{place}: {name} may not include {header}: it belongs to an app")
            continue
        if header.startswith("tests/"):
            if not is_test:
                faults.append(f"{place}: {header} is for tests alone")
            continue
        if quote == "<" and SYSTEM_HEADER.match(header):
            continue
        faults += check_foreign(place, header, name, public_header, is_test, quote, rules)
    return faults


def check_foreign(
    place: str, header: str, name: str, public: bool, is_test: bool, quote: str, rules: Rules
) -> list[str]:
    """Returns the faults of one include of a header that is neither ours nor the system's."""
    found = [rule for rule in rules.owners if fnmatch.fnmatchcase(header, rule[0])]
    if not found:
        if quote == '"':
            return [f'{place}: "{header}" is not written from src ("ropewalk/…")']
        return [f"{place}: <{header}> is in no row of the dependency table of ARCHITECTURE.md"]
    # The longest pattern is the most special rule: arrow/type_fwd.h before arrow/*.
    pattern, owners, where = max(found, key=lambda rule: len(rule[0]))
    if "tests" in owners and is_test:
        return []
    if "any" not in owners and name not in owners:
        return [
            f"{place}: <{header}> ({pattern}) belongs to {', '.join(sorted(owners))}, not to {name}"
        ]
    if public and "public headers" not in where:
        return [f"{place}: a public header may not include the third-party <{header}>"]
    return []


def main(arguments: list[str]) -> int:
    rules = read_rules((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    faults = list(rules.faults)
    paths = arguments or files(ROOT, ".h", ".cc")
    checked = 0
    for path in paths:
        if path.startswith(("src/", "apps/")) and path.endswith((".h", ".cc")):
            checked += 1
            faults += check_text(path, (ROOT / path).read_text(encoding="utf-8"), rules)
    return finish("layers", faults, f"{checked} files, {len(rules.modules)} modules")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
