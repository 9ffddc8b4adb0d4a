// Values to CDR and ROS 1 payloads.
#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "ropewalk/format/message/scalar_internal.h"
#include "ropewalk/format/message/value_json.h"
#include "ropewalk/format/message/wire_internal.h"

namespace ropewalk::message {
namespace {

constexpr std::size_t kMaxPayloadBytes = std::size_t{1} << 30;

// The IEEE binary128 of a double: low half, high half.
std::pair<std::uint64_t, std::uint64_t> quad_of_double(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits >> 63 << 63;
  if (std::isnan(value)) return {0, sign | 0x7FFF800000000000ULL};
  if (std::isinf(value)) return {0, sign | 0x7FFF000000000000ULL};
  if (value == 0.0) return {0, sign};
  int exponent = 0;
  const double part = std::frexp(std::fabs(value), &exponent);  // [0.5, 1)
  const auto significand = static_cast<std::uint64_t>(std::ldexp(part, 53));
  const std::uint64_t rest = significand & ((1ULL << 52) - 1);
  const auto biased = static_cast<std::uint64_t>(exponent - 1 + 16383);
  return {rest << 60, sign | biased << 48 | rest >> 4};
}

class Encoder {
 public:
  Encoder(const TypeTable& table, const WireFormat& format) : table_(table), format_(format) {}

  Result<Bytes> run(const Value& value) {
    if (!format_.ros1) {
      std::uint8_t kind = 0;
      if (format_.xcdr2) {
        kind = format_.parameter_list ? 0x0A : format_.delimited ? 0x08 : 0x06;
      } else {
        kind = format_.parameter_list ? 0x02 : 0x00;
      }
      out_ = {0, static_cast<std::uint8_t>(kind | (format_.swapped ? 0 : 1)), 0, 0};
    }
    origin_ = format_.origin;
    Status status = put(table_.root, &value, 0);
    if (!status.ok()) {
      std::string path;
      for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
        if (!path.empty() && step->front() != '[') path += '.';
        path += *step;
      }
      return path.empty() ? status : status.with_context(path);
    }
    return std::move(out_);
  }

