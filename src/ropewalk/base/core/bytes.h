#pragma once
// Byte spans, a bounds-checked little-endian cursor, and an appending writer.
// Integers in files are read through ByteCursor and never by pointer casts.
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/result.h"

namespace ropewalk {

using Bytes = std::vector<std::uint8_t>;
using ByteSpan = std::span<const std::uint8_t>;
using MutableByteSpan = std::span<std::uint8_t>;

static_assert(std::endian::native == std::endian::little,
              "Ropewalk targets little-endian machines");

inline ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Walks a span; every read checks what remains first.
/// Errors: data_loss naming the offset, the bytes needed and the bytes left.
/// Lifetime: views returned by `take` live as long as the underlying span.
class ByteCursor {
 public:
  explicit ByteCursor(ByteSpan bytes) : bytes_(bytes) {}

  std::size_t offset() const { return offset_; }
  std::size_t remaining() const { return bytes_.size() - offset_; }
  bool at_end() const { return offset_ == bytes_.size(); }

  template <std::integral T>
  Result<T> read_le() {
    if (remaining() < sizeof(T)) return short_read(sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }
  template <std::integral T>
  Result<T> read_be() {
    if (remaining() < sizeof(T)) return short_read(sizeof(T));
    std::make_unsigned_t<T> value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<std::make_unsigned_t<T>>((static_cast<std::uint64_t>(value) << 8) |
                                                   bytes_[offset_ + i]);
    }
    offset_ += sizeof(T);
    return static_cast<T>(value);
  }
  /// Returns the next `count` bytes as a view. `count` is compared before any arithmetic.
  Result<ByteSpan> take(std::uint64_t count) {
    if (count > remaining()) return short_read(count);
    ByteSpan out = bytes_.subspan(offset_, static_cast<std::size_t>(count));
    offset_ += static_cast<std::size_t>(count);
    return out;
  }
  Status skip(std::uint64_t count) {
    auto taken = take(count);
    return taken.ok() ? ok_status() : std::move(taken).status();
  }

 private:
  Status short_read(std::uint64_t needed) const;

  ByteSpan bytes_;
  std::size_t offset_ = 0;
};

/// Appends little-endian integers and bytes to a vector it does not own.
class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}

  template <std::integral T>
  void write_le(T value) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof(T));
    std::memcpy(out_.data() + at, &value, sizeof(T));
  }
  template <std::integral T>
  void write_be(T value) {
    using U = std::make_unsigned_t<T>;
    for (std::size_t i = sizeof(T); i-- > 0;) {
      out_.push_back(
          static_cast<std::uint8_t>(static_cast<std::uint64_t>(static_cast<U>(value)) >> (8 * i)));
    }
  }
  void write(ByteSpan bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void write(std::string_view text) { write(as_bytes(text)); }
  std::size_t size() const { return out_.size(); }

 private:
  Bytes& out_;
};

/// Returns lower-case hexadecimal text of `bytes`.
std::string to_hex(ByteSpan bytes);

}  // namespace ropewalk
