#include "ropewalk/format/parquet/reader.h"

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <unordered_map>

#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/statistics.h>

#include "ropewalk/format/parquet/arrow_bridge_internal.h"

namespace ropewalk {
namespace {

using parquet_bridge::from_arrow;
using parquet_bridge::guarded;

constexpr std::string_view kMagic = "PAR1";
constexpr std::string_view kLfsPointer = "version https://git-lfs";
/// A row group up to this size is decoded once and kept while parts of it are asked for.
constexpr std::uint64_t kKeptRowGroupBytes = 32ULL << 20;
constexpr std::size_t kKeptRowGroups = 3;
constexpr std::size_t kKeptWalkers = 4;
/// Rows decoded at a time while a larger row group is walked through.
constexpr std::int64_t kWalkRows = 4096;
constexpr std::int64_t kMaxRowGroupRows = std::int64_t{1} << 31;

/// Checks the ends of the file, for messages better than "invalid magic".
Status check_frame(const Source& source) {
  const std::uint64_t size = source.size();
  std::array<std::uint8_t, 64> head{};
  const std::size_t head_bytes = std::min<std::uint64_t>(size, head.size());
  ROPEWALK_RETURN_IF_ERROR(source.read_at(0, MutableByteSpan(head).first(head_bytes)));
  const std::string_view text = as_text(ByteSpan(head).first(head_bytes));
  if (text.starts_with(kLfsPointer)) {
    return data_loss(source.name() +
                     ": a Git LFS pointer file stands in place of the data; fetch it with "
                     "`git lfs pull`")
        .with_reason("LFS_POINTER");
  }
  if (size < 12 || !text.starts_with(kMagic)) {
    return data_loss(fmt::format("{}: not a Parquet file ({} bytes, no PAR1 at its start)",
                                 source.name(), size))
        .with_reason("NO_FOOTER");
  }
  std::array<std::uint8_t, 4> tail{};
  ROPEWALK_RETURN_IF_ERROR(source.read_at(size - 4, tail));
  if (as_text(tail) != kMagic) {
    return data_loss(fmt::format("{}: no Parquet footer at its end ({} bytes): its writer was "
                                 "never closed, or the file is cut",
                                 source.name(), size))
        .with_reason("NO_FOOTER");
  }
  return ok_status();
}

}  // namespace

struct ParquetReader::Impl {
  std::shared_ptr<const Source> source;
  Limits limits;
  std::unique_ptr<parquet::arrow::FileReader> reader;
  std::shared_ptr<parquet::FileMetaData> metadata;
  std::shared_ptr<arrow::Schema> schema;
  std::vector<std::string> columns;
  std::unordered_map<std::string, std::vector<int>> leaves;  // of a top-level column
  std::vector<ParquetRowGroup> row_groups;

  /// A row group that was decoded whole because a part of it was asked for.
  struct Kept {
    int row_group = -1;
    std::vector<int> leaves;
    std::shared_ptr<arrow::RecordBatch> batch;
  };
  /// A place within a larger row group, from which reading goes on.
  struct Walker {
    int row_group = -1;
    std::vector<int> leaves;
    std::unique_ptr<arrow::RecordBatchReader> stream;
    std::shared_ptr<arrow::RecordBatch> batch;  // the last one read
    std::int64_t begin = 0;                     // its first row
    std::int64_t end() const { return begin + (batch != nullptr ? batch->num_rows() : 0); }
  };
  mutable std::mutex kept_mutex;  // of the two below, newest first
  mutable std::list<Kept> kept;
  mutable std::list<Walker> walkers;

  Status open();
  Status check_row_groups();
  std::string place(int row_group) const {
    return fmt::format("{}: row group {}", source->name(), row_group);
  }
  Result<std::vector<int>> leaves_of(std::span<const std::string> names) const;
  std::uint64_t bytes_of(int row_group, const std::vector<int>& wanted) const;
  /// Decodes rows [begin, end) of one row group.
  Result<std::shared_ptr<arrow::RecordBatch>> read_part(int row_group, std::int64_t begin,
                                                        std::int64_t end,
                                                        const std::vector<int>& wanted) const;
  Result<Walker> take_walker(int row_group, std::int64_t begin,
                             const std::vector<int>& wanted) const;
  Result<std::shared_ptr<arrow::RecordBatch>> walk(int row_group, std::int64_t begin,
                                                   std::int64_t end,
                                                   const std::vector<int>& wanted) const;
  Result<std::shared_ptr<arrow::RecordBatch>> to_batch(const arrow::Table& table,
                                                       std::string_view where) const;
};

namespace {

void collect_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& out) {
  if (field.is_leaf()) out.push_back(field.column_index);
  for (const auto& child : field.children) collect_leaves(child, out);
}

}  // namespace

