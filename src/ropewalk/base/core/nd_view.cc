#include "ropewalk/base/core/nd_view.h"

namespace ropewalk {

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

}  // namespace ropewalk
