#pragma once
// Statistics of features: moments in double, exact quantiles per episode, mergeable over episodes.
// Spec: lerobot-formats section 5. Standard deviation is the population form.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

inline constexpr std::array<double, 5> kQuantileLevels{0.01, 0.10, 0.50, 0.90, 0.99};
inline constexpr std::array<std::string_view, 5> kQuantileNames{"q01", "q10", "q50", "q90", "q99"};

/// Statistics of one feature over one episode or one dataset.
/// Shape: vectors hold product(shape) values in C order; scalars one; cameras [channels, 1, 1].
struct FeatureStatistics {
  std::vector<std::int64_t> shape{1};
  std::vector<double> min, max, mean, std;
  std::int64_t count = 0;  ///< frames; for cameras the number of sampled frames
  /// One vector per level of kQuantileLevels, or all empty when not computed.
  std::array<std::vector<double>, 5> quantiles;
  /// Cameras that were decoded: how often each sample value occurs, [channels, 256 or 65536] in C
  /// order; empty otherwise. Makes the quantiles of pooled episodes exact.
  std::vector<std::uint64_t> histogram;

  bool has_quantiles() const { return !quantiles[0].empty(); }
};

/// By feature name. Ordered, so that files are the same for the same input.
using StatisticsMap = std::map<std::string, FeatureStatistics>;

struct StatisticsOptions {
  bool quantiles = false;
  /// v3.0 folds all leading dimensions of an N-D feature into rows and keeps the last; v2.1 keeps
  /// all.
  bool fold_leading_dimensions = false;
};

/// Computes statistics of one column (scalar, fixed-size list or nested list of a numeric or bool
/// type; T rows). Non-finite values are left out; an element with no finite value gets zeros.
/// Errors: invalid_argument for a type without statistics (string); data_loss for a null and for
/// rows whose length differs.
Result<FeatureStatistics> column_statistics(const arrow::Array& column, const Feature& feature,
                                            const StatisticsOptions& options);
/// The same for every numeric column of a batch; columns without statistics are left out.
Result<StatisticsMap> batch_statistics(const arrow::RecordBatch& batch, const Schema& schema,
                                       const StatisticsOptions& options);

/// Returns the statistics of the features `names` over one episode: those that its source keeps
/// where they cover it whole (a camera is sampled, a column counts every row), else computed from
/// `columns`, its rows. Cameras are not decoded: without known statistics they are left out, and so
/// is what has none. Errors: those of column_statistics, naming the column.
Result<StatisticsMap> known_or_computed_statistics(const Episode& episode,
                                                   const arrow::RecordBatch& columns,
                                                   const Schema& schema,
                                                   const std::vector<std::string>& names);

/// Ordinals of the frames that count for a camera: n = clip(int(len^0.75), min(100, len), 10000) at
/// round-half-even(linspace(0, len-1, n)). Spec: lerobot-formats 5.2.
std::vector<std::int64_t> sampled_frames(std::int64_t length);
/// Counts the samples of frames that are at hand anyway, downsampled as camera_statistics() does,
/// so that an encoder need not decode again. Give it the frames of sampled_frames() only.
class CameraSamples {
 public:
  /// Errors: invalid_argument for other than 1 to 4 channels.
  static Result<CameraSamples> create(const FrameShape& shape);
  /// Shape: `frame` holds shape.frame_bytes().
  void add(ByteSpan frame);
  std::int64_t frames() const { return frames_; }
  FeatureStatistics result(const StatisticsOptions& options) &&;

 private:
  explicit CameraSamples(const FrameShape& shape);
  FrameShape shape_;
  int stride_ = 1;
  std::size_t bins_ = 256;
  std::int64_t frames_ = 0;
  std::vector<std::uint64_t> histogram_;
};
/// Statistics of the sampled frames of a camera, decoded and downsampled as upstream does. Bytes
/// are divided by 255, 16-bit samples stay in their unit; one channel is told as three equal ones.
/// Memory: one frame. Errors: those of decoding; cancelled.
Result<FeatureStatistics> camera_statistics(const Episode& episode, const std::string& camera,
                                            const StatisticsOptions& options,
                                            std::stop_token stop = {});
/// The statistics that a histogram of samples holds. Shape: histogram [channels, bins], bins 256
/// (bytes, divided by 255) or 65536. `count` is the number of frames behind it.
FeatureStatistics histogram_statistics(std::vector<std::uint64_t> histogram, std::size_t bins,
                                       std::int64_t count, const StatisticsOptions& options);

/// Pools episodes: means by count, variances by the parallel rule, min of min, max of max;
/// quantiles from mergeable sketches that were fed with the columns (exact for small data), for
/// cameras from their histograms. Memory: at most 64 MiB per feature. Not thread-safe.
class StatisticsPool {
 public:
  StatisticsPool();
  ~StatisticsPool();
  StatisticsPool(StatisticsPool&&) noexcept;

  /// A feature whose number of elements differs between episodes is left out of the result.
  void add(const StatisticsMap& episode);
  /// Feeds the sketches that dataset quantiles come from. Errors: as column_statistics.
  Status add_values(const arrow::RecordBatch& batch, const Schema& schema,
                    const StatisticsOptions& options);
  StatisticsMap result() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// {feature: {min, max, mean, std, count, q01 …}} in upstream's nesting; `with_count` false gives
/// the four-member form of the recorder's stats.json.
Json statistics_to_json(const StatisticsMap& statistics, bool with_count = true);
Json statistics_to_json(const FeatureStatistics& statistics, bool with_count = true);
/// Reads any of the shapes found in files; entries without four readable moments become findings
/// and are left out. A missing count reads as 0.
StatisticsMap statistics_from_json(const Json& json, Findings* findings = nullptr);

}  // namespace ropewalk
