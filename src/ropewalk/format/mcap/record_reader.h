#pragma once
// RecordReader: walks the records of an MCAP file, or of a part of it, in file order. It sees
// record heads first and loads a content only when asked, so that attachments and chunks can be
// skipped. read_chunk() decodes the records of a chunk with every check the format allows.
#include <cstdint>
#include <optional>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/format/mcap/records.h"

namespace ropewalk::mcap {

/// Bytes of a Source by offset: views into a mapped file, else into one buffer that is reused.
/// Lifetime: a view lives until the next call.
class SourceWindow {
 public:
  explicit SourceWindow(const Source& source) : source_(&source), mapped_(source.mapped()) {}

  std::uint64_t size() const { return source_->size(); }
  /// Reads ahead up to `ahead` bytes in all, so that small reads in a row cost one call.
  /// Errors: data_loss when the bytes are not all in the file; whatever the source says.
  Result<ByteSpan> view(std::uint64_t offset, std::uint64_t size, std::uint64_t ahead = 0);

 private:
  const Source* source_;
  ByteSpan mapped_;
  Bytes buffer_;
  std::uint64_t buffer_offset_ = 0;
  std::size_t buffer_used_ = 0;
};

struct RecordHead {
  std::uint8_t opcode = 0;
  std::uint64_t offset = 0;  ///< of the opcode
  std::uint64_t content_size = 0;

  std::uint64_t content_offset() const { return offset + kRecordHeadBytes; }
  std::uint64_t end() const { return content_offset() + content_size; }
  bool is(Opcode wanted) const { return opcode == static_cast<std::uint8_t>(wanted); }
};

/// Not thread-safe. Lifetime: the source must outlive the reader; a content lives until the next
/// call.
class RecordReader {
 public:
  /// Walks [begin, end); begin of 0 skips and checks the magic. `read_ahead_bytes` is for the pace
  /// of the caller: small when contents are skipped, large when all are read.
  RecordReader(const Source& source, std::uint64_t begin, std::uint64_t end,
               std::uint64_t read_ahead_bytes = 1ULL << 20, Limits limits = {});

  /// Returns the head of the next record, or nullopt at the end of the range.
  /// Errors: data_loss naming offset, expected and found, when the magic is wrong, when fewer than
  /// 9 bytes are left, or when a length reaches past the end; position() then stays at that record.
  Result<std::optional<RecordHead>> next();
  /// The head that next() could not accept because its length reaches past the end.
  const std::optional<RecordHead>& cut_head() const { return cut_head_; }
  /// Loads the content of the last head. Errors: resource_exhausted above Limits::max_record_bytes.
  Result<ByteSpan> content();
  /// Loads at most the first `size` bytes of the content.
  Result<ByteSpan> content_prefix(std::uint64_t size);
  std::uint64_t position() const { return position_; }
  void seek(std::uint64_t position) { position_ = position; }
  void set_read_ahead(std::uint64_t bytes) { read_ahead_ = bytes; }

 private:
  SourceWindow window_;
  std::uint64_t position_;
  std::uint64_t end_;
  std::uint64_t read_ahead_;
  Limits limits_;
  RecordHead head_;
  std::optional<RecordHead> cut_head_;
};

/// How far the bytes of a chunk are known to be right.
enum class Verified : std::uint8_t {
  checked,     ///< the stored CRC is theirs
  no_crc,      ///< the file carries no CRC for them
  unverified,  ///< the CRC differs, or the chunk is cut: delivered on request only
};

/// Decodes the `records` of a chunk. Uncompressed records come back as the view they were given in;
/// compressed ones are decoded into `buffer`, which grows to the stated size only after that size
/// has been checked against Limits, against the frame's own statement and against the ratio a codec
/// can reach. Errors: data_loss, resource_exhausted, unimplemented (codec), each with what was
/// expected and found. A differing CRC is data_loss with the reason "chunk_crc", unless `verified`
/// is given.
Result<ByteSpan> decode_chunk(const ChunkHead& head, ByteSpan records, Bytes& buffer,
                              const Limits& limits, Verified* verified = nullptr);

/// Walks records inside decoded chunk bytes. Errors: data_loss when a length reaches past the end.
class ChunkWalker {
 public:
  explicit ChunkWalker(ByteSpan records) : records_(records) {}
  std::size_t position() const { return position_; }
  /// Returns false at the end and on an error, which status() then holds.
  bool next(std::uint8_t& opcode, ByteSpan& content) {
    if (records_.size() - position_ < kRecordHeadBytes) return false;
    const std::uint8_t* at = records_.data() + position_;
    std::uint64_t size = 0;
    std::memcpy(&size, at + 1, sizeof size);
    if (size > records_.size() - position_ - kRecordHeadBytes) return false;
    opcode = *at;
    content = records_.subspan(position_ + kRecordHeadBytes, static_cast<std::size_t>(size));
    position_ += kRecordHeadBytes + static_cast<std::size_t>(size);
    return true;
  }
  Status status() const;

 private:
  ByteSpan records_;
  std::size_t position_ = 0;
};

}  // namespace ropewalk::mcap
