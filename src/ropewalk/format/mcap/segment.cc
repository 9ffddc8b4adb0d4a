// Segments: loading the bytes of a chunk or of a run of loose messages, and comparing what indexes
// say about it with what it holds.
#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "ropewalk/base/codec/compression.h"
#include "ropewalk/base/codec/stream.h"
#include "ropewalk/format/mcap/reader_internal.h"

namespace ropewalk::mcap {
namespace {

void report(ProblemList& problems, ProblemKind kind, const Segment& segment, std::string detail) {
  problems.push_back({.kind = kind,
                      .offset = segment.offset,
                      .length = segment.end - segment.offset,
                      .detail = std::move(detail)});
}

ProblemKind kind_of(const Status& status) {
  if (status.reason() == "chunk_crc") return ProblemKind::chunk_crc;
  if (status.code() == StatusCode::unimplemented) return ProblemKind::unknown_compression;
  if (status.code() == StatusCode::resource_exhausted) return ProblemKind::limit;
  return ProblemKind::chunk_damaged;
}

// Returns the part of the file as a view: into the map, else into `buffer`, whose size becomes that
// of the part.
Result<ByteSpan> file_bytes(const FileMap& map, std::uint64_t begin, std::uint64_t end,
                            Bytes& buffer) {
  const ByteSpan mapped = map.source->mapped();
  const auto size = static_cast<std::size_t>(end - begin);
  if (!mapped.empty()) return mapped.subspan(static_cast<std::size_t>(begin), size);
  buffer.resize(size);
  ROPEWALK_RETURN_IF_ERROR(map.source->read_at(begin, buffer));
  return ByteSpan(buffer);
}

bool same(const ChunkHead& head, const ChunkIndex& index) {
  return head.message_start_time == index.message_start_time &&
         head.message_end_time == index.message_end_time &&
         head.uncompressed_size == index.uncompressed_size &&
         head.records_size == index.compressed_size && head.compression == index.compression;
}

// Whether the records of a chunk end where they should; a record with opcode 0 is none. `position`
// is how far they hold.
bool framing_holds(ByteSpan records, std::size_t& position) {
  ChunkWalker walker(records);
  std::uint8_t opcode = 0;
  ByteSpan content;
  position = 0;
  while (walker.next(opcode, content)) {
    if (opcode == 0) return false;
    position = walker.position();
  }
  return position == records.size();
}

// The whole records at the beginning.
ByteSpan whole_records(ByteSpan records) {
  std::size_t position = 0;
  static_cast<void>(framing_holds(records, position));
  return records.first(position);
}

Compression codec_of(const ChunkHead& head) {
  if (head.compression == "zstd") return Compression::zstd;
  if (head.compression == "lz4") return Compression::lz4_frame;
  return Compression::none;
}

// Decodes what can be decoded of a chunk that is cut or damaged, into `buffer`.
ByteSpan decoded_prefix(const FileMap& map, const ChunkHead& head, ByteSpan stored, Bytes& buffer) {
  if (head.compression.empty()) return stored;
  const Compression codec = codec_of(head);
  if (codec == Compression::none) return {};
  buffer = decompress_prefix(codec, stored,
                             std::min(head.uncompressed_size, map.options.limits.max_chunk_bytes));
  return buffer;
}

// The messages of a damaged chunk that its message index confirms. What stands between them becomes
// private records of the same size, so that all offsets stay. Without an index, or with one that
// agrees with next to nothing, the whole records at the beginning are all there is.
ByteSpan confirmed_records(const FileMap& map, const Segment& segment, ByteSpan records,
                           Bytes& buffer, ProblemList& problems) {
  ProblemList ignored;
  auto indexes = read_message_indexes(map, segment, ignored);
  if (!indexes.ok() || !indexes->has_value()) return whole_records(records);
  struct Known {
    std::uint64_t offset;
    std::uint64_t log_time;
    std::uint16_t channel_id;
  };
  std::vector<Known> known;
  for (const MessageIndex& index : **indexes) {
    for (const MessageIndex::Entry& e : index.records) {
      known.push_back({.offset = e.offset, .log_time = e.log_time, .channel_id = index.channel_id});
    }
  }
  std::ranges::sort(known, {}, &Known::offset);
  const auto confirms = [&](const Known& k) {
    Message message;
    return message_at(records, k.offset, message) && message.log_time == k.log_time &&
           message.channel_id == k.channel_id;
  };
  const auto confirmed = static_cast<std::size_t>(std::ranges::count_if(known, confirms));
  if (confirmed * 16 < known.size()) return whole_records(records);

  Bytes patched(records.begin(), records.end());
  std::size_t at = 0;
  while (at < patched.size()) {
    const auto entry = std::ranges::lower_bound(known, at, {}, &Known::offset);
    // Records that hold: messages that the index confirms, definitions as they are framed.
    ChunkWalker walker(records.subspan(at));
    std::uint8_t opcode = 0;
    ByteSpan content;
    if (walker.next(opcode, content) && opcode != 0) {
      const bool is_message = opcode == static_cast<std::uint8_t>(Opcode::message);
      const std::size_t end = at + walker.position();
      const bool next_fits = entry == known.end() || entry->offset == at || end <= entry->offset;
      const bool holds =
          is_message ? entry != known.end() && entry->offset == at && confirms(*entry) : next_fits;
      const auto next = std::ranges::lower_bound(known, at + 1, {}, &Known::offset);
      if (holds && (next == known.end() || end <= next->offset)) {
        at = end;
        continue;
      }
    }
    auto next = std::ranges::lower_bound(known, at + kRecordHeadBytes, {}, &Known::offset);
    while (next != known.end() && !confirms(*next)) ++next;
    const std::uint64_t end = next == known.end() ? patched.size() : next->offset;
    report(problems, ProblemKind::chunk_damaged, segment,
           fmt::format("no confirmed records in bytes {} to {} of the chunk", at, end));
    if (next == known.end()) break;
    const std::uint64_t size = end - at - kRecordHeadBytes;
    patched[at] = 0xFF;
    std::memcpy(patched.data() + at + 1, &size, sizeof size);
    at = static_cast<std::size_t>(end);
  }
  patched.resize(at);
  buffer = std::move(patched);
  return buffer;
}

}  // namespace

Status load_segment(const FileMap& map, const Segment& segment, LoadedSegment& out,
                    ProblemList& problems) {
  out.records = {};
  out.verified = Verified::no_crc;
  out.damaged = false;
  const std::uint64_t length = segment.end - segment.offset;
  if (length > map.options.limits.max_record_bytes) {
    report(problems, ProblemKind::limit, segment,
           fmt::format("{} bytes are above the limit of {}", length,
                       map.options.limits.max_record_bytes));
    return ok_status();
  }
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes,
                            file_bytes(map, segment.offset, segment.end, out.file_bytes));
  if (!segment.is_chunk) {
    out.records = bytes;
    return ok_status();
  }
  std::uint64_t content_size = 0;
  if (bytes.size() >= kRecordHeadBytes) {
    std::memcpy(&content_size, bytes.data() + 1, sizeof content_size);
  }
  if (bytes.size() < kRecordHeadBytes || bytes[0] != static_cast<std::uint8_t>(Opcode::chunk) ||
      (!segment.cut && content_size != bytes.size() - kRecordHeadBytes)) {
    report(problems, ProblemKind::chunk_damaged, segment, "no chunk of this length stands here");
    return ok_status();
  }
  std::size_t records_offset = 0;
  const ByteSpan content = bytes.subspan(kRecordHeadBytes);
  const auto head = parse_chunk_head(content, &records_offset);
  if (!head.ok()) {
    report(problems, ProblemKind::chunk_damaged, segment, std::string(head.status().message()));
    return ok_status();
  }
  ByteSpan stored = content.subspan(records_offset);
  if (segment.cut) {
    stored = stored.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(stored.size(), head->records_size)));
    out.records = whole_records(decoded_prefix(map, *head, stored, out.decoded));
    out.verified = Verified::unverified;
    report(problems, ProblemKind::chunk_cut, segment,
           fmt::format("{} of {} stored bytes are in the file; {} bytes of whole records delivered",
                       stored.size(), head->records_size, out.records.size()));
    return ok_status();
  }
  if (head->records_size > stored.size()) {
    report(problems, ProblemKind::chunk_damaged, segment,
           fmt::format("{} bytes of records stated, {} stored", head->records_size, stored.size()));
    return ok_status();
  }
  stored = stored.first(static_cast<std::size_t>(head->records_size));
  auto records = decode_chunk(*head, stored, out.decoded, map.options.limits,
                              map.options.lenient ? &out.verified : nullptr);
  if (!records.ok()) {
    report(problems, kind_of(records.status()), segment, std::string(records.status().message()));
    if (map.options.lenient && records.status().code() == StatusCode::data_loss) {
      const ByteSpan prefix = decoded_prefix(map, *head, stored, out.decoded);
      Bytes confirmed;
      out.records = confirmed_records(map, segment, prefix, confirmed, problems);
      if (!confirmed.empty()) out.decoded = std::move(confirmed);
      out.verified = Verified::unverified;
      out.damaged = true;
    }
    return ok_status();
  }
  if (!map.options.lenient && head->uncompressed_crc != 0) out.verified = Verified::checked;
  const bool differs = out.verified == Verified::unverified;
  if (differs) {
    report(problems, ProblemKind::chunk_crc, segment, "the CRC differs; delivered on request");
  }
  out.records = *records;
  if (out.verified == Verified::checked) return ok_status();
  // Nothing vouches for these bytes: their framing must hold before anything leaves.
  std::size_t position = 0;
  const bool framed = framing_holds(out.records, position);
  if (framed && !differs) return ok_status();
  if (!map.options.lenient) {
    report(problems, ProblemKind::chunk_damaged, segment,
           fmt::format("no record bounds at byte {} of the chunk", position));
    out.records = {};
    return ok_status();
  }
  out.verified = Verified::unverified;
  out.damaged = true;
  Bytes confirmed;
  out.records = confirmed_records(map, segment, out.records, confirmed, problems);
  if (!confirmed.empty()) out.decoded = std::move(confirmed);
  return ok_status();
}

