// `ropewalk review …`: what operators do with episodes: scan, list, show, mark, log, undo, sheet.
#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ropewalk/engine/contact_sheet.h"
#include "ropewalk/engine/review.h"

#include "apps/cli/commands.h"

namespace ropewalk::cli {
namespace {

std::string login_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : fmt::format("uid {}", ::getuid());
}

std::string coloured_quality(const std::string& quality) {
  if (quality.empty()) return styled("unchecked", Style::dim);
  return styled(quality, quality == "red" ? Style::red : Style::green);
}

std::string coloured_outcome(const Decision& decision) {
  return styled(outcome_name(decision.outcome),
                decision.outcome == Outcome::accepted ? Style::green : Style::red) +
         (decision.overrides_quality ? styled(" (override)", Style::yellow) : "");
}

// "frozen_camera ×2, non_finite_value"
std::string issue_codes(const Json& issues) {
  std::string out;
  const auto* list = issues.as_array();
  if (!list) return out;
  std::vector<std::pair<std::string, std::int64_t>> codes;
  for (const Json& issue : *list) {
    const std::string code = issue.get_string("code").value_or("?");
    auto at = std::ranges::find(codes, code, &std::pair<std::string, std::int64_t>::first);
    if (at == codes.end()) {
      codes.emplace_back(code, 1);
    } else {
      ++at->second;
    }
  }
  for (const auto& [code, count] : codes) {
    if (!out.empty()) out += ", ";
    out += count > 1 ? fmt::format("{} ×{}", code, count) : code;
  }
  return out;
}

std::string issue_lines(const Json& issues, Style style) {
  std::string out;
  const auto* list = issues.as_array();
  if (!list) return out;
  for (const Json& issue : *list) {
    std::string where = issue.get_string("stream").value_or("");
    if (const auto first = issue.get_int64("first_frame")) {
      where += fmt::format(" frames {}–{}", *first, issue.get_int64("last_frame").value_or(*first));
    }
    out += fmt::format("    {}  {}  {}\n", styled(issue.get_string("code").value_or("?"), style),
                       where, issue.get_string("detail").value_or(""));
  }
  return out;
}

void add_scan(CLI::App& review, Session& session) {
  auto* command = review.add_subcommand(
      "scan", "Run every automatic check that a saved episode allows, on any dataset");
  auto request = std::make_shared<ScanRequest>();
  auto path = std::make_shared<std::string>();
  auto episodes = std::make_shared<std::string>();
  command->add_option("raw", *path, "Dataset")->required();
  command->add_flag("--write", request->write, "Record quality and issues through the ledger");
  command->add_option("--episodes", *episodes, "Only these, for example 0-9,14");
  command
      ->add_option("--min-frames", request->options.min_episode_frames,
                   "Shorter episodes are red; 0 takes what the dataset says")
      ->capture_default_str();
  add_common_flags(*command, session, true);
  set_example(*command, "ropewalk review scan demo/raw --write");
  command->callback([=, &session] {
    session.run = [=, &session] {
      request->path = *path;
      if (!episodes->empty()) {
        auto list = parse_episode_list(*episodes);
        if (!list.ok()) return session.fail(list.status());
        request->episodes = std::move(list).value();
      }
      const auto report = review_scan(*request, session.context());
      if (!report.ok()) return session.fail(report.status());
      if (session.json) {
        session.print_json(report->to_json());
        return kExitDone;
      }
      Table table({"episode", "frames", "quality", "issues", "findings"});
      table.align_right(0);
      table.align_right(1);
      for (const ScannedEpisode& episode : report->episodes) {
        table.add({fmt::format("{}", episode.episode_index), human_count(episode.length),
                   coloured_quality(episode.quality.quality()),
                   episode.error.empty() ? issue_codes(episode.quality.issues_json())
                                         : "cannot be read: " + episode.error,
                   issue_codes(episode.quality.findings_json())});
      }
      std::string text = table.render();
      text += fmt::format("{} of {} episodes red; {} frames, {} pictures in {}\n", report->red,
                          report->episodes.size(), human_count(report->frames),
                          human_count(report->pictures), human_seconds(report->seconds));
      if (request->write) {
        text += report->recorded == 0
                    ? fmt::format("the ledger knows all of this already, revision {}\n",
                                  report->revision)
                    : fmt::format("{} ledger line{} written, revision {}\n", report->recorded,
                                  report->recorded == 1 ? "" : "s", report->revision);
      } else if (report->red > 0) {
        text += styled("nothing was recorded; --write does\n", Style::dim);
      }
      session.print(text);
      return kExitDone;
    };
  });
}

void add_list(CLI::App& review, Session& session) {
  auto* command = review.add_subcommand("list", "List episodes with quality, verdict and outcome");
  auto path = std::make_shared<std::string>();
  auto only = std::make_shared<std::string>("all");
  command->add_option("raw", *path, "Raw dataset")->required();
  command->add_option("--only", *only, "Which rows")
      ->check(CLI::IsMember({"all", "accepted", "rejected", "undecided", "red"}))
      ->capture_default_str();
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk review list demo/raw --only rejected");
  command->callback([=, &session] {
    session.run = [=, &session] {
      auto list = review_list(*path);
      if (!list.ok()) return session.fail(list.status());
      std::erase_if(list->entries, [&](const ReviewEntry& entry) {
        if (*only == "accepted") return entry.decision.outcome != Outcome::accepted;
        if (*only == "rejected") return entry.decision.outcome != Outcome::rejected;
        if (*only == "undecided") return !entry.row.verdict.empty();
        if (*only == "red") return entry.row.quality != "red";
        return false;
      });
      if (session.json) {
        session.print_json(list->to_json());
        return kExitDone;
      }
      Table table({"episode", "frames", "quality", "verdict", "outcome", "issues", "note"});
      table.align_right(0);
      table.align_right(1);
      for (const ReviewEntry& entry : list->entries) {
        std::string verdict = entry.row.verdict.empty() ? "–" : entry.row.verdict;
        if (entry.row.verdict_by_machine) verdict += " (machine)";
        table.add({fmt::format("{}", entry.row.episode_index), human_count(entry.row.length),
                   coloured_quality(entry.row.quality), verdict,
                   entry.row.trashed_at.empty() ? coloured_outcome(entry.decision)
                                                : styled("trashed", Style::dim),
                   issue_codes(entry.row.issues), entry.row.note});
      }
      session.print(table.render() +
                    fmt::format("{} accepted, {} rejected, {} without a verdict; revision {}\n",
                                list->accepted, list->rejected, list->undecided, list->revision));
      return kExitDone;
    };
  });
}

void add_show(CLI::App& review, Session& session) {
  auto* command = review.add_subcommand("show", "Show everything known of some episodes");
  auto path = std::make_shared<std::string>();
  auto episodes = std::make_shared<std::string>();
  command->add_option("raw", *path, "Raw dataset")->required();
  command->add_option("--episode", *episodes, "Episodes, for example 3 or 0-2")->required();
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk review show demo/raw --episode 3");
  command->callback([=, &session] {
    session.run = [=, &session] {
      auto wanted = parse_episode_list(*episodes);
      if (!wanted.ok()) return session.fail(wanted.status());
      const auto list = review_list(*path, *wanted);
      if (!list.ok()) return session.fail(list.status());
      const auto log = review_log(*path, {.episodes = *wanted});
      if (!log.ok()) return session.fail(log.status());
      if (session.json) {
        Json document = list->to_json();
        Json rows = Json::array();
        for (const ReviewEntry& entry : list->entries) rows.push_back(entry.raw);
        document.set("rows", std::move(rows));
        Json lines = Json::array();
        for (const LedgerLine& line : *log) lines.push_back(to_json(line));
        document.set("log", std::move(lines));
        session.print_json(document);
        return kExitDone;
      }
      std::string text;
      for (const ReviewEntry& entry : list->entries) {
        const ReviewRow& row = entry.row;
        text += styled(fmt::format("episode {}", row.episode_index), Style::bold) +
                fmt::format("  {} frames  {}\n", human_count(row.length),
                            entry.tasks.empty() ? "" : entry.tasks.front());
        text += fmt::format("  quality  {}\n  verdict  {}\n  outcome  {} by {}\n",
                            coloured_quality(row.quality), row.verdict.empty() ? "–" : row.verdict,
                            coloured_outcome(entry.decision), decided_by_name(entry.decision.by));
        if (!row.note.empty()) text += fmt::format("  note     {}\n", row.note);
        if (row.issues.size() > 0) text += "  issues\n" + issue_lines(row.issues, Style::red);
        if (row.findings.size() > 0) {
          text += "  findings\n" + issue_lines(row.findings, Style::yellow);
        }
        text += "  history\n";
        for (const LedgerLine& line : *log) {
          if (line.episode_index != row.episode_index) continue;
          text += fmt::format("    {:>4}  {}  {:<10} {:<12} {}\n", line.rev, line.at.substr(0, 19),
                              line.actor, ledger_kind_name(line.kind), line.after.dump());
        }
      }
      session.print(text);
      return kExitDone;
    };
  });
}

void print_change(Session& session, const LedgerChange& change) {
  if (session.json) {
    session.print_json(to_json(change));
    return;
  }
  std::string text;
  for (const LedgerLine& line : change.lines) {
    text += fmt::format("  {:>4}  episode {}  {}  {} → {}\n", line.rev,
                        line.episode_index ? fmt::format("{}", *line.episode_index) : "–",
                        ledger_kind_name(line.kind), line.before.dump(), line.after.dump());
  }
  text += change.lines.empty()
              ? "nothing changed: it was so already\n"
              : fmt::format("{} ledger lines, revision {}; `review undo` takes it back\n",
                            change.lines.size(), change.revision);
  session.print(text);
}

void add_mark(CLI::App& review, Session& session) {
  auto* command = review.add_subcommand("mark", "Record a verdict, a note, or both");
  auto path = std::make_shared<std::string>();
  auto episodes = std::make_shared<std::string>();
  auto verdict = std::make_shared<std::string>();
  auto note = std::make_shared<std::string>();
  auto by = std::make_shared<std::string>(login_name());
  auto revision = std::make_shared<std::int64_t>(-1);
  command->add_option("raw", *path, "Raw dataset")->required();
  command->add_option("--episode", *episodes, "Episodes, for example 3 or 0-9,14")->required();
  command->add_option("--verdict", *verdict, "clear takes a verdict away")
      ->check(CLI::IsMember({"pass", "fail", "clear"}));
  auto* note_option = command->add_option("--note", *note, "Replaces the note; \"\" clears it");
  command->add_option("--by", *by, "Who decides")->capture_default_str();
  command->add_option("--if-revision", *revision,
                      "Refuse when a later change touched one of the episodes");
  add_common_flags(*command, session, false);
  set_example(
      *command,
      "ropewalk review mark demo/raw --episode 3,5-7 --verdict fail --note \"gripper slipped\"");
  command->callback([=, &session] {
    const bool has_note = note_option->count() > 0;
    session.run = [=, &session] {
      auto wanted = parse_episode_list(*episodes);
      if (!wanted.ok()) return session.fail(wanted.status());
      MarkRequest request{.episodes = std::move(wanted).value()};
      if (!verdict->empty()) request.verdict = *verdict;
      if (has_note) request.note = *note;
      if (*revision >= 0) request.if_revision = *revision;
      const auto change = review_mark(*path, request, {*by, "cli"});
      if (!change.ok()) return session.fail(change.status());
      print_change(session, *change);
      return kExitDone;
    };
  });
}

void add_log(CLI::App& review, Session& session) {
  auto* command = review.add_subcommand("log", "Show who changed what, oldest first");
  auto path = std::make_shared<std::string>();
  auto episodes = std::make_shared<std::string>();
  auto filter = std::make_shared<LogFilter>();
  filter->last = 50;
  command->add_option("raw", *path, "Raw dataset")->required();
  command->add_option("--episode", *episodes, "Only lines about these");
  command->add_option("--last", filter->last, "Only the last so many lines; 0: all")
      ->capture_default_str();
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk review log demo/raw --episode 3");
  command->callback([=, &session] {
    session.run = [=, &session] {
      if (!episodes->empty()) {
        auto wanted = parse_episode_list(*episodes);
        if (!wanted.ok()) return session.fail(wanted.status());
        filter->episodes = std::move(wanted).value();
      }
      const auto lines = review_log(*path, *filter);
      if (!lines.ok()) return session.fail(lines.status());
      if (session.json) {
        Json list = Json::array();
        for (const LedgerLine& line : *lines) list.push_back(to_json(line));
        session.print_json(list);
        return kExitDone;
      }
      Table table({"rev", "at", "who", "episode", "what", "before", "after"});
      table.align_right(0);
      for (const LedgerLine& line : *lines) {
        table.add({fmt::format("{}", line.rev), line.at.substr(0, 19), line.actor,
                   line.episode_index ? fmt::format("{}", *line.episode_index) : "–",
                   std::string(ledger_kind_name(line.kind)) +
                       (line.undoes ? fmt::format(" (undoes {})", *line.undoes) : ""),
                   line.before.dump(), line.after.dump()});
      }
      session.print(lines->empty() ? "no changes recorded\n" : table.render());
      return kExitDone;
    };
  });
}

void add_undo(CLI::App& review, Session& session) {
  auto* command = review.add_subcommand("undo", "Take back the last change, or a named one");
  auto path = std::make_shared<std::string>();
  auto rev = std::make_shared<std::int64_t>(0);
  auto batch = std::make_shared<std::string>();
  auto by = std::make_shared<std::string>(login_name());
  command->add_option("raw", *path, "Raw dataset")->required();
  command->add_option("--rev", *rev, "The ledger line to take back; a bulk change goes as one");
  command->add_option("--batch", *batch, "The bulk change to take back");
  command->add_option("--by", *by, "Who takes it back")->capture_default_str();
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk review undo demo/raw");
  command->callback([=, &session] {
    session.run = [=, &session] {
      UndoRequest request;
      if (*rev > 0) request.rev = *rev;
      if (!batch->empty()) request.batch = *batch;
      const auto change = review_undo(*path, request, {*by, "cli"});
      if (!change.ok()) return session.fail(change.status());
      print_change(session, *change);
      return kExitDone;
    };
  });
}

void add_sheet(CLI::App& review, Session& session) {
  auto* command = review.add_subcommand(
      "sheet", "Write one contact sheet: film strips, plots, issue marks, outcome");
  auto request = std::make_shared<ContactSheetRequest>();
  auto path = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  auto episodes = std::make_shared<std::string>();
  command->add_option("raw", *path, "Dataset")->required();
  command->add_option("-o,--out", *out, "File to write: .html or .png")->required();
  command->add_option("--episodes", *episodes, "Only these, for example 0-9,14");
  add_common_flags(*command, session, true);
  set_example(*command, "ropewalk review sheet demo/raw -o sheet.html");
  command->callback([=, &session] {
    session.run = [=, &session] {
      request->path = *path;
      request->out = *out;
      if (!episodes->empty()) {
        auto wanted = parse_episode_list(*episodes);
        if (!wanted.ok()) return session.fail(wanted.status());
        request->episodes = std::move(wanted).value();
      }
      const auto report = write_contact_sheet(*request, session.context());
      if (!report.ok()) return session.fail(report.status());
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        session.print(fmt::format("{}: {} episodes, {}\n", *out, report->episodes,
                                  human_bytes(report->bytes)));
      }
      return kExitDone;
    };
  });
}

}  // namespace

void add_review(CLI::App& app, Session& session) {
  auto* review =
      app.add_subcommand("review", "Scan, list, mark, undo: verdicts and notes of a raw dataset");
  review->require_subcommand(1);
  set_example(*review, "ropewalk review list demo/raw");
  add_scan(*review, session);
  add_list(*review, session);
  add_show(*review, session);
  add_mark(*review, session);
  add_log(*review, session);
  add_undo(*review, session);
  add_sheet(*review, session);
}

}  // namespace ropewalk::cli
