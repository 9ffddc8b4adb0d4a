#include "ropewalk/engine/recover.h"

#include "ropewalk/dataset/lerobot/raw_recovery.h"
#include "ropewalk/engine/open.h"

namespace ropewalk {

Json RecoverReport::to_json() const {
  Json out = Json::object();
  out.set("acted", acted);
  out.set("blocked", blocked);
  Json list = Json::array();
  for (const RecoveryReport& pair : pairs) {
    Json entry = Json::object();
    entry.set("pair", pair.target.directory().string());
    entry.set("acted", pair.acted);
    entry.set("blocked", pair.blocked);
    entry.set("findings", pair.findings.to_json());
    list.push_back(std::move(entry));
  }
  out.set("pairs", std::move(list));
  out.set("dataset", dataset.to_json());
  return out;
}

Result<RecoverReport> recover_path(const std::filesystem::path& directory,
                                   const RecoverOptions& options) {
  RecoverReport report;
  const auto kind = identify(directory);
  const bool is_raw = kind.ok() && *kind == PathKind::lerobot_v21;
  if (is_raw && std::filesystem::exists(directory / "meta" / "ledger.jsonl")) {
    const LedgerActor actor{"system", "cli"};
    ROPEWALK_ASSIGN_OR_RETURN(report.dataset, recover_raw(directory, actor));
    report.acted = !report.dataset.empty();
    report.blocked = report.dataset.count("orphans_undecided") > 0;
    // The projection catches up.
    ROPEWALK_ASSIGN_OR_RETURN(Ledger ledger, Ledger::open_for_write(directory, actor));
    ROPEWALK_RETURN_IF_ERROR(ledger.project());
  }
  auto pairs = recover(directory, options);
  if (pairs.ok()) {
    report.pairs = std::move(pairs).value();
  } else if (!is_raw || pairs.status().code() != StatusCode::not_found) {
    return std::move(pairs).status();
  }
  for (const RecoveryReport& pair : report.pairs) {
    report.acted |= pair.acted;
    report.blocked |= pair.blocked;
  }
  return report;
}

}  // namespace ropewalk
