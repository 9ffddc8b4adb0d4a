#pragma once
// RawWriter: appends episodes to a raw LeRobot v2.1 dataset, as a recorder does.
// Durable, for recordings: each episode is staged, proven, renamed into place and committed by its
// row in meta/episodes.jsonl; a crash leaves the episodes committed before.
// In bulk, for datasets made at once in a directory nobody reads yet: files are written in place,
// clips are encoded in parallel, and one sync at the end covers everything.
// Typical usage: `RawWriter::create(root, source.schema(), options)`, append(source), finish().
// Spec: review-export-upload 2.1 to 2.6, 3.2, 3.5, 4.5.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/episode/episode.h"
#include "ropewalk/format/video/encoder.h"

namespace ropewalk {

struct RawWriterOptions {
  bool durable = true;  ///< off: bulk, see above
  /// Write faulty episodes as they are: a column or camera that is missing, a vector of another
  /// length, a video shorter than the table. Off: such an episode is an error.
  bool faithful = false;
  /// The ledger takes its times from `ended_at` of the rows, so that the same episodes give the
  /// same bytes. Off: the time of the commit.
  bool row_times = false;
  /// Where files are staged when durable; empty: `.staging` beside the root, never below it, since
  /// other readers count the Parquet and MP4 files they find there.
  std::filesystem::path staging = {};
  EncoderSettings encoder =
      {};  ///< its defaults are the recorder's: CRF 23, GOP of 10, no B-frames
};

/// What a check found in one written episode.
struct RawQuality {
  std::string quality;  ///< "green" or "red"; empty: not checked
  Json issues = Json::array();
  Json findings = Json::array();  ///< left out of the row when empty
};

/// Looks at the episodes below `root`, all of whose files are in place, and tells the quality of
/// each in the order of meta/episodes.jsonl.
using RawJudge = std::function<Result<std::vector<RawQuality>>(const std::filesystem::path& root)>;

/// Not thread-safe. Memory: the tables of two episodes per thread, and statistics.
class RawWriter {
 public:
  /// Opens `root` to append; creates the dataset when there is none (bulk always creates). A
  /// durable writer holds the recorder lock while it lives. `schema` declares the features; its
  /// `extra` members go into info.json. Errors: unavailable with reason DATASET_LOCKED;
  /// already_exists (bulk on a dataset); failed_precondition when the dataset there has other
  /// features or another rate.
  static Result<RawWriter> create(const std::filesystem::path& root, const Schema& schema,
                                  RawWriterOptions options = {});
  RawWriter(RawWriter&&) noexcept;
  RawWriter& operator=(RawWriter&&) noexcept;
  ~RawWriter();  ///< without finish() a bulk dataset has no metadata

  /// Writes one episode: its rows numbered on, one prompt, one Parquet file, one MP4 per camera
  /// that it has. Keys of its row are kept. Errors: data_loss for an episode that is not whole (see
  /// `faithful`); invalid_argument for more than one prompt; those of Sink; cancelled.
  Status append(const Episode& episode, const RunContext& context);
  /// Writes all episodes of `source`, in order, on the pool of `context`.
  Status append(const EpisodeSource& source, const RunContext& context);
  /// Bulk: writes what is left of meta/ and syncs; `judge`, when given, is asked before rows and
  /// ledger get their final form. Durable: nothing is left to do, `judge` must be empty.
  Status finish(const RunContext& context, const RawJudge& judge = {});

  std::int64_t episodes() const;  ///< in the dataset
  std::int64_t frames() const;
  const Findings& findings() const;

 private:
  struct Impl;
  explicit RawWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk
