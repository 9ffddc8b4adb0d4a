#include "ropewalk/episode/schema.h"

#include <algorithm>

namespace ropewalk {
namespace {

void collect_strings(const Json& value, std::vector<std::string>& out, bool& clean) {
  if (const auto* text = value.as_string()) {
    out.push_back(*text);
  } else if (const auto* array = value.as_array()) {
    for (const Json& item : *array) collect_strings(item, out, clean);
  } else {
    clean = false;
  }
}

}  // namespace

std::string_view feature_kind_name(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::column:
      return "column";
    case FeatureKind::image:
      return "image";
    case FeatureKind::video:
      return "video";
    case FeatureKind::points:
      return "points";
    case FeatureKind::audio:
      return "audio";
    case FeatureKind::events:
      return "events";
  }
  return "column";
}

bool Feature::is_ragged() const {
  return std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; });
}

std::int64_t Feature::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return 0;
  }
  return count;
}

const std::vector<std::string>& default_column_names() {
  static const std::vector<std::string> names{"timestamp", "frame_index", "episode_index", "index",
                                              "task_index"};
  return names;
}

bool is_default_column(std::string_view name) {
  return std::ranges::find(default_column_names(), name) != default_column_names().end();
}

std::vector<Feature> default_features() {
  std::vector<Feature> out;
  for (const std::string& name : default_column_names()) {
    out.push_back(
        {.name = name, .dtype = name == "timestamp" ? DType::float32 : DType::int64, .shape = {1}});
  }
  return out;
}

const Feature* Schema::find(std::string_view name) const {
  const auto at = std::ranges::find(features, name, &Feature::name);
  return at == features.end() ? nullptr : &*at;
}

std::vector<std::string> Schema::cameras() const {
  std::vector<std::string> out;
  for (const Feature& feature : features) {
    if (feature.is_camera()) out.push_back(feature.name);
  }
  return out;
}

std::vector<const Feature*> Schema::of_kind(FeatureKind kind) const {
  std::vector<const Feature*> out;
  for (const Feature& feature : features) {
    if (feature.kind == kind) out.push_back(&feature);
  }
  return out;
}

std::optional<std::vector<std::string>> flat_names(const Json& names, std::int64_t dimension) {
  std::vector<std::string> out;
  bool clean = true;
  if (const auto* object = names.as_object()) {
    const bool by_index = !object->empty() && std::ranges::all_of(*object, [](const auto& member) {
      return member.second.is_integer();
    });
    if (by_index) {
      out.resize(object->size());
      for (const auto& [name, index] : *object) {
        const std::int64_t at = index.as_int64().value_or(-1);
        if (at < 0 || at >= static_cast<std::int64_t>(out.size())) return std::nullopt;
        out[static_cast<std::size_t>(at)] = name;
      }
    } else {
      for (const auto& member : *object) collect_strings(member.second, out, clean);
    }
  } else {
    collect_strings(names, out, clean);
  }
  if (!clean || static_cast<std::int64_t>(out.size()) != dimension) return std::nullopt;
  return out;
}

}  // namespace ropewalk
