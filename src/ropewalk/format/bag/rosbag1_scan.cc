// The walk over a ROS 1 bag that has no index, or whose index lies.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/bag/rosbag1_internal.h"

namespace ropewalk::bag {
namespace {

// A run of loose records becomes one segment up to this size.
constexpr std::uint64_t kMaxRunBytes = 4ULL << 20;
constexpr std::uint64_t kSearchBytes = 1ULL << 20;
// In the header of every chunk, wherever its fields stand.
constexpr std::string_view kChunkOp("\x04\x00\x00\x00op=\x05", 8);
// `compression` (up to 3 characters), `size` and `op` with their lengths.
constexpr std::uint64_t kMaxChunkHeaderBytes = 64;

class Scanner {
 public:
  Scanner(Rosbag1File& file, std::uint64_t begin, std::uint64_t end)
      : file_(file), window_(*file.source), at_(begin), end_(end) {}

  Status run() {
    while (at_ < end_) {
      auto head = read_head(window_, at_);
      if (!head.ok()) {
        if (head.status().code() != StatusCode::data_loss) return head.status();
        ROPEWALK_RETURN_IF_ERROR(resync(head.status()));
        continue;
      }
      const bool cut = head->end() > end_;
      if (head->op == Op::chunk) {
        ROPEWALK_RETURN_IF_ERROR(chunk(*head, cut));
      } else if (cut) {
        file_.problems.add(ProblemKind::truncated, at_, end_ - at_,
                           fmt::format("a record of {} bytes (op {}) is cut by the end",
                                       head->end() - at_, static_cast<int>(head->op)));
        // It may lie about its length; what follows may still be chunks.
        ROPEWALK_RETURN_IF_ERROR(close_run());
        ROPEWALK_RETURN_IF_ERROR(find_chunk(at_, false));
      } else if (head->op == Op::message || head->op == Op::connection) {
        if (!run_) run_ = Segment{.offset = at_, .data_offset = at_, .is_chunk = false};
        at_ = head->end();
        if (at_ - run_->offset >= kMaxRunBytes) ROPEWALK_RETURN_IF_ERROR(close_run());
      } else {
        ROPEWALK_RETURN_IF_ERROR(close_run());
        at_ = head->end();
      }
    }
    return close_run();
  }

 private:
  Status resync(const Status& fault) {
    ROPEWALK_RETURN_IF_ERROR(close_run());
    file_.problems.add(ProblemKind::bad_record, at_, 0, std::string(fault.message()));
    return find_chunk(at_, true);
  }

  // Goes to the next plausible chunk behind at_, else to the end; reports what lies between.
  Status find_chunk(std::uint64_t from, bool report) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t start, next_chunk());
    if (report || start != 0) lost(from, start == 0 ? end_ : start);
    at_ = start == 0 ? end_ : start;
    return ok_status();
  }

