#include "apps/cli/session.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <optional>
#include <thread>

#include <fmt/format.h>

namespace ropewalk::cli {

int exit_code(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      return 0;
    case StatusCode::invalid_argument:
    case StatusCode::out_of_range:
      return 2;
    case StatusCode::data_loss:
      return 4;
    case StatusCode::resource_exhausted:
      return 5;
    case StatusCode::not_found:
      return 6;
    case StatusCode::already_exists:
      return 7;
    case StatusCode::failed_precondition:
      return 8;
    case StatusCode::permission_denied:
      return 9;
    case StatusCode::unimplemented:
      return 10;
    case StatusCode::unavailable:
      return 11;
    case StatusCode::internal:
      return 70;
    case StatusCode::cancelled:
      return 130;
  }
  return 70;
}

// SIGINT and SIGTERM are blocked in all threads and taken by one that waits for them: the first
// asks the work to stop, a second one ends the process at once.
struct Session::Signals {
  std::stop_source source;
  std::jthread waiter;

  Signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    waiter = std::jthread([this, set](const std::stop_token& closing) {
      int seen = 0;
      while (!closing.stop_requested()) {
        const timespec wait{0, 100'000'000};
        if (sigtimedwait(&set, nullptr, &wait) < 0) continue;
        if (++seen > 1) ::_exit(130);
        source.request_stop();
        fmt::print(stderr, "\nstopping; press Ctrl-C again to end at once\n");
      }
    });
  }
};

Session::Session() : signals_(std::make_unique<Signals>()) {}
Session::~Session() = default;

const RunContext& Session::context() {
  if (!ready_) {
    ready_ = true;
    pool_ = std::make_unique<ThreadPool>(threads);
    progress_ = std::make_unique<ProgressLine>(!quiet && !json);
    context_.pool = pool_->size() > 1 ? pool_.get() : nullptr;
    context_.stop = signals_->source.get_token();
    context_.progress = [this](const Progress& progress) { progress_->report(progress); };
  }
  return context_;
}

void Session::print_json(const Json& document) {
  if (progress_) progress_->clear();
  const std::string text = document.dump(2) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void Session::print(const std::string& text) {
  if (quiet || json) return;
  if (progress_) progress_->clear();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int Session::fail(const Status& status) {
  if (progress_) progress_->clear();
  if (json) {
    Json error = Json::object();
    error.set("code", std::string(status_code_name(status.code())));
    if (!status.reason().empty()) error.set("reason", std::string(status.reason()));
    error.set("message", std::string(status.message()));
    Json document = Json::object();
    document.set("error", std::move(error));
    print_json(document);
  }
  const std::string mark = stderr_is_terminal() ? "\x1b[31merror\x1b[0m" : "error";
  fmt::print(stderr, "{} ({}{}{}): {}\n", mark, status_code_name(status.code()),
             status.reason().empty() ? "" : ", ", status.reason(), status.message());
  return exit_code(status.code());
}

void add_common_flags(CLI::App& command, Session& session, bool parallel) {
  command.add_flag("--json", session.json, "Print one JSON document for machines");
  command.add_flag("-q,--quiet", session.quiet, "Print errors only");
  if (parallel) {
    command.add_option("--threads", session.threads, "Threads; 0 means one per core")
        ->capture_default_str();
  }
}

void set_example(CLI::App& command, const std::string& example) {
  command.footer("Example:\n  " + example);
}

Result<std::vector<std::int64_t>> parse_episode_list(const std::string& text) {
  std::vector<std::int64_t> out;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    const std::size_t dash = part.find('-', 1);
    const auto number = [](std::string_view digits) -> std::optional<std::int64_t> {
      std::int64_t value = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size() || value < 0) {
        return std::nullopt;
      }
      return value;
    };
    const auto first = number(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : number(std::string_view(part).substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first > 10'000'000) {
      return invalid_argument(
          fmt::format("episode list '{}': '{}' is no number and no range such as 3-7", text, part));
    }
    for (std::int64_t i = *first; i <= *last; ++i) out.push_back(i);
    at = comma + 1;
  }
  std::ranges::sort(out);
  const auto repeated = std::ranges::unique(out);
  out.erase(repeated.begin(), repeated.end());
  return out;
}

}  // namespace ropewalk::cli
