#include "ropewalk/stage/quality/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace ropewalk {
namespace {

struct NumberField {
  std::string_view name;
  double QualityOptions::*member;
  double low;
  double high;
};

constexpr std::array kNumbers = {
    NumberField{"static_max_difference", &QualityOptions::static_max_difference, 0, 255},
    NumberField{"static_min_share", &QualityOptions::static_min_share, 0.01, 1},
    NumberField{"stall_min_seconds", &QualityOptions::stall_min_seconds, 0.1, 3600},
    NumberField{"motion_min_travel_rad", &QualityOptions::motion_min_travel_rad, 1e-6, 1e3},
    NumberField{"frozen_min_travel_rad", &QualityOptions::frozen_min_travel_rad, 0, 1e3},
    NumberField{"black_max_luma", &QualityOptions::black_max_luma, 0, 255},
    NumberField{"black_min_seconds", &QualityOptions::black_min_seconds, 0, 3600},
    NumberField{"overexposed_min_share", &QualityOptions::overexposed_min_share, 0, 1},
    NumberField{"overexposed_min_seconds", &QualityOptions::overexposed_min_seconds, 0, 3600},
    NumberField{"blurred_min_sharpness", &QualityOptions::blurred_min_sharpness, 0, 1e6},
    NumberField{"stuck_min_seconds", &QualityOptions::stuck_min_seconds, 0.1, 3600},
    NumberField{"stuck_min_command_rad", &QualityOptions::stuck_min_command_rad, 1e-6, 1e3},
    NumberField{"idle_max_travel_rad", &QualityOptions::idle_max_travel_rad, 0, 1e3},
    NumberField{"idle_min_seconds", &QualityOptions::idle_min_seconds, 0.1, 3600},
    NumberField{"source_rate_min_share", &QualityOptions::source_rate_min_share, 0, 1},
    NumberField{"source_rate_window_seconds", &QualityOptions::source_rate_window_seconds, 0.1, 60},
    NumberField{"max_frame_dt_factor", &QualityOptions::max_frame_dt_factor, 1, 1e6},
};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearest_key(std::string_view key) {
  std::vector<std::string_view> names{"min_episode_frames", "pictures", "overexposed_min_luma"};
  for (const NumberField& field : kNumbers) names.push_back(field.name);
  return *std::ranges::min_element(names, {},
                                   [&](std::string_view name) { return edit_distance(name, key); });
}

}  // namespace

Status QualityOptions::validate() const {
  if (min_episode_frames < 0) {
    return invalid_argument(fmt::format("quality.checks.min_episode_frames {}: expected 0 or more",
                                        min_episode_frames));
  }
  if (overexposed_min_luma < 0 || overexposed_min_luma > 255) {
    return invalid_argument(fmt::format("quality.checks.overexposed_min_luma {}: expected 0 to 255",
                                        overexposed_min_luma));
  }
  for (const NumberField& field : kNumbers) {
    const double value = this->*field.member;
    if (!(value >= field.low && value <= field.high)) {
      return invalid_argument(fmt::format("quality.checks.{} {}: expected {} to {}", field.name,
                                          value, field.low, field.high));
    }
  }
  return ok_status();
}

Result<QualityOptions> quality_options_from_json(const Json& checks, QualityOptions base) {
  if (checks.is_null()) return base;
  const Json::Object* members = checks.as_object();
  if (members == nullptr) return invalid_argument("quality.checks: expected an object");
  for (const auto& [key, value] : *members) {
    const auto wrong_type = [&](std::string_view expected) {
      return invalid_argument(fmt::format("quality.checks.{}: expected {}, found {}", key, expected,
                                          value.type_name()));
    };
    if (key == "min_episode_frames" || key == "overexposed_min_luma") {
      const auto number = value.is_number() ? value.as_int64() : std::nullopt;
      if (!number) return wrong_type("an integer");
      if (key == "min_episode_frames") {
        base.min_episode_frames = *number;
      } else {
        base.overexposed_min_luma = static_cast<int>(std::clamp<std::int64_t>(*number, -1, 256));
      }
      continue;
    }
    if (key == "pictures") {
      if (!value.is_bool()) return wrong_type("true or false");
      base.pictures = *value.as_bool();
      continue;
    }
    const auto field = std::ranges::find(kNumbers, key, &NumberField::name);
    if (field == kNumbers.end()) {
      return invalid_argument(
          fmt::format("quality.checks.{}: unknown key; did you mean {}?", key, nearest_key(key)));
    }
    const auto number = value.as_double();
    if (!number) return wrong_type("a number");
    base.*(field->member) = *number;
  }
  ROPEWALK_RETURN_IF_ERROR(base.validate());
  return base;
}

}  // namespace ropewalk
