// `ropewalk verify PATH`: prove a published pair against its source; print the delivery checklist.
#include <fmt/format.h>

#include "ropewalk/engine/verify.h"

#include "apps/cli/commands.h"

namespace ropewalk::cli {
namespace {

std::string render(const VerifyReport& report) {
  std::string out;
  for (const HalfVerification& half : report.halves) {
    out += styled(fmt::format("{}  {}\n", half.marker.subset, half.path.string()), Style::bold);
    for (const ChecklistItem& item : half.checklist) {
      std::string mark;
      switch (item.outcome) {
        case ChecklistItem::Outcome::passed:
          mark = styled("✓", Style::green);
          break;
        case ChecklistItem::Outcome::failed:
          mark = styled("✗", Style::red);
          break;
        case ChecklistItem::Outcome::skipped:
          mark = styled("–", Style::yellow);
          break;
      }
      out += fmt::format("  {} {:<22} {}\n", mark, item.name, item.detail);
    }
    for (const Finding& finding : half.findings.entries()) out += "    " + to_line(finding) + "\n";
  }
  out += fmt::format(
      "{} in {}{}\n",
      report.passed() ? styled("passed", Style::green) : styled("FAILED", Style::red),
      human_seconds(report.seconds), report.recorded ? ", recorded in verify.json" : "");
  return out;
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto* command =
      app.add_subcommand("verify", "Prove a published pair, or one half, by reading it back");
  auto request = std::make_shared<VerifyRequest>();
  auto path = std::make_shared<std::string>();
  auto against = std::make_shared<std::string>();
  command->add_option("path", *path, "Export pair, or one of its halves")->required();
  command->add_option("--against", *against, "Source dataset; otherwise the marker's source_dir");
  command->add_flag("--full", request->full, "Decode and compare every frame");
  add_common_flags(*command, session, true);
  set_example(*command, "ropewalk verify demo/export/lerobot_v3 --full");
  command->callback([=, &session] {
    session.run = [=, &session] {
      request->path = *path;
      if (!against->empty()) request->against = *against;
      const auto report = verify_path(*request, session.context());
      if (!report.ok()) return session.fail(report.status());
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        session.print(render(*report));
      }
      return report->passed() ? kExitDone : kExitFaultsFound;
    };
  });
}

}  // namespace ropewalk::cli
