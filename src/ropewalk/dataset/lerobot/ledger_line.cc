#include "ropewalk/dataset/lerobot/ledger_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/process.h"

namespace ropewalk {
namespace {

constexpr std::array kKinds = {
    LedgerKind::saved,         LedgerKind::checked,    LedgerKind::verdict,   LedgerKind::note,
    LedgerKind::reasons,       LedgerKind::annotation, LedgerKind::marks,     LedgerKind::segments,
    LedgerKind::trashed,       LedgerKind::restored,   LedgerKind::realigned, LedgerKind::imported,
    LedgerKind::external_edit, LedgerKind::exported,   LedgerKind::uploaded};

std::string format_utc_us(std::int64_t us) {
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(us)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::int64_t in_day = (time - day).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     in_day / 3'600'000'000, in_day / 60'000'000 % 60, in_day / 1'000'000 % 60,
                     in_day % 1'000'000);
}

Status wrong_field(std::string_view field, std::string_view expected) {
  return data_loss(fmt::format("ledger line: `{}` is not {}", field, expected));
}

}  // namespace

std::optional<std::int64_t> ledger_time_us(std::string_view text) {
  const auto number = [&](std::size_t at, std::size_t digits) -> std::optional<int> {
    if (at + digits > text.size()) return std::nullopt;
    int value = 0;
    const char* begin = text.data() + at;
    const auto [end, error] = std::from_chars(begin, begin + digits, value);
    if (error != std::errc() || end != begin + digits) return std::nullopt;
    return value;
  };
  const auto year = number(0, 4), month = number(5, 2), day = number(8, 2);
  const auto hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  std::int64_t fraction_us = 0;
  if (text.size() > 20 && text[19] == '.') {
    std::int64_t unit = 100'000;
    for (std::size_t i = 20; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
      fraction_us += (text[i] - '0') * unit;
      unit /= 10;
    }
  }
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + *hour) * 60 + *minute) * 60'000'000 + *second * 1'000'000LL + fraction_us;
}

std::string_view ledger_kind_name(LedgerKind kind) {
  switch (kind) {
    case LedgerKind::saved:
      return "saved";
    case LedgerKind::checked:
      return "checked";
    case LedgerKind::verdict:
      return "verdict";
    case LedgerKind::note:
      return "note";
    case LedgerKind::reasons:
      return "reasons";
    case LedgerKind::annotation:
      return "annotation";
    case LedgerKind::marks:
      return "marks";
    case LedgerKind::segments:
      return "segments";
    case LedgerKind::trashed:
      return "trashed";
    case LedgerKind::restored:
      return "restored";
    case LedgerKind::realigned:
      return "realigned";
    case LedgerKind::imported:
      return "imported";
    case LedgerKind::external_edit:
      return "external_edit";
    case LedgerKind::exported:
      return "exported";
    case LedgerKind::uploaded:
      return "uploaded";
    case LedgerKind::unknown:
      return "unknown";
  }
  return "";
}