 private:
  void align(std::size_t size) {
    const std::size_t to = std::min(size, format_.max_alignment);
    while (((out_.size() - origin_) & (to - 1)) != 0) out_.push_back(0);
  }
  template <typename T>
  void raw(T value) {
    std::uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    if (format_.swapped) std::reverse(bytes, bytes + sizeof(T));
    out_.insert(out_.end(), bytes, bytes + sizeof(T));
  }
  template <typename T>
  void number(T value) {
    align(sizeof(T));
    raw(value);
  }
  void patch_u32(std::size_t at, std::size_t value) {
    std::uint8_t bytes[4];
    const auto narrow = static_cast<std::uint32_t>(value);
    std::memcpy(bytes, &narrow, 4);
    if (format_.swapped) std::reverse(bytes, bytes + 4);
    std::copy(bytes, bytes + 4, out_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  Status misfit(const Value& value, std::uint32_t type) const {
    std::string found = to_json_text(value, {.bytes = BytesForm::elided});
    if (found.size() > 60) found = std::string(value.type_name());
    return invalid_argument(fmt::format("{} expected, {} found", table_.name_of(type), found));
  }
  Status step(std::string_view name, Status status) {
    if (!status.ok()) path_.emplace_back(name);
    return status;
  }

  template <typename T>
  Status integer(const Value* value, std::uint32_t type) {
    if (value == nullptr) return number(T{}), ok_status();
    const auto read = integer_of<T>(*value);
    if (!read.has_value()) return misfit(*value, type);
    return number(*read), ok_status();
  }

  // `value` is null for what is missing: then the field is zero or empty.
  Status put(std::uint32_t index, const Value* value, std::uint32_t depth) {
    if (value != nullptr && value->is_nil()) value = nullptr;
    if (out_.size() > kMaxPayloadBytes) {
      return resource_exhausted(fmt::format("a payload above {} bytes", kMaxPayloadBytes));
    }
    const Type& type = table_.types[index];
    switch (type.kind) {
      case TypeKind::boolean: {
        const auto flag = value == nullptr ? false : boolean_of(*value);
        if (!flag.has_value()) return misfit(*value, index);
        out_.push_back(*flag ? 1 : 0);
        return ok_status();
      }
      case TypeKind::int8:
        return integer<std::int8_t>(value, index);
      case TypeKind::uint8:
        return integer<std::uint8_t>(value, index);
      case TypeKind::int16:
        return integer<std::int16_t>(value, index);
      case TypeKind::uint16:
      case TypeKind::wchar:
        return integer<std::uint16_t>(value, index);
      case TypeKind::int32:
        return integer<std::int32_t>(value, index);
      case TypeKind::uint32:
        return integer<std::uint32_t>(value, index);
      case TypeKind::int64:
        return integer<std::int64_t>(value, index);
      case TypeKind::uint64:
        return integer<std::uint64_t>(value, index);
      case TypeKind::float32:
      case TypeKind::float64:
      case TypeKind::float128: {
        const auto real = value == nullptr ? 0.0 : real_of(*value);
        if (!real.has_value()) return misfit(*value, index);
        if (type.kind == TypeKind::float32) {
          number(static_cast<float>(*real));
        } else if (type.kind == TypeKind::float64) {
          number(*real);
        } else {
          auto [low, high] = quad_of_double(*real);
          if (format_.swapped) std::swap(low, high);
          align(8);
          raw(low);
          raw(high);
        }
        return ok_status();
      }
      case TypeKind::time:
      case TypeKind::duration: {
        const auto time = value == nullptr ? Value::Time() : time_of(*value);
        if (!time.has_value()) return misfit(*value, index);
        const Value sec(time->sec);
        const Value nsec(time->nsec);
        const auto part =
            TypeTable::primitive(type.kind == TypeKind::time ? TypeKind::uint32 : TypeKind::int32);
        ROPEWALK_RETURN_IF_ERROR(put(part, &sec, depth));
        return put(part, &nsec, depth);
      }
      case TypeKind::string:
        return string(type, index, value);
      case TypeKind::wstring:
        return wide_string(type, index, value);
      case TypeKind::enumeration:
        return enumerator(type, index, value);
      case TypeKind::bitmask:
        return put(TypeTable::primitive(table_.wire_kind(type)), value, depth);
      case TypeKind::sequence:
        return sequence(type, index, value, depth);
      case TypeKind::array: {
        const bool header = has_collection_header(format_, table_, table_.types[type.element]);
        const std::size_t at = open_limit(header);
        ROPEWALK_RETURN_IF_ERROR(dimension(type, index, 0, value, depth));
        close_limit(header, at);
        return ok_status();
      }
      case TypeKind::structure:
        return structure(type, index, value, depth);
      case TypeKind::choice:
        return choice(type, index, value, depth);
    }
    return internal("a kind of type that no one knows");
  }

  Status bounded(std::uint64_t count, std::uint64_t bound) const {
    if (bound == 0 || count <= bound) return ok_status();
    return invalid_argument(fmt::format("{} elements, the bound is {}", count, bound));
  }

  Status string(const Type& type, std::uint32_t index, const Value* value) {
    std::string_view text;
    if (value != nullptr) {
      const auto held = value->as_string();
      if (!held.has_value()) return misfit(*value, index);
      text = *held;
    }
    ROPEWALK_RETURN_IF_ERROR(bounded(text.size(), type.count));
    number(static_cast<std::uint32_t>(text.size() + (format_.ros1 ? 0 : 1)));
    ByteWriter(out_).write(text);
    if (!format_.ros1) out_.push_back(0);
    return ok_status();
  }

  Status wide_string(const Type& type, std::uint32_t index, const Value* value) {
    std::string_view text;
    if (value != nullptr) {
      const auto held = value->as_string();
      if (!held.has_value()) return misfit(*value, index);
      text = *held;
    }
    std::vector<std::uint32_t> points;
    for (std::size_t i = 0; i < text.size();) {
      const auto first = static_cast<std::uint8_t>(text[i]);
      const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
      if (i + length > text.size() || (first >= 0x80 && first < 0xC2) || first > 0xF4) {
        return invalid_argument("wstring expected, text that is no UTF-8 found");
      }
      std::uint32_t point = length == 1 ? first : first & (0xFFU >> (length + 1));
      for (std::size_t k = 1; k < length; ++k) {
        point = point << 6 | (static_cast<std::uint8_t>(text[i + k]) & 63U);
      }
      i += length;
      if (point >= 0x10000 && format_.wide_unit == 2) {
        points.push_back(0xD800 + ((point - 0x10000) >> 10));
        points.push_back(0xDC00 + ((point - 0x10000) & 0x3FF));
      } else {
        points.push_back(point);
      }
    }
    ROPEWALK_RETURN_IF_ERROR(bounded(points.size(), type.count));
    number(static_cast<std::uint32_t>(points.size()));
    for (const std::uint32_t point : points) {
      if (format_.wide_unit == 4) {
        raw(point);
      } else {
        raw(static_cast<std::uint16_t>(point));
      }
    }
    return ok_status();
  }

  Status enumerator(const Type& type, std::uint32_t index, const Value* value) {
    const Enumeration& enumeration = table_.enumerations[type.definition];
    Value number(std::int64_t{0});
    if (value == nullptr) {
      if (!enumeration.values.empty()) number = Value(enumeration.values.front().second);
    } else if (const auto name = value->as_string()) {
      const auto found = std::ranges::find(enumeration.values, *name,
                                           [](const auto& entry) { return entry.first; });
      const auto whole = integer_of<std::int64_t>(*value);
      if (found == enumeration.values.end() && !whole.has_value()) return misfit(*value, index);
      number = Value(found == enumeration.values.end() ? *whole : found->second);
    } else {
      const auto whole = integer_of<std::int64_t>(*value);
      if (!whole.has_value()) return misfit(*value, index);
      number = Value(*whole);
    }
    return put(TypeTable::primitive(enumeration.storage), &number, 0);
  }

  std::size_t open_limit(bool header) {
    if (!header) return 0;
    number(std::uint32_t{0});
    return out_.size();
  }
  void close_limit(bool header, std::size_t begin) {
    if (header) patch_u32(begin - 4, out_.size() - begin);
  }

  // What a row may come as: numbers, an array, or bytes (also as base64).
  Result<std::size_t> row_size(const Value& value, std::uint32_t index, std::uint32_t element,
                               Bytes& decoded, Value& holder, const Value*& row) {
    row = &value;
    if (value.as_numbers() != nullptr || value.as_array() != nullptr) return value.size();
    const std::size_t size = primitive_size(table_.wire_kind(table_.types[element]));
    if (const auto text = value.as_string(); text.has_value() && size == 1) {
      auto bytes = from_base64(*text);
      if (!bytes.has_value()) return misfit(value, index);
      decoded = *std::move(bytes);
      holder = Value(Value::Numbers{.dtype = DType::uint8, .data = decoded});
      row = &holder;
      return decoded.size();
    }
    if (const auto bytes = value.as_binary(); bytes.has_value() && size == 1) {
      holder = Value(Value::Numbers{.dtype = DType::uint8, .data = *bytes});
      row = &holder;
      return bytes->size();
    }
    return misfit(value, index);
  }

  Status sequence(const Type& type, std::uint32_t index, const Value* value, std::uint32_t depth) {
    const bool header = has_collection_header(format_, table_, table_.types[type.element]);
    const std::size_t at = open_limit(header);
    Bytes decoded;
    Value holder;
    const Value* row = nullptr;
    std::size_t count = 0;
    if (value != nullptr) {
      ROPEWALK_ASSIGN_OR_RETURN(count, row_size(*value, index, type.element, decoded, holder, row));
    }
    ROPEWALK_RETURN_IF_ERROR(bounded(count, type.count));
    number(static_cast<std::uint32_t>(count));
    ROPEWALK_RETURN_IF_ERROR(elements(type.element, count, row, depth));
    close_limit(header, at);
    return ok_status();
  }

  Status dimension(const Type& type, std::uint32_t index, std::size_t axis, const Value* value,
                   std::uint32_t depth) {
    const std::uint32_t wanted = type.dims[axis];
    Bytes decoded;
    Value holder;
    const Value* row = nullptr;
    if (value != nullptr) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::size_t count,
                                row_size(*value, index, type.element, decoded, holder, row));
      if (count != wanted) {
        return invalid_argument(fmt::format("{} elements expected, {} found", wanted, count));
      }
    }
    if (axis + 1 == type.dims.size()) return elements(type.element, wanted, row, depth);
    for (std::uint32_t i = 0; i < wanted; ++i) {
      const Value* part =
          row == nullptr || row->as_array() == nullptr ? nullptr : &(*row->as_array())[i];
      ROPEWALK_RETURN_IF_ERROR(
          step(fmt::format("[{}]", i), dimension(type, index, axis + 1, part, depth)));
    }
    return ok_status();
  }

