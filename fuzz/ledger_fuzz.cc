// Lines of meta/ledger.jsonl, and edits of members in the text of meta/episodes.jsonl rows.
// What is edited must read back as asked; nothing may crash, hang or grow without bound.
#include <cstdint>
#include <cstdlib>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/dataset/lerobot/ledger_line.h"
#include "ropewalk/dataset/lerobot/ledger_row_text_internal.h"

using namespace ropewalk;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text({data, size});
  Limits limits;
  limits.max_json_bytes = 1U << 20;
  if (const auto line = parse_ledger_line(text, limits); line.ok()) {
    const auto again = parse_ledger_line(to_json(*line).dump(), limits);
    if (!again.ok() || again->rev != line->rev || again->kind != line->kind) std::abort();
  }
  if (scan_row(text)) {
    const std::string set = edit_row(text, {{"qc_verdict", Json("pass")}});
    const auto members = scan_row(set);
    if (!members || !(row_value(set, *members, "qc_verdict") == Json("pass"))) std::abort();
    const std::string removed = edit_row(set, {{"qc_verdict", std::nullopt}});
    const auto left = scan_row(removed);
    if (!left) std::abort();
    for (const RowMember& member : *left) {
      if (member.key == "qc_verdict") std::abort();
    }
  }
  return 0;
}
