#include "ropewalk/episode/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <arrow/api.h>
#include <arrow/util/float16.h>
#include <fmt/format.h>

#include "ropewalk/episode/quantile_sketch.h"

namespace ropewalk {
namespace {

/// The leaf values of a column, row-major: rows x width.
struct Leaves {
  std::shared_ptr<arrow::Array> values;
  std::int64_t width = 0;
};

Result<Leaves> flatten(const arrow::Array& column, const Feature& feature) {
  const std::int64_t rows = column.length();
  std::shared_ptr<arrow::Array> level = arrow::MakeArray(column.data());
  while (true) {
    if (level->null_count() != 0) {
      return data_loss(
          fmt::format("feature {}: {} null values", feature.name, level->null_count()));
    }
    arrow::Result<std::shared_ptr<arrow::Array>> next;
    if (level->type_id() == arrow::Type::FIXED_SIZE_LIST) {
      next = static_cast<const arrow::FixedSizeListArray&>(*level).Flatten();
    } else if (level->type_id() == arrow::Type::LIST) {
      next = static_cast<const arrow::ListArray&>(*level).Flatten();
    } else if (level->type_id() == arrow::Type::LARGE_LIST) {
      next = static_cast<const arrow::LargeListArray&>(*level).Flatten();
    } else {
      break;
    }
    if (!next.ok()) return internal(next.status().ToString());
    level = *next;
  }
  if (rows == 0) return Leaves{level, feature.elements()};
  if (level->length() % rows != 0) {
    return data_loss(fmt::format("feature {}: {} values in {} rows: row lengths differ",
                                 feature.name, level->length(), rows));
  }
  return Leaves{level, level->length() / rows};
}

template <typename T>
T lowest_of() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}
template <typename T>
T highest_of() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}

template <typename T>
bool all_finite(const T* data, std::size_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    // x - x is 0 for finite x and NaN otherwise; the sum vectorises where a branch would not.
    std::array<T, 16> sums{};
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) {
      for (std::size_t k = 0; k < 16; ++k) sums[k] += data[i + k] - data[i + k];
    }
    T sum = 0;
    for (const T lane : sums) sum += lane;
    for (; i < count; ++i) sum += data[i] - data[i];
    return sum == 0;
  }
  return true;
}

/// Moments of rows x width finite values, two passes. Several rows are taken side by side, so that
/// the inner loops run over at least 64 independent sums and vectorise.
template <typename T>
void finite_moments(const T* data, std::size_t rows, std::size_t width, FeatureStatistics& out) {
  const std::size_t side = std::max<std::size_t>(1, 64 / width);
  const std::size_t lanes = side * width;
  std::vector<T> low(lanes, highest_of<T>());
  std::vector<T> high(lanes, lowest_of<T>());
  std::vector<double> sum(lanes, 0.0);
  const std::size_t whole = rows * width / lanes * lanes;
  const std::size_t total = rows * width;
  for (std::size_t at = 0; at < whole; at += lanes) {
    const T* row = data + at;
    for (std::size_t k = 0; k < lanes; ++k) {
      low[k] = row[k] < low[k] ? row[k] : low[k];
      high[k] = row[k] > high[k] ? row[k] : high[k];
      sum[k] += static_cast<double>(row[k]);
    }
  }
  for (std::size_t at = whole; at < total; ++at) {
    const std::size_t k = at - whole;
    low[k] = std::min(low[k], data[at]);
    high[k] = std::max(high[k], data[at]);
    sum[k] += static_cast<double>(data[at]);
  }
  for (std::size_t k = width; k < lanes; ++k) {
    low[k % width] = std::min(low[k % width], low[k]);
    high[k % width] = std::max(high[k % width], high[k]);
    sum[k % width] += sum[k];
  }
  for (std::size_t d = 0; d < width; ++d) {
    out.min[d] = static_cast<double>(low[d]);
    out.max[d] = static_cast<double>(high[d]);
    // A constant has no rounding of its own.
    out.mean[d] = low[d] == high[d] ? out.min[d] : sum[d] / static_cast<double>(rows);
  }
  std::vector<double> mean(lanes);
  for (std::size_t k = 0; k < lanes; ++k) mean[k] = out.mean[k % width];
  std::ranges::fill(sum, 0.0);
  for (std::size_t at = 0; at < whole; at += lanes) {
    const T* row = data + at;
    for (std::size_t k = 0; k < lanes; ++k) {
      const double delta = static_cast<double>(row[k]) - mean[k];
      sum[k] += delta * delta;
    }
  }
  for (std::size_t at = whole; at < total; ++at) {
    const double delta = static_cast<double>(data[at]) - mean[at - whole];
    sum[at - whole] += delta * delta;
  }
  for (std::size_t k = width; k < lanes; ++k) sum[k % width] += sum[k];
  for (std::size_t d = 0; d < width; ++d) {
    out.std[d] = std::sqrt(sum[d] / static_cast<double>(rows));
  }
}

