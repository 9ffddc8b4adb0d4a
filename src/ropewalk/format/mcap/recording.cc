// Opening an unfinished recording by its checkpoints: the last sync record near the end leads to
// the last checkpoint, and from there each one to the one before.
#include <algorithm>
#include <cstring>

#include "ropewalk/format/mcap/reader_internal.h"

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kFirstSearchBytes = 64ULL << 10;
constexpr std::uint64_t kSearchBytes = 1ULL << 20;

// A recording has a checkpoint directly behind its header.
Result<bool> is_recording(const FileMap& map) {
  RecordReader records(*map.source, 0, map.source->size(), 4096, map.options.limits);
  auto head = records.next();
  if (!head.ok() || !head->has_value() || !(*head)->is(Opcode::header)) return false;
  head = records.next();
  if (!head.ok() || !head->has_value() || (*head)->opcode != kCheckpointOpcode) return false;
  const std::uint64_t size = (*head)->end() - (*head)->offset;
  if (size > kSearchBytes) return false;
  SourceWindow window(*map.source);
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, window.view((*head)->offset, size));
  return parse_checkpoint(bytes, (*head)->offset).has_value();
}

// Searches backwards for the last sync record or checkpoint that holds, and returns the offset of
// the last checkpoint.
Result<std::optional<std::uint64_t>> find_last_checkpoint(const FileMap& map) {
  SourceWindow window(*map.source);
  std::uint64_t end = map.source->size();
  for (std::uint64_t step = kFirstSearchBytes; end > kMagic.size(); step = kSearchBytes) {
    const std::uint64_t begin = end > step ? end - step : 0;
    const std::uint64_t overlap = std::min(map.source->size() - end, kSyncRecordBytes);
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, window.view(begin, end + overlap - begin));
    std::size_t left = bytes.size();
    while (left >= kRecordingMarker.size()) {
      const auto* const first = static_cast<const std::uint8_t*>(
          ::memrchr(bytes.data(), kRecordingMarker[0], left - kRecordingMarker.size() + 1));
      if (first == nullptr) break;
      const auto at = static_cast<std::uint64_t>(first - bytes.data());
      left = static_cast<std::size_t>(at) + kRecordingMarker.size() - 1;
      if (std::memcmp(first, kRecordingMarker.data(), kRecordingMarker.size()) != 0) continue;
      if (begin + at >= kRecordHeadBytes) {
        // The record may begin in the part before: it is read anew.
        const std::uint64_t record = begin + at - kRecordHeadBytes;
        SourceWindow single(*map.source);
        ROPEWALK_ASSIGN_OR_RETURN(
            const ByteSpan head,
            single.view(record, std::min(kSyncRecordBytes, map.source->size() - record)));
        if (head[0] == kSyncOpcode) {
          if (const auto sync = parse_sync(head, record)) {
            return std::optional<std::uint64_t>(sync->checkpoint);
          }
        } else if (head[0] == kCheckpointOpcode) {
          return std::optional<std::uint64_t>(record);  // checked by who reads it
        }
      }
    }
    end = begin;
  }
  return std::optional<std::uint64_t>();
}

}  // namespace

Result<std::optional<std::uint64_t>> load_checkpoints(FileMap& map) {
  using Offset = std::optional<std::uint64_t>;
  ROPEWALK_ASSIGN_OR_RETURN(const bool recording, is_recording(map));
  if (!recording) return Offset();
  ROPEWALK_ASSIGN_OR_RETURN(const Offset last, find_last_checkpoint(map));
  if (!last.has_value() || *last == 0) return Offset();

  FileMap found;  // taken over when the whole chain holds
  found.source = map.source;
  found.options = map.options;
  found.recording.emplace();
  found.recording->sync_length = static_cast<std::uint32_t>(kSyncRecordBytes);
  std::vector<std::pair<std::uint64_t, Bytes>> chain;  // the newest first
  SourceWindow window(*map.source);
  for (std::uint64_t offset = *last; offset != 0;) {
    if (map.source->size() - kRecordHeadBytes < offset) return Offset();
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan head, window.view(offset, kRecordHeadBytes, 4096));
    std::uint64_t size = 0;
    std::memcpy(&size, head.data() + 1, sizeof size);
    if (head[0] != kCheckpointOpcode || size > map.options.limits.max_record_bytes ||
        size > map.source->size() - offset - kRecordHeadBytes) {
      return Offset();
    }
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, window.view(offset, size + kRecordHeadBytes));
    const auto checkpoint = parse_checkpoint(bytes, offset);
    if (!checkpoint.has_value() || checkpoint->previous >= offset) return Offset();
    found.recording->checkpoints.emplace_back(offset, bytes.size());
    chain.emplace_back(offset, Bytes(checkpoint->records.begin(), checkpoint->records.end()));
    offset = checkpoint->previous;
  }
  std::vector<ChunkIndex> chunks;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    if (!parse_index_records(found, it->first, it->second, chunks).ok()) return Offset();
  }
  ROPEWALK_RETURN_IF_ERROR(add_chunk_segments(found, std::move(chunks), *last, true));
  if (!found.problems.empty()) return Offset();
  map.schemas = std::move(found.schemas);
  map.channels = std::move(found.channels);
  map.segments = std::move(found.segments);
  map.attachments = std::move(found.attachments);
  map.metadata = std::move(found.metadata);
  map.recording = std::move(found.recording);
  return last;
}

}  // namespace ropewalk::mcap
