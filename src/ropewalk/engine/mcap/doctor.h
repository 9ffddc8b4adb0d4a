#pragma once
// doctor: everything that is wrong with an MCAP file, by walking every record of it.
#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/engine/mcap/files.h"

namespace ropewalk {

struct DoctorRequest {
  std::string input;
  /// A message older than an earlier one of the file is an error; off: a warning per channel.
  bool strict_message_order = false;
};

struct Diagnosis {
  bool error = true;  ///< else a warning: legal, but likely not meant
  std::uint64_t offset = 0;
  std::string text;
};

struct DoctorReport {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t chunks = 0;
  std::uint64_t messages = 0;
  std::vector<Diagnosis> diagnoses;  ///< in the order met
  std::uint64_t errors = 0;          ///< all of them, listed or not
  std::uint64_t warnings = 0;
  bool healthy() const { return errors == 0; }
  Json to_json() const;
};

/// Checks framing, CRCs, chunk heads, message, chunk, attachment and metadata indexes, statistics,
/// summary offsets, definitions and times. Lists at most 1000 diagnoses and counts the rest.
/// Errors: not_found and other failures of reading; damage is what the report is about.
Result<DoctorReport> doctor_mcap(const DoctorRequest& request, const RunContext& context);

}  // namespace ropewalk
