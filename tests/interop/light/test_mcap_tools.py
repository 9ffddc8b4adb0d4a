"""PyPI's mcap writes files, reads what `ropewalk mcap` makes of them, and finds them unchanged."""

import json
import random

import pytest
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer

TOPICS = ["/joints", "/camera/left", "/camera/right", "/tf_static"]


def write(path, seed, compression=CompressionType.ZSTD):
    """Writes 600 messages out of order in time, with metadata and an attachment."""
    rng = random.Random(seed)
    with path.open("wb") as stream:
        writer = Writer(stream, chunk_size=4096, compression=compression)
        writer.start("ros2", "peer")
        schema = writer.register_schema("Text", "jsonschema", b'{"type": "object"}')
        channels = [
            writer.register_channel(topic, "json", schema, {"seed": str(seed)}) for topic in TOPICS
        ]
        writer.add_metadata("run", {"seed": str(seed)})
        for i in range(600):
            writer.add_message(
                channels[rng.choice([0, 0, 0, 1, 2, 2, 3])],
                log_time=1_000_000 * rng.randrange(1000),
                publish_time=i,
                sequence=i,
                data=json.dumps({"i": i, "pad": "x" * rng.randrange(50)}).encode(),
            )
        writer.add_attachment(500, 3, "map.bin", "application/x", bytes(range(256)))
        writer.finish()
    return path


def read(path, log_time_order=False):
    """Returns (messages, metadata, attachments), CRCs checked."""
    with path.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        messages = [
            (c.topic, s.name, m.log_time, m.publish_time, m.sequence, m.data)
            for s, c, m in reader.iter_messages(log_time_order=log_time_order)
        ]
        metadata = [(m.name, dict(m.metadata)) for m in reader.iter_metadata()]
        attachments = [(a.name, a.log_time, a.data) for a in reader.iter_attachments()]
        statistics = reader.get_summary().statistics
        assert statistics.message_count == len(messages)
        return messages, metadata, attachments


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return write(tmp_path_factory.mktemp("tools") / "one.mcap", 1)


@pytest.mark.parametrize("compression", ["preserve", "none", "lz4", "zstd"])
def test_a_copy_is_equal(ropewalk, tmp_path, one, compression):
    out = tmp_path / "out.mcap"
    ropewalk("mcap", "filter", one, "--compression", compression, "-o", out)
    assert read(out) == read(one)


def test_sorting_is_stable(ropewalk, tmp_path, one):
    ropewalk("mcap", "sort", one, "-o", tmp_path / "time.mcap")
    messages = read(one)[0]
    assert read(tmp_path / "time.mcap")[0] == sorted(messages, key=lambda m: m[2])
    ropewalk("mcap", "sort", one, "--order", "topic", "-o", tmp_path / "topic.mcap")
    assert read(tmp_path / "topic.mcap")[0] == sorted(messages, key=lambda m: (m[0], m[2]))


def test_filters_select(ropewalk, tmp_path, one):
    ropewalk(
        *("mcap", "filter", one, "-y", "/camera/.*", "-S", 200_000_000, "-E", 700_000_000),
        *("-o", tmp_path / "f.mcap"),
    )
    wanted = [
        m for m in read(one)[0] if m[0].startswith("/camera/") and 200_000_000 <= m[2] < 700_000_000
    ]
    assert read(tmp_path / "f.mcap")[0] == wanted


def test_a_merge_has_everything_once(ropewalk, tmp_path, one):
    two = write(tmp_path / "two.mcap", 2, CompressionType.LZ4)
    out = tmp_path / "merged.mcap"
    ropewalk("mcap", "merge", one, two, "--allow-duplicate-metadata", "-o", out)
    both = read(one)[0] + read(two)[0]
    assert read(out)[0] == sorted(both, key=lambda m: m[2])
    assert len(read(out)[1]) == 2
    assert len(read(out)[2]) == 2


def test_parts_add_up(ropewalk, tmp_path, one):
    for way in (["--duration", "250ms"], ["--count", "100"], ["--by-topic"], ["--size", "20kB"]):
        out = tmp_path / way[0].strip("-")
        ropewalk("mcap", "split", one, *way, "-o", out)
        parts = [read(path)[0] for path in sorted(out.iterdir())]
        assert len(parts) > 2
        assert sorted(m for part in parts for m in part) == sorted(read(one)[0])


def test_parts_are_added_in_place(ropewalk, tmp_path):
    path = write(tmp_path / "edit.mcap", 3)
    before = read(path)
    (tmp_path / "note.txt").write_text("hello")
    ropewalk("mcap", "add", "attachment", path, "-f", tmp_path / "note.txt", "--log-time", 9)
    ropewalk("mcap", "add", "metadata", path, "-n", "cell", "-k", "arm=left")
    messages, metadata, attachments = read(path)
    assert messages == before[0]
    assert metadata == [*before[1], ("cell", {"arm": "left"})]
    assert attachments == [*before[2], ("note.txt", 9, b"hello")]


def test_a_cut_file_is_recovered(ropewalk, tmp_path, one):
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(one.read_bytes()[:20_000])
    ropewalk("mcap", "recover", cut, "-o", tmp_path / "whole.mcap", code=3)
    recovered = read(tmp_path / "whole.mcap")[0]
    assert 300 < len(recovered) < 600
    assert recovered == read(one)[0][: len(recovered)]
