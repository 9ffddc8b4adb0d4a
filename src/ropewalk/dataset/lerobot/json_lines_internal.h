#pragma once
// JSON lines: one JSON object per line, split at LF alone, since other line separators of Unicode
// occur inside task texts.
// Spec: lerobot-formats 2.5; review-export-upload 2.4 (missing last newline, torn last line).
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/io/file.h"

namespace ropewalk::lerobot {

/// Where a line lies in its file.
struct LinePlace {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  bool terminated = false;  ///< by LF
};

/// Calls `body` for each line, with its text (without LF and CR before it) and place. A byte order
/// mark at the start of the file is left out and told through `byte_order_mark`.
/// Errors: resource_exhausted for a line above the limit; those of Source and of `body`.
Status for_each_line(const Source& source, const Limits& limits, bool* byte_order_mark,
                     const std::function<Status(std::string_view, LinePlace)>& body);

/// Reads one line again. Errors: those of Source.
Result<std::string> read_line(const Source& source, LinePlace place);

/// What opening needs of a row, found without building it.
struct RowScan {
  bool complete = false;  ///< one object, properly closed
  std::optional<std::int64_t> episode_index;
  std::optional<std::int64_t> length;
  std::int64_t repeated = 0;  ///< further `episode_index` or `length` members
};

/// Walks the top level of an object. Anything it cannot follow gives complete = false: parse the
/// line then. It does not prove that the line is valid JSON.
RowScan scan_row(std::string_view line);

}  // namespace ropewalk::lerobot