  Status elements(std::uint32_t element, std::size_t count, const Value* row, std::uint32_t depth) {
    const Value::Array* array = row == nullptr ? nullptr : row->as_array();
    const Value::Numbers* numbers = row == nullptr ? nullptr : row->as_numbers();
    for (std::size_t i = 0; i < count; ++i) {
      Value number;
      const Value* value = array != nullptr ? &(*array)[i] : nullptr;
      if (numbers != nullptr) {
        number = numbers->element(i);
        value = &number;
      }
      Status status = put(element, value, depth + 1);
      if (!status.ok()) return step(fmt::format("[{}]", i), std::move(status));
    }
    return ok_status();
  }

  Status known_members(const Value& value, std::uint32_t index,
                       const std::vector<Field>& fields) const {
    const Value::Object* object = value.as_object();
    if (object == nullptr) return misfit(value, index);
    for (const Value::Member& member : *object) {
      if (std::ranges::find(fields, member.name, &Field::name) == fields.end()) {
        return invalid_argument(
            fmt::format("{} has no field '{}'", table_.name_of(index), member.name));
      }
    }
    return ok_status();
  }

  Status structure(const Type& type, std::uint32_t index, const Value* value, std::uint32_t depth) {
    const Structure& structure = table_.structures[type.definition];
    const Extensibility kind = wire_extensibility(format_, structure.extensibility, depth == 0);
    if (value != nullptr) {
      ROPEWALK_RETURN_IF_ERROR(known_members(*value, index, structure.fields));
    }
    const bool header = format_.xcdr2 && kind != Extensibility::final;
    const std::size_t at = open_limit(header);
    for (const Field& field : structure.fields) {
      const Value* held = value == nullptr ? nullptr : value->find(field.name);
      if (held != nullptr && held->is_nil()) held = nullptr;
      if (kind == Extensibility::mutable_) {
        if (field.optional && held == nullptr) continue;
        ROPEWALK_RETURN_IF_ERROR(step(field.name, parameter(field, held, depth)));
      } else if (field.optional && format_.xcdr2) {
        out_.push_back(held == nullptr ? 0 : 1);
        if (held == nullptr) continue;
        ROPEWALK_RETURN_IF_ERROR(step(field.name, put(field.type, held, depth + 1)));
      } else if (field.optional) {
        ROPEWALK_RETURN_IF_ERROR(step(field.name, parameter(field, held, depth)));
      } else {
        ROPEWALK_RETURN_IF_ERROR(step(field.name, put(field.type, held, depth + 1)));
      }
    }
    if (kind == Extensibility::mutable_ && !format_.xcdr2) sentinel();
    if (structure.placeholder) out_.push_back(0);
    close_limit(header, at);
    return ok_status();
  }

