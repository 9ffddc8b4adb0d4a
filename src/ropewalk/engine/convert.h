#pragma once
// convert: any readable dataset to any format, without a split. One directory, written beside its
// target and made visible by one rename. Spec: lerobot-formats 1.3, 8.
#include <filesystem>
#include <string>

#include "ropewalk/engine/sinks.h"

namespace ropewalk {

struct ConvertRequest {
  std::filesystem::path source;
  std::filesystem::path out;  ///< must not exist
  std::string format;
  bool strict = false;  ///< refuse what lenient reading repairs
  SinkOptions sink;
};

struct ConvertReport {
  std::string from;
  std::string to;
  std::filesystem::path out;
  std::int64_t episodes = 0;           ///< written
  std::int64_t episodes_left_out = 0;  ///< could not be read, or have no frame; see the findings
  std::int64_t frames = 0;
  std::int64_t files = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  Findings findings;  ///< every repair, drop and re-encode
  Json to_json() const;
};

/// Errors: already_exists; those of open_dataset and of the sink; cancelled. Nothing is left
/// behind.
Result<ConvertReport> convert_dataset(const ConvertRequest& request, const RunContext& context);

}  // namespace ropewalk
