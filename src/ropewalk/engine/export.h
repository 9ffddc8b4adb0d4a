#pragma once
// export: splits a raw dataset by verdict and quality, converts both halves, proves them and
// publishes the pair, or nothing. Spec: review-export-upload 5 and 6.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/engine/marker.h"
#include "ropewalk/engine/sinks.h"
#include "ropewalk/stage/publish/publish.h"
#include "ropewalk/stage/quality/split.h"

namespace ropewalk {

struct ExportRequest {
  std::filesystem::path source;
  std::string format;
  std::optional<std::filesystem::path> out;           ///< the pair becomes out/{accepted,rejected}
  std::optional<std::vector<std::int64_t>> episodes;  ///< exactly these take part
  EpisodeSelection selection = EpisodeSelection::all;
  bool dry_run = false;          ///< validate and split, write nothing
  bool replace_existing = true;  ///< an existing pair is replaced
  bool prove_full = false;       ///< decode and compare every frame before the switch
  SinkOptions sink;
  std::optional<PublishMode> mode;  ///< forced; for tests and odd file systems
};

struct ExportReport {
  std::string format;
  std::filesystem::path source;
  std::filesystem::path accepted;
  std::filesystem::path rejected;
  std::string export_id;  ///< empty for a dry run
  std::int64_t source_revision = 0;
  SplitCounts counts;
  std::vector<std::int64_t> accepted_episodes;  ///< source indices
  std::vector<std::int64_t> rejected_episodes;
  std::uint64_t bytes = 0;
  std::int64_t files = 0;
  std::uint64_t estimated_bytes = 0;
  double seconds = 0;
  double switch_seconds = 0;
  std::string publish_mode;
  std::vector<std::string> warnings;  ///< VERDICTS_CHANGED and the like
  Findings findings;
  Json to_json() const;
};

/// Errors: failed_precondition with reason NOT_V21 (names `convert`), INVALID_SOURCE (every
/// finding, one a line), SOURCE_CHANGED; those of PairPublisher; resource_exhausted when it cannot
/// fit; cancelled. On every error nothing is published and the source is as it was.
Result<ExportReport> export_dataset(const ExportRequest& request, const RunContext& context);

}  // namespace ropewalk
