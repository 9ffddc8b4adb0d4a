#pragma once
// What the targets of format/message share: an input is the length of the schema (two bytes,
// little-endian), the schema, and the payload.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ropewalk/format/message/message.h"

namespace ropewalk::fuzz {

struct MessageInput {
  ByteSpan schema;
  ByteSpan payload;
};

inline MessageInput split_message(ByteSpan input) {
  if (input.size() < 2) return {};
  const std::size_t wanted = static_cast<std::size_t>(input[0]) | static_cast<std::size_t>(input[1])
                                                                      << 8;
  const std::size_t size = std::min(wanted, input.size() - 2);
  return {.schema = input.subspan(2, size), .payload = input.subspan(2 + size)};
}

/// Numbers of the outermost object must come out of a row as they come out of the values.
inline void check_rows(const std::shared_ptr<const message::MessageCodec>& codec, ByteSpan payload,
                       const message::Value& root) {
  if (root.as_object() == nullptr) return;
  for (const auto& member : *root.as_object()) {
    const auto* numbers = member.value.as_numbers();
    const bool single = member.value.as_double().has_value();
    if (!single && (numbers == nullptr || numbers->size() == 0 || numbers->size() > 1000)) continue;
    const std::size_t width = single ? 1 : numbers->size();
    const auto rows = message::RowExtractor::compile(
        codec, {{std::string(member.name), static_cast<std::uint32_t>(width)}});
    if (!rows.ok()) continue;  // a type that is no number in a row, or a name twice
    std::vector<double> row(width);
    if (!rows->extract(payload, row).ok()) std::abort();
    for (std::size_t i = 0; i < width; ++i) {
      const double wanted = single ? *member.value.as_double() : numbers->at(i);
      if (row[i] != wanted && !(std::isnan(row[i]) && std::isnan(wanted))) std::abort();
    }
  }
}

/// Decodes, prints, and with `again` encodes and decodes to the same text.
inline void run_message(std::string_view encoding, std::string_view name,
                        std::string_view schema_encoding, MessageInput input, bool again) {
  const auto codec =
      message::MessageCodec::compile({encoding, name, schema_encoding, input.schema});
  if (!codec.ok()) return;
  const auto decoded = (*codec)->decode(input.payload);
  if (!decoded.ok()) return;
  const std::string text = message::to_json_text(decoded->root());
  const auto payload = (*codec)->encode(decoded->root());
  if (!again) return;
  if (!payload.ok()) std::abort();
  const auto second = (*codec)->decode(*payload);
  if (!second.ok() || message::to_json_text(second->root()) != text) std::abort();
  check_rows(*codec, input.payload, decoded->root());
}

}  // namespace ropewalk::fuzz
