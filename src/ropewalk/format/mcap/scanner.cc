// The walk over the records of a file, or of the gaps that its summary leaves.
#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "ropewalk/format/mcap/private_records.h"
#include "ropewalk/format/mcap/reader_internal.h"
#include "ropewalk/format/mcap/resync_internal.h"

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kScanAheadBytes = 64ULL << 10;
constexpr std::uint64_t kSkipAheadBytes = 1024;
constexpr std::uint64_t kMaxChunkHeadBytes = 512;

// Walks records and turns them into segments. One framing error ends the trust in lengths: from
// there the next plausible chunk is searched for.
class Scanner {
 public:
  Scanner(FileMap& map, std::uint64_t begin, std::uint64_t end, bool whole_file)
      : map_(map),
        records_(*map.source, begin, end, kSkipAheadBytes, map.options.limits),
        window_(*map.source),
        chain_window_(*map.source),
        end_(std::min(end, map.source->size())),
        whole_file_(whole_file) {}

  // Goes to the first plausible record of a file whose beginning is damaged. Returns false when
  // there is none.
  Result<bool> skip_damaged_start(std::string_view why) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t first, find_record(0));
    if (first == end_) return false;
    return lose(0, first, why);
  }

  Status run() {
    for (;;) {
      auto next = records_.next();
      if (!next.ok()) {
        if (next.status().code() != StatusCode::data_loss) return std::move(next).status();
        ROPEWALK_ASSIGN_OR_RETURN(const bool found, framing_error(next.status()));
        if (!found) break;
        continue;
      }
      if (!next->has_value()) break;
      const RecordHead head = **next;
      if (head.opcode == 0) {
        ROPEWALK_ASSIGN_OR_RETURN(const bool found, zero_record(head));
        if (!found) break;
        continue;
      }
      ROPEWALK_ASSIGN_OR_RETURN(const bool more, record(head));
      if (!more) break;
    }
    close_run();
    return ok_status();
  }

 private:
  // Returns whether the walk goes on.
  Result<bool> record(const RecordHead& head) {
    if (!head.is(Opcode::message)) close_run();
    // Most of a chunk and its indexes is skipped, loose messages come in a row.
    records_.set_read_ahead(head.is(Opcode::message) ? kScanAheadBytes : kSkipAheadBytes);
    if (!head.is(Opcode::message_index)) last_chunk_open_ = false;
    if (after_data_ && !head.is(Opcode::footer)) return true;
    if (head.is(Opcode::footer) || head.is(Opcode::data_end)) return ending(head);
    Status status = ok_status();
    if (head.is(Opcode::message)) {
      status = message(head);
    } else if (head.is(Opcode::chunk)) {
      status = chunk(head, false);
    } else if (head.is(Opcode::message_index)) {
      status = message_index(head);
    } else if (head.is(Opcode::attachment)) {
      status = attachment(head);
    } else if (head.is(Opcode::header) || head.is(Opcode::schema) || head.is(Opcode::channel) ||
               head.is(Opcode::metadata)) {
      status = small_record(head);
    } else if (head.opcode >= 0x80) {
      if (!is_own_record(head.opcode)) {
        map_.private_records.push_back(
            {.offset = head.offset, .length = head.end() - head.offset, .opcode = head.opcode});
      }
    }
    // Every other opcode is skipped by its length.
    if (status.code() == StatusCode::data_loss) {
      map_.report(ProblemKind::bad_record, head.offset, head.end() - head.offset,
                  std::string(status.message()));
      return true;
    }
    if (status.code() == StatusCode::resource_exhausted) {
      map_.report(ProblemKind::limit, head.offset, head.end() - head.offset,
                  std::string(status.message()));
      return true;
    }
    ROPEWALK_RETURN_IF_ERROR(std::move(status));
    return true;
  }

  // DataEnd and Footer end a walk where they are what they seem; else they are damage.
  Result<bool> ending(const RecordHead& head) {
    const std::uint64_t size = map_.source->size();
    bool holds = head.content_size == 4;
    if (head.is(Opcode::footer)) {
      holds = whole_file_ && head.content_size == kFooterContentBytes;
      if (holds && size - head.end() >= kMagic.size()) {
        ROPEWALK_ASSIGN_OR_RETURN(holds, magic_at(head.end()));
      }
    } else if (!whole_file_) {
      holds = holds && head.end() == end_;
    }
    if (!holds) {
      map_.report(ProblemKind::bad_record, head.offset, head.end() - head.offset,
                  fmt::format("{} of {} bytes in the data section", opcode_name(head.opcode),
                              head.content_size));
      return true;
    }
    if (head.is(Opcode::data_end)) {
      after_data_ = true;
      map_.data_end_offset = head.offset;
      return whole_file_;
    }
    map_.finished = true;
    const std::uint64_t tail = head.end() + kMagic.size();
    if (tail < size) {
      map_.report(ProblemKind::trailing_data, tail, size - tail,
                  "bytes after the closing magic; the file before them is read");
    }
    return false;
  }

  Status small_record(const RecordHead& head) {
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan content, records_.content());
    const std::uint64_t length = head.end() - head.offset;
    if (head.is(Opcode::header)) {
      if (head.offset != kMagic.size()) return ok_status();
      ROPEWALK_ASSIGN_OR_RETURN(map_.header, parse_header(content));
    } else if (head.is(Opcode::schema)) {
      ROPEWALK_ASSIGN_OR_RETURN(Schema schema, parse_schema(content));
      map_.define(std::move(schema), head.offset, length, true);
    } else if (head.is(Opcode::channel)) {
      ROPEWALK_ASSIGN_OR_RETURN(Channel channel, parse_channel(content));
      map_.define(std::move(channel), head.offset, length, true);
    } else {
      ROPEWALK_ASSIGN_OR_RETURN(Metadata metadata, parse_metadata(content));
      if (auto key = duplicate_key(metadata.metadata)) {
        map_.report(ProblemKind::duplicate_key, head.offset, length,
                    fmt::format("metadata \"{}\": key \"{}\"", metadata.name, *key));
      }
      map_.metadata.push_back(
          {.offset = head.offset, .length = length, .name = std::move(metadata.name)});
    }
    return ok_status();
  }

  Status message(const RecordHead& head) {
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan content, records_.content_prefix(kMessageHeadBytes));
    ROPEWALK_ASSIGN_OR_RETURN(const Message message, parse_message(content));
    if (run_.has_value() && head.end() - run_->offset > kLooseRunBytes) close_run();
    if (!run_.has_value()) {
      run_.emplace();
      run_ids_.clear();
      run_->is_chunk = false;
      run_->trusted = true;
      run_->offset = head.offset;
      run_->index.message_start_time = run_->index.message_end_time = message.log_time;
    }
    ChunkIndex& index = run_->index;
    index.message_start_time = std::min(index.message_start_time, message.log_time);
    index.message_end_time = std::max(index.message_end_time, message.log_time);
    if (run_ids_.insert(message.channel_id).second) {
      index.message_index_offsets.emplace_back(message.channel_id, 0);
    }
    run_->end = head.end();
    return ok_status();
  }

  void close_run() {
    if (!run_.has_value()) return;
    map_.segments.push_back(std::move(*run_));
    run_.reset();
  }

  // `cut`: the record reaches past the end of the file, its head is taken from what is there.
  Status chunk(const RecordHead& head, bool cut) {
    const std::uint64_t available = end_ - head.content_offset();
    const std::uint64_t prefix = std::min({head.content_size, available, kMaxChunkHeadBytes});
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan content, window_.view(head.content_offset(), prefix));
    std::size_t records_offset = 0;
    ROPEWALK_ASSIGN_OR_RETURN(ChunkHead chunk, parse_chunk_head(content, &records_offset));
    Segment segment;
    segment.cut = cut;
    segment.offset = head.offset;
    segment.end = cut ? end_ : head.end();
    segment.index = {.message_start_time = chunk.message_start_time,
                     .message_end_time = chunk.message_end_time,
                     .chunk_start_offset = head.offset,
                     .chunk_length = segment.end - head.offset,
                     .message_index_offsets = {},
                     .message_index_length = 0,
                     .compression = std::move(chunk.compression),
                     .compressed_size = chunk.records_size,
                     .uncompressed_size = chunk.uncompressed_size};
    map_.segments.push_back(std::move(segment));
    last_chunk_open_ = !cut;
    return ok_status();
  }

  Status message_index(const RecordHead& head) {
    if (!last_chunk_open_) {
      map_.report(ProblemKind::index_mismatch, head.offset, head.end() - head.offset,
                  "a MessageIndex behind no chunk");
      return ok_status();
    }
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan content, records_.content_prefix(2));
    ByteCursor cursor(content);
    ROPEWALK_ASSIGN_OR_RETURN(const auto id, cursor.read_le<std::uint16_t>());
    Segment& chunk = map_.segments.back();
    chunk.index.message_index_offsets.emplace_back(id, head.offset);
    chunk.index.message_index_length = head.end() - chunk.end;
    return ok_status();
  }

  Status attachment(const RecordHead& head) {
    // Names are short: what does not fit is told as a bad record.
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan content, records_.content_prefix(kScanAheadBytes));
    std::size_t data_offset = 0;
    ROPEWALK_ASSIGN_OR_RETURN(AttachmentHead found, parse_attachment_head(content, &data_offset));
    if (head.content_size - data_offset < 4 ||
        found.data_size > head.content_size - data_offset - 4) {
      return data_loss(fmt::format("Attachment.data: {} bytes stated, {} left", found.data_size,
                                   head.content_size - data_offset));
    }
    map_.attachments.push_back({.offset = head.offset,
                                .length = head.end() - head.offset,
                                .log_time = found.log_time,
                                .create_time = found.create_time,
                                .data_size = found.data_size,
                                .name = std::move(found.name),
                                .media_type = std::move(found.media_type)});
    return ok_status();
  }

  // --- damage

  Result<bool> framing_error(const Status& status) {
    const std::uint64_t at = records_.position();
    if (at == 0) return status;  // the magic itself
    close_run();
    ROPEWALK_ASSIGN_OR_RETURN(const bool other_file, magic_at(at));
    if (other_file) {
      map_.report(ProblemKind::trailing_data, at, end_ - at,
                  "a second file starts here although the first one is not finished");
      return false;
    }
    const auto& cut = records_.cut_head();
    if (cut.has_value() && cut->is(Opcode::chunk) && !after_data_) {
      // The file may end inside this chunk; a later chunk would mean that the length lies.
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t later,
                                find_record(at + kRecordHeadBytes, false));
      if (later == end_) {
        if (chunk(*cut, true).ok()) {
          map_.report(ProblemKind::chunk_cut, at, end_ - at, std::string(status.message()));
        } else {
          map_.report(ProblemKind::truncated, at, end_ - at, std::string(status.message()));
        }
        return false;
      }
      return lose(at, later, status.message());
    }
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t later, find_record(at + 1));
    if (later == end_) {
      map_.report(ProblemKind::truncated, at, end_ - at, std::string(status.message()));
      return false;
    }
    return lose(at, later, status.message());
  }

  Result<bool> magic_at(std::uint64_t at) {
    if (end_ - at < kMagic.size()) return false;
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, window_.view(at, kMagic.size()));
    return std::ranges::equal(bytes, kMagic);
  }

  Result<bool> zero_record(const RecordHead& head) {
    close_run();
    last_chunk_open_ = false;
    std::uint64_t zeros_end = head.offset;
    while (zeros_end < end_) {
      const std::uint64_t size = std::min<std::uint64_t>(kScanAheadBytes, end_ - zeros_end);
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, window_.view(zeros_end, size));
      const auto* const other =
          std::find_if(bytes.data(), bytes.data() + bytes.size(), [](auto b) { return b != 0; });
      zeros_end += static_cast<std::uint64_t>(other - bytes.data());
      if (other != bytes.data() + bytes.size()) break;
    }
    map_.report(ProblemKind::zero_run, head.offset, zeros_end - head.offset,
                "a record expected, zero bytes found: the end of valid data");
    if (zeros_end == end_) return false;
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t later, find_record(zeros_end));
    if (later == end_) {
      map_.report(ProblemKind::lost_range, zeros_end, end_ - zeros_end,
                  "no chunk found after the zero bytes");
      return false;
    }
    if (later > zeros_end) return lose(zeros_end, later, "no record bounds after the zero bytes");
    records_.seek(later);
    return true;
  }

  Result<bool> lose(std::uint64_t begin, std::uint64_t end, std::string_view why) {
    map_.report(ProblemKind::lost_range, begin, end - begin,
                fmt::format("{}; went on at the next plausible record", why));
    last_chunk_open_ = false;
    records_.seek(end);
    return true;
  }

  // Returns the offset at or after `from` where records plausibly go on, or end_: a chunk or a sync
  // record; and, where unverified data is wanted, a chain of records outside chunks, unless what is
  // searched may be the inside of a chunk.
  Result<std::uint64_t> find_record(std::uint64_t from, bool chains = true) {
    chains = chains && map_.options.lenient;
    while (end_ - from > kRecordHeadBytes) {
      const std::uint64_t size = std::min<std::uint64_t>(kScanAheadBytes, end_ - from);
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, window_.view(from, size));
      const bool last = size == end_ - from;
      const std::size_t judged = last ? bytes.size() : bytes.size() - kJudgedBytes;
      for (std::size_t i = 0; i < judged; ++i) {
        const std::uint8_t opcode = bytes[i];
        const std::uint64_t left = end_ - from - i;
        if (opcode == static_cast<std::uint8_t>(Opcode::chunk)) {
          if (judge_chunk(bytes.subspan(i), left, true)) return from + i;
        } else if (opcode == kSyncOpcode) {
          if (parse_sync(bytes.subspan(i), from + i).has_value()) return from + i;
        }
        if (!chains || opcode == 0 || opcode > 0x0F) continue;
        ROPEWALK_ASSIGN_OR_RETURN(const bool found, chain_at(from + i));
        if (found) return from + i;
      }
      if (last) break;
      from += judged;
    }
    return end_;
  }

  // Whether several records in a row start at `at`.
  Result<bool> chain_at(std::uint64_t at) {
    constexpr int kLinks = 4;
    for (int link = 0; link < kLinks && at < end_; ++link) {
      if (end_ - at < kRecordHeadBytes) return false;
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan head, chain_window_.view(at, kRecordHeadBytes));
      std::uint64_t length = 0;
      if (!judge_record(head, end_ - at, length)) return false;
      if (head[0] == static_cast<std::uint8_t>(Opcode::data_end)) return link > 0;
      at += length;
    }
    return true;
  }

  FileMap& map_;
  RecordReader records_;
  SourceWindow window_;
  SourceWindow chain_window_;  // so that a chain does not throw the searched bytes away
  std::uint64_t end_;
  bool whole_file_;
  bool after_data_ = false;
  bool last_chunk_open_ = false;  // MessageIndex records still belong to segments.back()
  std::optional<Segment> run_;
  std::unordered_set<std::uint16_t> run_ids_;
};

}  // namespace

Status scan_range(FileMap& map, std::uint64_t begin, std::uint64_t end, bool whole_file) {
  return Scanner(map, begin, end, whole_file).run();
}

Status scan_damaged_start(FileMap& map, Status why) {
  Scanner scanner(map, kMagic.size(), map.source->size(), true);
  ROPEWALK_ASSIGN_OR_RETURN(const bool found, scanner.skip_damaged_start(why.message()));
  return found ? scanner.run() : why;
}

}  // namespace ropewalk::mcap
