#pragma once
// Checksums: CRC-32 (zlib, IEEE 802.3), CRC-32C (Castagnoli), SHA-256, MD5.
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "ropewalk/base/core/bytes.h"

namespace ropewalk {

/// CRC-32 with polynomial 0xEDB88320; pass the previous value to go on. crc32(0, "") == 0.
std::uint32_t crc32(std::uint32_t previous, ByteSpan bytes);
/// CRC-32C with polynomial 0x82F63B78, same convention.
std::uint32_t crc32c(std::uint32_t previous, ByteSpan bytes);

/// SHA-256 over any number of updates.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(ByteSpan bytes);
  /// Returns the digest and starts anew.
  std::array<std::uint8_t, 32> finish();
  /// The digest as 64 lower-case hexadecimal digits; starts anew.
  std::string finish_hex();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string sha256_hex(ByteSpan bytes);

/// MD5 as 32 lower-case hexadecimal digits: for formats that name things by it, never for safety.
std::string md5_hex(ByteSpan bytes);

}  // namespace ropewalk