namespace {

// Calls `take(channel_id, entries)` for each MessageIndex behind a chunk when all of them hold.
// Returns false, with a problem, when they do not, and without one when there are none.
template <typename Take>
Result<bool> walk_message_indexes(const FileMap& map, const Segment& segment, ProblemList& problems,
                                  Take take) {
  const ChunkIndex& index = segment.index;
  if (!segment.is_chunk || segment.cut || index.message_index_offsets.empty()) return false;
  const auto refuse = [&](std::string why) {
    report(problems, ProblemKind::index_mismatch, segment, std::move(why));
    return false;
  };
  if (index.message_index_length > map.options.limits.max_record_bytes ||
      segment.end_with_index() > map.source->size()) {
    return refuse("its message indexes do not lie in the file");
  }
  Bytes buffer;
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes,
                            file_bytes(map, segment.end, segment.end_with_index(), buffer));
  struct Found {
    std::uint16_t id;
    ByteSpan entries;
  };
  std::vector<Found> found;
  std::vector<std::uint16_t> announced;
  for (const auto& [id, offset] : index.message_index_offsets) announced.push_back(id);
  std::ranges::sort(announced);
  const std::uint64_t room = kRecordHeadBytes + kMessageHeadBytes;
  const std::uint64_t last = index.uncompressed_size < room ? 0 : index.uncompressed_size - room;
  ChunkWalker walker(bytes);
  std::uint8_t opcode = 0;
  ByteSpan content;
  while (walker.next(opcode, content)) {
    if (opcode != static_cast<std::uint8_t>(Opcode::message_index)) {
      return refuse(fmt::format("{} found among its message indexes", opcode_name(opcode)));
    }
    std::uint16_t id = 0;
    std::uint32_t size = 0;
    if (content.size() >= 6) {
      std::memcpy(&id, content.data(), sizeof id);
      std::memcpy(&size, content.data() + 2, sizeof size);
    }
    if (content.size() < 6 || size > content.size() - 6 || size % 16 != 0) {
      return refuse(fmt::format("a message index of {} bytes with {} bytes of entries",
                                content.size(), size));
    }
    const auto known = std::ranges::lower_bound(announced, id);
    if (known == announced.end() || *known != id) {
      return refuse(
          fmt::format("a message index of channel {} that its chunk index does not list", id));
    }
    announced.erase(known);
    const ByteSpan entries = content.subspan(6, size);
    std::uint64_t highest = 0;
    for (std::size_t at = 0; at < entries.size(); at += 16) {
      std::uint64_t offset = 0;
      std::memcpy(&offset, entries.data() + at + 8, sizeof offset);
      highest = std::max(highest, offset);
    }
    if (!entries.empty() && (highest > last || index.uncompressed_size < room)) {
      return refuse(
          fmt::format("a message index points to byte {} of {}", highest, index.uncompressed_size));
    }
    found.push_back({.id = id, .entries = entries});
  }
  if (Status status = walker.status(); !status.ok()) return refuse(std::string(status.message()));
  if (!announced.empty()) {
    return refuse(fmt::format("no message index of channel {} follows it", announced.front()));
  }
  for (const Found& f : found) take(f.id, f.entries);
  return true;
}

}  // namespace

