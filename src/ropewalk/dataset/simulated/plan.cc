#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

#include "ropewalk/dataset/simulated/plan_internal.h"

namespace ropewalk::simulated {
namespace {

constexpr std::array<std::string_view, kArms> kPrefixes{"left", "right"};
constexpr double kIdleSeconds = 4.0;
constexpr double kShortest = 0.95;  // of the seconds asked for
constexpr double kLongest = 1.05;

std::int64_t frames_of(double seconds, int fps) {
  return std::max<std::int64_t>(2, static_cast<std::int64_t>(std::llround(seconds * fps)));
}

std::string iso_time(std::int64_t time_ns) {
  const std::int64_t seconds = time_ns / 1000000000;
  const std::time_t clock = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&clock, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}+00:00", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Json string_list(const std::vector<std::string>& values) {
  Json out = Json::array();
  for (const std::string& value : values) out.push_back(value);
  return out;
}

std::vector<std::string> joint_names() {
  std::vector<std::string> out;
  for (const std::string_view prefix : kPrefixes) {
    for (int joint = 0; joint < kArmJoints; ++joint) {
      out.push_back(fmt::format("{}.j{}", prefix, joint));
    }
    out.push_back(fmt::format("{}.gripper", prefix));
  }
  return out;
}

std::vector<std::string> pose_names() {
  std::vector<std::string> out;
  for (const std::string_view prefix : kPrefixes) {
    for (const char* axis : {"x", "y", "z", "qw", "qx", "qy", "qz", "gripper"}) {
      out.push_back(fmt::format("{}.{}", prefix, axis));
    }
  }
  return out;
}

// A sortable UTC time and six hexadecimal digits.
std::string take_id(const SimulatedOptions& options, const Plan& plan) {
  std::string time = iso_time(plan.start_ns).substr(0, 19);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  const std::uint64_t digits =
      mix(options.seed, static_cast<std::uint64_t>(plan.info.index) + 12345) & 0xFFFFFF;
  return fmt::format("{}Z-{:06x}", time, digits);
}

// The alignment keys that a recorder writes into the row of an episode.
void add_recorder_keys(const SimulatedOptions& options, Plan& plan) {
  Json& row = plan.info.row;
  const double start = static_cast<double>(plan.start_ns) * 1e-9;
  const double last = static_cast<double>(plan.info.length - 1) / options.fps;
  const double tolerance = 1.0 / (2.0 * std::max(1, options.fps - 1));
  std::vector<std::string> keys;
  Json skews = Json::object();
  Json rates = Json::object();
  Json streams = Json::object();
  for (int camera = 0; camera < options.cameras; ++camera) {
    if (plan.camera_has(camera, SimulatedFault::camera_loss)) continue;
    const bool late = plan.camera_has(camera, SimulatedFault::late_images);
    const bool slow = plan.camera_has(camera, SimulatedFault::slow_camera);
    const double skew = late ? static_cast<double>(kLateFrames) / options.fps : 0.25 * tolerance;
    const double gap = slow ? 1.0 / kSlowHz : 1.0 / options.fps;
    keys.push_back(camera_name(camera));
    skews.set(keys.back(), skew);
    rates.set(keys.back(), slow ? (options.fps + kSlowHz) / 2.0 : static_cast<double>(options.fps));
    Json stats = Json::object();
    stats.set("sample_count", plan.info.length);
    stats.set("start_time", start - skew);
    stats.set("end_time", start + last);
    stats.set("estimated_hz", static_cast<double>(options.fps));
    stats.set("max_gap_sec", std::round(gap * 1e6) / 1e6);
    stats.set("p99_gap_sec", std::round(gap * 1e6) / 1e6);
    stats.set("gaps_over_tolerance",
              slow ? std::max<std::int64_t>(1, (plan.info.length - plan.fault_begin) / 6)
                   : std::int64_t{0});
    stats.set("max_gap_start_time", Json());
    stats.set("max_gap_end_time", Json());
    streams.set(keys.back(), std::move(stats));
  }
  std::ranges::sort(keys);
  if (!options.inline_images) {
    row.set("video_keys", string_list(keys));
    row.set("total_videos", static_cast<std::int64_t>(keys.size()));
  }
  if (plan.info.length > 1) row.set("collection_fps", static_cast<double>(options.fps));
  row.set("source_fps", std::move(rates));
  row.set("alignment_fps", static_cast<double>(options.fps));
  row.set("alignment_grid_start", start);
  row.set("alignment_grid_end", start + last);
  row.set("alignment_profile", "ropewalk");
  row.set("alignment_image_skew_tolerance_sec", tolerance);
  row.set("alignment_image_max_skew_sec", std::move(skews));
  row.set("alignment_image_stream_stats", std::move(streams));
  row.set("take_id", take_id(options, plan));
  row.set("mode", "collection");
  row.set("started_at", iso_time(plan.start_ns));
  row.set("ended_at", iso_time(plan.start_ns + frame_time_ns(plan.info.length, {options.fps, 1})));
  row.set("duration_seconds", static_cast<double>(plan.info.length) / options.fps);
  row.set("robot_id", options.robot);
  row.set("session_id", fmt::format("simulated-{}", options.seed));
}

}  // namespace

