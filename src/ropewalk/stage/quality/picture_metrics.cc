#include <algorithm>
#include <cstdlib>

#include "ropewalk/stage/quality/picture_metrics_internal.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ropewalk::quality {
namespace {

// Sums of up to 16 samples side by side, of one row.
struct RunSums {
  std::uint32_t luma = 0;
  std::uint32_t bright = 0;
  std::uint32_t difference = 0;
  std::uint32_t difference_two = 0;
};

#if defined(__SSE2__)
std::uint32_t horizontal_sum(__m128i sums) {
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(sums)) +
         static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_srli_si128(sums, 8)));
}
#endif

RunSums sum_run(const std::uint8_t* current, const std::uint8_t* before,
                const std::uint8_t* two_before, std::size_t count, std::uint8_t bright_limit) {
  RunSums out;
  for (std::size_t i = 0; i < count; ++i) {
    out.luma += current[i];
    out.bright += current[i] >= bright_limit ? 1U : 0U;
    out.difference += static_cast<std::uint32_t>(std::abs(current[i] - before[i]));
    out.difference_two += static_cast<std::uint32_t>(std::abs(current[i] - two_before[i]));
  }
  return out;
}

}  // namespace

PictureSums measure_picture(ByteSpan current, ByteSpan before, ByteSpan two_before,
                            const FrameShape& shape, std::uint8_t bright_limit,
                            std::vector<std::uint8_t>& blocks) {
  // Without an earlier picture the difference is taken from the picture itself.
  if (before.empty()) before = current;
  if (two_before.empty()) two_before = current;
  const auto width = static_cast<std::size_t>(shape.width);
  const auto height = static_cast<std::size_t>(shape.height);
  constexpr std::size_t kSide = kBlockSize;
  const std::size_t columns = (width + kSide - 1) / kSide;
  const std::size_t rows = (height + kSide - 1) / kSide;
  blocks.resize(columns * rows);
  std::vector<std::uint32_t> sums(columns, 0);
  PictureSums out;
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* now = current.data() + y * width;
    const std::uint8_t* one = before.data() + y * width;
    const std::uint8_t* two = two_before.data() + y * width;
    std::size_t block = 0;
    std::size_t x = 0;
#if defined(__SSE2__)
    const __m128i zero = _mm_setzero_si128();
    const __m128i limit = _mm_set1_epi8(static_cast<char>(bright_limit));
    const __m128i ones = _mm_set1_epi8(1);
    __m128i bright = zero;
    __m128i difference = zero;
    __m128i difference_two = zero;
    for (; x + kSide <= width; x += kSide, ++block) {
      const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(now + x));
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(one + x));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(two + x));
      sums[block] += horizontal_sum(_mm_sad_epu8(c, zero));
      const __m128i is_bright = _mm_and_si128(_mm_cmpeq_epi8(_mm_max_epu8(c, limit), c), ones);
      bright = _mm_add_epi64(bright, _mm_sad_epu8(is_bright, zero));
      difference = _mm_add_epi64(difference, _mm_sad_epu8(c, a));
      difference_two = _mm_add_epi64(difference_two, _mm_sad_epu8(c, b));
    }
    out.bright += horizontal_sum(bright);
    out.difference += horizontal_sum(difference);
    out.difference_two += horizontal_sum(difference_two);
#endif
    for (; x < width; x += kSide, ++block) {
      const RunSums run =
          sum_run(now + x, one + x, two + x, std::min(kSide, width - x), bright_limit);
      sums[block] += run.luma;
      out.bright += run.bright;
      out.difference += run.difference;
      out.difference_two += run.difference_two;
    }
    if ((y + 1) % kSide != 0 && y + 1 != height) continue;
    const std::size_t tall = y % kSide + 1;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t wide = std::min(kSide, width - i * kSide);
      out.luma += sums[i];
      blocks[y / kSide * columns + i] = static_cast<std::uint8_t>(sums[i] / (wide * tall));
      sums[i] = 0;
    }
  }
  return out;
}

PictureSums measure_wide_picture(std::span<const std::uint16_t> current,
                                 std::span<const std::uint16_t> before,
                                 std::span<const std::uint16_t> two_before) {
  PictureSums out;
  for (std::size_t i = 0; i < current.size(); ++i) {
    out.luma += current[i];
    if (!before.empty()) {
      out.difference += static_cast<std::uint64_t>(std::abs(current[i] - before[i]));
    }
    if (!two_before.empty()) {
      out.difference_two += static_cast<std::uint64_t>(std::abs(current[i] - two_before[i]));
    }
  }
  return out;
}

double sharpness(ByteSpan picture, const FrameShape& shape) {
  const auto width = static_cast<std::size_t>(shape.width);
  const auto height = static_cast<std::size_t>(shape.height);
  if (width < 3 || height < 3) return 0.0;
  std::int64_t sum = 0;
  std::uint64_t squares = 0;
  for (std::size_t y = 1; y + 1 < height; ++y) {
    const std::uint8_t* row = picture.data() + y * width;
    const std::uint8_t* above = row - width;
    const std::uint8_t* below = row + width;
    // Of one row in 32 bits, which hold 1020 squared times 4,000 samples.
    std::size_t x = 1;
    while (x + 1 < width) {
      const std::size_t end = std::min(width - 1, x + 4000);
      std::int32_t row_sum = 0;
      std::uint32_t row_squares = 0;
      for (; x < end; ++x) {
        const int value = 4 * row[x] - row[x - 1] - row[x + 1] - above[x] - below[x];
        row_sum += value;
        row_squares += static_cast<std::uint32_t>(value * value);
      }
      sum += row_sum;
      squares += row_squares;
    }
  }
  const double count = static_cast<double>((width - 2) * (height - 2));
  const double mean = static_cast<double>(sum) / count;
  return static_cast<double>(squares) / count - mean * mean;
}

int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  int largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

}  // namespace ropewalk::quality
