"""Upstream 0.4.4 opens, iterates, extends and re-creates what we write as v3.0."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset, LeRobotDatasetMetadata
from lerobot_common import (
    Source,
    assert_edges,
    assert_items_equal,
    convert,
    decode,
    frame_for,
)

BACKENDS = ["torchcodec", "pyav"]
MOMENTS = {"min", "max", "mean", "std", "count"}
QUANTILES = {"q01", "q10", "q50", "q90", "q99"}


def test_metadata_says_what_was_recorded(simulated, accepted):
    source = Source(simulated)
    meta = LeRobotDatasetMetadata("local/x", root=accepted)
    assert meta.total_episodes == len(source.rows) == 3
    assert meta.total_frames == sum(row["length"] for row in source.rows)
    assert meta.fps == source.info["fps"] and isinstance(meta.fps, int)
    assert meta.robot_type == source.info["robot_type"]
    assert set(meta.features) == set(source.info["features"])
    assert sorted(meta.video_keys) == sorted(source.cameras)
    assert list(meta.tasks.index) == list(dict.fromkeys(r["tasks"][0] for r in source.rows))
    for name, feature in source.info["features"].items():
        if feature["dtype"] == "string":
            continue
        wanted = MOMENTS if feature["dtype"] == "video" else MOMENTS | QUANTILES
        assert set(meta.stats[name]) >= wanted, name
    # Our own columns and side files are there, and in nobody's way.
    assert meta.episodes[0]["quality"] == "green"
    assert json.loads((accepted / "meta/quality_split.json").read_text())["subset"] == "accepted"


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_item_is_what_was_recorded(simulated, accepted, backend):
    dataset = LeRobotDataset("local/x", root=accepted, video_backend=backend)
    assert_items_equal(dataset, Source(simulated))


@pytest.mark.parametrize("backend", BACKENDS)
def test_real_clips_with_b_frames_and_av1(real, backend):
    source, out = real
    every = 1 if backend == "torchcodec" else 29  # the other back end decodes from the keyframe
    dataset = LeRobotDataset("local/x", root=out, video_backend=backend)
    assert_items_equal(dataset, Source(source), frames_every=every)


@pytest.mark.parametrize("backend", BACKENDS)
def test_deltas_stop_at_the_edges_of_an_episode(simulated, accepted, backend):
    assert_edges(LeRobotDataset, accepted, Source(simulated), "action.qpos", video_backend=backend)


def test_chosen_episodes_come_in_file_order(simulated, accepted):
    rows = Source(simulated).rows
    dataset = LeRobotDataset("local/x", root=accepted, episodes=[2])
    assert len(dataset) == rows[2]["length"]
    assert int(dataset[0]["index"]) == rows[0]["length"] + rows[1]["length"]
    dataset = LeRobotDataset("local/x", root=accepted, episodes=[1, 0])
    assert int(dataset[0]["index"]) == 0


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_loader_with_two_workers_gives_every_item(accepted, start):
    dataset = LeRobotDataset("local/x", root=accepted, video_backend="torchcodec")
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=7, num_workers=2, multiprocessing_context=start
    )
    indices = []
    for batch in loader:
        indices += batch["index"].tolist()
        assert batch[dataset.meta.video_keys[0]].dtype == torch.float32
    assert indices == list(range(len(dataset)))


def test_upstream_appends_and_both_read_the_result(ropewalk, accepted, tmp_path):
    root = tmp_path / "appended"
    shutil.copytree(accepted, root)
    before = LeRobotDatasetMetadata("local/x", root=root)
    dataset = LeRobotDataset("local/x", root=root, vcodec="h264")
    for i in range(12):
        dataset.add_frame({**frame_for(dataset, float(i)), "task": "appended"})
    dataset.save_episode()
    dataset.finalize()

    again = LeRobotDataset("local/x", root=root)
    assert again.num_episodes == before.total_episodes + 1
    assert len(again) == before.total_frames + 12
    item = again[len(again) - 1]
    assert item["task"] == "appended"
    assert float(item["action.qpos"][0]) == 11.0
    assert int(again[0]["index"]) == 0

    info = ropewalk.json("info", root)
    assert info["total_episodes"] == before.total_episodes + 1
    assert info["total_frames"] == before.total_frames + 12
    out = tmp_path / "back"
    convert(ropewalk, root, out, "lerobot_v21", "--repair-video")
    last = Source(out).table(before.total_episodes)
    np.testing.assert_array_equal(last["action.qpos"][:, 0], np.arange(12, dtype=np.float32))


def test_upstreams_converter_agrees_with_ours(ropewalk, simulated, accepted, tmp_path):
    ropewalk("export", simulated, "--format", "lerobot_v21", "--out", tmp_path / "pair")
    theirs = tmp_path / "theirs"
    shutil.copytree(tmp_path / "pair" / "accepted", theirs)
    command = [sys.executable, "-m", "lerobot.datasets.v30.convert_dataset_v21_to_v30"]
    command += ["--repo-id", "theirs", "--root", str(tmp_path), "--push-to-hub=false"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]

    a = pq.read_table(accepted / "data/chunk-000/file-000.parquet")
    b = pq.read_table(theirs / "data/chunk-000/file-000.parquet")
    assert sorted(a.column_names) == sorted(b.column_names)
    for name in a.column_names:
        assert a[name].to_pylist() == b[name].to_pylist(), name
    rows_a = pq.read_table(accepted / "meta/episodes").to_pylist()
    rows_b = pq.read_table(theirs / "meta/episodes").to_pylist()
    info = json.loads((accepted / "meta/info.json").read_text())
    cameras = [k for k, f in info["features"].items() if f["dtype"] == "video"]
    for ours, upstreams in zip(rows_a, rows_b, strict=True):
        for key in ("episode_index", "length", "tasks", "dataset_from_index", "dataset_to_index"):
            assert ours[key] == upstreams[key], key
        for camera in cameras:
            for key in ("from_timestamp", "to_timestamp"):
                key = f"videos/{camera}/{key}"
                assert abs(ours[key] - upstreams[key]) < 1e-4, key
        for key, value in upstreams.items():
            if not key.startswith("stats/") or key.split("/")[-1] not in MOMENTS:
                continue
            np.testing.assert_allclose(
                np.asarray(ours[key], dtype=float).ravel(),
                np.asarray(value, dtype=float).ravel(),
                rtol=1e-5,
                atol=1e-6,
                err_msg=key,
            )
    for camera in cameras:
        path = f"videos/{camera}/chunk-000/file-000.mp4"
        np.testing.assert_array_equal(decode(accepted / path), decode(theirs / path))


def test_probe_sees_a_constant_rate_from_zero(accepted):
    info = json.loads((accepted / "meta/info.json").read_text())
    for path in sorted(accepted.glob("videos/*/*/*.mp4")):
        command = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-of", "json"]
        command += ["-show_entries", "stream=avg_frame_rate,time_base:packet=pts", str(path)]
        found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        stream = found["streams"][0]
        assert stream["avg_frame_rate"] == f"{info['fps']}/1"
        tick = int(stream["time_base"].split("/")[1]) // info["fps"]
        times = sorted(packet["pts"] for packet in found["packets"])
        assert times == [k * tick for k in range(info["total_frames"])]


def test_an_empty_half_is_no_dataset_for_upstream_but_one_for_us(ropewalk, accepted):
    rejected = accepted.parent / "rejected"
    info = ropewalk.json("info", rejected)
    assert info["total_episodes"] == 0
    assert not (rejected / "meta/episodes").exists()
    assert not (rejected / "data").exists()
