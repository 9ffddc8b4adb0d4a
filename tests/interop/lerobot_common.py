"""What the proofs by both upstream releases share: sources, their tables and their pictures."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

# Before upstream is imported: no network, caches of our own.
_HOME = tempfile.mkdtemp(prefix="ropewalk-lerobot-")
os.environ.update(
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    HF_LEROBOT_HOME=_HOME,
    HF_DATASETS_CACHE=os.path.join(_HOME, "datasets"),
)

import av
import numpy as np
import pyarrow.parquet as pq

DEFAULTS = ["timestamp", "frame_index", "episode_index", "index", "task_index"]
# Two builds of FFmpeg may round colours differently.
MOST_LEVELS = 2


def remove_caches():
    """Removes what upstream cached."""
    shutil.rmtree(_HOME, ignore_errors=True)


def convert(ropewalk, source: Path, out: Path, to: str, *options: str):
    """Converts a dataset; a loss that the program reports (exit 3) is fine here."""
    command = [ropewalk.path, "convert", str(source), str(out), "--to", to, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 3), done.stdout[-4000:] + done.stderr[-4000:]


class Source:
    """A v2.1 dataset as pyarrow and PyAV read it, without LeRobot."""

    def __init__(self, root: Path):
        self.root = Path(root)
        self.info = json.loads((self.root / "meta/info.json").read_text())
        self.rows = [
            json.loads(line)
            for line in (self.root / "meta/episodes.jsonl").read_text().splitlines()
            if self._table(json.loads(line)["episode_index"]).exists()
        ]
        features = self.info["features"]
        self.cameras = [k for k, f in features.items() if f["dtype"] == "video"]
        self.columns = [
            k for k, f in features.items() if f["dtype"] not in ("video", "image", "string")
        ]
        self._frames = {}

    def _table(self, index: int) -> Path:
        path = self.info["data_path"].format(
            episode_chunk=index // self.info["chunks_size"], episode_index=index
        )
        return self.root / path

    def table(self, position: int) -> dict:
        """Columns of an episode by its position: {name: array of T rows}."""
        table = pq.read_table(self._table(self.rows[position]["episode_index"]))
        out = {}
        for name in table.column_names:
            values = table[name].combine_chunks().to_pylist()
            out[name] = np.asarray(values) if name in self.columns else values
        return out

    def frames(self, position: int, camera: str) -> np.ndarray:
        """Pictures of a camera, [T, H, W, 3] uint8."""
        key = (position, camera)
        if key not in self._frames:
            index = self.rows[position]["episode_index"]
            path = self.info["video_path"].format(
                episode_chunk=index // self.info["chunks_size"],
                episode_index=index,
                video_key=camera,
            )
            self._frames = {k: v for k, v in self._frames.items() if k[0] == position}
            self._frames[key] = decode(self.root / path)
        return self._frames[key]


def decode(path: Path) -> np.ndarray:
    """All pictures of a file in presentation order, [T, H, W, 3] uint8."""
    with av.open(str(path)) as container:
        return np.stack([f.to_ndarray(format="rgb24") for f in container.decode(video=0)])


def levels(picture) -> np.ndarray:
    """Upstream's float32 [C, H, W] in [0, 1] as levels [H, W, C]."""
    return np.rint(np.asarray(picture) * 255.0).astype(np.int16).transpose(1, 2, 0)


def assert_items_equal(dataset, source: Source, frames_every: int = 1, start: int = 0):
    """Compares every item with the source's table, and every n-th one with its pictures."""
    assert len(dataset) == sum(row["length"] for row in source.rows)
    item_index = 0
    for position, row in enumerate(source.rows):
        table = source.table(position)
        for frame in range(row["length"]):
            if item_index % frames_every == 0:
                item = dataset[item_index]
                for name in source.columns:
                    if name in ("episode_index", "index", "task_index", "timestamp"):
                        continue
                    wanted = table[name][frame]
                    found = item[name].numpy()
                    if found.dtype == np.float32:
                        wanted = np.asarray(wanted, dtype=np.float32)
                    np.testing.assert_array_equal(found, wanted, f"item {item_index}: {name}")
                assert int(item["index"]) == item_index
                assert int(item["episode_index"]) == position
                expected = np.float32(frame / dataset.fps)
                assert item["timestamp"].numpy() == expected, f"item {item_index}"
                assert item["task"] == row["tasks"][0]
                for camera in source.cameras:
                    wanted = source.frames(position, camera)[frame].astype(np.int16)
                    gap = np.abs(levels(item[camera]) - wanted).max()
                    assert gap <= MOST_LEVELS, f"item {item_index}: {camera}: {gap} levels"
            item_index += 1


def assert_edges(dataset_class, root: Path, source: Source, column: str, **options):
    """Both edges of every episode: values repeat, `_is_pad` says so, no episode is crossed."""
    fps = source.info["fps"]
    camera = source.cameras[0]
    deltas = {column: [-1 / fps, 0.0, 1 / fps], camera: [-1 / fps, 0.0]}
    dataset = dataset_class("local/x", root=root, delta_timestamps=deltas, **options)
    first = 0
    for position, row in enumerate(source.rows):
        values = source.table(position)[column].astype(np.float32)
        pictures = source.frames(position, camera)
        last = row["length"] - 1
        for frame in (0, 1, last - 1, last):
            item = dataset[first + frame]
            wanted = [max(frame - 1, 0), frame, min(frame + 1, last)]
            np.testing.assert_array_equal(item[column].numpy(), values[wanted])
            pads = [frame == 0, False, frame == last]
            assert item[f"{column}_is_pad"].tolist() == pads, (position, frame)
            assert item[f"{camera}_is_pad"].tolist() == pads[:2], (position, frame)
            for k in range(2):
                gap = np.abs(levels(item[camera][k]) - pictures[wanted[k]].astype(np.int16)).max()
                assert gap <= MOST_LEVELS, (position, frame, k)
        first += row["length"]


def frame_for(dataset, value: float) -> dict:
    """A frame that a recorder of upstream accepts: every user feature filled with `value`."""
    frame = {}
    for name, feature in dataset.features.items():
        if name in DEFAULTS:
            continue
        if feature["dtype"] == "video":
            frame[name] = np.full(feature["shape"], int(value) % 256, dtype=np.uint8)
        elif feature["dtype"] == "string":
            frame[name] = "text"
        else:
            frame[name] = np.full(feature["shape"], value, dtype=feature["dtype"])
    return frame
