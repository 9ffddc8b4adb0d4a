// Reading the columns of one episode: rows found, put in order, cast, completed.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <arrow/api.h>
#include <arrow/compute/api_vector.h>
#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/source_internal.h"
#include "ropewalk/dataset/lerobot/table_cast_internal.h"

namespace ropewalk {
namespace {

using lerobot::DataPlace;

Status from_arrow(const arrow::Status& status) {
  if (status.IsOutOfMemory()) return resource_exhausted(status.message());
  return data_loss(status.message());
}

/// Reads the rows `range` out of the places that hold an episode, one after the other.
Result<std::shared_ptr<arrow::RecordBatch>> read_places(const LerobotSource::Impl& impl,
                                                        const std::vector<DataPlace>& places,
                                                        FrameRange range,
                                                        const std::vector<std::string>& columns) {
  arrow::RecordBatchVector parts;
  std::int64_t at = 0;
  for (const DataPlace& place : places) {
    const std::int64_t begin = std::max<std::int64_t>(0, range.begin - at);
    const std::int64_t end = std::min(place.rows.size(), range.end - at);
    at += place.rows.size();
    if (begin >= end && !(parts.empty() && at >= range.end)) continue;
    ROPEWALK_ASSIGN_OR_RETURN(const auto file, impl.table(place.file));
    const std::int64_t first = place.rows.begin + std::min(begin, place.rows.size());
    ROPEWALK_ASSIGN_OR_RETURN(
        auto part,
        file->reader->read({first, first + std::max<std::int64_t>(0, end - begin)}, columns));
    parts.push_back(std::move(part));
    if (at >= range.end) break;
  }
  if (parts.size() == 1) return parts.front();
  if (parts.empty()) return data_loss("the episode has no rows");
  auto table = arrow::Table::FromRecordBatches(parts);
  if (!table.ok()) return from_arrow(table.status());
  auto batch = (*table)->CombineChunksToBatch();
  if (!batch.ok()) return from_arrow(batch.status());
  return *batch;
}

bool counts_from(const std::vector<std::int64_t>& values, std::int64_t first) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != first + static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

/// Returns the order of rows that makes frame_index count from 0, or nullopt when none does.
std::optional<std::vector<std::int64_t>> counting_order(const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> order(values.size(), -1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t at = values[i];
    if (at < 0 || at >= static_cast<std::int64_t>(values.size()) ||
        order[static_cast<std::size_t>(at)] >= 0) {
      return std::nullopt;
    }
    order[static_cast<std::size_t>(at)] = static_cast<std::int64_t>(i);
  }
  return order;
}

Result<std::shared_ptr<arrow::Array>> take_rows(const std::shared_ptr<arrow::Array>& array,
                                                const std::shared_ptr<arrow::Array>& order) {
  auto taken = arrow::compute::Take(*array, *order);
  if (!taken.ok()) return from_arrow(taken.status());
  return *taken;
}

template <typename Builder, typename Value>
Result<std::shared_ptr<arrow::Array>> filled(std::int64_t rows, Value value) {
  Builder builder;
  std::shared_ptr<arrow::Array> array;
  arrow::Status status = builder.Reserve(rows);
  for (std::int64_t i = 0; status.ok() && i < rows; ++i) builder.UnsafeAppend(value(i));
  if (status.ok()) status = builder.Finish(&array);
  if (!status.ok()) return from_arrow(status);
  return array;
}

/// Makes a default column that a table lacks.
Result<std::shared_ptr<arrow::Array>> made_column(const LerobotSource::Impl& impl,
                                                  std::string_view name, std::size_t row,
                                                  FrameRange range) {
  const auto counted = [&](auto value) { return filled<arrow::Int64Builder>(range.size(), value); };
  if (name == "timestamp") {
    return filled<arrow::FloatBuilder>(range.size(), [&](std::int64_t i) {
      return frame_timestamp_f32(range.begin + i, impl.info.schema.fps);
    });
  }
  if (name == "frame_index") return counted([&](std::int64_t i) { return range.begin + i; });
  if (name == "episode_index") {
    return counted([&](std::int64_t) { return impl.index_of_row(row); });
  }
  if (name == "task_index") {
    std::int64_t task = 0;
    const auto info = impl.read_row(row);
    if (info.ok() && !info->tasks.empty()) {
      task = impl.tasks.index_of(info->tasks.front()).value_or(0);
    }
    return counted([&](std::int64_t) { return task; });
  }
  std::int64_t before = 0;
  for (std::size_t i = 0; i < impl.rows.size() && impl.rows[i] != row; ++i) {
    before += impl.lengths[i];
  }
  return counted([&](std::int64_t i) { return before + range.begin + i; });
}

/// Rebuilds timestamps that lie more than half a frame off the grid.
Result<std::shared_ptr<arrow::Array>> settle_timestamps(std::shared_ptr<arrow::Array> column,
                                                        std::int64_t first, Rational fps,
                                                        lerobot::ReadNotes& notes) {
  const auto& values = static_cast<const arrow::FloatArray&>(*column);
  const double half = 0.5 / fps.to_double();
  std::int64_t broken = 0;
  for (std::int64_t i = 0; i < values.length(); ++i) {
    const double value = static_cast<double>(values.Value(i));
    if (!(std::abs(value - frame_seconds(first + i, fps)) <= half)) ++broken;
  }
  if (broken == 0) return column;
  notes.timestamps_rebuilt += broken;
  return filled<arrow::FloatBuilder>(values.length(), [&](std::int64_t i) {
    const float value = values.Value(i);
    const bool good = std::abs(static_cast<double>(value) - frame_seconds(first + i, fps)) <= half;
    return good ? value : frame_timestamp_f32(first + i, fps);
  });
}

}  // namespace

Result<std::shared_ptr<arrow::RecordBatch>> LerobotSource::Impl::read(
    std::size_t row, std::int64_t length, FrameRange range, const std::vector<std::string>& wanted,
    lerobot::ReadNotes* notes) const {
  if (range.begin < 0 || range.end < range.begin || range.end > length) {
    return out_of_range(fmt::format("frames {}..{} of {}", range.begin, range.end, length));
  }
  ROPEWALK_ASSIGN_OR_RETURN(const auto where, places(row));
  std::int64_t stored = 0;
  for (const DataPlace& place : where) stored += place.rows.size();
  const std::int64_t expected = table_rows.empty() ? length_of_row(row) : table_rows[row];
  if (expected >= 0 && stored != expected) {
    return data_loss(fmt::format("{}: {} rows, the metadata says {}", where.front().file, stored,
                                 expected))
        .with_reason("row_count_mismatch");
  }

  ROPEWALK_ASSIGN_OR_RETURN(const auto first_file, table(where.front().file));
  std::vector<const Feature*> features;
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < info.schema.features.size(); ++i) {
    const Feature& feature = info.schema.features[i];
    if (feature.kind != FeatureKind::column && feature.kind != FeatureKind::image) continue;
    if (!wanted.empty() && std::ranges::find(wanted, feature.name) == wanted.end()) continue;
    features.push_back(&feature);
    if (first_file->reader->has_column(info.physical[i])) columns.push_back(info.physical[i]);
  }
  const bool has_order = first_file->reader->has_column("frame_index");
  const bool order_wanted = std::ranges::find(columns, "frame_index") != columns.end();
  std::vector<std::string> read_list = columns;
  if (has_order && !order_wanted) read_list.emplace_back("frame_index");
  if (read_list.empty()) read_list.push_back(first_file->reader->columns().front());
  ROPEWALK_ASSIGN_OR_RETURN_CTX(auto batch, read_places(*this, where, range, read_list),
                                where.front().file);

