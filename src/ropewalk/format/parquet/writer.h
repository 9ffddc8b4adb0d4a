#pragma once
// ParquetWriter: record batches to one Parquet file, one row group per batch.
// Snappy with dictionaries, and always the Arrow schema in the footer, since without it the length
// of a fixed-size list is lost.
// Spec: lerobot-formats 1.1, 2.4.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/base/io/file.h"

namespace ropewalk {

enum class ParquetCompression { none, snappy, zstd };

struct ParquetWriterOptions {
  ParquetCompression compression = ParquetCompression::snappy;
  bool dictionary = true;
  /// Key-value metadata, such as `huggingface` or `pandas`, in this order: pairs of the footer and
  /// metadata of the Arrow schema, where Arrow's readers look for them.
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

/// Not thread-safe. Memory: one row group while it is written.
/// A writer destroyed without close() leaves a file without a footer, which no reader accepts.
class ParquetWriter {
 public:
  /// Creates `path`, which must not exist. Errors: already_exists and those of create_sink.
  static Result<std::unique_ptr<ParquetWriter>> create(const std::filesystem::path& path,
                                                       std::shared_ptr<arrow::Schema> schema,
                                                       const ParquetWriterOptions& options = {});
  /// Writes into `sink`, which stays open and must outlive the writer.
  static Result<std::unique_ptr<ParquetWriter>> create(Sink& sink,
                                                       std::shared_ptr<arrow::Schema> schema,
                                                       const ParquetWriterOptions& options = {});
  ~ParquetWriter();
  ParquetWriter(const ParquetWriter&) = delete;
  ParquetWriter& operator=(const ParquetWriter&) = delete;

  /// Appends `batch` as one row group. Errors: invalid_argument when its schema differs (metadata
  /// aside) from that of the file, naming the field; unimplemented for a type Parquet lacks; those
  /// of Sink.
  Status write_row_group(const arrow::RecordBatch& batch);
  /// Writes the footer; a file created by path is then fsynced and closed. Idempotent.
  Status close();

  /// Units: bytes in the file so far, compressed, without the footer until close().
  std::uint64_t size_bytes() const;
  std::int64_t rows() const;
  std::int64_t row_groups() const;

 private:
  struct Impl;
  explicit ParquetWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk
