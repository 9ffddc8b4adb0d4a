"""PyPI's mcap and msgpack read every MCAP export and rebuild arrays, sequence and times."""

import json
import shutil
import subprocess
from pathlib import Path

import msgpack
import numpy as np
import pyarrow.parquet as pq
import pytest
from mcap.reader import make_reader

FPS = 20
PERIOD_NS = 50_000_000


def unpack(body: bytes):
    """Decodes MessagePack and rebuilds NumPy arrays and scalars, as openpi's client does."""

    def rebuild(entry):
        if b"__ndarray__" in entry:
            return np.ndarray(
                buffer=entry[b"data"], dtype=np.dtype(entry[b"dtype"]), shape=entry[b"shape"]
            )
        if b"__npgeneric__" in entry:
            return np.dtype(entry[b"dtype"]).type(entry[b"data"])
        return entry

    return msgpack.unpackb(body, object_hook=rebuild, strict_map_key=False)


def halves(raw: Path):
    """Returns (half, index in the half, index in the source) of every exported episode."""
    export = raw.parent / "export" / "mcap"
    out = []
    for half in ("accepted", "rejected"):
        marker = json.loads((export / half / "meta" / "quality_split.json").read_text())
        for index, source in enumerate(marker["source_episode_indices"]):
            out.append((export / half, index, source))
    return out


@pytest.fixture(scope="module", params=["video", "inline"])
def raw(ropewalk, tmp_path_factory, request):
    root = tmp_path_factory.mktemp("mcap") / request.param / "raw"
    ropewalk(
        *("simulate", root, "--episodes", 3, "--seconds", 1, "--fps", FPS, "--cameras", 2),
        *("--size", "64x48", "--seed", 5, "--images", request.param),
    )
    ropewalk("export", root, "--format", "mcap")
    return root


def episode_file(half: Path, index: int) -> Path:
    return half / f"data/chunk-{index // 1000:03d}/episode_{index:06d}.mcap"


def test_every_episode_is_exported(raw):
    assert sorted(source for _, _, source in halves(raw)) == [0, 1, 2]


def test_columns_and_metadata_equal_the_source(raw):
    rows = [json.loads(line) for line in (raw / "meta/episodes.jsonl").read_text().splitlines()]
    for half, index, source in halves(raw):
        with open(episode_file(half, index), "rb") as stream:
            reader = make_reader(stream, validate_crcs=True)
            assert reader.get_header().profile == "eva-client"
            assert reader.get_header().library == "eva-client"
            messages = list(reader.iter_messages(topics=["episode"]))
        assert len(messages) == 1
        schema, channel, message = messages[0]
        assert (schema.name, schema.encoding) == ("eva_client.episode", "jsonschema")
        assert channel.message_encoding == "messagepack"
        assert (message.log_time, message.publish_time, message.sequence) == (0, 0, 0)
        body = unpack(message.data)
        assert list(body) == ["columns", "images", "metadata"]
        table = pq.read_table(raw / f"data/chunk-000/episode_{source:06d}.parquet")
        renumbered = {"episode_index", "index", "task_index"}
        for name, values in body["columns"].items():
            if name in renumbered:
                continue
            expected = np.array(table.column(name).to_pylist(), dtype=values.dtype)
            np.testing.assert_array_equal(values, expected, err_msg=name)
        assert body["metadata"]["episode_index"] == index
        assert body["metadata"]["length"] == rows[source]["length"]
        assert body["metadata"]["fps"] == float(FPS)
        assert body["metadata"]["quality"] == rows[source]["quality"]


def test_frames_share_their_times_and_equal_the_decoded_video(raw):
    info = json.loads((raw / "meta/info.json").read_text())
    videos = [name for name, f in info["features"].items() if f["dtype"] == "video"]
    inline = [name for name, f in info["features"].items() if f["dtype"] == "image"]
    for half, index, source in halves(raw):
        with open(episode_file(half, index), "rb") as stream:
            reader = make_reader(stream, validate_crcs=True)
            messages = [
                (channel.topic, message)
                for _, channel, message in reader.iter_messages(log_time_order=False)
            ]
        body = unpack(messages[0][1].data)
        length = body["metadata"]["length"]
        assert sorted(body["images"]) == sorted(inline)
        for name in inline:
            assert body["images"][name].shape == (length, 48, 64, 3)
            assert body["images"][name].dtype == np.uint8
        frames = {name: [] for name in videos}
        for place, (topic, message) in enumerate(messages[1:]):
            frame = place // len(videos)
            assert message.sequence == frame
            assert message.log_time == message.publish_time == (frame + 1) * PERIOD_NS
            frames[topic.removeprefix("episode/image/")].append(unpack(message.data))
        for name in videos:
            pixels = np.stack(frames[name])
            assert pixels.shape == (length, 48, 64, 3)
            assert pixels.dtype == np.uint8
            if shutil.which("ffmpeg") is None:
                continue
            video = raw / f"videos/chunk-000/{name}/episode_{source:06d}.mp4"
            decoded = subprocess.run(
                ["ffmpeg", "-v", "error", "-i", video, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                capture_output=True,
                check=True,
            ).stdout
            expected = np.frombuffer(decoded, np.uint8).reshape(length, 48, 64, 3)
            difference = np.abs(pixels.astype(np.int16) - expected.astype(np.int16))
            assert difference.mean() < 1.0, name
