#include "ropewalk/format/parquet/writer.h"

#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "ropewalk/format/parquet/arrow_bridge_internal.h"

namespace ropewalk {
namespace {

using parquet_bridge::from_arrow;
using parquet_bridge::guarded;

arrow::Compression::type arrow_compression(ParquetCompression compression) {
  switch (compression) {
    case ParquetCompression::none:
      return arrow::Compression::UNCOMPRESSED;
    case ParquetCompression::snappy:
      return arrow::Compression::SNAPPY;
    case ParquetCompression::zstd:
      return arrow::Compression::ZSTD;
  }
  return arrow::Compression::UNCOMPRESSED;
}

/// Says in which field two schemas first differ.
std::string schema_difference(const arrow::Schema& declared, const arrow::Schema& found) {
  for (int i = 0; i < std::max(declared.num_fields(), found.num_fields()); ++i) {
    const std::string left =
        i < declared.num_fields() ? declared.field(i)->ToString() : std::string("no column");
    const std::string right =
        i < found.num_fields() ? found.field(i)->ToString() : std::string("no column");
    if (left != right) {
      return fmt::format("column {}: the file has `{}`, the batch `{}`", i, left, right);
    }
  }
  return "schemas differ";
}

}  // namespace

struct ParquetWriter::Impl {
  std::unique_ptr<Sink> owned;
  Sink* sink = nullptr;
  std::uint64_t begin = 0;
  std::shared_ptr<arrow::Schema> schema;
  std::unique_ptr<parquet::arrow::FileWriter> writer;
  std::int64_t rows = 0;
  std::int64_t row_groups = 0;
  bool closed = false;
  std::shared_ptr<bool> abandoned = std::make_shared<bool>(false);

  Status open(const ParquetWriterOptions& options) {
    begin = sink->size();
    if (!options.metadata.empty()) {
      // Into the Arrow schema, which goes into the footer twice: as pairs of its own and inside
      // `ARROW:schema`. Arrow's readers take the metadata of the latter and overlook other pairs.
      std::vector<std::string> keys, values;
      for (const auto& [key, value] : options.metadata) {
        keys.push_back(key);
        values.push_back(value);
      }
      schema = schema->WithMetadata(arrow::key_value_metadata(keys, values));
    }
    return guarded(StatusCode::internal, sink->name(), [&]() -> Status {
      parquet::WriterProperties::Builder properties;
      properties.compression(arrow_compression(options.compression));
      properties.created_by("ropewalk");
      if (options.dictionary) {
        properties.enable_dictionary();
      } else {
        properties.disable_dictionary();
      }
      properties.max_row_group_length(INT64_MAX);
      const auto arrow_properties =
          parquet::ArrowWriterProperties::Builder().store_schema()->build();
      auto opened = parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(),
                                                     parquet_bridge::arrow_stream(*sink, abandoned),
                                                     properties.build(), arrow_properties);
      if (!opened.ok()) {
        return from_arrow(opened.status(), StatusCode::invalid_argument, sink->name());
      }
      writer = std::move(*opened);
      return ok_status();
    });
  }
};

ParquetWriter::ParquetWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ParquetWriter::~ParquetWriter() {
  // The library would write a footer on destruction; a file that was not closed shall have none.
  if (impl_ != nullptr) *impl_->abandoned = true;
}

Result<std::unique_ptr<ParquetWriter>> ParquetWriter::create(const std::filesystem::path& path,
                                                             std::shared_ptr<arrow::Schema> schema,
                                                             const ParquetWriterOptions& options) {
  auto impl = std::make_unique<Impl>();
  ROPEWALK_ASSIGN_OR_RETURN(impl->owned, create_sink(path));
  impl->sink = impl->owned.get();
  impl->schema = std::move(schema);
  ROPEWALK_RETURN_IF_ERROR(impl->open(options));
  return std::unique_ptr<ParquetWriter>(new ParquetWriter(std::move(impl)));
}

Result<std::unique_ptr<ParquetWriter>> ParquetWriter::create(Sink& sink,
                                                             std::shared_ptr<arrow::Schema> schema,
                                                             const ParquetWriterOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->sink = &sink;
  impl->schema = std::move(schema);
  ROPEWALK_RETURN_IF_ERROR(impl->open(options));
  return std::unique_ptr<ParquetWriter>(new ParquetWriter(std::move(impl)));
}

Status ParquetWriter::write_row_group(const arrow::RecordBatch& batch) {
  Impl& impl = *impl_;
  if (impl.closed) return failed_precondition(impl.sink->name() + ": already closed");
  if (!batch.schema()->Equals(*impl.schema, /*check_metadata=*/false)) {
    return invalid_argument(fmt::format("{}: row group {}: {}", impl.sink->name(), impl.row_groups,
                                        schema_difference(*impl.schema, *batch.schema())));
  }
  ROPEWALK_RETURN_IF_ERROR(guarded(StatusCode::internal, impl.sink->name(), [&]() -> Status {
    // One call per row group: WriteTable splits only above the chunk size given here.
    const auto table = arrow::Table::Make(impl.schema, batch.columns(), batch.num_rows());
    return from_arrow(impl.writer->WriteTable(*table, std::max<std::int64_t>(1, batch.num_rows())),
                      StatusCode::internal, impl.sink->name());
  }));
  impl.rows += batch.num_rows();
  ++impl.row_groups;
  return ok_status();
}

Status ParquetWriter::close() {
  Impl& impl = *impl_;
  if (impl.closed) return ok_status();
  const Status written = guarded(StatusCode::internal, impl.sink->name(), [&]() -> Status {
    return from_arrow(impl.writer->Close(), StatusCode::internal, impl.sink->name());
  });
  ROPEWALK_RETURN_IF_ERROR(written);
  impl.closed = true;
  if (impl.owned != nullptr) {
    ROPEWALK_RETURN_IF_ERROR(impl.owned->sync());
    ROPEWALK_RETURN_IF_ERROR(impl.owned->close());
  }
  return ok_status();
}

std::uint64_t ParquetWriter::size_bytes() const { return impl_->sink->size() - impl_->begin; }
std::int64_t ParquetWriter::rows() const { return impl_->rows; }
std::int64_t ParquetWriter::row_groups() const { return impl_->row_groups; }

}  // namespace ropewalk
