// MessagePack payloads, seen through the common face.
#include <fmt/format.h>

#include "ropewalk/format/message/codec_internal.h"
#include "ropewalk/format/message/msgpack.h"
#include "ropewalk/format/message/msgpack_numpy.h"
#include "ropewalk/format/message/value_json.h"

namespace ropewalk::message {
namespace {

constexpr std::int8_t kTimestamp = -1;

std::optional<Value::Time> timestamp(const msgpack::Value::Extension& extension) {
  if (extension.type != kTimestamp) return std::nullopt;
  ByteCursor cursor(extension.data);
  if (extension.data.size() == 4) {
    return Value::Time{.sec = cursor.read_be<std::uint32_t>().value_or(0), .nsec = 0};
  }
  if (extension.data.size() == 8) {
    const std::uint64_t both = cursor.read_be<std::uint64_t>().value_or(0);
    return Value::Time{.sec = static_cast<std::int64_t>(both & ((1ULL << 34) - 1)),
                       .nsec = static_cast<std::int64_t>(both >> 34)};
  }
  if (extension.data.size() == 12) {
    const std::uint32_t nsec = cursor.read_be<std::uint32_t>().value_or(0);
    return Value::Time{.sec = cursor.read_be<std::int64_t>().value_or(0), .nsec = nsec};
  }
  return std::nullopt;
}

// `status` is set where a key has no text.
Value convert(const msgpack::Value& value, const Limits& limits, Arena& arena, Status& status);

// A NumPy array becomes numbers, nested by its shape.
Value convert_array(const msgpack::NdArray& array, std::size_t axis, std::size_t& next,
                    Arena& arena) {
  const bool last = axis + 1 >= array.shape.size();
  const auto count = array.shape.empty() ? 1 : static_cast<std::size_t>(array.shape[axis]);
  if (last && dtype_is_numeric(array.dtype) && array.texts.empty()) {
    const std::size_t size = dtype_size(array.dtype);
    const Value::Numbers row{.dtype = array.dtype,
                             .data = array.data.subspan(next * size, count * size)};
    next += count;
    return array.shape.empty() ? row.element(0) : Value(row);
  }
  Value::Array out;
  for (std::size_t i = 0; i < count; ++i) {
    if (!last) {
      out.push_back(convert_array(array, axis + 1, next, arena));
      continue;
    }
    const auto& text = array.texts[next++];
    out.push_back(text.has_value() ? Value(arena.keep(*text)) : Value());
  }
  if (array.shape.empty()) return std::move(out.front());
  return Value(std::move(out));
}

Value convert_map(const msgpack::Value& value, const msgpack::Value::Map& map, const Limits& limits,
                  Arena& arena, Status& status) {
  if (const msgpack::Value* scalar = msgpack::as_scalar(value)) {
    return convert(*scalar, limits, arena, status);
  }
  if (auto array = msgpack::as_ndarray(value, limits); array.ok() && array->has_value()) {
    const auto held = std::make_shared<msgpack::NdArray>(*std::move(*array));
    arena.keep(held);
    std::size_t next = 0;
    if (held->dtype != DType::float16) return convert_array(*held, 0, next, arena);
  }
  Value::Object out;
  out.reserve(map.size());
  for (const auto& [key, member] : map) {
    // Our values have texts for names: other keys become their own JSON text. The text of a text of
    // a text would double with each level, so that an array or a map is no key.
    auto name = key.as_text();
    if (!name.has_value()) {
      if (key.as_array() != nullptr || key.as_map() != nullptr) {
        status = data_loss(fmt::format("a map key of type {}", key.type_name()));
        return {};
      }
      name = arena.keep(to_json_text(convert(key, limits, arena, status)));
    }
    out.push_back({*name, convert(member, limits, arena, status)});
  }
  return Value(std::move(out));
}

Value convert(const msgpack::Value& value, const Limits& limits, Arena& arena, Status& status) {
  if (const msgpack::Value::Map* map = value.as_map()) {
    return convert_map(value, *map, limits, arena, status);
  }
  if (const msgpack::Value::Array* array = value.as_array()) {
    Value::Array out;
    out.reserve(array->size());
    for (const msgpack::Value& element : *array)
      out.push_back(convert(element, limits, arena, status));
    return Value(std::move(out));
  }
  if (value.is_nil()) return {};
  if (const auto flag = value.as_bool()) return Value(*flag);
  if (const auto* real = std::get_if<double>(&value.variant())) return Value(*real);
  if (const auto* wide = std::get_if<std::uint64_t>(&value.variant())) return Value(*wide);
  if (const auto* whole = std::get_if<std::int64_t>(&value.variant())) return Value(*whole);
  if (const auto text = value.as_string()) return Value(*text);
  if (const auto bytes = value.as_binary()) return Value(*bytes);
  const auto& extension = std::get<msgpack::Value::Extension>(value.variant());
  if (const auto time = timestamp(extension)) return Value(*time);
  return Value(Value::Object{{"type", Value(std::int64_t{extension.type})},
                             {"data", Value(extension.data)}});
}

Status write(const Value& value, msgpack::Writer& writer) {
  if (const auto* object = value.as_object()) {
    ROPEWALK_RETURN_IF_ERROR(writer.map_head(object->size()));
    for (const Value::Member& member : *object) {
      ROPEWALK_RETURN_IF_ERROR(writer.string(member.name));
      ROPEWALK_RETURN_IF_ERROR(write(member.value, writer));
    }
  } else if (const auto* array = value.as_array()) {
    ROPEWALK_RETURN_IF_ERROR(writer.array_head(array->size()));
    for (const Value& element : *array) {
      ROPEWALK_RETURN_IF_ERROR(write(element, writer));
    }
  } else if (const auto bytes = value.as_binary()) {
    return writer.binary(*bytes);
  } else if (const auto* numbers = value.as_numbers()) {
    ROPEWALK_RETURN_IF_ERROR(writer.array_head(numbers->size()));
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      ROPEWALK_RETURN_IF_ERROR(write(numbers->element(i), writer));
    }
  } else if (const auto text = value.as_string()) {
    return writer.string(*text);
  } else if (const auto* time = std::get_if<Value::Time>(&value.variant())) {
    ROPEWALK_RETURN_IF_ERROR(writer.map_head(2));
    ROPEWALK_RETURN_IF_ERROR(writer.string("sec"));
    writer.integer(time->sec);
    ROPEWALK_RETURN_IF_ERROR(writer.string("nsec"));
    writer.integer(time->nsec);
  } else if (const auto flag = value.as_bool()) {
    writer.boolean(*flag);
  } else if (const auto* wide = std::get_if<std::uint64_t>(&value.variant())) {
    writer.unsigned_integer(*wide);
  } else if (const auto* whole = std::get_if<std::int64_t>(&value.variant())) {
    writer.integer(*whole);
  } else if (const auto* choice = std::get_if<Value::Enumerator>(&value.variant())) {
    writer.integer(choice->number);
  } else if (const auto real = value.as_double()) {
    writer.number(*real);
  } else {
    writer.nil();
  }
  return ok_status();
}

}  // namespace

Status MsgpackCodec::decode(ByteSpan payload, const Limits& limits, Message& out) const {
  ROPEWALK_ASSIGN_OR_RETURN(const msgpack::Value value, msgpack::decode(payload, limits));
  Status status;
  out.root() = convert(value, limits, out.arena(), status);
  return status;
}

Result<Bytes> MsgpackCodec::encode(const Value& value) const {
  Bytes out;
  msgpack::Writer writer(out);
  ROPEWALK_RETURN_IF_ERROR(write(value, writer));
  return out;
}

}  // namespace ropewalk::message
