#!/usr/bin/env python3
"""Writes the metadata of a large raw LeRobot v2.1 dataset, for measuring time and memory.

    make_large_v21.py ROOT EPISODES

Rows of about 2.5 KB, as a recorder with alignment reports writes them; no data and no video.
"""

import json
import sys
from pathlib import Path

CAMERAS = [f"observation.images.{name}" for name in ("top", "left_wrist", "right_wrist")]
STREAMS = CAMERAS + [f"observations.state.{name}" for name in ("qpos", "eef", "effort")]


def row_of(index: int, length: int) -> dict:
    return {
        "episode_index": index,
        "tasks": ["pick up the block"],
        "length": length,
        "quality": "red" if index % 7 == 0 else "green",
        "quality_issues": [
            {
                "severity": "red",
                "code": "source_gap",
                "detail": f"stream {CAMERAS[0]}: a gap of 210.5 ms after sample {index % 290}",
                "stream": CAMERAS[0],
            }
        ]
        if index % 7 == 0
        else [],
        "take_id": f"20260921T140211Z-{index:06x}",
        "started_at": "2026-09-21T14:02:11+00:00",
        "ended_at": "2026-09-21T14:02:21+00:00",
        "video_keys": CAMERAS,
        "total_videos": len(CAMERAS),
        "source_fps": dict.fromkeys(STREAMS, 29.97 + index % 5 / 100),
        "capture_drops": {name: {"ring": 0, "late": index % 3, "queue": 0} for name in STREAMS},
        "alignment": {
            name: {
                "samples": 301,
                "max_skew_sec": 0.0161 + index % 9 / 1e4,
                "mean_skew_sec": 0.0071,
                "first_offset_sec": 0.0012,
                "last_offset_sec": -0.0034,
                "repeated": 0,
                "skipped": index % 2,
            }
            for name in STREAMS
        },
        "alignment_grid_start": 1790000000.0 + index * 20,
        "slot": {
            "task_id": "blocks",
            "scene_id": f"scene-{index % 40}",
            "scene_round": index // 40,
        },
        "operator": "ada",
        "device_path": f"/data/recordings/2026-09-21/take-{index:06d}",
    }


def main(root: Path, episodes: int):
    length = 300
    meta = root / "meta"
    meta.mkdir(parents=True)
    with open(meta / "episodes.jsonl", "w") as file:
        for index in range(episodes):
            file.write(json.dumps(row_of(index, length)) + "\n")
    with open(meta / "tasks.jsonl", "w") as file:
        file.write(json.dumps({"task_index": 0, "task": "pick up the block"}) + "\n")
    scalar = {"shape": [1], "names": None}
    features = {
        "observations.state.qpos": {"dtype": "float32", "shape": [14], "names": None},
        "action.qpos": {"dtype": "float32", "shape": [14], "names": None},
        "timestamp": {"dtype": "float32", **scalar},
        **{
            name: {"dtype": "int64", **scalar}
            for name in ("frame_index", "episode_index", "index", "task_index")
        },
    }
    for name in CAMERAS:
        features[name] = {
            "dtype": "video",
            "shape": [480, 640, 3],
            "names": ["height", "width", "channel"],
        }
    info = {
        "codebase_version": "v2.1",
        "robot_type": "two_arms",
        "total_episodes": episodes,
        "total_frames": episodes * length,
        "total_tasks": 1,
        "total_videos": episodes * len(CAMERAS),
        "total_chunks": -(-episodes // 1000),
        "chunks_size": 1000,
        "fps": 30,
        "splits": {"train": f"0:{episodes}"},
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/"
        "episode_{episode_index:06d}.mp4",
        "features": features,
    }
    (meta / "info.json").write_text(json.dumps(info, indent=2) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]))
