// Opening a file: the summary, and what lies outside it (the walk itself stands in scanner.cc).
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/format/mcap/reader_internal.h"

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kFooterRecordBytes = kRecordHeadBytes + kFooterContentBytes;
constexpr std::uint64_t kMaxSummaryBytes = 1ULL << 30;

// Attachment and metadata indexes outside the data section are dropped.
template <typename Index>
void keep_inside(FileMap& map, std::vector<Index>& indexes, std::uint64_t data_end) {
  std::erase_if(indexes, [&](const Index& index) {
    const bool inside = index.offset >= kMagic.size() && index.offset <= data_end &&
                        index.length >= kRecordHeadBytes && index.length <= data_end - index.offset;
    if (!inside) {
      map.report(ProblemKind::index_mismatch, index.offset, index.length,
                 fmt::format("the index entry of \"{}\" leaves the data section", index.name));
    }
    return !inside;
  });
}

// What Statistics counts must be there.
void compare_counts(FileMap& map) {
  if (!map.statistics.has_value()) return;
  const auto compare = [&](std::string_view what, std::uint64_t stated, std::size_t found) {
    if (stated == found) return;
    map.report(ProblemKind::statistics_mismatch, map.source->size(), 0,
               fmt::format("{} {} stated, {} found", stated, what, found));
  };
  compare("chunks", map.statistics->chunk_count,
          static_cast<std::size_t>(std::ranges::count(map.segments, true, &Segment::is_chunk)));
  compare("attachments", map.statistics->attachment_count, map.attachments.size());
  compare("metadata records", map.statistics->metadata_count, map.metadata.size());
}

// Decodes the chunks without which a channel or its schema would stay unknown.
Status harvest_definitions(FileMap& map) {
  const bool channels_known = !map.channels.empty() && map.has_summary;
  const auto is_unknown = [&](std::uint16_t id) {
    const auto channel = map.channels.find(id);
    return channel == map.channels.end() ||
           (channel->second.schema_id != 0 && !map.schemas.contains(channel->second.schema_id));
  };
  const bool schemas_known = std::ranges::none_of(
      map.channels, [&](const auto& entry) { return is_unknown(entry.first); });
  LoadedSegment loaded;
  for (Segment& segment : map.segments) {
    if (!segment.is_chunk) continue;
    const auto& ids = segment.index.message_index_offsets;
    const bool unknown =
        std::ranges::any_of(ids, [&](const auto& entry) { return is_unknown(entry.first); });
    if (!unknown && !(ids.empty() && !(channels_known && schemas_known))) continue;
    ProblemList ignored;  // told again by whoever reads the messages
    ROPEWALK_RETURN_IF_ERROR(load_segment(map, segment, loaded, ignored));
    if (loaded.damaged) continue;
    ChunkWalker walker(loaded.records);
    std::uint8_t opcode = 0;
    ByteSpan content;
    while (walker.next(opcode, content)) {
      if (opcode == static_cast<std::uint8_t>(Opcode::schema)) {
        if (auto schema = parse_schema(content); schema.ok()) {
          map.define(std::move(*schema), segment.offset, 0);
        }
      } else if (opcode == static_cast<std::uint8_t>(Opcode::channel)) {
        if (auto channel = parse_channel(content); channel.ok()) {
          map.define(std::move(*channel), segment.offset, 0);
        }
      }
    }
  }
  return ok_status();
}

}  // namespace

