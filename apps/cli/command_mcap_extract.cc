// `ropewalk mcap extract`: a camera as MP4 or pictures, numbers as a Parquet table.
#include <fmt/format.h>

#include "ropewalk/engine/mcap/extract.h"

#include "apps/cli/mcap_commands.h"

namespace ropewalk::cli {

void add_mcap_extract(CLI::App& mcap, Session& session) {
  struct State {
    ExtractRequest request;
    SelectionFlags flags;
    std::string form;
  };
  auto state = std::make_shared<State>();
  auto* command = mcap.add_subcommand(
      "extract", "Take a topic out: video as MP4, pictures as files, numbers as Parquet");
  command->add_option("file", state->request.input, "MCAP file; '-' is standard input")->required();
  command->add_option("--topic", state->request.topic, "Topic by name")->required();
  command
      ->add_option("-o,--output", state->request.output,
                   "x.mp4, x.parquet, or a directory for pictures")
      ->required();
  command->add_option("--as", state->form, "Form to write, whatever the output is called")
      ->check(CLI::IsMember({"mp4", "images", "parquet"}));
  command->add_option("--quality", state->request.jpeg_quality, "JPEG quality of raw pictures")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  add_time_flags(*command, state->flags);
  command->add_flag("--force", state->request.replace, "Replace an existing file");
  command->add_flag("--lenient", state->request.lenient, "Take what cannot be verified, too");
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap extract run.mcap --topic /camera/left -o left.mp4");
  command->callback([state, &session] {
    session.run = [state, &session] {
      ExtractRequest& request = state->request;
      McapSelection selection;
      McapWriting writing;
      McapOrder order{};
      const Status status = apply_flags(state->flags, selection, writing, order);
      if (!status.ok()) return session.fail(status);
      request.begin_time = selection.begin_time;
      request.end_time = selection.end_time;
      request.form = extract_form_from_name(state->form);
      const auto report = extract_mcap(request, session.context());
      if (!report.ok()) return session.fail(report.status());
      print_problems(session, report->problems);
      if (session.json) {
        session.print_json(report->to_json());
        return report->lossy() ? kExitLossReported : kExitDone;
      }
      if (!session.quiet) {
        for (const std::string& line : report->losses) {
          fmt::print(stderr, "lost: {}\n", printable(line));
        }
        for (const std::string& line : report->notes) {
          fmt::print(stderr, "note: {}\n", printable(line));
        }
      }
      const char* unit = report->form == "mp4"       ? "frames"
                         : report->form == "parquet" ? "rows"
                                                     : "pictures";
      std::string text = fmt::format("{}: {} {} of {} messages", report->output,
                                     human_count(static_cast<std::int64_t>(report->written)), unit,
                                     human_count(static_cast<std::int64_t>(report->messages)));
      if (report->width > 0) text += fmt::format(", {} x {}", report->width, report->height);
      if (!report->columns.empty()) text += fmt::format(", {} columns", report->columns.size());
      session.print(text + "\n");
      return report->lossy() ? kExitLossReported : kExitDone;
    };
  });
}

}  // namespace ropewalk::cli
