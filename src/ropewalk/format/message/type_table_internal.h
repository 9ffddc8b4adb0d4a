#pragma once
// TypeTable: the types of one schema in flat tables, as the wire formats CDR and ROS 1 need them.
// The parsers of .msg and IDL texts fill it; decoder, encoder and row extractor walk it.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk::message {

enum class TypeKind : std::uint8_t {
  boolean,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64,
  float128,
  wchar,
  time,      ///< ROS 1: two uint32
  duration,  ///< ROS 1: two int32
  // The kinds above have one type each, whose index is the number of the kind.
  string,
  wstring,
  enumeration,
  bitmask,
  sequence,
  array,
  structure,
  choice,  ///< union
};
constexpr std::uint32_t kPrimitiveKinds = static_cast<std::uint32_t>(TypeKind::string);

struct Type {
  TypeKind kind = TypeKind::uint8;
  std::uint32_t element = 0;     ///< of a sequence or an array: index of a type
  std::uint32_t definition = 0;  ///< index of the structure, union or enumeration
  std::uint64_t count = 0;  ///< elements of an array; bound of a sequence or string, 0 for none
  std::vector<std::uint32_t> dims;  ///< of an array
  std::uint64_t min_bytes = 0;      ///< no value takes less on the wire
};

enum class Extensibility : std::uint8_t { unspecified, final, appendable, mutable_ };

struct Field {
  std::string name;
  std::uint32_t type = 0;
  std::uint32_t id = 0;
  bool optional = false;
  bool key = false;
  bool must_understand = false;
};

struct Structure {
  std::string name;
  std::vector<Field> fields;
  Extensibility extensibility = Extensibility::unspecified;
  bool placeholder = false;  ///< ROS 2: a structure without fields is one byte on the wire
};

struct Case {
  std::vector<std::int64_t> labels;
  bool is_default = false;
  Field field;
};

struct Union {
  std::string name;
  std::uint32_t discriminator = 0;  ///< a type
  std::vector<Case> cases;
  Extensibility extensibility = Extensibility::unspecified;
};

struct Enumeration {
  std::string name;
  TypeKind storage = TypeKind::int32;                        ///< of a bitmask: an unsigned kind
  std::vector<std::pair<std::string, std::int64_t>> values;  ///< of a bitmask: flag and position
  const std::string* name_of(std::int64_t value) const;
};

class TypeTable {
 public:
  TypeTable();

  std::uint32_t add(Type type);
  static std::uint32_t primitive(TypeKind kind) { return static_cast<std::uint32_t>(kind); }
  std::uint32_t array_of(std::uint32_t element, std::vector<std::uint32_t> dims);
  std::uint32_t sequence_of(std::uint32_t element, std::uint64_t bound);

  /// Checks that no structure contains itself and that nesting is bounded; computes `min_bytes`.
  /// Errors: data_loss, resource_exhausted.
  Status finish(const Limits& limits);

  /// What a type is on the wire: the storage kind of enumerations and bitmasks, else its own.
  TypeKind wire_kind(const Type& type) const {
    return type.kind == TypeKind::enumeration || type.kind == TypeKind::bitmask
               ? enumerations[type.definition].storage
               : type.kind;
  }
  const Type& at(std::uint32_t type) const { return types[type]; }
  std::string name_of(std::uint32_t type) const;

  std::vector<Type> types;
  std::vector<Structure> structures;
  std::vector<Union> unions;
  std::vector<Enumeration> enumerations;
  std::uint32_t root = 0;
  bool has_wide_strings = false;  ///< filled by finish
  bool has_enum_rows = false;     ///< sequences or arrays of enumerations or bitmasks; as above
};

/// Units: bytes of a value of a primitive kind; 0 for the others.
std::size_t primitive_size(TypeKind kind);
/// The alignment of a primitive kind before a wire format lowers it.
std::size_t primitive_alignment(TypeKind kind);

/// Parses concatenated .msg definitions. Spec: mcap 5.1.
/// Errors: data_loss naming type and line; not_found for a type without definition.
Result<TypeTable> parse_ros_msg(std::string_view text, std::string_view name, bool ros2,
                                const Limits& limits);
/// Parses IDL: one text, or with `ros2` several behind separators.
Result<TypeTable> parse_idl(std::string_view text, std::string_view name, bool ros2,
                            const Limits& limits);

}  // namespace ropewalk::message
