#include "ropewalk/base/core/rational.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace ropewalk {
namespace {
__extension__ typedef __int128 Int128;
}  // namespace

Result<Rational> make_rational(std::int64_t num, std::int64_t den) {
  if (den == 0) return invalid_argument(fmt::format("fraction {}/0 has no value", num));
  const std::int64_t sign = den < 0 ? -1 : 1;
  const std::int64_t divisor = std::gcd(num, den);
  if (divisor == 0) return Rational{0, 1};
  return Rational{sign * num / divisor, sign * den / divisor};
}

Result<Rational> rational_from_rate(double rate_hz) {
  if (!std::isfinite(rate_hz) || rate_hz <= 0 || rate_hz > 1e6) {
    return invalid_argument(
        fmt::format("rate {} Hz: expected a finite value above 0 and at most 1000000", rate_hz));
  }
  const double nearest = std::round(rate_hz);
  if (std::abs(rate_hz - nearest) < 1e-9 && nearest >= 1) {
    return Rational{static_cast<std::int64_t>(nearest), 1};
  }
  const double ntsc = std::round(rate_hz * 1001.0 / 1000.0);
  if (ntsc >= 1 && std::abs(rate_hz - ntsc * 1000.0 / 1001.0) < 5e-3) {
    for (const double known : {24.0, 30.0, 60.0, 120.0}) {
      if (ntsc == known) return make_rational(static_cast<std::int64_t>(known) * 1000, 1001);
    }
  }
  auto exact = make_rational(static_cast<std::int64_t>(std::llround(rate_hz * 1e6)), 1000000);
  if (exact.ok() && exact->num <= 0) return invalid_argument(fmt::format("rate {} Hz", rate_hz));
  return exact;
}

std::string to_string(Rational value) {
  return value.den == 1 ? fmt::format("{}", value.num) : fmt::format("{}/{}", value.num, value.den);
}

std::int64_t frame_time_ns(std::int64_t ordinal, Rational fps) {
  const Int128 numerator = static_cast<Int128>(ordinal) * 1000000000 * fps.den;
  const Int128 half = fps.num / 2;
  return static_cast<std::int64_t>((numerator + (numerator < 0 ? -half : half)) / fps.num);
}

float frame_timestamp_f32(std::int64_t ordinal, Rational fps) {
  return static_cast<float>(frame_seconds(ordinal, fps));
}

double frame_seconds(std::int64_t ordinal, Rational fps) {
  return static_cast<double>(ordinal) * static_cast<double>(fps.den) / static_cast<double>(fps.num);
}

}  // namespace ropewalk
