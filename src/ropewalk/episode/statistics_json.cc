// Statistics as JSON: upstream's nesting, and every shape found in files.
#include <algorithm>
#include <cmath>

#include "ropewalk/episode/statistics.h"

namespace ropewalk {
namespace {

Json nest(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
          std::size_t level, std::size_t& at) {
  Json out = Json::array();
  if (level + 1 >= shape.size()) {
    const std::size_t count =
        shape.empty() ? values.size() : static_cast<std::size_t>(shape.back());
    for (std::size_t i = 0; i < count && at < values.size(); ++i) out.push_back(values[at++]);
    return out;
  }
  for (std::int64_t i = 0; i < shape[level]; ++i) out.push_back(nest(values, shape, level + 1, at));
  return out;
}

Json nested(const std::vector<double>& values, const std::vector<std::int64_t>& shape) {
  std::size_t at = 0;
  return nest(values, shape, 0, at);
}

/// Appends the numbers of nested lists; returns false for anything that is no finite number.
bool collect(const Json& value, std::vector<double>& out) {
  if (const auto* array = value.as_array()) {
    return std::ranges::all_of(*array, [&out](const Json& item) { return collect(item, out); });
  }
  if (const auto flag = value.as_bool()) {
    out.push_back(*flag ? 1.0 : 0.0);
    return true;
  }
  const auto number = value.as_double();
  if (!number || !std::isfinite(*number)) return false;
  out.push_back(*number);
  return true;
}

std::vector<std::int64_t> shape_of(const Json& value) {
  std::vector<std::int64_t> out;
  const Json* level = &value;
  while (const auto* array = level->as_array()) {
    out.push_back(static_cast<std::int64_t>(array->size()));
    if (array->empty()) break;
    level = &array->front();
  }
  if (out.empty()) out.push_back(1);
  return out;
}

}  // namespace

Json statistics_to_json(const FeatureStatistics& statistics, bool with_count) {
  Json out = Json::object();
  out.set("min", nested(statistics.min, statistics.shape));
  out.set("max", nested(statistics.max, statistics.shape));
  out.set("mean", nested(statistics.mean, statistics.shape));
  out.set("std", nested(statistics.std, statistics.shape));
  if (!with_count) return out;
  out.set("count", Json(Json::Array{Json(statistics.count)}));
  if (!statistics.has_quantiles()) return out;
  for (std::size_t i = 0; i < kQuantileNames.size(); ++i) {
    out.set(std::string(kQuantileNames[i]), nested(statistics.quantiles[i], statistics.shape));
  }
  return out;
}

Json statistics_to_json(const StatisticsMap& statistics, bool with_count) {
  Json out = Json::object();
  for (const auto& [name, one] : statistics) out.set(name, statistics_to_json(one, with_count));
  return out;
}

StatisticsMap statistics_from_json(const Json& json, Findings* findings) {
  StatisticsMap out;
  const auto* features = json.as_object();
  if (features == nullptr) return out;
  for (const auto& [name, entry] : *features) {
    FeatureStatistics one;
    const std::array<std::pair<const char*, std::vector<double>*>, 4> moments{
        {{"min", &one.min}, {"max", &one.max}, {"mean", &one.mean}, {"std", &one.std}}};
    bool readable = true;
    for (const auto& [key, values] : moments) {
      const Json* found = entry.find(key);
      readable = readable && found != nullptr && collect(*found, *values) &&
                 values->size() == one.min.size() && !values->empty();
    }
    if (!readable) {
      if (findings != nullptr) {
        findings->add({.code = "statistics_unreadable",
                       .feature = name,
                       .found = entry.dump().substr(0, 80),
                       .decision = "left out"});
      }
      continue;
    }
    one.shape = shape_of(*entry.find("mean"));
    std::vector<double> count;
    if (const Json* found = entry.find("count"); found != nullptr && collect(*found, count) &&
                                                 count.size() == 1 && count.front() >= 1 &&
                                                 count.front() < 9e15) {
      one.count = static_cast<std::int64_t>(count.front());
    }
    bool quantiles = true;
    for (std::size_t i = 0; i < kQuantileNames.size() && quantiles; ++i) {
      const Json* found = entry.find(kQuantileNames[i]);
      quantiles = found != nullptr && collect(*found, one.quantiles[i]) &&
                  one.quantiles[i].size() == one.min.size();
    }
    if (!quantiles) one.quantiles = {};
    out.insert_or_assign(name, std::move(one));
  }
  return out;
}

}  // namespace ropewalk
