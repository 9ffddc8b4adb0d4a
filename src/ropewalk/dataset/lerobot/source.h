#pragma once
// LerobotSource: a LeRobot dataset of format v2.0, v2.1 or v3.0 as an EpisodeSource.
// Metadata is a hint and files are the truth: what disagrees is repaired with a finding, or, in
// strict mode, refused. The codes of findings are listed in docs/findings.md.
// Spec: lerobot-formats 1 to 3, 8, 11.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/dataset/lerobot/probe.h"
#include "ropewalk/dataset/lerobot/revision.h"
#include "ropewalk/episode/episode.h"

namespace ropewalk {

struct LerobotOptions {
  /// Refuse what lenient mode repairs. The error carries the code of the first finding as reason.
  bool strict = false;
  /// Open footer and index of every data and video file, so that episodes that cannot be read whole
  /// are repaired or left out before the first one is asked for. Off: the rows of the metadata are
  /// the episodes, and opening reads no Parquet data file.
  bool survey = false;
  Limits limits = {};
  std::uint64_t index_cache_bytes = 64ULL << 20;  ///< of MP4 indices kept open
  ThreadPool* pool = nullptr;                     ///< for the survey; null: inline
  std::stop_token stop = {};                      ///< polled per episode of the survey
};

/// Threads: const members may run concurrently.
class LerobotSource final : public EpisodeSource {
 public:
  ~LerobotSource() override;
  LerobotSource(const LerobotSource&) = delete;
  LerobotSource& operator=(const LerobotSource&) = delete;

  const Schema& schema() const override;
  const std::string& name() const override;
  /// "lerobot_v20", "lerobot_v21" or "lerobot_v3".
  std::string_view format() const override;
  std::int64_t size() const override;
  /// Reads and parses the row at every call. `row` holds every key of the source's row; of v3.0 the
  /// locator and statistics columns are left out, since their numbers mean nothing elsewhere. A row
  /// that cannot be read has its number alone; open() says why.
  EpisodeInfo info(std::int64_t i) const override;
  /// Lifetime: the source outlives its episodes, readers of packets and readers of frames.
  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override;
  /// What was repaired or noticed while opening, and by the survey when there was one.
  const Findings& findings() const override;
  std::int64_t left_out() const override;
  /// `stats.json` as found, or null.
  Json statistics() const override;

  LerobotGeneration generation() const;
  const std::filesystem::path& root() const;
  /// `info.json` as found.
  const Json& info_document() const;
  /// Index and length of episode `i` without building its info.
  std::int64_t index_of(std::int64_t i) const;
  std::int64_t length_of(std::int64_t i) const;
  /// Position of the episode numbered `index` in the source, or nullopt.
  std::optional<std::int64_t> position_of(std::int64_t index) const;
  /// Texts of the task list in file order, with the numbers they are stored under.
  const std::vector<std::pair<std::int64_t, std::string>>& tasks() const;

  /// Paths of the files that hold episode `i`, relative to the root: its table first, then one per
  /// camera of kind video. They need not exist.
  std::vector<std::string> episode_paths(std::int64_t i) const;
  /// The same with size and modification time; files that are not there are left out.
  Result<std::vector<RevisionFile>> episode_files(std::int64_t i) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  friend struct LerobotOpener;
  explicit LerobotSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Opens a dataset. Errors: those of probe_lerobot; data_loss for metadata that cannot be read;
/// permission_denied for paths that leave the root; with `strict`, failed_precondition naming every
/// finding that lenient mode would have repaired.
Result<std::unique_ptr<LerobotSource>> open_lerobot(const std::filesystem::path& root,
                                                    const LerobotOptions& options = {});

}  // namespace ropewalk