std::optional<LedgerKind> ledger_kind_from_name(std::string_view name) {
  for (const LedgerKind kind : kKinds) {
    if (ledger_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

Json to_json(const LedgerLine& line) {
  Json out;
  out.set("rev", line.rev);
  out.set("at", line.at);
  out.set("actor", line.actor);
  out.set("client", line.client);
  out.set("kind", ledger_kind_name(line.kind));
  if (line.episode_index) out.set("episode_index", *line.episode_index);
  if (!line.take_id.empty()) out.set("take_id", line.take_id);
  out.set("before", line.before);
  out.set("after", line.after);
  if (!line.batch.empty()) out.set("batch", line.batch);
  if (line.undoes) out.set("undoes", *line.undoes);
  return out;
}

Result<LedgerLine> parse_ledger_line(std::string_view text, const Limits& limits) {
  ROPEWALK_ASSIGN_OR_RETURN(Json json, parse_json(text, limits));
  if (!json.is_object()) return data_loss("ledger line: not a JSON object");
  LedgerLine line;
  const Json* rev = json.find("rev");
  if (rev == nullptr || !rev->is_integer() || rev->as_int64().value_or(0) < 1) {
    return wrong_field("rev", "an integer of 1 or more");
  }
  line.rev = *rev->as_int64();
  const auto at = json.get_string("at");
  if (!at || !ledger_time_us(*at)) return wrong_field("at", "a UTC time");
  line.at = *at;
  const auto kind = json.get_string("kind");
  if (!kind) return wrong_field("kind", "a text");
  line.kind = ledger_kind_from_name(*kind).value_or(LedgerKind::unknown);
  line.actor = json.get_string("actor").value_or("");
  line.client = json.get_string("client").value_or("");
  if (const Json* episode = json.find("episode_index"); episode != nullptr && !episode->is_null()) {
    if (!episode->is_integer() || episode->as_int64().value_or(-1) < 0) {
      return wrong_field("episode_index", "an integer of 0 or more");
    }
    line.episode_index = *episode->as_int64();
  }
  line.take_id = json.get_string("take_id").value_or("");
  line.batch = json.get_string("batch").value_or("");
  line.undoes = json.get_int64("undoes");
  for (const auto& [name, target] : {std::pair("before", &line.before), {"after", &line.after}}) {
    Json* value = json.find(name);
    if (value == nullptr || value->is_null()) continue;
    if (!value->is_object()) return wrong_field(name, "an object");
    *target = std::move(*value);
  }
  return line;
}

Result<LedgerScan> scan_ledger(const std::filesystem::path& path, std::uint64_t offset,
                               const Limits& limits, Findings& findings,
                               const std::function<void(LedgerLine&&)>& on_line) {
  LedgerScan scan;
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(path));
  if (!info) return scan;
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(path));
  scan.file_size = source->size();
  scan.valid_end = offset;
  constexpr std::uint64_t kBlockBytes = 1U << 20;
  std::string pending;  // bytes from valid_end on that hold no LF yet
  std::uint64_t at = offset;
  while (at < scan.file_size) {
    const std::uint64_t take = std::min(kBlockBytes, scan.file_size - at);
    const std::size_t kept = pending.size();
    pending.resize(kept + static_cast<std::size_t>(take));
    ROPEWALK_RETURN_IF_ERROR(source->read_at(
        at,
        {reinterpret_cast<std::uint8_t*>(pending.data()) + kept, static_cast<std::size_t>(take)}));
    at += take;
    std::size_t begin = 0;
    for (std::size_t lf = pending.find('\n', kept); lf != std::string::npos;
         lf = pending.find('\n', begin)) {
      const std::string_view text(pending.data() + begin, lf - begin);
      if (text.find('\0') != std::string_view::npos) return scan;
      if (!text.empty()) {
        auto line = parse_ledger_line(text, limits);
        if (line.ok()) {
          scan.last_rev = std::max(scan.last_rev, line->rev);
          on_line(std::move(line).value());
        } else {
          findings.add({.code = "ledger_line_invalid",
                        .severity = Severity::error,
                        .file = "meta/ledger.jsonl",
                        .found = std::string(line.status().message()),
                        .decision = "the line is skipped and stays in the file"});
        }
      }
      begin = lf + 1;
      scan.valid_end += text.size() + 1;
    }
    pending.erase(0, begin);
    if (pending.find('\0') != std::string::npos) return scan;
    if (pending.size() > limits.max_json_line_bytes) {
      return resource_exhausted(fmt::format("{}: a line of more than {} bytes at byte {}",
                                            path.string(), limits.max_json_line_bytes,
                                            scan.valid_end));
    }
  }
  return scan;
}

std::string next_ledger_time(std::string_view previous) {
  const std::string now = utc_now();
  const auto now_us = ledger_time_us(now);
  const auto previous_us = ledger_time_us(previous);
  if (!previous_us || !now_us || *now_us > *previous_us) return now;
  return format_utc_us(*previous_us + 1);
}

}  // namespace ropewalk