  lerobot::ReadNotes found;
  if (has_order) {
    const auto here = lerobot::int64_values(*batch->GetColumnByName("frame_index"));
    if (here.ok() && !counts_from(*here, range.begin)) {
      const std::vector<std::string> order_column{"frame_index"};
      ROPEWALK_ASSIGN_OR_RETURN(const auto all,
                                read_places(*this, where, {0, stored}, order_column));
      const auto values = lerobot::int64_values(*all->column(0));
      const auto order = values.ok() ? counting_order(*values) : std::nullopt;
      if (order) {
        found.sorted = true;
        ROPEWALK_ASSIGN_OR_RETURN(const auto whole,
                                  read_places(*this, where, {0, stored}, read_list));
        ROPEWALK_ASSIGN_OR_RETURN(const auto picked,
                                  filled<arrow::Int64Builder>(range.size(), [&](std::int64_t i) {
                                    return (*order)[static_cast<std::size_t>(range.begin + i)];
                                  }));
        arrow::ArrayVector sorted;
        for (const auto& column : whole->columns()) {
          ROPEWALK_ASSIGN_OR_RETURN(auto taken, take_rows(column, picked));
          sorted.push_back(std::move(taken));
        }
        batch = arrow::RecordBatch::Make(whole->schema(), range.size(), std::move(sorted));
      }
    }
  }

  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const Feature* feature : features) {
    const std::string& physical = info.physical_name(feature->name);
    auto stored_column = batch->GetColumnByName(physical);
    std::shared_ptr<arrow::Array> column;
    if (stored_column == nullptr) {
      if (!is_default_column(feature->name)) {
        return data_loss(fmt::format("{}: no column \"{}\", which info.json declares",
                                     where.front().file, physical))
            .with_reason("column_missing");
      }
      ROPEWALK_ASSIGN_OR_RETURN(column, made_column(*this, feature->name, row, range));
    } else {
      const std::string context = fmt::format("{}: {}", where.front().file, physical);
      ROPEWALK_ASSIGN_OR_RETURN_CTX(
          column, lerobot::cast_column(stored_column, *feature, range.begin), context);
      if (feature->kind == FeatureKind::image) {
        ROPEWALK_ASSIGN_OR_RETURN_CTX(
            column, lerobot::embed_images(*this, index_of_row(row), *feature, column, range.begin),
            context);
      } else if (feature->name == "timestamp") {
        ROPEWALK_ASSIGN_OR_RETURN(column,
                                  settle_timestamps(column, range.begin, info.schema.fps, found));
      }
    }
    fields.push_back(arrow::field(feature->name, lerobot::delivered_type(*feature)));
    arrays.push_back(std::move(column));
  }
  if (options.strict && notes == nullptr) {
    if (found.sorted) {
      return failed_precondition(
                 fmt::format("{}: rows are not in the order of frame_index", where.front().file))
          .with_reason("rows_out_of_order");
    }
    if (found.timestamps_rebuilt > 0) {
      return failed_precondition(fmt::format("{}: {} timestamps lie off the grid of {} Hz",
                                             where.front().file, found.timestamps_rebuilt,
                                             to_string(info.schema.fps)))
          .with_reason("timestamp_broken");
    }
  }
  if (notes != nullptr) *notes = found;
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), range.size(),
                                  std::move(arrays));
}

}  // namespace ropewalk
