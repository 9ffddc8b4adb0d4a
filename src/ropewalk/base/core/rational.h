#pragma once
// Rational: an exact rate such as 30/1 or 30000/1001. Time inside Ropewalk is int64 nanoseconds;
// seconds in floating point exist only at the edge of a format.
#include <cstdint>
#include <string>

#include "ropewalk/base/core/result.h"

namespace ropewalk {

struct Rational {
  std::int64_t num = 0;
  std::int64_t den = 1;

  bool operator==(const Rational&) const = default;
  double to_double() const { return static_cast<double>(num) / static_cast<double>(den); }
  bool is_integral() const { return den == 1; }
};

/// Returns the reduced fraction; a negative denominator moves its sign to the numerator.
/// Errors: invalid_argument for a zero denominator.
Result<Rational> make_rational(std::int64_t num, std::int64_t den);

/// Returns the rate a file means by `rate_hz`: an integer when within 1e-9, k*1000/1001 when within
/// 5e-3 relative 1e-4 of an NTSC rate written as 23.98, 29.97, 59.94, else the exact decimal
/// to six places. Errors: invalid_argument unless 0 < rate_hz <= 1e6 and finite.
Result<Rational> rational_from_rate(double rate_hz);

/// "30", "30000/1001".
std::string to_string(Rational value);

/// Nanoseconds of frame `ordinal` at `fps`, rounded to nearest. Computed in 128 bits.
std::int64_t frame_time_ns(std::int64_t ordinal, Rational fps);

/// The seconds a LeRobot table stores: float32(ordinal / fps), divided in double and rounded once.
/// Spec: lerobot formats, timestamp = float32(ordinal / fps).
float frame_timestamp_f32(std::int64_t ordinal, Rational fps);

/// Seconds of frame `ordinal` in double, computed once from integers.
double frame_seconds(std::int64_t ordinal, Rational fps);

}  // namespace ropewalk
