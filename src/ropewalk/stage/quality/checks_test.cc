#include "ropewalk/stage/quality/checks.h"

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "ropewalk/stage/quality/picture_metrics_internal.h"
#include "ropewalk/stage/quality/signals_internal.h"

namespace ropewalk {
namespace {

constexpr int kWidth = 72;  // no multiple of a block
constexpr int kHeight = 40;
constexpr double kFps = 30.0;

using Picture = Bytes;
using Paint = std::function<Picture(std::int64_t frame)>;

// A live picture: a texture that moves with the frame, and sensor noise.
Picture live_picture(std::int64_t frame, double shift) {
  std::mt19937 noise(static_cast<unsigned>(frame) + 7);
  Picture out(kWidth * kHeight);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const double value = 120 + 60 * std::sin(0.3 * (x + 12 * shift)) * std::cos(0.2 * y);
      out[static_cast<std::size_t>(y * kWidth + x)] =
          static_cast<std::uint8_t>(value + static_cast<double>(noise() % 5));
    }
  }
  return out;
}

struct FakeCamera {
  Paint paint;
  std::map<std::int64_t, FrameShape> sizes;  ///< shape from that frame on
  std::optional<Status> fault;
};

class FakeFrames final : public FrameReader {
 public:
  FakeFrames(const FakeCamera& camera, FrameRange range) : camera_(camera), range_(range) {
    shape_ = shape_at(range.begin);
  }
  FrameShape shape() const override { return shape_; }
  Result<bool> next(MutableByteSpan out) override {
    if (range_.begin == range_.end) return false;
    if (!(shape_at(range_.begin) == shape_)) return invalid_argument("another size");
    const Picture picture = camera_.paint(range_.begin++);
    std::copy_n(picture.begin(), std::min(out.size(), picture.size()), out.begin());
    return true;
  }

 private:
  FrameShape shape_at(std::int64_t frame) const {
    FrameShape shape{kHeight, kWidth, 1, 1};
    for (const auto& [from, size] : camera_.sizes) {
      if (frame >= from) shape = size;
    }
    return shape;
  }
  const FakeCamera& camera_;
  FrameRange range_;
  FrameShape shape_;
};

// An episode of one arm with a wrist and a top camera, as an inline-image dataset has it.
class FakeEpisode final : public Episode {
 public:
  explicit FakeEpisode(std::int64_t length) {
    info_.length = length;
    schema_.fps = {30, 1};
    schema_.features = default_features();
    add_column("observation.state", 7);
    add_column("action", 7);
    for (std::int64_t i = 0; i < length; ++i) {
      for (int joint = 0; joint < 7; ++joint) {
        const auto value = static_cast<float>(position(i) + 0.1 * joint);
        columns_["observation.state"].push_back(value);
        columns_["action"].push_back(value + 0.01F);
      }
    }
    for (const char* name : {"observation.images.top", "observation.images.left_wrist"}) {
      schema_.features.push_back({.name = name,
                                  .kind = FeatureKind::image,
                                  .dtype = DType::uint8,
                                  .shape = {kHeight, kWidth, 3}});
      cameras_[name].paint = [](std::int64_t frame) {
        return live_picture(frame, position(frame));
      };
    }
  }
  // Half a radian per second, back and forth within 2 seconds each way.
  static double position(std::int64_t frame) {
    const double t = static_cast<double>(frame) / kFps;
    return std::abs(std::fmod(t, 4.0) - 2.0) * 0.5;
  }
  void add_column(const std::string& name, std::int64_t width) {
    schema_.features.push_back(
        {.name = name, .kind = FeatureKind::column, .dtype = DType::float32, .shape = {width}});
    columns_[name];
  }
  float& at(const std::string& column, std::int64_t frame, int element) {
    return columns_[column][static_cast<std::size_t>(frame * 7 + element)];
  }
  void hold(std::int64_t begin, std::int64_t end, bool command_too) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (int joint = 0; joint < 7; ++joint) {
        at("observation.state", i, joint) = at("observation.state", begin, joint);
        if (command_too) at("action", i, joint) = at("action", begin, joint);
      }
    }
  }

  const EpisodeInfo& info() const override { return info_; }
  const Schema& schema() const override { return schema_; }
  Result<std::shared_ptr<arrow::RecordBatch>> columns(FrameRange range) const override {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const Feature& feature : schema_.features) {
      const auto found = columns_.find(feature.name);
      if (found == columns_.end()) continue;
      if (column_faults_.contains(feature.name)) return column_faults_.at(feature.name);
      const auto width = static_cast<std::int32_t>(feature.elements());
      arrow::FloatBuilder values;
      const float* from = found->second.data() + range.begin * width;
      EXPECT_TRUE(values.AppendValues(from, range.size() * width).ok());
      const auto flat = *values.Finish();
      const auto type = arrow::fixed_size_list(arrow::float32(), width);
      fields.push_back(arrow::field(feature.name, type));
      arrays.push_back(std::make_shared<arrow::FixedSizeListArray>(type, range.size(), flat));
    }
    return arrow::RecordBatch::Make(arrow::schema(fields), range.size(), arrays);
  }
  Result<std::shared_ptr<arrow::RecordBatch>> columns_of(const std::vector<std::string>& names,
                                                         FrameRange range) const override {
    if (names.size() == 1 && !column_faults_.contains(names[0])) {
      FakeEpisode other(*this);
      other.column_faults_.clear();
      return other.Episode::columns_of(names, range);
    }
    return Episode::columns_of(names, range);
  }
  Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                              FrameForm) const override {
    const FakeCamera& found = cameras_.at(std::string(camera));
    if (found.fault) return *found.fault;
    return std::unique_ptr<FrameReader>(std::make_unique<FakeFrames>(found, range));
  }
  Result<std::string> task_text(std::int64_t) const override { return std::string("task"); }
  bool has_camera(std::string_view camera) const override { return !gone_.contains(camera); }

  EpisodeInfo info_;
  Schema schema_;
  std::map<std::string, std::vector<float>> columns_;
  std::map<std::string, Status> column_faults_;
  std::map<std::string, FakeCamera> cameras_;
  std::set<std::string, std::less<>> gone_;
};

