"""PyPI's rosbags and our format/bag agree: on real bags, and on each other's files."""

import hashlib
import json
import os
import struct
import subprocess
from pathlib import Path

import pytest
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode
from rosbags.rosbag2 import Reader as Reader2
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

ROOT = Path(__file__).resolve().parents[3]
NS = 1_700_000_000_123_456_789


def program(name: str) -> str:
    """Returns a conformance program of the build that ROPEWALK_BIN comes from."""
    ropewalk = Path(os.environ.get("ROPEWALK_BIN", ROOT / "build/dev/bin/ropewalk"))
    path = ropewalk.parent.parent / "conformance" / name
    if not os.access(path, os.X_OK):
        pytest.fail(f"no program at {path}; run: make interop")
    return str(path)


def run(*command) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ours(path: Path, *options) -> dict:
    return json.loads(run(program("bag_dump"), path, *options))


def by_channel(reader) -> dict:
    """Returns {(topic, index among equal topics): (count, sha256)} of what rosbags reads."""
    hashes: dict = {}
    for connection, time, data in reader.messages():
        entry = hashes.setdefault(connection.id, [connection.topic, 0, hashlib.sha256()])
        entry[1] += 1
        entry[2].update(struct.pack("<q", time) + bytes(data))
    return keyed((topic, count, h.hexdigest()) for _, (topic, count, h) in sorted(hashes.items()))


def keyed(entries) -> dict:
    out: dict = {}
    for topic, count, digest in entries:
        index = sum(1 for known, _ in out if known == topic)
        out[topic, index] = (count, digest)
    return out


def our_channels(dump: dict) -> dict:
    return keyed((c["topic"], c["count"], c["sha256"]) for c in dump["channels"] if c["count"])


def assert_agree(dump: dict, reader) -> None:
    assert our_channels(dump) == by_channel(reader)
    assert sum(c["count"] for c in dump["channels"]) == reader.message_count
    if reader.message_count:
        assert (dump["first"], dump["last"]) == (reader.start_time, reader.end_time - 1)


def rosbag1_files(testdata) -> list[Path]:
    return [p for p in sorted(testdata("rosbag1").glob("*.bag")) if p.stat().st_size > 0]


def databases(testdata) -> list[Path]:
    return sorted(testdata("rosbag2").rglob("*.db3"))


def test_rosbags_agrees_on_every_file(testdata):
    files = rosbag1_files(testdata)
    assert len(files) == 4
    for path in files:
        with Reader1(path) as reader:
            dump = ours(path)
            assert_agree(dump, reader)
            assert [c["md5sum"] for c in dump["channels"]] == [c.digest for c in reader.connections]
            assert [c["schema"] for c in dump["channels"]] == [
                c.msgdef.data for c in reader.connections
            ]
            assert [(c["callerid"], c["latching"]) for c in dump["channels"]] == [
                (c.ext.callerid or "", bool(c.ext.latching)) for c in reader.connections
            ]
    files = databases(testdata)
    assert len(files) == 15
    for path in files:
        with Reader2(path) as reader:
            dump = ours(path)
            assert_agree(dump, reader)
            assert [c["type"] for c in dump["channels"]] == [c.msgtype for c in reader.connections]
            assert [c["type_hash"] for c in dump["channels"]] == [
                c.digest for c in reader.connections
            ]


def test_rosbags_agrees_on_directories(testdata):
    """File by file: as a directory, rosbags leaves out topics whose QoS differ in metadata.yaml."""
    directories = sorted(p.parent for p in testdata("rosbag2").rglob("sqlite3/**/metadata.yaml"))
    assert len(directories) == 7
    for path in directories:
        dump = ours(path, "--order", "file")
        got: dict = {}
        for part in sorted(path.glob("*.db3")):
            with Reader2(part) as reader:
                for connection, time, data in reader.messages():
                    entry = got.setdefault(connection.topic, [0, []])
                    entry[0] += 1
                    entry[1].append((time, bytes(data)))
        mine = {c["topic"]: c["count"] for c in dump["channels"] if c["count"]}
        assert mine == {topic: count for topic, (count, _) in got.items()}
        first = min(times[0][0] for _, times in got.values())
        last = max(times[-1][0] for _, times in got.values())
        assert (dump["first"], dump["last"]) == (first, last)


