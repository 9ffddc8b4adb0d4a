#pragma once
// recover: rewrites everything that a damaged or unfinished MCAP file still holds as a whole one,
// says what is lost, and reads its own result back before it stands under its name.
// Whatever cannot be verified is kept and counted as such: decide with the report in hand.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "ropewalk/base/codec/compression.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/format/mcap/problem.h"
#include "ropewalk/format/mcap/reader.h"
#include "ropewalk/format/mcap/records.h"

namespace ropewalk::mcap {

struct RecoverOptions {
  Limits limits;
  std::optional<Compression> compression;  ///< none: each chunk keeps the codec it has
  int level = 0;
  std::uint64_t chunk_bytes = 1ULL << 20;
  bool replace = false;  ///< an existing output is replaced, else it is an error
  std::stop_token stop;  ///< polled per chunk
};

struct RecoveredTopic {
  std::string topic;
  std::string schema;            ///< its name; empty without one
  std::uint64_t messages = 0;    ///< written
  std::uint64_t unverified = 0;  ///< of these, those nothing vouches for
  /// Known from message indexes or statistics that survived, and not found.
  std::uint64_t lost = 0;
};

struct LostRange {
  std::uint64_t offset = 0;  ///< in the damaged file
  std::uint64_t length = 0;
};

struct RecoverReport {
  Statistics written;
  std::vector<RecoveredTopic> topics;  ///< by topic and schema
  std::vector<Problem> problems;       ///< of the damaged file, by offset
  std::vector<LostRange> lost_ranges;  ///< damaged bytes, merged; parts of them may be recovered
  std::uint64_t lost_bytes = 0;
  std::uint64_t lost_messages = 0;  ///< as far as they can be counted
  std::uint64_t unverified_messages = 0;
  std::uint64_t files = 1;  ///< that stood one after the other

  /// Something is missing, or is there without proof: exit code 3 of a program.
  bool has_loss() const { return !lost_ranges.empty() || lost_messages > 0; }
};

/// Writes `in` anew through `sink`. Errors: data_loss when `in` is empty or holds no record;
/// whatever source and sink say; cancelled.
Result<RecoverReport> recover(std::shared_ptr<const Source> in, Sink& sink,
                              const RecoverOptions& options = {});

/// The same to `output`: temporary name, fsync, read back, rename, fsync of the directory. `output`
/// is untouched unless it returns OK. Errors: already_exists; internal when the result does not
/// read back as it was written.
Result<RecoverReport> recover_file(const std::filesystem::path& input,
                                   const std::filesystem::path& output,
                                   const RecoverOptions& options = {});

/// Reads a finished file whole and compares: no problem of any kind, every CRC, every index, and
/// counts equal to its own statistics. Errors: data_loss with the first thing that is wrong.
Status verify_file(std::shared_ptr<const Source> source, const Limits& limits = {});

}  // namespace ropewalk::mcap
