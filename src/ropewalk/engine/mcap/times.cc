// Times, durations and sizes as people write and read them.
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "ropewalk/engine/mcap/selection.h"

namespace ropewalk {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kYear1980Ns = 315'532'800 * kSecond;

template <typename T>
std::optional<T> whole_number(std::string_view digits) {
  T value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return value;
}

// Takes `width` digits off the front.
std::optional<int> take_digits(std::string_view& text, std::size_t width) {
  if (text.size() < width) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(width);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::uint64_t> rfc3339(std::string_view text) {
  const auto year = take_digits(text, 4);
  if (!year || !take(text, '-')) return std::nullopt;
  const auto month = take_digits(text, 2);
  if (!month || !take(text, '-')) return std::nullopt;
  const auto day = take_digits(text, 2);
  if (!day || !(take(text, 'T') || take(text, 't') || take(text, ' '))) return std::nullopt;
  const auto hour = take_digits(text, 2);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || !take(text, ':')) return std::nullopt;
  const auto second = take_digits(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  std::int64_t nanos = 0;
  if (take(text, '.')) {
    std::int64_t scale = 100'000'000;
    std::size_t digits = 0;
    for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; ++digits) {
      nanos += (text.front() - '0') * scale;
      scale /= 10;
      text.remove_prefix(1);
    }
    if (digits == 0) return std::nullopt;
  }
  std::int64_t offset_minutes = 0;
  if (!take(text, 'Z') && !take(text, 'z')) {
    if (text.empty() || (text.front() != '+' && text.front() != '-')) return std::nullopt;
    const int sign = text.front() == '-' ? -1 : 1;
    text.remove_prefix(1);
    const auto hours = take_digits(text, 2);
    if (!hours || !take(text, ':')) return std::nullopt;
    const auto minutes = take_digits(text, 2);
    if (!minutes) return std::nullopt;
    offset_minutes = sign * (*hours * 60 + *minutes);
  }
  if (!text.empty()) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds =
      days * 86'400 + *hour * 3600 + *minute * 60 + *second - offset_minutes * 60;
  if (seconds < 0 || seconds > 18'446'744'073 ||
      (seconds == 18'446'744'073 && nanos > 709'551'615)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(seconds) * kSecond + static_cast<std::uint64_t>(nanos);
}

struct Unit {
  std::string_view name;
  double factor;
};

// A decimal number followed by one of `units`.
template <std::size_t N>
std::optional<std::uint64_t> scaled(std::string_view text, const std::array<Unit, N>& units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  std::string_view name(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    const double product = value * unit.factor;
    if (product >= 18446744073709549568.0) return std::nullopt;
    return static_cast<std::uint64_t>(std::llround(std::min(product, 9.2e18))) +
           (product > 9.2e18 ? static_cast<std::uint64_t>(product - 9.2e18) : 0);
  }
  return std::nullopt;
}

}  // namespace

Result<std::uint64_t> parse_time(std::string_view text) {
  if (const auto nanos = whole_number<std::uint64_t>(text)) return *nanos;
  if (const auto time = rfc3339(text)) return *time;
  return invalid_argument(fmt::format(
      "'{}' is no time: give nanoseconds, or RFC 3339 such as 2026-01-31T12:00:00Z", text));
}

Result<std::uint64_t> parse_duration(std::string_view text) {
  static constexpr std::array kUnits{Unit{"", 1e9},     Unit{"s", 1e9},    Unit{"ms", 1e6},
                                     Unit{"us", 1e3},   Unit{"ns", 1},     Unit{"m", 60e9},
                                     Unit{"min", 60e9}, Unit{"h", 3600e9}, Unit{"d", 86400e9}};
  if (const auto value = scaled(text, kUnits)) return *value;
  return invalid_argument(fmt::format(
      "'{}' is no duration: give seconds, or a number with ns, us, ms, s, min, h", text));
}

Result<std::uint64_t> parse_byte_size(std::string_view text) {
  static constexpr std::array kUnits{Unit{"", 1},
                                     Unit{"B", 1},
                                     Unit{"k", 1e3},
                                     Unit{"kB", 1e3},
                                     Unit{"KB", 1e3},
                                     Unit{"K", 1e3},
                                     Unit{"M", 1e6},
                                     Unit{"MB", 1e6},
                                     Unit{"G", 1e9},
                                     Unit{"GB", 1e9},
                                     Unit{"TB", 1e12},
                                     Unit{"KiB", 1024},
                                     Unit{"MiB", 1048576.0},
                                     Unit{"GiB", 1073741824.0},
                                     Unit{"TiB", 1099511627776.0}};
  if (const auto value = scaled(text, kUnits)) return *value;
  return invalid_argument(
      fmt::format("'{}' is no size: give bytes, or a number with kB, MB, GB, KiB, MiB, GiB", text));
}

std::optional<TimeFormat> time_format_from_name(std::string_view name) {
  if (name == "auto") return TimeFormat::automatic;
  if (name == "rfc3339") return TimeFormat::rfc3339;
  if (name == "seconds") return TimeFormat::seconds;
  if (name == "nanoseconds") return TimeFormat::nanoseconds;
  return std::nullopt;
}

std::string format_time(std::uint64_t time_ns, TimeFormat format) {
  const std::uint64_t seconds = time_ns / kSecond;
  const std::uint64_t nanos = time_ns % kSecond;
  switch (format) {
    case TimeFormat::nanoseconds:
      return fmt::format("{}", time_ns);
    case TimeFormat::seconds:
      return fmt::format("{}.{:09}", seconds, nanos);
    case TimeFormat::automatic:
      if (time_ns < kYear1980Ns) return fmt::format("{}.{:09}", seconds, nanos);
      break;
    case TimeFormat::rfc3339:
      break;
  }
  const std::chrono::sys_days day(std::chrono::days(static_cast<std::int64_t>(seconds / 86'400)));
  const std::chrono::year_month_day date(day);
  const std::uint64_t of_day = seconds % 86'400;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     of_day / 3600, of_day / 60 % 60, of_day % 60, nanos);
}

std::string format_duration(std::uint64_t duration_ns) {
  const std::uint64_t seconds = duration_ns / kSecond;
  std::string out;
  if (seconds >= 3600) out += fmt::format("{}h ", seconds / 3600);
  if (seconds >= 60) out += fmt::format("{}m ", seconds / 60 % 60);
  std::string fraction = fmt::format("{:09}", duration_ns % kSecond);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  out += fmt::format("{}{}{}s", seconds % 60, fraction.empty() ? "" : ".", fraction);
  return out;
}

}  // namespace ropewalk
