// Doctor: the summary and the end of the file, compared with the data.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/engine/mcap/doctor_internal.h"

namespace ropewalk {

void Doctor::on_chunk_index(const mcap::ChunkIndex& index, std::uint64_t offset) {
  if (!indexed_chunks_.insert(index.chunk_start_offset).second) {
    error(offset, fmt::format("a second ChunkIndex for the Chunk at {}", index.chunk_start_offset));
    return;
  }
  const auto known = chunks_.find(index.chunk_start_offset);
  if (known == chunks_.end()) {
    error(offset,
          fmt::format("ChunkIndex names byte {}, where no Chunk stands", index.chunk_start_offset));
    return;
  }
  const ChunkSeen& chunk = known->second;
  if (!chunk.known) return;
  const auto compare = [&](const char* field, auto stored, auto found) {
    if (stored != found) {
      error(offset, fmt::format("ChunkIndex of the Chunk at {}: {} is {}, the Chunk has {}",
                                index.chunk_start_offset, field, stored, found));
    }
  };
  compare("chunk_length", index.chunk_length, chunk.length);
  compare("message_start_time", index.message_start_time, chunk.head.message_start_time);
  compare("message_end_time", index.message_end_time, chunk.head.message_end_time);
  compare("compression", index.compression, chunk.head.compression);
  compare("compressed_size", index.compressed_size, chunk.head.records_size);
  compare("uncompressed_size", index.uncompressed_size, chunk.head.uncompressed_size);
  const std::uint64_t index_bytes =
      chunk.index_end == 0 ? 0 : chunk.index_end - chunk.offset - chunk.length;
  compare("message_index_length", index.message_index_length, index_bytes);
  auto stored = index.message_index_offsets;
  auto found = chunk.index_offsets;
  std::ranges::sort(stored);
  std::ranges::sort(found);
  if (stored != found) {
    error(offset, fmt::format("ChunkIndex of the Chunk at {}: message_index_offsets do not lead to "
                              "its MessageIndex records",
                              index.chunk_start_offset));
  }
}

void Doctor::on_statistics(const mcap::Statistics& statistics, std::uint64_t offset) {
  if (has_statistics_) error(offset, "a second Statistics");
  has_statistics_ = true;
  const auto compare = [&](const char* field, std::uint64_t stored, std::uint64_t found) {
    if (stored != found) {
      error(offset, fmt::format("Statistics: {} is {}, the file has {}", field, stored, found));
    }
  };
  compare("message_count", statistics.message_count, report_.messages);
  compare("chunk_count", statistics.chunk_count, report_.chunks);
  compare("attachment_count", statistics.attachment_count, attachments_.size());
  compare("metadata_count", statistics.metadata_count, metadata_.size());
  compare("channel_count", statistics.channel_count, channels_.size());
  compare("schema_count", statistics.schema_count, schemas_.size());
  if (report_.messages > 0) {
    compare("message_start_time", statistics.message_start_time, first_time_);
    compare("message_end_time", statistics.message_end_time, last_time_);
  }
  std::map<std::uint16_t, std::uint64_t> stored;
  for (const auto& [id, count] : statistics.channel_message_counts) {
    if (count > 0) stored[id] = count;
  }
  if (!statistics.channel_message_counts.empty() && stored != counts_) {
    error(offset, "Statistics: channel_message_counts do not count the messages of the file");
  }
}

void Doctor::on_summary_record(const mcap::RecordHead& record, ByteSpan content) {
  const auto named = [&](const char* what, std::uint64_t offset, std::uint64_t length,
                         const std::string& name, const auto& known) {
    const auto found = known.find(offset);
    if (found == known.end()) {
      error(record.offset,
            fmt::format("{} of \"{}\" names byte {}, where none stands", what, name, offset));
    } else if (found->second.first != length || found->second.second != name) {
      error(record.offset,
            fmt::format("{} of \"{}\" does not agree with the record at {}", what, name, offset));
    }
  };
  const std::uint8_t group = record.opcode;
  if (group != group_) {
    if (!groups_.insert(group).second) {
      error(record.offset, fmt::format("{} records of the summary do not stand together",
                                       mcap::opcode_name(group)));
    }
    group_start_[group] = record.offset;
    group_ = group;
  }
  group_end_[group] = record.end();
  switch (static_cast<mcap::Opcode>(record.opcode)) {
    case mcap::Opcode::chunk_index:
      if (const auto index = mcap::parse_chunk_index(content); parsed(index, record.offset)) {
        on_chunk_index(*index, record.offset);
      }
      break;
    case mcap::Opcode::statistics:
      if (const auto statistics = mcap::parse_statistics(content);
          parsed(statistics, record.offset)) {
        on_statistics(*statistics, record.offset);
      }
      break;
    case mcap::Opcode::attachment_index:
      if (const auto index = mcap::parse_attachment_index(content); parsed(index, record.offset)) {
        named("AttachmentIndex", index->offset, index->length, index->name, attachments_);
        indexed_attachments_.insert(index->offset);
      }
      break;
    case mcap::Opcode::metadata_index:
      if (const auto index = mcap::parse_metadata_index(content); parsed(index, record.offset)) {
        named("MetadataIndex", index->offset, index->length, index->name, metadata_);
        indexed_metadata_.insert(index->offset);
      }
      break;
    case mcap::Opcode::summary_offset:
      if (const auto offset = mcap::parse_summary_offset(content); parsed(offset, record.offset)) {
        const auto start = group_start_.find(offset->group_opcode);
        if (start == group_start_.end() || start->second != offset->group_start ||
            group_end_[offset->group_opcode] != offset->group_start + offset->group_length) {
          error(record.offset,
                fmt::format("SummaryOffset of {} does not agree with the records of the summary",
                            mcap::opcode_name(offset->group_opcode)));
        }
      }
      break;
    case mcap::Opcode::schema:
      on_schema(content, record.offset);
      break;
    case mcap::Opcode::channel:
      on_channel(content, record.offset);
      break;
    default:
      if (record.opcode < 0x80) {
        error(record.offset, fmt::format("{} in the summary", mcap::opcode_name(record.opcode)));
      }
  }
}

Status Doctor::check_data_crc() {
  if (stored_data_crc_ == 0) return ok_status();
  mcap::SourceWindow window(source_);
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < data_section_end_;) {
    const std::uint64_t size = std::min<std::uint64_t>(4ULL << 20, data_section_end_ - at);
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, window.view(at, size));
    crc = crc32(crc, bytes);
    at += size;
    ROPEWALK_RETURN_IF_ERROR(context_.check_stop());
  }
  if (crc != stored_data_crc_) {
    error(data_section_end_,
          fmt::format("DataEnd: CRC {:#010x} stored, {:#010x} computed", stored_data_crc_, crc));
  }
  return ok_status();
}

