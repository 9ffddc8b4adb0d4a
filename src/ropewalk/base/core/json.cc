#include "ropewalk/base/core/json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace ropewalk {
namespace {

void append_escaped(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
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
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
}

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::size_t at = out.size();
  fmt::format_to(std::back_inserter(out), "{}", value);
  if (out.find_first_of(".e", at) == std::string::npos) out += ".0";
}

struct Style {
  int indent;  // negative: one line
  std::string_view item_separator;
  std::string_view key_separator;
  bool sort_keys;
};

void append_newline(std::string& out, const Style& style, int depth) {
  if (style.indent < 0) return;
  out.push_back('\n');
  out.append(static_cast<std::size_t>(style.indent * depth), ' ');
}

void append_value(std::string& out, const Json& value, const Style& style, int depth) {
  if (const auto* array = value.as_array()) {
    out.push_back('[');
    bool first = true;
    for (const Json& item : *array) {
      if (!first) out += style.item_separator;
      first = false;
      append_newline(out, style, depth + 1);
      append_value(out, item, style, depth + 1);
    }
    if (!first) append_newline(out, style, depth);
    out.push_back(']');
  } else if (const auto* object = value.as_object()) {
    std::vector<const Json::Member*> members;
    members.reserve(object->size());
    for (const auto& member : *object) members.push_back(&member);
    if (style.sort_keys) {
      std::ranges::sort(members, {}, [](const Json::Member* m) { return m->first; });
    }
    out.push_back('{');
    bool first = true;
    for (const auto* member : members) {
      if (!first) out += style.item_separator;
      first = false;
      append_newline(out, style, depth + 1);
      append_escaped(out, member->first);
      out += style.key_separator;
      append_value(out, member->second, style, depth + 1);
    }
    if (!first) append_newline(out, style, depth);
    out.push_back('}');
  } else if (const auto* text = value.as_string()) {
    append_escaped(out, *text);
  } else if (value.is_double()) {
    append_double(out, *value.as_double());
  } else if (value.is_integer()) {
    const auto number = value.as_int64();
    if (number) {
      fmt::format_to(std::back_inserter(out), "{}", *number);
    } else {
      fmt::format_to(std::back_inserter(out), "{}", *value.as_uint64());
    }
  } else if (const auto flag = value.as_bool()) {
    out += *flag ? "true" : "false";
  } else {
    out += "null";
  }
}

}  // namespace

Json::Json(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    value_ = static_cast<std::int64_t>(value);
  } else {
    value_ = value;
  }
}

bool Json::is_integer() const {
  return std::holds_alternative<std::int64_t>(value_) ||
         std::holds_alternative<std::uint64_t>(value_);
}

std::string_view Json::type_name() const {
  if (is_null()) return "null";
  if (is_bool()) return "bool";
  if (is_integer()) return "integer";
  if (is_double()) return "number";
  if (is_string()) return "string";
  return is_array() ? "array" : "object";
}

std::optional<bool> Json::as_bool() const {
  const bool* value = std::get_if<bool>(&value_);
  return value ? std::optional<bool>(*value) : std::nullopt;
}

std::optional<std::int64_t> Json::as_int64() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<double>(&value_)) {
    if (std::nearbyint(*value) == *value && std::abs(*value) < 9.0e15) {
      return static_cast<std::int64_t>(*value);
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Json::as_uint64() const {
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return *value;
  const auto number = as_int64();
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::optional<double> Json::as_double() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

const Json* Json::find(std::string_view key) const {
  const auto* object = as_object();
  if (!object) return nullptr;
  for (const Member& member : *object) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Json* Json::find(std::string_view key) {
  return const_cast<Json*>(static_cast<const Json*>(this)->find(key));
}

std::optional<std::int64_t> Json::get_int64(std::string_view key) const {
  const Json* value = find(key);
  return value ? value->as_int64() : std::nullopt;
}
std::optional<double> Json::get_double(std::string_view key) const {
  const Json* value = find(key);
  return value ? value->as_double() : std::nullopt;
}
std::optional<bool> Json::get_bool(std::string_view key) const {
  const Json* value = find(key);
  return value ? value->as_bool() : std::nullopt;
}
std::optional<std::string> Json::get_string(std::string_view key) const {
  const Json* value = find(key);
  const std::string* text = value ? value->as_string() : nullptr;
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  if (Json* existing = find(key)) {
    *existing = std::move(value);
    return *existing;
  }
  auto& members = std::get<Object>(value_);
  members.emplace_back(std::string(key), std::move(value));
  return members.back().second;
}

bool Json::erase(std::string_view key) {
  auto* object = as_object();
  if (!object) return false;
  return std::erase_if(*object, [&](const Member& member) { return member.first == key; }) != 0;
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
}

std::size_t Json::size() const {
  if (const auto* array = as_array()) return array->size();
  if (const auto* object = as_object()) return object->size();
  return 0;
}

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

std::string Json::dump(int indent) const {
  std::string out;
  append_value(out, *this, {indent, ",", indent < 0 ? ":" : ": ", false}, 0);
  return out;
}

std::string Json::dump_spaced() const {
  std::string out;
  append_value(out, *this, {-1, ", ", ": ", false}, 0);
  return out;
}

std::string Json::dump_canonical() const {
  std::string out;
  append_value(out, *this, {-1, ",", ":", true}, 0);
  return out;
}

}  // namespace ropewalk
