#pragma once
// Edits single members of a JSON object in its text, so that everything else in the line survives
// byte for byte: unknown keys, the spelling of numbers, NaN literals, spacing.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/json.h"

namespace ropewalk {

/// One member of the outermost object. Offsets are into the line.
struct RowMember {
  std::string key;              ///< decoded
  std::size_t begin = 0;        ///< of the key's quote
  std::size_t value_begin = 0;  ///< first byte of the value
  std::size_t value_end = 0;    ///< one past its last byte
};

/// Finds the members of the object that `line` is. Returns nullopt when it is none (torn, an array,
/// text after the object). Values are only bracketed, not validated.
std::optional<std::vector<RowMember>> scan_row(std::string_view line);

/// Returns the member's value parsed, or null when it is absent or no JSON. Of duplicates the last.
Json row_value(std::string_view line, const std::vector<RowMember>& members, std::string_view key);

/// One member to set, or to remove when `value` is nullopt.
struct RowEdit {
  std::string key;
  std::optional<Json> value;
};

/// Returns `line` with the edits made; a new member goes to the end of the object, spaced as the
/// line is. Edits that change nothing leave the text alone.
std::string edit_row(std::string_view line, const std::vector<RowEdit>& edits);

}  // namespace ropewalk
