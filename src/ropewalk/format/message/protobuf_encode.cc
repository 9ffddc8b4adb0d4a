// Values to protobuf payloads.
#include <algorithm>
#include <bit>
#include <charconv>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "ropewalk/format/message/protobuf_internal.h"
#include "ropewalk/format/message/scalar_internal.h"
#include "ropewalk/format/message/value_json.h"

namespace ropewalk::message {
namespace {

namespace pb = google::protobuf;

void put_varint(std::uint64_t value, Bytes& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<std::uint8_t>(value));
}

void put_tag(int number, std::uint32_t wire, Bytes& out) {
  put_varint(static_cast<std::uint64_t>(number) << 3 | wire, out);
}

void put_block(ByteSpan block, Bytes& out) {
  put_varint(block.size(), out);
  ByteWriter(out).write(block);
}

std::uint64_t zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

class Encoder {
 public:
  Result<Bytes> run(const pb::Descriptor& type, const Value& value) {
    Bytes out;
    Status status = message(type, value, 0, out);
    if (status.ok()) return out;
    std::string path;
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
      if (!path.empty() && step->front() != '[') path += '.';
      path += *step;
    }
    return path.empty() ? status : status.with_context(path);
  }

 private:
  static Status misfit(const pb::FieldDescriptor& field, const Value& value) {
    std::string found = to_json_text(value, {.bytes = BytesForm::elided});
    if (found.size() > 60) found = std::string(value.type_name());
    return invalid_argument(fmt::format("{} expected, {} found", field.type_name(), found));
  }
  Status step(std::string_view name, Status status) {
    if (!status.ok()) path_.emplace_back(name);
    return status;
  }

