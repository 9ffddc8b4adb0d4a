#include "ropewalk/format/message/msgpack.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "ropewalk/format/message/msgpack_numpy.h"

namespace ropewalk::msgpack {
namespace {

constexpr std::uint64_t kMaxValues = 1ULL << 22;
constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();

Status too_long(std::string_view what, std::uint64_t size) {
  return resource_exhausted(
      fmt::format("{} of length {}: MessagePack holds at most 4294967295", what, size));
}

template <typename T>
void put(Bytes& out, std::uint8_t tag, T value) {
  out.push_back(tag);
  ByteWriter(out).write_be(value);
}

class Decoder {
 public:
  Decoder(ByteSpan bytes, const Limits& limits) : cursor_(bytes), limits_(limits) {}

  Result<Value> value(std::uint32_t depth);
  std::size_t offset() const { return cursor_.offset(); }
  bool at_end() const { return cursor_.at_end(); }

 private:
  template <typename T>
  Result<Value> number() {
    ROPEWALK_ASSIGN_OR_RETURN(const T raw, cursor_.read_be<T>());
    if constexpr (std::is_signed_v<T>) return Value(Value::Variant(std::int64_t{raw}));
    if constexpr (sizeof(T) < 8) return Value(Value::Variant(static_cast<std::int64_t>(raw)));
    // What fits is signed, so that readers need to look at one type.
    const auto wide = static_cast<std::uint64_t>(raw);
    if (wide <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return Value(Value::Variant(static_cast<std::int64_t>(wide)));
    }
    return Value(Value::Variant(wide));
  }
  template <typename Length>
  Result<std::uint64_t> length() {
    ROPEWALK_ASSIGN_OR_RETURN(const Length size, cursor_.read_be<Length>());
    return std::uint64_t{size};
  }
  Result<Value> string(std::uint64_t size) {
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, cursor_.take(size));
    return Value(Value::Variant(as_text(bytes)));
  }
  Result<Value> binary(std::uint64_t size) {
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, cursor_.take(size));
    return Value(Value::Variant(bytes));
  }
  Result<Value> extension(std::uint64_t size) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto type, cursor_.read_le<std::int8_t>());
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, cursor_.take(size));
    return Value(Value::Variant(Value::Extension{.type = type, .data = bytes}));
  }
  Status enter(std::uint64_t values, std::uint32_t depth) {
    if (depth >= limits_.max_json_depth) {
      return resource_exhausted(
          fmt::format("byte {}: nested deeper than {} levels", offset(), limits_.max_json_depth));
    }
    // Each value takes at least one byte.
    if (values > cursor_.remaining()) {
      return data_loss(fmt::format("byte {}: {} values announced, {} bytes left", offset(), values,
                                   cursor_.remaining()));
    }
    if (values > kMaxValues - values_) {
      return resource_exhausted(fmt::format("byte {}: more than {} values", offset(), kMaxValues));
    }
    values_ += values;
    return ok_status();
  }
  Result<Value> array(std::uint64_t count, std::uint32_t depth) {
    ROPEWALK_RETURN_IF_ERROR(enter(count, depth));
    Value::Array out;
    for (std::uint64_t i = 0; i < count; ++i) {
      ROPEWALK_ASSIGN_OR_RETURN(Value element, value(depth + 1));
      out.push_back(std::move(element));
    }
    return Value(Value::Variant(std::move(out)));
  }
  Result<Value> map(std::uint64_t count, std::uint32_t depth) {
    ROPEWALK_RETURN_IF_ERROR(enter(2 * count, depth));
    Value::Map out;
    for (std::uint64_t i = 0; i < count; ++i) {
      ROPEWALK_ASSIGN_OR_RETURN(Value key, value(depth + 1));
      ROPEWALK_ASSIGN_OR_RETURN(Value element, value(depth + 1));
      out.emplace_back(std::move(key), std::move(element));
    }
    return Value(Value::Variant(std::move(out)));
  }

  ByteCursor cursor_;
  Limits limits_;
  std::uint64_t values_ = 0;
};

