#pragma once
// The publish journal `E/.publish.<name>.json`: what is being switched, told durably before it
// happens, so that a crash at any moment can be finished or undone by inode identity.
// Spec: review-export-upload 6.3 steps 3, 4, 6.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/process.h"
#include "ropewalk/stage/publish/target.h"

namespace ropewalk {

/// How the stage takes the place of the target.
enum class PublishMode {
  exchange,   ///< the target exists: both swap in one system call
  noreplace,  ///< the target does not exist: one rename that cannot replace
  renames,    ///< the file system knows neither: two renames, the target is absent in between
};
std::string_view publish_mode_name(PublishMode mode);
std::optional<PublishMode> publish_mode_from_name(std::string_view name);

enum class PublishState { staged, switching, published };
std::string_view publish_state_name(PublishState state);

/// The directory of a pair and its halves. An absent half has inode 0.
struct PairIds {
  FileId directory;
  FileId accepted;
  FileId rejected;
  bool operator==(const PairIds&) const = default;
};
/// Returns nullopt when there is no directory of that name.
Result<std::optional<PairIds>> pair_ids(const std::filesystem::path& pair_dir);

struct Journal {
  std::string export_id;
  PublishState state = PublishState::staged;
  PublishMode mode = PublishMode::exchange;
  std::optional<PairIds> before;  ///< the target when the journal began; nullopt when absent
  PairIds after;                  ///< the stage
  std::int64_t source_revision = 0;
  ProcessIdentity owner;
  std::string at;  ///< UTC ISO of the last change
};

/// Replaces the journal durably. Fault points: those of io.
Status write_journal(const PairTarget& target, Journal& journal);
/// Returns nullopt when there is none. Errors: data_loss.
Result<std::optional<Journal>> read_journal(const PairTarget& target);
/// Removes the journal durably; none is fine.
Status remove_journal(const PairTarget& target);

Json to_json(const ProcessIdentity& process);
std::optional<ProcessIdentity> process_from_json(const Json& json);

}  // namespace ropewalk
