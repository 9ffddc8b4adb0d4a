#pragma once
// BitReader: bits of a codec header, most significant first, with Exp-Golomb codes.
// Reading past the end gives zeros and sets overrun(): headers are checked once, at the end.
#include <cstdint>

#include "ropewalk/base/core/bytes.h"

namespace ropewalk::video_internal {

class BitReader {
 public:
  explicit BitReader(ByteSpan bytes) : bytes_(bytes) {}

  /// Limits: count <= 32.
  std::uint32_t bits(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i) value = (value << 1) | bit();
    return value;
  }
  bool flag() { return bit() != 0; }
  void skip(int count) {
    for (int i = 0; i < count; ++i) bit();
  }
  /// ue(v) of H.264 and H.265; uvlc() of AV1 is the same code. Saturates at 2^32 - 1.
  std::uint32_t ue() {
    int zeros = 0;
    while (bit() == 0) {
      if (overrun_ || ++zeros > 31) {
        overrun_ = true;
        return 0;
      }
    }
    if (zeros == 0) return 0;
    return ((std::uint32_t{1} << zeros) - 1) + bits(zeros);
  }
  std::int32_t se() {
    const std::uint32_t code = ue();
    const auto half = static_cast<std::int32_t>(code / 2 + (code & 1));
    return (code & 1) != 0 ? half : -half;
  }
  bool overrun() const { return overrun_; }

 private:
  std::uint32_t bit() {
    const std::size_t byte = position_ / 8;
    if (byte >= bytes_.size()) {
      overrun_ = true;
      return 0;
    }
    const std::uint32_t value = (bytes_[byte] >> (7 - position_ % 8)) & 1U;
    ++position_;
    return value;
  }

  ByteSpan bytes_;
  std::size_t position_ = 0;
  bool overrun_ = false;
};

}  // namespace ropewalk::video_internal
