// `ropewalk mcap filter`, `sort`, `compress`, `decompress`, `merge`, `trim`: requests to the one
// pipeline that copies MCAP files.
#include <fmt/format.h>

#include "apps/cli/mcap_commands.h"

namespace ropewalk::cli {
namespace {

struct State {
  RewriteRequest request;
  SelectionFlags flags;
  std::string coalescing = "auto";
};

std::string summary(const RewriteReport& report) {
  std::string out = fmt::format("{}: {} messages", report.output,
                                human_count(static_cast<std::int64_t>(report.messages)));
  if (report.metadata > 0) out += fmt::format(", {} metadata", report.metadata);
  if (report.attachments > 0) out += fmt::format(", {} attachments", report.attachments);
  out += fmt::format(", {} from {}, in {}", human_bytes(report.bytes_written),
                     human_bytes(report.bytes_read), human_seconds(report.seconds));
  if (report.seconds > 0.5) {
    out += fmt::format(" ({}/s)", human_bytes(static_cast<std::uint64_t>(
                                      static_cast<double>(report.bytes_read) / report.seconds)));
  }
  return out + "\n";
}

int execute(Session& session, State& state) {
  RewriteRequest& request = state.request;
  if (const Status status =
          apply_flags(state.flags, request.selection, request.writing, request.order);
      !status.ok()) {
    return session.fail(status);
  }
  request.coalescing = *coalescing_from_name(state.coalescing);
  if (const Status status = refuse_terminal(request.output); !status.ok()) {
    return session.fail(status);
  }
  const auto report = rewrite_mcap(request, session.context());
  if (!report.ok()) return session.fail(report.status());
  print_problems(session, report->problems);
  if (session.json && request.output != kStandardStream) {
    session.print_json(report->to_json());
  } else {
    print_beside(session, request.output, summary(*report));
  }
  return report->lossy() ? kExitLossReported : kExitDone;
}

std::shared_ptr<State> add_copy(CLI::App& command, Session& session, bool several) {
  auto state = std::make_shared<State>();
  auto* files = command.add_option("file", state->request.inputs,
                                   several ? "MCAP files" : "MCAP file; without it standard input");
  if (several) {
    files->required();
  } else {
    files->expected(0, 1);
  }
  command.add_option("-o,--output", state->request.output, "File to write; '-' is standard output")
      ->default_val(kStandardStream);
  command.add_flag("--force", state->request.replace, "Replace an existing file");
  command.add_flag("--lenient", state->request.lenient, "Copy what cannot be verified, too");
  add_common_flags(command, session, true);
  command.callback([state, &session] {
    session.run = [state, &session] {
      if (state->request.inputs.empty()) state->request.inputs = {kStandardStream};
      return execute(session, *state);
    };
  });
  return state;
}

}  // namespace

void add_mcap_rewrite(CLI::App& mcap, Session& session) {
  {
    auto* command = mcap.add_subcommand(
        "filter", "Copy what topics and times select; lossless without a selection");
    auto state = add_copy(*command, session, false);
    add_topic_flags(*command, state->request.selection, state->flags);
    add_time_flags(*command, state->flags);
    add_order_flag(*command, state->flags);
    add_writing_flags(*command, state->request.writing, state->flags);
    set_example(*command,
                "ropewalk mcap filter run.mcap -y '/camera/.*' -y /tf -S 2026-01-31T12:00:00Z \\\n"
                "    -l '/tf_static|/map' -o part.mcap");
  }
  {
    auto* command = mcap.add_subcommand("trim", "Copy a range of times, all topics");
    auto state = add_copy(*command, session, false);
    add_time_flags(*command, state->flags);
    command
        ->add_option("-l,--last-per-channel-topic-regex", state->request.selection.last_per_channel,
                     "Keep the last message before the start on topics that match")
        ->allow_extra_args(false);
    add_order_flag(*command, state->flags);
    add_writing_flags(*command, state->request.writing, state->flags);
    set_example(*command, "ropewalk mcap trim run.mcap -s 12.5 -e 20 -o short.mcap");
  }
  {
    auto* command = mcap.add_subcommand("sort", "Copy with messages in another order");
    auto state = add_copy(*command, session, false);
    state->flags.order = "log_time";
    add_order_flag(*command, state->flags);
    add_writing_flags(*command, state->request.writing, state->flags);
    set_example(*command, "ropewalk mcap sort run.mcap -o sorted.mcap");
  }
  {
    auto* command = mcap.add_subcommand("compress", "Copy with chunks compressed");
    auto state = add_copy(*command, session, false);
    state->request.writing.compression = "zstd";
    add_order_flag(*command, state->flags);
    add_writing_flags(*command, state->request.writing, state->flags);
    set_example(*command, "ropewalk mcap compress run.mcap --compression lz4 -o small.mcap");
  }
  {
    auto* command = mcap.add_subcommand("decompress", "Copy with chunks uncompressed");
    auto state = add_copy(*command, session, false);
    state->request.writing.compression = "none";
    add_order_flag(*command, state->flags);
    command->add_option("--chunk-size", state->flags.chunk_size,
                        "Bytes at which a chunk closes, such as 4MiB (default 1MiB)");
    set_example(*command, "ropewalk mcap decompress run.mcap -o plain.mcap");
  }
  {
    auto* command = mcap.add_subcommand("merge", "Join files into one, ordered by log time");
    auto state = add_copy(*command, session, true);
    state->flags.order = "log_time";
    state->request.writing.compression = "zstd";
    command
        ->add_option("--coalesce-channels", state->coalescing,
                     "auto: join channels that are equal; force: though their metadata "
                     "differ; none: keep all apart")
        ->check(CLI::IsMember({"auto", "force", "none"}))
        ->capture_default_str();
    command->add_flag("--allow-duplicate-metadata", state->request.allow_duplicate_metadata,
                      "Keep metadata of one name that differ between files");
    add_topic_flags(*command, state->request.selection, state->flags);
    add_time_flags(*command, state->flags);
    add_order_flag(*command, state->flags);
    add_writing_flags(*command, state->request.writing, state->flags);
    set_example(*command, "ropewalk mcap merge arm.mcap cameras.mcap -o all.mcap");
  }
}

}  // namespace ropewalk::cli
