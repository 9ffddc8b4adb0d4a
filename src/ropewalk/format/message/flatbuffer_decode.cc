// FlatBuffers payloads to values.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/message/flatbuffer_internal.h"

namespace ropewalk::message {
namespace {

using Base = FlatbufferCodec::Base;
using Object = FlatbufferCodec::Object;
using Field = FlatbufferCodec::Field;

constexpr std::uint64_t kMaxValues = 1ULL << 24;
constexpr std::uint64_t kValuesPerByte = 64;

std::optional<DType> dtype_of(Base base) {
  switch (base) {
    case Base::boolean:
      return DType::boolean;
    case Base::int8:
      return DType::int8;
    case Base::utype:
    case Base::uint8:
      return DType::uint8;
    case Base::int16:
      return DType::int16;
    case Base::uint16:
      return DType::uint16;
    case Base::int32:
      return DType::int32;
    case Base::uint32:
      return DType::uint32;
    case Base::int64:
      return DType::int64;
    case Base::uint64:
      return DType::uint64;
    case Base::float32:
      return DType::float32;
    case Base::float64:
      return DType::float64;
    case Base::none:
    case Base::string:
    case Base::vector:
    case Base::object:
    case Base::choice:
    case Base::array:
      break;
  }
  return std::nullopt;
}

class Decoder {
 public:
  Decoder(const FlatbufferCodec& codec, ByteSpan payload, const Limits& limits)
      : objects_(codec.objects()),
        enumerations_(codec.enumerations()),
        bytes_(payload),
        limits_(limits),
        budget_(std::min<std::uint64_t>(kMaxValues, 65536 + kValuesPerByte * payload.size())) {}

  Status run(std::size_t root, Value& out) {
    Status status = [&]() -> Status {
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t at, follow(0));
      return table(objects_[root], at, 0, out);
    }();
    std::string path;
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
      if (!path.empty() && step->front() != '[') path += '.';
      path += *step;
    }
    return path.empty() ? status : status.with_context(path);
  }

