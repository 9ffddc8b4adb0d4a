#include "apps/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace ropewalk::cli {
namespace {

bool takes_colours(int descriptor) {
  const char* off = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(descriptor) != 0 && (off == nullptr || *off == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string_view code_of(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::bold:
      return "\x1b[1m";
    case Style::dim:
      return "\x1b[2m";
    case Style::red:
      return "\x1b[31m";
    case Style::green:
      return "\x1b[32m";
    case Style::yellow:
      return "\x1b[33m";
    case Style::blue:
      return "\x1b[34m";
    case Style::cyan:
      return "\x1b[36m";
  }
  return "";
}

// Cuts at a code point so that `text` takes at most `width` columns; colour codes are kept whole.
std::string cut_to(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::string out;
  std::size_t used = 0;
  bool coloured = false;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\x1b') {
      const std::size_t end = text.find('m', i);
      const std::size_t stop = end == text.npos ? text.size() : end + 1;
      out += text.substr(i, stop - i);
      coloured = true;
      i = stop;
      continue;
    }
    if (used + 1 >= width) break;
    std::size_t length = 1;
    while (i + length < text.size() &&
           (static_cast<unsigned char>(text[i + length]) & 0xC0) == 0x80)
      ++length;
    out += text.substr(i, length);
    i += length;
    ++used;
  }
  out += "…";
  if (coloured) out += "\x1b[0m";
  return out;
}

}  // namespace

bool stdout_is_terminal() {
  static const bool value = takes_colours(STDOUT_FILENO);
  return value;
}
bool stderr_is_terminal() {
  static const bool value = takes_colours(STDERR_FILENO);
  return value;
}

int terminal_width() {
  winsize size{};
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return 100;
}

std::string styled(std::string_view text, Style style) {
  if (style == Style::plain || !stdout_is_terminal()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", code_of(style), text);
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      const std::size_t end = text.find('m', i);
      if (end == text.npos) break;
      i = end;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++width;
  }
  return width;
}

std::string human_bytes(std::uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.{}f} {}", value, value < 10 ? 1 : 0, units[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string human_count(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t sign = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string Table::render() const {
  std::vector<std::size_t> widths;
  const auto measure = [&](const std::vector<std::string>& cells) {
    widths.resize(std::max(widths.size(), cells.size()), 0);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(cells[i]));
    }
  };
  measure(header_);
  for (const auto& row : rows_) measure(row);
  // The last column takes what is left; piped output is never cut.
  if (stdout_is_terminal() && !widths.empty()) {
    std::size_t others = 0;
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) others += widths[i] + 2;
    const auto width = static_cast<std::size_t>(terminal_width());
    if (others + 12 < width) widths.back() = std::min(widths.back(), width - others);
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells, Style style) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = cut_to(cells[i], std::max<std::size_t>(widths[i], 1));
      const std::size_t pad = widths[i] - std::min(widths[i], display_width(cell));
      const bool right = std::ranges::find(right_, i) != right_.end();
      if (i > 0) text += "  ";
      if (right) text.append(pad, ' ');
      text += cell;
      if (!right && i + 1 < cells.size()) text.append(pad, ' ');
    }
    out += styled(text, style) + "\n";
  };
  line(header_, Style::dim);
  for (const auto& row : rows_) line(row, Style::plain);
  return out;
}

ProgressLine::ProgressLine(bool enabled)
    : enabled_(enabled && stderr_is_terminal()),
      started_(std::chrono::steady_clock::now()),
      phase_started_(started_),
      last_draw_(started_) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  if (drawn_) std::fputs("\r\x1b[2K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

void ProgressLine::report(const Progress& progress) {
  if (!enabled_) return;
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (progress.phase != phase_) {
    phase_ = progress.phase;
    phase_started_ = now;
  }
  using Seconds = std::chrono::duration<double>;
  if (Seconds(now - started_).count() < 1.0 || Seconds(now - last_draw_).count() < 0.1) return;
  last_draw_ = now;
  const double elapsed = std::max(1e-3, Seconds(now - phase_started_).count());
  const bool by_bytes = progress.bytes_total > 0;
  const double done =
      by_bytes ? static_cast<double>(progress.bytes_done) : static_cast<double>(progress.done);
  const double total =
      by_bytes ? static_cast<double>(progress.bytes_total) : static_cast<double>(progress.total);
  std::string text = fmt::format("{:<20} ", progress.phase);
  if (total > 0) {
    const double share = std::clamp(done / total, 0.0, 1.0);
    const int cells = 24;
    const int eighths = static_cast<int>(share * cells * 8);
    std::string bar;
    for (int i = 0; i < eighths / 8; ++i) bar += "█";
    static constexpr const char* kPartial[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    bar += kPartial[eighths % 8];
    for (int i = eighths / 8 + (eighths % 8 != 0 ? 1 : 0); i < cells; ++i) bar += "·";
    text += fmt::format("{} {:3.0f}%  ", bar, share * 100);
  }
  text += progress.total > 0 ? fmt::format("{}/{} {}", progress.done, progress.total, progress.unit)
                             : fmt::format("{} {}", progress.done, progress.unit);
  if (progress.bytes_done > 0) {
    text += fmt::format("  {}/s", human_bytes(static_cast<std::uint64_t>(
                                      static_cast<double>(progress.bytes_done) / elapsed)));
  } else if (progress.done > 0) {
    text +=
        fmt::format("  {:.1f} {}/s", static_cast<double>(progress.done) / elapsed, progress.unit);
  }
  if (total > 0 && done > 0 && done < total) {
    text += "  " + human_seconds(elapsed * (total - done) / done) + " left";
  }
  if (!progress.item.empty()) text += "  " + progress.item;
  text = cut_to(text, static_cast<std::size_t>(std::max(20, terminal_width() - 1)));
  fmt::print(stderr, "\r\x1b[2K{}", text);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace ropewalk::cli
