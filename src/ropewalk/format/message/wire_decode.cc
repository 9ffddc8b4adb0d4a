// CDR and ROS 1 payloads to values.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "ropewalk/format/message/wire_internal.h"

namespace ropewalk::message {
namespace {

// A value that takes no byte may be repeated only so often: its count is bounded by nothing else.
constexpr std::uint64_t kMaxEmptyElements = 65536;
constexpr std::uint64_t kMaxValues = 1ULL << 24;
constexpr std::uint64_t kValuesPerByte = 64;
constexpr std::size_t kMaxPadding = 3;

constexpr std::uint32_t kSentinelPid = 0x3F02;
constexpr std::uint32_t kExtendedPid = 0x3F01;
constexpr std::uint32_t kPidMask = 0x3FFF;

// Nearest double of an IEEE binary128, given as two halves.
double double_of_quad(std::uint64_t low, std::uint64_t high) {
  const bool negative = (high >> 63) != 0;
  const auto exponent = static_cast<int>(high >> 48 & 0x7FFF);
  const std::uint64_t top = high & 0xFFFFFFFFFFFFULL;
  double magnitude = 0.0;
  if (exponent == 0x7FFF) {
    magnitude = (top | low) == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent != 0) {
    // 64 bits of the significand, the last one sticky, round once into a double.
    const std::uint64_t bits =
        1ULL << 63 | top << 15 | low >> 49 | ((low << 15) != 0 ? 1ULL : 0ULL);
    magnitude = std::ldexp(static_cast<double>(bits), exponent - 16383 - 63);
  }
  return negative ? -magnitude : magnitude;
}

std::optional<DType> numbers_dtype(TypeKind kind) {
  switch (kind) {
    case TypeKind::boolean:
      return DType::boolean;
    case TypeKind::int8:
      return DType::int8;
    case TypeKind::uint8:
      return DType::uint8;
    case TypeKind::int16:
      return DType::int16;
    case TypeKind::uint16:
    case TypeKind::wchar:
      return DType::uint16;
    case TypeKind::int32:
      return DType::int32;
    case TypeKind::uint32:
      return DType::uint32;
    case TypeKind::int64:
      return DType::int64;
    case TypeKind::uint64:
      return DType::uint64;
    case TypeKind::float32:
      return DType::float32;
    case TypeKind::float64:
      return DType::float64;
    case TypeKind::float128:
    case TypeKind::time:
    case TypeKind::duration:
    case TypeKind::string:
    case TypeKind::wstring:
    case TypeKind::enumeration:
    case TypeKind::bitmask:
    case TypeKind::sequence:
    case TypeKind::array:
    case TypeKind::structure:
    case TypeKind::choice:
      break;
  }
  return std::nullopt;
}

// Walks one payload. Members return false after an error; `status_` says what, and the steps of the
// path are collected while unwinding.
class Decoder {
 public:
  Decoder(const TypeTable& table, const WireFormat& format, ByteSpan payload, Arena& arena,
          const Limits& limits)
      : table_(table),
        format_(format),
        payload_(payload),
        arena_(arena),
        limits_(limits),
        position_(format.ros1 ? 0 : kEncapsulationBytes),
        end_(payload.size()),
        origin_(format.origin),
        budget_(std::min<std::uint64_t>(kMaxValues, 65536 + kValuesPerByte * payload.size())) {}

  Status run(Value& out) {
    if (value(table_.root, 0, out)) return ok_status();
    std::string path;
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
      if (!path.empty() && step->front() != '[') path += '.';
      path += *step;
    }
    return path.empty() ? status_ : status_.with_context(path);
  }
  std::size_t left() const { return end_ - position_; }
  bool odd_text() const { return odd_text_; }

 private:
  bool fail(Status status) {
    status_ = std::move(status);
    return false;
  }
  bool cut(std::uint64_t needed) {
    return fail(data_loss(
        fmt::format("byte {}: {} bytes expected, {} left", position_, needed, end_ - position_)));
  }
  bool spend() {
    if (budget_-- > 0) return true;
    budget_ = 0;
    return fail(resource_exhausted(fmt::format(
        "byte {}: more values than a payload of {} bytes may hold", position_, payload_.size())));
  }