Status Doctor::check_footer(const mcap::RecordHead& record, const mcap::Footer& footer) {
  const std::uint64_t summary = data_end_.value_or(record.offset);
  if (!data_end_.has_value()) error(record.offset, "no DataEnd before the Footer");
  const bool has_summary = summary != record.offset;
  if (footer.summary_start != (has_summary ? summary : 0) && data_end_.has_value()) {
    error(record.offset, fmt::format("Footer: summary_start is {}, the summary starts at {}",
                                     footer.summary_start, has_summary ? summary : 0));
  }
  const auto offsets = group_start_.find(static_cast<std::uint8_t>(mcap::Opcode::summary_offset));
  const std::uint64_t offset_start = offsets == group_start_.end() ? 0 : offsets->second;
  if (footer.summary_offset_start != offset_start) {
    error(record.offset,
          fmt::format("Footer: summary_offset_start is {}, the SummaryOffset records start at {}",
                      footer.summary_offset_start, offset_start));
  }
  if (footer.summary_crc != 0 && footer.summary_start <= record.offset) {
    const std::uint64_t start = footer.summary_start == 0 ? record.offset : footer.summary_start;
    mcap::SourceWindow window(source_);
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, window.view(start, record.end() - 4 - start));
    const std::uint32_t crc = crc32(0, bytes);
    if (crc != footer.summary_crc) {
      error(record.offset, fmt::format("Footer: summary CRC {:#010x} stored, {:#010x} computed",
                                       footer.summary_crc, crc));
    }
  }
  if (!indexed_chunks_.empty()) {
    for (const auto& [offset, chunk] : chunks_) {
      if (!indexed_chunks_.contains(offset)) {
        error(offset, "Chunk stands in no ChunkIndex");
      }
    }
    if (loose_messages_ > 0) {
      error(record.offset, fmt::format("{} messages stand outside chunks though chunks are indexed",
                                       loose_messages_));
    }
  }
  const auto unlisted = [&](const char* what, const auto& records, const auto& indexed) {
    if (indexed.empty()) return;
    for (const auto& [offset, named] : records) {
      if (!indexed.contains(offset)) {
        error(offset, fmt::format("{} \"{}\" stands in no index", what, named.second));
      }
    }
  };
  unlisted("Attachment", attachments_, indexed_attachments_);
  unlisted("Metadata", metadata_, indexed_metadata_);
  return ok_status();
}

Status Doctor::check_end(std::uint64_t end) {
  const std::uint64_t rest = source_.size() - end;
  if (rest < mcap::kMagic.size()) {
    error(end, "the closing magic is missing");
    return ok_status();
  }
  mcap::SourceWindow window(source_);
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan magic, window.view(end, mcap::kMagic.size()));
  if (!std::ranges::equal(magic, mcap::kMagic)) error(end, "the closing magic is wrong");
  if (rest > mcap::kMagic.size()) {
    error(end + mcap::kMagic.size(),
          fmt::format("{} bytes stand after the closing magic", rest - mcap::kMagic.size()));
  }
  return ok_status();
}

}  // namespace ropewalk
