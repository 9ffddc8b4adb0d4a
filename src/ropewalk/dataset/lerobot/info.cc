#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/dataset/lerobot/info_internal.h"

namespace ropewalk::lerobot {
namespace {

constexpr std::string_view kFile = "meta/info.json";
/// No sane info.json is larger; its parsed form takes several times its text.
constexpr std::uint64_t kMaxDocumentBytes = 64ULL << 20;
constexpr std::size_t kMaxDimensions = 5;

constexpr std::array kKnownKeys = std::to_array<std::string_view>(
    {"codebase_version", "robot_type", "total_episodes", "total_frames", "total_tasks",
     "total_videos", "total_chunks", "chunks_size", "fps", "splits", "data_path", "video_path",
     "features", "data_files_size_in_mb", "video_files_size_in_mb", "dataset_format",
     "embedded_images"});

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string short_text(const Json& value) {
  std::string text = value.dump();
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

class InfoParser {
 public:
  InfoParser(Json document, LerobotGeneration generation, FindingLog& log) : log_(log) {
    info_.document = std::move(document);
    info_.generation = generation;
  }

  Result<Info> run() {
    if (!info_.document.is_object()) {
      return data_loss(
          fmt::format("{}: expected an object, found {}", kFile, info_.document.type_name()));
    }
    check_version();
    ROPEWALK_RETURN_IF_ERROR(read_rate());
    if (const auto robot = info_.document.get_string("robot_type")) {
      info_.schema.robot_type = *robot;
    }
    read_totals();
    read_chunks();
    ROPEWALK_RETURN_IF_ERROR(read_features());
    ROPEWALK_RETURN_IF_ERROR(read_paths());
    info_.schema.extra = Json::object();
    for (const auto& [key, value] : *info_.document.as_object()) {
      if (std::ranges::find(kKnownKeys, key) == kKnownKeys.end()) {
        info_.schema.extra.set(key, value);
      }
    }
    return std::move(info_);
  }

 private:
  bool is_v3() const { return info_.generation == LerobotGeneration::v30; }

  void check_version() {
    const auto declared = info_.document.get_string("codebase_version");
    const std::string_view meant = info_.generation == LerobotGeneration::v20   ? "v2.0"
                                   : info_.generation == LerobotGeneration::v21 ? "v2.1"
                                                                                : "v3.0";
    if (!declared) {
      const Json* other = info_.document.find("version");
      log_.add("version_missing", {.file = std::string(kFile),
                                   .declared = other != nullptr ? short_text(*other) : "",
                                   .found = std::string(meant)});
    } else if (*declared != meant) {
      log_.add("version_mismatch",
               {.file = std::string(kFile), .declared = *declared, .found = std::string(meant)});
    }
  }

  Status read_rate() {
    const Json* fps = info_.document.find("fps");
    const auto rate_hz = fps != nullptr ? fps->as_double() : std::nullopt;
    if (!rate_hz) {
      return log_.fatal(
          "info_key_missing",
          {.file = std::string(kFile), .declared = "fps", .decision = "give the rate"},
          data_loss(fmt::format("{}: `fps` is missing or no number; give the rate of "
                                "the frames",
                                kFile)));
    }
    auto rate = rational_from_rate(*rate_hz);
    if (!rate.ok()) {
      return log_.fatal("info_key_invalid",
                        {.file = std::string(kFile),
                         .declared = "fps",
                         .found = short_text(*fps),
                         .decision = "give the rate"},
                        data_loss(fmt::format("{}: fps: {}", kFile, rate.status().message())));
    }
    info_.schema.fps = *rate;
    if (!info_.schema.fps.is_integral()) {
      log_.add("fps_not_integral", {.file = std::string(kFile),
                                    .declared = short_text(*fps),
                                    .found = to_string(info_.schema.fps)});
    }
    return ok_status();
  }

  void read_totals() {
    const auto read = [&](std::string_view key) -> std::optional<std::int64_t> {
      const Json* value = info_.document.find(key);
      if (value == nullptr) return std::nullopt;
      const auto number = value->as_int64();
      if (!number) {
        log_.add("info_key_invalid", {.file = std::string(kFile),
                                      .declared = std::string(key),
                                      .found = short_text(*value),
                                      .decision = "counted instead"});
      }
      return number;
    };
    info_.total_episodes = read("total_episodes");
    info_.total_frames = read("total_frames");
    info_.total_tasks = read("total_tasks");
    info_.total_videos = read("total_videos");
  }

  void read_chunks() {
    const Json* size = info_.document.find("chunks_size");
    if (size == nullptr) {
      log_.add("info_key_missing", {.file = std::string(kFile), .declared = "chunks_size"});
    } else if (const auto number = size->as_int64(); number && *number > 0) {
      info_.chunks_size = *number;
    } else {
      log_.add("info_key_invalid",
               {.file = std::string(kFile), .declared = "chunks_size", .found = short_text(*size)});
    }
    for (const std::string_view key : {"data_files_size_in_mb", "video_files_size_in_mb"}) {
      const Json* limit = info_.document.find(key);
      const auto number = limit != nullptr ? limit->as_double() : std::nullopt;
      if (limit != nullptr && (!number || *number < 1)) {
        log_.add("info_key_invalid", {.file = std::string(kFile),
                                      .declared = std::string(key),
                                      .found = short_text(*limit)});
      }
    }
  }

  Status read_path(std::string_view key, std::string_view fallback, bool needed,
                   PathTemplate& out) {
    const Json* value = info_.document.find(key);
    std::string_view text = fallback;
    if (value == nullptr || value->is_null()) {
      if (needed) {
        log_.add("info_key_missing", {.file = std::string(kFile), .declared = std::string(key)});
      }
    } else if (const std::string* found = value->as_string()) {
      text = *found;
    } else {
      log_.add(
          "info_key_invalid",
          {.file = std::string(kFile), .declared = std::string(key), .found = short_text(*value)});
    }
    auto parsed = PathTemplate::parse(text);
    if (!parsed.ok()) {
      log_.add("template_invalid", {.file = std::string(kFile),
                                    .declared = std::string(key),
                                    .found = std::string(parsed.status().message())});
      parsed = PathTemplate::parse(fallback);
    }
    ROPEWALK_ASSIGN_OR_RETURN(out, std::move(parsed));
    if (Status inside = check_inside_root(out.format({.video_key = "k"})); !inside.ok()) {
      return log_.fatal(
          "path_escapes_root",
          {.file = std::string(kFile), .declared = std::string(key), .found = out.text()},
          inside.with_context(kFile));
    }
    return ok_status();
  }

  Status read_paths() {
    ROPEWALK_RETURN_IF_ERROR(
        read_path("data_path", is_v3() ? kDataPathV3 : kDataPathV2, true, info_.data_path));
    bool has_video = false;
    for (std::size_t i = 0; i < info_.schema.features.size(); ++i) {
      if (info_.schema.features[i].kind == FeatureKind::video) has_video = true;
    }
    ROPEWALK_RETURN_IF_ERROR(read_path("video_path", is_v3() ? kVideoPathV3 : kVideoPathV2,
                                       has_video, info_.video_path));
    for (std::size_t i = 0; i < info_.schema.features.size(); ++i) {
      if (info_.schema.features[i].kind != FeatureKind::video) continue;
      const Status inside =
          check_inside_root(info_.video_path.format({.video_key = info_.physical[i]}));
      if (!inside.ok()) {
        return log_.fatal("path_escapes_root",
                          {.file = std::string(kFile), .feature = info_.physical[i]},
                          inside.with_context(kFile));
      }
    }
    return ok_status();
  }

  /// Says what a feature is called inside: upstream has no "/" in names and keeps "task" for
  /// itself.
  std::string logical_name(const std::string& physical) {
    std::string name = physical;
    std::ranges::replace(name, '/', '_');
    if (name == "task") name = "task_";
    if (name.empty()) name = "unnamed";
    const Json* features = info_.document.find("features");
    while (name != physical &&
           (features->find(name) != nullptr || info_.schema.find(name) != nullptr)) {
      name.push_back('_');
    }
    if (name != physical) {
      log_.add(
          "feature_renamed",
          {.file = std::string(kFile), .feature = physical, .declared = physical, .found = name});
    }
    return name;
  }

  Status read_features() {
    const Json* features = info_.document.find("features");
    const Json::Object* entries = features != nullptr ? features->as_object() : nullptr;
    if (entries == nullptr) {
      return log_.fatal(
          "info_key_missing",
          {.file = std::string(kFile), .declared = "features", .decision = "give the features"},
          data_loss(fmt::format("{}: `features` is missing or no object", kFile)));
    }
    for (const auto& [name, entry] : *entries) {
      if (!entry.is_object()) {
        log_.add("feature_dropped",
                 {.file = std::string(kFile), .feature = name, .found = short_text(entry)});
        continue;
      }
      read_feature(name, entry);
    }
    for (Feature& feature : default_features()) {
      if (info_.schema.find(feature.name) != nullptr) continue;
      log_.add("default_feature_missing", {.file = std::string(kFile), .feature = feature.name});
      info_.physical.push_back(feature.name);
      info_.schema.features.push_back(std::move(feature));
    }
    return ok_status();
  }

  void read_feature(const std::string& physical, const Json& entry) {
    Feature feature;
    feature.extra = Json::object();
    for (const auto& [key, value] : *entry.as_object()) {
      if (key == "names") {
        feature.names = value;
      } else if (key == "info" || (key == "video_info" && feature.info.is_null())) {
        feature.info = value;
      } else if (key != "dtype" && key != "shape" && key != "name") {
        feature.extra.set(key, value);
      }
    }
    if (const Json* name = entry.find("name"); name != nullptr) {
      if (feature.names.is_null()) {
        feature.names = *name;
      } else {
        feature.extra.set("name", *name);
      }
    }
    const std::string dtype = entry.get_string("dtype").value_or("");
    if (!set_type(feature, dtype)) {
      log_.add("feature_dropped", {.file = std::string(kFile),
                                   .feature = physical,
                                   .declared = "dtype " + (dtype.empty() ? "missing" : dtype),
                                   .found = "no type that is known"});
      return;
    }
    feature.name = logical_name(physical);
    if (is_default_column(feature.name)) {
      settle_default(feature, dtype, entry);
    } else if (feature.is_camera()) {
      settle_camera(feature, physical, entry);
    } else if (!settle_column(feature, physical, entry)) {
      return;
    }
    info_.physical.push_back(physical);
    info_.schema.features.push_back(std::move(feature));
  }

  static bool set_type(Feature& feature, const std::string& dtype) {
    feature.dtype = DType::uint8;
    if (dtype == "video") {
      feature.kind = FeatureKind::video;
      return true;
    }
    if (dtype == "image") {
      feature.kind = FeatureKind::image;
      return true;
    }
    if (dtype == "language") {
      feature.kind = FeatureKind::events;
      feature.dtype = DType::string;
      return true;
    }
    const auto known = dtype_from_name(dtype);
    if (known && *known != DType::bytes) {
      feature.dtype = *known;
      return true;
    }
    static constexpr std::array kAliases =
        std::to_array<std::pair<std::string_view, DType>>({{"float", DType::float32},
                                                           {"double", DType::float64},
                                                           {"int", DType::int64},
                                                           {"str", DType::string},
                                                           {"boolean", DType::boolean},
                                                           {"half", DType::float16}});
    for (const auto& [alias, meant] : kAliases) {
      if (dtype == alias) {
        feature.dtype = meant;
        return true;
      }
    }
    return false;
  }

  /// Reads `shape`; nullopt when it is no list of integers.
  static std::optional<std::vector<std::int64_t>> declared_shape(const Json& entry) {
    const Json* shape = entry.find("shape");
    const Json::Array* extents = shape != nullptr ? shape->as_array() : nullptr;
    if (extents == nullptr) return std::nullopt;
    std::vector<std::int64_t> out;
    for (const Json& extent : *extents) {
      const auto value = extent.as_int64();
      if (!value || *value < 0 || *value > (std::int64_t{1} << 32)) return std::nullopt;
      out.push_back(*value);
    }
    return out;
  }

  void settle_default(Feature& feature, const std::string& dtype, const Json& entry) {
    const auto defaults = default_features();
    const auto at = std::ranges::find(defaults, feature.name, &Feature::name);
    const auto shape = declared_shape(entry);
    if (feature.kind != FeatureKind::column || feature.dtype != at->dtype || !shape ||
        *shape != at->shape) {
      const Json* found = entry.find("shape");
      log_.add("info_key_invalid",
               {.file = std::string(kFile),
                .feature = feature.name,
                .declared = fmt::format("{} {}", dtype, found ? short_text(*found) : "no shape"),
                .decision = fmt::format("read as {} [1]", dtype_name(at->dtype))});
    }
    feature.kind = FeatureKind::column;
    feature.dtype = at->dtype;
    feature.shape = at->shape;
  }

  void settle_camera(Feature& feature, const std::string& physical, const Json& entry) {
    const auto shape = declared_shape(entry);
    const Json* found = entry.find("shape");
    const CameraShape meant =
        interpret_camera_shape(shape.value_or(std::vector<std::int64_t>{}), feature.names);
    feature.shape = {meant.height, meant.width, meant.channels};
    if (!meant.valid || shape->size() != 3) {
      log_.add("feature_shape_invalid", {.file = std::string(kFile),
                                         .feature = physical,
                                         .declared = found ? short_text(*found) : "no shape",
                                         .decision = "read as " + shape_text(feature.shape)});
    } else if (meant.reordered) {
      log_.add("camera_shape_order", {.file = std::string(kFile),
                                      .feature = physical,
                                      .declared = shape_text(*shape),
                                      .found = shape_text(feature.shape)});
    }
  }

  bool settle_column(Feature& feature, const std::string& physical, const Json& entry) {
    const auto shape = declared_shape(entry);
    const Json* found = entry.find("shape");
    feature.shape = shape.value_or(std::vector<std::int64_t>{1});
    if (!shape || shape->empty()) {
      feature.shape = {1};
      log_.add("feature_shape_invalid", {.file = std::string(kFile),
                                         .feature = physical,
                                         .declared = found ? short_text(*found) : "no shape"});
    }
    if (std::ranges::find(feature.shape, 0) != feature.shape.end()) {
      log_.add("feature_dropped", {.file = std::string(kFile),
                                   .feature = physical,
                                   .declared = "shape " + shape_text(feature.shape),
                                   .found = "no elements"});
      return false;
    }
    const std::int64_t elements = feature.elements();
    if (elements <= 0 || elements > (std::int64_t{1} << 31) - 1) {
      log_.add("feature_dropped", {.file = std::string(kFile),
                                   .feature = physical,
                                   .declared = "shape " + shape_text(feature.shape),
                                   .found = "more elements than a row can hold"});
      return false;
    }
    if (feature.shape.size() > kMaxDimensions) {
      log_.add("feature_flattened", {.file = std::string(kFile),
                                     .feature = physical,
                                     .declared = "shape " + shape_text(feature.shape),
                                     .found = fmt::format("[{}]", elements)});
      Json original = Json::array();
      for (const std::int64_t extent : feature.shape) original.push_back(extent);
      feature.extra.set("original_shape", std::move(original));
      feature.shape = {elements};
    }
    // Seconds since 1970 in float32 have a resolution of 128 s; recorders store doubles all the
    // same.
    if (feature.name == "capture_time" && feature.dtype == DType::float32) {
      feature.dtype = DType::float64;
      log_.add("capture_time_narrow",
               {.file = std::string(kFile), .feature = physical, .declared = "float32"});
    }
    note_names(feature, physical);
    return true;
  }

  void note_names(const Feature& feature, const std::string& physical) {
    if (feature.names.is_null()) return;
    const Json::Array* list = feature.names.as_array();
    const bool plain = list != nullptr && std::ranges::all_of(*list, &Json::is_string) &&
                       static_cast<std::int64_t>(list->size()) == feature.shape.back();
    if (plain) return;
    const bool flat = flat_names(feature.names, feature.shape.back()).has_value();
    log_.add("names_not_a_list",
             {.file = std::string(kFile),
              .feature = physical,
              .declared = short_text(feature.names),
              .decision = flat ? "read as one list, kept as found" : "kept as found"});
  }

  FindingLog& log_;
  Info info_;
};

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

CameraShape interpret_camera_shape(const std::vector<std::int64_t>& shape, const Json& names) {
  CameraShape out;
  const bool positive = std::ranges::all_of(shape, [](std::int64_t extent) { return extent > 0; });
  if (shape.size() == 2 && positive) {
    return {
        .height = shape[0], .width = shape[1], .channels = 3, .valid = true, .reordered = false};
  }
  if (shape.size() != 3 || !positive) return out;
  const auto is_channels = [](std::int64_t extent) {
    return extent == 1 || extent == 3 || extent == 4;
  };
  int channel_at = is_channels(shape[2]) || !is_channels(shape[0]) ? 2 : 0;
  int height_at = channel_at == 2 ? 0 : 1;
  int width_at = channel_at == 2 ? 1 : 2;
  if (const auto flat = flat_names(names, 3)) {
    int by_name[3] = {-1, -1, -1};
    for (int i = 0; i < 3; ++i) {
      const std::string name = lower((*flat)[static_cast<std::size_t>(i)]);
      if (name == "height" || name == "h") by_name[0] = i;
      if (name == "width" || name == "w") by_name[1] = i;
      if (name == "channel" || name == "channels" || name == "c") by_name[2] = i;
    }
    // Names that contradict the numbers, as [120, 120, 3] with "channels" first, are not believed.
    if (by_name[0] >= 0 && by_name[1] >= 0 && by_name[2] >= 0 &&
        (is_channels(shape[static_cast<std::size_t>(by_name[2])]) ||
         !is_channels(shape[static_cast<std::size_t>(channel_at)]))) {
      height_at = by_name[0];
      width_at = by_name[1];
      channel_at = by_name[2];
    } else if (by_name[2] >= 0 && by_name[2] != channel_at) {
      out.reordered = true;
    }
  }
  out.height = shape[static_cast<std::size_t>(height_at)];
  out.width = shape[static_cast<std::size_t>(width_at)];
  out.channels = shape[static_cast<std::size_t>(channel_at)];
  out.valid = true;
  out.reordered = out.reordered || channel_at != 2 || height_at != 0;
  return out;
}

const std::string& Info::physical_name(std::string_view feature) const {
  static const std::string none;
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    if (schema.features[i].name == feature) return physical[i];
  }
  return none;
}

void Info::drop_feature(std::string_view feature) {
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    if (schema.features[i].name != feature) continue;
    schema.features.erase(schema.features.begin() + static_cast<std::ptrdiff_t>(i));
    physical.erase(physical.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

Result<Json> parse_json_document(std::string_view text, const std::string& file,
                                 const Limits& limits, FindingLog& log) {
  JsonNotes notes;
  ROPEWALK_ASSIGN_OR_RETURN_CTX(Json document, parse_json(text, limits, &notes), file);
  if (notes.byte_order_mark) log.add("byte_order_mark", {.file = file});
  if (notes.non_finite_literals > 0) {
    log.add("non_finite_literal", {.file = file, .count = notes.non_finite_literals});
  }
  for (const std::string& key : notes.duplicate_keys) {
    log.add("duplicate_key", {.file = file, .declared = key});
  }
  return document;
}

Result<Json> read_json_document(const std::filesystem::path& root, const std::string& file,
                                const Limits& limits, FindingLog& log) {
  Limits tight = limits;
  tight.max_json_bytes = std::min(limits.max_json_bytes, kMaxDocumentBytes);
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text,
                            read_text_file(root / file, tight.max_json_bytes));
  if (std::string_view(text).starts_with("version https://git-lfs")) {
    return data_loss(fmt::format("{}: a Git LFS pointer file stands in place of the data; fetch "
                                 "it with `git lfs pull`",
                                 file))
        .with_reason("lfs_pointer");
  }
  return parse_json_document(text, file, tight, log);
}

Result<Info> parse_info(Json document, LerobotGeneration generation, FindingLog& log) {
  return InfoParser(std::move(document), generation, log).run();
}

void check_splits(const Info& info, std::int64_t episodes, FindingLog& log) {
  const Json* splits = info.document.find("splits");
  if (splits == nullptr) return;
  const auto report = [&](const std::string& name, const Json& value, std::string_view why,
                          std::string decision = {}) {
    log.add("splits_invalid",
            {.file = std::string(kFile),
             .declared =
                 name.empty() ? short_text(value) : fmt::format("{} {}", name, short_text(value)),
             .found = std::string(why),
             .decision = std::move(decision)});
  };
  const Json::Object* members = splits->as_object();
  if (members == nullptr) {
    report("", *splits, splits->type_name());
    return;
  }
  for (const auto& [name, value] : *members) {
    const std::string* text = value.as_string();
    const std::size_t colon = text != nullptr ? text->find(':') : std::string::npos;
    std::int64_t bounds[2] = {-1, -1};
    if (colon != std::string::npos) {
      const std::string_view parts[2] = {std::string_view(*text).substr(0, colon),
                                         std::string_view(*text).substr(colon + 1)};
      for (int i = 0; i < 2; ++i) {
        std::int64_t number = 0;
        bool good = !parts[i].empty() && parts[i].size() <= 15;
        for (const char c : parts[i]) {
          if (c < '0' || c > '9') good = false;
          number = number * 10 + (c - '0');
        }
        if (good) bounds[i] = number;
      }
    }
    if (bounds[0] < 0 || bounds[1] < bounds[0]) {
      report(name, value, "no range of episodes");
    } else if (bounds[1] > episodes) {
      report(name, value, fmt::format("{} episodes", episodes),
             fmt::format("cut to {}:{}", std::min(bounds[0], episodes), episodes));
    }
  }
}

}  // namespace ropewalk::lerobot
