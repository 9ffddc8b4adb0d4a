"""lerobot 0.3.3 on a dataset that was packed as v3.0 and unpacked, and its v2.0 script on ours."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lerobot.datasets.lerobot_dataset import LeRobotDataset, LeRobotDatasetMetadata
from lerobot.datasets.v21.convert_stats import convert_stats
from lerobot_common import Source, assert_edges, assert_items_equal


@pytest.fixture(scope="session")
def recorded(ropewalk, tmp_path_factory) -> Path:
    raw = tmp_path_factory.mktemp("recorded") / "raw"
    ropewalk("simulate", raw, "--episodes", 3, "--seconds", 1.2, "--cameras", 2, "--size", "96x64")
    return raw


@pytest.fixture(scope="session")
def unpacked(ropewalk, recorded) -> Path:
    packed, out = recorded.parent / "packed", recorded.parent / "unpacked"
    ropewalk("convert", recorded, packed, "--to", "lerobot_v3")
    ropewalk("convert", packed, out, "--to", "lerobot_v21")
    return out


def stated(value):
    """The value without members that are null: a table cannot tell them from absent ones."""
    if isinstance(value, dict):
        return {k: stated(v) for k, v in value.items() if v is not None}
    return [stated(v) for v in value] if isinstance(value, list) else value


def lines(root: Path, name: str) -> list:
    return [stated(json.loads(line)) for line in (root / "meta" / name).read_text().splitlines()]


def test_a_round_trip_by_way_of_v3_changes_nothing(recorded, unpacked):
    dataset = LeRobotDataset("local/x", root=unpacked, video_backend="torchcodec")
    assert_items_equal(dataset, Source(recorded))
    for name in ("episodes.jsonl", "tasks.jsonl"):
        assert lines(unpacked, name) == lines(recorded, name)


def test_deltas_stop_at_the_edges_of_an_episode(recorded, unpacked):
    assert_edges(
        LeRobotDataset, unpacked, Source(recorded), "action.qpos", video_backend="torchcodec"
    )


def test_upstreams_script_computes_the_statistics_that_we_wrote(unpacked, tmp_path):
    root = tmp_path / "v20"
    shutil.copytree(unpacked, root)
    ours = lines(root, "episodes_stats.jsonl")
    pooled = LeRobotDatasetMetadata("local/x", root=root).stats
    info = json.loads((root / "meta/info.json").read_text())
    info["codebase_version"] = "v2.0"
    (root / "meta/info.json").write_text(json.dumps(info))
    reference = {
        name: {k: v.tolist() for k, v in values.items() if k != "count"}
        for name, values in pooled.items()
    }
    (root / "meta/stats.json").write_text(json.dumps(reference))
    (root / "meta/episodes_stats.jsonl").unlink()

    dataset = LeRobotDataset("local/x", root=root, video_backend="torchcodec")
    convert_stats(dataset)
    for row in ours:
        theirs = dataset.meta.episodes_stats[row["episode_index"]]
        for name, values in row["stats"].items():
            # A camera's were taken before the pictures were encoded: only the means compare.
            camera = info["features"][name]["dtype"] == "video"
            for key in ("mean", "count") if camera else ("min", "max", "mean", "count"):
                np.testing.assert_allclose(
                    np.asarray(values[key], dtype=float).ravel(),
                    np.asarray(theirs[name][key], dtype=float).ravel(),
                    rtol=1e-2 if camera else 1e-5,
                    atol=1e-2 if camera else 1e-6,
                    err_msg=f"{name}: {key}",
                )
