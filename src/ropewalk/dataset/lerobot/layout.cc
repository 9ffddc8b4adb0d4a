#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/layout_internal.h"

namespace ropewalk::lerobot {
namespace {

constexpr int kMaxWidth = 20;

bool is_known(std::string_view name) {
  return name == "episode_chunk" || name == "episode_index" || name == "chunk_index" ||
         name == "file_index" || name == "video_key";
}

/// Reads "03d", "3d", "d", "03" or nothing as a width.
Result<int> width_of(std::string_view spec, std::string_view text) {
  int width = 0;
  std::size_t at = 0;
  while (at < spec.size() && spec[at] >= '0' && spec[at] <= '9') {
    width = width * 10 + (spec[at] - '0');
    if (width > kMaxWidth) {
      return invalid_argument(fmt::format("template \"{}\": width above {}", text, kMaxWidth));
    }
    ++at;
  }
  if (at < spec.size() && spec[at] == 'd') ++at;
  if (at != spec.size()) {
    return invalid_argument(
        fmt::format("template \"{}\": format \"{}\" is not one of 03d, d", text, spec));
  }
  return width;
}

/// Compares runs of digits by value and all else by byte.
bool numeric_less(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  std::size_t j = 0;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const auto run = [&](const std::string& text, std::size_t& at) {
        while (at < text.size() && text[at] == '0') ++at;
        const std::size_t begin = at;
        while (at < text.size() && digit(text[at])) ++at;
        return std::string_view(text).substr(begin, at - begin);
      };
      const std::string_view left = run(a, i);
      const std::string_view right = run(b, j);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;
}

}  // namespace

Result<PathTemplate> PathTemplate::parse(std::string_view text) {
  PathTemplate out;
  out.text_ = text;
  Part part;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      part.literal.push_back(c);
      ++i;
      continue;
    }
    if (c == '}') return invalid_argument(fmt::format("template \"{}\": stray }}", text));
    if (c != '{') {
      part.literal.push_back(c);
      continue;
    }
    const std::size_t close = text.find('}', i);
    if (close == std::string_view::npos) {
      return invalid_argument(fmt::format("template \"{}\": {{ without }}", text));
    }
    const std::string_view field = text.substr(i + 1, close - i - 1);
    const std::size_t colon = field.find(':');
    part.name = field.substr(0, colon);
    if (!is_known(part.name)) {
      return invalid_argument(
          fmt::format("template \"{}\": placeholder \"{}\" is not known", text, part.name));
    }
    if (colon != std::string_view::npos) {
      ROPEWALK_ASSIGN_OR_RETURN(part.width, width_of(field.substr(colon + 1), text));
    }
    out.parts_.push_back(std::move(part));
    part = {};
    i = close;
  }
  if (!part.literal.empty()) out.parts_.push_back(std::move(part));
  if (out.parts_.empty()) return invalid_argument("template: empty");
  return out;
}

std::string PathTemplate::format(const PathValues& values) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.literal;
    if (part.name.empty()) continue;
    if (part.name == "video_key") {
      out += values.video_key;
      continue;
    }
    const std::int64_t number = part.name == "episode_chunk"   ? values.episode_chunk
                                : part.name == "episode_index" ? values.episode_index
                                : part.name == "chunk_index"   ? values.chunk_index
                                                               : values.file_index;
    out += fmt::format("{:0{}}", number, part.width);
  }
  return out;
}

bool PathTemplate::uses(std::string_view placeholder) const {
  return std::ranges::any_of(parts_, [&](const Part& part) { return part.name == placeholder; });
}

Status check_inside_root(std::string_view relative) {
  const auto refuse = [&](std::string_view why) {
    return permission_denied(fmt::format("path \"{}\" {}; paths of a dataset stay inside its root",
                                         relative, why))
        .with_reason("path_escapes_root");
  };
  if (relative.empty()) return refuse("is empty");
  if (relative.front() == '/') return refuse("is absolute");
  if (relative.find('\0') != std::string_view::npos) return refuse("holds a NUL byte");
  std::size_t begin = 0;
  while (begin <= relative.size()) {
    const std::size_t slash = std::min(relative.find('/', begin), relative.size());
    if (relative.substr(begin, slash - begin) == "..") return refuse("leaves the root");
    begin = slash + 1;
  }
  return ok_status();
}

std::string without_root(std::string text, const std::filesystem::path& root) {
  const std::string prefix = root.string() + "/";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
  }
  return text;
}

std::vector<std::string> list_chunk_files(const std::filesystem::path& root,
                                          std::string_view directory, std::string_view suffix) {
  std::vector<std::string> out;
  const auto chunks = list_directory(root / directory);
  if (!chunks.ok()) return out;
  for (const std::string& chunk : *chunks) {
    if (chunk.starts_with('.')) continue;
    const auto files = list_directory(root / directory / chunk);
    if (!files.ok()) continue;
    for (const std::string& file : *files) {
      if (file.ends_with(suffix) && !file.starts_with('.')) {
        out.push_back(fmt::format("{}/{}/{}", directory, chunk, file));
      }
    }
  }
  std::ranges::sort(out, numeric_less);
  return out;
}

}  // namespace ropewalk::lerobot