  void sentinel() {
    number(std::uint32_t{0});  // both halves are aligned
    out_.resize(out_.size() - 4);
    raw(std::uint16_t{0x3F02});
    raw(std::uint16_t{0});
  }

  // A member behind a header with its id and its length; a missing optional one has length 0.
  Status parameter(const Field& field, const Value* value, std::uint32_t depth) {
    if (format_.xcdr2) {
      const std::uint32_t head = field.id | (field.must_understand ? 1U << 31 : 0U);
      const std::size_t size = primitive_size(table_.wire_kind(table_.types[field.type]));
      if (size >= 1 && size <= 8) {
        number(head | static_cast<std::uint32_t>(std::countr_zero(size)) << 28);
        return put(field.type, value, depth + 1);
      }
      number(head | 4U << 28);
      raw(std::uint32_t{0});
      const std::size_t begin = out_.size();
      ROPEWALK_RETURN_IF_ERROR(put(field.type, value, depth + 1));
      close_limit(true, begin);
      return ok_status();
    }
    align(4);
    // The long form always fits, so that the length need not be known first.
    raw(static_cast<std::uint16_t>(0x3F01 | (field.must_understand ? 0x4000 : 0)));
    raw(std::uint16_t{8});
    raw(field.id);
    raw(std::uint32_t{0});
    const std::size_t begin = out_.size();
    const std::size_t outer_origin = origin_;
    origin_ = begin;
    if (!field.optional || value != nullptr) {
      ROPEWALK_RETURN_IF_ERROR(put(field.type, value, depth + 1));
    }
    origin_ = outer_origin;
    patch_u32(begin - 4, out_.size() - begin);
    return ok_status();
  }

