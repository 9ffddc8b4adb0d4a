#pragma once
// Session: what every command shares: global flags, the stop token, threads, progress, and how
// results and errors leave the program. The one mapping from status codes to exit codes lives here
// (docs/errors.md is its table).
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include <CLI/CLI.hpp>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/status.h"
#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/base/exec/thread_pool.h"

#include "apps/cli/terminal.h"

namespace ropewalk::cli {

/// Exit codes that are no status: the program ran to its end.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFaultsFound = 1;
inline constexpr int kExitLossReported = 3;

/// The exit code of a status. Spec: docs/errors.md.
int exit_code(StatusCode code);

class Session {
 public:
  Session();
  ~Session();

  bool json = false;
  bool quiet = false;
  unsigned threads = 0;  ///< 0: one per core

  /// A context whose progress is drawn on a terminal and whose stop token Ctrl-C fires.
  const RunContext& context();
  /// Prints a document for machines, in one piece.
  void print_json(const Json& document);
  /// Prints text for people; silent with --quiet or --json.
  void print(const std::string& text);
  /// Prints an error and returns its exit code.
  int fail(const Status& status);

  /// The chosen command sets this; main runs it after parsing.
  std::function<int()> run;

 private:
  struct Signals;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ProgressLine> progress_;
  RunContext context_;
  bool ready_ = false;
};

/// Adds --json, --quiet and, where the command works in parallel, --threads.
void add_common_flags(CLI::App& command, Session& session, bool parallel);
/// Sets the text under `Example:` in --help.
void set_example(CLI::App& command, const std::string& example);

/// Parses "3", "0-4", "0-4,7,9-11" into ascending positions without duplicates.
/// Errors: invalid_argument quoting the part that is no number or range.
Result<std::vector<std::int64_t>> parse_episode_list(const std::string& text);

}  // namespace ropewalk::cli
