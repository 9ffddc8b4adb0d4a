#include "ropewalk/dataset/simulated/simulated.h"

#include <array>
#include <limits>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/dataset/simulated/plan_internal.h"
#include "ropewalk/dataset/simulated/scene_internal.h"
#include "ropewalk/format/image/image.h"

namespace ropewalk {
namespace {

using simulated::ArmPose;
using simulated::ArmState;
using simulated::mix;
using simulated::Plan;
using simulated::Random;

constexpr std::int64_t kFirstStartNs = 1767254400LL * 1000000000;  // 2026-01-01T08:00:00Z
constexpr std::int64_t kPauseNs = 20LL * 1000000000;               // between two episodes
constexpr std::int64_t kLeadFrames = 2;  // a command is where the arm is so many frames later
constexpr double kEncoderNoise = 2e-5;   // radians
constexpr std::size_t kJointValues = std::size_t{simulated::kArms} * simulated::kArmDof;
constexpr std::size_t kPoseValues = std::size_t{simulated::kArms} * 8;

/// What all episodes of a source share.
struct Shared {
  explicit Shared(const SimulatedOptions& chosen)
      : options(chosen),
        schema(simulated::make_schema(chosen)),
        scenery(chosen.cameras, chosen.width, chosen.height) {}
  SimulatedOptions options;
  Schema schema;
  simulated::Scenery scenery;
};

int camera_index(const SimulatedOptions& options, std::string_view camera) {
  for (int i = 0; i < options.cameras; ++i) {
    if (simulated::camera_name(i) == camera) return i;
  }
  return -1;
}

class SimulatedFrames final : public FrameReader {
 public:
  SimulatedFrames(const Shared& shared, const Plan& plan, int camera, FrameRange range)
      : shared_(shared),
        plan_(plan),
        camera_(camera),
        next_(range.begin),
        end_(range.end),
        scene_(shared.scenery, camera) {}

  FrameShape shape() const override {
    return {shared_.options.height, shared_.options.width, 3, 1};
  }

  Result<bool> next(MutableByteSpan out) override {
    if (next_ >= end_) return false;
    if (out.size() != shape().frame_bytes()) {
      return invalid_argument(
          fmt::format("a frame takes {} bytes, not {}", shape().frame_bytes(), out.size()));
    }
    const std::int64_t shown = plan_.shown_frame(camera_, next_++, shared_.options.fps);
    const std::uint64_t noise =
        mix(mix(shared_.options.seed, static_cast<std::uint64_t>(plan_.info.index)),
            static_cast<std::uint64_t>(shown) * 16 + static_cast<std::uint64_t>(camera_));
    scene_.draw(*plan_.motion, frame_seconds(shown, shared_.schema.fps),
                simulated::task_palette(plan_.task), noise, out);
    return true;
  }

 private:
  const Shared& shared_;
  const Plan& plan_;
  int camera_;
  std::int64_t next_;
  std::int64_t end_;
  simulated::SceneReader scene_;
};

/// Collects rows of vectors into a fixed_size_list<float> column.
class VectorColumn {
 public:
  explicit VectorColumn(std::size_t width)
      : width_(width),
        values_(std::make_shared<arrow::FloatBuilder>()),
        list_(arrow::default_memory_pool(), values_, static_cast<int>(width)) {}
  arrow::Status append(const double* row) {
    ARROW_RETURN_NOT_OK(list_.Append());
    for (std::size_t i = 0; i < width_; ++i) {
      ARROW_RETURN_NOT_OK(values_->Append(static_cast<float>(row[i])));
    }
    return arrow::Status::OK();
  }
  arrow::Result<std::shared_ptr<arrow::Array>> finish() { return list_.Finish(); }

 private:
  std::size_t width_;
  std::shared_ptr<arrow::FloatBuilder> values_;
  arrow::FixedSizeListBuilder list_;
};

class SimulatedEpisode final : public Episode {
 public:
  SimulatedEpisode(const Shared& shared, const Plan& plan) : shared_(shared), plan_(plan) {}

  const EpisodeInfo& info() const override { return plan_.info; }
  const Schema& schema() const override { return shared_.schema; }

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
    const int index = camera_index(shared_.options, camera);
    if (index < 0 || !has_camera(camera)) {
      return not_found(fmt::format("episode {}: no camera {}", plan_.info.index, camera));
    }
    if (form.layout != FrameLayout::hwc || form.width != 0 || form.height != 0 ||
        form.crop_width != 0 || form.crop_height != 0) {
      return unimplemented("simulated frames are drawn whole, [height, width, channel]");
    }
    range.end = std::min(range.end, plan_.pictures(index));
    return std::unique_ptr<FrameReader>(
        std::make_unique<SimulatedFrames>(shared_, plan_, index, range));
  }

  Result<std::string> task_text(std::int64_t task_index) const override {
    if (task_index < 0 || task_index >= shared_.options.tasks) {
      return data_loss(fmt::format("task_index {} is in no task list", task_index));
    }
    return simulated::task_name(task_index);
  }

  bool has_camera(std::string_view camera) const override {
    const int index = camera_index(shared_.options, camera);
    return index >= 0 && plan_.pictures(index) > 0;
  }

