// `ropewalk check PATH`: everything that is wrong with a dataset.
#include <fmt/format.h>

#include "ropewalk/engine/check.h"

#include "apps/cli/commands.h"
#include "apps/cli/findings_table.h"

namespace ropewalk::cli {

std::string findings_table(const Findings& findings, std::size_t most) {
  Table table({"severity", "code", "count", "place", "what"});
  table.align_right(2);
  std::size_t shown = 0;
  for (const Finding& finding : findings.entries()) {
    if (++shown > most) break;
    std::string place = finding.file;
    if (finding.episode) place = fmt::format("episode {} {}", *finding.episode, place);
    if (!finding.feature.empty()) place += " " + finding.feature;
    if (finding.row) place += fmt::format(" row {}", *finding.row);
    std::string what;
    if (!finding.declared.empty()) what += "declared " + finding.declared + ", ";
    if (!finding.found.empty()) what += "found " + finding.found;
    if (!finding.decision.empty()) what += (what.empty() ? "" : "; ") + finding.decision;
    const Style style = finding.severity == Severity::error     ? Style::red
                        : finding.severity == Severity::warning ? Style::yellow
                                                                : Style::dim;
    table.add({styled(severity_name(finding.severity), style), finding.code,
               human_count(finding.count), place, what});
  }
  std::string out = table.render();
  if (findings.entries().size() > most) {
    out += fmt::format("… {} more; --json lists all\n", findings.entries().size() - most);
  }
  return out;
}

void add_check(CLI::App& app, Session& session) {
  auto* command =
      app.add_subcommand("check", "Validate a dataset and list every finding with its decision");
  auto path = std::make_shared<std::string>();
  auto options = std::make_shared<CheckOptions>();
  command->add_option("path", *path, "Dataset directory")->required();
  command->add_flag("--strict", options->strict, "Refuse what would otherwise be repaired");
  command->add_flag("--decode", options->decode, "Decode every frame of every camera");
  add_common_flags(*command, session, true);
  set_example(*command, "ropewalk check demo/raw --strict --decode");
  command->callback([&session, path, options] {
    session.run = [&session, path, options] {
      const auto report = check_path(*path, *options, session.context());
      if (!report.ok()) return session.fail(report.status());
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        std::string text;
        if (!report->findings.empty()) text += findings_table(report->findings, 200) + "\n";
        text += fmt::format(
            "{}  {}: {} of {} listed episodes can be read, {} frames{}\n",
            report->ok() ? styled("ok", Style::green) : styled("faults", Style::red), *path,
            human_count(report->episodes), human_count(report->listed), human_count(report->frames),
            report->decoded > 0 ? fmt::format(", {} pictures decoded", human_count(report->decoded))
                                : "");
        session.print(text);
      }
      return report->ok() ? kExitDone : kExitFaultsFound;
    };
  });
}

}  // namespace ropewalk::cli
