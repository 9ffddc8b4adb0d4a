#pragma once
// PairTarget: where a pair of one format is published, and the hidden names beside it.
// Spec: review-export-upload 6.1, 6.3.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ropewalk/base/core/result.h"
#include "ropewalk/base/io/local_fs.h"

namespace ropewalk {

/// A published pair is `parent/name/{accepted,rejected}`; everything hidden lies in `parent`.
struct PairTarget {
  std::filesystem::path parent;  ///< E of the specification, absolute
  std::string name;              ///< the format, or the last component of an explicit directory

  std::filesystem::path directory() const { return parent / name; }
  std::filesystem::path accepted() const { return directory() / "accepted"; }
  std::filesystem::path rejected() const { return directory() / "rejected"; }
  std::filesystem::path lock_file() const { return parent / ("." + name + ".lock"); }
  std::filesystem::path journal() const { return parent / (".publish." + name + ".json"); }
  /// Built here; after an exchange it holds the old pair.
  std::filesystem::path stage(std::string_view export_id) const;
  /// Where mode `renames` puts the old pair.
  std::filesystem::path previous(std::string_view export_id) const;
};

/// Returns `<parent>/export/<format>` for a source directory named `raw`, else
/// `<source>_export/<format>`, else exactly `out_dir`.
/// Errors: invalid_argument when source and target are not apart or the format is no plain name.
Result<PairTarget> derive_target(const std::filesystem::path& source_dir, std::string_view format,
                                 const std::optional<std::filesystem::path>& out_dir = {});
/// Returns the target whose directory is `pair_dir`. Errors: invalid_argument for a root.
Result<PairTarget> target_at(const std::filesystem::path& pair_dir);

/// Takes the pair lock: shared to verify or upload, exclusive to export or recover.
/// Errors: unavailable with the reason PAIR_LOCKED naming the holder; not_found without `parent`.
Result<FileLock> lock_pair(const PairTarget& target, FileLock::Mode mode);

/// Fails unless `estimate_bytes` + 5 % + `reserve_bytes` fit on the file system of `directory` (or
/// of its nearest parent that exists). Errors: resource_exhausted with both numbers.
Status check_free_space(const std::filesystem::path& directory, std::uint64_t estimate_bytes,
                        std::uint64_t reserve_bytes);

}  // namespace ropewalk