Status ParquetReader::Impl::open() {
  ROPEWALK_RETURN_IF_ERROR(check_frame(*source));
  Status opened = guarded(StatusCode::data_loss, source->name(), [&]() -> Status {
    parquet::ReaderProperties properties(parquet_bridge::column_memory());
    parquet::arrow::FileReaderBuilder builder;
    ROPEWALK_RETURN_IF_ERROR(
        from_arrow(builder.Open(parquet_bridge::arrow_file(source), properties),
                   StatusCode::data_loss, source->name()));
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_pre_buffer(false);
    arrow_properties.set_batch_size(kWalkRows);
    builder.memory_pool(parquet_bridge::column_memory());
    builder.properties(arrow_properties);
    ROPEWALK_RETURN_IF_ERROR(
        from_arrow(builder.Build(&reader), StatusCode::data_loss, source->name()));
    ROPEWALK_RETURN_IF_ERROR(
        from_arrow(reader->GetSchema(&schema), StatusCode::data_loss, source->name()));
    metadata = reader->parquet_reader()->metadata();
    for (const auto& field : reader->manifest().schema_fields) {
      const std::string& name = field.field->name();
      columns.push_back(name);
      auto& mine = leaves[name];
      if (mine.empty()) collect_leaves(field, mine);  // of equal names the first is taken
    }
    return check_row_groups();
  });
  if (!opened.ok() && opened.code() == StatusCode::data_loss && opened.reason().empty()) {
    return opened.with_reason("BAD_FOOTER");
  }
  return opened;
}

Status ParquetReader::Impl::check_row_groups() {
  std::int64_t first = 0;
  for (int i = 0; i < metadata->num_row_groups(); ++i) {
    const auto group = metadata->RowGroup(i);
    const std::int64_t rows = group->num_rows();
    const std::int64_t bytes = group->total_byte_size();
    if (rows < 0 || bytes < 0) {
      return data_loss(fmt::format("{} claims {} rows and {} bytes", place(i), rows, bytes));
    }
    if (rows > kMaxRowGroupRows) {
      return resource_exhausted(
          fmt::format("{} claims {} rows, the limit is {}", place(i), rows, kMaxRowGroupRows));
    }
    row_groups.push_back({first, rows, static_cast<std::uint64_t>(bytes)});
    first += rows;
  }
  if (first != metadata->num_rows()) {
    return data_loss(fmt::format("{}: the footer says {} rows, its row groups hold {}",
                                 source->name(), metadata->num_rows(), first));
  }
  return ok_status();
}

Result<std::vector<int>> ParquetReader::Impl::leaves_of(std::span<const std::string> names) const {
  std::vector<int> out;
  for (const std::string& name : names.empty() ? std::span<const std::string>(columns) : names) {
    const auto at = leaves.find(name);
    if (at == leaves.end()) {
      return not_found(fmt::format("{}: no column \"{}\"", source->name(), name));
    }
    out.insert(out.end(), at->second.begin(), at->second.end());
  }
  return out;
}

std::uint64_t ParquetReader::Impl::bytes_of(int row_group, const std::vector<int>& wanted) const {
  const auto group = metadata->RowGroup(row_group);
  std::uint64_t bytes = 0;
  for (const int leaf : wanted) {
    const std::int64_t size = group->ColumnChunk(leaf)->total_uncompressed_size();
    bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(0, size));
  }
  return bytes;
}

Result<std::shared_ptr<arrow::RecordBatch>> ParquetReader::Impl::to_batch(
    const arrow::Table& table, std::string_view where) const {
  auto batch = table.CombineChunksToBatch(parquet_bridge::column_memory());
  if (!batch.ok()) return from_arrow(batch.status(), StatusCode::data_loss, where);
  return *batch;
}

Result<ParquetReader::Impl::Walker> ParquetReader::Impl::take_walker(
    int row_group, std::int64_t begin, const std::vector<int>& wanted) const {
  {
    const std::lock_guard lock(kept_mutex);
    auto best = walkers.end();
    for (auto at = walkers.begin(); at != walkers.end(); ++at) {
      if (at->row_group == row_group && at->begin <= begin && at->leaves == wanted &&
          (best == walkers.end() || at->begin > best->begin)) {
        best = at;
      }
    }
    if (best != walkers.end()) {
      Walker out = std::move(*best);
      walkers.erase(best);
      return out;
    }
  }
  Walker out;
  out.row_group = row_group;
  out.leaves = wanted;
  auto opened = reader->GetRecordBatchReader({row_group}, wanted);
  if (!opened.ok()) return from_arrow(opened.status(), StatusCode::data_loss, place(row_group));
  out.stream = std::move(*opened);
  return out;
}

