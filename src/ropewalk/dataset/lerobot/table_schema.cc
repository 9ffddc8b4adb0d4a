#include <algorithm>
#include <cmath>
#include <set>

#include <arrow/api.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/compute/cast.h>
#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/table_schema_internal.h"
#include "ropewalk/episode/arrow_types.h"

namespace ropewalk::lerobot_internal {
namespace {

constexpr std::size_t kMostDimensions = 5;  // Array5D is the last one that `datasets` knows

std::shared_ptr<arrow::DataType> image_type() {
  return arrow::struct_(
      {arrow::field("bytes", arrow::binary()), arrow::field("path", arrow::utf8())});
}

std::shared_ptr<arrow::Field> column_field(const OutputFeature& output) {
  const Feature& feature = output.feature;
  if (output.storage == Storage::inline_image) return arrow::field(feature.name, image_type());
  auto type = arrow_type(feature.dtype);
  if (feature.shape.size() == 1) {
    if (feature.shape[0] != 1) {
      type = arrow::fixed_size_list(arrow::field("item", type),
                                    static_cast<std::int32_t>(feature.shape[0]));
    }
    return arrow::field(feature.name, type);
  }
  for (std::size_t i = 0; i < feature.shape.size(); ++i) {
    type = arrow::list(arrow::field("item", type));
  }
  Json shape = Json::array();
  for (const std::int64_t extent : feature.shape) shape.push_back(extent);
  const Json parameters(Json::Array{shape, Json(dtype_name(feature.dtype))});
  return arrow::field(
      feature.name, type, true,
      arrow::key_value_metadata(
          {"ARROW:extension:name", "ARROW:extension:metadata"},
          {fmt::format("datasets.features.features.Array{}DExtensionType", feature.shape.size()),
           parameters.dump_spaced()}));
}

/// Why the format has no place for a feature; empty when it has.
std::string reason_to_drop(const Feature& feature) {
  switch (feature.kind) {
    case FeatureKind::points:
    case FeatureKind::audio:
    case FeatureKind::events:
      return fmt::format("kind {}", feature_kind_name(feature.kind));
    case FeatureKind::column:
    case FeatureKind::image:
    case FeatureKind::video:
      break;
  }
  if (feature.own_timeline) return "a timeline of its own";
  if (feature.is_camera()) return "";
  if (feature.dtype == DType::bytes) return "dtype bytes";
  if (feature.is_ragged()) return "rows of free length";
  if (feature.elements() == 0) return "a shape without elements";
  if (feature.elements() > INT32_MAX) return "more elements than a list holds";
  if (feature.dtype == DType::string && feature.shape.size() > 1) return "an array of strings";
  return "";
}

std::string legal_name(std::string name) {
  std::ranges::replace(name, '/', '_');
  if (name.empty() || name == "." || name == "..") name = "_" + name;
  if (name == "task") name = "task_";  // upstream's items hold the task's text under this key
  return name;
}

std::shared_ptr<arrow::Array> flatten_once(const arrow::Array& array, Status& status) {
  arrow::Result<std::shared_ptr<arrow::Array>> out;
  switch (array.type_id()) {
    case arrow::Type::FIXED_SIZE_LIST:
      out = static_cast<const arrow::FixedSizeListArray&>(array).Flatten();
      break;
    case arrow::Type::LIST:
      out = static_cast<const arrow::ListArray&>(array).Flatten();
      break;
    case arrow::Type::LARGE_LIST:
      out = static_cast<const arrow::LargeListArray&>(array).Flatten();
      break;
    default:
      return nullptr;
  }
  if (!out.ok()) {
    status = internal(out.status().ToString());
    return nullptr;
  }
  return *out;
}

std::int64_t first_null(const arrow::Array& array) {
  for (std::int64_t row = 0; row < array.length(); ++row) {
    if (array.IsNull(row)) return row;
  }
  return 0;
}

/// Rebuilds the nesting that `shape` asks for over `leaves`.
Result<std::shared_ptr<arrow::Array>> nest(std::shared_ptr<arrow::Array> leaves,
                                           const OutputFeature& output, std::int64_t rows) {
  const std::vector<std::int64_t>& shape = output.feature.shape;
  if (shape.size() == 1) {
    if (shape[0] == 1) return leaves;
    auto made = arrow::FixedSizeListArray::FromArrays(
        leaves, arrow::fixed_size_list(arrow::field("item", leaves->type()),
                                       static_cast<std::int32_t>(shape[0])));
    if (!made.ok()) return internal(made.status().ToString());
    return std::shared_ptr<arrow::Array>(*made);
  }
  std::int64_t lists = rows;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) lists *= shape[i];
  for (std::size_t level = shape.size(); level-- > 0;) {
    const std::int64_t extent = shape[level];
    if (lists * extent > INT32_MAX) {
      return resource_exhausted(
          fmt::format("column {}: {} values in one episode are more than a list of Arrow holds",
                      output.feature.name, lists * extent));
    }
    arrow::Int32Builder offsets;
    arrow::Status status = offsets.Reserve(lists + 1);
    for (std::int64_t i = 0; i <= lists && status.ok(); ++i) {
      status = offsets.Append(static_cast<std::int32_t>(i * extent));
    }
    std::shared_ptr<arrow::Array> ends;
    if (status.ok()) status = offsets.Finish(&ends);
    if (!status.ok()) return resource_exhausted(status.ToString());
    auto made = arrow::ListArray::FromArrays(arrow::list(arrow::field("item", leaves->type())),
                                             *ends, *leaves);
    if (!made.ok()) return internal(made.status().ToString());
    leaves = *made;
    if (level > 0) lists /= shape[level - 1];
  }
  return leaves;
}

/// A path is only a name inside the dataset: upstream joins nothing to it.
Result<std::shared_ptr<arrow::Array>> conform_image(const arrow::Array& column,
                                                    const OutputFeature& output) {
  const auto fault = [&](const std::string& what) {
    return data_loss(fmt::format("column {}: {}", output.feature.name, what));
  };
  if (column.type_id() != arrow::Type::STRUCT) {
    return fault("expected struct<bytes, path>, found " + column.type()->ToString());
  }
  const auto& pictures = static_cast<const arrow::StructArray&>(column);
  const auto bytes = pictures.GetFieldByName("bytes");
  const auto paths = pictures.GetFieldByName("path");
  if (bytes == nullptr || bytes->type_id() != arrow::Type::BINARY) {
    return fault("expected binary bytes in the struct");
  }
  arrow::StringBuilder names;
  for (std::int64_t row = 0; row < column.length(); ++row) {
    if (column.IsNull(row) || bytes->IsNull(row)) {
      return fault(fmt::format("row {} holds no picture bytes", row));
    }
    arrow::Status status;
    if (paths == nullptr || paths->type_id() != arrow::Type::STRING || paths->IsNull(row)) {
      status = names.AppendNull();
    } else {
      const std::string_view path = static_cast<const arrow::StringArray&>(*paths).GetView(row);
      status = names.Append(path.substr(path.find_last_of('/') + 1));
    }
    if (!status.ok()) return resource_exhausted(status.ToString());
  }
  std::shared_ptr<arrow::Array> built;
  if (const arrow::Status status = names.Finish(&built); !status.ok()) {
    return resource_exhausted(status.ToString());
  }
  auto made = arrow::StructArray::Make({bytes, built}, image_type()->fields());
  if (!made.ok()) return internal(made.status().ToString());
  return std::shared_ptr<arrow::Array>(*made);
}

Result<std::shared_ptr<arrow::Array>> conform_column(const arrow::Array& column,
                                                     const OutputFeature& output) {
  const Feature& feature = output.feature;
  const std::int64_t rows = column.length();
  auto level = arrow::MakeArray(column.data());
  const bool text = feature.dtype == DType::string;
  Status status;
  while (true) {
    if (level->null_count() != 0 && !text) {
      return data_loss(fmt::format(
          "column {}: row {} is null", feature.name,
          first_null(*level) /
              std::max<std::int64_t>(1, level->length() / std::max<std::int64_t>(1, rows))));
    }
    auto inner = flatten_once(*level, status);
    ROPEWALK_RETURN_IF_ERROR(status);
    if (inner == nullptr) break;
    level = std::move(inner);
  }
  if (level->length() != rows * feature.elements()) {
    return data_loss(fmt::format("column {}: {} values in {} rows, its shape asks for {} a row",
                                 feature.name, level->length(), rows, feature.elements()));
  }
  const auto type = arrow_type(feature.dtype);
  if (!level->type()->Equals(*type)) {
    auto cast = arrow::compute::Cast(*level, type, arrow::compute::CastOptions::Safe());
    if (!cast.ok()) {
      return data_loss(fmt::format("column {}: {} does not fit the declared {}: {}", feature.name,
                                   level->type()->ToString(), type->ToString(),
                                   cast.status().message()));
    }
    level = *cast;
  }
  return nest(std::move(level), output, rows);
}

/// Whether `stored` is what float32(row / fps) is meant to be: within one step of float32.
bool is_grid_time(float stored, float expected) {
  const float step = std::nextafter(expected, INFINITY) - expected;
  return std::abs(stored - expected) <= std::max(step, 1e-6F);
}

Result<std::shared_ptr<arrow::Array>> grid_times(const arrow::Array* stored, std::int64_t rows,
                                                 Rational fps, std::int64_t source_episode,
                                                 Findings& findings) {
  std::int64_t wrong = 0;
  std::int64_t first_wrong = 0;
  arrow::FloatBuilder builder;
  const auto* times = static_cast<const arrow::FloatArray*>(stored);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float expected = frame_timestamp_f32(row, fps);
    const bool kept = times != nullptr && is_grid_time(times->Value(row), expected);
    if (times != nullptr && !kept && wrong++ == 0) first_wrong = row;
    if (const auto status = builder.Append(kept ? times->Value(row) : expected); !status.ok()) {
      return resource_exhausted(status.ToString());
    }
  }
  if (wrong > 0) {
    findings.add({.code = "timestamp_rewritten",
                  .episode = source_episode,
                  .feature = "timestamp",
                  .row = first_wrong,
                  .count = wrong,
                  .declared = fmt::format("{}", frame_timestamp_f32(first_wrong, fps)),
                  .found = fmt::format("{}", times->Value(first_wrong)),
                  .decision = "written as frame_index / fps, since readers find frames by it"});
  }
  std::shared_ptr<arrow::Array> out;
  if (const auto status = builder.Finish(&out); !status.ok()) {
    return resource_exhausted(status.ToString());
  }
  return out;
}

}  // namespace

