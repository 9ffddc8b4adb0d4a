#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/store.h"

namespace ropewalk {
namespace {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::string name) : name_(std::move(name)) {}

  const std::string& name() const override { return name_; }

  Result<std::optional<std::uint64_t>> size(std::string_view key) const override {
    ROPEWALK_RETURN_IF_ERROR(validate_store_key(key));
    const std::scoped_lock lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) return std::optional<std::uint64_t>();
    return std::optional<std::uint64_t>(found->second.size());
  }

  Result<std::optional<Bytes>> get(std::string_view key, ByteRange range,
                                   std::uint64_t max_bytes) const override {
    ROPEWALK_RETURN_IF_ERROR(validate_store_key(key));
    const std::scoped_lock lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) return std::optional<Bytes>();
    const Bytes& value = found->second;
    const std::uint64_t begin = std::min<std::uint64_t>(range.offset, value.size());
    const std::uint64_t length = std::min<std::uint64_t>(range.length, value.size() - begin);
    if (length > max_bytes) {
      return resource_exhausted(
          fmt::format("{}/{}: {} bytes, but at most {} are read", name_, key, length, max_bytes));
    }
    const auto first = value.begin() + static_cast<std::ptrdiff_t>(begin);
    return std::optional<Bytes>(Bytes(first, first + static_cast<std::ptrdiff_t>(length)));
  }

  Status put(std::string_view key, ByteSpan value) override {
    ROPEWALK_RETURN_IF_ERROR(validate_store_key(key));
    ROPEWALK_RETURN_IF_ERROR(fault_point("io.write"));
    const std::scoped_lock lock(mutex_);
    values_.insert_or_assign(std::string(key), Bytes(value.begin(), value.end()));
    return ok_status();
  }

  Status put_if_absent(std::string_view key, ByteSpan value) override {
    ROPEWALK_RETURN_IF_ERROR(validate_store_key(key));
    ROPEWALK_RETURN_IF_ERROR(fault_point("io.write"));
    const std::scoped_lock lock(mutex_);
    if (!values_.try_emplace(std::string(key), value.begin(), value.end()).second) {
      return already_exists(fmt::format("{}/{}: exists already", name_, key));
    }
    return ok_status();
  }

  Result<std::vector<StoreEntry>> list(std::string_view prefix) const override {
    const std::scoped_lock lock(mutex_);
    std::vector<StoreEntry> entries;
    for (auto it = values_.lower_bound(prefix);
         it != values_.end() && it->first.starts_with(prefix); ++it) {
      entries.push_back({it->first, it->second.size()});
    }
    return entries;
  }

  Status remove(std::string_view key) override {
    ROPEWALK_RETURN_IF_ERROR(validate_store_key(key));
    ROPEWALK_RETURN_IF_ERROR(fault_point("io.remove"));
    const std::scoped_lock lock(mutex_);
    if (const auto found = values_.find(key); found != values_.end()) values_.erase(found);
    return ok_status();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Bytes, std::less<>> values_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Store> memory_store(std::string name) {
  return std::make_unique<MemoryStore>(std::move(name));
}

}  // namespace ropewalk
