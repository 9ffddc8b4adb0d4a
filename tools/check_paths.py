#!/usr/bin/env python3
"""Checks that the tree names no place of one machine: somebody's home, a checkout's directory.

tools/check_paths.py
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tree import ROOT, files, finish

PLACE = re.compile(r"(?<![\w.$}*~/-])/(?:work|root|home|Users|mnt|media)/[\w.]+")


def check_text(name: str, text: str) -> list[str]:
    """Returns the faults of one file.

    >>> check_text("a.md", "see ~/x and build/work/y")
    []
    """
    return [
        f"{name}:{number}: names a place of one machine: {match[0]}"
        for number, line in enumerate(text.splitlines(), 1)
        for match in PLACE.finditer(line)
        if "check_paths: allow" not in line
    ]


def main() -> int:
    faults = []
    names = [name for name in files(ROOT) if not name.startswith("fuzz/corpus/")]
    for name in names:
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        faults += check_text(name, text)
    return finish("paths", faults, f"{len(names)} files")


if __name__ == "__main__":
    sys.exit(main())
