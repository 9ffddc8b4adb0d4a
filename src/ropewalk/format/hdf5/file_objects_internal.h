#pragma once
// Private: reads the objects of one file through the library. Only the child process calls it.
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/format/hdf5/hdf5.h"
#include "ropewalk/format/hdf5/library_internal.h"

namespace ropewalk::hdf5_internal {

/// Not thread-safe.
class FileObjects {
 public:
  Status open(int fd);
  Result<std::vector<std::string>> list(const std::string& path);
  Result<Hdf5ObjectInfo> describe(const std::string& path);
  Status read_rows(const std::string& path, std::uint64_t begin, std::uint64_t end,
                   MutableByteSpan out);
  Result<Hdf5Value> read_texts(const std::string& path, std::uint64_t max_bytes);

 private:
  /// Opens an object step by step along hard links.
  Result<Handle> open_object(const std::string& path);
  Result<Handle> open_dataset(const std::string& path);

  FileState state_;
  Handle file_;
  std::string last_path_;  ///< the dataset that read_rows used last, kept open
  Handle last_dataset_;
};

}  // namespace ropewalk::hdf5_internal
