#include "ropewalk/base/codec/checksum.h"

#include <libdeflate.h>

#include <algorithm>

#include <isa-l/crc.h>
#include <openssl/evp.h>

namespace ropewalk {

std::uint32_t crc32(std::uint32_t previous, ByteSpan bytes) {
  // libdeflate takes a null pointer as "give me the initial value".
  if (bytes.empty()) return previous;
  return libdeflate_crc32(previous, bytes.data(), bytes.size());
}

std::uint32_t crc32c(std::uint32_t previous, ByteSpan bytes) {
  std::uint32_t state = ~previous;
  while (!bytes.empty()) {
    const std::size_t step = std::min<std::size_t>(bytes.size(), 1U << 30);
    // isa-l reads only; its signature lacks const.
    state = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(step), state);
    bytes = bytes.subspan(step);
  }
  return ~state;
}

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(ByteSpan bytes) {
  EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size());
}

std::array<std::uint8_t, 32> Sha256::finish() {
  std::array<std::uint8_t, 32> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(impl_->context, digest.data(), &size);
  EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr);
  return digest;
}

std::string Sha256::finish_hex() { return to_hex(finish()); }

std::string sha256_hex(ByteSpan bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish_hex();
}

std::string md5_hex(ByteSpan bytes) {
  std::array<std::uint8_t, 16> digest{};
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_md5(), nullptr);
  return to_hex(digest);
}

}  // namespace ropewalk
