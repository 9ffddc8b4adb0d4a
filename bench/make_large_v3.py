#!/usr/bin/env python3
"""Writes the metadata of a large LeRobot v3.0 dataset, for timing how long opening takes.

    make_large_v3.py ROOT EPISODES

121 columns per episode row, as a dataset of 10 numeric features and one camera has them;
no data and no video.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FEATURES = {
    "observation.state": 14,
    "observation.velocity": 14,
    "observation.effort": 14,
    "action": 14,
    "reward": 1,
    "timestamp": 1,
    "frame_index": 1,
    "episode_index": 1,
    "index": 1,
    "task_index": 1,
}
CAMERA = "observation.images.top"
STATS = ["min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"]


def main(root: Path, episodes: int):
    length = 300
    (root / "meta").mkdir(parents=True)
    index = np.arange(episodes, dtype=np.int64)
    zeros = np.zeros(episodes, dtype=np.int64)
    columns = {
        "episode_index": index,
        "tasks": pa.array([["pick up the block"]] * episodes, pa.list_(pa.string())),
        "length": np.full(episodes, length, dtype=np.int64),
        "data/chunk_index": zeros,
        "data/file_index": zeros,
        "dataset_from_index": index * length,
        "dataset_to_index": (index + 1) * length,
        f"videos/{CAMERA}/chunk_index": zeros,
        f"videos/{CAMERA}/file_index": index // 100,
        f"videos/{CAMERA}/from_timestamp": (index % 100) * length / 30,
        f"videos/{CAMERA}/to_timestamp": (index % 100 + 1) * length / 30,
    }
    random = np.random.default_rng(1)
    for name, width in (FEATURES | {CAMERA: 3}).items():
        for stat in STATS:
            kind = pa.int64() if stat == "count" else pa.float64()
            size = 1 if stat == "count" else width
            values = (
                np.full(episodes, length) if stat == "count" else random.random(episodes * size)
            )
            array = pa.ListArray.from_arrays(
                np.arange(0, episodes * size + 1, size, dtype=np.int32), pa.array(values, kind)
            )
            if name == CAMERA and stat != "count":
                # Cameras nest as [3, 1, 1].
                for _ in range(2):
                    single = pa.ListArray.from_arrays(
                        np.arange(0, len(array.values) + 1, dtype=np.int32), array.values
                    )
                    array = pa.ListArray.from_arrays(array.offsets, single)
            columns[f"stats/{name}/{stat}"] = array
    columns["meta/episodes/chunk_index"] = zeros
    columns["meta/episodes/file_index"] = zeros
    target = root / "meta/episodes/chunk-000"
    target.mkdir(parents=True)
    pq.write_table(pa.table(columns), target / "file-000.parquet")
    tasks = pa.table({"task_index": [0], "task": ["pick up the block"]})
    pandas = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {"name": n, "field_name": n, "pandas_type": t, "numpy_type": u, "metadata": None}
            for n, t, u in (("task_index", "int64", "int64"), ("task", "unicode", "object"))
        ],
    }
    pq.write_table(
        tasks.replace_schema_metadata({"pandas": json.dumps(pandas)}), root / "meta/tasks.parquet"
    )
    features = {
        name: {
            "dtype": "float32" if width > 1 or name in ("reward", "timestamp") else "int64",
            "shape": [width],
            "names": None,
        }
        for name, width in FEATURES.items()
    }
    features[CAMERA] = {
        "dtype": "video",
        "shape": [480, 640, 3],
        "names": ["height", "width", "channels"],
        "info": {"video.fps": 30, "video.codec": "h264"},
    }
    info = {
        "codebase_version": "v3.0",
        "robot_type": "bench",
        "total_episodes": episodes,
        "total_frames": episodes * length,
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": 30,
        "splits": {"train": f"0:{episodes}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": features,
    }
    (root / "meta/info.json").write_text(json.dumps(info, indent=4))
    (root / "meta/stats.json").write_text("{}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