Result<std::shared_ptr<arrow::RecordBatch>> ParquetReader::Impl::walk(
    int row_group, std::int64_t begin, std::int64_t end, const std::vector<int>& wanted) const {
  ROPEWALK_ASSIGN_OR_RETURN(Walker walker, take_walker(row_group, begin, wanted));
  arrow::RecordBatchVector parts;
  std::int64_t at = begin;
  while (true) {
    if (walker.batch != nullptr && at < walker.end()) {
      const std::int64_t to = std::min(end, walker.end());
      parts.push_back(walker.batch->Slice(at - walker.begin, to - at));
      at = to;
    }
    if (at == end && !parts.empty()) break;
    const std::int64_t next = walker.end();
    std::shared_ptr<arrow::RecordBatch> batch;
    ROPEWALK_RETURN_IF_ERROR(
        from_arrow(walker.stream->ReadNext(&batch), StatusCode::data_loss, place(row_group)));
    if (batch == nullptr) {
      return data_loss(fmt::format("{} ends after {} rows, its footer says {}", place(row_group),
                                   next, row_groups[static_cast<std::size_t>(row_group)].rows));
    }
    walker.begin = next;
    walker.batch = std::move(batch);
  }
  auto table = arrow::Table::FromRecordBatches(walker.stream->schema(), parts);
  {
    const std::lock_guard lock(kept_mutex);
    walkers.push_front(std::move(walker));
    if (walkers.size() > kKeptWalkers) walkers.pop_back();
  }
  if (!table.ok()) return from_arrow(table.status(), StatusCode::data_loss, place(row_group));
  return to_batch(**table, place(row_group));
}

Result<std::shared_ptr<arrow::RecordBatch>> ParquetReader::Impl::read_part(
    int row_group, std::int64_t begin, std::int64_t end, const std::vector<int>& wanted) const {
  const ParquetRowGroup& group = row_groups[static_cast<std::size_t>(row_group)];
  const bool whole = begin == 0 && end == group.rows;
  const std::uint64_t bytes = bytes_of(row_group, wanted);
  if (whole && bytes > limits.max_row_group_bytes) {
    return resource_exhausted(fmt::format("{} holds {} bytes, the limit is {}", place(row_group),
                                          bytes, limits.max_row_group_bytes));
  }
  if (!whole) {
    const std::lock_guard lock(kept_mutex);
    for (auto known = kept.begin(); known != kept.end(); ++known) {
      if (known->row_group != row_group || known->leaves != wanted) continue;
      kept.splice(kept.begin(), kept, known);
      return kept.front().batch->Slice(begin, end - begin);
    }
  }
  if (!whole && bytes > kKeptRowGroupBytes) return walk(row_group, begin, end, wanted);

  auto table = reader->ReadRowGroups({row_group}, wanted);
  if (!table.ok()) return from_arrow(table.status(), StatusCode::data_loss, place(row_group));
  ROPEWALK_ASSIGN_OR_RETURN(auto batch, to_batch(**table, place(row_group)));
  if (batch->num_rows() != group.rows) {
    return data_loss(fmt::format("{} holds {} rows, its footer says {}", place(row_group),
                                 batch->num_rows(), group.rows));
  }
  if (whole) return batch;
  const std::lock_guard lock(kept_mutex);
  kept.push_front({row_group, wanted, batch});
  if (kept.size() > kKeptRowGroups) kept.pop_back();
  return batch->Slice(begin, end - begin);
}

ParquetReader::ParquetReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ParquetReader::~ParquetReader() = default;

Result<std::unique_ptr<ParquetReader>> ParquetReader::open(const std::filesystem::path& path,
                                                           const Limits& limits) {
  ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source(path));
  return open(std::shared_ptr<const Source>(std::move(source)), limits);
}

Result<std::unique_ptr<ParquetReader>> ParquetReader::open(std::shared_ptr<const Source> source,
                                                           const Limits& limits) {
  auto impl = std::make_unique<Impl>();
  impl->source = std::move(source);
  impl->limits = limits;
  ROPEWALK_RETURN_IF_ERROR(impl->open());
  return std::unique_ptr<ParquetReader>(new ParquetReader(std::move(impl)));
}

const std::string& ParquetReader::name() const { return impl_->source->name(); }
std::int64_t ParquetReader::rows() const { return impl_->metadata->num_rows(); }
const std::vector<ParquetRowGroup>& ParquetReader::row_groups() const { return impl_->row_groups; }
const std::shared_ptr<arrow::Schema>& ParquetReader::schema() const { return impl_->schema; }
const std::vector<std::string>& ParquetReader::columns() const { return impl_->columns; }

bool ParquetReader::has_column(std::string_view column) const {
  return impl_->leaves.contains(std::string(column));
}

