// `ropewalk mcap convert` and `recover`: from and to the bags of ROS; whole files out of damaged
// ones.
#include <fmt/format.h>

#include "ropewalk/engine/mcap/bags.h"
#include "ropewalk/engine/mcap/salvage.h"

#include "apps/cli/mcap_commands.h"

namespace ropewalk::cli {
namespace {

void print_lines(Session& session, const char* mark, const std::vector<std::string>& lines) {
  if (session.json || session.quiet) return;
  for (std::size_t i = 0; i < lines.size() && i < 20; ++i) {
    fmt::print(stderr, "{}: {}\n", mark, printable(lines[i]));
  }
  if (lines.size() > 20) fmt::print(stderr, "… and {} more\n", lines.size() - 20);
}

void add_convert_command(CLI::App& mcap, Session& session) {
  struct State {
    BagConvertRequest request;
    std::string definitions;
    std::string target;
    SelectionFlags flags;
  };
  auto state = std::make_shared<State>();
  auto* command = mcap.add_subcommand(
      "convert", "Convert ROS bags (.bag, .db3, directories) to MCAP, and MCAP to them");
  command->add_option("input", state->request.input, "Bag or MCAP; its content decides which")
      ->required();
  command
      ->add_option("output", state->request.output,
                   "x.mcap, x.bag, or a directory for a ROS 2 bag of .db3 files")
      ->required();
  command->add_option("--to", state->target, "Format to write, whatever the output is called")
      ->check(CLI::IsMember({"mcap", "bag", "db3"}));
  command->add_option("--definitions", state->definitions,
                      "Folder of message definitions (pkg/msg/Type.msg) for bags without them");
  add_writing_flags(*command, state->request.writing, state->flags);
  command->add_option("--bag-compression", state->request.bag_compression, "Chunks of a .bag")
      ->check(CLI::IsMember({"none", "lz4", "bz2"}))
      ->capture_default_str();
  command->add_flag("--lenient", state->request.lenient, "Keep what decodes of damaged chunks");
  command->add_flag("--skip-unsupported", state->request.skip_unsupported,
                    "Leave out channels that a bag cannot hold");
  command->add_flag("--force", state->request.replace, "Replace an existing file");
  add_common_flags(*command, session, true);
  set_example(*command, "ropewalk mcap convert drive.bag drive.mcap");
  command->callback([state, &session] {
    session.run = [state, &session] {
      BagConvertRequest& request = state->request;
      McapSelection selection;
      McapOrder order{};
      Status status = apply_flags(state->flags, selection, request.writing, order);
      if (!status.ok()) return session.fail(status);
      request.target = bag_target_from_name(state->target);
      request.definitions = state->definitions;
      status = refuse_terminal(request.output);
      if (!status.ok()) return session.fail(status);
      const auto report = convert_bag(request, session.context());
      if (!report.ok()) return session.fail(report.status());
      print_lines(session, report->lossy ? "lost" : "note", report->problems);
      print_lines(session, "lost", report->dropped);
      print_lines(session, "note", report->notes);
      if (session.json && request.output != kStandardStream) session.print_json(report->to_json());
      print_beside(
          session, request.output,
          fmt::format("{} → {} {}: {} messages on {} topics in {}\n", report->from, report->to,
                      report->output, human_count(static_cast<std::int64_t>(report->messages)),
                      report->topics.size(), human_seconds(report->seconds)));
      return report->lossy ? kExitLossReported : kExitDone;
    };
  });
}

std::string render(const McapRecoverReport& report) {
  const mcap::RecoverReport& recovered = report.recovered;
  Table table({"topic", "schema", "messages", "unverified", "lost"});
  for (const std::size_t column : {2U, 3U, 4U}) table.align_right(column);
  const auto count = [](std::uint64_t n) { return human_count(static_cast<std::int64_t>(n)); };
  for (const mcap::RecoveredTopic& topic : recovered.topics) {
    table.add({printable(topic.topic), topic.schema.empty() ? "–" : printable(topic.schema),
               count(topic.messages), count(topic.unverified), count(topic.lost)});
  }
  std::string out = table.render();
  out += fmt::format("{}: {} messages in {} chunks", report.output,
                     count(recovered.written.message_count), recovered.written.chunk_count);
  if (recovered.has_loss()) {
    out +=
        fmt::format("; {} damaged bytes in {} ranges, {} messages known to be lost, {} unverified",
                    count(recovered.lost_bytes), recovered.lost_ranges.size(),
                    count(recovered.lost_messages), count(recovered.unverified_messages));
  } else {
    out += "; nothing is lost";
  }
  return out + "\n";
}

void add_recover_command(CLI::App& mcap, Session& session) {
  struct State {
    McapRecoverRequest request;
    std::string chunk_size;
  };
  auto state = std::make_shared<State>();
  auto* command = mcap.add_subcommand(
      "recover", "Write a damaged or unfinished file anew and say what is lost");
  command->add_option("file", state->request.input, "MCAP file; without it standard input")
      ->default_val(kStandardStream);
  command->add_option("-o,--output", state->request.output, "File to write; '-' is standard output")
      ->default_val(kStandardStream);
  command->add_flag("--force", state->request.replace, "Replace an existing file");
  command->add_option("--compression", state->request.compression, "Codec of chunks")
      ->check(CLI::IsMember({"preserve", "none", "lz4", "zstd"}))
      ->capture_default_str();
  command->add_option("--chunk-size", state->chunk_size,
                      "Bytes at which a chunk closes, such as 4MiB (default 1MiB)");
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap recover crashed.mcap -o whole.mcap");
  command->callback([state, &session] {
    session.run = [state, &session] {
      if (!state->chunk_size.empty()) {
        const auto size = parse_byte_size(state->chunk_size);
        if (!size.ok()) return session.fail(size.status());
        state->request.chunk_bytes = *size;
      }
      if (const Status status = refuse_terminal(state->request.output); !status.ok()) {
        return session.fail(status);
      }
      const auto report = recover_mcap(state->request, session.context());
      if (!report.ok()) return session.fail(report.status());
      std::vector<FileProblem> problems;
      for (const mcap::Problem& problem : report->recovered.problems) {
        problems.push_back({.file = report->input, .problem = problem});
      }
      print_problems(session, problems);
      if (session.json && state->request.output != kStandardStream) {
        session.print_json(report->to_json());
      }
      print_beside(session, state->request.output, render(*report));
      return report->recovered.has_loss() ? kExitLossReported : kExitDone;
    };
  });
}

}  // namespace

void add_mcap_convert(CLI::App& mcap, Session& session) {
  add_convert_command(mcap, session);
  add_recover_command(mcap, session);
}

}  // namespace ropewalk::cli
