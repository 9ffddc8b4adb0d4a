// Faults: their names, which episode has which, and the ranges of the options.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/dataset/simulated/plan_internal.h"
#include "ropewalk/dataset/simulated/simulated.h"

namespace ropewalk {

std::string_view simulated_fault_name(SimulatedFault fault) {
  switch (fault) {
    case SimulatedFault::camera_loss:
      return "camera_loss";
    case SimulatedFault::frozen_camera:
      return "frozen_camera";
    case SimulatedFault::late_images:
      return "late_images";
    case SimulatedFault::short_episode:
      return "short_episode";
    case SimulatedFault::non_finite:
      return "non_finite";
    case SimulatedFault::missing_column:
      return "missing_column";
    case SimulatedFault::wrong_shape:
      return "wrong_shape";
    case SimulatedFault::length_mismatch:
      return "length_mismatch";
    case SimulatedFault::idle_span:
      return "idle_span";
    case SimulatedFault::slow_camera:
      return "slow_camera";
  }
  return "";
}

const std::vector<SimulatedFault>& all_faults() {
  using enum SimulatedFault;
  static const std::vector<SimulatedFault> faults{
      camera_loss,    frozen_camera, late_images,     short_episode, non_finite,
      missing_column, wrong_shape,   length_mismatch, idle_span,     slow_camera};
  return faults;
}

const std::vector<SimulatedFault>& some_faults() {
  using enum SimulatedFault;
  static const std::vector<SimulatedFault> faults{frozen_camera, late_images, short_episode,
                                                  non_finite,    idle_span,   slow_camera};
  return faults;
}

Result<std::vector<SimulatedFault>> parse_faults(std::string_view text) {
  if (text.empty() || text == "none") return std::vector<SimulatedFault>{};
  if (text == "all") return all_faults();
  if (text == "some") return some_faults();
  std::vector<SimulatedFault> out;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    const auto at = std::ranges::find(all_faults(), word, simulated_fault_name);
    if (at == all_faults().end()) {
      std::string known;
      for (const SimulatedFault fault : all_faults()) {
        known += fmt::format(" {}", simulated_fault_name(fault));
      }
      return invalid_argument(fmt::format(
          "fault '{}' is not known; there are none, some, all, or a list of:{}", word, known));
    }
    if (!simulated::has(out, *at)) out.push_back(*at);
    if (comma == text.size()) return out;
    text.remove_prefix(comma + 1);
  }
}

Status SimulatedOptions::validate() const {
  const auto range = [](const char* name, double value, double low, double high) {
    return value >= low && value <= high
               ? ok_status()
               : invalid_argument(fmt::format("{} {}: expected {} to {}", name, value, low, high));
  };
  ROPEWALK_RETURN_IF_ERROR(range("episodes", static_cast<double>(episodes), 0, 1e6));
  ROPEWALK_RETURN_IF_ERROR(range("seconds", seconds, 0.05, 7200));
  ROPEWALK_RETURN_IF_ERROR(range("fps", fps, 1, 240));
  ROPEWALK_RETURN_IF_ERROR(range("cameras", cameras, 1, 8));
  ROPEWALK_RETURN_IF_ERROR(range("tasks", tasks, 1, 1000));
  ROPEWALK_RETURN_IF_ERROR(range("width", width, 16, 4096));
  ROPEWALK_RETURN_IF_ERROR(range("height", height, 16, 4096));
  if (!inline_images && (width % 2 != 0 || height % 2 != 0)) {
    return invalid_argument(
        fmt::format("size {}x{}: video needs an even width and height", width, height));
  }
  return ok_status();
}

std::vector<SimulatedFault> faults_of(const SimulatedOptions& options, std::int64_t episode) {
  std::vector<SimulatedFault> out;
  if (options.episodes <= 0) return out;
  // Spread over the episodes from a seeded start; the first episode stays clean where it can.
  const auto count = static_cast<std::int64_t>(options.faults.size());
  const std::int64_t offset = static_cast<std::int64_t>(simulated::mix(options.seed, 99) % 3);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t room = std::max<std::int64_t>(1, options.episodes - 1);
    const std::int64_t at = options.episodes == 1 ? 0 : 1 + (i + offset) % room;
    if (at == episode) out.push_back(options.faults[static_cast<std::size_t>(i)]);
  }
  return out;
}

}  // namespace ropewalk