Result<Value> Decoder::value(std::uint32_t depth) {
  const std::size_t at = cursor_.offset();
  ROPEWALK_ASSIGN_OR_RETURN(const auto tag, cursor_.read_le<std::uint8_t>());
  if (tag <= 0x7F) return Value(Value::Variant(std::int64_t{tag}));
  if (tag <= 0x8F) return map(tag & 0x0F, depth);
  if (tag <= 0x9F) return array(tag & 0x0F, depth);
  if (tag <= 0xBF) return string(tag & 0x1F);
  if (tag >= 0xE0) return Value(Value::Variant(std::int64_t{static_cast<std::int8_t>(tag)}));
  std::uint64_t size = 0;
  switch (tag) {
    case 0xC0:
      return Value();
    case 0xC2:
    case 0xC3:
      return Value(Value::Variant(tag == 0xC3));
    case 0xC4:
    case 0xD9: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint8_t>());
      return tag == 0xC4 ? binary(size) : string(size);
    }
    case 0xC5:
    case 0xDA: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint16_t>());
      return tag == 0xC5 ? binary(size) : string(size);
    }
    case 0xC6:
    case 0xDB: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint32_t>());
      return tag == 0xC6 ? binary(size) : string(size);
    }
    case 0xC7: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint8_t>());
      return extension(size);
    }
    case 0xC8: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint16_t>());
      return extension(size);
    }
    case 0xC9: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint32_t>());
      return extension(size);
    }
    case 0xCA: {
      ROPEWALK_ASSIGN_OR_RETURN(const auto raw, cursor_.read_be<std::uint32_t>());
      return Value(Value::Variant(static_cast<double>(std::bit_cast<float>(raw))));
    }
    case 0xCB: {
      ROPEWALK_ASSIGN_OR_RETURN(const auto raw, cursor_.read_be<std::uint64_t>());
      return Value(Value::Variant(std::bit_cast<double>(raw)));
    }
    case 0xCC:
      return number<std::uint8_t>();
    case 0xCD:
      return number<std::uint16_t>();
    case 0xCE:
      return number<std::uint32_t>();
    case 0xCF:
      return number<std::uint64_t>();
    case 0xD0:
      return number<std::int8_t>();
    case 0xD1:
      return number<std::int16_t>();
    case 0xD2:
      return number<std::int32_t>();
    case 0xD3:
      return number<std::int64_t>();
    case 0xD4:
    case 0xD5:
    case 0xD6:
    case 0xD7:
    case 0xD8:
      return extension(std::uint64_t{1} << (tag - 0xD4));
    case 0xDC: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint16_t>());
      return array(size, depth);
    }
    case 0xDD: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint32_t>());
      return array(size, depth);
    }
    case 0xDE: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint16_t>());
      return map(size, depth);
    }
    case 0xDF: {
      ROPEWALK_ASSIGN_OR_RETURN(size, length<std::uint32_t>());
      return map(size, depth);
    }
    default:
      return data_loss(fmt::format("byte {}: tag {:#04x} is no MessagePack value", at, tag));
  }
}

template <typename T>
Json json_number(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::is_floating_point_v<T>) return Json(static_cast<double>(value));
  if constexpr (std::is_same_v<T, std::uint64_t>) return Json(value);
  return Json(static_cast<std::int64_t>(value));
}

Result<Json> json_element(const NdArray& array, std::size_t i) {
  if (!array.texts.empty()) return array.texts[i] ? Json(*array.texts[i]) : Json();
  const std::uint8_t* at = array.data.data() + i * dtype_size(array.dtype);
  switch (array.dtype) {
    case DType::boolean:
      return Json(*at != 0);
    case DType::int8:
      return json_number<std::int8_t>(at);
    case DType::int16:
      return json_number<std::int16_t>(at);
    case DType::int32:
      return json_number<std::int32_t>(at);
    case DType::int64:
      return json_number<std::int64_t>(at);
    case DType::uint8:
      return json_number<std::uint8_t>(at);
    case DType::uint16:
      return json_number<std::uint16_t>(at);
    case DType::uint32:
      return json_number<std::uint32_t>(at);
    case DType::uint64:
      return json_number<std::uint64_t>(at);
    case DType::float32:
      return json_number<float>(at);
    case DType::float64:
      return json_number<double>(at);
    case DType::float16:
    case DType::string:
    case DType::bytes:
      break;
  }
  return unimplemented(fmt::format("an array of {} has no JSON form", dtype_name(array.dtype)));
}

Result<Json> json_array(const NdArray& array, std::size_t axis, std::size_t& next) {
  if (axis == array.shape.size()) return json_element(array, next++);
  Json out = Json::array();
  for (std::int64_t i = 0; i < array.shape[axis]; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(Json element, json_array(array, axis + 1, next));
    out.push_back(std::move(element));
  }
  return out;
}

}  // namespace

void Writer::nil() { out_.push_back(0xC0); }
void Writer::boolean(bool value) { out_.push_back(value ? 0xC3 : 0xC2); }