  Status choice(const Type& type, std::uint32_t index, const Value* value, std::uint32_t depth) {
    const Union& definition = table_.unions[type.definition];
    const Extensibility kind = wire_extensibility(format_, definition.extensibility, depth == 0);
    const Value* label = value == nullptr ? nullptr : value->find(kDiscriminatorName);
    const Case* chosen = nullptr;
    const Value* held = nullptr;
    if (value != nullptr) {
      if (value->as_object() == nullptr) return misfit(*value, index);
      for (const Value::Member& member : *value->as_object()) {
        if (member.name == kDiscriminatorName) continue;
        for (const Case& branch : definition.cases) {
          if (branch.field.name == member.name) chosen = &branch;
        }
        if (chosen == nullptr) {
          return invalid_argument(
              fmt::format("{} has no branch '{}'", definition.name, member.name));
        }
        held = &member.value;
      }
    } else if (!definition.cases.empty()) {
      chosen = &definition.cases.front();
    }
    Value number;
    if (label == nullptr && chosen != nullptr && !chosen->labels.empty()) {
      number = Value(chosen->labels.front());
      label = &number;
    }
    const bool header = format_.xcdr2 && kind != Extensibility::final;
    const bool parameters = kind == Extensibility::mutable_;
    const std::size_t at = open_limit(header);
    const Field discriminator{.name = std::string(kDiscriminatorName),
                              .type = definition.discriminator};
    ROPEWALK_RETURN_IF_ERROR(
        step(discriminator.name, parameters ? parameter(discriminator, label, depth)
                                            : put(discriminator.type, label, depth + 1)));
    if (chosen != nullptr) {
      ROPEWALK_RETURN_IF_ERROR(
          step(chosen->field.name, parameters ? parameter(chosen->field, held, depth)
                                              : put(chosen->field.type, held, depth + 1)));
    }
    if (parameters && !format_.xcdr2) sentinel();
    close_limit(header, at);
    return ok_status();
  }

  const TypeTable& table_;
  const WireFormat format_;
  Bytes out_;
  std::size_t origin_ = 0;
  std::vector<std::string> path_;  // innermost first
};

bool uses_extensions(const TypeTable& table) {
  const auto extended = [](Extensibility kind) {
    return kind == Extensibility::appendable || kind == Extensibility::mutable_;
  };
  for (const Structure& structure : table.structures) {
    if (extended(structure.extensibility)) return true;
    if (std::ranges::any_of(structure.fields, &Field::optional)) return true;
  }
  return std::ranges::any_of(table.unions,
                             [&](const Union& choice) { return extended(choice.extensibility); });
}

}  // namespace

Result<Bytes> encode_wire(const TypeTable& table, const WireFormat& format, const Value& value) {
  return Encoder(table, format).run(value);
}

Result<Bytes> encode_cdr(const TypeTable& table, const Value& value) {
  WireFormat format;
  if (uses_extensions(table)) {
    const Type& root = table.types[table.root];
    Extensibility kind = Extensibility::final;
    if (root.kind == TypeKind::structure) kind = table.structures[root.definition].extensibility;
    if (root.kind == TypeKind::choice) kind = table.unions[root.definition].extensibility;
    format.xcdr2 = true;
    format.max_alignment = 4;
    format.delimited = kind == Extensibility::appendable;
    format.parameter_list = kind == Extensibility::mutable_;
  }
  return encode_wire(table, format, value);
}

}  // namespace ropewalk::message