Status parse_index_records(FileMap& map, std::uint64_t begin, ByteSpan records,
                           std::vector<ChunkIndex>& chunks) {
  ChunkWalker walker(records);
  std::uint8_t opcode = 0;
  ByteSpan content;
  for (std::size_t at = 0; walker.next(opcode, content); at = walker.position()) {
    const std::uint64_t offset = begin + at;
    const std::uint64_t length = walker.position() - at;
    if (opcode == 0) return data_loss(fmt::format("byte {}: a record with opcode 0", offset));
    if (opcode == kRecordingOpcode) {
      if (const auto more = parse_recording(content)) {
        if (!map.recording.has_value()) map.recording.emplace();
        map.recording->sync_length = more->sync_length;
        map.recording->checkpoints.insert(map.recording->checkpoints.end(),
                                          more->checkpoints.begin(), more->checkpoints.end());
      }
    }
    if (opcode > static_cast<std::uint8_t>(Opcode::data_end)) continue;  // private or unassigned
    switch (static_cast<Opcode>(opcode)) {
      case Opcode::schema: {
        ROPEWALK_ASSIGN_OR_RETURN(Schema schema, parse_schema(content));
        map.define(std::move(schema), offset, length);
        break;
      }
      case Opcode::channel: {
        ROPEWALK_ASSIGN_OR_RETURN(Channel channel, parse_channel(content));
        map.define(std::move(channel), offset, length);
        break;
      }
      case Opcode::statistics: {
        if (map.statistics.has_value()) {
          map.report(ProblemKind::bad_summary, offset, length, "a second Statistics is ignored");
          break;
        }
        ROPEWALK_ASSIGN_OR_RETURN(map.statistics, parse_statistics(content));
        break;
      }
      case Opcode::chunk_index: {
        ROPEWALK_ASSIGN_OR_RETURN(ChunkIndex index, parse_chunk_index(content));
        chunks.push_back(std::move(index));
        break;
      }
      case Opcode::attachment_index: {
        ROPEWALK_ASSIGN_OR_RETURN(AttachmentIndex index, parse_attachment_index(content));
        map.attachments.push_back(std::move(index));
        break;
      }
      case Opcode::metadata_index: {
        ROPEWALK_ASSIGN_OR_RETURN(MetadataIndex index, parse_metadata_index(content));
        map.metadata.push_back(std::move(index));
        break;
      }
      case Opcode::summary_offset:
        break;
      case Opcode::header:
      case Opcode::footer:
      case Opcode::message:
      case Opcode::chunk:
      case Opcode::message_index:
      case Opcode::attachment:
      case Opcode::metadata:
      case Opcode::data_end:
        return data_loss(fmt::format("byte {}: {} in the summary", offset, opcode_name(opcode)));
    }
  }
  return walker.status().with_context(fmt::format("summary from byte {}", begin));
}

Status add_chunk_segments(FileMap& map, std::vector<ChunkIndex> chunks, std::uint64_t data_end,
                          bool index_crc) {
  std::ranges::stable_sort(chunks, {}, &ChunkIndex::chunk_start_offset);
  // Those that overlap are all left to the walk over the gaps: which one is right stands there.
  std::uint64_t free_from = kMagic.size();
  bool overlapped = false;  // the last one kept was taken back already
  SourceWindow window(*map.source);
  for (ChunkIndex& index : chunks) {
    const std::uint64_t offset = index.chunk_start_offset;
    const bool inside = offset >= kMagic.size() && offset <= data_end &&
                        index.chunk_length >= kRecordHeadBytes &&
                        index.chunk_length <= data_end - offset &&
                        index.message_index_length <= data_end - offset - index.chunk_length;
    if (!inside) {
      map.report(ProblemKind::index_mismatch, offset, index.chunk_length,
                 "a chunk index that leaves the data section is not used");
      continue;
    }
    const std::uint64_t end = offset + index.chunk_length + index.message_index_length;
    if (offset < free_from) {
      map.report(ProblemKind::index_mismatch, offset, index.chunk_length,
                 "chunk indexes that overlap are not used");
      if (!overlapped && !map.segments.empty()) map.segments.pop_back();
      overlapped = true;
      free_from = std::max(free_from, end);
      continue;
    }
    if (!index_crc) {
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan head, window.view(offset, kRecordHeadBytes));
      std::uint64_t size = 0;
      std::memcpy(&size, head.data() + 1, sizeof size);
      if (head[0] != static_cast<std::uint8_t>(Opcode::chunk) ||
          size != index.chunk_length - kRecordHeadBytes) {
        map.report(ProblemKind::index_mismatch, offset, index.chunk_length,
                   "no chunk of the length that its index gives stands here");
        continue;
      }
    }
    overlapped = false;
    free_from = end;
    Segment segment;
    segment.offset = offset;
    segment.end = offset + index.chunk_length;
    segment.index_crc = index_crc;
    segment.index = std::move(index);
    map.segments.push_back(std::move(segment));
  }
  return ok_status();
}

