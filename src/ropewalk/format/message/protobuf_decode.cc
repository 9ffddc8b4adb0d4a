// Protobuf payloads to values.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "ropewalk/format/message/protobuf_internal.h"

namespace ropewalk::message {
namespace {

namespace pb = google::protobuf;

constexpr std::uint64_t kMaxValues = 1ULL << 24;
constexpr std::uint64_t kValuesPerByte = 64;

enum class Wire : std::uint8_t {
  varint = 0,
  fixed64 = 1,
  bytes = 2,
  group = 3,
  end = 4,
  fixed32 = 5
};

std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

Wire wire_of(const pb::FieldDescriptor& field) {
  switch (field.type()) {
    case pb::FieldDescriptor::TYPE_DOUBLE:
    case pb::FieldDescriptor::TYPE_FIXED64:
    case pb::FieldDescriptor::TYPE_SFIXED64:
      return Wire::fixed64;
    case pb::FieldDescriptor::TYPE_FLOAT:
    case pb::FieldDescriptor::TYPE_FIXED32:
    case pb::FieldDescriptor::TYPE_SFIXED32:
      return Wire::fixed32;
    case pb::FieldDescriptor::TYPE_STRING:
    case pb::FieldDescriptor::TYPE_BYTES:
    case pb::FieldDescriptor::TYPE_MESSAGE:
      return Wire::bytes;
    case pb::FieldDescriptor::TYPE_GROUP:
      return Wire::group;
    default:
      return Wire::varint;
  }
}

// A scalar from its wire form.
Value scalar(const pb::FieldDescriptor& field, std::uint64_t raw) {
  const auto low = static_cast<std::uint32_t>(raw);
  switch (field.type()) {
    case pb::FieldDescriptor::TYPE_DOUBLE:
      return Value(std::bit_cast<double>(raw));
    case pb::FieldDescriptor::TYPE_FLOAT:
      return Value(std::bit_cast<float>(low));
    case pb::FieldDescriptor::TYPE_INT64:
    case pb::FieldDescriptor::TYPE_SFIXED64:
      return Value(static_cast<std::int64_t>(raw));
    case pb::FieldDescriptor::TYPE_INT32:
    case pb::FieldDescriptor::TYPE_SFIXED32:
      return Value(std::int64_t{static_cast<std::int32_t>(low)});
    case pb::FieldDescriptor::TYPE_UINT32:
    case pb::FieldDescriptor::TYPE_FIXED32:
      return Value(std::uint64_t{low});
    case pb::FieldDescriptor::TYPE_SINT32:
      return Value(std::int64_t{static_cast<std::int32_t>(unzigzag(low))});
    case pb::FieldDescriptor::TYPE_SINT64:
      return Value(unzigzag(raw));
    case pb::FieldDescriptor::TYPE_BOOL:
      return Value(raw != 0);
    case pb::FieldDescriptor::TYPE_ENUM: {
      const auto number = static_cast<std::int32_t>(low);
      const auto* known = field.enum_type()->FindValueByNumber(number);
      return Value(Value::Enumerator{
          .number = number,
          .name = known == nullptr ? std::string_view() : std::string_view(known->name())});
    }
    default:
      return Value(raw);
  }
}

std::optional<DType> row_dtype(const pb::FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return DType::int32;
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return DType::int64;
    case pb::FieldDescriptor::CPPTYPE_UINT32:
      return DType::uint32;
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return DType::uint64;
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return DType::float64;
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return DType::float32;
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return DType::boolean;
    default:
      return std::nullopt;
  }
}

// The value of a field that the payload does not have.
Value default_of(const pb::FieldDescriptor& field) {
  if (field.is_map()) return Value(Value::Object());
  if (field.is_repeated()) {
    const auto dtype = row_dtype(field);
    return dtype.has_value() ? Value(Value::Numbers{.dtype = *dtype, .data = {}})
                             : Value(Value::Array());
  }
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return field.type() == pb::FieldDescriptor::TYPE_BYTES
                 ? Value(ByteSpan(as_bytes(field.default_value_string())))
                 : Value(std::string_view(field.default_value_string()));
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return Value(field.default_value_double());
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return Value(field.default_value_float());
    case pb::FieldDescriptor::CPPTYPE_ENUM:
      return Value(Value::Enumerator{.number = field.default_value_enum()->number(),
                                     .name = field.default_value_enum()->name()});
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return Value(field.default_value_bool());
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return Value(std::int64_t{field.default_value_int32()});
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return Value(std::int64_t{field.default_value_int64()});
    case pb::FieldDescriptor::CPPTYPE_UINT32:
      return Value(std::uint64_t{field.default_value_uint32()});
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return Value(std::uint64_t{field.default_value_uint64()});
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return {};
}

class Decoder {
 public:
  Decoder(ByteSpan payload, Arena& arena)
      : arena_(arena),
        begin_(payload.data()),
        end_(payload.data() + payload.size()),
        budget_(std::min<std::uint64_t>(kMaxValues, 65536 + kValuesPerByte * payload.size())) {}

