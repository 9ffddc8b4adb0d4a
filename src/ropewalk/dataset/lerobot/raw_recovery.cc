#include "ropewalk/dataset/lerobot/raw_recovery.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/json_lines_internal.h"
#include "ropewalk/dataset/lerobot/raw_files_internal.h"
#include "ropewalk/dataset/lerobot/raw_lock.h"
#include "ropewalk/episode/side_files.h"
#include "ropewalk/episode/statistics.h"

namespace ropewalk {
namespace {

constexpr std::string_view kRows = "meta/episodes.jsonl";
constexpr std::string_view kStatistics = "meta/episodes_stats.jsonl";
constexpr std::string_view kInfo = "meta/info.json";
constexpr std::string_view kPooled = "meta/stats.json";
constexpr std::uint64_t kBlockBytes = 1 << 20;

/// What the rows add up to.
struct RowTotals {
  std::set<std::int64_t> indices;
  std::int64_t rows = 0;
  std::int64_t frames = 0;
  std::int64_t videos = 0;
  bool all_count_videos = true;
  std::int64_t unreadable = 0;  ///< lines in the middle: nobody knows whose files they name
};

class Recovery {
 public:
  Recovery(const std::filesystem::path& root, const std::filesystem::path& staging)
      : root_(root), staging_(staging), orphans_(raw_orphans(root)) {}

  Result<Findings> run(const LedgerActor& actor) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(root_ / kRows));
    if (!there) return std::move(findings_);  // a dataset that has never been saved to
    {
      ROPEWALK_ASSIGN_OR_RETURN(const FileLock changing, lock_ledger(root_));
      ROPEWALK_RETURN_IF_ERROR(end_last_line(kRows));
      ROPEWALK_RETURN_IF_ERROR(end_last_line(kStatistics));
    }
    // Now the ledger: it cuts its own torn tail and writes what rows say that it does not know.
    ROPEWALK_ASSIGN_OR_RETURN(const Ledger ledger, Ledger::open_for_write(root_, actor));
    findings_.append(ledger.findings());
    ROPEWALK_RETURN_IF_ERROR(count_rows());
    ROPEWALK_RETURN_IF_ERROR(move_orphans(ledger));
    ROPEWALK_RETURN_IF_ERROR(empty_staging());
    ROPEWALK_ASSIGN_OR_RETURN(const FileLock changing, lock_ledger(root_));
    ROPEWALK_RETURN_IF_ERROR(rebuild_info());
    ROPEWALK_RETURN_IF_ERROR(rebuild_statistics());
    return std::move(findings_);
  }

