#include "ropewalk/engine/compare.h"

#include <algorithm>
#include <cstdlib>

#include <arrow/api.h>
#include <arrow/compute/cast.h>
#include <fmt/format.h>

namespace ropewalk {
namespace {

Status differ(std::string_view what, std::int64_t row, const arrow::Array& expected,
              const arrow::Array& found) {
  const auto text = [row](const arrow::Array& array) {
    auto scalar = array.GetScalar(row);
    std::string out = scalar.ok() ? (*scalar)->ToString() : "?";
    if (out.size() > 120) out = out.substr(0, 117) + "...";
    return out;
  };
  return data_loss(fmt::format("column {}: row {}: expected {}, found {}", what, row,
                               text(expected), text(found)));
}

Status compare_column(const std::string& name, std::shared_ptr<arrow::Array> expected,
                      const std::shared_ptr<arrow::Array>& found) {
  if (!expected->type()->Equals(*found->type())) {
    auto cast = arrow::compute::Cast(*expected, found->type());
    if (!cast.ok()) {
      return data_loss(fmt::format("column {}: expected type {}, found {}", name,
                                   expected->type()->ToString(), found->type()->ToString()));
    }
    expected = *cast;
  }
  const auto equal = arrow::EqualOptions::Defaults().nans_equal(true);
  if (expected->Equals(found, equal)) return ok_status();
  for (std::int64_t row = 0; row < expected->length(); ++row) {
    if (!expected->RangeEquals(*found, row, row + 1, row, equal)) {
      return differ(name, row, *expected, *found);
    }
  }
  return data_loss(fmt::format("column {}: differs", name));
}

Status compare_counting(const arrow::RecordBatch& batch, const std::string& name,
                        std::int64_t first, std::int64_t step) {
  const auto column = batch.GetColumnByName(name);
  if (!column || column->type_id() != arrow::Type::INT64) {
    return data_loss(fmt::format("column {}: missing or not int64", name));
  }
  const auto& values = static_cast<const arrow::Int64Array&>(*column);
  for (std::int64_t row = 0; row < values.length(); ++row) {
    const std::int64_t expected = first + step * row;
    if (values.IsNull(row) || values.Value(row) != expected) {
      return data_loss(fmt::format("column {}: row {}: expected {}, found {}", name, row, expected,
                                   values.IsNull(row) ? 0 : values.Value(row)));
    }
  }
  return ok_status();
}

Status compare_tasks(const Episode& source, const arrow::RecordBatch& source_batch,
                     const Episode& copy, const arrow::RecordBatch& copy_batch) {
  const auto expected = source_batch.GetColumnByName("task_index");
  const auto found = copy_batch.GetColumnByName("task_index");
  if (!expected || !found) return ok_status();
  const auto& expected_values = static_cast<const arrow::Int64Array&>(*expected);
  const auto& found_values = static_cast<const arrow::Int64Array&>(*found);
  std::int64_t last_expected = -1;
  std::int64_t last_found = -1;
  for (std::int64_t row = 0; row < found_values.length(); ++row) {
    if (expected_values.Value(row) == last_expected && found_values.Value(row) == last_found) {
      continue;
    }
    last_expected = expected_values.Value(row);
    last_found = found_values.Value(row);
    ROPEWALK_ASSIGN_OR_RETURN(const std::string a, source.task_text(last_expected));
    ROPEWALK_ASSIGN_OR_RETURN(const std::string b, copy.task_text(last_found));
    if (a != b) {
      return data_loss(
          fmt::format("column task_index: row {}: expected task '{}', found '{}'", row, a, b));
    }
  }
  return ok_status();
}

Status compare_frames(const Episode& source, const Episode& copy, const std::string& camera,
                      FrameRange range, int tolerance, const RunContext& context,
                      std::int64_t& compared) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto expected, source.frames(camera, range));
  ROPEWALK_ASSIGN_OR_RETURN(const auto found, copy.frames(camera, range));
  const FrameShape shape = expected->shape();
  if (!(shape == found->shape())) {
    return data_loss(fmt::format("frame {}: expected {}x{}x{}, found {}x{}x{}", range.begin,
                                 shape.height, shape.width, shape.channels, found->shape().height,
                                 found->shape().width, found->shape().channels));
  }
  Bytes a(shape.frame_bytes());
  Bytes b(shape.frame_bytes());
  for (std::int64_t frame = range.begin; frame < range.end; ++frame) {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    ROPEWALK_ASSIGN_OR_RETURN(const bool has_a, expected->next(a));
    ROPEWALK_ASSIGN_OR_RETURN(const bool has_b, found->next(b));
    if (!has_a || !has_b) {
      return data_loss(fmt::format("frame {}: {} ends early", frame, has_a ? "copy" : "source"));
    }
    ++compared;
    if (a == b) continue;
    int largest = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const int difference = std::abs(int{a[i]} - int{b[i]});
      if (difference > largest) {
        largest = difference;
        at = i;
      }
    }
    if (largest > tolerance) {
      return data_loss(fmt::format("frame {}: pixels differ by up to {} levels (sample {})", frame,
                                   largest, at));
    }
  }
  return ok_status();
}

}  // namespace