/// The same where some values are not finite: those are left out, element by element.
template <typename T>
void partial_moments(const T* data, std::size_t rows, std::size_t width, FeatureStatistics& out) {
  for (std::size_t d = 0; d < width; ++d) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    double sum = 0;
    double squares = 0;
    std::size_t count = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto value = static_cast<double>(data[row * width + d]);
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
      ++count;
    }
    if (count == 0) continue;  // zeros, as they were set up
    const double mean = low == high ? low : sum / static_cast<double>(count);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto value = static_cast<double>(data[row * width + d]);
      if (std::isfinite(value)) squares += (value - mean) * (value - mean);
    }
    out.min[d] = low;
    out.max[d] = high;
    out.mean[d] = mean;
    out.std[d] = std::sqrt(squares / static_cast<double>(count));
  }
}

/// Fills `out` with the finite values of element `d`.
template <typename T>
void gather(const T* data, std::size_t rows, std::size_t width, std::size_t d, bool finite,
            std::vector<T>& out) {
  out.resize(rows);
  for (std::size_t row = 0; row < rows; ++row) out[row] = data[row * width + d];
  if constexpr (std::is_floating_point_v<T>) {
    if (!finite) std::erase_if(out, [](T value) { return !std::isfinite(value); });
  }
}

/// Exact quantiles by linear interpolation between order statistics; `values` are reordered.
template <typename T>
std::array<double, 5> exact_quantiles(std::vector<T>& values) {
  std::array<double, 5> out{};
  if (values.empty()) return out;
  const auto begin = values.begin();
  auto sorted_to = begin;  // everything before is at its place
  const auto place = [&](std::size_t rank) {
    const auto at = begin + static_cast<std::ptrdiff_t>(rank);
    if (at >= sorted_to) {
      std::nth_element(sorted_to, at, values.end());
      sorted_to = at + 1;
    }
    return static_cast<double>(*at);
  };
  for (std::size_t i = 0; i < kQuantileLevels.size(); ++i) {
    const double rank = kQuantileLevels[i] * static_cast<double>(values.size() - 1);
    const auto lower = static_cast<std::size_t>(rank);
    const double low = place(lower);
    const double high = lower + 1 < values.size() ? place(lower + 1) : low;
    out[i] = low + (high - low) * (rank - static_cast<double>(lower));
  }
  return out;
}

template <typename T>
void typed_statistics(const T* data, std::size_t rows, std::size_t width,
                      const StatisticsOptions& options, FeatureStatistics& out) {
  const bool finite = all_finite(data, rows * width);
  if (finite) {
    finite_moments(data, rows, width, out);
  } else {
    partial_moments(data, rows, width, out);
  }
  if (!options.quantiles) return;
  for (std::vector<double>& level : out.quantiles) level.resize(width);
  std::vector<T> values;
  for (std::size_t d = 0; d < width; ++d) {
    gather(data, rows, width, d, finite, values);
    const std::array<double, 5> found = exact_quantiles(values);
    for (std::size_t i = 0; i < found.size(); ++i) out.quantiles[i][d] = found[i];
  }
}