Status scan_gaps(FileMap& map, std::uint64_t data_end) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;
  const std::uint64_t sync = map.recording.has_value() ? map.recording->sync_length : 0;
  for (const Segment& s : map.segments) {
    extents.emplace_back(s.offset - std::min(s.offset, sync), s.end_with_index());
  }
  if (map.recording.has_value()) {
    for (const auto& [offset, length] : map.recording->checkpoints) {
      if (offset <= data_end && length <= data_end - offset) {
        extents.emplace_back(offset, offset + length);
      }
    }
  }
  for (const AttachmentIndex& a : map.attachments)
    extents.emplace_back(a.offset, a.offset + a.length);
  for (const MetadataIndex& m : map.metadata) extents.emplace_back(m.offset, m.offset + m.length);
  std::ranges::sort(extents);
  extents.emplace_back(data_end, data_end);
  std::uint64_t at = kMagic.size();
  const std::size_t indexed = map.segments.size();
  for (const auto& [begin, end] : extents) {
    if (begin > at) {
      ROPEWALK_RETURN_IF_ERROR(scan_range(map, at, begin, false));
    }
    at = std::max(at, end);
  }
  if (map.segments.size() > indexed) {
    std::uint64_t chunks = 0;
    for (std::size_t i = indexed; i < map.segments.size(); ++i) {
      if (map.segments[i].is_chunk) ++chunks;
    }
    if (indexed > 0) {
      map.report(ProblemKind::unindexed, map.segments[indexed].offset, 0,
                 fmt::format("{} chunks and {} runs of loose messages stand in no index", chunks,
                             map.segments.size() - indexed - chunks));
    }
    std::ranges::sort(map.segments, {}, &Segment::offset);
  }
  return ok_status();
}

void FileMap::define(Schema schema, std::uint64_t offset, std::uint64_t length, bool loose) {
  if (schema.id == 0) {
    report(ProblemKind::bad_record, offset, length, "Schema with id 0 is ignored");
    return;
  }
  const std::uint16_t id = schema.id;
  const auto it = schemas.find(id);
  if (it == schemas.end()) {
    schemas.emplace(id, std::move(schema));
    return;
  }
  const bool differs = !(it->second == schema);
  if (differs) {
    report(ProblemKind::conflicting_definition, offset, length,
           fmt::format("schema {}: \"{}\", and now \"{}\"", id, it->second.name, schema.name));
    ambiguous_schemas.insert(id);
  }
  if (loose && ambiguous_schemas.contains(id)) {
    loose_definitions.push_back({.offset = offset, .schema = std::move(schema), .channel = {}});
  }
}

void FileMap::define(Channel channel, std::uint64_t offset, std::uint64_t length, bool loose) {
  const std::uint16_t id = channel.id;
  const auto it = channels.find(id);
  if (it == channels.end()) {
    if (auto key = duplicate_key(channel.metadata)) {
      report(ProblemKind::duplicate_key, offset, length,
             fmt::format("channel \"{}\": key \"{}\"", channel.topic, *key));
    }
    channels.emplace(id, std::move(channel));
    return;
  }
  const bool differs = !(it->second == channel);
  if (differs) {
    report(ProblemKind::conflicting_definition, offset, length,
           fmt::format("channel {}: \"{}\", and now \"{}\"", id, it->second.topic, channel.topic));
    ambiguous_channels.insert(id);
  }
  if (loose && ambiguous_channels.contains(id)) {
    loose_definitions.push_back({.offset = offset, .schema = {}, .channel = std::move(channel)});
  }
}