std::string camera_name(int camera) {
  switch (camera) {
    case 0:
      return "observation.images.top";
    case 1:
      return "observation.images.left_wrist";
    case 2:
      return "observation.images.right_wrist";
    default:
      return fmt::format("observation.images.side_{}", camera - 2);
  }
}

std::string task_name(std::int64_t task) {
  static constexpr std::array<std::string_view, 4> kTasks{
      "put the red and the green block on their pads",
      "put the blue and the yellow block on their pads",
      "put the purple and the white block on their pads",
      "put the pink and the cyan block on their pads"};
  const auto at = static_cast<std::size_t>(task);
  if (at < kTasks.size()) return std::string(kTasks[at]);
  return fmt::format("{} (table {})", kTasks[at % kTasks.size()], task / 4 + 1);
}

int task_palette(std::int64_t task) { return static_cast<int>(task % 4); }

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  Random random(a * 0x9E3779B97F4A7C15ULL + b);
  return random.next();
}

bool has(const std::vector<SimulatedFault>& faults, SimulatedFault fault) {
  return std::ranges::find(faults, fault) != faults.end();
}

bool Plan::has_fault(SimulatedFault fault) const { return has(faults, fault); }

bool Plan::camera_has(int camera, SimulatedFault fault) const {
  return camera == faulty_camera && has(faults, fault);
}

std::int64_t Plan::shown_frame(int camera, std::int64_t frame, int fps) const {
  if (camera_has(camera, SimulatedFault::frozen_camera)) return 0;
  if (camera_has(camera, SimulatedFault::late_images) && frame >= fault_begin) {
    return std::max<std::int64_t>(0, frame - kLateFrames);
  }
  if (camera_has(camera, SimulatedFault::slow_camera) && frame >= fault_begin) {
    const auto step = std::max<std::int64_t>(2, static_cast<std::int64_t>(fps / kSlowHz));
    return fault_begin + (frame - fault_begin) / step * step;
  }
  return frame;
}

std::int64_t Plan::pictures(int camera) const {
  if (camera_has(camera, SimulatedFault::camera_loss)) return 0;
  if (!camera_has(camera, SimulatedFault::length_mismatch)) return info.length;
  return std::max<std::int64_t>(1, info.length - 3);
}

