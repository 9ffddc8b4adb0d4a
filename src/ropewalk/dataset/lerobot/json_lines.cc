#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/json_lines_internal.h"

namespace ropewalk::lerobot {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view without_carriage_return(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

/// Walks over JSON text without building anything.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool take(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    blanks();
    return at_ == text_.size();
  }
  /// Takes a string; `out` is its raw text, escapes as they stand.
  bool string(std::string_view& out) {
    if (!take('"')) return false;
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\') {
        at_ += 2;
        continue;
      }
      if (text_[at_] == '"') {
        out = text_.substr(begin, at_ - begin);
        ++at_;
        return true;
      }
      ++at_;
    }
    return false;
  }
  /// Takes any value; `out` is its text.
  bool value(std::string_view& out) {
    blanks();
    const std::size_t begin = at_;
    if (at_ >= text_.size()) return false;
    std::string_view ignored;
    if (text_[at_] == '"') {
      if (!string(ignored)) return false;
    } else if (text_[at_] == '{' || text_[at_] == '[') {
      std::size_t depth = 0;
      do {
        if (at_ >= text_.size()) return false;
        const char c = text_[at_];
        if (c == '"') {
          if (!string(ignored)) return false;
          continue;
        }
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
        ++at_;
      } while (depth > 0);
    } else {
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}' && text_[at_] != ' ') {
        ++at_;
      }
    }
    out = text_.substr(begin, at_ - begin);
    return !out.empty();
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

}  // namespace

Status for_each_line(const Source& source, const Limits& limits, bool* byte_order_mark,
                     const std::function<Status(std::string_view, LinePlace)>& body) {
  const std::uint64_t max_line =
      std::min<std::uint64_t>(limits.max_json_line_bytes, std::uint64_t{1} << 31);
  std::string buffer;
  std::uint64_t buffer_offset = 0;  // of buffer[0] in the file
  std::uint64_t read = 0;
  std::size_t begin = 0;  // of the line at work, in buffer
  std::size_t searched = 0;
  bool first = true;
  while (true) {
    const std::size_t newline = buffer.find('\n', searched);
    if (newline != std::string::npos) {
      const std::string_view line(buffer.data() + begin, newline - begin);
      ROPEWALK_RETURN_IF_ERROR(
          body(without_carriage_return(line),
               {buffer_offset + begin, static_cast<std::uint32_t>(line.size()), true}));
      begin = newline + 1;
      searched = begin;
      continue;
    }
    if (buffer.size() - begin > max_line) {
      return resource_exhausted(fmt::format("{}: the line at byte {} has more than {} bytes",
                                            source.name(), buffer_offset + begin, max_line));
    }
    if (read == source.size()) break;
    buffer.erase(0, begin);
    buffer_offset += begin;
    begin = 0;
    searched = buffer.size();
    const std::size_t more =
        static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, source.size() - read));
    const std::size_t kept = buffer.size();
    buffer.resize(kept + more);
    ROPEWALK_RETURN_IF_ERROR(
        source.read_at(read, {reinterpret_cast<std::uint8_t*>(buffer.data()) + kept, more}));
    read += more;
    if (first) {
      first = false;
      if (buffer.starts_with(kByteOrderMark)) {
        begin = kByteOrderMark.size();
        searched = begin;
        if (byte_order_mark != nullptr) *byte_order_mark = true;
      }
    }
  }
  if (begin < buffer.size()) {
    const std::string_view line(buffer.data() + begin, buffer.size() - begin);
    ROPEWALK_RETURN_IF_ERROR(
        body(without_carriage_return(line),
             {buffer_offset + begin, static_cast<std::uint32_t>(line.size()), false}));
  }
  return ok_status();
}

Result<std::string> read_line(const Source& source, LinePlace place) {
  std::string line(place.bytes, '\0');
  ROPEWALK_RETURN_IF_ERROR(
      source.read_at(place.offset, {reinterpret_cast<std::uint8_t*>(line.data()), line.size()}));
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

RowScan scan_row(std::string_view line) {
  RowScan out;
  Scanner scanner(line);
  if (!scanner.take('{')) return out;
  if (scanner.take('}')) {
    out.complete = scanner.at_end();
    return out;
  }
  while (true) {
    std::string_view key;
    std::string_view value;
    if (!scanner.string(key) || !scanner.take(':') || !scanner.value(value)) return out;
    if (key == "episode_index" || key == "length") {
      auto& target = key == "length" ? out.length : out.episode_index;
      if (target) ++out.repeated;
      target = integer(value);
      if (!target) return out;
    } else if (key.find('\\') != std::string_view::npos) {
      return out;  // an escaped key may be one of the two
    }
    if (scanner.take(',')) continue;
    if (!scanner.take('}')) return out;
    out.complete = scanner.at_end();
    return out;
  }
}

}  // namespace ropewalk::lerobot