  bool align(std::size_t size) {
    const std::size_t to = std::min(size, format_.max_alignment);
    const std::size_t past = (position_ - origin_) & (to - 1);
    if (past == 0) return true;
    if (to - past > end_ - position_) return cut(to - past);
    position_ += to - past;
    return true;
  }
  template <typename T>
  bool raw(T& out) {
    if (sizeof(T) > end_ - position_) return cut(sizeof(T));
    std::uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, payload_.data() + position_, sizeof(T));
    if (format_.swapped) std::reverse(bytes, bytes + sizeof(T));
    std::memcpy(&out, bytes, sizeof(T));
    position_ += sizeof(T);
    return true;
  }
  template <typename T>
  bool number(T& out) {
    return align(sizeof(T)) && raw(out);
  }
  template <typename T, typename Wide = T>
  bool number_value(Value& out) {
    T read{};
    if (!number(read)) return false;
    out.variant() = static_cast<Wide>(read);
    return true;
  }

  bool value(std::uint32_t index, std::uint32_t depth, Value& out) {
    const Type& type = table_.types[index];
    switch (type.kind) {
      case TypeKind::boolean: {
        std::uint8_t flag = 0;
        if (!raw(flag)) return false;
        out.variant() = flag != 0;
        return true;
      }
      case TypeKind::int8:
        return number_value<std::int8_t, std::int64_t>(out);
      case TypeKind::uint8:
        return number_value<std::uint8_t, std::uint64_t>(out);
      case TypeKind::int16:
        return number_value<std::int16_t, std::int64_t>(out);
      case TypeKind::uint16:
        return number_value<std::uint16_t, std::uint64_t>(out);
      case TypeKind::int32:
        return number_value<std::int32_t, std::int64_t>(out);
      case TypeKind::uint32:
        return number_value<std::uint32_t, std::uint64_t>(out);
      case TypeKind::int64:
        return number_value<std::int64_t>(out);
      case TypeKind::uint64:
        return number_value<std::uint64_t>(out);
      case TypeKind::float32:
        return number_value<float>(out);
      case TypeKind::float64:
        return number_value<double>(out);
      case TypeKind::float128:
        return quad(out);
      case TypeKind::wchar:
        return format_.wide_unit == 4 ? number_value<std::uint32_t, std::uint64_t>(out)
                                      : number_value<std::uint16_t, std::uint64_t>(out);
      case TypeKind::time:
        return time<std::uint32_t>(out);
      case TypeKind::duration:
        return time<std::int32_t>(out);
      case TypeKind::string:
        return string(type, out);
      case TypeKind::wstring:
        return wide_string(type, out);
      case TypeKind::enumeration:
        return enumerator(type, out);
      case TypeKind::bitmask:
        return value(TypeTable::primitive(table_.wire_kind(type)), depth, out);
      case TypeKind::sequence:
        return sequence(type, depth, out);
      case TypeKind::array:
        return array(type, depth, out);
      case TypeKind::structure:
        return structure(type, depth, out);
      case TypeKind::choice:
        return choice(type, depth, out);
    }
    return false;
  }

  bool quad(Value& out) {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    if (!align(8) || !raw(first) || !raw(second)) return false;
    if (format_.swapped) std::swap(first, second);
    out.variant() = double_of_quad(first, second);
    return true;
  }

  template <typename T>
  bool time(Value& out) {
    T sec = 0;
    T nsec = 0;
    if (!number(sec) || !number(nsec)) return false;
    out.variant() = Value::Time{.sec = sec, .nsec = nsec};
    return true;
  }

  bool bounded(std::string_view what, std::uint64_t count, std::uint64_t bound) {
    if (bound == 0 || count <= bound) return true;
    return fail(data_loss(
        fmt::format("byte {}: a {} of {}, its bound is {}", position_, what, count, bound)));
  }

  bool string(const Type& type, Value& out) {
    std::uint32_t length = 0;
    if (!number(length)) return false;
    if (length > end_ - position_) return cut(length);
    std::string_view text = as_text(payload_.subspan(position_, length));
    position_ += length;
    if (!format_.ros1 && !text.empty() && text.back() == '\0') text.remove_suffix(1);
    if (!bounded("string", text.size(), type.count)) return false;
    out.variant() = text;
    return true;
  }