constexpr const char* kTop = "observation.images.top";
constexpr const char* kWrist = "observation.images.left_wrist";

QualityReport check(const FakeEpisode& episode, const QualityOptions& options = {}) {
  auto report = check_episode(episode, options, {});
  EXPECT_TRUE(report.ok()) << report.status().to_string();
  return std::move(report).value();
}

QualityEntry only(const QualityReport& report) {
  EXPECT_EQ(report.issues.size(), 1u) << report.issues_json().dump();
  return report.issues.empty() ? QualityEntry() : report.issues.front();
}

TEST(CheckEpisode, FindsNothingInACleanEpisode) {
  const QualityReport report = check(FakeEpisode(240));
  EXPECT_EQ(report.quality(), "green");
  EXPECT_TRUE(report.issues.empty()) << report.issues_json().dump();
  EXPECT_TRUE(report.findings.empty()) << report.findings_json().dump();
  EXPECT_EQ(report.pictures, 480);
}

TEST(CheckEpisode, FindsACameraThatShowsOnePicture) {
  FakeEpisode episode(120);
  episode.cameras_[kTop].paint = [](std::int64_t) { return live_picture(0, 0); };
  const QualityEntry issue = only(check(episode));
  EXPECT_EQ(issue.code, "frozen_camera");
  EXPECT_EQ(issue.stream, kTop);
  EXPECT_EQ(issue.count, 120);
  EXPECT_EQ(issue.last_frame, 119);
}

TEST(CheckEpisode, ExcusesAFrozenWristCameraWhileItsArmRests) {
  FakeEpisode episode(60);
  episode.hold(0, 60, true);
  episode.cameras_[kWrist].paint = [](std::int64_t) { return live_picture(0, 0); };
  EXPECT_EQ(check(episode).quality(), "green");
  episode.cameras_[kTop].paint = episode.cameras_[kWrist].paint;
  EXPECT_EQ(only(check(episode)).stream, kTop);  // a camera outside has no excuse
}

TEST(CheckEpisode, FindsAStallInTheMiddle) {
  FakeEpisode episode(240);
  episode.cameras_[kWrist].paint = [](std::int64_t frame) {
    const std::int64_t shown = frame >= 100 && frame < 136 ? 100 : frame;  // 1.2 s
    return live_picture(shown, FakeEpisode::position(shown));
  };
  const QualityReport report = check(episode);
  ASSERT_TRUE(report.has("camera_stalled", kWrist)) << report.issues_json().dump();
  for (const QualityEntry& issue : report.issues) {
    EXPECT_EQ(issue.stream, kWrist);
    if (issue.code != "camera_stalled") continue;
    EXPECT_EQ(issue.first_frame, 100);
    EXPECT_EQ(issue.last_frame, 135);
    EXPECT_NEAR(*issue.max, 1.2, 1e-9);
  }
}

