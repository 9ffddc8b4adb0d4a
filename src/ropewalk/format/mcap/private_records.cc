#include "ropewalk/format/mcap/private_records.h"

#include <algorithm>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/format/mcap/records.h"

namespace ropewalk::mcap {
namespace {

// Marker, version, offset and one more offset.
constexpr std::size_t kFrontBytes = 16 + 2 + 8 + 8;

void begin(Bytes& out, std::uint8_t opcode, std::uint64_t content_size) {
  ByteWriter writer(out);
  writer.write_le(opcode);
  writer.write_le(content_size);
  writer.write(kRecordingMarker);
  writer.write_le(kRecordingVersion);
}

void end(Bytes& out, std::size_t start) {
  const std::uint32_t crc = crc32(0, ByteSpan(out).subspan(start + kRecordHeadBytes));
  ByteWriter(out).write_le(crc);
}

// The content without its CRC, when marker, version and CRC hold.
std::optional<ByteSpan> checked(ByteSpan content) {
  if (content.size() < 16 + 2 + 4 || !std::ranges::equal(content.first(16), kRecordingMarker)) {
    return std::nullopt;
  }
  std::uint16_t version = 0;
  std::memcpy(&version, content.data() + 16, sizeof version);
  const ByteSpan covered = content.first(content.size() - 4);
  std::uint32_t stored = 0;
  std::memcpy(&stored, content.data() + covered.size(), sizeof stored);
  if (version != kRecordingVersion || stored != crc32(0, covered)) return std::nullopt;
  return covered;
}

std::optional<ByteSpan> content_of(ByteSpan bytes, std::uint8_t opcode) {
  if (bytes.size() < kRecordHeadBytes + kFrontBytes || bytes[0] != opcode) return std::nullopt;
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data() + 1, sizeof size);
  if (size > bytes.size() - kRecordHeadBytes) return std::nullopt;
  return checked(bytes.subspan(kRecordHeadBytes, static_cast<std::size_t>(size)));
}

template <typename T>
T load(ByteSpan bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

void append_sync(Bytes& out, const SyncRecord& record) {
  const std::size_t start = out.size();
  begin(out, kSyncOpcode, kSyncRecordBytes - kRecordHeadBytes);
  ByteWriter writer(out);
  writer.write_le(record.offset);
  writer.write_le(record.checkpoint);
  writer.write_le(record.chunk);
  end(out, start);
}

void append_checkpoint(Bytes& out, std::uint64_t offset, std::uint64_t previous, ByteSpan records) {
  const std::size_t start = out.size();
  begin(out, kCheckpointOpcode, kFrontBytes + records.size() + 4);
  ByteWriter writer(out);
  writer.write_le(offset);
  writer.write_le(previous);
  writer.write(records);
  end(out, start);
}

void append_recording(Bytes& out, const RecordingRecord& record) {
  const std::size_t start = out.size();
  begin(out, kRecordingOpcode, 16 + 2 + 4 + 16 * record.checkpoints.size() + 4);
  ByteWriter writer(out);
  writer.write_le(record.sync_length);
  for (const auto& [offset, length] : record.checkpoints) {
    writer.write_le(offset);
    writer.write_le(length);
  }
  end(out, start);
}

std::optional<SyncRecord> parse_sync(ByteSpan bytes, std::uint64_t offset) {
  const auto content = content_of(bytes, kSyncOpcode);
  if (!content.has_value() || content->size() < kFrontBytes + 8) return std::nullopt;
  const SyncRecord out{.offset = load<std::uint64_t>(*content, 18),
                       .checkpoint = load<std::uint64_t>(*content, 26),
                       .chunk = load<std::uint64_t>(*content, 34)};
  if (out.offset != offset) return std::nullopt;
  return out;
}

std::optional<CheckpointRecord> parse_checkpoint(ByteSpan bytes, std::uint64_t offset) {
  const auto content = content_of(bytes, kCheckpointOpcode);
  if (!content.has_value() || content->size() < kFrontBytes) return std::nullopt;
  const CheckpointRecord out{.offset = load<std::uint64_t>(*content, 18),
                             .previous = load<std::uint64_t>(*content, 26),
                             .records = content->subspan(kFrontBytes)};
  if (out.offset != offset) return std::nullopt;
  return out;
}

std::optional<RecordingRecord> parse_recording(ByteSpan content) {
  const auto covered = checked(content);
  if (!covered.has_value() || covered->size() < 22 || (covered->size() - 22) % 16 != 0) {
    return std::nullopt;
  }
  RecordingRecord out{.sync_length = load<std::uint32_t>(*covered, 18), .checkpoints = {}};
  for (std::size_t at = 22; at < covered->size(); at += 16) {
    out.checkpoints.emplace_back(load<std::uint64_t>(*covered, at),
                                 load<std::uint64_t>(*covered, at + 8));
  }
  return out;
}

}  // namespace ropewalk::mcap
