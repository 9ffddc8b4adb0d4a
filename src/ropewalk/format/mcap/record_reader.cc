#include "ropewalk/format/mcap/record_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/codec/compression.h"

namespace ropewalk::mcap {
namespace {

// A decoded size below this is never doubted; above it, the stored bytes must be able to say as
// much.
constexpr std::uint64_t kUndoubtedBytes = 64ULL << 20;
constexpr std::uint64_t kMaxExpansion = 4096;

}  // namespace

Result<ByteSpan> SourceWindow::view(std::uint64_t offset, std::uint64_t size, std::uint64_t ahead) {
  const std::uint64_t total = source_->size();
  if (offset > total || size > total - offset) {
    return data_loss(fmt::format("{} bytes expected at byte {}, {} found", size, offset,
                                 offset > total ? 0 : total - offset));
  }
  if (!mapped_.empty()) {
    return mapped_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }
  if (offset >= buffer_offset_ && offset + size <= buffer_offset_ + buffer_used_) {
    return ByteSpan(buffer_).subspan(static_cast<std::size_t>(offset - buffer_offset_),
                                     static_cast<std::size_t>(size));
  }
  const std::uint64_t wanted = std::min(std::max(size, ahead), total - offset);
  if (buffer_.size() < wanted) buffer_.resize(static_cast<std::size_t>(wanted));
  buffer_used_ = 0;
  const MutableByteSpan target(buffer_.data(), static_cast<std::size_t>(wanted));
  ROPEWALK_RETURN_IF_ERROR(source_->read_at(offset, target));
  buffer_offset_ = offset;
  buffer_used_ = static_cast<std::size_t>(wanted);
  return ByteSpan(target).first(static_cast<std::size_t>(size));
}

RecordReader::RecordReader(const Source& source, std::uint64_t begin, std::uint64_t end,
                           std::uint64_t read_ahead_bytes, Limits limits)
    : window_(source),
      position_(begin),
      end_(std::min(end, source.size())),
      read_ahead_(read_ahead_bytes),
      limits_(limits) {}

Result<std::optional<RecordHead>> RecordReader::next() {
  cut_head_.reset();
  if (position_ == 0) {
    if (end_ < kMagic.size()) {
      return data_loss(fmt::format("{} bytes: too short for the MCAP magic", end_));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan magic, window_.view(0, kMagic.size(), read_ahead_));
    if (!std::ranges::equal(magic, kMagic)) {
      const ByteSpan expected(kMagic);
      if (std::ranges::equal(magic.first(5), expected.first(5)) && magic[5] != kMagic[5]) {
        return data_loss(
            fmt::format("MCAP version '{:#04x}' is not supported (expected '0')", magic[5]));
      }
      return data_loss(fmt::format("byte 0: magic {} expected, {} found: not an MCAP file",
                                   to_hex(expected), to_hex(magic)));
    }
    position_ = kMagic.size();
  }
  if (position_ >= end_) return std::optional<RecordHead>();
  if (end_ - position_ < kRecordHeadBytes) {
    return data_loss(fmt::format("byte {}: a record head of 9 bytes expected, {} bytes left",
                                 position_, end_ - position_));
  }
  ROPEWALK_ASSIGN_OR_RETURN(
      const ByteSpan bytes,
      window_.view(position_, kRecordHeadBytes, std::min(read_ahead_, end_ - position_)));
  RecordHead head{.opcode = bytes[0], .offset = position_, .content_size = 0};
  std::memcpy(&head.content_size, bytes.data() + 1, sizeof head.content_size);
  if (head.content_size > end_ - position_ - kRecordHeadBytes) {
    cut_head_ = head;
    return data_loss(fmt::format("byte {}: {} of {} bytes reaches past the end ({} bytes left)",
                                 position_, opcode_name(head.opcode), head.content_size,
                                 end_ - position_ - kRecordHeadBytes));
  }
  head_ = head;
  position_ = head.end();
  return std::optional<RecordHead>(head);
}

Result<ByteSpan> RecordReader::content() {
  if (head_.content_size > limits_.max_record_bytes) {
    return resource_exhausted(fmt::format("byte {}: {} of {} bytes is above the limit of {}",
                                          head_.offset, opcode_name(head_.opcode),
                                          head_.content_size, limits_.max_record_bytes));
  }
  return content_prefix(head_.content_size);
}

Result<ByteSpan> RecordReader::content_prefix(std::uint64_t size) {
  size = std::min(size, head_.content_size);
  return window_.view(head_.content_offset(), size,
                      std::min(read_ahead_, end_ - head_.content_offset()));
}

Result<ByteSpan> decode_chunk(const ChunkHead& head, ByteSpan records, Bytes& buffer,
                              const Limits& limits, Verified* verified) {
  if (head.uncompressed_size > limits.max_chunk_bytes) {
    return resource_exhausted(fmt::format("chunk of {} bytes decoded is above the limit of {}",
                                          head.uncompressed_size, limits.max_chunk_bytes));
  }
  ByteSpan decoded;
  if (head.compression.empty()) {
    if (head.uncompressed_size != records.size()) {
      return data_loss(fmt::format("uncompressed chunk: {} bytes stated, {} stored",
                                   head.uncompressed_size, records.size()));
    }
    decoded = records;
  } else {
    Compression codec = Compression::none;
    if (head.compression == "lz4") {
      codec = Compression::lz4_frame;
    } else if (head.compression == "zstd") {
      codec = Compression::zstd;
    } else {
      return unimplemented(fmt::format("chunk compression \"{}\": MCAP knows lz4 and zstd",
                                       head.compression.substr(0, 32)));
    }
    const std::uint64_t size = head.uncompressed_size;
    const auto stated = stated_size(codec, records);
    if (stated.has_value() && *stated != size) {
      return data_loss(fmt::format("chunk: {} bytes decoded expected, its {} frame states {}", size,
                                   head.compression, *stated));
    }
    if (size > kUndoubtedBytes && size / kMaxExpansion > records.size()) {
      return resource_exhausted(
          fmt::format("chunk: {} stored bytes claim to be {} bytes", records.size(), size));
    }
    if (buffer.size() < size) buffer.resize(static_cast<std::size_t>(size));
    const MutableByteSpan out(buffer.data(), static_cast<std::size_t>(size));
    ROPEWALK_RETURN_IF_ERROR(decompress_exact(codec, records, out));
    decoded = out;
  }
  Verified state = Verified::no_crc;
  if (head.uncompressed_crc != 0) {
    const std::uint32_t computed = crc32(0, decoded);
    state = computed == head.uncompressed_crc ? Verified::checked : Verified::unverified;
    if (state == Verified::unverified && verified == nullptr) {
      return data_loss(fmt::format("chunk: CRC {:#010x} stored, {:#010x} computed",
                                   head.uncompressed_crc, computed))
          .with_reason("chunk_crc");
    }
  }
  if (verified != nullptr) *verified = state;
  return decoded;
}

Status ChunkWalker::status() const {
  const std::size_t left = records_.size() - position_;
  if (left == 0) return ok_status();
  if (left < kRecordHeadBytes) {
    return data_loss(fmt::format("chunk: {} bytes after its last record", left));
  }
  std::uint64_t size = 0;
  std::memcpy(&size, records_.data() + position_ + 1, sizeof size);
  return data_loss(fmt::format("chunk: {} of {} bytes at byte {} of the chunk, {} bytes left",
                               opcode_name(records_[position_]), size, position_,
                               left - kRecordHeadBytes));
}

}  // namespace ropewalk::mcap