TEST(CheckEpisode, DoesNotCallARobotAtRestAStall) {
  FakeEpisode episode(240);
  episode.hold(60, 150, true);
  const auto still = [](std::int64_t frame) {
    const std::int64_t shown = frame >= 60 && frame < 150 ? 60 : frame;
    return live_picture(shown, FakeEpisode::position(shown));
  };
  episode.cameras_[kWrist].paint = still;
  episode.cameras_[kTop].paint = still;
  const QualityReport report = check(episode);
  EXPECT_TRUE(report.issues.empty()) << report.issues_json().dump();
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].code, "idle_span");
  EXPECT_EQ(report.findings[0].severity, "info");
  // Half a radian per second: a frame before and after still lies within 0.01 rad only with itself.
  EXPECT_NEAR(static_cast<double>(*report.findings[0].first_frame), 60, 1);
  EXPECT_NEAR(static_cast<double>(*report.findings[0].last_frame), 149, 1);
}

TEST(CheckEpisode, FindsACameraThatDropsToFiveHertz) {
  FakeEpisode episode(240);
  episode.cameras_[kTop].paint = [](std::int64_t frame) {
    const std::int64_t shown = frame < 120 ? frame : frame / 6 * 6;
    return live_picture(shown, FakeEpisode::position(shown));
  };
  const QualityReport report = check(episode);
  ASSERT_TRUE(report.has("source_rate_low", kTop)) << report.issues_json().dump();
  for (const QualityEntry& issue : report.issues) {
    EXPECT_EQ(issue.stream, kTop);
    if (issue.code != "source_rate_low") continue;
    EXPECT_NEAR(*issue.max, 5.0, 0.1);
    EXPECT_GE(*issue.first_frame, 90);  // the first window that holds a few repeats
    EXPECT_EQ(issue.last_frame, 239);
  }
}

TEST(CheckEpisode, FindsBlackAndWhiteSpansThatLast) {
  FakeEpisode episode(120);
  const auto painted = [](std::int64_t begin, std::int64_t end, std::uint8_t level) {
    return [=](std::int64_t frame) {
      Picture picture = live_picture(frame, FakeEpisode::position(frame));
      if (frame >= begin && frame < end) {
        for (std::size_t i = 0; i < picture.size(); ++i) {
          picture[i] = static_cast<std::uint8_t>(level + (i + static_cast<std::size_t>(frame)) % 4);
        }
      }
      return picture;
    };
  };
  episode.cameras_[kTop].paint = painted(30, 50, 2);
  EXPECT_EQ(only(check(episode)).code, "black_frames");
  EXPECT_EQ(only(check(episode)).first_frame, 30);
  EXPECT_EQ(only(check(episode)).last_frame, 49);
  episode.cameras_[kTop].paint = painted(40, 60, 251);
  EXPECT_EQ(only(check(episode)).code, "overexposed_frames");
  EXPECT_EQ(only(check(episode)).count, 20);
  episode.cameras_[kTop].paint = painted(40, 50, 2);  // a third of a second: a flash
  EXPECT_EQ(check(episode).quality(), "green");
}

TEST(CheckEpisode, FindsBlurOnlyWithALimit) {
  FakeEpisode episode(60);
  episode.cameras_[kTop].paint = [](std::int64_t frame) {
    Picture picture(kWidth * kHeight);
    for (std::size_t i = 0; i < picture.size(); ++i) {
      picture[i] =
          static_cast<std::uint8_t>(100 + static_cast<std::int64_t>(i % kWidth) / 2 + frame % 30);
    }
    return picture;
  };
  EXPECT_TRUE(check(episode).findings.empty());
  const QualityReport report = check(episode, {.blurred_min_sharpness = 5.0});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].code, "blurred_frames");
  EXPECT_EQ(report.findings[0].count, 60);
  EXPECT_EQ(report.quality(), "green");
}

TEST(CheckEpisode, FindsAChangeOfResolution) {
  FakeEpisode episode(60);
  episode.cameras_[kTop].sizes[20] = {kHeight / 2, kWidth, 1, 1};
  const QualityEntry issue = only(check(episode));
  EXPECT_EQ(issue.code, "resolution_changed");
  EXPECT_EQ(issue.first_frame, 20);
  EXPECT_EQ(issue.count, 40);
}

TEST(CheckEpisode, FindsAJointThatIgnoresItsCommand) {
  FakeEpisode episode(240);
  for (std::int64_t i = 60; i < 130; ++i) {
    episode.at("observation.state", i, 2) = episode.at("observation.state", 60, 2);
  }
  const QualityEntry issue = only(check(episode));
  EXPECT_EQ(issue.code, "stuck_joint");
  EXPECT_EQ(issue.stream, "observation.state");
  EXPECT_EQ(issue.first_frame, 60);
  EXPECT_EQ(issue.last_frame, 129);

  FakeEpisode gripper(240);  // the seventh of seven holds an object: no fault
  for (std::int64_t i = 60; i < 130; ++i) gripper.at("observation.state", i, 6) = 0.02F;
  EXPECT_EQ(check(gripper).quality(), "green");
}