  // Where the next plausible chunk behind at_ starts; 0 when there is none.
  Result<std::uint64_t> next_chunk() {
    std::uint64_t search = at_ + 1;
    while (search < end_) {
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes,
                                window_.view(search, std::min(kSearchBytes, end_ - search)));
      const std::size_t size = bytes.size();
      const std::size_t hit = as_text(bytes).find(kChunkOp);
      if (hit == std::string_view::npos) {
        if (search + size >= end_) break;
        search += size - (kChunkOp.size() - 1);
        continue;
      }
      const std::uint64_t pattern = search + hit;
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t start, chunk_start(pattern));
      if (start > at_) return start;
      search = pattern + 1;
    }
    return std::uint64_t{0};
  }

  void lost(std::uint64_t from, std::uint64_t to) {
    file_.problems.add(ProblemKind::lost_range, from, to - from,
                       to == end_ ? "no chunk follows" : "skipped up to the next chunk");
  }

  // Where the record starts whose header holds the op at `pattern`; 0 when it is no chunk.
  Result<std::uint64_t> chunk_start(std::uint64_t pattern) {
    const std::uint64_t first =
        pattern - std::min(pattern - at_, kMaxChunkHeaderBytes + sizeof(std::uint32_t));
    for (std::uint64_t start = pattern - std::min<std::uint64_t>(pattern, 4) + 1;
         start-- > first;) {
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan front, window_.view_up_to(start, 4));
      if (front.size() < 4) continue;
      std::uint32_t size = 0;
      std::memcpy(&size, front.data(), 4);
      if (size > kMaxChunkHeaderBytes || start + 4 + size < pattern + kChunkOp.size()) continue;
      const auto head = read_head(window_, start);
      if (!head.ok()) {
        if (head.status().code() != StatusCode::data_loss) return head.status();
        continue;
      }
      if (head->op == Op::chunk && head->fields.find("compression") &&
          head->fields.number<std::uint32_t>("size")) {
        return start;
      }
    }
    return std::uint64_t{0};
  }

  // Bytes behind a chunk that states no size: what a recording in progress leaves.
  Result<bool> grows(const RecordHead& head, Compression codec) {
    if (head.data_size != 0 || codec == Compression::none) return false;
    const std::string_view magic =
        codec == Compression::lz4_frame ? std::string_view("\x04\x22\x4d\x18", 4) : "BZh";
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan front,
                              window_.view_up_to(head.data_offset, magic.size()));
    return as_text(front) == magic;
  }

  Status chunk(const RecordHead& head, bool cut) {
    ROPEWALK_RETURN_IF_ERROR(close_run());
    const std::string name = head.fields.text("compression");
    const auto size = head.fields.number<std::uint32_t>("size");
    const std::uint64_t offset = head.offset;
    const std::uint64_t data_offset = head.data_offset;
    const auto codec = rosbag1_codec(name);
    if (!size || !codec) {
      const std::uint64_t end = std::min(head.end(), end_);
      file_.problems.add(size ? ProblemKind::unknown_compression : ProblemKind::bad_record, offset,
                         end - offset,
                         fmt::format("a chunk with compression \"{}\"{}", name,
                                     size ? "; expected none, lz4 or bz2" : " and without size"));
      at_ = end;
      return ok_status();
    }
    ROPEWALK_ASSIGN_OR_RETURN(const bool growing, grows(head, *codec));
    const std::uint64_t stated = head.data_size;
    Segment segment{.offset = offset,
                    .end = head.end(),
                    .data_offset = std::min(data_offset, end_),
                    .decoded_size = *size,
                    .codec = *codec,
                    .cut = cut || growing};
    if (segment.cut) {
      // Its length may be what is damaged: the next chunk ends it, if there is one.
      at_ = offset;
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t next, next_chunk());
      segment.end = next == 0 ? end_ : next;
      file_.problems.add(ProblemKind::truncated, offset, segment.end - offset,
                         fmt::format("a chunk of {} bytes, of which {} are there", stated,
                                     segment.end - segment.data_offset));
    }
    segment.data_size = segment.end - segment.data_offset;
    at_ = segment.end;
    return add(segment);
  }

  Status close_run() {
    if (!run_) return ok_status();
    Segment segment = *run_;
    run_.reset();
    segment.end = at_;
    segment.data_size = segment.decoded_size = segment.end - segment.offset;
    return add(segment);
  }

  // Decodes the segment to learn its connections, times and counts. What is damaged in it is told
  // when it is read.
  Status add(Segment segment) {
    Decoded decoded;
    ProblemLog told_later;
    ROPEWALK_RETURN_IF_ERROR(file_.decode(segment, decoded, told_later));
    std::vector<Entry> entries;
    file_.walk(segment, decoded, entries, told_later, &file_);
    segment.empty = entries.empty();
    for (const Entry& entry : entries) {
      Channel& channel = file_.channels[entry.channel];
      channel.message_count = channel.message_count.value_or(0) + 1;
      if (&entry == &entries.front()) segment.first_ns = segment.last_ns = entry.time_ns;
      segment.first_ns = std::min(segment.first_ns, entry.time_ns);
      segment.last_ns = std::max(segment.last_ns, entry.time_ns);
    }
    if (!segment.empty) file_.extend_range(segment.first_ns, segment.last_ns);
    // Kept although it is empty when something in it is damaged: reading must tell it.
    if (segment.empty && told_later.entries().empty()) return ok_status();
    file_.segments.push_back(segment);
    return ok_status();
  }

  Rosbag1File& file_;
  Window window_;
  std::uint64_t at_;
  std::uint64_t end_;
  std::optional<Segment> run_;
};

}  // namespace

std::optional<Compression> rosbag1_codec(std::string_view name) {
  if (name == "none") return Compression::none;
  if (name == "lz4") return Compression::lz4_frame;
  if (name == "bz2") return Compression::bzip2;
  return std::nullopt;
}

Status scan_rosbag1(Rosbag1File& file, std::uint64_t begin, std::uint64_t end) {
  return Scanner(file, begin, end).run();
}

}  // namespace ropewalk::bag