 private:
  // A last line without LF would grow together with the next one. It is complete or it is cut; what
  // is cut is kept among the orphans.
  Status end_last_line(std::string_view file) {
    const std::filesystem::path path = root_ / file;
    ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(path));
    if (!there || there->size_bytes == 0) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source(path));
    std::uint64_t begin = source->size();  // of the last line
    std::string tail;
    while (begin > 0) {
      const std::uint64_t step = std::min(begin, kBlockBytes);
      std::string block(static_cast<std::size_t>(step), '\0');
      ROPEWALK_RETURN_IF_ERROR(source->read_at(
          begin - step, {reinterpret_cast<std::uint8_t*>(block.data()), block.size()}));
      const std::size_t newline = block.rfind('\n');
      if (newline != std::string::npos) {
        tail.insert(0, block, newline + 1);
        begin -= step - newline - 1;
        break;
      }
      tail.insert(0, block);
      begin -= step;
      if (tail.size() > Limits().max_json_line_bytes) {
        return resource_exhausted(fmt::format("{}: the last line has more than {} bytes",
                                              path.string(), Limits().max_json_line_bytes));
      }
    }
    if (tail.empty()) return ok_status();
    const auto line = parse_json(tail);
    if (line.ok() && line->get_int64("episode_index")) {
      findings_.add({.code = "row_line_ended",
                     .severity = Severity::warning,
                     .file = std::string(file),
                     .episode = line->get_int64("episode_index"),
                     .found = "a last line without its end",
                     .decision = "it is whole and was given its end"});
      return append_file_durably(path, as_bytes("\n"));
    }
    const std::filesystem::path kept = free_place(orphans_ / (std::string(file) + ".torn"));
    ROPEWALK_RETURN_IF_ERROR(make_durable_directories(kept.parent_path()));
    ROPEWALK_RETURN_IF_ERROR(write_new_file(kept, as_bytes(tail)));
    Bytes whole(static_cast<std::size_t>(begin));
    ROPEWALK_RETURN_IF_ERROR(source->read_at(0, whole));
    source.reset();
    ROPEWALK_RETURN_IF_ERROR(replace_file(path, whole));
    findings_.add(
        {.code = "row_line_cut",
         .severity = Severity::warning,
         .file = std::string(file),
         .found = fmt::format("{} bytes of a line that was not written to its end", tail.size()),
         .decision = "cut and kept as " + kept.string()});
    return ok_status();
  }

  Status count_rows() {
    ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(root_ / kRows));
    return lerobot::for_each_line(
        *source, {}, nullptr, [&](std::string_view text, lerobot::LinePlace) -> Status {
          if (text.find_first_not_of(" \t") == std::string_view::npos) return ok_status();
          const auto row = parse_json(text);
          const auto index = row.ok() ? row->get_int64("episode_index") : std::nullopt;
          if (!index) {
            ++totals_.unreadable;
            return ok_status();
          }
          totals_.indices.insert(*index);
          ++totals_.rows;
          totals_.frames += row->get_int64("length").value_or(0);
          const auto videos = row->get_int64("total_videos");
          totals_.all_count_videos &= videos.has_value();
          totals_.videos += videos.value_or(0);
          return ok_status();
        });
  }

  Status move_orphans(const Ledger& ledger) {
    std::vector<std::string> orphans;
    for (const char* folder : {"data", "videos"}) {
      ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(root_ / folder));
      if (!there) continue;
      ROPEWALK_ASSIGN_OR_RETURN(const auto files, list_tree(root_ / folder));
      for (const std::string& file : files) {
        const std::int64_t index = lerobot_internal::raw_index_in_name("/" + file);
        // A row that vanished, though the ledger knows it, is no interrupted commit.
        if (index < 0 || totals_.indices.contains(index) || ledger.episode_revision(index) > 0) {
          continue;
        }
        orphans.push_back(std::string(folder) + "/" + file);
      }
    }
    if (orphans.empty()) return ok_status();
    if (totals_.unreadable > 0 || totals_.rows == 0) {
      findings_.add({.code = "orphans_undecided",
                     .severity = Severity::error,
                     .file = std::string(kRows),
                     .count = static_cast<std::int64_t>(orphans.size()),
                     .found = totals_.rows == 0
                                  ? "no row at all, but files of episodes"
                                  : fmt::format("{} rows that cannot be read", totals_.unreadable),
                     .decision = "nothing was moved; repair the rows first"});
      return ok_status();
    }
    for (const std::string& file : orphans) {
      ROPEWALK_ASSIGN_OR_RETURN(const auto place, move_aside(root_ / file, orphans_ / file));
      findings_.add({.code = "orphan_moved",
                     .severity = Severity::warning,
                     .file = file,
                     .episode = lerobot_internal::raw_index_in_name(file),
                     .found = "a file of an episode that has no row",
                     .decision = "moved to " + place.string()});
    }
    return ok_status();
  }

  Status empty_staging() {
    ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(staging_));
    if (!there || !there->is_directory) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(const auto entries, list_directory(staging_));
    if (entries.empty()) return ok_status();
    // Another dataset beside this one stages there too, and its writer may be at work.
    ROPEWALK_ASSIGN_OR_RETURN(const auto beside, list_directory(root_.parent_path()));
    for (const std::string& name : beside) {
      if (name == root_.filename().string()) continue;
      ROPEWALK_ASSIGN_OR_RETURN(const auto other, file_info(root_.parent_path() / name / kRows));
      if (!other) continue;
      findings_.add({.code = "staging_shared",
                     .severity = Severity::info,
                     .file = staging_.string(),
                     .count = static_cast<std::int64_t>(entries.size()),
                     .found = "staged files, and another dataset beside this one: " + name,
                     .decision = "left alone"});
      return ok_status();
    }
    for (const std::string& name : entries) {
      ROPEWALK_ASSIGN_OR_RETURN(const auto place,
                                move_aside(staging_ / name, orphans_ / "staging" / name));
      findings_.add({.code = "staging_moved",
                     .severity = Severity::warning,
                     .file = (staging_ / name).string(),
                     .found = "files of an episode that was never committed",
                     .decision = "moved to " + place.string()});
    }
    return ok_status();
  }

  Status rebuild_info() {
    ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(root_ / kInfo));
    if (!there || totals_.unreadable > 0) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(const std::string text,
                              read_text_file(root_ / kInfo, Limits().max_json_bytes));
    ROPEWALK_ASSIGN_OR_RETURN_CTX(Json info, parse_json(text), (root_ / kInfo).string());
    std::vector<std::string> changed;
    const auto put = [&](const char* key, const Json& value) {
      const Json* found = info.find(key);
      if (found == nullptr || *found == value) return;
      changed.push_back(fmt::format("{} {} instead of {}", key, found->dump(), value.dump()));
      info.set(key, value);
    };
    put("total_episodes", totals_.rows);
    put("total_frames", totals_.frames);
    if (totals_.all_count_videos) put("total_videos", totals_.videos);
    if (const Json* splits = info.find("splits"); splits != nullptr && splits->size() == 1 &&
                                                  splits->get_string("train") && !changed.empty()) {
      put("splits", Json(Json::Object{{"train", Json(fmt::format("0:{}", totals_.rows))}}));
    }
    if (changed.empty()) return ok_status();
    findings_.add({.code = "info_rebuilt",
                   .severity = Severity::warning,
                   .file = std::string(kInfo),
                   .found = fmt::format("{}", fmt::join(changed, ", ")),
                   .decision = "counted from the rows"});
    return replace_file(root_ / kInfo, as_bytes(info.dump(2) + "\n"));
  }

  // Only what the file has is compared: which features it holds is its writer's choice.
  Status rebuild_statistics() {
    ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(root_ / kPooled));
    ROPEWALK_ASSIGN_OR_RETURN(const auto lines, file_info(root_ / kStatistics));
    if (!there || !lines) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(const std::string text,
                              read_text_file(root_ / kPooled, Limits().max_json_bytes));
    const auto parsed = parse_json(text);
    if (parsed.ok() && !parsed->is_object()) return ok_status();
    StatisticsPool pool;
    std::set<std::int64_t> seen;
    ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(root_ / kStatistics));
    ROPEWALK_RETURN_IF_ERROR(lerobot::for_each_line(
        *source, {}, nullptr, [&](std::string_view line, lerobot::LinePlace) -> Status {
          const auto row = parse_json(line);
          const auto index = row.ok() ? row->get_int64("episode_index") : std::nullopt;
          const Json* stats = row.ok() ? row->find("stats") : nullptr;
          if (index && stats != nullptr && totals_.indices.contains(*index)) {
            pool.add(statistics_from_json(*stats));
            seen.insert(*index);
          }
          return ok_status();
        }));
    if (!parsed.ok() || seen != totals_.indices) return ok_status();  // nothing to compare with
    const StatisticsMap rebuilt = pool.result();
    const StatisticsMap known = statistics_from_json(*parsed);
    const auto differs = [](const std::vector<double>& a, const std::vector<double>& b) {
      return !std::ranges::equal(a, b, [](double x, double y) {
        return std::abs(x - y) <= 1e-4 * (1 + std::max(std::abs(x), std::abs(y)));
      });
    };
    StatisticsMap out;
    std::vector<std::string> wrong;
    for (const auto& [name, statistics] : known) {
      const auto at = rebuilt.find(name);
      if (at == rebuilt.end()) return ok_status();  // of a feature that no line has
      if (differs(statistics.mean, at->second.mean) || differs(statistics.min, at->second.min) ||
          differs(statistics.max, at->second.max)) {
        wrong.push_back(name);
      }
      out.emplace(name, at->second);
    }
    if (wrong.empty()) return ok_status();
    findings_.add({.code = "statistics_rebuilt",
                   .severity = Severity::warning,
                   .file = std::string(kPooled),
                   .found = fmt::format("other values for {}", fmt::join(wrong, ", ")),
                   .decision = "pooled from " + std::string(kStatistics)});
    return replace_file(root_ / kPooled, as_bytes(statistics_to_json(out, false).dump(2) + "\n"));
  }

  // A name that is taken gets a number.
  static std::filesystem::path free_place(const std::filesystem::path& wanted) {
    std::filesystem::path out = wanted;
    for (int number = 1;; ++number) {
      const auto there = file_info(out);
      if (there.ok() && !*there) return out;
      out = wanted.string() + fmt::format(".{}", number);
    }
  }

  static Result<std::filesystem::path> move_aside(const std::filesystem::path& from,
                                                  const std::filesystem::path& wanted) {
    std::filesystem::path to = free_place(wanted);
    ROPEWALK_RETURN_IF_ERROR(make_durable_directories(to.parent_path()));
    ROPEWALK_RETURN_IF_ERROR(rename_path(from, to));
    ROPEWALK_RETURN_IF_ERROR(sync_directory(to.parent_path()));
    ROPEWALK_RETURN_IF_ERROR(sync_directory(from.parent_path()));
    return to;
  }

  const std::filesystem::path& root_;
  const std::filesystem::path& staging_;
  const std::filesystem::path orphans_;
  RowTotals totals_;
  Findings findings_;
};

std::filesystem::path without_slash(const std::filesystem::path& root) {
  return root.has_filename() ? root : root.parent_path();
}

}  // namespace

std::filesystem::path raw_orphans(const std::filesystem::path& root) {
  return without_slash(root).parent_path() / ".orphans";
}

std::filesystem::path raw_staging(const std::filesystem::path& root) {
  return without_slash(root).parent_path() / ".staging";
}

Result<Findings> recover_raw_locked(const std::filesystem::path& root,
                                    const std::filesystem::path& staging,
                                    const LedgerActor& actor) {
  const std::filesystem::path plain = without_slash(root);
  ROPEWALK_ASSIGN_OR_RETURN_CTX(Findings findings, Recovery(plain, staging).run(actor),
                                plain.string());
  return findings;
}

Result<Findings> recover_raw(const std::filesystem::path& root, const LedgerActor& actor) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(without_slash(root), error);
  if (error) return not_found(root.string() + ": " + error.message());
  const auto plain = absolute.lexically_normal();
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, lock_for_recording(plain));
  return recover_raw_locked(plain, raw_staging(plain), actor);
}

}  // namespace ropewalk