TEST(CheckEpisode, ExcusesAJointWhoseCommandIsAnotherQuantity) {
  FakeEpisode episode(240);
  for (std::int64_t i = 0; i < 240; ++i) {
    for (int joint = 0; joint < 7; ++joint) {
      episode.at("action", i, joint) += 5.0F;  // far from the state: no position of this joint
    }
    episode.at("observation.state", i, 2) = 0.3F;
  }
  EXPECT_EQ(check(episode).quality(), "green");
}

TEST(CheckEpisode, FindsValuesThatAreNotFinite) {
  FakeEpisode episode(90);
  episode.at("observation.state", 10, 3) = NAN;
  episode.at("observation.state", 11, 0) = INFINITY;
  episode.at("observation.state", 50, 6) = -INFINITY;
  const QualityEntry issue = only(check(episode));
  EXPECT_EQ(issue.code, "non_finite_value");
  EXPECT_EQ(issue.count, 3);
  EXPECT_EQ(issue.first_frame, 10);
  EXPECT_EQ(issue.last_frame, 50);
  EXPECT_EQ(issue.spans, (std::vector<FrameRange>{{10, 12}, {50, 51}}));
}

TEST(CheckEpisode, NamesAColumnThatIsMissingOrOfAnotherShape) {
  FakeEpisode episode(60);
  episode.column_faults_.emplace("action", data_loss("no column").with_reason("column_missing"));
  EXPECT_EQ(only(check(episode)).code, "missing_configured_column");
  EXPECT_EQ(only(check(episode)).stream, "action");
  episode.column_faults_.clear();
  episode.column_faults_.emplace("action", data_loss("6 values").with_reason("value_invalid"));
  EXPECT_EQ(only(check(episode)).code, "invalid_vector_dim");
  episode.column_faults_.clear();
  for (const char* name : {"action", "observation.state"}) {
    episode.column_faults_.emplace(name, not_found("no such file"));
  }
  EXPECT_EQ(only(check(episode)).code, "unreadable_table");
}

TEST(CheckEpisode, NamesCamerasThatAreGoneOrDoNotFit) {
  FakeEpisode episode(60);
  episode.gone_.insert(kTop);
  EXPECT_EQ(only(check(episode)).code, "missing_camera_stream");
  episode.gone_.clear();
  episode.cameras_[kTop].fault =
      data_loss("57 frames, 60 rows").with_reason("frame_count_mismatch");
  EXPECT_EQ(only(check(episode)).code, "frame_count_mismatch");
  episode.cameras_[kTop].fault = data_loss("picture 3 is damaged");
  EXPECT_EQ(only(check(episode)).code, "unreadable_camera");
}

TEST(CheckEpisode, TakesTheShortestLengthFromOptionsOrDataset) {
  FakeEpisode episode(20);
  EXPECT_EQ(check(episode).quality(), "green");
  EXPECT_EQ(only(check(episode, {.min_episode_frames = 21})).code, "episode_too_short");
  episode.schema_.extra = *parse_json(R"({"quality":{"checks":{"min_episode_frames":30}}})");
  EXPECT_EQ(only(check(episode)).code, "episode_too_short");
}

TEST(CheckEpisode, ReadsWhatTheRecorderWroteIntoTheRow) {
  FakeEpisode episode(60);
  episode.info_.row = *parse_json(R"({
    "alignment_grid_start": 100.0, "alignment_image_skew_tolerance_sec": 0.017,
    "alignment_image_max_skew_sec": {"observation.images.top": 0.05,
                                     "observation.images.left_wrist": 0.01},
    "alignment_image_stream_stats": {"observation.images.top":
      {"estimated_hz": 30.0, "max_gap_sec": 0.5, "max_gap_start_time": 100.5,
       "max_gap_end_time": 101.0}},
    "source_fps": {"observation.images.left_wrist": 24.9, "observation.images.top": 29.0},
    "capture_drops": {"action_qpos": {"queue_full": 3}, "state_force": {"late": 2}}})");
  const QualityReport report = check(episode);
  ASSERT_EQ(report.issues.size(), 4u) << report.issues_json().dump();
  EXPECT_TRUE(report.has("image_skew_exceeded", kTop));
  EXPECT_TRUE(report.has("source_rate_low", kWrist));
  EXPECT_TRUE(report.has("source_drop", "action_qpos"));
  ASSERT_EQ(report.issues[1].code, "source_gap");
  EXPECT_EQ(report.issues[1].first_frame, 15);
  EXPECT_EQ(report.issues[1].last_frame, 29);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].stream, "state_force");
}