  Status run(const pb::Descriptor& type, ByteSpan payload, Value& out) {
    Status status = message(type, payload, 0, out);
    std::string path;
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
      if (!path.empty() && step->front() != '[') path += '.';
      path += *step;
    }
    return path.empty() ? status : status.with_context(path);
  }

 private:
  // What the payload has of one field.
  struct Found {
    const pb::FieldDescriptor* field = nullptr;
    std::uint64_t raw = 0;        // the last scalar
    std::vector<ByteSpan> parts;  // of texts, messages, and packed numbers
    Bytes row;                    // numbers of a repeated field
    std::vector<Value> choices;   // of a repeated enumeration
    bool present = false;
  };
  struct Unknown {
    std::uint32_t number = 0;
    Value value;
  };

  // The place of a byte in the payload; parts that were put together have none.
  std::string place(const std::uint8_t* at) const {
    const std::less_equal<> before;
    if (before(begin_, at) && before(at, end_)) return fmt::format("byte {}", at - begin_);
    return "a message in several parts";
  }
  Status cut(const std::uint8_t* at, std::string_view what) const {
    return data_loss(fmt::format("{}: {}", place(at), what));
  }
  Status step(std::string_view name, Status status) {
    if (!status.ok()) path_.emplace_back(name);
    return status;
  }

