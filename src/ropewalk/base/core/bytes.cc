#include "ropewalk/base/core/bytes.h"

#include <fmt/format.h>

namespace ropewalk {

Status ByteCursor::short_read(std::uint64_t needed) const {
  return data_loss(fmt::format("byte {}: {} bytes needed, {} left", offset_, needed, remaining()));
}

std::string to_hex(ByteSpan bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::uint8_t b : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", b);
  return out;
}

}  // namespace ropewalk
