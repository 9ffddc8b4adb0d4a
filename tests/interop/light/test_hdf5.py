"""h5py reads every HDF5 export, and what h5py writes in the layout is read back."""

import json
import shutil
import subprocess
from pathlib import Path

import h5py
import msgpack
import numpy as np
import pyarrow.parquet as pq
import pytest

FPS = 20
WIDTH, HEIGHT = 64, 48


def value_of(item: h5py.Group):
    """Returns the value of one item by its kind."""
    value, kind = item["value"], item.attrs["kind"]
    if kind == "array":
        return value[()]
    if kind == "string":
        return value.asstr()[()]
    if kind == "bytes":
        return value[()].tobytes()
    if kind == "none":
        assert value.shape == (0,) and value.dtype == np.uint8
        return None
    assert kind == "msgpack" and value.dtype == np.uint8
    return msgpack.unpackb(value[()].tobytes(), strict_map_key=False)


def items_of(group: h5py.Group):
    """Returns {key: item} in order; the names must be item_000000, item_000001, …"""
    assert list(group) == [f"item_{i:06d}" for i in range(len(group))]
    return {item.attrs["key"]: item for item in group.values()}


def halves(raw: Path):
    """Returns (half, index in the half, index in the source) of every exported episode."""
    export = raw.parent / "export" / "hdf5"
    out = []
    for half in ("accepted", "rejected"):
        marker = json.loads((export / half / "meta" / "quality_split.json").read_text())
        for index, source in enumerate(marker["source_episode_indices"]):
            out.append((export / half, index, source))
    return out


def episode_file(half: Path, index: int) -> Path:
    return half / f"data/chunk-{index // 1000:03d}/episode_{index:06d}.hdf5"


@pytest.fixture(
    scope="module",
    params=[("video", "none"), ("inline", "none"), ("video", "gzip:4")],
    ids="-".join,
)
def raw(ropewalk, tmp_path_factory, request):
    images, compression = request.param
    root = tmp_path_factory.mktemp("hdf5") / "set" / "raw"
    ropewalk(
        *("simulate", root, "--episodes", 3, "--seconds", 1, "--fps", FPS, "--cameras", 2),
        *("--size", f"{WIDTH}x{HEIGHT}", "--seed", 5, "--images", images),
    )
    ropewalk("export", root, "--format", "hdf5", "--compression", compression)
    return root


def test_columns_and_metadata_equal_the_source(raw):
    rows = [json.loads(line) for line in (raw / "meta/episodes.jsonl").read_text().splitlines()]
    info = json.loads((raw / "meta/info.json").read_text())
    found = halves(raw)
    assert sorted(source for _, _, source in found) == [0, 1, 2]
    for half, index, source in found:
        with h5py.File(episode_file(half, index)) as file:
            assert list(file) == ["columns", "images", "metadata"]
            table = pq.read_table(raw / f"data/chunk-000/episode_{source:06d}.parquet")
            columns = items_of(file["columns"])
            cameras = [n for n, f in info["features"].items() if f["dtype"] in ("image", "video")]
            assert set(columns) == set(table.column_names) - set(cameras)
            for name, item in columns.items():
                values = value_of(item)
                feature = info["features"][name]
                assert values.dtype == np.dtype(feature["dtype"]), name
                shape = [] if feature["shape"] == [1] else feature["shape"]
                assert list(values.shape) == [table.num_rows, *shape], name
                if name in ("episode_index", "index", "task_index"):
                    continue
                expected = np.array(table.column(name).to_pylist(), dtype=values.dtype)
                np.testing.assert_array_equal(values, expected, err_msg=name)
            metadata = {key: value_of(item) for key, item in items_of(file["metadata"]).items()}
        assert metadata["episode_index"] == index
        assert metadata["length"] == rows[source]["length"]
        assert metadata["fps"] == float(FPS) and metadata["fps"].dtype == np.float64
        for key in (
            "quality",
            "quality_issues",
            "mode",
            "started_at",
            "alignment_image_stream_stats",
        ):
            if key in rows[source]:
                assert metadata[key] == rows[source][key], key


def decoded(raw: Path, name: str, source: int) -> np.ndarray:
    """Decodes a clip with ffmpeg."""
    video = raw / f"videos/chunk-000/{name}/episode_{source:06d}.mp4"
    pixels = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", video, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
        check=True,
        capture_output=True,
    ).stdout
    return np.frombuffer(pixels, np.uint8).reshape(-1, HEIGHT, WIDTH, 3)


