#include "ropewalk/dataset/lerobot/revision.h"

#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/core/json.h"
#include "ropewalk/base/io/local_fs.h"

namespace ropewalk {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

std::string source_digest(std::span<const RevisionRow> rows) {
  Sha256 hash;
  hash.update(as_bytes("["));
  bool first = true;
  for (const RevisionRow& row : rows) {
    std::vector<RevisionFile> files = row.files;
    std::ranges::sort(files, {}, &RevisionFile::path);
    Json list = Json::array();
    for (const RevisionFile& file : files) {
      Json entry;
      entry.set("path", file.path);
      entry.set("size", file.size_bytes);
      entry.set("modified_ns", file.modified_ns);
      list.push_back(std::move(entry));
    }
    Json object;
    object.set("episode_index", row.episode_index);
    object.set("length", row.length);
    object.set("quality", text_or_null(row.quality));
    object.set("verdict", text_or_null(row.verdict));
    object.set("note", text_or_null(row.note));
    object.set("files", std::move(list));
    if (!first) hash.update(as_bytes(","));
    first = false;
    hash.update(as_bytes(object.dump_canonical()));
  }
  hash.update(as_bytes("]"));
  return hash.finish_hex();
}

Result<std::vector<RevisionFile>> revision_files(const std::filesystem::path& root,
                                                 std::span<const std::string> paths) {
  std::vector<RevisionFile> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(root / path));
    if (!info) return not_found(fmt::format("{}: not there", (root / path).string()));
    if (!info->is_regular) {
      return failed_precondition(fmt::format("{}: not a regular file", (root / path).string()));
    }
    files.push_back({path, info->size_bytes, info->modified_ns});
  }
  return files;
}

}  // namespace ropewalk
