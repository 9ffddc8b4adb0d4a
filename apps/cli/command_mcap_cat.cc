// `ropewalk mcap cat`: messages as text, NDJSON or CSV.
#include <cstdio>

#include <fmt/format.h>

#include "ropewalk/engine/mcap/cat.h"

#include "apps/cli/mcap_commands.h"

namespace ropewalk::cli {
namespace {

struct State {
  CatRequest request;
  SelectionFlags flags;
  std::vector<std::string> topics;
  std::string format = "text";
  std::string time_format = "auto";
  std::string bytes = "auto";
  std::string output = kStandardStream;
  bool force = false;
};

// "a,b" and repeated options both give lists.
std::vector<std::string> separated(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t comma = std::min(text.find(',', at), text.size());
      if (comma > at) out.push_back(text.substr(at, comma - at));
      at = comma + 1;
    }
  }
  return out;
}

int execute(Session& session, State& state) {
  CatRequest& request = state.request;
  McapWriting writing;
  Status status = apply_flags(state.flags, request.selection, writing, request.order);
  if (!status.ok()) return session.fail(status);
  request.format = session.json ? CatFormat::ndjson : *cat_format_from_name(state.format);
  request.time_format = *time_format_from_name(state.time_format);
  request.topics = separated(state.topics);
  request.elide_bytes =
      state.bytes == "elide" || (state.bytes == "auto" && request.format == CatFormat::text);
  auto output = OutputFile::create(state.output, state.force);
  if (!output.ok()) return session.fail(output.status());
  // A reader that goes away, such as head, is no error: nobody wants the rest.
  bool reader_gone = false;
  const auto report = cat_mcap(
      request,
      [&](std::string_view text) {
        if (state.output != kStandardStream) return output->sink().append(as_bytes(text));
        if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
            std::fflush(stdout) != 0) {
          reader_gone = errno == EPIPE;
          return errno_status(errno, "standard output");
        }
        return ok_status();
      },
      session.context());
  if (reader_gone) return kExitDone;
  if (!report.ok()) return session.fail(report.status());
  if (state.output != kStandardStream) {
    status = output->publish();
    if (!status.ok()) return session.fail(status);
  }
  print_problems(session, report->problems);
  if (!session.quiet) {
    for (const auto& [topic, why] : report->raw_topics) {
      fmt::print(stderr, "note: {} is printed undecoded: {}\n", printable(topic), printable(why));
    }
    for (const auto& [topic, why] : report->undecodable_topics) {
      fmt::print(stderr, "lost: {}: a payload does not fit its schema: {}\n", printable(topic),
                 printable(why));
    }
    if (report->ragged_rows > 0) {
      fmt::print(stderr, "lost: {} rows have fields that the first row has not\n",
                 report->ragged_rows);
    }
  }
  return report->lossy() ? kExitLossReported : kExitDone;
}

}  // namespace

void add_mcap_cat(CLI::App& mcap, Session& session) {
  auto state = std::make_shared<State>();
  state->flags.order = "log_time";
  auto* command = mcap.add_subcommand("cat", "Print messages, decoded, as text, NDJSON or CSV");
  command->add_option("file", state->request.inputs, "MCAP files; without one standard input");
  command->add_option("-o,--output", state->output, "File to write; '-' is standard output")
      ->capture_default_str();
  command->add_flag("--force", state->force, "Replace an existing file");
  command->add_option("--format", state->format, "text, ndjson (also json), or csv of one topic")
      ->check(CLI::IsMember({"text", "ndjson", "json", "csv"}))
      ->capture_default_str();
  command->add_option("--topics", state->topics, "Topics by name, separated by commas")
      ->allow_extra_args(false);
  command
      ->add_option("-y,--include-topic-regex", state->request.selection.include_topics,
                   "Print topics that match; may be given again")
      ->allow_extra_args(false);
  command
      ->add_option("-n,--exclude-topic-regex", state->request.selection.exclude_topics,
                   "Do not print topics that match")
      ->allow_extra_args(false);
  add_time_flags(*command, state->flags);
  add_order_flag(*command, state->flags);
  command->add_option("--limit", state->request.limit, "Messages at most; 0 means all")
      ->capture_default_str();
  command->add_option("--time-format", state->time_format, "How log and publish times are printed")
      ->check(CLI::IsMember({"auto", "rfc3339", "seconds", "nanoseconds"}))
      ->capture_default_str();
  command->add_option("--bytes", state->bytes, "Byte fields: base64, or a note of their length")
      ->check(CLI::IsMember({"auto", "base64", "elide"}))
      ->capture_default_str();
  command->add_flag("--lenient", state->request.lenient, "Print what cannot be verified, too");
  add_common_flags(*command, session, false);
  set_example(*command,
              "ropewalk mcap cat run.mcap --topics /joint_states --format csv > joints.csv");
  command->callback([state, &session] {
    session.run = [state, &session] {
      if (state->request.inputs.empty()) state->request.inputs = {kStandardStream};
      return execute(session, *state);
    };
  });
}

}  // namespace ropewalk::cli