def test_frames_equal_the_pictures_of_the_source(raw):
    info = json.loads((raw / "meta/info.json").read_text())
    videos = [name for name, f in info["features"].items() if f["dtype"] == "video"]
    inline = [name for name, f in info["features"].items() if f["dtype"] == "image"]
    for half, index, source in halves(raw):
        table = pq.read_table(raw / f"data/chunk-000/episode_{source:06d}.parquet")
        with h5py.File(episode_file(half, index)) as file:
            images = items_of(file["images"])
            assert list(images)[: len(inline)] == inline
            assert sorted(images) == sorted(inline + videos)
            for name, item in images.items():
                dataset = item["value"]
                assert dataset.shape == (table.num_rows, HEIGHT, WIDTH, 3)
                assert dataset.maxshape == (None, HEIGHT, WIDTH, 3)
                assert dataset.chunks == (1, HEIGHT, WIDTH, 3)
                assert dataset.dtype == np.uint8
                if name in videos and shutil.which("ffmpeg") is not None:
                    difference = np.abs(dataset[()].astype(int) - decoded(raw, name, source))
                    # Two converters of YUV to RGB round differently.
                    assert difference.mean() < 1.5 and difference.max() <= 8, name
                else:
                    assert dataset[()].std() > 0, name


def put_item(group: h5py.Group, number: int, key: str, kind: str, value):
    """Writes one item the way EVA does, through h5py."""
    item = group.create_group(f"item_{number:06d}")
    item.attrs["key"] = key
    item.attrs["kind"] = kind
    if kind == "string":
        item.create_dataset("value", data=value, dtype=h5py.string_dtype("utf-8"))
    else:
        item.create_dataset("value", data=value)


def test_what_h5py_writes_is_read(ropewalk, tmp_path):
    """A dataset in EVA's own types: float64 vectors, int64 scalars, images appended one by one."""
    frames, root = 7, tmp_path / "foreign"
    (root / "meta").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    rng = np.random.default_rng(1)
    state = rng.normal(size=(frames, 3))
    pixels = rng.integers(0, 255, (frames, 16, 24, 3), dtype=np.uint8)
    scalar = {"dtype": "int64", "shape": [1], "names": None}
    features = {
        "observation.state": {"dtype": "float32", "shape": [3], "names": ["a", "b", "c"]},
        "top": {"dtype": "image", "shape": [16, 24, 3], "names": ["height", "width", "channels"]},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        **dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), scalar),
    }
    info = {
        "codebase_version": "hdf5",
        "dataset_format": "hdf5",
        "robot_type": "arm",
        "fps": float(FPS),
        "total_episodes": 1,
        "total_frames": frames,
        "total_tasks": 1,
        "embedded_images": True,
        "features": features,
    }
    row = {"episode_index": 0, "tasks": ["pour"], "length": frames, "quality": "green"}
    (root / "meta/info.json").write_text(json.dumps(info))
    (root / "meta/episodes.jsonl").write_text(json.dumps(row) + "\n")
    (root / "meta/tasks.jsonl").write_text('{"task_index": 0, "task": "pour"}\n')
    with h5py.File(root / "data/chunk-000/episode_000000.hdf5", "w") as file:
        columns = file.create_group("columns")
        counting = np.arange(frames)
        put_item(columns, 0, "observation.state", "array", state)
        put_item(columns, 1, "timestamp", "array", counting / FPS)
        for number, name in enumerate(("frame_index", "index"), start=2):
            put_item(columns, number, name, "array", counting)
        for number, name in enumerate(("episode_index", "task_index"), start=4):
            put_item(columns, number, name, "array", np.zeros(frames, np.int64))
        item = file.create_group("images").create_group("item_000000")
        item.attrs["key"], item.attrs["kind"] = "top", "array"
        images = item.create_dataset(
            "value", (0, 16, 24, 3), np.uint8, maxshape=(None, 16, 24, 3), chunks=(1, 16, 24, 3)
        )
        for frame in pixels:
            images.resize(images.shape[0] + 1, axis=0)
            images[-1] = frame
        metadata = file.create_group("metadata")
        put_item(metadata, 0, "episode_index", "array", 0)
        put_item(metadata, 1, "quality", "string", "green")
        put_item(metadata, 2, "note", "none", np.zeros(0, np.uint8))
        packed = np.frombuffer(msgpack.packb(["pour"]), np.uint8)
        put_item(metadata, 3, "tasks", "msgpack", packed)
    ropewalk("convert", root, tmp_path / "again", "--to", "hdf5")
    with h5py.File(tmp_path / "again/data/chunk-000/episode_000000.hdf5") as file:
        columns = items_of(file["columns"])
        np.testing.assert_array_equal(
            value_of(columns["observation.state"]), state.astype(np.float32)
        )
        np.testing.assert_array_equal(value_of(items_of(file["images"])["top"]), pixels)
        assert value_of(items_of(file["metadata"])["quality"]) == "green"


def test_a_damaged_file_is_one_clear_error(ropewalk, raw, tmp_path):
    half, index, _ = halves(raw)[0]
    copy = tmp_path / "damaged"
    shutil.copytree(half, copy)
    episode_file(copy, index).write_bytes(episode_file(half, index).read_bytes()[:3000])
    done = ropewalk("convert", copy, tmp_path / "out", "--to", "hdf5", code=4)
    assert f"episode_{index:06d}.hdf5" in done.stderr + done.stdout
    assert not (tmp_path / "out").exists()