std::vector<const OutputFeature*> OutputTable::videos() const {
  std::vector<const OutputFeature*> out;
  for (const OutputFeature& output : features) {
    if (output.storage == Storage::video) out.push_back(&output);
  }
  return out;
}

Schema OutputTable::declared(const Schema& source) const {
  Schema out;
  out.fps = source.fps;
  out.robot_type = source.robot_type;
  out.extra = source.extra;
  for (const OutputFeature& output : features) out.features.push_back(output.feature);
  return out;
}

OutputTable plan_table(const Schema& schema, const arrow::RecordBatch* first,
                       const std::vector<std::string>& drop, Findings& findings) {
  OutputTable out;
  std::set<std::string> taken;
  for (const Feature& feature : schema.features) taken.insert(feature.name);
  for (const Feature& feature : schema.features) {
    if (std::ranges::find(drop, feature.name) != drop.end()) {
      findings.add({.code = "feature_dropped",
                    .severity = Severity::info,
                    .feature = feature.name,
                    .decision = "left out on request"});
      continue;
    }
    if (const std::string reason = reason_to_drop(feature); !reason.empty()) {
      findings.add({.code = "feature_dropped",
                    .feature = feature.name,
                    .found = reason,
                    .decision = "left out: the format has no place for it"});
      continue;
    }
    OutputFeature output{.feature = feature, .source = feature.name};
    output.feature.name = legal_name(feature.name);
    if (output.feature.name != feature.name) {
      while (taken.contains(output.feature.name)) output.feature.name += '_';
      taken.insert(output.feature.name);
      findings.add({.code = "feature_renamed",
                    .feature = feature.name,
                    .found = feature.name,
                    .decision = "written as " + output.feature.name});
    }
    if (feature.kind == FeatureKind::video) {
      output.storage = Storage::video;
    } else if (feature.kind == FeatureKind::image) {
      const bool in_table = first == nullptr || first->GetColumnByName(feature.name) != nullptr;
      output.storage = in_table ? Storage::inline_image : Storage::video;
      output.feature.kind = in_table ? FeatureKind::image : FeatureKind::video;
    } else if (feature.shape.empty()) {
      output.feature.shape = {1};
    } else if (feature.shape.size() > kMostDimensions) {
      Json shape = Json::array();
      for (const std::int64_t extent : feature.shape) shape.push_back(extent);
      findings.add({.code = "feature_flattened",
                    .feature = feature.name,
                    .found = shape.dump(),
                    .decision = "written as one vector; the shape is kept as original_shape"});
      output.feature.extra.set("original_shape", std::move(shape));
      output.feature.shape = {feature.elements()};
    }
    out.features.push_back(std::move(output));
  }
  for (const Feature& feature : default_features()) {
    const bool there = std::ranges::any_of(out.features, [&](const OutputFeature& output) {
      return output.feature.name == feature.name;
    });
    if (!there) out.features.push_back({.feature = feature, .source = feature.name});
  }
  arrow::FieldVector fields;
  for (OutputFeature& output : out.features) {
    // What upstream fixes for the five is not a matter of the source.
    for (const Feature& feature : default_features()) {
      if (feature.name != output.feature.name) continue;
      output.feature.kind = feature.kind;
      output.feature.dtype = feature.dtype;
      output.feature.shape = feature.shape;
      output.storage = Storage::column;
    }
    if (output.storage != Storage::video) fields.push_back(column_field(output));
  }
  out.schema = arrow::schema(std::move(fields));
  return out;
}