Result<std::optional<std::vector<MessageIndex>>> read_message_indexes(const FileMap& map,
                                                                      const Segment& segment,
                                                                      ProblemList& problems) {
  using Indexes = std::vector<MessageIndex>;
  Indexes out;
  ROPEWALK_ASSIGN_OR_RETURN(
      const bool held,
      walk_message_indexes(map, segment, problems, [&](std::uint16_t id, ByteSpan entries) {
        MessageIndex index{.channel_id = id, .records = {}};
        index.records.resize(entries.size() / 16);
        static_assert(sizeof(MessageIndex::Entry) == 16);
        if (!entries.empty()) std::memcpy(index.records.data(), entries.data(), entries.size());
        out.push_back(std::move(index));
      }));
  if (!held) return std::optional<Indexes>();
  return std::optional<Indexes>(std::move(out));
}

void describe_segment(ByteSpan records, Segment& segment) {
  ChunkIndex& index = segment.index;
  std::unordered_set<std::uint16_t> ids;
  bool first = true;
  ChunkWalker walker(records);
  std::uint8_t opcode = 0;
  ByteSpan content;
  index.message_start_time = index.message_end_time = 0;
  index.message_index_offsets.clear();
  while (walker.next(opcode, content)) {
    if (opcode != static_cast<std::uint8_t>(Opcode::message) ||
        content.size() < kMessageHeadBytes) {
      continue;
    }
    MessageHead head;
    std::memcpy(&head.channel_id, content.data(), sizeof head.channel_id);
    std::memcpy(&head.log_time, content.data() + 6, sizeof head.log_time);
    if (ids.insert(head.channel_id).second) {
      index.message_index_offsets.emplace_back(head.channel_id, 0);
    }
    index.message_start_time =
        first ? head.log_time : std::min(index.message_start_time, head.log_time);
    index.message_end_time =
        first ? head.log_time : std::max(index.message_end_time, head.log_time);
    first = false;
  }
}