 private:
  // Joint angles of both arms and the poses of their tools at a frame: measured or commanded.
  void sample(std::int64_t frame, bool measured, std::array<double, kJointValues>& joints,
              std::array<double, kPoseValues>& poses) const {
    Random random(
        mix(mix(shared_.options.seed, 7), static_cast<std::uint64_t>(plan_.info.index) * 1000003 +
                                              static_cast<std::uint64_t>(frame)));
    const double time = frame_seconds(measured ? frame : frame + kLeadFrames, shared_.schema.fps);
    auto joint = joints.begin();
    auto value = poses.begin();
    for (int arm = 0; arm < simulated::kArms; ++arm) {
      ArmState state = plan_.motion->arm(arm, time);
      if (measured) {
        for (std::size_t i = 0; i < simulated::kArmJoints; ++i) {
          state[i] += random.uniform(-kEncoderNoise, kEncoderNoise);
        }
      }
      joint = std::ranges::copy(state, joint).out;
      value = std::ranges::copy(
                  simulated::tool_pose(simulated::forward(plan_.motion->base(arm), state)), value)
                  .out;
    }
  }

  arrow::Status build(FrameRange range, std::shared_ptr<arrow::RecordBatch>& out) const {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    const auto add = [&](const std::string& name, const std::shared_ptr<arrow::Array>& array) {
      fields.push_back(arrow::field(name, array->type()));
      arrays.push_back(array);
    };
    for (const bool measured : {true, false}) {
      const bool is_short = !measured && plan_.has_fault(SimulatedFault::wrong_shape);
      const bool has_nan = measured && plan_.has_fault(SimulatedFault::non_finite);
      VectorColumn joints(kJointValues - (is_short ? 1 : 0));
      VectorColumn poses(kPoseValues);
      std::array<double, kJointValues> joint{};
      std::array<double, kPoseValues> pose{};
      for (std::int64_t frame = range.begin; frame < range.end; ++frame) {
        sample(frame, measured, joint, pose);
        if (has_nan && frame >= plan_.fault_begin && frame < plan_.fault_begin + 4) {
          joint[2] = std::numeric_limits<double>::quiet_NaN();
        }
        ARROW_RETURN_NOT_OK(joints.append(joint.data()));
        ARROW_RETURN_NOT_OK(poses.append(pose.data()));
      }
      ARROW_ASSIGN_OR_RAISE(auto joint_array, joints.finish());
      ARROW_ASSIGN_OR_RAISE(auto pose_array, poses.finish());
      add(measured ? "observations.state.qpos" : "action.qpos", joint_array);
      if (measured && plan_.has_fault(SimulatedFault::missing_column)) continue;
      add(measured ? "observations.state.eef" : "action.eef", pose_array);
    }
    if (shared_.options.inline_images) ARROW_RETURN_NOT_OK(add_images(range, fields, arrays));

    arrow::DoubleBuilder capture;
    arrow::FloatBuilder timestamp;
    std::array<arrow::Int64Builder, 5> numbers;  // capture ns, frame, episode, index, task
    for (std::int64_t frame = range.begin; frame < range.end; ++frame) {
      const std::int64_t stamp = plan_.start_ns + frame_time_ns(frame, shared_.schema.fps);
      ARROW_RETURN_NOT_OK(capture.Append(static_cast<double>(stamp) * 1e-9));
      ARROW_RETURN_NOT_OK(timestamp.Append(frame_timestamp_f32(frame, shared_.schema.fps)));
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
    for (int camera = 0; camera < shared_.options.cameras; ++camera) {
      const std::int64_t there = plan_.pictures(camera);
      if (there == 0) continue;
      auto bytes = std::make_shared<arrow::BinaryBuilder>();
      auto paths = std::make_shared<arrow::StringBuilder>();
      arrow::StructBuilder builder(type, arrow::default_memory_pool(), {bytes, paths});
      SimulatedFrames reader(shared_, plan_, camera, range);
      Bytes pixels(reader.shape().frame_bytes());
      for (std::int64_t frame = range.begin; frame < range.end; ++frame) {
        if (frame >= there) {  // a picture that never came is a null in its row
          ARROW_RETURN_NOT_OK(builder.AppendNull());
          continue;
        }
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
      fields.push_back(arrow::field(simulated::camera_name(camera), type));
      arrays.push_back(array);
    }
    return arrow::Status::OK();
  }

  const Shared& shared_;
  const Plan& plan_;
};

class SimulatedSource final : public EpisodeSource {
 public:
  explicit SimulatedSource(const SimulatedOptions& options) : shared_(options), name_("simulated") {
    std::int64_t index = 0;
    std::int64_t start_ns = kFirstStartNs;
    plans_.reserve(static_cast<std::size_t>(options.episodes));
    for (std::int64_t episode = 0; episode < options.episodes; ++episode) {
      plans_.push_back(simulated::make_plan(options, episode, index, start_ns));
      index += plans_.back().info.length;
      start_ns += frame_time_ns(plans_.back().info.length, shared_.schema.fps) + kPauseNs;
    }
  }

  const Schema& schema() const override { return shared_.schema; }
  const std::string& name() const override { return name_; }
  std::string_view format() const override { return "simulated"; }
  std::int64_t size() const override { return static_cast<std::int64_t>(plans_.size()); }
  EpisodeInfo info(std::int64_t i) const override {
    return plans_[static_cast<std::size_t>(i)].info;
  }
  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override {
    if (i < 0 || i >= size()) return out_of_range(fmt::format("episode {} of {}", i, size()));
    return std::unique_ptr<Episode>(
        std::make_unique<SimulatedEpisode>(shared_, plans_[static_cast<std::size_t>(i)]));
  }

 private:
  Shared shared_;
  std::string name_;
  std::vector<Plan> plans_;
};

}  // namespace

Result<std::unique_ptr<EpisodeSource>> open_simulated(const SimulatedOptions& options) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  return std::unique_ptr<EpisodeSource>(std::make_unique<SimulatedSource>(options));
}

}  // namespace ropewalk
