// Chunks of ROS 1 bags: decoded with limits, and walked.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ropewalk/base/codec/stream.h"
#include "ropewalk/format/bag/rosbag1_internal.h"

namespace ropewalk::bag {
namespace {

// No LZ4 sequence expands further; a frame that claims more lies.
constexpr std::uint64_t kMaxLz4Expansion = 255;

std::uint64_t segment_length(const Segment& segment) { return segment.end - segment.offset; }

Result<ByteSpan> stored_bytes(const Source& source, const Segment& segment, Bytes& buffer) {
  if (!source.mapped().empty()) {
    return source.mapped().subspan(static_cast<std::size_t>(segment.data_offset),
                                   static_cast<std::size_t>(segment.data_size));
  }
  buffer.resize(static_cast<std::size_t>(segment.data_size));
  ROPEWALK_RETURN_IF_ERROR(source.read_at(segment.data_offset, buffer));
  return ByteSpan(buffer);
}

// The size that a chunk states is believed only as far as its bytes can expand.
Result<Bytes> decode_whole(const Segment& segment, ByteSpan stored) {
  if (segment.codec == Compression::lz4_frame) {
    if (segment.decoded_size > stored.size() * kMaxLz4Expansion) {
      return data_loss(fmt::format("{} bytes stated, more than {} bytes of lz4 can hold",
                                   segment.decoded_size, stored.size()));
    }
    Bytes out(static_cast<std::size_t>(segment.decoded_size));
    ROPEWALK_RETURN_IF_ERROR(decompress_exact(segment.codec, stored, out));
    return out;
  }
  ROPEWALK_ASSIGN_OR_RETURN(Bytes out, decompress(segment.codec, stored, segment.decoded_size));
  if (out.size() != segment.decoded_size) {
    return data_loss(
        fmt::format("{} decoded bytes stated, {} found", segment.decoded_size, out.size()));
  }
  return out;
}

}  // namespace

Status Rosbag1File::decode(const Segment& segment, Decoded& out, ProblemLog& log) const {
  out.records = {};
  out.unverified = segment.cut;
  const auto report = [&](ProblemKind what, std::string detail) {
    log.add(what, segment.offset, segment_length(segment), std::move(detail));
  };
  const std::uint64_t most = options.limits.max_chunk_bytes;
  if (std::max(segment.data_size, segment.decoded_size) > most) {
    report(ProblemKind::limit,
           fmt::format("{} bytes are above the limit of {} for a chunk",
                       std::max(segment.data_size, segment.decoded_size), most));
    return ok_status();
  }
  if (segment.codec == Compression::none) {
    ROPEWALK_ASSIGN_OR_RETURN(out.records, stored_bytes(*source, segment, out.buffer));
    return ok_status();
  }
  Bytes buffer;
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan stored, stored_bytes(*source, segment, buffer));
  if (!segment.cut) {
    auto whole = decode_whole(segment, stored);
    if (whole.ok()) {
      out.buffer = std::move(whole).value();
      out.records = out.buffer;
      return ok_status();
    }
    report(ProblemKind::chunk_damaged, std::string(whole.status().message()));
    if (!options.lenient) return ok_status();
    out.unverified = true;
  }
  // A chunk that was still growing states no size.
  const std::uint64_t expected = segment.decoded_size == 0 ? most : segment.decoded_size;
  out.buffer = decompress_prefix(segment.codec, stored, expected);
  out.records = out.buffer;
  return ok_status();
}

void Rosbag1File::walk(const Segment& segment, const Decoded& decoded, std::vector<Entry>& out,
                       ProblemLog& log, Rosbag1File* definer) const {
  const ByteSpan records = decoded.records;
  const bool mirrored = segment.codec == Compression::none;  // offsets are those of the file
  const std::uint64_t base = mirrored ? segment.data_offset : segment.offset;
  const auto place = [&](std::uint64_t at) { return mirrored ? base + at : base; };
  std::map<std::uint32_t, std::uint64_t> strangers;
  std::size_t at = 0;
  while (at < records.size()) {
    const auto head = parse_head(records.subspan(at), at);
    if (!head.ok()) {
      const bool at_cut = decoded.unverified;
      log.add(at_cut ? ProblemKind::chunk_cut : ProblemKind::chunk_damaged, place(at),
              mirrored ? records.size() - at : segment_length(segment),
              fmt::format("byte {} of {} decoded ones: {}; the messages before are delivered", at,
                          records.size(), head.status().message()));
      break;
    }
    at = static_cast<std::size_t>(head->end());
    const std::uint64_t length = head->end() - head->offset;
    if (head->op == Op::connection) {
      if (definer == nullptr) continue;
      const Status status =
          definer->define(head->fields,
                          records.subspan(static_cast<std::size_t>(head->data_offset),
                                          static_cast<std::size_t>(head->data_size)),
                          place(head->offset), length);
      if (!status.ok()) {
        log.add(ProblemKind::bad_record, place(head->offset), length,
                std::string(status.message()));
      }
      continue;
    }
    const auto connection = head->fields.number<std::uint32_t>("conn");
    const auto time = head->fields.time("time");
    if (head->op != Op::message || !connection || !time) {
      log.add(ProblemKind::bad_record, place(head->offset), length,
              fmt::format("op {} in a chunk, or a message without conn and time",
                          static_cast<int>(head->op)));
      continue;
    }
    const auto channel = channel_of_connection.find(*connection);
    if (channel == channel_of_connection.end()) {
      ++strangers[*connection];
      continue;
    }
    if (head->data_size > options.limits.max_record_bytes) {
      log.add(
          ProblemKind::limit, place(head->offset), length,
          fmt::format("a message above the limit of {} bytes", options.limits.max_record_bytes));
      continue;
    }
    out.push_back({.time_ns = *time,
                   .channel = channel->second,
                   .data_size = static_cast<std::uint32_t>(head->data_size),
                   .data_offset = head->data_offset});
  }
  if (segment.cut && at >= records.size()) {
    log.add(ProblemKind::chunk_cut, segment.offset, segment_length(segment),
            fmt::format("{} decoded bytes of {} are there", records.size(), segment.decoded_size));
  }
  for (const auto& [connection, count] : strangers) {
    log.add(
        ProblemKind::unknown_channel, segment.offset, segment_length(segment),
        fmt::format("{} messages of connection {}, which is nowhere defined", count, connection));
  }
}

}  // namespace ropewalk::bag
