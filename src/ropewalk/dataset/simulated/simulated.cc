#include "ropewalk/dataset/simulated/simulated.h"

#include <arrow/api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ropewalk/dataset/simulated/motion_internal.h"
#include "ropewalk/dataset/simulated/scene_internal.h"
#include "ropewalk/format/image/image.h"

namespace ropewalk {
namespace {

using simulated::Motion;
using simulated::Random;

constexpr std::array<std::string_view, simulated::kArms> kPrefixes{"left", "right"};
constexpr std::int64_t kFirstStartNs = 1767254400LL * 1000000000;  // 2026-01-01T08:00:00Z
constexpr double kIdleSeconds = 4.0;
constexpr std::int64_t kLateFrames = 5;
constexpr double kSlowHz = 5.0;

std::string camera_name(int camera) {
  static constexpr std::array<std::string_view, 3> kNames{"top", "left_wrist", "right_wrist"};
  return fmt::format("observation.images.{}", camera < 3 ? std::string(kNames[static_cast<std::size_t>(camera)])
                                                         : fmt::format("side_{}", camera - 2));
}

std::string task_name(std::int64_t task) {
  static constexpr std::array<std::string_view, 6> kTasks{
      "pick up both blocks and swap their places", "hand the red block to the right arm",
      "stack the green block on the red one",      "push both blocks to the edge of the table",
      "sort the blocks by colour",                 "clear the table"};
  const auto at = static_cast<std::size_t>(task);
  return at < kTasks.size() ? std::string(kTasks[at]) : fmt::format("task number {}", task);
}

std::string iso_time(std::int64_t time_ns) {
  const std::int64_t seconds = time_ns / 1000000000;
  const std::time_t clock = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&clock, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}+00:00", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  Random random(a * 0x9E3779B97F4A7C15ULL + b);
  return random.next();
}

bool has(const std::vector<SimulatedFault>& faults, SimulatedFault fault) {
  return std::ranges::find(faults, fault) != faults.end();
}

Json string_list(const std::vector<std::string>& values) {
  Json out = Json::array();
  for (const std::string& value : values) out.push_back(value);
  return out;
}

std::vector<std::string> joint_names() {
  std::vector<std::string> out;
  for (const std::string_view prefix : kPrefixes) {
    for (int joint = 0; joint < simulated::kArmJoints; ++joint) {
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

Schema make_schema(const SimulatedOptions& options) {
  Schema schema;
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

// Everything that is decided about an episode before it is opened.
struct Plan {
  EpisodeInfo info;
  std::vector<SimulatedFault> faults;
  std::int64_t task = 0;
  std::int64_t index_begin = 0;
  std::int64_t start_ns = 0;
  int faulty_camera = 0;
  std::int64_t fault_begin = 0;  ///< first frame that a fault in time touches
  std::shared_ptr<const Motion> motion;
};

// The picture that camera shows at grid frame `frame`: usually its own.
std::int64_t shown_frame(const Plan& plan, int camera, std::int64_t frame, int fps) {
  if (camera != plan.faulty_camera) return frame;
  if (has(plan.faults, SimulatedFault::frozen_camera)) return 0;
  if (has(plan.faults, SimulatedFault::late_images)) {
    return std::max<std::int64_t>(0, frame - kLateFrames);
  }
  if (has(plan.faults, SimulatedFault::slow_camera) && frame >= plan.fault_begin) {
    const auto step = std::max<std::int64_t>(2, static_cast<std::int64_t>(fps / kSlowHz));
    return plan.fault_begin + (frame - plan.fault_begin) / step * step;
  }
  return frame;
}

arrow::Status append_vector(arrow::FixedSizeListBuilder& list, arrow::FloatBuilder& values,
                            const double* data, std::size_t count) {
  ARROW_RETURN_NOT_OK(list.Append());
  for (std::size_t i = 0; i < count; ++i) {
    ARROW_RETURN_NOT_OK(values.Append(static_cast<float>(data[i])));
  }
  return arrow::Status::OK();
}

class SimulatedFrames final : public FrameReader {
 public:
  SimulatedFrames(const Plan& plan, const SimulatedOptions& options, int camera, FrameRange range)
      : plan_(plan), options_(options), camera_(camera), next_(range.begin), end_(range.end) {}

  FrameShape shape() const override { return {options_.height, options_.width, 3, 1}; }

  Result<bool> next(MutableByteSpan out) override {
    if (next_ >= end_) return false;
    const std::int64_t shown = shown_frame(plan_, camera_, next_, options_.fps);
    ++next_;
    const double time = static_cast<double>(shown) / options_.fps;
    const std::uint64_t noise =
        mix(mix(options_.seed, static_cast<std::uint64_t>(plan_.info.index)),
            static_cast<std::uint64_t>(shown) * 16 + static_cast<std::uint64_t>(camera_));
    draw_scene(*plan_.motion, time, {camera_, options_.width, options_.height}, noise, out);
    return true;
  }

 private:
  const Plan& plan_;
  const SimulatedOptions& options_;
  int camera_;
  std::int64_t next_;
  std::int64_t end_;
};

class SimulatedEpisode final : public Episode {
 public:
  SimulatedEpisode(const Plan& plan, const SimulatedOptions& options, const Schema& schema)
      : plan_(plan), options_(options), schema_(schema) {}

  const EpisodeInfo& info() const override { return plan_.info; }
  const Schema& schema() const override { return schema_; }

  Result<std::shared_ptr<arrow::RecordBatch>> columns(FrameRange range) const override {
    if (range.begin < 0 || range.end > plan_.info.length || range.begin > range.end) {
      return out_of_range(fmt::format("frames [{}, {}) of an episode of {}", range.begin, range.end,
                                      plan_.info.length));
    }
    std::shared_ptr<arrow::RecordBatch> batch;
    const arrow::Status status = build(range, batch);
    if (!status.ok()) return resource_exhausted(status.ToString());
    return batch;
  }

  Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                              FrameForm form) const override {
    const int index = camera_index(camera);
    if (index < 0 || !has_camera(camera)) {
      return not_found(fmt::format("episode {}: no camera {}", plan_.info.index, camera));
    }
    if (form.layout != FrameLayout::hwc || form.width != 0 || form.crop_width != 0) {
      return unimplemented("simulated frames are drawn at full size, height by width by channel");
    }
    const std::int64_t there = frames_there(index);
    range.end = std::min(range.end, there);
    return std::unique_ptr<FrameReader>(
        std::make_unique<SimulatedFrames>(plan_, options_, index, range));
  }

  Result<std::string> task_text(std::int64_t task_index) const override {
    if (task_index < 0 || task_index >= options_.tasks) {
      return data_loss(fmt::format("task_index {} is in no task list", task_index));
    }
    return task_name(task_index);
  }

  bool has_camera(std::string_view camera) const override {
    const int index = camera_index(camera);
    return index >= 0 && !(index == plan_.faulty_camera &&
                           has(plan_.faults, SimulatedFault::camera_loss));
  }

 private:
  int camera_index(std::string_view camera) const {
    for (int i = 0; i < options_.cameras; ++i) {
      if (camera_name(i) == camera) return i;
    }
    return -1;
  }

  std::int64_t frames_there(int camera) const {
    const bool shorter = camera == plan_.faulty_camera &&
                         has(plan_.faults, SimulatedFault::length_mismatch);
    return shorter ? std::max<std::int64_t>(1, plan_.info.length - 3) : plan_.info.length;
  }

  arrow::Status build(FrameRange range, std::shared_ptr<arrow::RecordBatch>& out) const {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    const auto add = [&](const std::string& name, const std::shared_ptr<arrow::Array>& array) {
      fields.push_back(arrow::field(name, array->type()));
      arrays.push_back(array);
    };
    const auto time_of = [&](std::int64_t frame) { return static_cast<double>(frame) / options_.fps; };

    for (const bool action : {false, true}) {
      // A command is what the arm reaches two frames later.
      const double lead = action ? 2.0 / options_.fps : 0.0;
      const int short_by = action && has(plan_.faults, SimulatedFault::wrong_shape) ? 1 : 0;
      const auto joint_count = static_cast<std::size_t>(simulated::kArms * simulated::kArmDof - short_by);
      auto joint_values = std::make_shared<arrow::FloatBuilder>();
      arrow::FixedSizeListBuilder joints(arrow::default_memory_pool(), joint_values,
                                         static_cast<int>(joint_count));
      auto pose_values = std::make_shared<arrow::FloatBuilder>();
      arrow::FixedSizeListBuilder poses(arrow::default_memory_pool(), pose_values,
                                        simulated::kArms * 8);
      for (std::int64_t frame = range.begin; frame < range.end; ++frame) {
        std::vector<double> joint;
        std::vector<double> pose;
        for (int arm = 0; arm < simulated::kArms; ++arm) {
          const auto state = plan_.motion->arm(arm, time_of(frame) + lead);
          joint.insert(joint.end(), state.begin(), state.end());
          const auto tool = plan_.motion->tool(arm, time_of(frame) + lead);
          pose.insert(pose.end(), tool.begin(), tool.end());
        }
        if (!action && has(plan_.faults, SimulatedFault::non_finite) &&
            frame >= plan_.fault_begin && frame < plan_.fault_begin + 4) {
          joint[2] = std::numeric_limits<double>::quiet_NaN();
        }
        ARROW_RETURN_NOT_OK(append_vector(joints, *joint_values, joint.data(), joint_count));
        ARROW_RETURN_NOT_OK(append_vector(poses, *pose_values, pose.data(), pose.size()));
      }
      ARROW_ASSIGN_OR_RAISE(auto joint_array, joints.Finish());
      ARROW_ASSIGN_OR_RAISE(auto pose_array, poses.Finish());
      add(action ? "action.qpos" : "observations.state.qpos", joint_array);
      if (action || !has(plan_.faults, SimulatedFault::missing_column)) {
        add(action ? "action.eef" : "observations.state.eef", pose_array);
      }
    }
    if (options_.inline_images) ARROW_RETURN_NOT_OK(add_images(range, fields, arrays));

    arrow::DoubleBuilder capture;
    arrow::FloatBuilder timestamp;
    std::array<arrow::Int64Builder, 5> numbers;  // capture ns, frame, episode, index, task
    for (std::int64_t frame = range.begin; frame < range.end; ++frame) {
      const std::int64_t stamp = plan_.start_ns + frame_time_ns(frame, schema_.fps);
      ARROW_RETURN_NOT_OK(capture.Append(static_cast<double>(stamp) * 1e-9));
      ARROW_RETURN_NOT_OK(timestamp.Append(frame_timestamp_f32(frame, schema_.fps)));
      const std::array<std::int64_t, 5> row{stamp, frame, plan_.info.index,
                                            plan_.index_begin + frame, plan_.task};
      for (std::size_t i = 0; i < row.size(); ++i) ARROW_RETURN_NOT_OK(numbers[i].Append(row[i]));
    }
    ARROW_ASSIGN_OR_RAISE(auto capture_array, capture.Finish());
    add("capture_time", capture_array);
    ARROW_ASSIGN_OR_RAISE(auto capture_ns_array, numbers[0].Finish());
    add("capture_time_ns", capture_ns_array);
    ARROW_ASSIGN_OR_RAISE(auto timestamp_array, timestamp.Finish());
    add("timestamp", timestamp_array);
    const std::array<const char*, 4> names{"frame_index", "episode_index", "index", "task_index"};
    for (std::size_t i = 0; i < names.size(); ++i) {
      ARROW_ASSIGN_OR_RAISE(auto array, numbers[i + 1].Finish());
      add(names[i], array);
    }
    out = arrow::RecordBatch::Make(arrow::schema(fields), range.size(), arrays);
    return arrow::Status::OK();
  }

  arrow::Status add_images(FrameRange range, arrow::FieldVector& fields,
                           arrow::ArrayVector& arrays) const {
    const auto type = arrow::struct_(
        {arrow::field("bytes", arrow::binary()), arrow::field("path", arrow::utf8())});
    for (int camera = 0; camera < options_.cameras; ++camera) {
      if (!has_camera(camera_name(camera))) continue;
      auto bytes = std::make_shared<arrow::BinaryBuilder>();
      auto paths = std::make_shared<arrow::StringBuilder>();
      arrow::StructBuilder builder(type, arrow::default_memory_pool(), {bytes, paths});
      SimulatedFrames reader(plan_, options_, camera, range);
      Bytes pixels(reader.shape().frame_bytes());
      for (std::int64_t frame = range.begin; frame < range.end; ++frame) {
        if (auto drawn = reader.next(pixels); !drawn.ok()) {
          return arrow::Status::Invalid(drawn.status().to_string());
        }
        auto png = encode_png(reader.shape(), pixels, 1);
        if (!png.ok()) return arrow::Status::Invalid(png.status().to_string());
        ARROW_RETURN_NOT_OK(builder.Append());
        ARROW_RETURN_NOT_OK(bytes->Append(png->data(), static_cast<std::int32_t>(png->size())));
        ARROW_RETURN_NOT_OK(paths->Append(fmt::format("frame_{:06}.png", frame)));
      }
      ARROW_ASSIGN_OR_RAISE(auto array, builder.Finish());
      fields.push_back(arrow::field(camera_name(camera), type));
      arrays.push_back(array);
    }
    return arrow::Status::OK();
  }

  const Plan& plan_;
  const SimulatedOptions& options_;
  const Schema& schema_;
};

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
    const bool faulty = camera == plan.faulty_camera;
    if (faulty && has(plan.faults, SimulatedFault::camera_loss)) continue;
    const bool late = faulty && has(plan.faults, SimulatedFault::late_images);
    const bool slow = faulty && has(plan.faults, SimulatedFault::slow_camera);
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
    stats.set("gaps_over_tolerance", late || slow ? plan.info.length : std::int64_t{0});
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
  row.set("mode", "collection");
  row.set("started_at", iso_time(plan.start_ns));
  row.set("ended_at", iso_time(plan.start_ns + frame_time_ns(plan.info.length, {options.fps, 1})));
  row.set("duration_seconds", static_cast<double>(plan.info.length) / options.fps);
  row.set("robot_id", options.robot);
  row.set("session_id", fmt::format("simulated-{}", options.seed));
}

class SimulatedSource final : public EpisodeSource {
 public:
  explicit SimulatedSource(const SimulatedOptions& options)
      : options_(options), schema_(make_schema(options)), name_("simulated") {
    std::int64_t index = 0;
    std::int64_t start_ns = kFirstStartNs;
    plans_.reserve(static_cast<std::size_t>(options.episodes));
    for (std::int64_t episode = 0; episode < options.episodes; ++episode) {
      plans_.push_back(make_plan(episode, index, start_ns));
      index += plans_.back().info.length;
      start_ns += frame_time_ns(plans_.back().info.length, schema_.fps) + 20'000'000'000;
    }
  }

  const Schema& schema() const override { return schema_; }
  const std::string& name() const override { return name_; }
  std::string_view format() const override { return "simulated"; }
  std::int64_t size() const override { return static_cast<std::int64_t>(plans_.size()); }
  const EpisodeInfo& info(std::int64_t i) const override {
    return plans_[static_cast<std::size_t>(i)].info;
  }
  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override {
    if (i < 0 || i >= size()) return out_of_range(fmt::format("episode {} of {}", i, size()));
    return std::unique_ptr<Episode>(std::make_unique<SimulatedEpisode>(
        plans_[static_cast<std::size_t>(i)], options_, schema_));
  }

 private:
  Plan make_plan(std::int64_t episode, std::int64_t index_begin, std::int64_t start_ns) const {
    Plan plan;
    plan.faults = faults_of(options_, episode);
    plan.task = episode % options_.tasks;
    plan.index_begin = index_begin;
    plan.start_ns = start_ns;
    Random random(mix(options_.seed, static_cast<std::uint64_t>(episode)));
    double seconds = options_.seconds * random.uniform(0.95, 1.05);
    double idle_begin = 0;
    double idle_end = 0;
    if (has(plan.faults, SimulatedFault::short_episode)) {
      seconds = std::min(seconds, 0.25);
    } else if (has(plan.faults, SimulatedFault::idle_span)) {
      seconds = std::max(seconds, kIdleSeconds + 2.0);
      idle_begin = 0.3 * (seconds - kIdleSeconds);
      idle_end = idle_begin + kIdleSeconds;
    }
    plan.info.index = episode;
    plan.info.length =
        std::max<std::int64_t>(2, static_cast<std::int64_t>(std::llround(seconds * options_.fps)));
    plan.info.tasks = {task_name(plan.task)};
    plan.faulty_camera = static_cast<int>(random.next() % static_cast<std::uint64_t>(options_.cameras));
    if (has(plan.faults, SimulatedFault::frozen_camera)) plan.faulty_camera = 0;
    plan.fault_begin = plan.info.length / 3;
    plan.motion = std::make_shared<const Motion>(
        random.next(), static_cast<double>(plan.info.length) / options_.fps, idle_begin, idle_end);
    plan.info.row.set("episode_index", episode);
    plan.info.row.set("tasks", string_list(plan.info.tasks));
    plan.info.row.set("length", plan.info.length);
    add_recorder_keys(options_, plan);
    return plan;
  }

  SimulatedOptions options_;
  Schema schema_;
  std::string name_;
  std::vector<Plan> plans_;
};

}  // namespace

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
      camera_loss, frozen_camera, late_images,     short_episode, non_finite,
      missing_column, wrong_shape, length_mismatch, idle_span,     slow_camera};
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
      return invalid_argument(
          fmt::format("fault '{}' is not known; there are none, some, all, or a list of:{}", word,
                      known));
    }
    if (!has(out, *at)) out.push_back(*at);
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
  const std::int64_t offset = static_cast<std::int64_t>(mix(options.seed, 99) % 3);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t room = std::max<std::int64_t>(1, options.episodes - 1);
    const std::int64_t at = options.episodes == 1 ? 0 : 1 + (i + offset) % room;
    if (at == episode) out.push_back(options.faults[static_cast<std::size_t>(i)]);
  }
  return out;
}

Result<std::unique_ptr<EpisodeSource>> open_simulated(const SimulatedOptions& options) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  return std::unique_ptr<EpisodeSource>(std::make_unique<SimulatedSource>(options));
}

}  // namespace ropewalk
