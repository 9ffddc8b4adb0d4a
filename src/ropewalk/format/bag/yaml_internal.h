#pragma once
// A YAML document as a tree, with limits. Values are text: who reads one knows what it should be.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/result.h"

namespace ropewalk::bag {

struct YamlNode {
  enum class Kind : std::uint8_t { scalar, sequence, mapping };
  Kind kind = Kind::scalar;
  bool plain = false;  ///< a scalar without quotes, which may mean null
  std::string text;
  std::vector<YamlNode> items;    ///< of a sequence; the values of a mapping
  std::vector<std::string> keys;  ///< of a mapping, one for each item

  const YamlNode* find(std::string_view key) const;
  bool is_null() const;
  std::optional<std::int64_t> integer() const;
};

/// Reads the first document. Errors: data_loss with line and column; resource_exhausted for more
/// than 32 levels or a million nodes; unimplemented for aliases.
Result<YamlNode> parse_yaml(std::string_view text);

/// Writes block style without a final line end; scalars are plain where that is safe.
std::string emit_yaml(const YamlNode& node, std::size_t indent = 0);
/// A scalar in double quotes.
std::string quote_yaml(std::string_view text);

}  // namespace ropewalk::bag
