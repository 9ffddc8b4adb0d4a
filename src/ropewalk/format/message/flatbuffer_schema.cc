// A verified reflection schema to plain tables.
#include <algorithm>

#include <flatbuffers/reflection_generated.h>
#include <fmt/format.h>

#include "ropewalk/format/message/flatbuffer_internal.h"

namespace ropewalk::message {
namespace {

using Base = FlatbufferCodec::Base;
using Object = FlatbufferCodec::Object;
using Field = FlatbufferCodec::Field;

std::string text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str();
}

// Read as a number: the accessor of the library makes an enumerator of any value.
Result<Base> base_of(const reflection::Type& type, flatbuffers::voffset_t member) {
  const auto* table = reinterpret_cast<const flatbuffers::Table*>(&type);
  const int number = table->GetField<std::int8_t>(member, 0);
  if (number < 0 || number > static_cast<int>(Base::array)) {
    return unimplemented(fmt::format("FlatBuffers type {} is not known", number));
  }
  return static_cast<Base>(number);
}

class Reader {
 public:
  Reader(const reflection::Schema& schema, std::vector<Object>& objects,
         std::vector<FlatbufferCodec::Enumeration>& enumerations)
      : schema_(schema), objects_(objects), enumerations_(enumerations) {}

  Status run() {
    if (schema_.enums() != nullptr) {
      for (const reflection::Enum* one : *schema_.enums()) {
        FlatbufferCodec::Enumeration out;
        for (const reflection::EnumVal* value : *one->values()) {
          FlatbufferCodec::Choice choice{.value = value->value(), .name = text_of(value->name())};
          if (one->is_union() && value->union_type() != nullptr) {
            ROPEWALK_ASSIGN_OR_RETURN(
                choice.base, base_of(*value->union_type(), reflection::Type::VT_BASE_TYPE));
            choice.index = value->union_type()->index();
            if (choice.base == Base::object) {
              ROPEWALK_RETURN_IF_ERROR(check_object(choice.index, text_of(one->name())));
            }
          }
          out.choices.push_back(std::move(choice));
        }
        enumerations_.push_back(std::move(out));
      }
    }
    for (const reflection::Object* object : *schema_.objects()) {
      Object out{.name = text_of(object->name()),
                 .is_struct = object->is_struct(),
                 .bytes = static_cast<std::uint32_t>(std::max(object->bytesize(), 0))};
      Status status = fields(*object, out);
      if (!status.ok()) return status.with_context(out.name);
      objects_.push_back(std::move(out));
    }
    for (const Object& object : objects_) {
      if (!object.is_struct) continue;
      for (const Field& field : object.fields) {
        if (field.offset + bytes_of(field) > object.bytes) {
          return data_loss(fmt::format("{}.{}: beyond the {} bytes of the struct", object.name,
                                       field.name, object.bytes));
        }
      }
    }
    return ok_status();
  }

 private:
  Status check_object(std::int32_t index, std::string_view who) const {
    if (index >= 0 && static_cast<std::size_t>(index) < schema_.objects()->size()) {
      return ok_status();
    }
    return data_loss(fmt::format("{}: object {} of {}", who, index, schema_.objects()->size()));
  }

  std::uint64_t bytes_of(const Field& field) const {
    const auto one = [&](Base base) -> std::uint64_t {
      return base == Base::object ? objects_[static_cast<std::size_t>(field.index)].bytes
                                  : flatbuffer_size(base);
    };
    return field.base == Base::array ? field.length * one(field.element) : one(field.base);
  }

