#!/usr/bin/env python3
"""Checks that no test is left lying: a file that no target builds passes for ever.

    tools/check_tests_listed.py

- every *_test.cc is named by a CMakeLists.txt in its directory or in one above it;
- every fuzz/<name>_fuzz.cc has its line in fuzz/CMakeLists.txt and a corpus with files in it, and
  every such line has its source;
- every tests/interop/*/test_*.py lies in a directory that declares its environment.
"""

import re
import sys
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tree import ROOT, files, finish


def cmake_words(text: str) -> set[str]:
    """Returns the words of a CMake file, comments left out.

    >>> sorted(cmake_words("add(x_test.cc) # y_test.cc"))
    ['add', 'x_test.cc']
    """
    return set(re.findall(r'[^\s()"]+', re.sub(r"#[^\n]*", "", text)))


def check(root: Path, names: list[str]) -> list[str]:
    """Returns the faults among `names`, paths relative to `root`."""
    faults = []
    words: dict[str, set[str]] = {}

    def words_of(directory: str) -> set[str]:
        if directory not in words:
            path = root / directory / "CMakeLists.txt"
            words[directory] = cmake_words(path.read_text("utf-8")) if path.is_file() else set()
        return words[directory]

    for name in names:
        if name.endswith("_test.cc"):
            path = PurePosixPath(name)
            if not any(
                str(path.relative_to(parent)) in words_of(str(parent)) for parent in path.parents
            ):
                faults.append(f"{name}: no CMakeLists.txt names this test")

    fuzz = root / "fuzz" / "CMakeLists.txt"
    text = re.sub(r"#[^\n]*", "", fuzz.read_text("utf-8")) if fuzz.is_file() else ""
    listed = set(re.findall(r"ropewalk_fuzz_target\(\s*([a-z0-9_]+)[^()]*\)", text)) - {"name"}
    present = {m[1] for n in names if (m := re.fullmatch(r"fuzz/([a-z0-9_]+)_fuzz\.cc", n))}
    for name in sorted(present - listed):
        faults.append(f"fuzz/{name}_fuzz.cc: no ropewalk_fuzz_target in fuzz/CMakeLists.txt")
    for name in sorted(listed - present):
        faults.append(f"fuzz/CMakeLists.txt: {name}: fuzz/{name}_fuzz.cc is not there")
    for name in sorted(present & listed):
        if not any(n.startswith(f"fuzz/corpus/{name}/") for n in names):
            faults.append(f"fuzz/corpus/{name}: no corpus file")

    for name in names:
        match = re.fullmatch(r"tests/interop/(?:([^/]+)/)?test_[^/]*\.py", name)
        if match and (
            match[1] is None or f"tests/interop/{match[1]}/requirements.txt" not in names
        ):
            faults.append(f"{name}: its directory has no requirements.txt, so nothing runs it")
    return faults


def main() -> int:
    names = files(ROOT)
    tests = sum(name.endswith("_test.cc") for name in names)
    return finish("tests-listed", check(ROOT, names), f"{tests} test files")


if __name__ == "__main__":
    sys.exit(main())
