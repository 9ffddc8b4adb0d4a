#include "ropewalk/format/message/value_json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

namespace ropewalk::message {
namespace {

constexpr std::int64_t kExactDouble = std::int64_t{1} << 53;
constexpr std::size_t kElidedNumbers = 64;
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The length of the well-formed UTF-8 sequence at `at`, or 0.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(at);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  std::uint32_t low = 0x80;
  std::uint32_t high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (at + length > text.size()) return 0;
  if (byte(at + 1) < low || byte(at + 1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

void append_text(std::string_view text, std::string& out) {
  out += '"';
  std::size_t plain = 0;  // the start of what is copied as it is
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<std::uint8_t>(text[i]);
    if (c >= 0x20 && c < 0x7F && c != '"' && c != '\\') {
      ++i;
      continue;
    }
    const std::size_t length = c < 0x80 ? 0 : utf8_length(text, i);
    if (length > 0) {
      i += length;
      continue;
    }
    out += text.substr(plain, i - plain);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c < 0x80) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
        } else {
          out += "\xEF\xBF\xBD";
        }
    }
    plain = ++i;
  }
  out += text.substr(plain);
  out += '"';
}

template <typename T>
void append_float(T number, std::string& out) {
  if (std::isnan(number)) {
    out += "\"NaN\"";
  } else if (std::isinf(number)) {
    out += number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    std::array<char, 40> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    const std::string_view written(text.data(), static_cast<std::size_t>(end - text.data()));
    out += written;
    if (written.find_first_of(".e") == std::string_view::npos) out += ".0";
  }
}

template <typename T>
void append_integer(T number, const JsonOptions& options, std::string& out) {
  bool wide = false;
  if constexpr (std::is_signed_v<T>) {
    wide = number > kExactDouble || number < -kExactDouble;
  } else {
    wide = number > static_cast<T>(kExactDouble);
  }
  std::array<char, 24> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  const std::string_view written(text.data(), static_cast<std::size_t>(end - text.data()));
  const bool quoted = wide && options.wide_integers_as_text;
  if (quoted) out += '"';
  out += written;
  if (quoted) out += '"';
}

void append_bytes(ByteSpan bytes, const JsonOptions& options, std::string& out) {
  switch (options.bytes) {
    case BytesForm::base64:
      out += '"';
      out += to_base64(bytes);
      out += '"';
      return;
    case BytesForm::numbers: {
      out += '[';
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i > 0) out += ',';
        append_integer(std::uint64_t{bytes[i]}, options, out);
      }
      out += ']';
      return;
    }
    case BytesForm::elided:
      fmt::format_to(std::back_inserter(out), "\"<{} bytes>\"", bytes.size());
      return;
  }
}

void append_numbers(const Value::Numbers& numbers, const JsonOptions& options, std::string& out) {
  if (numbers.dtype == DType::uint8) return append_bytes(numbers.data, options, out);
  const std::size_t count = numbers.size();
  if (options.bytes == BytesForm::elided && count > kElidedNumbers) {
    fmt::format_to(std::back_inserter(out), "\"<{} {}>\"", count, dtype_name(numbers.dtype));
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    append_json(numbers.element(i), options, out);
  }
  out += ']';
}

}  // namespace

void append_json(const Value& value, const JsonOptions& options, std::string& out) {
  std::visit(
      [&]<typename T>(const T& held) {
        if constexpr (std::is_same_v<T, std::monostate>) {
          out += "null";
        } else if constexpr (std::is_same_v<T, bool>) {
          out += held ? "true" : "false";
        } else if constexpr (std::is_integral_v<T>) {
          append_integer(held, options, out);
        } else if constexpr (std::is_floating_point_v<T>) {
          append_float(held, out);
        } else if constexpr (std::is_same_v<T, std::string_view>) {
          append_text(held, out);
        } else if constexpr (std::is_same_v<T, ByteSpan>) {
          append_bytes(held, options, out);
        } else if constexpr (std::is_same_v<T, Value::Time>) {
          out += "{\"sec\":";
          append_integer(held.sec, options, out);
          out += ",\"nsec\":";
          append_integer(held.nsec, options, out);
          out += '}';
        } else if constexpr (std::is_same_v<T, Value::Enumerator>) {
          if (options.enumerators_as_names && !held.name.empty()) {
            append_text(held.name, out);
          } else {
            append_integer(held.number, options, out);
          }
        } else if constexpr (std::is_same_v<T, Value::Numbers>) {
          append_numbers(held, options, out);
        } else if constexpr (std::is_same_v<T, Value::Array>) {
          out += '[';
          for (std::size_t i = 0; i < held.size(); ++i) {
            if (i > 0) out += ',';
            append_json(held[i], options, out);
          }
          out += ']';
        } else {
          out += '{';
          for (std::size_t i = 0; i < held.size(); ++i) {
            if (i > 0) out += ',';
            append_text(held[i].name, out);
            out += ':';
            append_json(held[i].value, options, out);
          }
          out += '}';
        }
      },
      value.variant());
}

std::string to_json_text(const Value& value, const JsonOptions& options) {
  std::string out;
  append_json(value, options, out);
  return out;
}

Value value_of_json(const Json& json) {
  if (json.is_null()) return {};
  if (const auto flag = json.as_bool()) return Value(*flag);
  if (json.is_double()) return Value(*json.as_double());
  if (json.is_integer()) {
    if (const auto whole = json.as_int64()) return Value(*whole);
    return Value(*json.as_uint64());
  }
  if (const std::string* text = json.as_string()) return Value(std::string_view(*text));
  if (const Json::Array* array = json.as_array()) {
    Value::Array out;
    out.reserve(array->size());
    for (const Json& element : *array) out.push_back(value_of_json(element));
    return Value(std::move(out));
  }
  Value::Object out;
  if (const Json::Object* object = json.as_object()) {
    out.reserve(object->size());
    for (const auto& [name, member] : *object) out.push_back({name, value_of_json(member)});
  }
  return Value(std::move(out));
}

std::string to_base64(ByteSpan bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const std::uint32_t group = static_cast<std::uint32_t>(bytes[i] << 16) |
                                static_cast<std::uint32_t>(bytes[i + 1] << 8) | bytes[i + 2];
    out += kAlphabet[group >> 18];
    out += kAlphabet[group >> 12 & 63];
    out += kAlphabet[group >> 6 & 63];
    out += kAlphabet[group & 63];
  }
  if (i + 1 == bytes.size()) {
    out += kAlphabet[bytes[i] >> 2];
    out += kAlphabet[(bytes[i] & 3U) << 4];
    out += "==";
  } else if (i + 2 == bytes.size()) {
    out += kAlphabet[bytes[i] >> 2];
    out += kAlphabet[(bytes[i] & 3U) << 4 | bytes[i + 1] >> 4];
    out += kAlphabet[(bytes[i + 1] & 15U) << 2];
    out += '=';
  }
  return out;
}

std::optional<Bytes> from_base64(std::string_view text) {
  static constexpr auto kTable = [] {
    std::array<std::int8_t, 256> table{};
    table.fill(-1);
    for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
      table[static_cast<std::uint8_t>(kAlphabet[i])] = static_cast<std::int8_t>(i);
    }
    table['-'] = 62;
    table['_'] = 63;
    return table;
  }();
  for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  Bytes out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const std::int8_t digit = kTable[static_cast<std::uint8_t>(c)];
    if (digit < 0) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out.push_back(static_cast<std::uint8_t>(group >> bits));
    }
  }
  return out;
}

}  // namespace ropewalk::message