void Writer::integer(std::int64_t value) {
  if (value >= 0) return unsigned_integer(static_cast<std::uint64_t>(value));
  if (value >= -32) {
    out_.push_back(static_cast<std::uint8_t>(value));
  } else if (value >= std::numeric_limits<std::int8_t>::min()) {
    put(out_, 0xD0, static_cast<std::int8_t>(value));
  } else if (value >= std::numeric_limits<std::int16_t>::min()) {
    put(out_, 0xD1, static_cast<std::int16_t>(value));
  } else if (value >= std::numeric_limits<std::int32_t>::min()) {
    put(out_, 0xD2, static_cast<std::int32_t>(value));
  } else {
    put(out_, 0xD3, value);
  }
}

void Writer::unsigned_integer(std::uint64_t value) {
  if (value <= 0x7F) {
    out_.push_back(static_cast<std::uint8_t>(value));
  } else if (value <= 0xFF) {
    put(out_, 0xCC, static_cast<std::uint8_t>(value));
  } else if (value <= 0xFFFF) {
    put(out_, 0xCD, static_cast<std::uint16_t>(value));
  } else if (value <= kMaxU32) {
    put(out_, 0xCE, static_cast<std::uint32_t>(value));
  } else {
    put(out_, 0xCF, value);
  }
}

void Writer::number(double value) { put(out_, 0xCB, std::bit_cast<std::uint64_t>(value)); }

Status Writer::string(std::string_view text) {
  if (text.size() <= 31) {
    out_.push_back(static_cast<std::uint8_t>(0xA0 | text.size()));
  } else if (text.size() <= 0xFF) {
    put(out_, 0xD9, static_cast<std::uint8_t>(text.size()));
  } else if (text.size() <= 0xFFFF) {
    put(out_, 0xDA, static_cast<std::uint16_t>(text.size()));
  } else if (text.size() <= kMaxU32) {
    put(out_, 0xDB, static_cast<std::uint32_t>(text.size()));
  } else {
    return too_long("text", text.size());
  }
  ByteWriter(out_).write(text);
  return ok_status();
}

Status Writer::binary_head(std::uint64_t size) {
  if (size <= 0xFF) {
    put(out_, 0xC4, static_cast<std::uint8_t>(size));
  } else if (size <= 0xFFFF) {
    put(out_, 0xC5, static_cast<std::uint16_t>(size));
  } else if (size <= kMaxU32) {
    put(out_, 0xC6, static_cast<std::uint32_t>(size));
  } else {
    return too_long("binary", size);
  }
  return ok_status();
}

Status Writer::binary(ByteSpan bytes) {
  ROPEWALK_RETURN_IF_ERROR(binary_head(bytes.size()));
  ByteWriter(out_).write(bytes);
  return ok_status();
}

Status Writer::array_head(std::uint64_t count) {
  if (count <= 15) {
    out_.push_back(static_cast<std::uint8_t>(0x90 | count));
  } else if (count <= 0xFFFF) {
    put(out_, 0xDC, static_cast<std::uint16_t>(count));
  } else if (count <= kMaxU32) {
    put(out_, 0xDD, static_cast<std::uint32_t>(count));
  } else {
    return too_long("array", count);
  }
  return ok_status();
}

Status Writer::map_head(std::uint64_t count) {
  if (count <= 15) {
    out_.push_back(static_cast<std::uint8_t>(0x80 | count));
  } else if (count <= 0xFFFF) {
    put(out_, 0xDE, static_cast<std::uint16_t>(count));
  } else if (count <= kMaxU32) {
    put(out_, 0xDF, static_cast<std::uint32_t>(count));
  } else {
    return too_long("map", count);
  }
  return ok_status();
}

Status Writer::json(const Json& value) {
  if (value.is_null()) {
    nil();
  } else if (const auto flag = value.as_bool()) {
    boolean(*flag);
  } else if (value.is_double()) {
    number(*value.as_double());
  } else if (value.is_integer()) {
    if (const auto whole = value.as_int64()) {
      integer(*whole);
    } else {
      // Above int64 only an unsigned number is left; its text is exact where a double is not.
      std::uint64_t wide = 0;
      for (const char digit : value.dump()) {
        wide = wide * 10 + static_cast<std::uint64_t>(digit - '0');
      }
      unsigned_integer(wide);
    }
  } else if (const std::string* text = value.as_string()) {
    return string(*text);
  } else if (const Json::Array* array = value.as_array()) {
    ROPEWALK_RETURN_IF_ERROR(array_head(array->size()));
    for (const Json& element : *array) {
      ROPEWALK_RETURN_IF_ERROR(json(element));
    }
  } else if (const Json::Object* object = value.as_object()) {
    ROPEWALK_RETURN_IF_ERROR(map_head(object->size()));
    for (const auto& [key, element] : *object) {
      ROPEWALK_RETURN_IF_ERROR(string(key));
      ROPEWALK_RETURN_IF_ERROR(json(element));
    }
  }
  return ok_status();
}

