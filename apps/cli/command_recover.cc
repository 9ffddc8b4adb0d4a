// `ropewalk recover DIR`: finish or undo what a crash interrupted.
#include <fmt/format.h>

#include "ropewalk/engine/recover.h"

#include "apps/cli/commands.h"
#include "apps/cli/findings_table.h"

namespace ropewalk::cli {

void add_recover(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "recover", "Finish or roll back an interrupted publication; repair a torn ledger");
  auto directory = std::make_shared<std::string>();
  auto options = std::make_shared<RecoverOptions>();
  command
      ->add_option("dir", *directory,
                   "Export pair, the directory of several pairs, or the raw dataset they come from")
      ->required();
  command->add_flag("--restore-backup", options->restore_backup,
                    "Put back the single backup that another program left behind");
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk recover demo/raw");
  command->callback([=, &session] {
    session.run = [=, &session] {
      const auto report = recover_path(*directory, *options);
      if (!report.ok()) return session.fail(report.status());
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        std::string text;
        if (!report->dataset.empty()) text += findings_table(report->dataset, 100) + "\n";
        for (const RecoveryReport& pair : report->pairs) {
          text += styled(pair.target.directory().string(), Style::bold) + "\n";
          text += pair.findings.empty() ? "  nothing to do\n" : findings_table(pair.findings, 100);
        }
        text += report->blocked
                    ? styled("a person has to decide; nothing was touched there\n", Style::red)
                : report->acted ? "recovered\n"
                                : "nothing to recover\n";
        session.print(text);
      }
      return report->blocked ? kExitFaultsFound : kExitDone;
    };
  });
}

}  // namespace ropewalk::cli
