#pragma once
// Values as the scalars that an encoder asks for: a number may come as a number, as text of a
// number (integers beyond 2^53 in JSON), or as "NaN".
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>

#include "ropewalk/format/message/value.h"

namespace ropewalk::message {

template <std::integral T>
std::optional<T> integer_of(const Value& value) {
  if (const auto text = value.as_string()) {
    T out{};
    const auto read = std::from_chars(text->data(), text->data() + text->size(), out);
    if (read.ec != std::errc() || read.ptr != text->data() + text->size()) return std::nullopt;
    return out;
  }
  if (const auto flag = value.as_bool()) return static_cast<T>(*flag);
  if (const auto wide = value.as_uint64()) {
    if (*wide <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
      return static_cast<T>(*wide);
    }
    return std::nullopt;
  }
  const auto whole = value.as_int64();
  if (!whole.has_value() || std::is_unsigned_v<T> ||
      *whole < static_cast<std::int64_t>(std::numeric_limits<T>::min())) {
    return std::nullopt;
  }
  return static_cast<T>(*whole);
}

inline std::optional<double> real_of(const Value& value) {
  if (const auto text = value.as_string()) {
    if (*text == "NaN") return std::nan("");
    if (*text == "Infinity") return HUGE_VAL;
    if (*text == "-Infinity") return -HUGE_VAL;
    if (const auto whole = integer_of<std::int64_t>(value)) return static_cast<double>(*whole);
    if (const auto wide = integer_of<std::uint64_t>(value)) return static_cast<double>(*wide);
    return std::nullopt;
  }
  return value.as_double();
}

inline std::optional<bool> boolean_of(const Value& value) {
  if (const auto flag = value.as_bool()) return flag;
  const auto whole = value.as_int64();
  if (!whole.has_value() || (*whole != 0 && *whole != 1)) return std::nullopt;
  return *whole == 1;
}

inline std::optional<Value::Time> time_of(const Value& value) {
  if (const auto* time = std::get_if<Value::Time>(&value.variant())) return *time;
  const Value* sec = value.find("sec");
  const Value* nsec = value.find("nsec");
  if (nsec == nullptr) nsec = value.find("nanosec");
  if (sec == nullptr || nsec == nullptr) return std::nullopt;
  const auto whole = integer_of<std::int64_t>(*sec);
  const auto part = integer_of<std::int64_t>(*nsec);
  if (!whole.has_value() || !part.has_value()) return std::nullopt;
  return Value::Time{.sec = *whole, .nsec = *part};
}

}  // namespace ropewalk::message