std::string_view Value::type_name() const {
  constexpr std::string_view kNames[] = {"nil",    "bool",   "integer", "integer", "number",
                                         "string", "binary", "array",   "map",     "extension"};
  return kNames[value_.index()];
}

std::optional<bool> Value::as_bool() const {
  const bool* value = std::get_if<bool>(&value_);
  return value == nullptr ? std::nullopt : std::optional<bool>(*value);
}

std::optional<std::int64_t> Value::as_int64() const {
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return *whole;
  if (const auto* real = std::get_if<double>(&value_)) {
    constexpr double kLimit = 9223372036854775808.0;
    if (*real >= -kLimit && *real < kLimit && std::trunc(*real) == *real) {
      return static_cast<std::int64_t>(*real);
    }
  }
  return std::nullopt;
}

std::optional<double> Value::as_double() const {
  if (const auto* real = std::get_if<double>(&value_)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*whole);
  if (const auto* wide = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*wide);
  return std::nullopt;
}

std::optional<std::string_view> Value::as_string() const {
  const auto* text = std::get_if<std::string_view>(&value_);
  return text == nullptr ? std::nullopt : std::optional<std::string_view>(*text);
}

std::optional<ByteSpan> Value::as_binary() const {
  const auto* bytes = std::get_if<ByteSpan>(&value_);
  return bytes == nullptr ? std::nullopt : std::optional<ByteSpan>(*bytes);
}

std::optional<std::string_view> Value::as_text() const {
  if (const auto text = as_string()) return text;
  if (const auto bytes = as_binary()) return ropewalk::as_text(*bytes);
  return std::nullopt;
}

const Value* Value::find(std::string_view key) const {
  const Map* map = as_map();
  if (map == nullptr) return nullptr;
  for (auto entry = map->rbegin(); entry != map->rend(); ++entry) {
    if (entry->first.as_text() == key) return &entry->second;
  }
  return nullptr;
}

Result<Value> decode(ByteSpan bytes, const Limits& limits, std::size_t* used) {
  Decoder decoder(bytes, limits);
  ROPEWALK_ASSIGN_OR_RETURN(Value out, decoder.value(0));
  if (used != nullptr) {
    *used = decoder.offset();
  } else if (!decoder.at_end()) {
    return data_loss(fmt::format("byte {}: {} bytes after the MessagePack value", decoder.offset(),
                                 bytes.size() - decoder.offset()));
  }
  return out;
}

Result<Json> to_json(const Value& value, const Limits& limits) {
  if (value.is_nil()) return Json();
  if (const auto flag = value.as_bool()) return Json(*flag);
  if (const auto* real = std::get_if<double>(&value.variant())) return Json(*real);
  if (const auto* wide = std::get_if<std::uint64_t>(&value.variant())) return Json(*wide);
  if (const auto whole = value.as_int64()) return Json(*whole);
  if (const auto text = value.as_string()) return Json(*text);
  if (const Value::Array* array = value.as_array()) {
    Json out = Json::array();
    for (const Value& element : *array) {
      ROPEWALK_ASSIGN_OR_RETURN(Json converted, to_json(element, limits));
      out.push_back(std::move(converted));
    }
    return out;
  }
  if (const Value::Map* map = value.as_map()) {
    if (const Value* scalar = as_scalar(value)) return to_json(*scalar, limits);
    ROPEWALK_ASSIGN_OR_RETURN(const auto array, as_ndarray(value, limits));
    if (array.has_value()) {
      std::size_t next = 0;
      return json_array(*array, 0, next);
    }
    Json::Object out;
    out.reserve(map->size());
    for (const auto& [key, element] : *map) {
      const auto name = key.as_text();
      if (!name.has_value()) {
        return data_loss(fmt::format("a map key of type {} has no JSON form", key.type_name()));
      }
      ROPEWALK_ASSIGN_OR_RETURN(Json converted, to_json(element, limits));
      out.emplace_back(std::string(*name), std::move(converted));
    }
    return Json(std::move(out));
  }
  return data_loss(fmt::format("a {} has no JSON form", value.type_name()));
}

}  // namespace ropewalk::msgpack
