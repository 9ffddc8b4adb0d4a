#pragma once
// JsonColumns: the keys of many JSON objects as Arrow columns of one fixed schema.
// The first pass observes every row, the second one builds batches. A key has the union of what was
// seen: integers widen to doubles, objects become structs with the union of their keys, lists hold
// the union of their items; whatever does not unite becomes text holding JSON.
// Spec: review-export-upload 7.2, "Fixed schema of the last group".
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <arrow/api.h>

#include "ropewalk/base/core/json.h"

namespace ropewalk::lerobot_internal {

/// The union of the JSON values seen at one place.
struct JsonType {
  enum class Kind : std::uint8_t { none, boolean, integer, number, string, list, object, text };
  struct Member;
  Kind kind = Kind::none;
  std::vector<Member> members;  ///< of an object; a list has one, its item

  void unite(const Json& value);
  /// Returns null for an object without a member in any row: Parquet has no such struct.
  std::shared_ptr<arrow::DataType> arrow_type() const;
};

struct JsonType::Member {
  std::string name;
  JsonType type;
};

/// Not thread-safe. Memory: the union of the keys.
class JsonColumns {
 public:
  /// Takes note of the members of `row`, except those in `skipped_keys` and locators.
  void observe(const Json& row, std::span<const std::string_view> skipped_keys);
  /// The columns, in the order in which keys were first seen.
  arrow::FieldVector fields() const;
  /// Builds these columns for `rows`. Errors: resource_exhausted.
  Result<arrow::ArrayVector> build(std::span<const Json> rows) const;

 private:
  JsonType type_;
};

}  // namespace ropewalk::lerobot_internal