  Result<std::uint64_t> varint(ByteSpan& in) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 10; ++i) {
      if (i == in.size()) return cut(in.data(), "a varint is cut short");
      value |= (in[i] & 0x7FULL) << (7 * i);
      if ((in[i] & 0x80) == 0) {
        in = in.subspan(i + 1);
        return value;
      }
    }
    return cut(in.data(), "a varint of more than 10 bytes");
  }
  Result<std::uint64_t> fixed(ByteSpan& in, std::size_t size) const {
    if (in.size() < size) {
      return cut(in.data(), fmt::format("{} bytes expected, {} left", size, in.size()));
    }
    std::uint64_t value = 0;
    std::memcpy(&value, in.data(), size);
    in = in.subspan(size);
    return value;
  }
  Result<ByteSpan> block(ByteSpan& in) const {
    const std::uint8_t* at = in.data();
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t size, varint(in));
    if (size > in.size()) {
      return cut(at, fmt::format("{} bytes expected, {} left", size, in.size()));
    }
    const ByteSpan out = in.first(static_cast<std::size_t>(size));
    in = in.subspan(out.size());
    return out;
  }
  Result<std::uint64_t> value_of(Wire wire, ByteSpan& in) const {
    switch (wire) {
      case Wire::varint:
        return varint(in);
      case Wire::fixed64:
        return fixed(in, 8);
      case Wire::fixed32:
        return fixed(in, 4);
      case Wire::bytes:
      case Wire::group:
      case Wire::end:
        break;
    }
    return cut(in.data(), fmt::format("wire type {} is not known", static_cast<int>(wire)));
  }

  struct Tag {
    std::uint32_t number = 0;
    Wire wire = Wire::varint;
  };
  Result<Tag> tag(ByteSpan& in) const {
    const std::uint8_t* at = in.data();
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t raw, varint(in));
    if (raw >> 32 != 0 || raw >> 3 == 0) return cut(at, "a tag with no field number");
    if ((raw & 7) > 5) return cut(at, fmt::format("wire type {} is not known", raw & 7));
    return Tag{.number = static_cast<std::uint32_t>(raw >> 3), .wire = static_cast<Wire>(raw & 7)};
  }

  // The bytes of a group, whose start was read; its end is taken.
  Result<ByteSpan> group(std::uint32_t number, ByteSpan& in, std::uint32_t depth) const {
    if (depth > kMaxProtobufDepth) return too_deep(in.data());
    const ByteSpan all = in;
    while (true) {
      const std::size_t size = all.size() - in.size();
      if (in.empty()) return cut(in.data(), fmt::format("group {} has no end", number));
      ROPEWALK_ASSIGN_OR_RETURN(const Tag next, tag(in));
      if (next.wire == Wire::end) {
        if (next.number == number) return all.first(size);
        return cut(in.data(),
                   fmt::format("the end of group {} within group {}", next.number, number));
      }
      if (next.wire == Wire::group) {
        ROPEWALK_RETURN_IF_ERROR(group(next.number, in, depth + 1).status());
      } else if (next.wire == Wire::bytes) {
        ROPEWALK_RETURN_IF_ERROR(block(in).status());
      } else {
        ROPEWALK_RETURN_IF_ERROR(value_of(next.wire, in).status());
      }
    }
  }
  Status too_deep(const std::uint8_t* at) const {
    return resource_exhausted(
        fmt::format("{}: nested deeper than {} levels", place(at), kMaxProtobufDepth));
  }
  Status spend(std::uint64_t values, const std::uint8_t* at) {
    if (values > budget_) {
      return resource_exhausted(
          fmt::format("{}: more values than a payload of this size may hold", place(at)));
    }
    budget_ -= values;
    return ok_status();
  }

  static void append(const pb::FieldDescriptor& field, std::uint64_t raw, Found& found) {
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM) {
      found.choices.push_back(scalar(field, raw));
      return;
    }
    if (field.type() == pb::FieldDescriptor::TYPE_SINT32 ||
        field.type() == pb::FieldDescriptor::TYPE_SINT64) {
      raw = static_cast<std::uint64_t>(
          unzigzag(field.type() == pb::FieldDescriptor::TYPE_SINT32 ? raw & 0xFFFFFFFF : raw));
    }
    if (field.type() == pb::FieldDescriptor::TYPE_BOOL) raw = raw != 0 ? 1 : 0;
    const std::size_t size = dtype_size(*row_dtype(field));
    const std::size_t at = found.row.size();
    found.row.resize(at + size);
    std::memcpy(found.row.data() + at, &raw, size);
  }

  Status packed(const pb::FieldDescriptor& field, ByteSpan in, Found& found) {
    const Wire wire = wire_of(field);
    // A choice of an enumeration is a value of its own.
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM) {
      ROPEWALK_RETURN_IF_ERROR(spend(in.size(), in.data()));
    }
    if (wire == Wire::fixed32 || wire == Wire::fixed64) {
      const std::size_t size = wire == Wire::fixed32 ? 4 : 8;
      if (in.size() % size != 0) {
        return cut(in.data(), fmt::format("{} packed bytes, elements have {}", in.size(), size));
      }
      // One block stays where it is.
      if (!found.present) {
        found.parts = {in};
        return ok_status();
      }
      for (const ByteSpan part : found.parts) {
        found.row.insert(found.row.end(), part.begin(), part.end());
      }
      found.parts.clear();
      found.row.insert(found.row.end(), in.begin(), in.end());
      return ok_status();
    }
    while (!in.empty()) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t raw, varint(in));
      append(field, raw, found);
    }
    return ok_status();
  }

  // Reads one occurrence of a field whose wire type is its own, or packed.
  Status occurrence(const pb::FieldDescriptor& field, Tag tag, ByteSpan& in, std::uint32_t depth,
                    Found& found) {
    if (tag.wire == Wire::group) {
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan part, group(tag.number, in, depth));
      found.parts.push_back(part);
    } else if (tag.wire == Wire::bytes) {
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan part, block(in));
      if (wire_of(field) != Wire::bytes) {
        ROPEWALK_RETURN_IF_ERROR(packed(field, part, found));
      } else {
        const bool keeps_all =
            field.is_repeated() || field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
        if (!keeps_all) found.parts.clear();
        found.parts.push_back(part);
      }
    } else {
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t raw, value_of(tag.wire, in));
      if (field.is_repeated()) {
        for (const ByteSpan part : found.parts) {
          found.row.insert(found.row.end(), part.begin(), part.end());
        }
        found.parts.clear();
        append(field, raw, found);
      } else {
        found.raw = raw;
      }
    }
    found.present = true;
    return ok_status();
  }

  Status message(const pb::Descriptor& type, ByteSpan in, std::uint32_t depth, Value& out) {
    if (depth > kMaxProtobufDepth) return too_deep(in.data());
    const std::uint8_t* begin = in.data();
    std::vector<Found> fields(static_cast<std::size_t>(type.field_count()));
    std::vector<Found> extensions;
    std::vector<Unknown> unknown;
    for (int i = 0; i < type.field_count(); ++i) {
      fields[static_cast<std::size_t>(i)].field = type.field(i);
    }
    while (!in.empty()) {
      const std::uint8_t* at = in.data();
      ROPEWALK_ASSIGN_OR_RETURN(const Tag next, tag(in));
      if (next.wire == Wire::end) return cut(at, "the end of a group that did not begin");
      const auto number = static_cast<int>(next.number);
      const pb::FieldDescriptor* field = type.FindFieldByNumber(number);
      Found* found = field == nullptr ? nullptr : &fields[static_cast<std::size_t>(field->index())];
      if (field == nullptr && type.IsExtensionNumber(number)) {
        field = type.file()->pool()->FindExtensionByNumber(&type, number);
        if (field != nullptr) {
          auto known = std::ranges::find(extensions, field, &Found::field);
          if (known == extensions.end()) known = extensions.insert(known, Found{.field = field});
          found = &*known;
        }
      }
      // A field of another wire type than the schema says is as unknown as one without a number.
      const bool fits = field != nullptr && (next.wire == wire_of(*field) ||
                                             (next.wire == Wire::bytes && field->is_packable()));
      if (!fits) {
        ROPEWALK_RETURN_IF_ERROR(spend(1, at));
        ROPEWALK_RETURN_IF_ERROR(keep_unknown(next, in, depth, unknown));
        continue;
      }
      if (const auto* oneof = field->containing_oneof(); oneof != nullptr && !found->present) {
        for (int i = 0; i < oneof->field_count(); ++i) {
          Found& other = fields[static_cast<std::size_t>(oneof->field(i)->index())];
          if (&other != found) other = {.field = other.field};
        }
      }
      ROPEWALK_RETURN_IF_ERROR(
          step(field->name(), occurrence(*field, next, in, depth + 1, *found)));
    }

    Value::Object members;
    members.reserve(fields.size());
    for (Found& found : fields) {
      ROPEWALK_RETURN_IF_ERROR(add(found, found.field->name(), depth, members));
    }
    for (Found& found : extensions) {
      const std::string_view name = arena_.keep(fmt::format("[{}]", found.field->full_name()));
      ROPEWALK_RETURN_IF_ERROR(add(found, name, depth, members));
    }
    ROPEWALK_RETURN_IF_ERROR(spend(members.size(), begin));
    for (Unknown& field : unknown) {
      members.push_back({arena_.keep(fmt::format("#{}", field.number)), std::move(field.value)});
    }
    out.variant() = std::move(members);
    return ok_status();
  }

  Status keep_unknown(Tag tag, ByteSpan& in, std::uint32_t depth, std::vector<Unknown>& out) {
    const std::uint8_t* at = in.data();
    Value value;
    if (tag.wire == Wire::group) {
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan part, group(tag.number, in, depth + 1));
      value = Value(part);
    } else if (tag.wire == Wire::bytes) {
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan part, block(in));
      value = Value(part);
    } else {
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t raw, value_of(tag.wire, in));
      if (tag.wire == Wire::varint) {
        value = Value(raw);
      } else {
        value =
            Value(Value::Numbers{.dtype = tag.wire == Wire::fixed32 ? DType::uint32 : DType::uint64,
                                 .data = ByteSpan(at, tag.wire == Wire::fixed32 ? 4U : 8U)});
      }
    }
    out.push_back({tag.number, std::move(value)});
    return ok_status();
  }

  Status add(Found& found, std::string_view name, std::uint32_t depth, Value::Object& members) {
    const pb::FieldDescriptor& field = *found.field;
    if (!found.present) {
      if (!field.has_presence()) members.push_back({name, default_of(field)});
      return ok_status();
    }
    members.push_back({name, Value()});
    return step(name, finish(found, depth, members.back().value));
  }

  Status finish(Found& found, std::uint32_t depth, Value& out) {
    const pb::FieldDescriptor& field = *found.field;
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field.is_map()) return map(field, found.parts, depth, out);
      if (field.is_repeated()) {
        Value::Array array;
        array.reserve(found.parts.size());
        for (std::size_t i = 0; i < found.parts.size(); ++i) {
          ROPEWALK_RETURN_IF_ERROR(spend(1, found.parts[i].data()));
          ROPEWALK_RETURN_IF_ERROR(step(
              fmt::format("[{}]", i),
              message(*field.message_type(), found.parts[i], depth + 1, array.emplace_back())));
        }
        out.variant() = std::move(array);
        return ok_status();
      }
      return message(*field.message_type(), joined(found.parts), depth + 1, out);
    }
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) {
      if (!field.is_repeated()) {
        out = text(field, found.parts.back());
        return ok_status();
      }
      ROPEWALK_RETURN_IF_ERROR(spend(found.parts.size(), begin_));
      Value::Array array;
      array.reserve(found.parts.size());
      for (const ByteSpan part : found.parts) array.push_back(text(field, part));
      out.variant() = std::move(array);
      return ok_status();
    }
    if (!field.is_repeated()) {
      out = scalar(field, found.raw);
    } else if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM) {
      out.variant() = std::move(found.choices);
    } else {
      ByteSpan data = found.parts.empty() ? ByteSpan() : found.parts.front();
      if (!found.row.empty()) data = as_bytes(arena_.keep(as_text(found.row)));
      out.variant() = Value::Numbers{.dtype = *row_dtype(field), .data = data};
    }
    return ok_status();
  }

  static Value text(const pb::FieldDescriptor& field, ByteSpan bytes) {
    return field.type() == pb::FieldDescriptor::TYPE_BYTES ? Value(bytes) : Value(as_text(bytes));
  }

  // A message that comes in parts is their concatenation.
  ByteSpan joined(const std::vector<ByteSpan>& parts) {
    if (parts.size() == 1) return parts.front();
    Bytes all;
    for (const ByteSpan part : parts) all.insert(all.end(), part.begin(), part.end());
    return as_bytes(arena_.keep(as_text(all)));
  }

  Status map(const pb::FieldDescriptor& field, const std::vector<ByteSpan>& parts,
             std::uint32_t depth, Value& out) {
    const pb::Descriptor& entry = *field.message_type();
    Value::Object members;
    std::unordered_map<std::string_view, std::size_t> known;
    for (const ByteSpan part : parts) {
      Value pair;
      ROPEWALK_RETURN_IF_ERROR(spend(1, part.data()));
      ROPEWALK_RETURN_IF_ERROR(message(entry, part, depth + 1, pair));
      // Key and value have presence in an entry, and defaults where they are absent.
      const Value* held_key = pair.find(entry.map_key()->name());
      const Value* held = pair.find(entry.map_value()->name());
      const Value key = held_key == nullptr ? default_of(*entry.map_key()) : *held_key;
      Value value = held == nullptr ? default_of(*entry.map_value()) : *held;
      if (value.is_nil()) {
        ROPEWALK_RETURN_IF_ERROR(message(*entry.map_value()->message_type(), {}, depth + 1, value));
      }
      std::string_view name;
      if (const auto held_text = key.as_string()) {
        name = *held_text;
      } else if (const auto flag = key.as_bool()) {
        name = *flag ? "true" : "false";
      } else if (const auto* wide = std::get_if<std::uint64_t>(&key.variant())) {
        name = arena_.keep(fmt::to_string(*wide));
      } else {
        name = arena_.keep(fmt::to_string(key.as_int64().value_or(0)));
      }
      const auto [at, is_new] = known.emplace(name, members.size());
      if (is_new) {
        members.push_back({name, std::move(value)});
      } else {
        members[at->second].value = std::move(value);
      }
    }
    out.variant() = std::move(members);
    return ok_status();
  }

  Arena& arena_;
  const std::uint8_t* begin_;
  const std::uint8_t* end_;
  std::uint64_t budget_;
  std::vector<std::string> path_;  // innermost first
};

}  // namespace

Status decode_protobuf(const pb::Descriptor& type, ByteSpan payload, const Limits&, Message& out) {
  return Decoder(payload, out.arena()).run(type, payload, out.root());
}

}  // namespace ropewalk::message
