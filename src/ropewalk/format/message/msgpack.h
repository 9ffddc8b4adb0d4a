#pragma once
// MessagePack: values to bytes in their smallest form, and bytes to a tree of values.
// Spec: github.com/msgpack/msgpack/blob/master/spec.md.
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk::msgpack {

/// Appends values to `out`, each in its smallest form; floating-point numbers are always float64.
/// An array or map head is followed by that many values (for a map: key, value, key, …).
/// Errors: resource_exhausted for what is longer than the format can say (4 GiB - 1).
class Writer {
 public:
  explicit Writer(Bytes& out) : out_(out) {}

  void nil();
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void number(double value);
  Status string(std::string_view text);  ///< UTF-8, written as it is
  Status binary(ByteSpan bytes);
  Status binary_head(std::uint64_t size);  ///< that many bytes follow
  Status array_head(std::uint64_t count);
  Status map_head(std::uint64_t count);
  /// Writes null, bool, integer, float64, str, array or map with str keys.
  Status json(const Json& value);

 private:
  Bytes& out_;
};

/// One decoded value. Lifetime: strings, binaries and extensions are views into the decoded bytes.
class Value {
 public:
  struct Extension {
    std::int8_t type = 0;
    ByteSpan data;
  };
  using Array = std::vector<Value>;
  using Map = std::vector<std::pair<Value, Value>>;  ///< in the order of the bytes; keys may repeat
  using Variant = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double,
                               std::string_view, ByteSpan, Array, Map, Extension>;

  Value() = default;
  explicit Value(Variant value) : value_(std::move(value)) {}

  bool is_nil() const { return std::holds_alternative<std::monostate>(value_); }
  /// "nil", "bool", "integer", "number", "string", "binary", "array", "map", "extension".
  std::string_view type_name() const;
  std::optional<bool> as_bool() const;
  std::optional<std::int64_t> as_int64() const;  ///< also of integral numbers
  std::optional<double> as_double() const;       ///< of any number
  std::optional<std::string_view> as_string() const;
  std::optional<ByteSpan> as_binary() const;
  const Array* as_array() const { return std::get_if<Array>(&value_); }
  const Map* as_map() const { return std::get_if<Map>(&value_); }
  /// A string, or a binary taken as text: some writers give keys as binaries.
  std::optional<std::string_view> as_text() const;
  /// The last entry of a map with this key, as string or binary; null when there is none.
  const Value* find(std::string_view key) const;
  const Variant& variant() const { return value_; }

 private:
  Variant value_;
};

/// Decodes one value; `*used` is set to its length, and without it the value must fill `bytes`.
/// Errors: data_loss naming the byte; resource_exhausted above Limits::max_json_depth levels or
/// 4,194,304 values. No claimed length sizes an allocation before it was checked.
Result<Value> decode(ByteSpan bytes, const Limits& limits = {}, std::size_t* used = nullptr);

/// The JSON form of a value: NumPy scalars become plain ones, NumPy arrays nested lists.
/// Errors: data_loss for a binary, an extension or a key that is no text: JSON has no form for
/// them.
Result<Json> to_json(const Value& value, const Limits& limits = {});

}  // namespace ropewalk::msgpack