  static const pb::FieldDescriptor* field_of(const pb::Descriptor& type, std::string_view name) {
    if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
      const std::string inner(name.substr(1, name.size() - 2));
      const auto* field = type.file()->pool()->FindExtensionByName(inner);
      return field != nullptr && field->containing_type() == &type ? field : nullptr;
    }
    const auto* field = type.FindFieldByName(std::string(name));
    return field != nullptr ? field : type.FindFieldByCamelcaseName(std::string(name));
  }

  Status message(const pb::Descriptor& type, const Value& value, std::uint32_t depth, Bytes& out) {
    if (depth > kMaxProtobufDepth) {
      return resource_exhausted(fmt::format("nested deeper than {} levels", kMaxProtobufDepth));
    }
    const Value::Object* object = value.as_object();
    if (object == nullptr) {
      return invalid_argument(
          fmt::format("{} expected, a {} found", type.full_name(), value.type_name()));
    }
    for (const Value::Member& member : *object) {
      if (member.value.is_nil()) continue;
      if (!member.name.empty() && member.name.front() == '#') {
        ROPEWALK_RETURN_IF_ERROR(step(member.name, unknown(member, out)));
        continue;
      }
      const pb::FieldDescriptor* field = field_of(type, member.name);
      if (field == nullptr) {
        return invalid_argument(fmt::format("{} has no field '{}'", type.full_name(), member.name));
      }
      ROPEWALK_RETURN_IF_ERROR(step(member.name, put_field(*field, member.value, depth, out)));
    }
    return ok_status();
  }

  // A field that the schema did not know when it was read.
  static Status unknown(const Value::Member& member, Bytes& out) {
    int number = 0;
    const char* end = member.name.data() + member.name.size();
    const auto read = std::from_chars(member.name.data() + 1, end, number);
    if (read.ec != std::errc() || read.ptr != end || number <= 0 || number > 536870911) {
      return invalid_argument("no number of a field");
    }
    if (const auto* row = member.value.as_numbers();
        row != nullptr && (row->data.size() == 4 || row->data.size() == 8) && row->size() == 1) {
      put_tag(number, row->data.size() == 4 ? 5 : 1, out);
      ByteWriter(out).write(row->data);
    } else if (const auto bytes = member.value.as_binary()) {
      put_tag(number, 2, out);
      put_block(*bytes, out);
    } else if (const auto raw = integer_of<std::uint64_t>(member.value)) {
      put_tag(number, 0, out);
      put_varint(*raw, out);
    } else {
      return invalid_argument("bytes, an integer, or a row of one number expected");
    }
    return ok_status();
  }

  Status put_field(const pb::FieldDescriptor& field, const Value& value, std::uint32_t depth,
                   Bytes& out) {
    if (field.is_map()) return map(field, value, depth, out);
    if (!field.is_repeated()) {
      // Fields without presence are not written with their default.
      Bytes one;
      ROPEWALK_RETURN_IF_ERROR(put(field, value, depth, one));
      const bool is_default = std::ranges::all_of(one, [](std::uint8_t byte) { return byte == 0; });
      if (!field.has_presence() && is_default) return ok_status();
      put_tag(field.number(), wire(field), out);
      ByteWriter(out).write(one);
      if (field.type() == pb::FieldDescriptor::TYPE_GROUP) put_tag(field.number(), 4, out);
      return ok_status();
    }
    const Value::Array* array = value.as_array();
    const Value::Numbers* numbers = value.as_numbers();
    if (array == nullptr && numbers == nullptr) return misfit(field, value);
    Bytes packed;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Value element = numbers != nullptr ? numbers->element(i) : Value();
      const Value& held = numbers != nullptr ? element : (*array)[i];
      if (!field.is_packed()) put_tag(field.number(), wire(field), out);
      ROPEWALK_RETURN_IF_ERROR(
          step(fmt::format("[{}]", i), put(field, held, depth, field.is_packed() ? packed : out)));
      if (field.type() == pb::FieldDescriptor::TYPE_GROUP) put_tag(field.number(), 4, out);
    }
    if (!packed.empty()) {
      put_tag(field.number(), 2, out);
      put_block(packed, out);
    }
    return ok_status();
  }

  Status map(const pb::FieldDescriptor& field, const Value& value, std::uint32_t depth,
             Bytes& out) {
    const Value::Object* object = value.as_object();
    if (object == nullptr) return misfit(field, value);
    const pb::Descriptor& entry = *field.message_type();
    for (const Value::Member& member : *object) {
      Value key(member.name);
      if (entry.map_key()->cpp_type() == pb::FieldDescriptor::CPPTYPE_BOOL) {
        if (member.name != "true" && member.name != "false") return misfit(*entry.map_key(), key);
        key = Value(member.name == "true");
      }
      Bytes one;
      put_tag(1, wire(*entry.map_key()), one);
      ROPEWALK_RETURN_IF_ERROR(step(member.name, put(*entry.map_key(), key, depth + 1, one)));
      put_tag(2, wire(*entry.map_value()), one);
      ROPEWALK_RETURN_IF_ERROR(
          step(member.name, put(*entry.map_value(), member.value, depth + 1, one)));
      put_tag(field.number(), 2, out);
      put_block(one, out);
    }
    return ok_status();
  }

  static std::uint32_t wire(const pb::FieldDescriptor& field) {
    switch (field.type()) {
      case pb::FieldDescriptor::TYPE_DOUBLE:
      case pb::FieldDescriptor::TYPE_FIXED64:
      case pb::FieldDescriptor::TYPE_SFIXED64:
        return 1;
      case pb::FieldDescriptor::TYPE_FLOAT:
      case pb::FieldDescriptor::TYPE_FIXED32:
      case pb::FieldDescriptor::TYPE_SFIXED32:
        return 5;
      case pb::FieldDescriptor::TYPE_STRING:
      case pb::FieldDescriptor::TYPE_BYTES:
      case pb::FieldDescriptor::TYPE_MESSAGE:
        return 2;
      case pb::FieldDescriptor::TYPE_GROUP:
        return 3;
      default:
        return 0;
    }
  }

  template <typename T, typename Put>
  static Status integer(const pb::FieldDescriptor& field, const Value& value, const Put& put) {
    const auto read = integer_of<T>(value);
    if (!read.has_value()) return misfit(field, value);
    put(*read);
    return ok_status();
  }

  // One value without its tag.
  Status put(const pb::FieldDescriptor& field, const Value& value, std::uint32_t depth,
             Bytes& out) {
    const auto varint = [&](auto number) {
      put_varint(static_cast<std::uint64_t>(static_cast<std::int64_t>(number)), out);
    };
    const auto fixed = [&](auto number) { ByteWriter(out).write_le(number); };
    switch (field.type()) {
      case pb::FieldDescriptor::TYPE_DOUBLE:
      case pb::FieldDescriptor::TYPE_FLOAT: {
        const auto real = real_of(value);
        if (!real.has_value()) return misfit(field, value);
        if (field.type() == pb::FieldDescriptor::TYPE_DOUBLE) {
          fixed(std::bit_cast<std::uint64_t>(*real));
        } else {
          fixed(std::bit_cast<std::uint32_t>(static_cast<float>(*real)));
        }
        return ok_status();
      }
      case pb::FieldDescriptor::TYPE_INT32:
        return integer<std::int32_t>(field, value, varint);
      case pb::FieldDescriptor::TYPE_INT64:
        return integer<std::int64_t>(field, value, varint);
      case pb::FieldDescriptor::TYPE_UINT32:
        return integer<std::uint32_t>(field, value, varint);
      case pb::FieldDescriptor::TYPE_UINT64:
        return integer<std::uint64_t>(field, value, varint);
      case pb::FieldDescriptor::TYPE_SINT32:
        return integer<std::int32_t>(field, value,
                                     [&](std::int32_t number) { put_varint(zigzag(number), out); });
      case pb::FieldDescriptor::TYPE_SINT64:
        return integer<std::int64_t>(field, value,
                                     [&](std::int64_t number) { put_varint(zigzag(number), out); });
      case pb::FieldDescriptor::TYPE_FIXED32:
        return integer<std::uint32_t>(field, value, fixed);
      case pb::FieldDescriptor::TYPE_SFIXED32:
        return integer<std::int32_t>(field, value, fixed);
      case pb::FieldDescriptor::TYPE_FIXED64:
        return integer<std::uint64_t>(field, value, fixed);
      case pb::FieldDescriptor::TYPE_SFIXED64:
        return integer<std::int64_t>(field, value, fixed);
      case pb::FieldDescriptor::TYPE_BOOL: {
        const auto flag = boolean_of(value);
        if (!flag.has_value()) return misfit(field, value);
        out.push_back(*flag ? 1 : 0);
        return ok_status();
      }
      case pb::FieldDescriptor::TYPE_ENUM: {
        if (const auto name = value.as_string()) {
          const auto* known = field.enum_type()->FindValueByName(std::string(*name));
          if (known != nullptr) return varint(known->number()), ok_status();
        }
        return integer<std::int32_t>(field, value, varint);
      }
      case pb::FieldDescriptor::TYPE_STRING: {
        const auto text = value.as_string();
        if (!text.has_value()) return misfit(field, value);
        put_block(as_bytes(*text), out);
        return ok_status();
      }
      case pb::FieldDescriptor::TYPE_BYTES: {
        if (const auto bytes = value.as_binary()) return put_block(*bytes, out), ok_status();
        const auto text = value.as_string();
        const auto bytes = text.has_value() ? from_base64(*text) : std::nullopt;
        if (!bytes.has_value()) return misfit(field, value);
        put_block(*bytes, out);
        return ok_status();
      }
      case pb::FieldDescriptor::TYPE_MESSAGE: {
        Bytes inner;
        ROPEWALK_RETURN_IF_ERROR(message(*field.message_type(), value, depth + 1, inner));
        put_block(inner, out);
        return ok_status();
      }
      case pb::FieldDescriptor::TYPE_GROUP:
        return message(*field.message_type(), value, depth + 1, out);
    }
    return misfit(field, value);
  }

  std::vector<std::string> path_;  // innermost first
};

}  // namespace

Result<Bytes> encode_protobuf(const pb::Descriptor& type, const Value& value) {
  return Encoder().run(type, value);
}

}  // namespace ropewalk::message
