#pragma once
// Numbers of one picture and of its difference from earlier ones, in one pass over its luma.
#include <cstdint>
#include <span>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/media.h"

namespace ropewalk::quality {

/// Sums over one picture of uint8 luma.
struct PictureSums {
  std::uint64_t luma = 0;            ///< of all samples
  std::uint64_t bright = 0;          ///< samples at or above the limit
  std::uint64_t difference = 0;      ///< absolute, from the picture before
  std::uint64_t difference_two = 0;  ///< absolute, from the picture two before
};

inline constexpr int kBlockSize = 16;  ///< samples per side of a block

/// Measures `current`. `before` and `two_before` are empty at the start.
/// Shape: pictures [height, width]; `blocks` gets [ceil(height/16), ceil(width/16)] means.
PictureSums measure_picture(ByteSpan current, ByteSpan before, ByteSpan two_before,
                            const FrameShape& shape, std::uint8_t bright_limit,
                            std::vector<std::uint8_t>& blocks);

/// The same for uint16 samples, without blocks and brightness.
PictureSums measure_wide_picture(std::span<const std::uint16_t> current,
                                 std::span<const std::uint16_t> before,
                                 std::span<const std::uint16_t> two_before);

/// Variance of the 4-neighbour Laplacian; 0 for pictures smaller than 3x3.
double sharpness(ByteSpan picture, const FrameShape& shape);

/// The largest absolute difference of two block means.
int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b);

}  // namespace ropewalk::quality
