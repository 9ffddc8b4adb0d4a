#pragma once
// recover: a damaged or unfinished MCAP file, written anew as a whole one, with what is lost.
#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/engine/mcap/files.h"
#include "ropewalk/format/mcap/recover.h"

namespace ropewalk {

struct McapRecoverRequest {
  std::string input;   ///< a path; "-" is standard input
  std::string output;  ///< a path; "-" is standard output
  bool replace = false;
  std::string compression = "preserve";  ///< or "none", "lz4", "zstd"
  std::uint64_t chunk_bytes = 1ULL << 20;
};

struct McapRecoverReport {
  std::string input;
  std::string output;
  mcap::RecoverReport recovered;
  bool read_back = false;  ///< the result was read whole and holds; not done for a stream
  Json to_json() const;
};

/// Errors: invalid_argument; those of mcap::recover and OutputFile; internal when the result does
/// not read back.
Result<McapRecoverReport> recover_mcap(const McapRecoverRequest& request,
                                       const RunContext& context);

}  // namespace ropewalk
