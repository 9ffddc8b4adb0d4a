#include "ropewalk/format/message/value.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

namespace ropewalk::message {
namespace {

template <typename T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

Value Value::Numbers::element(std::size_t i) const {
  const std::uint8_t* at = data.data() + i * dtype_size(dtype);
  switch (dtype) {
    case DType::boolean:
      return Value(*at != 0);
    case DType::int8:
      return Value(std::int64_t{load<std::int8_t>(at)});
    case DType::int16:
      return Value(std::int64_t{load<std::int16_t>(at)});
    case DType::int32:
      return Value(std::int64_t{load<std::int32_t>(at)});
    case DType::int64:
      return Value(load<std::int64_t>(at));
    case DType::uint8:
      return Value(std::uint64_t{*at});
    case DType::uint16:
      return Value(std::uint64_t{load<std::uint16_t>(at)});
    case DType::uint32:
      return Value(std::uint64_t{load<std::uint32_t>(at)});
    case DType::uint64:
      return Value(load<std::uint64_t>(at));
    case DType::float32:
      return Value(load<float>(at));
    case DType::float64:
      return Value(load<double>(at));
    case DType::float16:
    case DType::string:
    case DType::bytes:
      break;
  }
  return {};
}

double Value::Numbers::at(std::size_t i) const { return element(i).as_double().value_or(0.0); }

std::string_view Value::type_name() const {
  constexpr std::string_view kNames[] = {"nil",     "bool",   "integer", "integer", "number",
                                         "number",  "string", "binary",  "time",    "enumerator",
                                         "numbers", "array",  "object"};
  static_assert(std::size(kNames) == std::variant_size_v<Variant>);
  return kNames[value_.index()];
}

std::optional<bool> Value::as_bool() const {
  const bool* value = std::get_if<bool>(&value_);
  return value == nullptr ? std::nullopt : std::optional<bool>(*value);
}

std::optional<std::int64_t> Value::as_int64() const {
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return *whole;
  if (const auto* wide = std::get_if<std::uint64_t>(&value_)) {
    if (*wide <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(*wide);
    }
    return std::nullopt;
  }
  if (const auto* choice = std::get_if<Enumerator>(&value_)) return choice->number;
  const double* real = std::get_if<double>(&value_);
  const float* single = std::get_if<float>(&value_);
  if (real != nullptr || single != nullptr) {
    const double number = real != nullptr ? *real : double{*single};
    constexpr double kLimit = 9223372036854775808.0;
    if (number >= -kLimit && number < kLimit && std::trunc(number) == number) {
      return static_cast<std::int64_t>(number);
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Value::as_uint64() const {
  if (const auto* wide = std::get_if<std::uint64_t>(&value_)) return *wide;
  const auto whole = as_int64();
  if (whole.has_value() && *whole >= 0) return static_cast<std::uint64_t>(*whole);
  return std::nullopt;
}

std::optional<double> Value::as_double() const {
  if (const auto* real = std::get_if<double>(&value_)) return *real;
  if (const auto* single = std::get_if<float>(&value_)) return double{*single};
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*whole);
  if (const auto* wide = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*wide);
  if (const auto* flag = std::get_if<bool>(&value_)) return *flag ? 1.0 : 0.0;
  if (const auto* choice = std::get_if<Enumerator>(&value_)) {
    return static_cast<double>(choice->number);
  }
  return std::nullopt;
}

std::optional<std::string_view> Value::as_string() const {
  const auto* text = std::get_if<std::string_view>(&value_);
  return text == nullptr ? std::nullopt : std::optional<std::string_view>(*text);
}

std::optional<ByteSpan> Value::as_binary() const {
  if (const auto* bytes = std::get_if<ByteSpan>(&value_)) return *bytes;
  if (const Numbers* numbers = as_numbers()) {
    if (dtype_size(numbers->dtype) == 1) return numbers->data;
  }
  return std::nullopt;
}

std::size_t Value::size() const {
  if (const Numbers* numbers = as_numbers()) return numbers->size();
  if (const Array* array = as_array()) return array->size();
  if (const Object* object = as_object()) return object->size();
  return 0;
}

const Value* Value::find(std::string_view name) const {
  const Object* object = as_object();
  if (object == nullptr) return nullptr;
  for (const Member& member : *object) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

const Value* Value::find_path(std::string_view path) const {
  const Value* at = this;
  while (!path.empty() && at != nullptr) {
    if (path.front() == '[') {
      const std::size_t close = path.find(']');
      std::size_t index = 0;
      if (close == std::string_view::npos) return nullptr;
      const auto read = std::from_chars(path.data() + 1, path.data() + close, index);
      const Array* array = at->as_array();
      if (read.ec != std::errc() || read.ptr != path.data() + close || array == nullptr ||
          index >= array->size()) {
        return nullptr;
      }
      at = &(*array)[index];
      path.remove_prefix(close + 1);
      if (!path.empty() && path.front() == '.') path.remove_prefix(1);
      continue;
    }
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    at = at->find(path.substr(0, end));
    path.remove_prefix(end);
    if (!path.empty() && path.front() == '.') path.remove_prefix(1);
  }
  return at;
}

bool Value::operator==(const Value& other) const {
  return std::visit(
      []<typename A, typename B>(const A& a, const B& b) {
        if constexpr (!std::is_same_v<A, B>) {
          return false;
        } else if constexpr (std::is_same_v<A, ByteSpan>) {
          return std::ranges::equal(a, b);
        } else if constexpr (std::is_same_v<A, Numbers>) {
          return a.dtype == b.dtype && std::ranges::equal(a.data, b.data);
        } else if constexpr (std::is_same_v<A, float>) {
          return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
        } else if constexpr (std::is_same_v<A, double>) {
          return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
        } else {
          return a == b;
        }
      },
      value_, other.value_);
}

MutableByteSpan Arena::allocate(std::size_t size) {
  blocks_.push_back(std::make_unique<std::uint8_t[]>(size));
  return {blocks_.back().get(), size};
}

std::string_view Arena::keep(std::string_view text) {
  if (text.empty()) return {};
  const MutableByteSpan copy = allocate(text.size());
  std::memcpy(copy.data(), text.data(), text.size());
  return as_text(copy);
}

}  // namespace ropewalk::message