  bool wide_string(const Type& type, Value& out) {
    std::uint32_t count = 0;
    if (!number(count)) return false;
    const std::uint64_t bytes = std::uint64_t{count} * format_.wide_unit;
    if (bytes > end_ - position_) return cut(bytes);
    if (!bounded("wide string", count, type.count)) return false;
    std::string text;
    std::uint32_t high = 0;  // a surrogate that waits for its other half
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t unit = 0;
      if (format_.wide_unit == 4) {
        if (!raw(unit)) return false;
      } else {
        std::uint16_t half = 0;
        if (!raw(half)) return false;
        unit = half;
      }
      odd_text_ = odd_text_ || unit == 0 || unit > 0x10FFFF;
      if (high != 0 && unit >= 0xDC00 && unit <= 0xDFFF) {
        append_utf8(0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00), text);
        high = 0;
        continue;
      }
      if (high != 0) append_utf8(0xFFFD, text);
      high = unit >= 0xD800 && unit <= 0xDBFF ? unit : 0;
      if (high == 0) append_utf8(unit, text);
    }
    if (high != 0) append_utf8(0xFFFD, text);
    out.variant() = arena_.keep(text);
    return true;
  }
  static void append_utf8(std::uint32_t point, std::string& out) {
    const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) point = 0xFFFD;
    if (point < 0x80) {
      put(point);
    } else if (point < 0x800) {
      put(0xC0 | point >> 6);
      put(0x80 | (point & 63));
    } else if (point < 0x10000) {
      put(0xE0 | point >> 12);
      put(0x80 | (point >> 6 & 63));
      put(0x80 | (point & 63));
    } else {
      put(0xF0 | point >> 18);
      put(0x80 | (point >> 12 & 63));
      put(0x80 | (point >> 6 & 63));
      put(0x80 | (point & 63));
    }
  }

  bool enumerator(const Type& type, Value& out) {
    const Enumeration& enumeration = table_.enumerations[type.definition];
    if (!value(TypeTable::primitive(enumeration.storage), 0, out)) return false;
    const std::int64_t number = out.as_int64().value_or(0);
    const std::string* name = enumeration.name_of(number);
    out.variant() = Value::Enumerator{
        .number = number, .name = name == nullptr ? std::string_view() : std::string_view(*name)};
    return true;
  }

  // Numbers side by side: a view when they lie as they are wanted, else swapped into the arena.
  bool numbers(DType dtype, std::uint64_t count, Value& out) {
    const std::size_t size = dtype_size(dtype);
    // Elements are aligned, so where there are none there is no padding either.
    if (count > 0 && !align(size)) return false;
    if (count > (end_ - position_) / size)
      return cut(count > UINT64_MAX / size ? count : count * size);
    const ByteSpan bytes = payload_.subspan(position_, static_cast<std::size_t>(count) * size);
    position_ += bytes.size();
    Value::Numbers row{.dtype = dtype, .data = bytes};
    if (format_.swapped && size > 1) {
      const MutableByteSpan copy = arena_.allocate(bytes.size());
      for (std::size_t i = 0; i < bytes.size(); i += size) {
        std::reverse_copy(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                          bytes.begin() + static_cast<std::ptrdiff_t>(i + size),
                          copy.begin() + static_cast<std::ptrdiff_t>(i));
      }
      row.data = copy;
    }
    out.variant() = row;
    return true;
  }

  bool enter(std::uint32_t depth) {
    if (depth < limits_.max_json_depth) return true;
    return fail(resource_exhausted(
        fmt::format("byte {}: nested deeper than {} levels", position_, limits_.max_json_depth)));
  }

  // Reads a length before an object and narrows the end to it.
  bool open_limit(std::size_t& outer_end) {
    std::uint32_t size = 0;
    if (!number(size)) return false;
    if (size > end_ - position_) return cut(size);
    outer_end = end_;
    end_ = position_ + size;
    return true;
  }
  void close_limit(std::size_t outer_end) {
    position_ = end_;
    end_ = outer_end;
  }

  bool sequence(const Type& type, std::uint32_t depth, Value& out) {
    const Type& element = table_.types[type.element];
    const bool header = has_collection_header(format_, table_, element);
    std::size_t outer_end = 0;
    if (header && !open_limit(outer_end)) return false;
    std::uint32_t count = 0;
    if (!number(count)) return false;
    if (!bounded("sequence", count, type.count)) return false;
    if (!elements(type.element, count, depth, out)) return false;
    if (header) close_limit(outer_end);
    return true;
  }

  bool array(const Type& type, std::uint32_t depth, Value& out) {
    const bool header = has_collection_header(format_, table_, table_.types[type.element]);
    std::size_t outer_end = 0;
    if (header && !open_limit(outer_end)) return false;
    if (!dimension(type, 0, depth, out)) return false;
    if (header) close_limit(outer_end);
    return true;
  }

  bool dimension(const Type& type, std::size_t axis, std::uint32_t depth, Value& out) {
    if (axis + 1 >= type.dims.size()) return elements(type.element, type.dims.back(), depth, out);
    if (!enter(depth)) return false;
    Value::Array rows;
    for (std::uint32_t i = 0; i < type.dims[axis]; ++i) {
      if (!spend()) return false;
      if (!dimension(type, axis + 1, depth + 1, rows.emplace_back())) return step(i);
    }
    out.variant() = std::move(rows);
    return true;
  }

  bool elements(std::uint32_t index, std::uint64_t count, std::uint32_t depth, Value& out) {
    const Type& type = table_.types[index];
    if (const auto dtype = numbers_dtype(type.kind);
        dtype.has_value() && !(type.kind == TypeKind::wchar && format_.wide_unit == 4)) {
      return numbers(*dtype, count, out);
    }
    if (!enter(depth)) return false;
    const std::uint64_t most = type.min_bytes == 0
                                   ? std::max<std::uint64_t>(kMaxEmptyElements, left())
                                   : left() / type.min_bytes;
    if (count > most) {
      return fail(data_loss(fmt::format("byte {}: {} elements of at least {} bytes, {} bytes left",
                                        position_, count, type.min_bytes, left())));
    }
    Value::Array array;
    array.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(count, 4096)));
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!spend()) return false;
      if (!value(index, depth + 1, array.emplace_back())) return step(i);
    }
    out.variant() = std::move(array);
    return true;
  }

  bool step(std::uint64_t element) {
    path_.push_back(fmt::format("[{}]", element));
    return false;
  }
  bool step(const Field& field) {
    path_.push_back(field.name);
    return false;
  }

  bool structure(const Type& type, std::uint32_t depth, Value& out) {
    if (!enter(depth)) return false;
    const Structure& structure = table_.structures[type.definition];
    const Extensibility kind = wire_extensibility(format_, structure.extensibility, depth == 0);
    Value::Object members;
    members.reserve(structure.fields.size());
    for (const Field& field : structure.fields) {
      if (!spend()) return false;
      members.push_back({field.name, Value()});
    }
    std::size_t outer_end = 0;
    const bool header = format_.xcdr2 && kind != Extensibility::final;
    if (header && !open_limit(outer_end)) return false;
    if (kind == Extensibility::mutable_) {
      if (!mutable_members(structure.fields, depth, members)) return false;
    } else {
      for (std::size_t i = 0; i < members.size(); ++i) {
        // An older writer knew fewer members of an appendable type.
        if (header && position_ == end_) break;
        if (!member(structure.fields[i], depth, members[i].value)) return false;
      }
    }
    if (header) close_limit(outer_end);
    // Some writers leave the byte of an empty structure out at the end of the message.
    if (structure.placeholder && position_ < end_) ++position_;
    out.variant() = std::move(members);
    return true;
  }

  // A member of a structure that is not mutable.
  bool member(const Field& field, std::uint32_t depth, Value& out) {
    if (!field.optional) return value(field.type, depth + 1, out) || step(field);
    if (format_.xcdr2) {
      std::uint8_t present = 0;
      if (!raw(present)) return step(field);
      return present == 0 || value(field.type, depth + 1, out) || step(field);
    }
    Parameter parameter;
    if (!open_parameter(parameter)) return step(field);
    if (parameter.size > 0 && !value(field.type, depth + 1, out)) return step(field);
    close_parameter(parameter);
    return true;
  }

  struct Parameter {
    std::uint32_t id = 0;
    std::uint64_t size = 0;
    bool must_understand = false;
    bool sentinel = false;
    std::size_t begin = 0;
    std::size_t outer_end = 0;
    std::size_t outer_origin = 0;
  };

  // XCDR1: a header of 4 or 12 bytes; alignment counts anew behind it.
  bool open_parameter(Parameter& out) {
    std::uint16_t id = 0;
    std::uint16_t size = 0;
    if (!align(4) || !raw(id) || !raw(size)) return false;
    out.id = id & kPidMask;
    out.must_understand = (id & 0x4000) != 0;
    out.size = size;
    out.sentinel = out.id == kSentinelPid;
    if (out.sentinel) return true;
    if (out.id == kExtendedPid) {
      std::uint32_t wide = 0;
      std::uint32_t wide_size = 0;
      if (!raw(wide) || !raw(wide_size)) return false;
      out.id = wide & 0x0FFFFFFF;
      out.size = wide_size;
    }
    return enter_parameter(out);
  }
  bool enter_parameter(Parameter& out) {
    if (out.size > end_ - position_) return cut(out.size);
    out.begin = position_;
    out.outer_end = end_;
    out.outer_origin = origin_;
    if (!format_.xcdr2) origin_ = position_;
    end_ = position_ + static_cast<std::size_t>(out.size);
    return true;
  }
  void close_parameter(const Parameter& parameter) {
    position_ = parameter.begin + static_cast<std::size_t>(parameter.size);
    end_ = parameter.outer_end;
    origin_ = parameter.outer_origin;
  }

  // XCDR2: EMHEADER = must_understand << 31 | length code << 28 | id.
  bool open_member(Parameter& out) {
    std::uint32_t header = 0;
    if (!number(header)) return false;
    const std::uint32_t code = header >> 28 & 7;
    out.id = header & 0x0FFFFFFF;
    out.must_understand = (header >> 31) != 0;
    if (code < 4) {
      out.size = std::uint64_t{1} << code;
      return enter_parameter(out);
    }
    const std::size_t at = position_;
    std::uint32_t next = 0;
    if (!raw(next)) return false;
    if (code == 4) {
      out.size = next;
      return enter_parameter(out);
    }
    // From code 5 on the number is part of the member: the length that it begins with.
    position_ = at;
    out.size = 4 + std::uint64_t{next} * (code == 5 ? 1 : code == 6 ? 4 : 8);
    return enter_parameter(out);
  }

  bool mutable_members(const std::vector<Field>& fields, std::uint32_t depth,
                       Value::Object& members) {
    std::size_t expected = 0;  // members mostly come in the order of the schema
    while (true) {
      if (format_.xcdr2 && end_ - position_ < 4) return true;
      Parameter parameter;
      if (!(format_.xcdr2 ? open_member(parameter) : open_parameter(parameter))) return false;
      if (parameter.sentinel) return true;
      std::size_t at = expected;
      for (std::size_t i = 0; i < fields.size(); ++i, ++at) {
        if (at >= fields.size()) at = 0;
        if (fields[at].id == parameter.id) break;
        if (i + 1 == fields.size()) at = fields.size();
      }
      if (fields.empty()) at = 0;
      if (at < fields.size()) {
        const bool absent = parameter.size == 0 && fields[at].optional;
        if (!absent && !value(fields[at].type, depth + 1, members[at].value)) {
          return step(fields[at]);
        }
        expected = at + 1;
      } else if (parameter.must_understand) {
        return fail(
            data_loss(fmt::format("byte {}: member {} must be understood and is not in the schema",
                                  position_, parameter.id)));
      }
      close_parameter(parameter);
    }
  }

  bool choice(const Type& type, std::uint32_t depth, Value& out) {
    if (!enter(depth)) return false;
    const Union& definition = table_.unions[type.definition];
    const Extensibility kind = wire_extensibility(format_, definition.extensibility, depth == 0);
    std::size_t outer_end = 0;
    const bool header = format_.xcdr2 && kind != Extensibility::final;
    if (header && !open_limit(outer_end)) return false;
    const bool parameters = kind == Extensibility::mutable_;
    Parameter parameter;
    if (parameters && !(format_.xcdr2 ? open_member(parameter) : open_parameter(parameter))) {
      return false;
    }
    Value discriminator;
    if (!value(definition.discriminator, depth + 1, discriminator)) return false;
    if (parameters) close_parameter(parameter);

    const std::int64_t label = discriminator.as_bool().has_value()
                                   ? std::int64_t{*discriminator.as_bool()}
                                   : discriminator.as_int64().value_or(0);
    const Case* chosen = nullptr;
    for (const Case& branch : definition.cases) {
      if (std::ranges::find(branch.labels, label) != branch.labels.end()) chosen = &branch;
    }
    for (const Case& branch : definition.cases) {
      if (chosen == nullptr && branch.is_default) chosen = &branch;
    }
    Value::Object members;
    members.push_back({kDiscriminatorName, std::move(discriminator)});
    if (chosen != nullptr) {
      if (!spend()) return false;
      members.push_back({chosen->field.name, Value()});
      Parameter branch;
      if (parameters && !(format_.xcdr2 ? open_member(branch) : open_parameter(branch))) {
        return false;
      }
      if (!value(chosen->field.type, depth + 1, members.back().value)) return step(chosen->field);
      if (parameters) close_parameter(branch);
    }
    if (parameters && !format_.xcdr2) {
      Parameter sentinel;
      if (!open_parameter(sentinel)) return false;
      if (!sentinel.sentinel) close_parameter(sentinel);
    }
    if (header) close_limit(outer_end);
    out.variant() = std::move(members);
    return true;
  }

  const TypeTable& table_;
  const WireFormat& format_;
  ByteSpan payload_;
  Arena& arena_;
  const Limits& limits_;
  std::size_t position_;
  std::size_t end_;
  std::size_t origin_;
  std::uint64_t budget_;
  bool odd_text_ = false;  // wide strings have characters that no writer puts there
  Status status_;
  std::vector<std::string> path_;  // innermost first
};

}  // namespace

