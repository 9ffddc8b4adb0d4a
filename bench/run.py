#!/usr/bin/env python3
"""Measures the program against bare loops and peers, side by side in one run, and prints ratios.

    bench/run [--quick] [--json FILE] [--rounds N]

Every figure is the median of the rounds of whole processes, taken in turn (A B A B), so that a
drift of the machine hits both sides. Peak memory is the largest resident set of the process.
The targets are those of docs/benchmarks.md; a miss is printed, never an error.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("ROPEWALK_BENCH_BIN", ROOT / "build" / "bench" / "bin"))
ROPEWALK = BUILD / "ropewalk"
LOOPS = BUILD / "ropewalk_loops"
VENVS = Path(os.environ.get("ROPEWALK_VENVS", Path.home() / ".cache/ropewalk/venvs"))


def timed(command, quiet=True):
    """Runs one process; returns (wall seconds, peak resident MiB, output)."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if quiet else None,
        text=True,
    )
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"failed ({process.returncode}): {' '.join(map(str, command))}\n{output}")
    return seconds, usage.ru_maxrss / 1024, output


class Bench:
    def __init__(self, scratch: Path, rounds: int):
        self.scratch = scratch
        self.rounds = rounds
        self.rows = []

    def fresh(self, name: str) -> Path:
        path = self.scratch / name
        shutil.rmtree(path, ignore_errors=True)
        return path

    def in_turn(self, sides: dict) -> dict:
        """Runs each side's callable once per round, in turn; returns medians of (seconds, MiB)."""
        results = {name: [] for name in sides}
        for _ in range(self.rounds):
            for name, call in sides.items():
                results[name].append(call())
        return {
            name: tuple(statistics.median(run[i] for run in runs) for i in (0, 1))
            for name, runs in results.items()
        }

    def row(self, work: str, ours: float, peer: str, theirs: float, target: float, memory=0.0):
        ratio = theirs / ours
        self.rows.append(
            {
                "work": work,
                "ours_seconds": ours,
                "peer": peer,
                "peer_seconds": theirs,
                "ratio": ratio,
                "target": target,
                "met": ratio >= target,
                "peak_mib": memory,
            }
        )
        print(
            f"  {work:<34} {ours:8.3f} s   {peer:<36} {theirs:8.3f} s   "
            f"ratio {ratio:7.2f}  target {target:g}  {'ok' if ratio >= target else 'MISSED'}"
            + (f"   peak {memory:.0f} MiB" if memory else ""),
            flush=True,
        )

    def fact(self, work: str, value: str, target: str, met: bool):
        self.rows.append({"work": work, "value": value, "target": target, "met": met})
        print(f"  {work:<34} {value:<58} target {target}  {'ok' if met else 'MISSED'}", flush=True)


def simulate(path: Path, *options):
    timed([ROPEWALK, "simulate", path, *options], quiet=False)


def export(bench: Bench, raw: Path, format: str):
    return timed(
        [ROPEWALK, "export", raw, "--format", format, "--out", bench.fresh(f"pair_{format}"), "-q"],
        quiet=False,
    )


def reencode(raw: Path, out: Path):
    """Decodes and re-encodes the same clips with ffmpeg ultrafast, on all cores."""
    clips = sorted(raw.glob("videos/**/*.mp4"))
    out.mkdir(parents=True)
    script = "\n".join(
        f"ffmpeg -nostdin -v error -i '{clip}' -c:v libx264 -preset ultrafast -threads 1"
        f" '{out}/{i}.mp4'"
        for i, clip in enumerate(clips)
    )
    started = time.perf_counter()
    subprocess.run(
        ["xargs", "-P", str(os.cpu_count()), "-I{}", "sh", "-c", "{}"],
        input=script.replace("'", '"'),
        text=True,
        check=True,
    )
    return time.perf_counter() - started, 0.0


def exports(bench: Bench, raw: Path):
    clips = len(list(raw.glob("videos/**/*.mp4")))
    size = sum(file.stat().st_size for file in raw.rglob("*") if file.is_file())
    print(f"\nexports: {clips} clips, {size / 2**20:.0f} MiB of raw data, {bench.rounds} rounds")

    def copy():
        return timed([LOOPS, "copy", raw, bench.fresh("copy")])

    def rgb():
        return timed([LOOPS, "rgb", raw, bench.fresh("rgb")])

    found = bench.in_turn(
        {
            "v3": lambda: export(bench, raw, "lerobot_v3"),
            "v21": lambda: export(bench, raw, "lerobot_v21"),
            "copy": copy,
        }
    )
    again = reencode(raw, bench.fresh("reencoded"))
    bench.row(
        "v3.0 export",
        found["v3"][0],
        "re-encode, ultrafast",
        again[0],
        20,
        found["v3"][1],
    )
    bench.row(
        "v3.0 export",
        found["v3"][0],
        "copy + SHA-256 + fsync",
        found["copy"][0],
        0.5,
        found["v3"][1],
    )
    bench.row(
        "v2.1 export",
        found["v21"][0],
        "copy + SHA-256 + fsync",
        found["copy"][0],
        0.6,
        found["v21"][1],
    )
    found = bench.in_turn(
        {
            "hdf5": lambda: export(bench, raw, "hdf5"),
            "mcap": lambda: export(bench, raw, "mcap"),
            "rgb": rgb,
        }
    )
    for format in ("hdf5", "mcap"):
        bench.row(
            f"{format} export",
            found[format][0],
            "decode to RGB + SHA-256 + write + fsync",
            found["rgb"][0],
            0.8,
            found[format][1],
        )
    for format in ("lerobot_v3", "lerobot_v21", "hdf5", "mcap"):
        shutil.rmtree(bench.scratch / f"pair_{format}", ignore_errors=True)
    for name in ("copy", "rgb", "reencoded"):
        shutil.rmtree(bench.scratch / name, ignore_errors=True)


