#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include "ropewalk/episode/dense_column.h"
#include "ropewalk/stage/quality/signals_internal.h"

namespace ropewalk::quality {
namespace {

constexpr double kDegreesPerRadian = 57.29577951308232;
// No joint of an arm turns so far; values beyond it are degrees or per cent.
constexpr double kLargestRadians = 12.566370614359172;
// Columns wider than this are pictures or clouds by another name: checked in blocks, never joints.
constexpr std::int64_t kMostJoints = 512;
constexpr std::int64_t kBlockBytes = 16 << 20;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// What columns of these words hold is no joint angle.
constexpr std::array<std::string_view, 16> kOtherQuantities{
    "eef", "pose", "vel", "effort",    "torque", "current", "force",       "tactile",
    "imu", "base", "ee_", "cartesian", "delta",  "image",   "environment", "quat"};
constexpr std::array<std::string_view, 7> kGripperWords{"gripper", "finger", "thumb", "pinky",
                                                        "jaw",     "claw",   "hand"};
constexpr std::array<std::string_view, 3> kStateWords{"state", "qpos", "joint"};

bool is_vector(const Feature& feature) {
  return feature.kind == FeatureKind::column && dtype_is_numeric(feature.dtype) &&
         !feature.is_ragged() && !feature.own_timeline && !is_default_column(feature.name) &&
         feature.shape.size() == 1 && feature.elements() >= 1 && feature.elements() <= kMostJoints;
}

bool is_state(const Feature& feature) {
  const std::string name = lower(feature.name);
  return is_vector(feature) && dtype_is_float(feature.dtype) &&
         (name.starts_with("observation") || name.starts_with("state") ||
          name.starts_with("qpos")) &&
         contains_any(name, kStateWords) && !contains_any(name, kOtherQuantities);
}

bool is_command(const Feature& feature) {
  const std::string name = lower(feature.name);
  return is_vector(feature) && dtype_is_float(feature.dtype) && name.starts_with("action") &&
         !contains_any(name, kOtherQuantities);
}

std::string last_word(std::string_view name) {
  return lower(name.substr(name.find_last_of("./") + 1));
}

// The command column that drives a state column: of equal length, with equal names where both have
// some, best of an equal last word.
const Feature* command_of(const Feature& state, const Schema& schema) {
  const Feature* best = nullptr;
  int best_score = 0;
  for (const Feature& feature : schema.features) {
    if (!is_command(feature) || feature.elements() != state.elements()) continue;
    int score = 1;
    const auto ours = flat_names(state.names, state.elements());
    const auto theirs = flat_names(feature.names, state.elements());
    if (ours && theirs) {
      if (*ours != *theirs) continue;
      score += 2;
    }
    if (last_word(feature.name) == last_word(state.name)) score += 2;
    if (feature.name == "action") score += 1;
    if (score > best_score) {
      best = &feature;
      best_score = score;
    }
  }
  return best;
}

template <typename T>
void append_floats(const Bytes& data, std::vector<float>& out) {
  const std::size_t count = data.size() / sizeof(T);
  out.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

// Values as float, C order; empty for types that hold no measurement.
std::vector<float> as_floats(const DenseColumn& column) {
  std::vector<float> out;
  if (column.dtype == DType::float32) append_floats<float>(column.data, out);
  if (column.dtype == DType::float64) append_floats<double>(column.data, out);
  return out;
}

QualityEntry& add_issue(QualityReport& report, std::string code, std::string stream) {
  report.issues.push_back({.code = std::move(code), .stream = std::move(stream)});
  return report.issues.back();
}

void note_unreadable(const Status& status, const Feature& feature, std::int64_t frames,
                     QualityReport& report) {
  std::string code = "unreadable_column";
  if (status.reason() == "column_missing" || status.code() == StatusCode::not_found) {
    code = "missing_configured_column";
  } else if (status.reason() == "value_missing") {
    code = "missing_configured_column";
  } else if (status.reason() == "value_invalid") {
    code = "invalid_vector_dim";
  }
  QualityEntry& issue = add_issue(report, std::move(code), feature.name);
  issue.detail = std::string(status.message());
  issue.count = frames;
}

// Whether an error is about one column and not about its table.
bool is_of_column(const Status& status) {
  return status.reason() == "column_missing" || status.reason() == "value_missing" ||
         status.reason() == "value_invalid";
}

// Counts rows with a value that is not finite.
class FiniteCheck {
 public:
  void add(const std::vector<float>& values, std::int64_t first_row, std::int64_t rows) {
    if (rows == 0) return;
    const std::size_t width = values.size() / static_cast<std::size_t>(rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* at = values.data() + static_cast<std::size_t>(row) * width;
      // A sum of products with zero is NaN exactly when one value is not finite.
      float probe = 0;
      for (std::size_t i = 0; i < width; ++i) probe += at[i] * 0.0F;
      if (probe != 0.0F || std::isnan(probe)) spans_.add({first_row + row, first_row + row + 1});
    }
  }
  void put(const std::string& column, QualityReport& report) const {
    if (spans_.empty()) return;
    QualityEntry& issue = add_issue(report, "non_finite_value", column);
    spans_.put(issue);
    issue.detail = fmt::format("NaN or infinity in {} frames, first in frame {}", issue.count,
                               *issue.first_frame);
  }

 private:
  Spans spans_;
};

bool must_stop(const Status& status) {
  return status.code() == StatusCode::cancelled || status.code() == StatusCode::resource_exhausted;
}

// Reads one column, wide ones in blocks. Returns the values, or nothing for wide columns.
Result<std::vector<float>> read_column(const Episode& episode, const Feature& feature,
                                       std::int64_t frames, FiniteCheck& finite) {
  const bool is_wide = feature.elements() > kMostJoints;
  const std::int64_t row_bytes =
      std::max<std::int64_t>(1, feature.elements()) * static_cast<std::int64_t>(sizeof(double));
  const std::int64_t block = is_wide ? std::max<std::int64_t>(1, kBlockBytes / row_bytes) : frames;
  std::vector<float> values;
  for (std::int64_t begin = 0; begin < frames; begin += block) {
    const FrameRange range{begin, std::min(frames, begin + block)};
    ROPEWALK_ASSIGN_OR_RETURN(const auto batch, episode.columns_of({feature.name}, range));
    if (batch->num_columns() != 1) {
      return data_loss("the dataset declares the column; this episode lacks it")
          .with_reason("column_missing");
    }
    ROPEWALK_ASSIGN_OR_RETURN(const DenseColumn column, dense_column(*batch->column(0)));
    values = as_floats(column);
    finite.add(values, begin, range.size());
  }
  if (is_wide) values.clear();
  return values;
}

Arm arm_of_name(std::string_view name) {
  const bool left = name.find("left") != std::string_view::npos;
  const bool right = name.find("right") != std::string_view::npos;
  if (left == right) return Arm::none;
  return left ? Arm::left : Arm::right;
}

// Names, arms and grippers of the elements of a state column.
std::vector<Joint> joints_of(const Feature& feature) {
  const std::int64_t width = feature.elements();
  const auto names = flat_names(feature.names, width);
  std::vector<Joint> joints(static_cast<std::size_t>(width));
  bool any_gripper = false;
  bool any_arm = false;
  for (std::int64_t i = 0; i < width; ++i) {
    Joint& joint = joints[static_cast<std::size_t>(i)];
    joint.column = feature.name;
    joint.name = names ? (*names)[static_cast<std::size_t>(i)] : fmt::format("{}", i);
    const std::string words = lower(feature.name + "." + (names ? joint.name : std::string()));
    joint.is_gripper = contains_any(words, kGripperWords);
    joint.arm = arm_of_name(words);
    any_gripper = any_gripper || joint.is_gripper;
    any_arm = any_arm || joint.arm != Arm::none;
  }
  const std::int64_t group = width % 8 == 0 ? 8 : (width % 7 == 0 ? 7 : 0);
  if (!any_gripper && group != 0 && width <= 4 * group) {
    for (std::int64_t i = group - 1; i < width; i += group) {
      joints[static_cast<std::size_t>(i)].is_gripper = true;
    }
  }
  if (!any_arm && group != 0 && width == 2 * group) {
    for (std::int64_t i = 0; i < width; ++i) {
      joints[static_cast<std::size_t>(i)].arm = i < group ? Arm::left : Arm::right;
    }
  }
  return joints;
}

float largest_magnitude(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

std::vector<float> element(const std::vector<float>& values, std::size_t width, std::size_t i) {
  std::vector<float> out(values.size() / width);
  for (std::size_t row = 0; row < out.size(); ++row) out[row] = values[row * width + i];
  return out;
}

}  // namespace

void Spans::add(FrameRange range) {
  if (range.size() <= 0) return;
  if (!spans_.empty() && range.begin <= spans_.back().end) {
    spans_.back().end = std::max(spans_.back().end, range.end);
  } else {
    spans_.push_back(range);
  }
}

std::int64_t Spans::frames() const {
  std::int64_t total = 0;
  for (const FrameRange& span : spans_) total += span.size();
  return total;
}

std::int64_t Spans::longest() const {
  std::int64_t longest = 0;
  for (const FrameRange& span : spans_) longest = std::max(longest, span.size());
  return longest;
}

void Spans::put(QualityEntry& issue) const {
  if (spans_.empty()) return;
  issue.count = frames();
  issue.first_frame = spans_.front().begin;
  issue.last_frame = spans_.back().end - 1;
  issue.spans.assign(spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(
                                                          std::min(spans_.size(), kMaxSpans)));
}

std::string describe(const Spans& spans, double fps) {
  const auto longest = std::ranges::max_element(spans.list(), {}, &FrameRange::size);
  const std::string one = fmt::format("{:.2f} s from frame {}",
                                      static_cast<double>(longest->size()) / fps, longest->begin);
  if (spans.list().size() == 1) return one;
  return fmt::format("{} stretches, the longest {}", spans.list().size(), one);
}

double Signals::travel(Arm arm, FrameRange range) const {
  double widest = 0;
  for (const Joint& joint : joints) {
    if (!counts(joint, arm)) continue;
    float low = INFINITY;
    float high = -INFINITY;
    for (std::int64_t i = std::max<std::int64_t>(0, range.begin); i < std::min(range.end, frames);
         ++i) {
      const float value = joint.state[static_cast<std::size_t>(i)];
      low = std::min(low, value);
      high = std::max(high, value);
    }
    if (high > low) widest = std::max(widest, static_cast<double>(high - low) / joint.unit);
  }
  return widest;
}

std::vector<std::uint8_t> Signals::moving(Arm arm, double min_travel_rad,
                                          double margin_seconds) const {
  const auto count = static_cast<std::size_t>(frames);
  const auto reach = static_cast<std::size_t>(std::max<std::int64_t>(1, std::llround(0.1 * fps)));
  const double needed = min_travel_rad * static_cast<double>(2 * reach) / fps;
  std::vector<std::uint8_t> fast(count, 0);
  for (const Joint& joint : joints) {
    if (!counts(joint, arm)) continue;
    const auto step = static_cast<float>(needed * joint.unit);
    for (std::size_t i = 0; i < count; ++i) {
      if (fast[i] != 0) continue;
      float low = INFINITY;
      float high = -INFINITY;
      const std::size_t end = std::min(count, i + reach + 1);
      for (std::size_t j = i > reach ? i - reach : 0; j < end; ++j) {
        low = std::min(low, joint.state[j]);
        high = std::max(high, joint.state[j]);
      }
      fast[i] = high - low >= step ? 1 : 0;
    }
  }
  // Erode: every frame within the margin moves too.
  const auto margin = static_cast<std::size_t>(std::llround(margin_seconds * fps));
  std::vector<std::size_t> sums(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) sums[i + 1] = sums[i] + fast[i];
  std::vector<std::uint8_t> out(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i > margin ? i - margin : 0;
    const std::size_t end = std::min(count, i + margin + 1);
    out[i] = sums[end] - sums[begin] == end - begin ? 1 : 0;
  }
  return out;
}

CameraPlace camera_place(std::string_view name) {
  constexpr std::array<std::string_view, 5> kWristWords{"wrist", "hand", "gripper", "eye_in_hand",
                                                        "ee_cam"};
  const std::string words = lower(name);
  CameraPlace out;
  out.is_wrist = contains_any(words, kWristWords);
  if (out.is_wrist) out.arm = arm_of_name(words);
  return out;
}

Result<Signals> read_signals(const Episode& episode, QualityReport& report) {
  Signals signals;
  signals.frames = episode.info().length;
  signals.fps = episode.schema().fps.to_double();
  if (signals.frames == 0) return signals;
  std::vector<std::pair<const Feature*, std::vector<float>>> read;
  std::vector<const Feature*> one_by_one;
  std::vector<std::string> together;
  for (const Feature& feature : episode.schema().features) {
    if (feature.kind != FeatureKind::column || feature.own_timeline || feature.is_ragged() ||
        feature.dtype == DType::string || feature.dtype == DType::bytes ||
        is_default_column(feature.name)) {
      continue;
    }
    if (feature.elements() > kMostJoints) {
      one_by_one.push_back(&feature);
    } else {
      together.push_back(feature.name);
    }
  }
  // All small columns in one read; one by one only when one of them cannot be read.
  if (!together.empty()) {
    const auto batch = episode.columns_of(together, {0, signals.frames});
    if (!batch.ok() && must_stop(batch.status())) return batch.status();
    for (const std::string& name : together) {
      const Feature* feature = episode.schema().find(name);
      const auto array = batch.ok() ? (*batch)->GetColumnByName(name) : nullptr;
      const auto column =
          array != nullptr ? dense_column(*array) : Result<DenseColumn>(internal("not read"));
      if (!column.ok()) {
        one_by_one.push_back(feature);
        continue;
      }
      std::vector<float> values = as_floats(*column);
      FiniteCheck finite;
      finite.add(values, 0, signals.frames);
      finite.put(name, report);
      read.emplace_back(feature, std::move(values));
    }
  }
  std::vector<std::pair<const Feature*, Status>> failed;
  for (const Feature* feature : one_by_one) {
    FiniteCheck finite;
    auto values = read_column(episode, *feature, signals.frames, finite);
    if (!values.ok()) {
      if (must_stop(values.status())) return values.status();
      failed.emplace_back(feature, std::move(values).status());
      // What is wrong with the whole table is not asked again for every column.
      if (failed.back().second.reason() == "row_count_mismatch") break;
      continue;
    }
    finite.put(feature->name, report);
    read.emplace_back(feature, std::move(values).value());
  }
  const bool is_table = read.empty() && !failed.empty() && !is_of_column(failed.front().second);
  if (is_table) {
    const Status& why = failed.front().second;
    QualityEntry& issue = add_issue(
        report, why.reason() == "row_count_mismatch" ? "row_count_mismatch" : "unreadable_table",
        "");
    issue.detail = std::string(why.message());
    issue.count = signals.frames;
    return signals;
  }
  for (const auto& [feature, why] : failed) {
    note_unreadable(why, *feature, signals.frames, report);
  }
  for (const auto& [feature, values] : read) {
    const auto width = static_cast<std::size_t>(feature->elements());
    if (!is_state(*feature) || values.size() != width * static_cast<std::size_t>(signals.frames)) {
      continue;
    }
    const Feature* command = command_of(*feature, episode.schema());
    const auto driven =
        std::ranges::find_if(read, [&](const auto& entry) { return entry.first == command; });
    const bool has_command =
        command != nullptr && driven != read.end() && driven->second.size() == values.size();
    std::vector<Joint> joints = joints_of(*feature);
    std::vector<float> angles;
    for (std::size_t i = 0; i < width; ++i) {
      joints[i].state = element(values, width, i);
      if (has_command) joints[i].command = element(driven->second, width, i);
      if (!joints[i].is_gripper) {
        angles.insert(angles.end(), joints[i].state.begin(), joints[i].state.end());
      }
    }
    const bool in_degrees = static_cast<double>(largest_magnitude(angles)) > kLargestRadians;
    for (Joint& joint : joints) {
      joint.unit = in_degrees && !joint.is_gripper ? kDegreesPerRadian : 1.0;
      signals.joints.push_back(std::move(joint));
    }
  }
  return signals;
}

}  // namespace ropewalk::quality
