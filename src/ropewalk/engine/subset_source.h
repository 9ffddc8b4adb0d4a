#pragma once
// SubsetSource: some episodes of a source in a given order, with verdict and note from the ledger.
// A half of an export pair is the copy of a SubsetSource into a sink.
#include <vector>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

/// What replaces the review state of one episode's row.
struct EpisodeReview {
  std::string verdict;  ///< "pass", "fail" or empty; empty removes `qc_verdict` from the row
  std::string note;
  std::string quality;  ///< "green", "red" or empty to keep what the row says
  Json issues;          ///< replaces `quality_issues` unless null
};

class SubsetSource final : public EpisodeSource {
 public:
  /// `positions` are positions in `source`, `reviews` as many entries or none.
  /// Lifetime: `source` must outlive this.
  SubsetSource(const EpisodeSource& source, std::vector<std::int64_t> positions,
               std::vector<EpisodeReview> reviews = {});

  const Schema& schema() const override { return source_.schema(); }
  const std::string& name() const override { return source_.name(); }
  std::string_view format() const override { return source_.format(); }
  std::int64_t size() const override { return static_cast<std::int64_t>(positions_.size()); }
  const EpisodeInfo& info(std::int64_t i) const override;
  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override;
  const Findings& findings() const override { return source_.findings(); }
  Json statistics() const override { return source_.statistics(); }

 private:
  const EpisodeSource& source_;
  std::vector<std::int64_t> positions_;
  std::vector<EpisodeInfo> infos_;
};

}  // namespace ropewalk
