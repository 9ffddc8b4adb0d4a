#include "ropewalk/format/video/packets.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/format/video/mp4_writer.h"
#include "ropewalk/format/video/packet_fetcher_internal.h"

namespace ropewalk {
namespace video_internal {

Result<ByteSpan> PacketFetcher::fetch(const Mp4Index& index, const Source& source,
                                      std::size_t position, std::size_t end) {
  const Mp4Packet& packet = index.packets[position];
  if (packet.offset >= offset_ && packet.offset - offset_ <= buffer_.size() &&
      packet.size <= buffer_.size() - (packet.offset - offset_)) {
    return ByteSpan(buffer_).subspan(static_cast<std::size_t>(packet.offset - offset_),
                                     packet.size);
  }
  if (packet.offset + packet.size > source.size()) {
    return data_loss(fmt::format("{}: packet {} ends at byte {}, the file has {} bytes", index.name,
                                 position, packet.offset + packet.size, source.size()));
  }
  // Take neighbours along while they follow closely and the buffer holds them.
  std::uint64_t stop = packet.offset + packet.size;
  for (std::size_t next = position + 1; next < end; ++next) {
    const Mp4Packet& other = index.packets[next];
    const std::uint64_t other_end = other.offset + other.size;
    if (other.offset < stop || other.offset - stop > kMaxGapBytes || other_end > source.size() ||
        other_end - packet.offset > window_bytes_) {
      break;
    }
    stop = other_end;
  }
  buffer_.resize(static_cast<std::size_t>(stop - packet.offset));
  offset_ = packet.offset;
  if (Status status = source.read_at(offset_, buffer_); !status.ok()) {
    buffer_.clear();
    return status.with_context(fmt::format("{}: packet {}", index.name, position));
  }
  return ByteSpan(buffer_).first(packet.size);
}

}  // namespace video_internal

namespace {

Status check_range(const Mp4Index& index, PacketRange range) {
  if (range.begin <= range.end && range.end <= index.packets.size()) return ok_status();
  return out_of_range(fmt::format("{}: packets [{}, {}) of {}", index.name, range.begin, range.end,
                                  index.packets.size()));
}

}  // namespace

Mp4PacketReader::Mp4PacketReader() = default;
Mp4PacketReader::Mp4PacketReader(Mp4PacketReader&&) noexcept = default;
Mp4PacketReader& Mp4PacketReader::operator=(Mp4PacketReader&&) noexcept = default;
Mp4PacketReader::~Mp4PacketReader() = default;

Result<Mp4PacketReader> Mp4PacketReader::open(std::shared_ptr<const Mp4Index> index,
                                              std::shared_ptr<const Source> source,
                                              PacketRange range) {
  ROPEWALK_RETURN_IF_ERROR(check_range(*index, range));
  Mp4PacketReader reader;
  reader.position_ = range.begin;
  reader.end_ = range.end;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const std::int64_t rank = index->packets[i].rank;
    if (i == range.begin || rank < reader.first_rank_) reader.first_rank_ = rank;
  }
  reader.index_ = std::move(index);
  reader.source_ = std::move(source);
  reader.fetcher_ = std::make_unique<video_internal::PacketFetcher>();
  return reader;
}

Result<Mp4PacketReader> Mp4PacketReader::open(std::shared_ptr<const Mp4Index> index,
                                              std::shared_ptr<const Source> source) {
  const PacketRange all{0, index->packets.size()};
  return open(std::move(index), std::move(source), all);
}

Result<std::optional<VideoPacket>> Mp4PacketReader::next() {
  if (position_ == end_) return std::optional<VideoPacket>();
  VideoPacket packet;
  ROPEWALK_ASSIGN_OR_RETURN(packet.data, fetcher_->fetch(*index_, *source_, position_, end_));
  packet.ordinal = index_->packets[position_].rank - first_rank_;
  packet.keyframe = index_->packets[position_].keyframe;
  ++position_;
  return std::optional<VideoPacket>(packet);
}

Result<std::string> packet_sha256(const Mp4Index& index, const Source& source, PacketRange range) {
  ROPEWALK_RETURN_IF_ERROR(check_range(index, range));
  video_internal::PacketFetcher fetcher;
  Sha256 hash;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan data, fetcher.fetch(index, source, i, range.end));
    hash.update(data);
  }
  return hash.finish_hex();
}

Result<std::string> copy_packets(const Mp4Index& index, const Source& source, PacketRange range,
                                 Mp4Writer& writer, std::size_t buffer_bytes) {
  ROPEWALK_RETURN_IF_ERROR(check_range(index, range));
  if (buffer_bytes == 0) return invalid_argument("copy_packets: a buffer of 0 bytes");
  // Packets that touch are copied as one run, in pieces that stay in the processor's cache.
  const auto buffer = std::make_unique_for_overwrite<std::uint8_t[]>(buffer_bytes);
  Sha256 hash;
  for (std::size_t i = range.begin; i < range.end;) {
    std::uint64_t offset = index.packets[i].offset;
    std::uint64_t end = offset;
    const std::size_t first = i;
    for (; i < range.end && index.packets[i].offset == end; ++i) end += index.packets[i].size;
    if (end > source.size()) {
      return data_loss(fmt::format("{}: packets {} to {} end at byte {}, the file has {} bytes",
                                   index.name, first, i - 1, end, source.size()));
    }
    while (offset < end) {
      const MutableByteSpan piece(buffer.get(), static_cast<std::size_t>(std::min<std::uint64_t>(
                                                    buffer_bytes, end - offset)));
      ROPEWALK_RETURN_IF_ERROR(source.read_at(offset, piece));
      hash.update(piece);
      ROPEWALK_RETURN_IF_ERROR(writer.append(piece));
      offset += piece.size();
    }
  }
  return hash.finish_hex();
}

}  // namespace ropewalk
