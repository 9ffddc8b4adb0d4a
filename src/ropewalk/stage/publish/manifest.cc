#include "ropewalk/stage/publish/manifest.h"

#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/core/json.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/store.h"

namespace ropewalk {
namespace {

constexpr std::uint64_t kMaxManifestBytes = 256ULL << 20;
constexpr std::size_t kMaxNamed = 5;  // files named in one message

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<WrittenFile> parse_entry(const Json& entry) {
  const auto path = entry.get_string("path");
  const auto size = entry.get_int64("size");
  const auto sha256 = entry.get_string("sha256");
  if (!path || !size || *size < 0 || !sha256 || !is_sha256(*sha256)) {
    return data_loss("expected {path, size, sha256}, found " + entry.dump().substr(0, 200));
  }
  if (const Status legal = validate_store_key(*path); !legal.ok()) {
    return data_loss(std::string(legal.message()));
  }
  return WrittenFile{*path, static_cast<std::uint64_t>(*size), *sha256};
}

Result<Manifest> parse_manifest(std::string_view text) {
  ROPEWALK_ASSIGN_OR_RETURN(const Json json, parse_json(text));
  const auto export_id = json.get_string("export_id");
  const Json* files = json.find("files");
  if (!export_id || files == nullptr || !files->is_array()) {
    return data_loss("expected {export_id, files}, found " + std::string(json.type_name()));
  }
  Manifest manifest{*export_id, {}};
  for (const Json& entry : *files->as_array()) {
    ROPEWALK_ASSIGN_OR_RETURN(WrittenFile file, parse_entry(entry));
    manifest.files.push_back(std::move(file));
  }
  return manifest;
}

std::string dump_manifest(const Manifest& manifest) {
  Json files = Json::array();
  for (const WrittenFile& file : manifest.files) {
    Json entry;
    entry.set("path", file.path);
    entry.set("size", file.size_bytes);
    entry.set("sha256", file.sha256);
    files.push_back(std::move(entry));
  }
  Json json;
  json.set("export_id", manifest.export_id);
  json.set("files", std::move(files));
  return json.dump(2) + "\n";
}

}  // namespace

std::uint64_t Manifest::total_bytes() const {
  std::uint64_t total = 0;
  for (const WrittenFile& file : files) total += file.size_bytes;
  return total;
}

Result<Manifest> read_manifest(const std::filesystem::path& half_dir) {
  const std::filesystem::path path = half_dir / kManifestPath;
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxManifestBytes));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(Manifest manifest, parse_manifest(text), path.string());
  return manifest;
}

Result<std::string> manifest_sha256(const std::filesystem::path& half_dir) {
  ROPEWALK_ASSIGN_OR_RETURN(const Bytes bytes,
                            read_file(half_dir / kManifestPath, kMaxManifestBytes));
  return sha256_hex(bytes);
}

Status check_sizes(const Manifest& manifest, const std::filesystem::path& half_dir) {
  std::string problems;
  std::size_t count = 0;
  for (const WrittenFile& file : manifest.files) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(half_dir / file.path));
    if (info && info->is_regular && info->size_bytes == file.size_bytes) continue;
    if (++count > kMaxNamed) continue;
    problems += fmt::format(
        "{}{}: expected {} bytes, found {}", problems.empty() ? "" : "; ", file.path,
        file.size_bytes,
        !info ? "no file"
              : (info->is_regular ? fmt::format("{}", info->size_bytes) : "something else"));
  }
  if (count == 0) return ok_status();
  return data_loss(fmt::format("{}: {} of {} files differ from {}: {}", half_dir.string(), count,
                               manifest.files.size(), kManifestPath, problems));
}

void ManifestBuilder::add(const std::vector<WrittenFile>& files) {
  manifest_.files.insert(manifest_.files.end(), files.begin(), files.end());
}

Status ManifestBuilder::write_file(std::string_view path, ByteSpan bytes) {
  ROPEWALK_RETURN_IF_ERROR(validate_store_key(path));
  const std::filesystem::path full = root_ / path;
  ROPEWALK_RETURN_IF_ERROR(make_directories(full.parent_path()));
  ROPEWALK_RETURN_IF_ERROR(write_new_file(full, bytes));
  add({std::string(path), bytes.size(), sha256_hex(bytes)});
  return ok_status();
}

Status ManifestBuilder::copy(const std::filesystem::path& from, std::string_view path,
                             std::stop_token stop) {
  ROPEWALK_RETURN_IF_ERROR(validate_store_key(path));
  const std::filesystem::path full = root_ / path;
  ROPEWALK_RETURN_IF_ERROR(make_directories(full.parent_path()));
  Sha256 hash;
  std::uint64_t size = 0;
  const auto on_bytes = [&](ByteSpan bytes) {
    hash.update(bytes);
    size += bytes.size();
  };
  ROPEWALK_RETURN_IF_ERROR(ropewalk::copy_file(from, full, on_bytes, std::move(stop)));
  add({std::string(path), size, hash.finish_hex()});
  return ok_status();
}

Status ManifestBuilder::finish() {
  std::ranges::sort(manifest_.files, {}, &WrittenFile::path);
  ROPEWALK_ASSIGN_OR_RETURN(const auto found, list_tree(root_));
  std::vector<std::string> recorded;
  for (const WrittenFile& file : manifest_.files) recorded.push_back(file.path);
  if (recorded != found) {
    const auto [a, b] = std::mismatch(recorded.begin(), recorded.end(), found.begin(), found.end());
    return internal(fmt::format(
        "{}: the recorded files are not those on disk: next recorded \"{}\", next on disk \"{}\"",
        root_.string(), a == recorded.end() ? "" : *a, b == found.end() ? "" : *b));
  }
  ROPEWALK_RETURN_IF_ERROR(check_sizes(manifest_, root_));
  ROPEWALK_RETURN_IF_ERROR(make_directories((root_ / kManifestPath).parent_path()));
  return write_new_file(root_ / kManifestPath, as_bytes(dump_manifest(manifest_)));
}

}  // namespace ropewalk
