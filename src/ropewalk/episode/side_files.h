#pragma once
// SideFiles: the files under meta/ that the LeRobot v2.1, HDF5 and MCAP layouts share: info.json,
// episodes.jsonl, tasks.jsonl, stats.json.
// Spec: review-export-upload 2.2, 2.4, 5.4, 5.6, 7.0; lerobot-formats 2.2, 2.5.
#include <filesystem>
#include <string>
#include <vector>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/episode/numbering.h"

namespace ropewalk {

struct SideFileOptions {
  std::string codebase_version = "v2.1";
  std::string dataset_format;    ///< written as info.dataset_format unless empty
  std::string data_path;         ///< template, for example "data/chunk-{episode_chunk:03d}/…"
  std::string video_path;        ///< empty: no video files; the key is null (v2.1) or left out
  bool embedded_images = false;  ///< cameras are arrays in the file: dtype "image", no video_keys
  int indent = 4;                ///< of info.json; 4 is upstream's
};

/// Gathers rows while a sink writes and puts the files down at the end.
/// Rows are spooled to meta/episodes.jsonl as they come, so memory does not grow with the episodes.
class SideFiles {
 public:
  /// Creates `root`/meta. Errors: already_exists when episodes.jsonl is there.
  static Result<SideFiles> create(std::filesystem::path root, SideFileOptions options);
  SideFiles(SideFiles&&) noexcept = default;

  /// Appends the row of one episode. `videos` are the cameras written as files for it.
  Status add(const NumberedEpisode& episode, std::int64_t videos);
  /// Writes info.json, tasks.jsonl and stats.json and closes episodes.jsonl. `schema` declares the
  /// features as the sink wrote them; its `extra` are the unknown members of the source's
  /// info.json.
  Status finish(const Schema& schema, const Numbering& numbering, const Json& statistics);

  /// Complete after finish(): episodes.jsonl, info.json, stats.json, tasks.jsonl.
  const std::vector<WrittenFile>& files() const { return files_; }

 private:
  SideFiles(std::filesystem::path root, SideFileOptions options, std::unique_ptr<Sink> rows)
      : root_(std::move(root)), options_(std::move(options)), rows_(std::move(rows)) {}
  std::filesystem::path root_;
  SideFileOptions options_;
  std::unique_ptr<Sink> rows_;
  Sha256 rows_hash_;
  std::vector<WrittenFile> files_;
  std::int64_t videos_ = 0;
};

/// The JSON of one `features` entry: dtype, shape, names, info, and what else was found.
/// Cameras get [H, W, C] and three names. Spec: lerobot-formats 2.3.
Json feature_to_json(const Feature& feature);

/// Episodes per chunk directory that every writer uses, whatever the source had.
inline constexpr std::int64_t kEpisodesPerChunk = 1000;

}  // namespace ropewalk
