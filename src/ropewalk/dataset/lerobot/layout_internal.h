#pragma once
// Layout: the path templates of info.json, filled in and kept inside the root.
// Spec: lerobot-formats 2.1 (templates are Python format strings), H20 (path traversal);
// review-export-upload R-DATA-4 (chunk-000 as the second place to look).
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/result.h"

namespace ropewalk::lerobot {

inline constexpr std::string_view kDataPathV2 =
    "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet";
inline constexpr std::string_view kVideoPathV2 =
    "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4";
inline constexpr std::string_view kDataPathV3 =
    "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";
inline constexpr std::string_view kVideoPathV3 =
    "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4";

/// Values for the placeholders of a template.
struct PathValues {
  std::int64_t episode_chunk = 0;
  std::int64_t episode_index = 0;
  std::int64_t chunk_index = 0;
  std::int64_t file_index = 0;
  std::string_view video_key = {};
};

/// A parsed Python format string: {name}, {name:d}, {name:03d}; {{ and }} are braces.
class PathTemplate {
 public:
  /// Errors: invalid_argument naming the placeholder that is not known or the brace that is open.
  static Result<PathTemplate> parse(std::string_view text);
  std::string format(const PathValues& values) const;
  bool uses(std::string_view placeholder) const;
  const std::string& text() const { return text_; }

 private:
  struct Part {
    std::string literal;
    std::string name;  ///< empty: literal alone
    int width = 0;
  };
  std::string text_;
  std::vector<Part> parts_;
};

/// Returns OK when `relative` names something below the root: not absolute, no "..", no NUL.
/// Errors: permission_denied quoting the path.
Status check_inside_root(std::string_view relative);

/// Returns `text` with paths below the root made relative to it, for findings.
std::string without_root(std::string text, const std::filesystem::path& root);

/// Lists `<directory>/<anything>/*<suffix>` in numeric order of the digits in their names, since
/// chunk-1000 comes after chunk-999. Absent directories give an empty list.
std::vector<std::string> list_chunk_files(const std::filesystem::path& root,
                                          std::string_view directory, std::string_view suffix);

}  // namespace ropewalk::lerobot