Result<std::shared_ptr<arrow::RecordBatch>> conform(const OutputTable& table,
                                                    const arrow::RecordBatch& batch, Rational fps,
                                                    std::int64_t source_episode,
                                                    Findings& findings) {
  arrow::ArrayVector columns;
  const std::int64_t rows = batch.num_rows();
  for (const OutputFeature& output : table.features) {
    if (output.storage == Storage::video) continue;
    const bool is_time = output.feature.name == "timestamp";
    const auto column = batch.GetColumnByName(output.source);
    if (column == nullptr && !is_time) {
      return data_loss(fmt::format("column {}: declared but not in the table", output.source));
    }
    if (is_time) {
      std::shared_ptr<arrow::Array> stored;
      // Times that are no numbers of float32 are as good as absent.
      if (column != nullptr && column->null_count() == 0) {
        auto cast = conform_column(*column, output);
        if (cast.ok()) stored = *cast;
      }
      ROPEWALK_ASSIGN_OR_RETURN(auto made,
                                grid_times(stored.get(), rows, fps, source_episode, findings));
      columns.push_back(std::move(made));
      continue;
    }
    ROPEWALK_ASSIGN_OR_RETURN(auto made, output.storage == Storage::inline_image
                                             ? conform_image(*column, output)
                                             : conform_column(*column, output));
    columns.push_back(std::move(made));
  }
  return arrow::RecordBatch::Make(table.schema, rows, std::move(columns));
}

std::optional<std::int64_t> first_bad_step(const arrow::RecordBatch& batch, Rational fps) {
  const auto column = batch.GetColumnByName("timestamp");
  if (column == nullptr) return std::nullopt;
  const auto& times = static_cast<const arrow::FloatArray&>(*column);
  const auto step = static_cast<float>(1.0 / fps.to_double());
  constexpr auto kTolerance = static_cast<float>(1e-4);
  for (std::int64_t row = 0; row + 1 < times.length(); ++row) {
    const float delta = times.Value(row + 1) - times.Value(row);
    if (!(std::abs(delta - step) <= kTolerance)) return row;
  }
  return std::nullopt;
}

bool is_locator_key(std::string_view key) {
  return key.starts_with("data/") || key.starts_with("videos/") || key.starts_with("stats/") ||
         key.starts_with("meta/episodes/") || key == "dataset_from_index" ||
         key == "dataset_to_index";
}

}  // namespace ropewalk::lerobot_internal
