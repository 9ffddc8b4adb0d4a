#pragma once
// SubsetSource: some episodes of a source in a given order, with the infos the caller gives them
// (review state from the ledger, for example). A half of an export pair is the copy of a
// SubsetSource.
#include <vector>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

class SubsetSource final : public EpisodeSource {
 public:
  /// `positions` are positions in `source`, `infos` what each of them says of itself.
  /// Lifetime: `source` must outlive this.
  SubsetSource(const EpisodeSource& source, std::vector<std::int64_t> positions,
               std::vector<EpisodeInfo> infos);

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
