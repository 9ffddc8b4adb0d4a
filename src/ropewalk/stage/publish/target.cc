#include "ropewalk/stage/publish/target.h"

#include <algorithm>

#include <fmt/format.h>

namespace ropewalk {
namespace {

namespace fs = std::filesystem;

Result<fs::path> resolve(const fs::path& path) {
  std::error_code error;
  fs::path resolved = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return errno_status(error.value(), path.string() + ": resolve");
  if (!resolved.has_filename()) resolved = resolved.parent_path();  // a trailing '/'
  return resolved;
}

// Whether `inner` is `outer` or lies below it. Both are resolved.
bool lies_in(const fs::path& inner, const fs::path& outer) {
  const auto [end, unused] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return end == outer.end();
}

}  // namespace

fs::path PairTarget::stage(std::string_view export_id) const {
  return parent / fmt::format(".stage.{}.{}", name, export_id);
}

fs::path PairTarget::previous(std::string_view export_id) const {
  return parent / fmt::format(".previous.{}.{}", name, export_id);
}

Result<PairTarget> target_at(const fs::path& pair_dir) {
  ROPEWALK_ASSIGN_OR_RETURN(const fs::path resolved, resolve(pair_dir));
  if (!resolved.has_filename()) {
    return invalid_argument(pair_dir.string() + ": a pair cannot be published at a root directory");
  }
  return PairTarget{resolved.parent_path(), resolved.filename().string()};
}

Result<PairTarget> derive_target(const fs::path& source_dir, std::string_view format,
                                 const std::optional<fs::path>& out_dir) {
  if (format.empty() || format.front() == '.' || format.find('/') != std::string_view::npos) {
    return invalid_argument(fmt::format("\"{}\" is no name of a format", format));
  }
  ROPEWALK_ASSIGN_OR_RETURN(const fs::path source, resolve(source_dir));
  if (!source.has_filename()) {
    return invalid_argument(source_dir.string() + ": a dataset cannot be a root directory");
  }
  fs::path directory;
  if (out_dir) {
    directory = *out_dir;
  } else if (source.filename() == "raw") {
    directory = source.parent_path() / "export" / format;
  } else {
    directory = source.parent_path() / (source.filename().string() + "_export") / format;
  }
  ROPEWALK_ASSIGN_OR_RETURN(PairTarget target, target_at(directory));
  if (lies_in(target.directory(), source) || lies_in(source, target.directory())) {
    return invalid_argument(
        fmt::format("output {} and source {} are not apart; choose an output outside of the source",
                    target.directory().string(), source.string()));
  }
  return target;
}

Result<FileLock> lock_pair(const PairTarget& target, FileLock::Mode mode) {
  auto lock = FileLock::acquire(target.lock_file(), mode);
  if (lock.status().reason() == "LOCKED") return lock.status().with_reason("PAIR_LOCKED");
  return lock;
}

Status check_free_space(const fs::path& directory, std::uint64_t estimate_bytes,
                        std::uint64_t reserve_bytes) {
  fs::path existing = directory;
  std::error_code error;
  while (!fs::exists(existing, error) && existing.has_parent_path() &&
         existing.parent_path() != existing) {
    existing = existing.parent_path();
  }
  if (existing.empty()) existing = ".";
  ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t free, free_bytes(existing));
  constexpr std::uint64_t kMax = ~std::uint64_t{0};
  const std::uint64_t margin = estimate_bytes / 20;
  std::uint64_t needed = estimate_bytes;
  needed = needed > kMax - margin ? kMax : needed + margin;
  needed = needed > kMax - reserve_bytes ? kMax : needed + reserve_bytes;
  if (needed <= free) return ok_status();
  return resource_exhausted(fmt::format(
      "{}: the output needs {} bytes ({} estimated + 5 % + {} in reserve), but {} are free; free "
      "{} bytes or choose another output",
      directory.string(), needed, estimate_bytes, reserve_bytes, free, needed - free));
}

}  // namespace ropewalk