  Status fields(const reflection::Object& object, Object& out) const {
    for (const reflection::Field* field : *object.fields()) {
      const reflection::Type& type = *field->type();
      Field one{.name = text_of(field->name()), .index = type.index(), .offset = field->offset()};
      ROPEWALK_ASSIGN_OR_RETURN(one.base, base_of(type, reflection::Type::VT_BASE_TYPE));
      ROPEWALK_ASSIGN_OR_RETURN(one.element, base_of(type, reflection::Type::VT_ELEMENT));
      one.length = type.fixed_length();
      one.integer = field->default_integer();
      one.real = field->default_real();
      one.optional = field->optional();
      const bool collection = one.base == Base::vector || one.base == Base::array;
      const Base inner = collection ? one.element : one.base;
      if (inner == Base::object) {
        ROPEWALK_RETURN_IF_ERROR(check_object(one.index, one.name));
        const bool is_struct =
            schema_.objects()->Get(static_cast<flatbuffers::uoffset_t>(one.index))->is_struct();
        if (object.is_struct() && !is_struct) {
          return data_loss(fmt::format("{}: a table within a struct", one.name));
        }
      } else if (one.index >= 0 && static_cast<std::size_t>(one.index) >= enumerations_.size()) {
        return data_loss(
            fmt::format("{}: enumeration {} of {}", one.name, one.index, enumerations_.size()));
      }
      if (inner == Base::choice && one.index < 0) {
        return data_loss(fmt::format("{}: a union without its enumeration", one.name));
      }
      const bool behind_offset = inner == Base::string || inner == Base::choice ||
                                 one.base == Base::vector || inner == Base::vector ||
                                 inner == Base::array || inner == Base::none;
      if ((object.is_struct() && behind_offset) ||
          (!object.is_struct() && one.base == Base::array) || inner == Base::none ||
          (collection && (inner == Base::vector || inner == Base::array))) {
        return data_loss(fmt::format("{}: no type that may stand here", one.name));
      }
      if (inner == Base::choice) {
        // The types of a union stand in the field before it.
        const std::string wanted = one.name + "_type";
        for (const reflection::Field* other : *object.fields()) {
          if (text_of(other->name()) == wanted) one.type_offset = other->offset();
        }
        if (one.type_offset == 0) {
          return data_loss(fmt::format("{}: a union without '{}'", one.name, wanted));
        }
      }
      if (!field->deprecated()) out.fields.push_back(std::move(one));
    }
    // By place, which is the order of their declaration.
    std::ranges::sort(out.fields, {}, &Field::offset);
    return ok_status();
  }

  const reflection::Schema& schema_;
  std::vector<Object>& objects_;
  std::vector<FlatbufferCodec::Enumeration>& enumerations_;
};

}  // namespace

std::size_t flatbuffer_size(Base base) {
  switch (base) {
    case Base::utype:
    case Base::boolean:
    case Base::int8:
    case Base::uint8:
      return 1;
    case Base::int16:
    case Base::uint16:
      return 2;
    case Base::int32:
    case Base::uint32:
    case Base::float32:
    case Base::string:
    case Base::vector:
    case Base::choice:
      return 4;
    case Base::int64:
    case Base::uint64:
    case Base::float64:
      return 8;
    case Base::none:
    case Base::object:
    case Base::array:
      break;
  }
  return 0;
}

const FlatbufferCodec::Choice* FlatbufferCodec::Enumeration::find(std::int64_t value) const {
  const auto found = std::ranges::find(choices, value, &Choice::value);
  return found == choices.end() ? nullptr : &*found;
}

Result<FlatbufferCodec> FlatbufferCodec::compile(std::string_view name, ByteSpan schema,
                                                 const Limits&) {
  // The library reads in place: the bytes must be aligned.
  const Bytes aligned(schema.begin(), schema.end());
  flatbuffers::Verifier verifier(aligned.data(), aligned.size());
  if (aligned.size() < 8 || !reflection::VerifySchemaBuffer(verifier)) {
    return data_loss("the schema is no verified FlatBuffers reflection schema");
  }
  const reflection::Schema& read = *reflection::GetSchema(aligned.data());
  FlatbufferCodec out;
  ROPEWALK_RETURN_IF_ERROR(Reader(read, out.objects_, out.enumerations_).run());
  const auto found = std::ranges::find(out.objects_, name, &Object::name);
  if (found == out.objects_.end() || found->is_struct) {
    return not_found(fmt::format("the schema has no table '{}'", name));
  }
  out.root_ = static_cast<std::size_t>(found - out.objects_.begin());
  return out;
}

Result<Bytes> FlatbufferCodec::encode(const Value&) const {
  return unimplemented("there is no encoder for message encoding 'flatbuffer'");
}

}  // namespace ropewalk::message