Result<CompareResult> compare_episodes(const Episode& source, const Episode& copy,
                                       const ExpectedNumbers& numbers,
                                       const CompareOptions& options, const RunContext& context) {
  CompareResult result;
  const std::int64_t length = source.info().length;
  if (copy.info().length != length) {
    return data_loss(fmt::format("length: expected {} rows, found {}", length, copy.info().length));
  }
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto expected, source.columns({0, length}), "source");
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto found, copy.columns({0, length}), "copy");
  for (int i = 0; i < found->num_columns(); ++i) {
    const std::string& name = found->schema()->field(i)->name();
    if (is_default_column(name) && name != "timestamp") continue;
    const auto column = expected->GetColumnByName(name);
    if (!column) return data_loss(fmt::format("column {}: not in the source", name));
    ROPEWALK_RETURN_IF_ERROR(compare_column(name, column, found->column(i)));
    ++result.columns;
  }
  for (int i = 0; i < expected->num_columns(); ++i) {
    const std::string& name = expected->schema()->field(i)->name();
    if (!found->GetColumnByName(name)) {
      const Feature* feature = copy.schema().find(name);
      // Inline pictures may have become a camera of the copy: they are compared as frames below.
      if (feature && feature->is_camera()) continue;
      return data_loss(fmt::format("column {}: missing in the copy", name));
    }
  }
  ROPEWALK_RETURN_IF_ERROR(compare_counting(*found, "episode_index", numbers.episode_index, 0));
  ROPEWALK_RETURN_IF_ERROR(compare_counting(*found, "index", numbers.index_begin, 1));
  ROPEWALK_RETURN_IF_ERROR(compare_counting(*found, "frame_index", 0, 1));
  ROPEWALK_RETURN_IF_ERROR(compare_tasks(source, *expected, copy, *found));
  result.columns += 4;

  for (const std::string& camera : source.schema().cameras()) {
    if (!source.has_camera(camera)) continue;
    if (!copy.has_camera(camera)) return data_loss(fmt::format("camera {}: missing", camera));
    std::vector<FrameRange> ranges{{0, length}};
    if (!options.all_frames) {
      std::vector<std::int64_t> wanted{0, length / 2, length - 1};
      wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
      ranges.clear();
      for (const std::int64_t frame : wanted) ranges.push_back({frame, frame + 1});
    }
    for (const FrameRange range : ranges) {
      if (Status status = compare_frames(source, copy, camera, range, options.max_level_difference,
                                         context, result.frames);
          !status.ok()) {
        return status.with_context(fmt::format("camera {}", camera));
      }
    }
  }
  return result;
}

}  // namespace ropewalk
