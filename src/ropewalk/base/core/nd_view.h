#pragma once
// NdView: a dense C-order array somebody else owns: element type, shape, bytes.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/dtype.h"

namespace ropewalk {

/// Lifetime: `data` must outlive the view.
struct NdView {
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;  ///< empty for a 0-d scalar
  ByteSpan data;                    ///< C order, little-endian, product(shape) * itemsize bytes
};

/// Returns the product of `shape` (1 for 0-d), or nullopt if it is negative or overflows int64.
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape);

}  // namespace ropewalk