Result<WireFormat> read_encapsulation(ByteSpan payload) {
  if (payload.size() < kEncapsulationBytes) {
    return data_loss(fmt::format("byte 0: a CDR encapsulation header of {} bytes expected, {} left",
                                 kEncapsulationBytes, payload.size()));
  }
  const std::uint8_t kind = payload[1];
  WireFormat out;
  out.swapped = kind % 2 == 0;
  switch (kind & 0xFE) {
    case 0x00:
      return out;
    case 0x02:
      out.parameter_list = true;
      return out;
    case 0x06:
    case 0x10:
      break;
    case 0x08:
    case 0x14:
      out.delimited = true;
      break;
    case 0x0A:
    case 0x12:
      out.parameter_list = true;
      break;
    default:
      return data_loss(fmt::format("byte 1: CDR encapsulation {:#04x} is not known", kind));
  }
  out.xcdr2 = true;
  out.max_alignment = 4;
  return out;
}

bool has_collection_header(const WireFormat& format, const TypeTable& table, const Type& element) {
  if (!format.xcdr2 || !format.type_headers) return false;
  if (element.kind == TypeKind::enumeration || element.kind == TypeKind::bitmask) {
    return !format.bare_enums;
  }
  return static_cast<std::uint32_t>(table.wire_kind(element)) >= kPrimitiveKinds;
}