Schema make_schema(const SimulatedOptions& options) {
  Schema schema;
  Json checks = Json::object();
  checks.set("min_episode_frames", simulated_min_episode_frames(options));
  schema.extra.set("quality", Json(Json::Object{{"checks", std::move(checks)}}));
  schema.fps = {options.fps, 1};
  schema.robot_type = options.robot;
  const auto vector = [&](const char* name, const std::vector<std::string>& names) {
    schema.features.push_back({.name = name,
                               .dtype = DType::float32,
                               .shape = {static_cast<std::int64_t>(names.size())},
                               .names = string_list(names)});
  };
  vector("observations.state.qpos", joint_names());
  vector("observations.state.eef", pose_names());
  vector("action.qpos", joint_names());
  vector("action.eef", pose_names());
  for (int camera = 0; camera < options.cameras; ++camera) {
    Feature feature{.name = camera_name(camera),
                    .kind = options.inline_images ? FeatureKind::image : FeatureKind::video,
                    .dtype = DType::uint8,
                    .shape = {options.height, options.width, 3},
                    .names = string_list({"height", "width", "channels"})};
    if (!options.inline_images) {
      feature.info = Json::object();
      feature.info.set("video.height", options.height);
      feature.info.set("video.width", options.width);
      feature.info.set("video.codec", "h264");
      feature.info.set("video.pix_fmt", "yuv420p");
      feature.info.set("video.is_depth_map", false);
      feature.info.set("video.fps", options.fps);
      feature.info.set("video.channels", 3);
      feature.info.set("has_audio", false);
    }
    schema.features.push_back(std::move(feature));
  }
  schema.features.push_back({.name = "capture_time", .dtype = DType::float64, .shape = {1}});
  schema.features.push_back({.name = "capture_time_ns", .dtype = DType::int64, .shape = {1}});
  for (Feature& feature : default_features()) schema.features.push_back(std::move(feature));
  return schema;
}

Plan make_plan(const SimulatedOptions& options, std::int64_t episode, std::int64_t index_begin,
               std::int64_t start_ns) {
  Plan plan;
  plan.faults = faults_of(options, episode);
  plan.task = episode % options.tasks;
  plan.index_begin = index_begin;
  plan.start_ns = start_ns;
  Random random(mix(options.seed, static_cast<std::uint64_t>(episode)));
  double seconds = options.seconds * random.uniform(kShortest, kLongest);
  double idle_begin = 0;
  double idle_end = 0;
  if (has(plan.faults, SimulatedFault::idle_span)) {
    seconds = std::max(seconds, kIdleSeconds + 2.0);
    idle_begin = 0.3 * (seconds - kIdleSeconds);
    idle_end = idle_begin + kIdleSeconds;
  }
  plan.info.index = episode;
  plan.info.length = frames_of(seconds, options.fps);
  if (has(plan.faults, SimulatedFault::short_episode)) {
    plan.info.length =
        std::clamp<std::int64_t>(options.fps / 4, 1, simulated_min_episode_frames(options) - 1);
  }
  plan.info.tasks = {task_name(plan.task)};
  plan.faulty_camera =
      static_cast<int>(random.next() % static_cast<std::uint64_t>(options.cameras));
  if (has(plan.faults, SimulatedFault::frozen_camera)) plan.faulty_camera = 0;
  plan.fault_begin = plan.info.length / 3;
  plan.motion = std::make_shared<const Motion>(
      random.next(), static_cast<double>(plan.info.length) / options.fps, idle_begin, idle_end);
  plan.info.row.set("episode_index", episode);
  plan.info.row.set("tasks", string_list(plan.info.tasks));
  plan.info.row.set("length", plan.info.length);
  add_recorder_keys(options, plan);
  return plan;
}

}  // namespace ropewalk::simulated

namespace ropewalk {

std::int64_t simulated_min_episode_frames(const SimulatedOptions& options) {
  const std::int64_t half_a_second = (options.fps + 1) / 2;
  return std::max<std::int64_t>(
      2, std::min(half_a_second,
                  simulated::frames_of(simulated::kShortest * options.seconds, options.fps)));
}

}  // namespace ropewalk