/// Calls `visit(pointer to the values)` with the C++ type of the leaves.
template <typename Visit>
Status visit_leaves(const arrow::Array& leaves, const std::string& feature, Visit&& visit) {
  const auto count = static_cast<std::size_t>(leaves.length());
  switch (leaves.type_id()) {
    case arrow::Type::INT8:
      visit(static_cast<const arrow::Int8Array&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::INT16:
      visit(static_cast<const arrow::Int16Array&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::INT32:
      visit(static_cast<const arrow::Int32Array&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::INT64:
      visit(static_cast<const arrow::Int64Array&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::UINT8:
      visit(static_cast<const arrow::UInt8Array&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::UINT16:
      visit(static_cast<const arrow::UInt16Array&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::UINT32:
      visit(static_cast<const arrow::UInt32Array&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::UINT64:
      visit(static_cast<const arrow::UInt64Array&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::FLOAT:
      visit(static_cast<const arrow::FloatArray&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::DOUBLE:
      visit(static_cast<const arrow::DoubleArray&>(leaves).raw_values());
      return ok_status();
    case arrow::Type::HALF_FLOAT: {
      const auto& half = static_cast<const arrow::HalfFloatArray&>(leaves);
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] =
            arrow::util::Float16::FromBits(half.Value(static_cast<std::int64_t>(i))).ToFloat();
      }
      visit(static_cast<const float*>(values.data()));
      return ok_status();
    }
    case arrow::Type::BOOL: {
      const auto& bits = static_cast<const arrow::BooleanArray&>(leaves);
      std::vector<std::uint8_t> values(count);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = bits.Value(static_cast<std::int64_t>(i)) ? 1 : 0;
      }
      visit(static_cast<const std::uint8_t*>(values.data()));
      return ok_status();
    }
    default:
      return invalid_argument(
          fmt::format("feature {}: no statistics of type {}", feature, leaves.type()->ToString()));
  }
}

/// Rows and width of the leaves under the folding rule, and the shape to tell.
struct Extent {
  std::size_t rows = 0;
  std::size_t width = 0;
  std::vector<std::int64_t> shape;
};

Extent extent_of(const Leaves& leaves, std::int64_t rows, const Feature& feature,
                 const StatisticsOptions& options) {
  Extent out{static_cast<std::size_t>(rows), static_cast<std::size_t>(leaves.width), {}};
  out.shape = feature.elements() == leaves.width && !feature.shape.empty()
                  ? feature.shape
                  : std::vector<std::int64_t>{leaves.width};
  if (options.fold_leading_dimensions && out.shape.size() > 1 && leaves.width > 0) {
    out.shape = {out.shape.back()};
    out.width = static_cast<std::size_t>(out.shape.back());
    out.rows = static_cast<std::size_t>(leaves.values->length()) / out.width;
  }
  return out;
}

bool has_statistics(const Feature& feature) {
  return feature.kind == FeatureKind::column && dtype_is_numeric(feature.dtype);
}

}  // namespace

Result<FeatureStatistics> column_statistics(const arrow::Array& column, const Feature& feature,
                                            const StatisticsOptions& options) {
  ROPEWALK_ASSIGN_OR_RETURN(const Leaves leaves, flatten(column, feature));
  Extent extent = extent_of(leaves, column.length(), feature, options);
  FeatureStatistics out;
  out.shape = std::move(extent.shape);
  out.count = column.length();
  for (auto* values : {&out.min, &out.max, &out.mean, &out.std}) values->assign(extent.width, 0.0);
  if (extent.rows == 0 || extent.width == 0) {
    if (options.quantiles) out.quantiles.fill(std::vector<double>(extent.width, 0.0));
    return out;
  }
  ROPEWALK_RETURN_IF_ERROR(visit_leaves(*leaves.values, feature.name, [&](const auto* data) {
    typed_statistics(data, extent.rows, extent.width, options, out);
  }));
  return out;
}

Result<StatisticsMap> batch_statistics(const arrow::RecordBatch& batch, const Schema& schema,
                                       const StatisticsOptions& options) {
  StatisticsMap out;
  for (const Feature& feature : schema.features) {
    if (!has_statistics(feature)) continue;
    const auto column = batch.GetColumnByName(feature.name);
    if (column == nullptr) continue;
    ROPEWALK_ASSIGN_OR_RETURN(out[feature.name], column_statistics(*column, feature, options));
  }
  return out;
}

Result<StatisticsMap> known_or_computed_statistics(const Episode& episode,
                                                   const arrow::RecordBatch& columns,
                                                   const Schema& schema,
                                                   const std::vector<std::string>& names) {
  StatisticsMap known = statistics_from_json(episode.statistics());
  StatisticsMap out;
  for (const std::string& name : names) {
    const Feature* feature = schema.find(name);
    if (feature == nullptr) continue;
    const auto at = known.find(name);
    if (at != known.end() &&
        (feature->is_camera() ? at->second.count > 0 : at->second.count == columns.num_rows())) {
      out.emplace(name, std::move(at->second));
      continue;
    }
    const auto column = columns.GetColumnByName(name);
    if (column == nullptr || !has_statistics(*feature)) continue;
    ROPEWALK_ASSIGN_OR_RETURN_CTX(FeatureStatistics computed,
                                  column_statistics(*column, *feature, {}), "column " + name);
    out.emplace(name, std::move(computed));
  }
  return out;
}

struct StatisticsPool::Impl {
  struct Entry {
    FeatureStatistics pooled;  ///< `std` holds the sum of squared deviations until result()
    bool consistent = true;
    bool all_histograms = true;
  };
  std::map<std::string, Entry> entries;
  std::map<std::string, std::vector<QuantileSketch>> sketches;
};

StatisticsPool::StatisticsPool() : impl_(std::make_unique<Impl>()) {}
StatisticsPool::~StatisticsPool() = default;
StatisticsPool::StatisticsPool(StatisticsPool&&) noexcept = default;

void StatisticsPool::add(const StatisticsMap& episode) {
  for (const auto& [name, one] : episode) {
    if (one.count <= 0) continue;
    const auto n = static_cast<double>(one.count);
    const auto [at, added] = impl_->entries.try_emplace(name);
    Impl::Entry& entry = at->second;
    FeatureStatistics& all = entry.pooled;
    if (added) {
      all = one;
      all.quantiles = {};
      entry.all_histograms = !one.histogram.empty();
      for (double& value : all.std) value = value * value * n;
      continue;
    }
    if (all.mean.size() != one.mean.size()) {
      entry.consistent = false;
      continue;
    }
    const auto before = static_cast<double>(all.count);
    for (std::size_t d = 0; d < one.mean.size(); ++d) {
      const double delta = one.mean[d] - all.mean[d];
      all.mean[d] += delta * n / (before + n);
      all.std[d] += one.std[d] * one.std[d] * n + delta * delta * before * n / (before + n);
      all.min[d] = std::min(all.min[d], one.min[d]);
      all.max[d] = std::max(all.max[d], one.max[d]);
    }
    all.count += one.count;
    if (entry.all_histograms && one.histogram.size() == all.histogram.size()) {
      for (std::size_t i = 0; i < one.histogram.size(); ++i) all.histogram[i] += one.histogram[i];
    } else {
      entry.all_histograms = false;
    }
  }
}

Status StatisticsPool::add_values(const arrow::RecordBatch& batch, const Schema& schema,
                                  const StatisticsOptions& options) {
  constexpr std::size_t kMaxBytesPerFeature = std::size_t{64} << 20;
  for (const Feature& feature : schema.features) {
    if (!has_statistics(feature)) continue;
    const auto column = batch.GetColumnByName(feature.name);
    if (column == nullptr || column->length() == 0) continue;
    ROPEWALK_ASSIGN_OR_RETURN(const Leaves leaves, flatten(*column, feature));
    const Extent extent = extent_of(leaves, column->length(), feature, options);
    if (extent.width == 0) continue;
    std::vector<QuantileSketch>& sketches = impl_->sketches[feature.name];
    if (sketches.empty()) {
      const std::size_t each = kMaxBytesPerFeature / sizeof(double) / extent.width;
      sketches.assign(extent.width, QuantileSketch(std::min<std::size_t>(65536, each)));
    }
    if (sketches.size() != extent.width) continue;  // add() marks the feature as inconsistent
    std::vector<double> values(extent.rows);
    ROPEWALK_RETURN_IF_ERROR(visit_leaves(*leaves.values, feature.name, [&](const auto* data) {
      for (std::size_t d = 0; d < extent.width; ++d) {
        for (std::size_t row = 0; row < extent.rows; ++row) {
          values[row] = static_cast<double>(data[row * extent.width + d]);
        }
        sketches[d].add(values);
      }
    }));
  }
  return ok_status();
}

StatisticsMap StatisticsPool::result() const {
  StatisticsMap out;
  for (const auto& [name, entry] : impl_->entries) {
    if (!entry.consistent) continue;
    FeatureStatistics pooled = entry.pooled;
    const auto n = static_cast<double>(pooled.count);
    for (double& value : pooled.std) value = std::sqrt(value / n);
    const auto sketches = impl_->sketches.find(name);
    if (sketches != impl_->sketches.end() && sketches->second.size() == pooled.mean.size()) {
      for (std::vector<double>& level : pooled.quantiles) level.resize(pooled.mean.size());
      for (std::size_t d = 0; d < pooled.mean.size(); ++d) {
        const std::vector<double> found = sketches->second[d].quantiles(kQuantileLevels);
        for (std::size_t i = 0; i < found.size(); ++i) pooled.quantiles[i][d] = found[i];
      }
    } else if (entry.all_histograms) {
      pooled = histogram_statistics(std::move(pooled.histogram),
                                    entry.pooled.histogram.size() / pooled.mean.size(),
                                    pooled.count, {.quantiles = true});
    } else {
      pooled.histogram.clear();
    }
    out.emplace(name, std::move(pooled));
  }
  return out;
}

}  // namespace ropewalk
