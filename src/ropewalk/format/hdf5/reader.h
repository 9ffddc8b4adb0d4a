#pragma once
// Hdf5Reader: reads an HDF5 file in a child process with limits, since the library crashes on
// damaged ones. The child is the program `ropewalk-hdf5-reader`, which lies beside the running
// program. It gets three descriptors (requests, the file, shared memory for array data), an empty
// environment, and nothing else.
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/format/hdf5/hdf5.h"

namespace ropewalk {

struct Hdf5ReaderOptions {
  std::uint64_t max_address_space_bytes = 1ULL << 30;  ///< of the child; a bomb ends there
  std::chrono::milliseconds max_wait{30'000};          ///< wall time of one request
  std::chrono::seconds max_cpu{5};                     ///< processor time of one request
  std::uint64_t max_piece_bytes = 8ULL << 20;          ///< array data moved by one request
  std::filesystem::path program;                       ///< empty: hdf5_reader_program()

  Status validate() const;
};

/// Returns the reader program: the one set_hdf5_reader_program() named, else `ropewalk-hdf5-reader`
/// in the directory of the running program, in ../bin or in ../libexec/ropewalk beside it. Errors:
/// failed_precondition naming the places where it was looked for.
Result<std::filesystem::path> hdf5_reader_program();
/// Names the reader program for this process, for hosts such as Python. Threads: call before the
/// first use.
void set_hdf5_reader_program(std::filesystem::path program);

/// One open file. Every error names the file.
/// Errors of all members: data_loss when the file is damaged, the child died or took too long:
/// after that every call returns the same error; resource_exhausted (Limits); unimplemented for
/// what hdf5.h refuses. Threads: const members may run concurrently; they wait for each other. Open
/// a second reader to read in parallel.
class Hdf5Reader {
 public:
  static Result<Hdf5Reader> open(const std::filesystem::path& path, const Limits& limits = {},
                                 const Hdf5ReaderOptions& options = {});
  /// Reads from an open descriptor, which stays the caller's. `name` is used in messages.
  static Result<Hdf5Reader> open_descriptor(int fd, std::string name, const Limits& limits = {},
                                            const Hdf5ReaderOptions& options = {});
  Hdf5Reader(Hdf5Reader&&) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) noexcept;
  ~Hdf5Reader();

  const std::string& name() const;
  /// Returns the names in a group, sorted. Errors: not_found.
  Result<std::vector<std::string>> list(std::string_view group) const;
  /// Returns kind, type, shape and attributes of an object. Errors: not_found.
  Result<Hdf5ObjectInfo> describe(std::string_view path) const;
  /// Reads a whole dataset of numbers or strings. Errors: resource_exhausted above `max_bytes`;
  /// data_loss when the shape claims more than the bytes stored can hold.
  Result<Hdf5Value> read(std::string_view path, std::uint64_t max_bytes) const;
  /// Reads rows [begin, end) along the first axis of a numeric dataset into `out`, which has
  /// exactly their size. `info` is what describe() returned for `path`.
  Status read_rows(std::string_view path, const Hdf5ObjectInfo& info, std::int64_t begin,
                   std::int64_t end, MutableByteSpan out) const;

 private:
  struct Impl;
  explicit Hdf5Reader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Returns whether a shape and type can be held by what the file stores, so that memory may be set
/// aside. Errors: data_loss with claimed and stored bytes; resource_exhausted above `max_bytes`.
Status check_claimed_bytes(const Hdf5ObjectInfo& info, std::uint64_t file_bytes,
                           std::uint64_t max_bytes);

}  // namespace ropewalk