@pytest.mark.parametrize("compression", ["none", "lz4", "bz2"])
def test_rosbags_reads_what_we_write(testdata, tmp_path, compression):
    for path in rosbag1_files(testdata):
        copy = tmp_path / f"{compression}-{path.name}"
        run(program("bag_copy"), path, copy, "--compression", compression, "--chunk-bytes", 50000)
        with Reader1(path) as before, Reader1(copy) as after:
            if before.message_count:
                assert by_channel(before) == by_channel(after)
            assert_agree(ours(copy), after)
        assert ours(copy)["problems"] == []
    if compression != "none":
        return
    for number, path in enumerate(databases(testdata)):
        copy = tmp_path / f"copy{number}"
        run(program("bag_copy"), path, copy, "--max-file-bytes", 86016)
        with Reader2(path) as before, Reader2(copy) as after:
            assert by_channel(before) == by_channel(after)
            for a, b in zip(before.connections, after.connections, strict=True):
                assert (a.topic, a.msgtype, a.digest, a.ext) == (
                    b.topic,
                    b.msgtype,
                    b.digest,
                    b.ext,
                )


@pytest.mark.parametrize("compression", [None, "LZ4", "BZ2"])
def test_we_read_rosbag1_of_rosbags(tmp_path, compression):
    store = get_typestore(Stores.ROS1_NOETIC)
    path = tmp_path / "x.bag"
    writer = Writer1(path)
    if compression:
        writer.set_compression(Writer1.CompressionFormat[compression])
    with writer:
        one = writer.add_connection("/one", "std_msgs/msg/String", typestore=store)
        two = writer.add_connection("/two", "sensor_msgs/msg/JointState", typestore=store)
        for i in range(2000):
            writer.write(two if i % 5 == 0 else one, NS + i * 1000, f"{i}".encode() * 50)
    with Reader1(path) as reader:
        dump = ours(path)
        assert_agree(dump, reader)
        assert dump["problems"] == []
        assert [c["md5sum"] for c in dump["channels"]] == [c.digest for c in reader.connections]


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("mode", ["NONE", "MESSAGE", "FILE"])
def test_we_read_rosbag2_of_rosbags(tmp_path, mode, version):
    store = get_typestore(Stores.ROS2_HUMBLE)
    path = tmp_path / "bag"
    writer = Writer2(path, version=version)
    writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        one = writer.add_connection("/one", "std_msgs/msg/String", typestore=store)
        two = writer.add_connection("/two", "sensor_msgs/msg/JointState", typestore=store)
        for i in range(2000):
            writer.write(two if i % 5 == 0 else one, NS + i * 1000, b"\0\1\0\0" + b"%d" % i * 50)
    with Reader2(path) as reader:
        dump = ours(path)
        assert_agree(dump, reader)
        assert dump["problems"] == []
        assert [c["schema_encoding"] for c in dump["channels"]] == ["ros2msg", "ros2msg"]
    files = [p for p in path.iterdir() if p.name != "metadata.yaml"]
    alone = ours(files[0])
    assert our_channels(alone) == our_channels(dump)


def test_unfinished_bag_of_rosbags_is_read(tmp_path):
    """The header of a bag that was never closed says that there is no index."""
    store = get_typestore(Stores.ROS1_NOETIC)
    path = tmp_path / "x.bag"
    with Writer1(path) as writer:
        one = writer.add_connection("/one", "std_msgs/msg/String", typestore=store)
        for i in range(500):
            writer.write(one, NS + i, b"x" * 3000)
    data = bytearray(path.read_bytes())
    at = data.index(b"index_pos=") + 10
    data[at : at + 8] = bytes(8)
    (tmp_path / "y.bag.active").write_bytes(data)
    whole, scanned = ours(path), ours(tmp_path / "y.bag.active")
    assert our_channels(whole) == our_channels(scanned)
    assert [p for p in scanned["problems"] if "unfinished" in p]