Result<bool> load_summary(FileMap& map, std::uint64_t* data_end) {
  const std::uint64_t size = map.source->size();
  const std::uint64_t least = 2 * kMagic.size() + kFooterRecordBytes;
  const auto unfinished = [&](std::string detail) {
    map.report(ProblemKind::unfinished, size, 0, std::move(detail));
    return false;
  };
  if (size < least) return unfinished("no room for a footer");
  const std::uint64_t footer_offset = size - kMagic.size() - kFooterRecordBytes;
  SourceWindow window(*map.source);
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan tail, window.view(footer_offset, size - footer_offset));
  if (!std::ranges::equal(tail.last(kMagic.size()), kMagic)) {
    return unfinished("the closing magic is missing: the file was not finished");
  }
  const Bytes footer_bytes(tail.begin(), tail.begin() + kFooterRecordBytes);
  std::uint64_t content_size = 0;
  std::memcpy(&content_size, footer_bytes.data() + 1, sizeof content_size);
  if (footer_bytes[0] != static_cast<std::uint8_t>(Opcode::footer) ||
      content_size != kFooterContentBytes) {
    map.report(ProblemKind::bad_footer, footer_offset, kFooterRecordBytes,
               "no Footer stands before the closing magic");
    return false;
  }
  ROPEWALK_ASSIGN_OR_RETURN(const Footer footer,
                            parse_footer(ByteSpan(footer_bytes).subspan(kRecordHeadBytes)));
  const auto bad = [&](ProblemKind kind, std::string detail) {
    map.report(kind, footer_offset, kFooterRecordBytes, std::move(detail));
    return false;
  };
  if (footer.summary_start == 0) {
    if (footer.summary_crc != 0) {
      const std::uint32_t computed = crc32(0, ByteSpan(footer_bytes).first(kFooterRecordBytes - 4));
      if (computed != footer.summary_crc) {
        return bad(ProblemKind::bad_footer,
                   fmt::format("summary CRC {:#010x} stored, {:#010x} computed", footer.summary_crc,
                               computed));
      }
    }
    map.finished = true;
    return false;
  }
  if (footer.summary_start < kMagic.size() || footer.summary_start > footer_offset ||
      (footer.summary_offset_start != 0 && (footer.summary_offset_start < footer.summary_start ||
                                            footer.summary_offset_start > footer_offset))) {
    return bad(ProblemKind::bad_footer,
               fmt::format("summary_start {} and summary_offset_start {} do not lie in [8, {}]",
                           footer.summary_start, footer.summary_offset_start, footer_offset));
  }
  const std::uint64_t summary_size = footer_offset - footer.summary_start;
  if (summary_size > std::min(kMaxSummaryBytes, map.options.limits.max_record_bytes)) {
    return bad(ProblemKind::limit, fmt::format("a summary of {} bytes", summary_size));
  }
  SourceWindow summary_window(*map.source);
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan summary,
                            summary_window.view(footer.summary_start, summary_size));
  if (footer.summary_crc != 0) {
    const std::uint32_t computed =
        crc32(crc32(0, summary), ByteSpan(footer_bytes).first(kFooterRecordBytes - 4));
    if (computed != footer.summary_crc) {
      return bad(ProblemKind::bad_summary,
                 fmt::format("summary CRC {:#010x} stored, {:#010x} computed", footer.summary_crc,
                             computed));
    }
  }
  std::vector<ChunkIndex> chunks;
  if (Status status = parse_index_records(map, footer.summary_start, summary, chunks);
      !status.ok()) {
    map.schemas.clear();
    map.channels.clear();
    map.statistics.reset();
    map.attachments.clear();
    map.metadata.clear();
    return bad(ProblemKind::bad_summary, std::string(status.message()));
  }
  ROPEWALK_RETURN_IF_ERROR(
      add_chunk_segments(map, std::move(chunks), footer.summary_start, footer.summary_crc != 0));
  keep_inside(map, map.attachments, footer.summary_start);
  keep_inside(map, map.metadata, footer.summary_start);
  map.finished = true;
  *data_end = footer.summary_start;
  return true;
}

Status open_file_map(FileMap& map) {
  if (map.source->size() == 0) {
    return data_loss("the file is empty: an MCAP file has at least 8 bytes of magic");
  }
  // The magic and the header come first, whatever the rest is like.
  RecordReader start(*map.source, 0, map.source->size(), 4096, map.options.limits);
  auto first = start.next();
  if (!first.ok() && start.position() == 0) {
    if (!map.options.lenient || first.status().code() != StatusCode::data_loss) {
      return std::move(first).status();
    }
    ROPEWALK_RETURN_IF_ERROR(scan_damaged_start(map, std::move(first).status()));
    return harvest_definitions(map);
  }
  if (first.ok() && !first->has_value()) {
    map.report(ProblemKind::no_records, kMagic.size(), 0, "nothing stands behind the magic");
  }
  if (first.ok() && first->has_value() && (*first)->is(Opcode::header)) {
    if (auto content = start.content(); content.ok()) {
      if (auto header = parse_header(*content); header.ok()) map.header = std::move(*header);
    }
  }
  std::uint64_t data_end = 0;
  ROPEWALK_ASSIGN_OR_RETURN(map.has_summary, load_summary(map, &data_end));
  if (map.has_summary) {
    ROPEWALK_RETURN_IF_ERROR(scan_gaps(map, data_end));
    compare_counts(map);
  } else {
    const bool finished = map.finished;
    ROPEWALK_ASSIGN_OR_RETURN(const auto known_until, load_checkpoints(map));
    if (known_until.has_value()) {
      ROPEWALK_RETURN_IF_ERROR(scan_gaps(map, *known_until));
    }
    ROPEWALK_RETURN_IF_ERROR(
        scan_range(map, known_until.value_or(kMagic.size()), map.source->size(), true));
    map.finished = map.finished || finished;
  }
  return harvest_definitions(map);
}

}  // namespace ropewalk::mcap
