#include "ropewalk/base/io/staged_directory.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "ropewalk/base/io/fd_internal.h"
#include "ropewalk/base/io/local_fs.h"

namespace ropewalk {

Result<StagedDirectory> StagedDirectory::create(const std::filesystem::path& target) {
  const std::filesystem::path named = target.has_filename() ? target : target.parent_path();
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(named));
  if (info) return already_exists(named.string() + ": exists already");
  const std::filesystem::path parent = parent_of(named);
  ROPEWALK_RETURN_IF_ERROR(make_directories(parent));
  const std::filesystem::path stage =
      parent / fmt::format(".{}.stage.{}.{}", named.filename().string(), ::getpid(),
                           random_uuid().substr(0, 8));
  ROPEWALK_RETURN_IF_ERROR(make_directories(stage));
  return StagedDirectory(stage, named);
}

StagedDirectory::StagedDirectory(StagedDirectory&& other) noexcept
    : stage_(std::exchange(other.stage_, {})),
      target_(std::move(other.target_)),
      published_(std::exchange(other.published_, true)) {}

StagedDirectory::~StagedDirectory() {
  if (!published_) std::ignore = remove_tree(stage_);
}

Status StagedDirectory::publish() {
  if (published_) return failed_precondition(target_.string() + ": published already");
  ROPEWALK_RETURN_IF_ERROR(sync_tree_directories(stage_));
  Status renamed = rename_no_replace(stage_, target_);
  if (renamed.code() == StatusCode::unimplemented) {
    // Without the flag a race is possible; rename still never replaces a directory with entries.
    ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(target_));
    if (info) return already_exists(target_.string() + ": exists already");
    renamed = rename_path(stage_, target_);
  }
  ROPEWALK_RETURN_IF_ERROR(renamed);
  published_ = true;
  return sync_directory(parent_of(target_));
}

std::string random_uuid() {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3F) | 0x80);
  const std::string hex = to_hex(bytes);
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

}  // namespace ropewalk