std::optional<std::string> ParquetReader::metadata(std::string_view key) const {
  const auto& pairs = impl_->metadata->key_value_metadata();
  if (pairs == nullptr) return std::nullopt;
  auto value = pairs->Get(std::string(key));
  if (!value.ok()) return std::nullopt;
  return *value;
}

std::optional<Int64Bounds> ParquetReader::int64_bounds(std::size_t row_group,
                                                       std::string_view column) const {
  const auto at = impl_->leaves.find(std::string(column));
  if (at == impl_->leaves.end() || at->second.size() != 1 ||
      row_group >= impl_->row_groups.size()) {
    return std::nullopt;
  }
  std::optional<Int64Bounds> out;
  const Status status = guarded(StatusCode::data_loss, name(), [&]() -> Status {
    const auto chunk =
        impl_->metadata->RowGroup(static_cast<int>(row_group))->ColumnChunk(at->second.front());
    const auto statistics = chunk->is_stats_set() ? chunk->statistics() : nullptr;
    if (statistics == nullptr || !statistics->HasMinMax()) return ok_status();
    if (chunk->type() == parquet::Type::INT64) {
      const auto& typed = static_cast<const parquet::Int64Statistics&>(*statistics);
      out = Int64Bounds{typed.min(), typed.max()};
    } else if (chunk->type() == parquet::Type::INT32) {
      const auto& typed = static_cast<const parquet::Int32Statistics&>(*statistics);
      out = Int64Bounds{typed.min(), typed.max()};
    }
    return ok_status();
  });
  // Damaged statistics are no statistics.
  if (!status.ok()) return std::nullopt;
  return out;
}

Result<std::shared_ptr<arrow::RecordBatch>> ParquetReader::read(
    RowRange range, std::span<const std::string> columns) const {
  const Impl& impl = *impl_;
  if (range.begin < 0 || range.end < range.begin || range.end > rows()) {
    return out_of_range(
        fmt::format("{}: rows {}..{} of {}", name(), range.begin, range.end, rows()));
  }
  return guarded(
      StatusCode::data_loss, name(), [&]() -> Result<std::shared_ptr<arrow::RecordBatch>> {
        ROPEWALK_ASSIGN_OR_RETURN(const auto wanted, impl.leaves_of(columns));
        arrow::RecordBatchVector parts;
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < impl.row_groups.size(); ++i) {
          const ParquetRowGroup& group = impl.row_groups[i];
          const std::int64_t begin = std::max(range.begin - group.first_row, std::int64_t{0});
          const std::int64_t end = std::min(range.end - group.first_row, group.rows);
          if (begin >= end) continue;
          if (begin == 0 && end == group.rows) bytes += impl.bytes_of(static_cast<int>(i), wanted);
          if (bytes > impl.limits.max_row_group_bytes) {
            return resource_exhausted(fmt::format("{}: rows {}..{} hold more than {} bytes", name(),
                                                  range.begin, range.end,
                                                  impl.limits.max_row_group_bytes));
          }
          ROPEWALK_ASSIGN_OR_RETURN(auto part,
                                    impl.read_part(static_cast<int>(i), begin, end, wanted));
          parts.push_back(std::move(part));
        }
        std::shared_ptr<arrow::RecordBatch> batch;
        if (parts.size() == 1) {
          batch = parts.front();
        } else {
          std::shared_ptr<arrow::Schema> schema;
          if (parts.empty()) {
            auto empty = impl.reader->ReadRowGroups({}, wanted);
            if (!empty.ok()) return from_arrow(empty.status(), StatusCode::data_loss, name());
            schema = (*empty)->schema();
          } else {
            schema = parts.front()->schema();
          }
          auto table = arrow::Table::FromRecordBatches(schema, parts);
          if (!table.ok()) return from_arrow(table.status(), StatusCode::data_loss, name());
          ROPEWALK_ASSIGN_OR_RETURN(batch, impl.to_batch(**table, name()));
        }
        if (columns.empty()) return batch;
        // The library gives columns in file order; the caller gets them in the order asked for.
        arrow::FieldVector fields;
        arrow::ArrayVector arrays;
        for (const std::string& column : columns) {
          const int at = batch->schema()->GetFieldIndex(column);
          if (at < 0) {
            return data_loss(fmt::format("{}: several columns \"{}\"", name(), column));
          }
          fields.push_back(batch->schema()->field(at));
          arrays.push_back(batch->column(at));
        }
        return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), batch->num_rows(),
                                        std::move(arrays));
      });
}

Result<std::shared_ptr<arrow::RecordBatch>> ParquetReader::read_all(
    std::span<const std::string> columns) const {
  return read({0, rows()}, columns);
}

}  // namespace ropewalk