TEST(CheckEpisode, KeepsWhatOnlyTheRecorderSawAndDropsWhatIsGone) {
  FakeEpisode episode(60);
  Json recorded = *parse_json(R"([{"severity":"red","code":"frozen_camera","detail":"old"}])");
  for (int i = 0; i < 5000; ++i) {  // one entry per frame, as older recorders wrote
    recorded.push_back(*parse_json(R"({"severity":"red","code":"missing_camera","detail":"d"})"));
  }
  episode.info_.issues = recorded;
  const QualityReport report = check(episode);
  EXPECT_EQ(only(report).code, "missing_camera");
  EXPECT_EQ(only(report).count, 5000);
  EXPECT_LT(report.issues_json().dump().size(), 16u << 10);
}

TEST(CheckEpisode, StopsOnRequest) {
  std::stop_source stop;
  stop.request_stop();
  RunContext context;
  context.stop = stop.get_token();
  EXPECT_EQ(check_episode(FakeEpisode(60), {}, context).status().code(), StatusCode::cancelled);
}

TEST(MeasurePicture, AgreesWithAPlainLoop) {
  const FrameShape shape{33, 50, 1, 1};
  std::mt19937 random(3);
  std::array<Bytes, 3> pictures;
  for (Bytes& picture : pictures) {
    picture.resize(shape.frame_bytes());
    for (std::uint8_t& sample : picture) sample = static_cast<std::uint8_t>(random());
  }
  std::uint64_t luma = 0, bright = 0, one = 0, two = 0;
  for (std::size_t i = 0; i < pictures[0].size(); ++i) {
    luma += pictures[0][i];
    bright += pictures[0][i] >= 200 ? 1U : 0U;
    one += static_cast<std::uint64_t>(std::abs(pictures[0][i] - pictures[1][i]));
    two += static_cast<std::uint64_t>(std::abs(pictures[0][i] - pictures[2][i]));
  }
  std::vector<std::uint8_t> blocks;
  const auto sums =
      quality::measure_picture(pictures[0], pictures[1], pictures[2], shape, 200, blocks);
  EXPECT_EQ(sums.luma, luma);
  EXPECT_EQ(sums.bright, bright);
  EXPECT_EQ(sums.difference, one);
  EXPECT_EQ(sums.difference_two, two);
  ASSERT_EQ(blocks.size(), 12u);  // 3 rows of 4
  std::uint32_t corner = 0;       // the last block: 1 row of 2 samples
  corner += pictures[0][32 * 50 + 48];
  corner += pictures[0][32 * 50 + 49];
  EXPECT_EQ(blocks.back(), corner / 2);
}

TEST(CameraPlace, TellsWristCamerasAndTheirArm) {
  EXPECT_TRUE(quality::camera_place("observation.images.cam_left_wrist").is_wrist);
  EXPECT_EQ(quality::camera_place("observation.images.cam_left_wrist").arm, quality::Arm::left);
  EXPECT_EQ(quality::camera_place("wrist").arm, quality::Arm::none);
  EXPECT_FALSE(quality::camera_place("observation.images.left").is_wrist);
}

TEST(QualityOptions, NamesTheNearestKnownKey) {
  const auto options = quality_options_from_json(*parse_json(R"({"black_max_luma":10})"));
  EXPECT_EQ(options->black_max_luma, 10.0);
  const Status unknown = quality_options_from_json(*parse_json(R"({"black_max_lum":10})")).status();
  EXPECT_NE(unknown.message().find("did you mean black_max_luma"), std::string_view::npos);
  EXPECT_EQ(quality_options_from_json(*parse_json(R"({"static_min_share":7})")).status().code(),
            StatusCode::invalid_argument);
  EXPECT_EQ(quality_options_from_json(*parse_json(R"({"pictures":1})")).status().code(),
            StatusCode::invalid_argument);
}

TEST(QualityEntry, SurvivesJson) {
  const Json json = *parse_json(
      R"({"severity":"red","code":"c","detail":"d","count":3,"first_frame":1,"last_frame":9,"max":0.5,"stream":"s","spans":[[1,2],[8,10]],"camera":"kept"})");
  EXPECT_EQ(to_json(issue_from_json(json)), json);
}

}  // namespace
}  // namespace ropewalk
