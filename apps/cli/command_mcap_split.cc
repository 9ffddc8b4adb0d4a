// `ropewalk mcap split`: one file into several complete ones.
#include <fmt/format.h>

#include "ropewalk/engine/mcap/split.h"

#include "apps/cli/mcap_commands.h"

namespace ropewalk::cli {

void add_mcap_split(CLI::App& mcap, Session& session) {
  struct State {
    SplitRequest request;
    SelectionFlags flags;
    std::string output;
    std::string duration;
    std::string size;
  };
  auto state = std::make_shared<State>();
  auto* command = mcap.add_subcommand(
      "split", "Cut a file by duration, size, count or topic; each part is a complete file");
  command->add_option("file", state->request.input, "MCAP file; '-' is standard input")->required();
  command->add_option("-o,--output", state->output, "Directory for the parts")->required();
  auto* ways = command->add_option_group("one of");
  ways->add_option("--duration", state->duration, "Length of a part, such as 30s or 5min");
  ways->add_option("--size", state->size, "Size of a part, such as 500MB");
  ways->add_option("--count", state->request.count, "Messages of a part");
  ways->add_flag("--by-topic", state->request.by_topic, "A part for every topic");
  ways->require_option(1);
  command->add_option("--stem", state->request.stem,
                      "Beginning of the names (default: the file's)");
  command->add_flag("--force", state->request.replace, "Replace existing parts");
  command->add_flag("--lenient", state->request.lenient, "Copy what cannot be verified, too");
  add_topic_flags(*command, state->request.selection, state->flags);
  add_time_flags(*command, state->flags);
  add_order_flag(*command, state->flags);
  add_writing_flags(*command, state->request.writing, state->flags);
  add_common_flags(*command, session, true);
  set_example(*command, "ropewalk mcap split run.mcap --duration 60s -l '/tf_static' -o parts/");
  command->callback([state, &session] {
    session.run = [state, &session] {
      SplitRequest& request = state->request;
      request.output = state->output;
      Status status = apply_flags(state->flags, request.selection, request.writing, request.order);
      if (!status.ok()) return session.fail(status);
      if (!state->duration.empty()) {
        const auto duration = parse_duration(state->duration);
        if (!duration.ok()) return session.fail(duration.status());
        request.duration_ns = *duration;
      }
      if (!state->size.empty()) {
        const auto size = parse_byte_size(state->size);
        if (!size.ok()) return session.fail(size.status());
        request.bytes = *size;
      }
      const auto report = split_mcap(request, session.context());
      if (!report.ok()) return session.fail(report.status());
      print_problems(session, report->problems);
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        Table table({"part", "messages", "bytes", "duration"});
        for (const std::size_t column : {1U, 2U, 3U}) table.align_right(column);
        for (const SplitPart& part : report->parts) {
          table.add({printable(part.path), human_count(static_cast<std::int64_t>(part.messages)),
                     human_bytes(part.bytes), format_duration(part.end_time - part.start_time)});
        }
        session.print(table.render());
      }
      return report->lossy() ? kExitLossReported : kExitDone;
    };
  });
}

}  // namespace ropewalk::cli
