#pragma once
// SubsetSource: some episodes of a source in a given order, with infos that the caller may amend
// (by the review state of the ledger, for example). A half of an export pair is the copy of a
// SubsetSource.
#include <functional>
#include <vector>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

class SubsetSource final : public EpisodeSource {
 public:
  using Amend = std::function<void(EpisodeInfo&)>;

  /// `positions` are positions in `source`; `amend`, when given, is called on the info of each.
  /// Lifetime: `source` must outlive this. Threads: `amend` is called from any of them.
  SubsetSource(const EpisodeSource& source, std::vector<std::int64_t> positions, Amend amend = {});

  const Schema& schema() const override { return source_.schema(); }
  const std::string& name() const override { return source_.name(); }
  std::string_view format() const override { return source_.format(); }
  std::int64_t size() const override { return static_cast<std::int64_t>(positions_.size()); }
  EpisodeInfo info(std::int64_t i) const override;
  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override;
  const Findings& findings() const override { return source_.findings(); }
  Json statistics() const override { return source_.statistics(); }

 private:
  const EpisodeSource& source_;
  std::vector<std::int64_t> positions_;
  Amend amend_;
};

}  // namespace ropewalk
