#pragma once
// The locks of a raw dataset: the recorder lock, held for as long as a process may record or save
// into it, and the ledger lock, held for milliseconds around every change of files in meta/.
// Spec: review-export-upload 3.4.
#include <filesystem>
#include <optional>

#include "ropewalk/base/io/local_fs.h"

namespace ropewalk {

/// Takes `root`/meta/.lock. Errors: unavailable with reason DATASET_LOCKED, naming host, process
/// and start of the holder, at once.
Result<FileLock> lock_for_recording(const std::filesystem::path& root);

/// Takes `root`/meta/.ledger.lock for a change; waits for whoever holds it, up to `wait_ms`.
/// Errors: unavailable with reason DATASET_LOCKED; permission_denied on a read-only dataset.
Result<FileLock> lock_ledger(const std::filesystem::path& root, int wait_ms = 30'000);

/// Keeps writers out for the moment of a read, where the lock's file exists; creates none. Returns
/// nullopt where there is none or where it cannot be had soon: a read is then as consistent as
/// append-only files and renames make it.
std::optional<FileLock> lock_ledger_for_read(const std::filesystem::path& root);

}  // namespace ropewalk
