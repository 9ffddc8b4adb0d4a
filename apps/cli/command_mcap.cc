// `ropewalk mcap …`: the family of MCAP commands and what they share.
#include <unistd.h>

#include <cmath>

#include <fmt/format.h>

#include "ropewalk/engine/mcap/inspect.h"

#include "apps/cli/commands.h"
#include "apps/cli/mcap_commands.h"

namespace ropewalk::cli {

void add_mcap(CLI::App& app, Session& session) {
  auto* mcap =
      app.add_subcommand("mcap", "Look into, copy, cut, join, prove and repair MCAP files");
  mcap->require_subcommand(1);
  mcap->get_formatter()->column_width(34);
  mcap->footer(
      "A file may be unfinished or damaged: it is read as far as it goes, and what is lost is "
      "told\n"
      "on standard error. '-' is standard input or output.\n"
      "Exit codes: 0 done, 1 faults found, 2 bad arguments, 3 done with loss, 4 damaged data.\n\n"
      "Example:\n  ropewalk mcap info run.mcap\n"
      "  ropewalk mcap filter run.mcap -y '/camera/.*' -o cameras.mcap");
  add_mcap_inspect(*mcap, session);
  add_mcap_cat(*mcap, session);
  add_mcap_rewrite(*mcap, session);
  add_mcap_split(*mcap, session);
  add_mcap_proof(*mcap, session);
  add_mcap_parts(*mcap, session);
  add_mcap_convert(*mcap, session);
  add_mcap_extract(*mcap, session);
}

void add_topic_flags(CLI::App& command, McapSelection& selection, SelectionFlags& flags) {
  auto* include = command.add_option("-y,--include-topic-regex", selection.include_topics,
                                     "Keep topics that match; may be given again");
  auto* exclude = command.add_option("-n,--exclude-topic-regex", selection.exclude_topics,
                                     "Drop topics that match; not beside -y");
  include->excludes(exclude);
  include->allow_extra_args(false);
  exclude->allow_extra_args(false);
  command
      .add_option("-l,--last-per-channel-topic-regex", selection.last_per_channel,
                  "Keep the last message before the start on topics that match")
      ->allow_extra_args(false);
  command.add_option("--rename", flags.rename, "OLD:NEW: give a topic another name")
      ->allow_extra_args(false);
  command.add_option("--topic-prefix", selection.topic_prefix, "Text put before every topic");
  command.add_flag("--exclude-metadata", flags.exclude_metadata, "Leave metadata out");
  command.add_flag("--exclude-attachments", flags.exclude_attachments, "Leave attachments out");
  command.add_flag("--drop-unused", flags.drop_unused,
                   "Leave out channels and schemas that no message uses");
}

void add_time_flags(CLI::App& command, SelectionFlags& flags) {
  auto* start =
      command.add_option("-S,--start", flags.start, "First log time: nanoseconds or RFC 3339");
  auto* end = command.add_option("-E,--end", flags.end, "Log time to stop before, likewise");
  command.add_option("-s,--start-secs", flags.start_seconds, "First log time in seconds")
      ->check(CLI::NonNegativeNumber)
      ->excludes(start);
  command.add_option("-e,--end-secs", flags.end_seconds, "Log time to stop before, in seconds")
      ->check(CLI::NonNegativeNumber)
      ->excludes(end);
}

void add_writing_flags(CLI::App& command, McapWriting& writing, SelectionFlags& flags) {
  command.add_option("--compression", writing.compression, "Codec of chunks")
      ->check(CLI::IsMember({"preserve", "none", "lz4", "zstd"}))
      ->capture_default_str();
  command.add_option("--level", writing.level, "Level of the codec; 0 means its default")
      ->capture_default_str();
  command.add_option("--chunk-size", flags.chunk_size,
                     "Bytes at which a chunk closes, such as 4MiB (default 1MiB)");
  command.add_flag("--no-chunks", flags.no_chunks, "Write messages outside chunks");
  command.add_flag("--no-crc", flags.no_crc, "Write no CRCs");
}

void add_order_flag(CLI::App& command, SelectionFlags& flags) {
  command.add_option("--order", flags.order, "Order of messages")
      ->check(CLI::IsMember({"preserve", "log_time", "topic"}))
      ->capture_default_str();
}

Status apply_flags(const SelectionFlags& flags, McapSelection& selection, McapWriting& writing,
                   McapOrder& order) {
  for (const std::string& text : flags.rename) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
      return invalid_argument(fmt::format("--rename {}: expected OLD:NEW", text));
    }
    selection.rename.emplace_back(text.substr(0, colon), text.substr(colon + 1));
  }
  const auto seconds = [](double value) {
    return static_cast<std::uint64_t>(std::min(std::llround(value * 1e9), INT64_MAX - 1LL));
  };
  if (flags.start_seconds >= 0) selection.begin_time = seconds(flags.start_seconds);
  if (flags.end_seconds >= 0) selection.end_time = seconds(flags.end_seconds);
  if (!flags.start.empty()) {
    ROPEWALK_ASSIGN_OR_RETURN(selection.begin_time, parse_time(flags.start));
  }
  if (!flags.end.empty()) {
    ROPEWALK_ASSIGN_OR_RETURN(selection.end_time, parse_time(flags.end));
  }
  if (!flags.chunk_size.empty()) {
    ROPEWALK_ASSIGN_OR_RETURN(writing.chunk_bytes, parse_byte_size(flags.chunk_size));
  }
  selection.metadata = !flags.exclude_metadata;
  selection.attachments = !flags.exclude_attachments;
  selection.unused_definitions = !flags.drop_unused;
  writing.chunked = !flags.no_chunks;
  writing.crc = !flags.no_crc;
  const auto named = mcap_order_from_name(flags.order);
  if (!named.has_value()) return invalid_argument("--order " + flags.order + ": not known");
  order = *named;
  return ok_status();
}

void print_problems(Session& session, const std::vector<FileProblem>& problems) {
  if (session.json || session.quiet) return;
  constexpr std::size_t kListed = 20;
  for (std::size_t i = 0; i < problems.size() && i < kListed; ++i) {
    const bool loss = is_copy_loss(problems[i].problem.kind);
    const std::string mark = loss ? "lost" : "note";
    fmt::print(stderr, "{}: {}\n",
               stderr_is_terminal() ? fmt::format("\x1b[{}m{}\x1b[0m", loss ? 31 : 33, mark) : mark,
               printable(to_line(problems[i])));
  }
  if (problems.size() > kListed) {
    fmt::print(stderr, "… and {} more; --json lists all\n", problems.size() - kListed);
  }
}

Status refuse_terminal(const std::string& path) {
  if (path == kStandardStream && ::isatty(STDOUT_FILENO) != 0) {
    return invalid_argument("binary data do not go to a terminal: name a file with -o");
  }
  return ok_status();
}

void print_beside(Session& session, const std::string& output, const std::string& text) {
  if (output != kStandardStream) {
    session.print(text);
  } else if (!session.quiet && stderr_is_terminal()) {
    fmt::print(stderr, "{}", text);
  }
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += c == '\n' ? std::string("\\n") : fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace ropewalk::cli
