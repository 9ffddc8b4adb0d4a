#pragma once
// StagedDirectory: a directory written under a hidden temporary name beside its target and made
// visible by one rename. Nothing is visible before publish() returns OK.
// The pair publish of stage/publish is richer (journal, exchange); this is for a single tree.
#include <filesystem>
#include <string>

#include "ropewalk/base/core/result.h"

namespace ropewalk {

/// A StagedDirectory destroyed before publish() removes its stage; a crash leaves a directory named
/// `.<target>.stage.<pid>.<random>` that nothing reads.
class StagedDirectory {
 public:
  /// Creates the stage beside `target`. Errors: already_exists when the target exists.
  static Result<StagedDirectory> create(const std::filesystem::path& target);
  StagedDirectory(StagedDirectory&& other) noexcept;
  StagedDirectory& operator=(StagedDirectory&&) = delete;
  StagedDirectory(const StagedDirectory&) = delete;
  ~StagedDirectory();

  const std::filesystem::path& path() const { return stage_; }
  const std::filesystem::path& target() const { return target_; }
  /// Fsyncs every directory, renames the stage to the target without replacing, fsyncs the parent.
  Status publish();

 private:
  StagedDirectory(std::filesystem::path stage, std::filesystem::path target)
      : stage_(std::move(stage)), target_(std::move(target)) {}
  std::filesystem::path stage_;
  std::filesystem::path target_;
  bool published_ = false;
};

/// Returns a version 4 UUID from the system's random source, lower case with dashes.
std::string random_uuid();

}  // namespace ropewalk
