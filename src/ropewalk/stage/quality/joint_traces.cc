#include <algorithm>
#include <cmath>
#include <limits>

#include <arrow/api.h>

#include "ropewalk/stage/quality/joint_traces_internal.h"

namespace ropewalk {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_joint_vector(const Feature& feature) {
  return feature.kind == FeatureKind::column && dtype_is_float(feature.dtype) &&
         feature.shape.size() == 1 && feature.shape[0] > 1;
}

// How much a name speaks of joint positions; 0: not at all.
int state_rank(const Feature& feature) {
  if (!is_joint_vector(feature) || !feature.name.starts_with("observation")) return 0;
  for (const std::string_view other : {"eef", "vel", "effort", "torque", "pose", "current"}) {
    if (contains(feature.name, other)) return 0;
  }
  if (contains(feature.name, "qpos")) return 3;
  return contains(feature.name, "state") ? 2 : 0;
}

int command_rank(const Feature& feature) {
  if (!is_joint_vector(feature) || !feature.name.starts_with("action")) return 0;
  if (contains(feature.name, "qpos")) return 3;
  return feature.name == "action" ? 2 : 0;
}

const Feature* pick(const Schema& schema, int (*rank)(const Feature&)) {
  const Feature* best = nullptr;
  for (const Feature& feature : schema.features) {
    if (rank(feature) > (best ? rank(*best) : 0)) best = &feature;
  }
  return best;
}

Result<JointColumn> read_joints(const Feature& feature, const arrow::RecordBatch& columns) {
  JointColumn out;
  const auto column = columns.GetColumnByName(feature.name);
  if (!column) return out;
  const auto list = std::dynamic_pointer_cast<arrow::FixedSizeListArray>(column);
  if (!list) return out;
  const auto flat = list->Flatten();
  if (!flat.ok()) return internal(flat.status().ToString());
  out.name = feature.name;
  out.width = feature.shape[0];
  out.rows = column->length();
  out.values.resize(static_cast<std::size_t>(out.width * out.rows));
  if (const auto floats = std::dynamic_pointer_cast<arrow::FloatArray>(*flat)) {
    std::copy_n(floats->raw_values(), out.values.size(), out.values.begin());
  } else if (const auto doubles = std::dynamic_pointer_cast<arrow::DoubleArray>(*flat)) {
    std::transform(doubles->raw_values(), doubles->raw_values() + out.values.size(),
                   out.values.begin(), [](double value) { return static_cast<float>(value); });
  } else {
    return JointColumn{};
  }
  if (const auto names = flat_names(feature.names, out.width)) out.joint_names = *names;
  out.is_gripper.assign(static_cast<std::size_t>(out.width), false);
  for (std::size_t i = 0; i < out.joint_names.size(); ++i) {
    out.is_gripper[i] = contains(out.joint_names[i], "gripper");
  }
  return out;
}

}  // namespace

double JointColumn::travel(std::int64_t begin, std::int64_t end) const {
  return travel_of("", begin, end);
}

double JointColumn::travel_of(std::string_view prefix, std::int64_t begin, std::int64_t end) const {
  begin = std::max<std::int64_t>(0, begin);
  end = std::min(end, rows);
  const bool named = !prefix.empty() && std::ranges::any_of(joint_names, [&](const auto& joint) {
    return joint.starts_with(prefix);
  });
  double largest = 0;
  for (std::int64_t joint = 0; joint < width; ++joint) {
    const auto at_joint = static_cast<std::size_t>(joint);
    if (is_gripper[at_joint] || (named && !joint_names[at_joint].starts_with(prefix))) continue;
    float low = std::numeric_limits<float>::infinity();
    float high = -low;
    for (std::int64_t row = begin; row < end; ++row) {
      const float value = at(row, joint);
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    if (high >= low) largest = std::max(largest, static_cast<double>(high - low));
  }
  return largest;
}

Result<JointTraces> trace_joints(const Episode& episode, const arrow::RecordBatch& columns) {
  JointTraces out;
  if (const Feature* feature = pick(episode.schema(), state_rank)) {
    ROPEWALK_ASSIGN_OR_RETURN(out.state, read_joints(*feature, columns));
  }
  if (const Feature* feature = pick(episode.schema(), command_rank)) {
    ROPEWALK_ASSIGN_OR_RETURN(out.command, read_joints(*feature, columns));
  }
  if (out.command.width != out.state.width) out.command = {};
  return out;
}

}  // namespace ropewalk
