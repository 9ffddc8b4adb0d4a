#include "ropewalk/base/io/process.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace ropewalk {
namespace {

std::string read_small(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Field 22 of /proc/<pid>/stat; the command name before it may hold spaces and parentheses.
std::optional<std::uint64_t> start_ticks(std::int64_t pid) {
  const std::string text = read_small(fmt::format("/proc/{}/stat", pid));
  const std::size_t close = text.rfind(')');
  if (close == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(close + 1);
  for (int field = 2; field < 22; ++field) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
  }
  std::uint64_t ticks = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  if (error != std::errc()) return std::nullopt;
  return ticks;
}

std::string boot_id() {
  std::string text = read_small("/proc/sys/kernel/random/boot_id");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string iso_seconds(std::int64_t seconds) {
  const auto at = static_cast<time_t>(seconds);
  struct tm utc = {};
  ::gmtime_r(&at, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string start_time(std::uint64_t ticks) {
  struct timespec since_boot = {};
  struct timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  ::clock_gettime(CLOCK_REALTIME, &now);
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  if (ticks_per_second <= 0) return "unknown";
  return iso_seconds(now.tv_sec - since_boot.tv_sec +
                     static_cast<std::int64_t>(ticks) / ticks_per_second) +
         "Z";
}

}  // namespace

ProcessIdentity this_process() {
  ProcessIdentity self;
  self.host = host_name();
  self.pid = ::getpid();
  self.boot_id = boot_id();
  self.start_ticks = start_ticks(self.pid).value_or(0);
  self.started_at = start_time(self.start_ticks);
  return self;
}

bool is_gone(const ProcessIdentity& process) {
  if (process.host != host_name()) return false;
  if (process.boot_id != boot_id()) return true;
  if (process.pid <= 0) return true;
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return true;
  const auto ticks = start_ticks(process.pid);
  return ticks.has_value() && *ticks != process.start_ticks;
}

std::string utc_now() {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  return fmt::format("{}.{:06}Z", iso_seconds(us / 1'000'000), us % 1'000'000);
}

}  // namespace ropewalk
