#pragma once
// ParquetReader: columns and row groups of one Parquet file, read on demand and bounded.
// Opening reads the footer alone. What is written in the footer is checked against the file and
// against Limits before anything is allocated for it; no exception of the library gets out.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/io/file.h"

namespace ropewalk {

/// Half-open range of rows [begin, end) of one file.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

/// What the footer says of one row group.
struct ParquetRowGroup {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::uint64_t total_bytes = 0;  ///< uncompressed
};

/// Smallest and largest value of an integer column in one row group, from its statistics.
struct Int64Bounds {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

/// Threads: const members may run concurrently.
class ParquetReader {
 public:
  /// Errors: not_found; data_loss with reason LFS_POINTER (a Git LFS pointer file), NO_FOOTER (a
  /// writer that was never closed, or not Parquet) or BAD_FOOTER; resource_exhausted (Limits).
  static Result<std::unique_ptr<ParquetReader>> open(const std::filesystem::path& path,
                                                     const Limits& limits = {});
  static Result<std::unique_ptr<ParquetReader>> open(std::shared_ptr<const Source> source,
                                                     const Limits& limits = {});
  ~ParquetReader();
  ParquetReader(const ParquetReader&) = delete;
  ParquetReader& operator=(const ParquetReader&) = delete;

  const std::string& name() const;
  std::int64_t rows() const;
  const std::vector<ParquetRowGroup>& row_groups() const;
  /// The Arrow schema: from `ARROW:schema` where it is kept, else as Parquet's types map.
  const std::shared_ptr<arrow::Schema>& schema() const;
  /// Returns whether there is a top-level column of that name.
  bool has_column(std::string_view column) const;
  /// Names of the top-level columns, in file order.
  const std::vector<std::string>& columns() const;
  /// Returns a value of the footer's key-value metadata, or nullopt.
  std::optional<std::string> metadata(std::string_view key) const;
  /// Returns the bounds of a top-level integer column in a row group, or nullopt where the file
  /// keeps no statistics of it.
  std::optional<Int64Bounds> int64_bounds(std::size_t row_group, std::string_view column) const;

  /// Reads the rows `range` of the columns named (in that order; all when empty). Only the row
  /// groups that hold them are read; of a large row group everything is decoded.
  /// Errors: not_found naming a column; out_of_range; data_loss naming file and row group;
  /// resource_exhausted (Limits.max_row_group_bytes bounds what one call may hold).
  Result<std::shared_ptr<arrow::RecordBatch>> read(RowRange range,
                                                   std::span<const std::string> columns = {}) const;
  /// The same for the whole file.
  Result<std::shared_ptr<arrow::RecordBatch>> read_all(
      std::span<const std::string> columns = {}) const;

 private:
  struct Impl;
  explicit ParquetReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk
