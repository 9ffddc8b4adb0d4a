#include "ropewalk/dataset/lerobot/raw_lock.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace ropewalk {
namespace {

constexpr int kReadWaitMs = 2000;

// Polls, since a wait inside the kernel has no limit. The lock is held for milliseconds.
Result<FileLock> acquire_within(const std::filesystem::path& path, FileLock::Mode mode,
                                int wait_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  std::chrono::microseconds pause(100);
  while (true) {
    auto lock = FileLock::acquire(path, mode);
    if (lock.ok() || lock.status().reason() != "LOCKED" ||
        std::chrono::steady_clock::now() >= deadline) {
      return lock;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

Result<FileLock> named_busy(Result<FileLock> lock) {
  if (lock.ok() || lock.status().reason() != "LOCKED") return lock;
  return lock.status().with_reason("DATASET_LOCKED");
}

}  // namespace

Result<FileLock> lock_for_recording(const std::filesystem::path& root) {
  return named_busy(FileLock::acquire(root / "meta" / ".lock", FileLock::Mode::exclusive));
}

Result<FileLock> lock_ledger(const std::filesystem::path& root, int wait_ms) {
  return named_busy(
      acquire_within(root / "meta" / ".ledger.lock", FileLock::Mode::exclusive, wait_ms));
}

std::optional<FileLock> lock_ledger_for_read(const std::filesystem::path& root) {
  const std::filesystem::path path = root / "meta" / ".ledger.lock";
  const auto info = file_info(path);
  if (!info.ok() || !info->has_value()) return std::nullopt;
  auto lock = acquire_within(path, FileLock::Mode::shared, kReadWaitMs);
  if (!lock.ok()) return std::nullopt;
  return std::move(lock).value();
}

}  // namespace ropewalk
