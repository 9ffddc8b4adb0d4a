"""What the checks share: the root of the source tree and the files that belong to it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def files(root: Path = ROOT, *suffixes: str) -> list[str]:
    """Returns the paths below `root`, relative and sorted, that git tracks or would track.

    Outside a git tree every file counts that lies in no hidden or build directory.
    `suffixes` keeps the names that end with one of them.
    """
    try:
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
            check=True,
            capture_output=True,
        ).stdout.decode()
        names = [name for name in listed.split("\0") if name and (root / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        names = [
            str(path.relative_to(root))
            for path in root.rglob("*")
            if path.is_file()
            and not any(
                part.startswith(".") or part == "build" for part in path.relative_to(root).parts
            )
        ]
    return sorted(name for name in names if not suffixes or name.endswith(suffixes))


def finish(name: str, faults: list[str], seen: str) -> int:
    """Prints the faults, or one line that tells what was looked at; returns the exit code."""
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print(f"{name}: {len(faults)} fault(s)", file=sys.stderr)
        return 1
    print(f"{name}: {seen}")
    return 0
