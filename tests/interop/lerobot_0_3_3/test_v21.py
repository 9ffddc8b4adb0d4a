"""Upstream 0.3.3 opens, iterates and extends what we write as v2.1."""

import json
import shutil

import numpy as np
import pytest
import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset, LeRobotDatasetMetadata
from lerobot.datasets.utils import load_stats
from lerobot.datasets.v21.convert_stats import check_aggregate_stats, convert_stats
from lerobot_common import Source, assert_edges, assert_items_equal, convert, frame_for

BACKENDS = ["torchcodec", "pyav"]


class Part(Source):
    """The episodes of a source from `first` on."""

    def __init__(self, root, first):
        super().__init__(root)
        self.rows = self.rows[first:]


def test_metadata_says_what_was_exported(simulated, accepted):
    source = Part(simulated, 1)
    meta = LeRobotDatasetMetadata("local/x", root=accepted)
    assert meta.total_episodes == len(source.rows) == 2
    assert meta.total_frames == sum(row["length"] for row in source.rows)
    assert meta.fps == source.info["fps"] and isinstance(meta.fps, int)
    assert meta.total_chunks == 1
    assert sorted(meta.episodes) == [0, 1]
    assert sorted(meta.video_keys) == sorted(source.cameras)
    stats = meta.episodes_stats[1]
    first, rows = source.rows[0]["length"], source.rows[1]["length"]
    assert stats["index"]["min"].tolist() == [first]
    assert stats["index"]["max"].tolist() == [first + rows - 1]
    assert stats["episode_index"]["mean"].tolist() == [1]
    assert meta.stats["index"]["max"].tolist() == [first + rows - 1]
    assert meta.stats[source.cameras[0]]["mean"].shape == (3, 1, 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_item_is_what_was_recorded(simulated, accepted, backend):
    dataset = LeRobotDataset("local/x", root=accepted, video_backend=backend)
    assert_items_equal(dataset, Part(simulated, 1))


def test_a_round_trip_by_way_of_v3_changes_nothing(simulated, accepted, unpacked):
    dataset = LeRobotDataset("local/x", root=unpacked, video_backend="torchcodec")
    assert_items_equal(dataset, Part(simulated, 1))
    for name in ("episodes.jsonl", "tasks.jsonl"):
        assert (unpacked / "meta" / name).read_text() == (accepted / "meta" / name).read_text()


def test_real_clips_are_copied(real):
    source, out = real
    dataset = LeRobotDataset("local/x", root=out, video_backend="torchcodec")
    assert_items_equal(dataset, Source(source), frames_every=7)
    before = {path.read_bytes() for path in source.glob("videos/*/*/*.mp4")}
    assert {path.read_bytes() for path in out.glob("videos/*/*/*.mp4")} == before


def test_deltas_stop_at_the_edges_of_an_episode(simulated, accepted):
    assert_edges(
        LeRobotDataset, accepted, Part(simulated, 1), "action.qpos", video_backend="torchcodec"
    )


def test_a_loader_with_two_workers_gives_every_item(accepted):
    dataset = LeRobotDataset("local/x", root=accepted, video_backend="torchcodec")
    loader = torch.utils.data.DataLoader(dataset, batch_size=7, num_workers=2)
    indices = []
    for batch in loader:
        indices += batch["index"].tolist()
    assert indices == list(range(len(dataset)))


def test_upstream_appends_and_both_read_the_result(ropewalk, accepted, tmp_path):
    root = tmp_path / "appended"
    # Its recorder counts every .parquet and .mp4 below the root when it saves.
    shutil.copytree(accepted, root)
    dataset = LeRobotDataset("local/x", root=root)
    before = len(dataset)
    for i in range(10):
        dataset.add_frame(frame_for(dataset, float(i)), task="appended")
    dataset.save_episode()

    again = LeRobotDataset("local/x", root=root)
    assert len(again) == before + 10
    assert again[len(again) - 1]["task"] == "appended"
    info = ropewalk.json("info", root)
    assert info["total_frames"] == before + 10
    out = tmp_path / "copied"
    convert(ropewalk, root, out, "lerobot_v21")
    last = Source(out).table(2)
    np.testing.assert_array_equal(last["action.qpos"][:, 0], np.arange(10, dtype=np.float32))


def test_upstreams_script_turns_v20_into_v21_with_our_statistics(accepted, tmp_path):
    root = tmp_path / "v20"
    shutil.copytree(accepted, root)
    ours = [
        json.loads(line) for line in (root / "meta/episodes_stats.jsonl").read_text().splitlines()
    ]
    # v2.0 keeps one set of statistics, of all features; the pool of ours is the reference.
    pooled = LeRobotDatasetMetadata("local/x", root=root).stats
    reference = {
        name: {k: v.tolist() for k, v in values.items() if k != "count"}
        for name, values in pooled.items()
    }
    info = json.loads((root / "meta/info.json").read_text())
    info["codebase_version"] = "v2.0"
    (root / "meta/info.json").write_text(json.dumps(info))
    (root / "meta/stats.json").write_text(json.dumps(reference))
    (root / "meta/episodes_stats.jsonl").unlink()

    dataset = LeRobotDataset("local/x", root=root, video_backend="torchcodec")
    convert_stats(dataset)
    # Small pictures are not downsampled, so that even those of the cameras agree.
    check_aggregate_stats(dataset, load_stats(root))
    for row in ours:
        theirs = dataset.meta.episodes_stats[row["episode_index"]]
        for name, values in row["stats"].items():
            for key in ("min", "max", "mean", "count"):
                np.testing.assert_allclose(
                    np.asarray(values[key], dtype=float).ravel(),
                    np.asarray(theirs[name][key], dtype=float).ravel(),
                    rtol=1e-5,
                    atol=1e-2 if "image" in name else 1e-6,
                    err_msg=f"{name}: {key}",
                )