def scan(bench: Bench, raw: Path):
    print("\nreview scan")
    found = bench.in_turn(
        {
            "scan": lambda: timed([ROPEWALK, "review", "scan", raw, "-q"]),
            "decode": lambda: timed([LOOPS, "decode", raw]),
        }
    )
    bench.row(
        "review scan",
        found["scan"][0],
        "decoding alone (RGB), all cores",
        found["decode"][0],
        0.7,
        found["scan"][1],
    )


def memory(bench: Bench, long_frames: int):
    print("\npeak memory, one episode of 1,000 and of", f"{long_frames:,} frames")
    peaks = {}
    for frames in (1000, long_frames):
        raw = bench.fresh(f"long_{frames}")
        simulate(
            raw, "--episodes", 1, "--seconds", frames / 30, "--cameras", 1, "--size", "64x48", "-q"
        )
        for format in ("lerobot_v21", "lerobot_v3", "hdf5", "mcap"):
            peaks[format, frames] = export(bench, raw, format)[1]
        peaks["scan", frames] = timed([ROPEWALK, "review", "scan", raw, "-q"])[1]
        peaks["check --decode", frames] = timed([ROPEWALK, "check", raw, "--decode", "-q"])[1]
        shutil.rmtree(raw)
    for name in ("lerobot_v21", "lerobot_v3", "hdf5", "mcap", "scan", "check --decode"):
        small, large = peaks[name, 1000], peaks[name, long_frames]
        bench.fact(
            f"peak memory: {name}",
            f"{small:.0f} MiB, then {large:.0f} MiB",
            "300 MiB",
            large <= 300,
        )


OPEN_WITH_LEROBOT = """
import sys, time
from lerobot.datasets.lerobot_dataset import LeRobotDatasetMetadata
started = time.perf_counter()
LeRobotDatasetMetadata("local/x", root=sys.argv[1])
print(time.perf_counter() - started)
"""


def open_large(bench: Bench, episodes: int):
    print(f"\nopening a v3.0 dataset of {episodes:,} episodes, metadata only")
    python = VENVS / "lerobot_0_4_4" / "bin" / "python"
    if not python.exists():
        print("  left out: lerobot 0.4.4 is not installed; make interop installs it")
        return
    root = bench.scratch / "large_v3"
    subprocess.run(
        [sys.executable, ROOT / "bench" / "make_large_v3.py", root, str(episodes)], check=True
    )

    def ours():
        _, peak, output = timed([LOOPS, "open", root])
        return json.loads(output)["seconds"], peak

    def theirs(cache: Path):
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(cache)}
        output = subprocess.run(
            [python, "-c", OPEN_WITH_LEROBOT, root],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return float(output.split()[-1])

    opened = statistics.median(ours()[0] for _ in range(5))
    cache = bench.fresh("hf_cache")
    first = theirs(cache)
    warm = statistics.median(theirs(cache) for _ in range(3))
    bench.row("open metadata", opened, "lerobot 0.4.4, first open", first, 10)
    bench.row("open metadata", opened, "lerobot 0.4.4, cache warm", warm, 2)


def columns(bench: Bench):
    print("\nstatistics of float32 columns in memory, one core")
    best = min(json.loads(timed([LOOPS, "statistics"])[2])["seconds"] for _ in range(3))
    bytes_done = json.loads(timed([LOOPS, "statistics"])[2])["bytes"]
    rate = bytes_done / best / 1e9
    bench.fact("moments in double", f"{rate:.2f} GB/s", "1 GB/s", rate >= 1)
    quantiles = json.loads(timed([LOOPS, "quantiles"])[2])
    rate = quantiles["bytes"] / quantiles["seconds"] / 1e9
    bench.fact("with exact quantiles", f"{rate:.3f} GB/s", "told apart", True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small inputs, one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", help="one of: exports scan memory open statistics")
    arguments = parser.parse_args()
    rounds = 1 if arguments.quick else arguments.rounds
    scratch = Path(
        tempfile.mkdtemp(prefix="ropewalk-bench-", dir=os.environ.get("ROPEWALK_BENCH_DIR"))
    )
    bench = Bench(scratch, rounds)

    def wanted(name):
        return arguments.only in (None, name)

    try:
        raw = scratch / "raw"
        if wanted("exports") or wanted("scan"):
            episodes = 4 if arguments.quick else 12
            simulate(
                raw,
                "--episodes",
                episodes,
                "--seconds",
                6 if arguments.quick else 13,
                "--cameras",
                3,
                "--size",
                "640x480",
                "-q",
            )
        if wanted("exports"):
            exports(bench, raw)
        if wanted("scan"):
            scan(bench, raw)
        if wanted("statistics"):
            columns(bench)
        if wanted("open"):
            open_large(bench, 5000 if arguments.quick else 50000)
        if wanted("memory"):
            memory(bench, 5000 if arguments.quick else 50000)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    missed = [row["work"] for row in bench.rows if not row["met"]]
    print(
        f"\n{len(bench.rows)} figures, {len(missed)} targets missed"
        + (": " + ", ".join(missed) if missed else "")
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(bench.rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
