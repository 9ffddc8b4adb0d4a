#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "ropewalk/format/message/type_table_internal.h"

namespace ropewalk::message {
namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > kHuge - b ? kHuge : a + b;
}
std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kHuge / b ? kHuge : a * b;
}

// Walks the types that stand inside one another without a length between them.
class Measurer {
 public:
  Measurer(TypeTable& table, const Limits& limits)
      : table_(table), limits_(limits), states_(table.types.size(), State::fresh) {}

  Status measure(std::uint32_t index, std::uint32_t depth) {
    if (depth > limits_.max_json_depth) {
      return resource_exhausted(fmt::format("{}: types nest deeper than {} levels",
                                            table_.name_of(index), limits_.max_json_depth));
    }
    if (states_[index] == State::done) return ok_status();
    if (states_[index] == State::open) {
      return data_loss(fmt::format("{} contains itself", table_.name_of(index)));
    }
    states_[index] = State::open;
    std::uint64_t bytes = 0;
    const Type type = table_.types[index];
    switch (type.kind) {
      case TypeKind::string:
      case TypeKind::sequence:
      case TypeKind::wstring:
        bytes = 4;
        break;
      case TypeKind::enumeration:
      case TypeKind::bitmask:
        bytes = primitive_size(table_.wire_kind(type));
        break;
      case TypeKind::array:
        ROPEWALK_RETURN_IF_ERROR(measure(type.element, depth + 1));
        bytes = saturating_multiply(type.count, table_.types[type.element].min_bytes);
        break;
      case TypeKind::structure: {
        const Structure& structure = table_.structures[type.definition];
        for (const Field& field : structure.fields) {
          if (field.optional) {
            bytes = saturating_add(bytes, 1);
            continue;
          }
          ROPEWALK_RETURN_IF_ERROR(measure(field.type, depth + 1));
          bytes = saturating_add(bytes, table_.types[field.type].min_bytes);
        }
        // What may be cut short has at least a header, or one byte.
        if (structure.extensibility != Extensibility::final || structure.placeholder) {
          bytes = std::min<std::uint64_t>(bytes, 1);
        }
        break;
      }
      case TypeKind::choice: {
        const Union& choice = table_.unions[type.definition];
        for (const Case& branch : choice.cases) {
          ROPEWALK_RETURN_IF_ERROR(measure(branch.field.type, depth + 1));
        }
        ROPEWALK_RETURN_IF_ERROR(measure(choice.discriminator, depth + 1));
        bytes = table_.types[choice.discriminator].min_bytes;
        break;
      }
      case TypeKind::boolean:
      case TypeKind::int8:
      case TypeKind::uint8:
      case TypeKind::int16:
      case TypeKind::uint16:
      case TypeKind::int32:
      case TypeKind::uint32:
      case TypeKind::int64:
      case TypeKind::uint64:
      case TypeKind::float32:
      case TypeKind::float64:
      case TypeKind::float128:
      case TypeKind::wchar:
      case TypeKind::time:
      case TypeKind::duration:
        bytes = primitive_size(type.kind);
        break;
    }
    table_.types[index].min_bytes = bytes;
    states_[index] = State::done;
    return ok_status();
  }

 private:
  enum class State : std::uint8_t { fresh, open, done };

  TypeTable& table_;
  const Limits& limits_;
  std::vector<State> states_;
};

}  // namespace

const std::string* Enumeration::name_of(std::int64_t value) const {
  for (const auto& [text, number] : values) {
    if (number == value) return &text;
  }
  return nullptr;
}

TypeTable::TypeTable() {
  for (std::uint32_t kind = 0; kind < kPrimitiveKinds; ++kind) {
    types.push_back(Type{.kind = static_cast<TypeKind>(kind)});
  }
}

std::uint32_t TypeTable::add(Type type) {
  types.push_back(std::move(type));
  return static_cast<std::uint32_t>(types.size() - 1);
}

std::uint32_t TypeTable::array_of(std::uint32_t element, std::vector<std::uint32_t> dims) {
  std::uint64_t count = 1;
  for (const std::uint32_t dim : dims) count = saturating_multiply(count, dim);
  return add(
      {.kind = TypeKind::array, .element = element, .count = count, .dims = std::move(dims)});
}

std::uint32_t TypeTable::sequence_of(std::uint32_t element, std::uint64_t bound) {
  return add({.kind = TypeKind::sequence, .element = element, .count = bound});
}

Status TypeTable::finish(const Limits& limits) {
  Measurer measurer(*this, limits);
  for (std::uint32_t i = 0; i < types.size(); ++i) {
    ROPEWALK_RETURN_IF_ERROR(measurer.measure(i, 0));
    if (types[i].kind == TypeKind::wstring) has_wide_strings = true;
    if (types[i].kind == TypeKind::sequence || types[i].kind == TypeKind::array) {
      const TypeKind element = types[types[i].element].kind;
      has_enum_rows =
          has_enum_rows || element == TypeKind::enumeration || element == TypeKind::bitmask;
    }
  }
  return ok_status();
}

std::string TypeTable::name_of(std::uint32_t index) const {
  constexpr std::string_view kNames[] = {
      "bool",    "int8",    "uint8",    "int16", "uint16", "int32",    "uint32", "int64",  "uint64",
      "float32", "float64", "float128", "wchar", "time",   "duration", "string", "wstring"};
  const Type& type = types[index];
  switch (type.kind) {
    case TypeKind::structure:
      return structures[type.definition].name;
    case TypeKind::choice:
      return unions[type.definition].name;
    case TypeKind::enumeration:
    case TypeKind::bitmask:
      return enumerations[type.definition].name;
    case TypeKind::array:
      return fmt::format("{}[{}]", name_of(type.element), type.count);
    case TypeKind::sequence:
      return name_of(type.element) + "[]";
    default:
      return std::string(kNames[static_cast<std::size_t>(type.kind)]);
  }
}

std::size_t primitive_size(TypeKind kind) {
  switch (kind) {
    case TypeKind::boolean:
    case TypeKind::int8:
    case TypeKind::uint8:
      return 1;
    case TypeKind::int16:
    case TypeKind::uint16:
    case TypeKind::wchar:
      return 2;
    case TypeKind::int32:
    case TypeKind::uint32:
    case TypeKind::float32:
      return 4;
    case TypeKind::int64:
    case TypeKind::uint64:
    case TypeKind::float64:
    case TypeKind::time:
    case TypeKind::duration:
      return 8;
    case TypeKind::float128:
      return 16;
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
  return 0;
}

std::size_t primitive_alignment(TypeKind kind) {
  return kind == TypeKind::time || kind == TypeKind::duration
             ? 4
             : std::min<std::size_t>(primitive_size(kind), 8);
}

}  // namespace ropewalk::message