Status verify_segment(const FileMap& map, Segment& segment, ProblemList& problems) {
  if (segment.trusted) return ok_status();
  segment.trusted = true;
  bool agrees = false;
  if (!segment.cut) {
    const std::uint64_t prefix = std::min<std::uint64_t>(
        segment.end - segment.offset, kRecordHeadBytes + 64 + segment.index.compression.size());
    Bytes buffer;
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes,
                              file_bytes(map, segment.offset, segment.offset + prefix, buffer));
    std::size_t records_offset = 0;
    if (bytes.size() >= kRecordHeadBytes && bytes[0] == static_cast<std::uint8_t>(Opcode::chunk)) {
      const auto head = parse_chunk_head(bytes.subspan(kRecordHeadBytes), &records_offset);
      agrees = head.ok() && same(*head, segment.index);
    }
    if (!agrees) {
      report(problems, ProblemKind::index_mismatch, segment,
             "chunk index and chunk differ; the chunk is read instead");
    }
  }
  if (agrees) {
    std::uint64_t start = ~std::uint64_t{0};
    std::uint64_t end = 0;
    ROPEWALK_ASSIGN_OR_RETURN(
        const bool held,
        walk_message_indexes(map, segment, problems, [&](std::uint16_t, ByteSpan entries) {
          for (std::size_t at = 0; at + 16 <= entries.size(); at += 16) {
            std::uint64_t time = 0;
            std::memcpy(&time, entries.data() + at, sizeof time);
            start = std::min(start, time);
            end = std::max(end, time);
          }
        }));
    if (held) {
      if (start == segment.index.message_start_time && end == segment.index.message_end_time) {
        return ok_status();
      }
      report(problems, ProblemKind::index_mismatch, segment,
             fmt::format("times [{}, {}] in its head, [{}, {}] in its message indexes",
                         segment.index.message_start_time, segment.index.message_end_time, start,
                         end));
    }
  }
  LoadedSegment loaded;
  ProblemList ignored;  // told again by whoever reads the messages
  ROPEWALK_RETURN_IF_ERROR(load_segment(map, segment, loaded, ignored));
  segment.suspect = !ignored.empty();
  describe_segment(loaded.records, segment);
  return ok_status();
}

}  // namespace ropewalk::mcap