 private:
  Status step(std::string_view name, Status status) {
    if (!status.ok()) path_.emplace_back(name);
    return status;
  }
  Status check(std::uint64_t at, std::uint64_t size) const {
    if (at <= bytes_.size() && size <= bytes_.size() - at) return ok_status();
    return data_loss(
        fmt::format("byte {}: {} bytes expected, the payload has {}", at, size, bytes_.size()));
  }
  template <typename T>
  Result<T> read(std::uint64_t at) const {
    ROPEWALK_RETURN_IF_ERROR(check(at, sizeof(T)));
    T out;
    std::memcpy(&out, bytes_.data() + at, sizeof(T));
    return out;
  }
  // Where the offset at `at` leads to.
  Result<std::uint64_t> follow(std::uint64_t at) const {
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t offset, read<std::uint32_t>(at));
    const std::uint64_t to = at + offset;
    ROPEWALK_RETURN_IF_ERROR(check(to, 4));
    return to;
  }
  Status spend(std::uint64_t values, std::uint64_t at) {
    if (values > budget_) {
      return resource_exhausted(fmt::format(
          "byte {}: more values than a payload of {} bytes may hold", at, bytes_.size()));
    }
    budget_ -= values;
    return ok_status();
  }
  Status enter(std::uint32_t depth, std::uint64_t at) const {
    if (depth < limits_.max_json_depth) return ok_status();
    return resource_exhausted(
        fmt::format("byte {}: nested deeper than {} levels", at, limits_.max_json_depth));
  }

  struct Table {
    std::uint64_t at = 0;
    std::uint64_t vtable = 0;
    std::uint16_t vtable_bytes = 0;
    std::uint16_t table_bytes = 0;
  };
  Result<Table> open(std::uint64_t at) const {
    Table out{.at = at};
    ROPEWALK_ASSIGN_OR_RETURN(const std::int32_t back, read<std::int32_t>(at));
    const std::int64_t vtable = static_cast<std::int64_t>(at) - back;
    if (vtable < 0) {
      return data_loss(fmt::format("byte {}: a vtable at byte {}", at, vtable));
    }
    out.vtable = static_cast<std::uint64_t>(vtable);
    ROPEWALK_ASSIGN_OR_RETURN(out.vtable_bytes, read<std::uint16_t>(out.vtable));
    ROPEWALK_ASSIGN_OR_RETURN(out.table_bytes, read<std::uint16_t>(out.vtable + 2));
    if (out.vtable_bytes < 4 || out.vtable_bytes % 2 != 0 || out.table_bytes < 4) {
      return data_loss(fmt::format("byte {}: a vtable of {} bytes for a table of {}", out.vtable,
                                   out.vtable_bytes, out.table_bytes));
    }
    ROPEWALK_RETURN_IF_ERROR(check(out.vtable, out.vtable_bytes));
    ROPEWALK_RETURN_IF_ERROR(check(at, out.table_bytes));
    return out;
  }
  // Where a field of `size` bytes is, or 0 when it is absent.
  Result<std::uint64_t> place(const Table& table, std::uint16_t offset, std::uint64_t size) const {
    if (offset + 2U > table.vtable_bytes) return std::uint64_t{0};
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint16_t within,
                              read<std::uint16_t>(table.vtable + offset));
    if (within == 0) return std::uint64_t{0};
    if (within + size > table.table_bytes) {
      return data_loss(fmt::format("byte {}: a field at {} of a table of {} bytes", table.at,
                                   within, table.table_bytes));
    }
    return table.at + within;
  }

  Value enumerator(const Field& field, std::int64_t number) const {
    const auto* known = enumerations_[static_cast<std::size_t>(field.index)].find(number);
    return Value(Value::Enumerator{
        .number = number,
        .name = known == nullptr ? std::string_view() : std::string_view(known->name)});
  }

  Result<Value> scalar(const Field& field, Base base, std::uint64_t at) const {
    const auto dtype = dtype_of(base);
    if (!dtype.has_value()) return internal("no scalar");
    const std::size_t size = dtype_size(*dtype);
    ROPEWALK_RETURN_IF_ERROR(check(at, size));
    const Value value =
        Value::Numbers{.dtype = *dtype, .data = bytes_.subspan(at, size)}.element(0);
    if (field.index < 0) return value;
    const auto wide = value.as_uint64();
    return enumerator(
        field, wide.has_value() ? static_cast<std::int64_t>(*wide) : value.as_int64().value_or(0));
  }

  Value default_of(const Field& field) const {
    switch (field.base) {
      case Base::boolean:
        return Value(field.integer != 0);
      case Base::float32:
        return Value(static_cast<float>(field.real));
      case Base::float64:
        return Value(field.real);
      default:
        break;
    }
    if (field.index >= 0) return enumerator(field, field.integer);
    if (field.base == Base::uint8 || field.base == Base::uint16 || field.base == Base::uint32 ||
        field.base == Base::uint64 || field.base == Base::utype) {
      return Value(static_cast<std::uint64_t>(field.integer));
    }
    return Value(field.integer);
  }

  Status table(const Object& object, std::uint64_t at, std::uint32_t depth, Value& out) {
    ROPEWALK_RETURN_IF_ERROR(enter(depth, at));
    ROPEWALK_ASSIGN_OR_RETURN(const Table table, open(at));
    ROPEWALK_RETURN_IF_ERROR(spend(object.fields.size(), at));
    Value::Object members;
    members.reserve(object.fields.size());
    for (const Field& field : object.fields) {
      Value value;
      ROPEWALK_RETURN_IF_ERROR(step(field.name, member(field, table, depth, value)));
      if (!value.is_nil()) members.push_back({field.name, std::move(value)});
    }
    out.variant() = std::move(members);
    return ok_status();
  }

  // A field of a table; `out` stays nil for an absent one without a default.
  Status member(const Field& field, const Table& table, std::uint32_t depth, Value& out) {
    const bool object = field.base == Base::object;
    const Object* type = object ? &objects_[static_cast<std::size_t>(field.index)] : nullptr;
    const std::uint64_t size =
        object ? (type->is_struct ? type->bytes : 4) : flatbuffer_size(field.base);
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t at, place(table, field.offset, size));
    if (at == 0) {
      if (field.base == Base::vector) {
        const auto dtype = dtype_of(field.element);
        out = dtype.has_value() && field.index < 0
                  ? Value(Value::Numbers{.dtype = *dtype, .data = {}})
                  : Value(Value::Array());
      } else if (dtype_of(field.base).has_value() && !field.optional) {
        out = default_of(field);
      }
      return ok_status();
    }
    if (object && type->is_struct) return structure(*type, at, depth + 1, out);
    if (dtype_of(field.base).has_value()) {
      ROPEWALK_ASSIGN_OR_RETURN(out, scalar(field, field.base, at));
      return ok_status();
    }
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t to, follow(at));
    if (object) return this->table(*type, to, depth + 1, out);
    if (field.base == Base::string) return string(to, out);
    if (field.base == Base::vector) return vector(field, table, to, depth, out);
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t kind, place(table, field.type_offset, 1));
    if (kind == 0) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint8_t number, read<std::uint8_t>(kind));
    return choice(field, number, to, depth, out);
  }

  Status choice(const Field& field, std::uint8_t number, std::uint64_t at, std::uint32_t depth,
                Value& out) {
    if (number == 0) return ok_status();
    const auto* chosen = enumerations_[static_cast<std::size_t>(field.index)].find(number);
    if (chosen == nullptr) return ok_status();  // a newer writer's type
    if (chosen->base == Base::string) return string(at, out);
    if (chosen->base != Base::object) return ok_status();
    const Object& type = objects_[static_cast<std::size_t>(chosen->index)];
    return type.is_struct ? structure(type, at, depth + 1, out) : table(type, at, depth + 1, out);
  }

  Status string(std::uint64_t at, Value& out) const {
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t size, read<std::uint32_t>(at));
    ROPEWALK_RETURN_IF_ERROR(check(at + 4, size));
    out = Value(as_text(bytes_.subspan(at + 4, size)));
    return ok_status();
  }

  // Elements of a size that is known, one after the other.
  Status row(const Field& field, std::uint64_t at, std::uint64_t count, std::uint32_t depth,
             Value& out) {
    if (const auto dtype = dtype_of(field.element)) {
      const std::uint64_t size = count * dtype_size(*dtype);
      ROPEWALK_RETURN_IF_ERROR(check(at, size));
      if (field.index < 0) {
        out = Value(Value::Numbers{.dtype = *dtype, .data = bytes_.subspan(at, size)});
        return ok_status();
      }
      ROPEWALK_RETURN_IF_ERROR(spend(count, at));
      Value::Array array;
      for (std::uint64_t i = 0; i < count; ++i) {
        ROPEWALK_ASSIGN_OR_RETURN(Value value,
                                  scalar(field, field.element, at + i * dtype_size(*dtype)));
        array.push_back(std::move(value));
      }
      out = Value(std::move(array));
      return ok_status();
    }
    const Object& type = objects_[static_cast<std::size_t>(field.index)];
    ROPEWALK_RETURN_IF_ERROR(check(at, count * type.bytes));
    Value::Array array;
    for (std::uint64_t i = 0; i < count; ++i) {
      ROPEWALK_RETURN_IF_ERROR(spend(1, at));
      ROPEWALK_RETURN_IF_ERROR(
          step(fmt::format("[{}]", i),
               structure(type, at + i * type.bytes, depth + 1, array.emplace_back())));
    }
    out = Value(std::move(array));
    return ok_status();
  }

  Status vector(const Field& field, const Table& table, std::uint64_t at, std::uint32_t depth,
                Value& out) {
    ROPEWALK_RETURN_IF_ERROR(enter(depth, at));
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t count, read<std::uint32_t>(at));
    const std::uint64_t begin = at + 4;
    const bool structs =
        field.element == Base::object && objects_[static_cast<std::size_t>(field.index)].is_struct;
    if (structs || dtype_of(field.element).has_value()) {
      return row(field, begin, count, depth, out);
    }
    ROPEWALK_RETURN_IF_ERROR(check(begin, std::uint64_t{count} * 4));
    std::uint64_t kinds = 0;
    if (field.element == Base::choice) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t place_of, place(table, field.type_offset, 4));
      if (place_of == 0) return ok_status();
      ROPEWALK_ASSIGN_OR_RETURN(kinds, follow(place_of));
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t kind_count, read<std::uint32_t>(kinds));
      if (kind_count != count) {
        return data_loss(fmt::format("byte {}: {} types for {} values", kinds, kind_count, count));
      }
      ROPEWALK_RETURN_IF_ERROR(check(kinds + 4, count));
    }
    Value::Array array;
    for (std::uint32_t i = 0; i < count; ++i) {
      ROPEWALK_RETURN_IF_ERROR(spend(1, begin));
      Value& element = array.emplace_back();
      Status status = [&]() -> Status {
        ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t to, follow(begin + std::uint64_t{i} * 4));
        if (field.element == Base::string) return string(to, element);
        if (field.element == Base::choice) {
          ROPEWALK_ASSIGN_OR_RETURN(const std::uint8_t kind, read<std::uint8_t>(kinds + 4 + i));
          return choice(field, kind, to, depth + 1, element);
        }
        return this->table(objects_[static_cast<std::size_t>(field.index)], to, depth + 1, element);
      }();
      ROPEWALK_RETURN_IF_ERROR(step(fmt::format("[{}]", i), std::move(status)));
    }
    out = Value(std::move(array));
    return ok_status();
  }

  Status structure(const Object& object, std::uint64_t at, std::uint32_t depth, Value& out) {
    ROPEWALK_RETURN_IF_ERROR(enter(depth, at));
    ROPEWALK_RETURN_IF_ERROR(check(at, object.bytes));
    ROPEWALK_RETURN_IF_ERROR(spend(object.fields.size(), at));
    Value::Object members;
    members.reserve(object.fields.size());
    for (const Field& field : object.fields) {
      Value& value = members.emplace_back(Value::Member{field.name, Value()}).value;
      const std::uint64_t place_of = at + field.offset;
      if (field.base == Base::object) {
        ROPEWALK_RETURN_IF_ERROR(
            step(field.name, structure(objects_[static_cast<std::size_t>(field.index)], place_of,
                                       depth + 1, value)));
      } else if (field.base == Base::array) {
        ROPEWALK_RETURN_IF_ERROR(
            step(field.name, row(field, place_of, field.length, depth, value)));
      } else {
        ROPEWALK_ASSIGN_OR_RETURN(value, scalar(field, field.base, place_of));
      }
    }
    out.variant() = std::move(members);
    return ok_status();
  }

  const std::vector<Object>& objects_;
  const std::vector<FlatbufferCodec::Enumeration>& enumerations_;
  ByteSpan bytes_;
  const Limits& limits_;
  std::uint64_t budget_;
  std::vector<std::string> path_;  // innermost first
};

}  // namespace

Status FlatbufferCodec::decode(ByteSpan payload, const Limits& limits, Message& out) const {
  return Decoder(*this, payload, limits).run(root_, out.root());
}

}  // namespace ropewalk::message
