// `ropewalk mcap doctor` and `diff`: what is wrong with a file, and what differs between two.
#include <fmt/format.h>

#include "ropewalk/engine/mcap/diff.h"
#include "ropewalk/engine/mcap/doctor.h"

#include "apps/cli/mcap_commands.h"

namespace ropewalk::cli {
namespace {

void add_doctor(CLI::App& mcap, Session& session) {
  auto* command = mcap.add_subcommand("doctor", "Examine files; exit 1 when one has faults");
  auto inputs = std::make_shared<std::vector<std::string>>();
  auto strict = std::make_shared<bool>(false);
  command->add_option("file", *inputs, "MCAP files; '-' is standard input")->required();
  command->add_flag("--strict-message-order", *strict,
                    "Messages out of the order of their log times are errors");
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap doctor run.mcap");
  command->callback([=, &session] {
    session.run = [=, &session] {
      Json documents = Json::array();
      bool healthy = true;
      for (const std::string& input : *inputs) {
        const auto report =
            doctor_mcap({.input = input, .strict_message_order = *strict}, session.context());
        if (!report.ok()) return session.fail(report.status());
        healthy = healthy && report->healthy();
        documents.push_back(report->to_json());
        if (session.json) continue;
        session.print("");  // takes the progress line away
        for (const Diagnosis& diagnosis : report->diagnoses) {
          if (session.quiet && !diagnosis.error) continue;
          const char* word = diagnosis.error ? "error" : "warning";
          fmt::print(stderr, "{}: {}: byte {}: {}\n",
                     stderr_is_terminal()
                         ? fmt::format("\x1b[{}m{}\x1b[0m", diagnosis.error ? 31 : 33, word)
                         : word,
                     report->name, diagnosis.offset, printable(diagnosis.text));
        }
        const std::uint64_t listed = report->diagnoses.size();
        if (report->errors + report->warnings > listed) {
          fmt::print(stderr, "… and {} more\n", report->errors + report->warnings - listed);
        }
        session.print(fmt::format(
            "{}: {}, {} warnings; {} messages in {} chunks, {}\n", report->name,
            report->healthy() ? styled("no errors", Style::green)
                              : styled(fmt::format("{} errors", report->errors), Style::red),
            report->warnings, human_count(static_cast<std::int64_t>(report->messages)),
            human_count(static_cast<std::int64_t>(report->chunks)),
            human_bytes(report->size_bytes)));
      }
      if (session.json) {
        session.print_json(documents.size() == 1 ? (*documents.as_array())[0] : documents);
      }
      return healthy ? kExitDone : kExitFaultsFound;
    };
  });
}

std::string render(const McapDiffReport& report) {
  std::string out;
  for (const McapDifference& difference : report.differences) {
    const char* mark = difference.kind == McapDifference::Kind::changed     ? "~"
                       : difference.kind == McapDifference::Kind::only_left ? "-"
                                                                            : "+";
    const Style style = difference.kind == McapDifference::Kind::changed     ? Style::yellow
                        : difference.kind == McapDifference::Kind::only_left ? Style::red
                                                                             : Style::green;
    out +=
        styled(fmt::format("{} {} {}{}: {}", mark, difference.what, printable(difference.name),
                           difference.what == "message" ? fmt::format(" at {}", difference.log_time)
                                                        : std::string(),
                           printable(difference.detail)),
               style) +
        "\n";
  }
  if (report.difference_count > report.differences.size()) {
    out += fmt::format("… and {} more\n", report.difference_count - report.differences.size());
  }
  Table table({"topic", "equal", "changed", "only left", "only right"});
  for (const std::size_t column : {1U, 2U, 3U, 4U}) table.align_right(column);
  for (const auto& [topic, counts] : report.topics) {
    const auto count = [](std::uint64_t n) { return human_count(static_cast<std::int64_t>(n)); };
    table.add({printable(topic), count(counts.equal), count(counts.changed),
               count(counts.only_left), count(counts.only_right)});
  }
  if (!report.topics.empty()) out += (out.empty() ? "" : "\n") + table.render();
  out += report.equal()
             ? "equal\n"
             : fmt::format("{} differences\n",
                           human_count(static_cast<std::int64_t>(report.difference_count)));
  return out;
}

void add_diff(CLI::App& mcap, Session& session) {
  struct State {
    McapDiffRequest request;
    SelectionFlags flags;
  };
  auto state = std::make_shared<State>();
  auto* command =
      mcap.add_subcommand("diff", "Compare two files by content; exit 1 when they differ");
  command->add_option("left", state->request.left, "MCAP file")->required();
  command->add_option("right", state->request.right, "MCAP file")->required();
  command
      ->add_option("-y,--include-topic-regex", state->request.selection.include_topics,
                   "Compare topics that match; may be given again")
      ->allow_extra_args(false);
  command
      ->add_option("-n,--exclude-topic-regex", state->request.selection.exclude_topics,
                   "Do not compare topics that match")
      ->allow_extra_args(false);
  add_time_flags(*command, state->flags);
  command->add_flag("--exclude-metadata", state->flags.exclude_metadata, "Do not compare metadata");
  command->add_flag("--exclude-attachments", state->flags.exclude_attachments,
                    "Do not compare attachments");
  command->add_flag("--ignore-sequence", state->request.ignore_sequence,
                    "Do not compare sequence numbers");
  command->add_flag("--ignore-publish-time", state->request.ignore_publish_time,
                    "Do not compare publish times");
  command->add_option("--max", state->request.max_listed, "Differences listed one by one")
      ->capture_default_str();
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap diff before.mcap after.mcap");
  command->callback([state, &session] {
    session.run = [state, &session] {
      McapWriting writing;
      McapOrder order{};
      const Status status = apply_flags(state->flags, state->request.selection, writing, order);
      if (!status.ok()) return session.fail(status);
      const auto report = diff_mcap(state->request, session.context());
      if (!report.ok()) return session.fail(report.status());
      print_problems(session, report->problems);
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        session.print(render(*report));
      }
      return report->equal() ? kExitDone : kExitFaultsFound;
    };
  });
}

}  // namespace

void add_mcap_proof(CLI::App& mcap, Session& session) {
  add_doctor(mcap, session);
  add_diff(mcap, session);
}

}  // namespace ropewalk::cli
