#pragma once
// Terminal: what people see: colours where they help, tables that fit, a progress line for long
// work. Nothing here goes to a pipe: colours and progress appear on a terminal only.
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/exec/run_context.h"

namespace ropewalk::cli {

/// Whether standard output or error is a terminal that takes colours (NO_COLOR turns them off).
bool stdout_is_terminal();
bool stderr_is_terminal();
/// Columns of the terminal; 100 when unknown.
int terminal_width();

enum class Style { plain, bold, dim, red, green, yellow, blue, cyan };
/// Wraps `text` in the style's codes when standard output takes them.
std::string styled(std::string_view text, Style style);
/// Columns that `text` takes: counts code points, skips colour codes.
std::size_t display_width(std::string_view text);

/// "1.4 GiB", "12 KiB", "640 B".
std::string human_bytes(std::uint64_t bytes);
/// "1:04:09", "2:31", "0.8 s".
std::string human_seconds(double seconds);
/// "12,345".
std::string human_count(std::int64_t count);

/// A table with a header row; cells are cut to fit the terminal.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Marks a column as right-aligned.
  void align_right(std::size_t column) { right_.push_back(column); }
  std::string render() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> right_;
};

/// Draws one line on standard error: phase, bar, counts, rate, remaining time. Appears after a
/// second. Threads: report may be called from any thread.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled);
  ~ProgressLine();
  void report(const Progress& progress);
  void clear();

 private:
  std::mutex mutex_;
  bool enabled_;
  bool drawn_ = false;
  std::string phase_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point phase_started_;
  std::chrono::steady_clock::time_point last_draw_;
};

}  // namespace ropewalk::cli
