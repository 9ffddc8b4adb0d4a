#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/io/fd_internal.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/staged_directory.h"
#include "ropewalk/base/io/store.h"

namespace ropewalk {
namespace {

// Names of values that are still being written; no key may have such a part.
constexpr std::string_view kTemporaryPrefix = ".rw-tmp.";

class LocalStore final : public Store {
 public:
  explicit LocalStore(std::filesystem::path root) : root_(std::move(root)), name_(root_.string()) {}

  const std::string& name() const override { return name_; }

  Result<std::optional<std::uint64_t>> size(std::string_view key) const override {
    ROPEWALK_RETURN_IF_ERROR(validate_store_key(key));
    ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(root_ / key));
    if (!info || !info->is_regular) return std::optional<std::uint64_t>();
    return std::optional<std::uint64_t>(info->size_bytes);
  }

  Result<std::optional<Bytes>> get(std::string_view key, ByteRange range,
                                   std::uint64_t max_bytes) const override {
    ROPEWALK_ASSIGN_OR_RETURN(const auto found, size(key));
    if (!found) return std::optional<Bytes>();
    auto opened = open_source(root_ / key);
    if (opened.status().code() == StatusCode::not_found) return std::optional<Bytes>();
    ROPEWALK_ASSIGN_OR_RETURN(const auto source, std::move(opened));
    const std::uint64_t begin = std::min(range.offset, source->size());
    const std::uint64_t length = std::min(range.length, source->size() - begin);
    if (length > max_bytes) {
      return resource_exhausted(
          fmt::format("{}/{}: {} bytes, but at most {} are read", name_, key, length, max_bytes));
    }
    Bytes bytes(static_cast<std::size_t>(length));
    ROPEWALK_RETURN_IF_ERROR(source->read_at(begin, bytes));
    return std::optional<Bytes>(std::move(bytes));
  }

  Status put(std::string_view key, ByteSpan value) override {
    return write(key, value,
                 [](const auto& from, const auto& to) { return rename_path(from, to); });
  }

  Status put_if_absent(std::string_view key, ByteSpan value) override {
    ROPEWALK_ASSIGN_OR_RETURN(const auto found, size(key));
    if (found) return already_exists(fmt::format("{}/{}: exists already", name_, key));
    return write(key, value,
                 [](const auto& from, const auto& to) { return rename_no_replace(from, to); });
  }

  Result<std::vector<StoreEntry>> list(std::string_view prefix) const override {
    const std::string directory(prefix.substr(0, prefix.rfind('/') + 1));
    std::vector<StoreEntry> entries;
    if (!directory.empty()) {
      ROPEWALK_RETURN_IF_ERROR(
          validate_store_key(std::string_view(directory).substr(0, directory.size() - 1)));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(root_ / directory));
    if (!info) return entries;
    ROPEWALK_ASSIGN_OR_RETURN(const auto files, list_tree(root_ / directory));
    for (const std::string& file : files) {
      std::string key = directory + file;
      const std::string_view last = std::string_view(key).substr(key.rfind('/') + 1);
      if (!key.starts_with(prefix) || last.starts_with(kTemporaryPrefix)) continue;
      ROPEWALK_ASSIGN_OR_RETURN(const auto file_size, size(key));
      if (file_size) entries.push_back({std::move(key), *file_size});
    }
    return entries;
  }

  Status remove(std::string_view key) override {
    ROPEWALK_ASSIGN_OR_RETURN(const auto found, size(key));
    if (!found) return ok_status();
    const std::filesystem::path path = root_ / key;
    Status removed = remove_file(path);
    if (removed.code() == StatusCode::not_found) return ok_status();
    ROPEWALK_RETURN_IF_ERROR(removed);
    return sync_directory(parent_of(path));
  }

 private:
  template <typename Rename>
  Status write(std::string_view key, ByteSpan value, Rename rename) {
    ROPEWALK_RETURN_IF_ERROR(validate_store_key(key));
    const std::filesystem::path path = root_ / key;
    const std::filesystem::path parent = parent_of(path);
    ROPEWALK_RETURN_IF_ERROR(make_durable_directories(parent));
    const std::filesystem::path temporary =
        parent / (std::string(kTemporaryPrefix) + random_uuid());
    ROPEWALK_RETURN_IF_ERROR(write_new_file(temporary, value));
    if (Status renamed = rename(temporary, path); !renamed.ok()) {
      std::ignore = remove_file(temporary);
      return renamed;
    }
    return sync_directory(parent);
  }

  std::filesystem::path root_;
  std::string name_;
};

}  // namespace

Result<std::unique_ptr<Store>> local_store(const std::filesystem::path& root) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(root));
  if (info && !info->is_directory && !info->is_symlink) {
    return failed_precondition(root.string() + ": expected a directory, found a file");
  }
  return std::unique_ptr<Store>(std::make_unique<LocalStore>(root));
}

Status validate_store_key(std::string_view key) {
  const auto refuse = [&](std::string_view why) {
    return invalid_argument(fmt::format("key \"{}\": {}", key, why));
  };
  if (key.empty()) return refuse("is empty");
  if (key.find('\0') != std::string_view::npos) return refuse("has a zero byte");
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = key.substr(begin, end - begin);
    if (part.empty()) return refuse("has an empty part");
    if (part == "." || part == "..") return refuse(fmt::format("has the part \"{}\"", part));
    if (part.starts_with(kTemporaryPrefix))
      return refuse("has a part reserved for temporary files");
    begin = end + 1;
  }
  return ok_status();
}

}  // namespace ropewalk
