"""Fixtures of every interop test: the program under test and the real datasets."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


class Program:
    """The built program.

    >>> Program("/bin/echo")("a", "b").stdout
    'a b\\n'
    """

    def __init__(self, path: str):
        self.path = path

    def __call__(self, *arguments, code: int = 0, timeout_s: float = 600):
        """Runs the program, returns the finished process; an exit code other than `code` fails."""
        command = [self.path, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
        if done.returncode != code:
            pytest.fail(
                f"{' '.join(command)}\nexit {done.returncode}, expected {code}\n"
                f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
            )
        return done

    def json(self, *arguments, code: int = 0, timeout_s: float = 600):
        """Runs the program with --json and returns the report."""
        return json.loads(self(*arguments, "--json", code=code, timeout_s=timeout_s).stdout)


@pytest.fixture(scope="session")
def ropewalk() -> Program:
    """The program at ROPEWALK_BIN; the tests fail where it is not there."""
    path = os.environ.get("ROPEWALK_BIN", str(ROOT / "build/dev/bin/ropewalk"))
    if not os.access(path, os.X_OK):
        pytest.fail(f"no program at {path}; run: make interop")
    return Program(path)


@pytest.fixture(scope="session")
def testdata():
    """Returns the path of a real dataset by name, or skips the test where it is absent."""
    root = Path(os.environ.get("ROPEWALK_TESTDATA", ROOT.parent / "shared" / "testdata"))

    def find(name: str) -> Path:
        path = root / name
        if not path.exists():
            pytest.skip(f"real dataset {name} is not there; set ROPEWALK_TESTDATA")
        return path

    return find