Status decode_cdr(const TypeTable& table, bool idl, ByteSpan payload, const Limits& limits,
                  Message& out) {
  ROPEWALK_ASSIGN_OR_RETURN(const WireFormat stated, read_encapsulation(payload));
  std::vector<WireFormat> readings = {stated};
  // Each question that the encapsulation leaves open doubles the readings; the likely ones come
  // first, and only a reading that fails makes the next one necessary.
  const auto either = [&](const auto& change) {
    const std::size_t count = readings.size();
    for (std::size_t i = 0; i < count; ++i) change(readings.emplace_back(readings[i]));
  };
  // Fast-CDR 1 wrote four bytes a character, Fast-CDR 2 writes two.
  if (table.has_wide_strings) either([](WireFormat& format) { format.wide_unit = 4; });
  // By XTypes an enumeration is no primitive; Fast-CDR takes it for one.
  if (stated.xcdr2 && table.has_enum_rows)
    either([](WireFormat& format) { format.bare_enums = true; });
  // RTI Connext Micro counts alignment from the encapsulation header.
  if (idl && !stated.xcdr2) either([](WireFormat& format) { format.origin = 0; });
  // Some writers follow the encapsulation and not the extensibility of each type.
  if (idl && !stated.delimited) either([](WireFormat& format) { format.type_headers = false; });
  Status first;
  std::size_t fallback = readings.size();
  for (std::size_t i = 0; i < readings.size(); ++i) {
    Decoder decoder(table, readings[i], payload, out.arena(), limits);
    Status status = decoder.run(out.root());
    if (status.ok()) {
      if (readings.size() == 1) return status;
      if (decoder.left() <= kMaxPadding && !decoder.odd_text()) return status;
      fallback = std::min(fallback, i);
    }
    if (i == 0) first = std::move(status);
  }
  // None fits to the last byte: the first that fits at all, for trailing bytes are allowed.
  if (fallback == readings.size()) return first;
  return Decoder(table, readings[fallback], payload, out.arena(), limits).run(out.root());
}

Status decode_ros1(const TypeTable& table, ByteSpan payload, const Limits& limits, Message& out) {
  return Decoder(table, ros1_format(), payload, out.arena(), limits).run(out.root());
}

}  // namespace ropewalk::message
