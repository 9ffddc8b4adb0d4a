#pragma once
// Json: one JSON value. Objects keep the order of their keys, integers stay integers and 30.0 stays
// 30.0, so that unknown parts of a file survive a rewrite.
// Parsing reports what plain JSON does not have and files have all the same: a byte order mark,
// NaN and Infinity literals (Python's json writes them), duplicated keys.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;
  // Implicit on purpose: values read naturally in `set(key, value)`.
  Json(std::nullptr_t) {}                                // NOLINT(google-explicit-constructor)
  Json(bool value) : value_(value) {}                    // NOLINT(google-explicit-constructor)
  Json(int value) : value_(std::int64_t{value}) {}       // NOLINT(google-explicit-constructor)
  Json(std::int64_t value) : value_(value) {}            // NOLINT(google-explicit-constructor)
  Json(std::uint64_t value);                             // NOLINT(google-explicit-constructor)
  Json(double value) : value_(value) {}                  // NOLINT(google-explicit-constructor)
  Json(std::string value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  Json(const char* value) : value_(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  Json(Array value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Json(Object value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  static Json array() { return Json(Array{}); }
  static Json object() { return Json(Object{}); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const;  ///< int64 or uint64
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  /// "null", "bool", "integer", "number", "string", "array", "object": for messages.
  std::string_view type_name() const;

  // Typed views; nullopt or null when the value has another type. as_int64 takes integral doubles.
  std::optional<bool> as_bool() const;
  std::optional<std::int64_t> as_int64() const;
  std::optional<std::uint64_t> as_uint64() const;
  std::optional<double> as_double() const;
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }
  const Array* as_array() const { return std::get_if<Array>(&value_); }
  Array* as_array() { return std::get_if<Array>(&value_); }
  const Object* as_object() const { return std::get_if<Object>(&value_); }
  Object* as_object() { return std::get_if<Object>(&value_); }

  /// Returns the member of an object, or null when absent or not an object.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  /// Shorthands over find + as_*: nullopt when absent or of another type.
  std::optional<std::int64_t> get_int64(std::string_view key) const;
  std::optional<double> get_double(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string> get_string(std::string_view key) const;

  /// Sets or replaces a member (a null value becomes an object first); keeps the place of a key.
  Json& set(std::string_view key, Json value);
  /// Removes a member; returns whether it was there.
  bool erase(std::string_view key);
  /// Appends to an array (a null value becomes an array first).
  void push_back(Json value);
  std::size_t size() const;  ///< elements or members; 0 for everything else

  bool operator==(const Json& other) const;  ///< the order of keys counts

  /// Returns JSON text: compact with `indent` < 0, else indented. Non-ASCII stays as it is;
  /// non-finite numbers become null. Doubles are the shortest text that reads back equal.
  std::string dump(int indent = -1) const;
  /// Returns `{"a": 1, "b": [1, 2]}`: compact with one space, the way Python's json.dumps writes.
  std::string dump_spaced() const;
  /// Returns compact text with sorted keys: the form that digests are taken over.
  std::string dump_canonical() const;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

/// What a parser met that plain JSON does not have.
struct JsonNotes {
  bool byte_order_mark = false;
  std::int64_t non_finite_literals = 0;  ///< NaN, Infinity, -Infinity read as null
  std::vector<std::string> duplicate_keys;
};

/// Parses one document. Of duplicated keys the last wins; NaN and Infinity become null; both are
/// told in `notes`. Errors: data_loss with line and column; resource_exhausted (Limits).
Result<Json> parse_json(std::string_view text, const Limits& limits = {},
                        JsonNotes* notes = nullptr);

}  // namespace ropewalk
