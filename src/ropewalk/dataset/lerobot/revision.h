#pragma once
// The content digest of what a split is made from. Where a dataset has no ledger it stands in for
// the revision; where it has one, both are kept.
// Spec: review-export-upload 3.3.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "ropewalk/base/core/result.h"

namespace ropewalk {

/// One data or video file of an episode. Path: relative to the dataset root, '/'-separated.
struct RevisionFile {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const RevisionFile&) const = default;
};

/// One row that takes part in a split. Empty texts mean absent.
struct RevisionRow {
  std::int64_t episode_index = 0;
  std::int64_t length = 0;
  std::string quality;
  std::string verdict;  ///< effective
  std::string note;
  std::vector<RevisionFile> files;  ///< Parquet and videos, in any order
};

/// Returns the SHA-256, 64 hexadecimal digits, of the canonical JSON (sorted keys, no spaces) of
/// `rows` in the order given; files are taken in the order of their paths.
std::string source_digest(std::span<const RevisionRow> rows);

/// Looks up size and time of `paths` under `root`. Errors: not_found naming the file;
/// failed_precondition for anything but a regular file.
Result<std::vector<RevisionFile>> revision_files(const std::filesystem::path& root,
                                                 std::span<const std::string> paths);

}  // namespace ropewalk
