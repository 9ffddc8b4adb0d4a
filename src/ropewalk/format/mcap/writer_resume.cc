// A Writer that goes on with a file: what the end of the file needs is taken from its reader.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/format/mcap/reader_internal.h"
#include "ropewalk/format/mcap/writer_internal.h"

namespace ropewalk::mcap {
namespace {

// CRC of the data section before `data_end`, or 0 where the file has none.
Result<std::uint32_t> data_crc_of(const FileMap& map, std::uint64_t data_end, bool wanted) {
  SourceWindow window(*map.source);
  if (map.data_end_offset == data_end) {
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan record, window.view(data_end, kRecordHeadBytes + 4));
    std::uint32_t stored = 0;
    std::memcpy(&stored, record.data() + kRecordHeadBytes, sizeof stored);
    if (stored != 0 || !wanted) return stored;
  }
  if (!wanted) return 0U;
  constexpr std::uint64_t kPart = 1ULL << 20;
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < data_end; at += kPart) {
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan part, window.view(at, std::min(kPart, data_end - at)));
    crc = crc32(crc, part);
  }
  return crc;
}

// Messages by channel, and their times: stored, or counted.
Status count_what_is_there(const Reader& reader, std::uint64_t data_end, Statistics& out) {
  if (reader.has_summary() && reader.statistics().has_value()) {
    out = *reader.statistics();
    return ok_status();
  }
  const FileMap& map = file_map_of(reader);
  std::map<std::uint16_t, std::uint64_t> counts;
  MessageReader messages = reader.messages({.order = Order::file});
  for (MessageView m; messages.next(m);) {
    if (map.segments[m.segment].offset >= data_end) continue;
    if (out.message_count++ == 0) {
      out.message_start_time = out.message_end_time = m.log_time;
    } else {
      out.message_start_time = std::min(out.message_start_time, m.log_time);
      out.message_end_time = std::max(out.message_end_time, m.log_time);
    }
    ++counts[m.channel_id];
  }
  out.channel_message_counts.assign(counts.begin(), counts.end());
  return messages.status();
}

}  // namespace

Status Writer::resume(Sink& sink, const Reader& reader, std::uint64_t data_end) {
  Impl& w = *impl_;
  const FileMap& map = file_map_of(reader);
  if (w.sink != nullptr) {
    return failed_precondition(
        fmt::format("{} is still open: call finish() first", w.sink->name()));
  }
  if (!map.ambiguous_channels.empty() || !map.ambiguous_schemas.empty()) {
    return failed_precondition(fmt::format(
        "{}: one id has several meanings in the file: recover it first", map.source->name()));
  }
  Statistics statistics;
  ROPEWALK_RETURN_IF_ERROR(count_what_is_there(reader, data_end, statistics));
  ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t crc,
                            data_crc_of(map, data_end, w.options.data_crc));
  for (const auto& [id, schema] : reader.schemas()) {
    ROPEWALK_RETURN_IF_ERROR(add_schema_with_id(schema));
  }
  for (const auto& [id, channel] : reader.channels()) {
    Channel known = channel;
    if (known.schema_id != 0 && !reader.schemas().contains(known.schema_id)) {
      return failed_precondition(fmt::format("{}: channel \"{}\" has no schema: recover it first",
                                             map.source->name(), channel.topic));
    }
    ROPEWALK_RETURN_IF_ERROR(add_channel_with_id(known));
  }
  w.start_file(sink);
  w.options.data_crc = crc != 0;
  w.data_crc = crc;
  w.offset = data_end;
  w.sink_start = sink.size() - data_end;  // wraps where the sink holds the new end alone
  w.statistics = statistics;
  w.chunk_serial += statistics.chunk_count;
  for (auto& [key, chunk] : w.groups) w.start_chunk(*chunk);
  // Only what the file has counts as written; the ids are the same.
  for (const auto& [id, schema] : reader.schemas()) w.schemas.at(id)->in_data = true;
  for (const auto& [id, channel] : reader.channels()) w.channels[id]->in_data = true;
  for (const auto& [id, count] : statistics.channel_message_counts) {
    if (id < w.channels.size() && w.channels[id] != nullptr) w.channels[id]->messages = count;
  }
  std::uint32_t chunks = 0;
  ProblemList problems;
  for (Segment segment : map.segments) {
    if (!segment.is_chunk || segment.offset >= data_end) continue;
    ++chunks;
    if (!segment.index_crc) {
      ROPEWALK_RETURN_IF_ERROR(verify_segment(map, segment, problems));
    }
    w.chunk_indexes.push_back(segment.index);
  }
  for (const AttachmentIndex& a : reader.attachments()) {
    if (a.offset < data_end) w.attachment_indexes.push_back(a);
  }
  for (const MetadataIndex& m : reader.metadata()) {
    if (m.offset < data_end) w.metadata_indexes.push_back(m);
  }
  w.statistics.chunk_count = chunks;
  w.statistics.attachment_count = static_cast<std::uint32_t>(w.attachment_indexes.size());
  w.statistics.metadata_count = static_cast<std::uint32_t>(w.metadata_indexes.size());
  // Marks stand before all chunks of a file or before none.
  w.options.recording_marks = map.recording.has_value();
  if (map.recording.has_value()) {
    w.checkpoints = map.recording->checkpoints;
    std::ranges::sort(w.checkpoints);
    w.checkpoints.erase(std::unique(w.checkpoints.begin(), w.checkpoints.end()),
                        w.checkpoints.end());
    const std::uint64_t last = w.checkpoints.empty() ? 0 : w.checkpoints.back().first;
    const auto known = [&](const auto& indexes, auto member) {
      return static_cast<std::size_t>(
          std::ranges::count_if(indexes, [&](const auto& index) { return index.*member < last; }));
    };
    w.blocks.push_back({.offset = last,
                        .chunks = known(w.chunk_indexes, &ChunkIndex::chunk_start_offset),
                        .attachments = known(w.attachment_indexes, &AttachmentIndex::offset),
                        .metadata = known(w.metadata_indexes, &MetadataIndex::offset),
                        .checkpoints = w.checkpoints.size()});
  }
  w.synced_at = w.checkpoint_end = data_end;
  return ok_status();
}

}  // namespace ropewalk::mcap
