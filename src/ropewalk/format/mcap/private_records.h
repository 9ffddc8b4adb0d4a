#pragma once
// The private records of a recording. Every MCAP reader skips them by their length; ours uses them
// to find its place in a damaged file and to open an unfinished one without walking it.
//
// All integers are little-endian; `marker` is kRecordingMarker; `crc` is the CRC-32 of the content
// before it. A reader ignores a record whose version it does not know.
//
//   0xA0 Sync        directly before a chunk, always 55 bytes with its head
//        marker 16 bytes | version u16 = 1 | offset u64 | checkpoint u64 | chunk u64 | crc u32
//        offset: of this record in the file; checkpoint: of the last Checkpoint, 0 for none;
//        chunk: number of the chunk that follows, from 0
//
//   0xA1 Checkpoint  between chunks, now and then
//        marker 16 bytes | version u16 = 1 | offset u64 | previous u64 | records | crc u32
//        previous: offset of an earlier Checkpoint, 0 for none; records: what a summary would hold
//        of the file up to here, and the chain from `previous` on has not: Schema, Channel,
//        ChunkIndex, AttachmentIndex, MetadataIndex records, as MCAP defines them, and a Recording
//        with the Checkpoints in between. The first one stands directly behind the header
//
//   0xA2 Recording   in the summary of a finished recording
//        marker 16 bytes | version u16 = 1 | sync_length u32 | (offset u64, length u64)*  | crc u32
//        sync_length: bytes of private records directly before every chunk of the chunk index;
//        the pairs: every Checkpoint. With it the extents tile the file without a look at them
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ropewalk/base/core/bytes.h"

namespace ropewalk::mcap {

inline constexpr std::uint8_t kSyncOpcode = 0xA0;
inline constexpr std::uint8_t kCheckpointOpcode = 0xA1;
inline constexpr std::uint8_t kRecordingOpcode = 0xA2;
inline constexpr std::uint16_t kRecordingVersion = 1;
/// Sixteen bytes that occur in no other place by chance.
inline constexpr std::array<std::uint8_t, 16> kRecordingMarker{
    0xF1, 0x52, 0x6F, 0x70, 0x65, 0x57, 0x6C, 0x6B, 0x1A, 0xC3, 0x8E, 0x05, 0x97, 0xD4, 0x2B, 0xE0};
inline constexpr std::uint64_t kSyncRecordBytes = 9 + 16 + 2 + 8 + 8 + 8 + 4;

struct SyncRecord {
  std::uint64_t offset = 0;
  std::uint64_t checkpoint = 0;
  std::uint64_t chunk = 0;
};

/// Lifetime: `records` is a view into what was parsed.
struct CheckpointRecord {
  std::uint64_t offset = 0;
  std::uint64_t previous = 0;
  ByteSpan records;
};

struct RecordingRecord {
  std::uint32_t sync_length = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> checkpoints;  ///< offset, length
};

inline bool is_own_record(std::uint8_t opcode) {
  return opcode >= kSyncOpcode && opcode <= kRecordingOpcode;
}

void append_sync(Bytes& out, const SyncRecord& record);
void append_checkpoint(Bytes& out, std::uint64_t offset, std::uint64_t previous, ByteSpan records);
void append_recording(Bytes& out, const RecordingRecord& record);

/// Parses a whole record, head included, that stands at `offset` of the file; what follows it in
/// `bytes` is ignored. Returns nullopt when it is not one, or is damaged, or stands elsewhere than
/// it says.
std::optional<SyncRecord> parse_sync(ByteSpan bytes, std::uint64_t offset);
std::optional<CheckpointRecord> parse_checkpoint(ByteSpan bytes, std::uint64_t offset);
/// Parses the content of the record.
std::optional<RecordingRecord> parse_recording(ByteSpan content);

}  // namespace ropewalk::mcap
