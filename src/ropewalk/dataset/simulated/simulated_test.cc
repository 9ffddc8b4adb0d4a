#include "ropewalk/dataset/simulated/simulated.h"

#include <cmath>
#include <set>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/dataset/simulated/scene_internal.h"
#include "ropewalk/format/image/image.h"

namespace ropewalk {
namespace {

SimulatedOptions small(std::vector<SimulatedFault> faults = {}) {
  SimulatedOptions options;
  options.episodes = 3;
  options.seconds = 2.0;
  options.fps = 20;
  options.width = 96;
  options.height = 64;
  options.faults = std::move(faults);
  return options;
}

std::unique_ptr<EpisodeSource> must_open(const SimulatedOptions& options) {
  auto source = open_simulated(options);
  EXPECT_TRUE(source.ok()) << source.status().to_string();
  return std::move(source).value();
}

std::shared_ptr<arrow::RecordBatch> columns(const Episode& episode) {
  auto batch = episode.columns({0, episode.info().length});
  EXPECT_TRUE(batch.ok()) << batch.status().to_string();
  return *batch;
}

// All pictures of a camera, one after the other.
Bytes pictures(const Episode& episode, const std::string& camera, FrameRange range) {
  auto reader = episode.frames(camera, range);
  EXPECT_TRUE(reader.ok()) << reader.status().to_string();
  Bytes out;
  Bytes frame((*reader)->shape().frame_bytes());
  while (true) {
    const auto more = (*reader)->next(frame);
    EXPECT_TRUE(more.ok());
    if (!more.ok() || !*more) return out;
    out.insert(out.end(), frame.begin(), frame.end());
  }
}

float value(const arrow::RecordBatch& batch, const char* name, std::int64_t row, std::int64_t at) {
  const auto list =
      std::static_pointer_cast<arrow::FixedSizeListArray>(batch.GetColumnByName(name));
  const auto floats = std::static_pointer_cast<arrow::FloatArray>(list->values());
  return floats->Value(row * list->value_length() + at);
}

std::int64_t number(const arrow::RecordBatch& batch, const char* name, std::int64_t row) {
  return std::static_pointer_cast<arrow::Int64Array>(batch.GetColumnByName(name))->Value(row);
}

TEST(Simulated, GivesTheSameValuesAndPixelsForTheSameSeed) {
  const auto one = must_open(small());
  const auto two = must_open(small());
  for (std::int64_t i = 0; i < one->size(); ++i) {
    const auto a = one->open(i);
    const auto b = two->open(i);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_TRUE(columns(**a)->Equals(*columns(**b)));
    EXPECT_EQ((*a)->info().row, (*b)->info().row);
    for (const std::string& camera : one->schema().cameras()) {
      EXPECT_EQ(pictures(**a, camera, {0, 5}), pictures(**b, camera, {0, 5})) << camera;
    }
  }
  SimulatedOptions other = small();
  other.seed = 2;
  const auto three = must_open(other);
  EXPECT_NE(pictures(**three->open(0), "observation.images.top", {0, 1}),
            pictures(**one->open(0), "observation.images.top", {0, 1}));
}

TEST(Simulated, ReadsTheSameFromTheMiddle) {
  const auto source = must_open(small());
  const auto episode = source->open(1);
  ASSERT_TRUE(episode.ok());
  const auto whole = columns(**episode);
  const auto part = (*episode)->columns({7, 12});
  ASSERT_TRUE(part.ok());
  EXPECT_TRUE((*part)->Equals(*whole->Slice(7, 5)));
  const Bytes all = pictures(**episode, "observation.images.left_wrist", {0, 12});
  const Bytes tail = pictures(**episode, "observation.images.left_wrist", {7, 12});
  ASSERT_EQ(all.size(), 12U * 96 * 64 * 3);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), all.end() - std::ssize(tail)));
  EXPECT_EQ((*episode)->columns({0, 10000}).status().code(), StatusCode::out_of_range);
}

TEST(Simulated, NumbersRowsOverAllEpisodes) {
  const auto source = must_open(small());
  std::int64_t index = 0;
  for (std::int64_t i = 0; i < source->size(); ++i) {
    const auto episode = source->open(i);
    const auto batch = columns(**episode);
    ASSERT_EQ(batch->num_rows(), source->info(i).length);
    for (std::int64_t row = 0; row < batch->num_rows(); ++row) {
      EXPECT_EQ(number(*batch, "frame_index", row), row);
      EXPECT_EQ(number(*batch, "episode_index", row), i);
      EXPECT_EQ(number(*batch, "index", row), index++);
      EXPECT_EQ(number(*batch, "task_index", row), i % 2);
    }
    EXPECT_EQ((*episode)->task_text(i % 2).value(), source->info(i).tasks.front());
  }
}

TEST(Simulated, CommandsLeadTheStateByTwoFrames) {
  const auto source = must_open(small());
  const auto batch = columns(**source->open(0));
  double travelled = 0;
  for (std::int64_t row = 0; row + 2 < batch->num_rows(); ++row) {
    for (std::int64_t joint = 0; joint < 14; ++joint) {
      EXPECT_NEAR(value(*batch, "action.qpos", row, joint),
                  value(*batch, "observations.state.qpos", row + 2, joint), 1e-4);
    }
    travelled += std::abs(value(*batch, "observations.state.qpos", row + 1, 0) -
                          value(*batch, "observations.state.qpos", row, 0));
  }
  EXPECT_GT(travelled, 0.2) << "the arm moves";
}

TEST(Simulated, PosesAreThoseOfTheJoints) {
  const auto source = must_open(small());
  const auto batch = columns(**source->open(2));
  for (std::int64_t row = 0; row < batch->num_rows(); row += 9) {
    for (int arm = 0; arm < simulated::kArms; ++arm) {
      simulated::ArmState state{};
      for (std::size_t i = 0; i < state.size(); ++i) {
        state[i] = value(*batch, "observations.state.qpos", row,
                         arm * simulated::kArmDof + static_cast<std::int64_t>(i));
      }
      const auto pose =
          simulated::tool_pose(simulated::forward(simulated::Motion::base(arm), state));
      double norm = 0;
      for (std::size_t i = 0; i < pose.size(); ++i) {
        const float stored =
            value(*batch, "observations.state.eef", row, arm * 8 + static_cast<std::int64_t>(i));
        EXPECT_NEAR(stored, pose[i], 1e-5);
        if (i >= 3 && i < 7) norm += double{stored} * stored;
      }
      EXPECT_NEAR(norm, 1.0, 1e-5);
    }
  }
}

TEST(Kinematics, InverseUndoesForward) {
  for (const simulated::Vec3 tip : {simulated::Vec3{-0.2, 0.1, 0.05}, simulated::Vec3{-0.4, 0, 0.2},
                                    simulated::Vec3{-0.1, 0.15, 0.022}}) {
    const simulated::Vec3 base = simulated::Motion::base(0);
    const auto pose = simulated::forward(base, simulated::inverse(base, tip, 0.4, 0.05));
    EXPECT_NEAR(pose.tip.x, tip.x, 1e-9);
    EXPECT_NEAR(pose.tip.y, tip.y, 1e-9);
    EXPECT_NEAR(pose.tip.z, tip.z, 1e-9);
    EXPECT_NEAR(pose.hand.z.z, -1.0, 1e-9) << "the hand points down";
    EXPECT_NEAR(std::atan2(pose.hand.x.y, pose.hand.x.x), 0.4, 1e-9);
    const auto tool = simulated::tool_pose(pose);
    EXPECT_NEAR(tool[3], std::cos(0.2), 1e-9);
    EXPECT_NEAR(tool[6], std::sin(0.2), 1e-9);
  }
}

TEST(Motion, BringsTheBlocksToTheirPads) {
  for (const double seconds : {3.0, 6.0, 10.0}) {
    SCOPED_TRACE(seconds);
    const simulated::Motion motion(static_cast<std::uint64_t>(seconds) + 1, seconds, 0, 0);
    for (int arm = 0; arm < simulated::kArms; ++arm) {
      const simulated::Vec3 end = motion.block(arm, seconds).at;
      const simulated::Vec3 pad = motion.pad(arm).at;
      EXPECT_LT(std::hypot(end.x - pad.x, end.y - pad.y), 0.005);
      EXPECT_NEAR(end.z, simulated::kBlockHalf, 1e-9);
      EXPECT_GT(std::abs(motion.block(arm, 0).at.x - pad.x), 0.1);
      bool lifted = false;
      for (double time = 0; time < seconds; time += 0.05) {
        lifted = lifted || motion.block(arm, time).at.z > 0.1;
      }
      EXPECT_TRUE(lifted);
    }
  }
}

TEST(Motion, StandsStillWhileIdle) {
  const simulated::Motion motion(5, 8.0, 2.0, 6.0);
  EXPECT_EQ(motion.arm(0, 2.5), motion.arm(0, 5.5));
  EXPECT_NE(motion.arm(0, 1.5), motion.arm(0, 1.9));
  EXPECT_NE(motion.arm(1, 6.1), motion.arm(1, 6.5));
}

// The picture agrees with the columns: a block is drawn where the motion says. An arm may hide it
// from one camera, not from all.
TEST(Scene, DrawsTheBlocksWhereTheyAre) {
  const simulated::Scenery scenery(7, 320, 240);
  const simulated::Motion motion(3, 3.0, 0, 0);
  Bytes rgb(320 * 240 * 3);
  std::array<int, simulated::kArms> seen{};
  for (const int view : {0, 3, 4, 5, 6}) {
    simulated::SceneReader reader(scenery, view);
    reader.draw(motion, 0.0, 0, 1, rgb);
    const simulated::Camera camera = simulated::scene_camera(scenery, view, motion, 0.0);
    for (int arm = 0; arm < simulated::kArms; ++arm) {
      const simulated::Vec3 top =
          motion.block(arm, 0).at + simulated::Vec3{0, 0, simulated::kBlockHalf * 0.8};
      const simulated::Vec3 d = top - camera.eye;
      const double scale = camera.focal / dot(d, camera.axes.z);
      const auto x = static_cast<std::size_t>(160 + dot(d, camera.axes.x) * scale);
      const auto y = static_cast<std::size_t>(120 + dot(d, camera.axes.y) * scale);
      ASSERT_TRUE(x < 320 && y < 240);
      const std::uint8_t* pixel = rgb.data() + 3 * (y * 320 + x);
      const int strong = arm == 0 ? pixel[0] : pixel[1];  // red, green
      const int weak = arm == 0 ? pixel[1] : pixel[0];
      if (strong > 2 * weak) ++seen[static_cast<std::size_t>(arm)];
    }
  }
  EXPECT_GE(seen[0], 3);
  EXPECT_GE(seen[1], 3);
}

TEST(SimulatedFaults, LeaveTheFirstEpisodeClean) {
  SimulatedOptions options = small(all_faults());
  options.episodes = 20;
  EXPECT_TRUE(faults_of(options, 0).empty());
  std::set<SimulatedFault> seen;
  for (std::int64_t episode = 0; episode < options.episodes; ++episode) {
    for (const SimulatedFault fault : faults_of(options, episode)) seen.insert(fault);
    EXPECT_LE(faults_of(options, episode).size(), 1U);
  }
  EXPECT_EQ(seen.size(), all_faults().size());
}

std::int64_t episode_with_fault(const SimulatedOptions& options) {
  for (std::int64_t episode = 0; episode < options.episodes; ++episode) {
    if (!faults_of(options, episode).empty()) return episode;
  }
  return -1;
}

TEST(SimulatedFaults, AreInTheDataOfTheirEpisode) {
  for (const SimulatedFault fault : all_faults()) {
    SCOPED_TRACE(simulated_fault_name(fault));
    SimulatedOptions options = small({fault});
    options.seconds = 3.0;
    const std::int64_t at = episode_with_fault(options);
    ASSERT_GT(at, 0);
    const auto source = must_open(options);
    const auto opened = source->open(at);
    ASSERT_TRUE(opened.ok());
    const Episode& episode = **opened;
    const std::int64_t length = episode.info().length;
    const auto batch = columns(episode);
    std::set<std::size_t> missing;
    std::set<std::size_t> shorter;
    std::set<std::size_t> repeating;
    const std::vector<std::string> cameras = source->schema().cameras();
    const std::size_t frame_bytes = 96 * 64 * 3;
    for (std::size_t i = 0; i < cameras.size(); ++i) {
      if (!episode.has_camera(cameras[i])) {
        missing.insert(i);
        continue;
      }
      const Bytes all = pictures(episode, cameras[i], {0, length});
      const auto count = static_cast<std::int64_t>(all.size() / frame_bytes);
      if (count < length) shorter.insert(i);
      std::int64_t equal = 0;
      for (std::int64_t frame = 1; frame < count; ++frame) {
        const auto place = all.begin() + frame * static_cast<std::int64_t>(frame_bytes);
        if (std::equal(place, place + frame_bytes, place - frame_bytes)) ++equal;
      }
      if (equal > length / 4) repeating.insert(i);
    }
    const auto* vectors = batch->GetColumnByName("action.qpos").get();
    const auto width = static_cast<const arrow::FixedSizeListArray&>(*vectors).value_length();
    EXPECT_EQ(missing.size(), fault == SimulatedFault::camera_loss ? 1U : 0U);
    EXPECT_EQ(shorter.size(), fault == SimulatedFault::length_mismatch ? 1U : 0U);
    EXPECT_EQ(
        repeating.size(),
        fault == SimulatedFault::frozen_camera || fault == SimulatedFault::slow_camera ? 1U : 0U);
    EXPECT_EQ(width, fault == SimulatedFault::wrong_shape ? 13 : 14);
    EXPECT_EQ(batch->GetColumnByName("observations.state.eef") == nullptr,
              fault == SimulatedFault::missing_column);
    EXPECT_EQ(length < simulated_min_episode_frames(options),
              fault == SimulatedFault::short_episode);
    bool nan = false;
    for (std::int64_t row = 0; row < length; ++row) {
      nan = nan || std::isnan(value(*batch, "observations.state.qpos", row, 2));
    }
    EXPECT_EQ(nan, fault == SimulatedFault::non_finite);
    const Json* skews = episode.info().row.find("alignment_image_max_skew_sec");
    bool late = false;
    for (const auto& [camera, skew] : *skews->as_object()) late = late || *skew.as_double() > 0.2;
    EXPECT_EQ(late, fault == SimulatedFault::late_images);
  }
}

TEST(SimulatedFaults, ParseByName) {
  EXPECT_TRUE(parse_faults("none").value().empty());
  EXPECT_EQ(parse_faults("all").value(), all_faults());
  EXPECT_EQ(parse_faults("some").value(), some_faults());
  using enum SimulatedFault;
  EXPECT_EQ(parse_faults("idle_span,camera_loss,idle_span").value(),
            (std::vector<SimulatedFault>{idle_span, camera_loss}));
  const auto bad = parse_faults("idle_span,melted");
  EXPECT_EQ(bad.status().code(), StatusCode::invalid_argument);
  EXPECT_NE(bad.status().message().find("melted"), std::string_view::npos);
}

TEST(SimulatedOptions, NameTheValueOutOfRange) {
  SimulatedOptions options = small();
  options.cameras = 9;
  const Status status = open_simulated(options).status();
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_NE(status.message().find("cameras 9"), std::string_view::npos);
  options = small();
  options.width = 97;
  EXPECT_FALSE(options.validate().ok());
  options.inline_images = true;
  EXPECT_TRUE(options.validate().ok()) << "PNG takes odd sizes";
}

TEST(Simulated, StoresInlinePicturesAsPng) {
  SimulatedOptions options = small();
  options.inline_images = true;
  options.cameras = 1;
  const auto source = must_open(options);
  const auto episode = source->open(0);
  const auto batch = (*episode)->columns({3, 5});
  ASSERT_TRUE(batch.ok());
  const auto images = std::static_pointer_cast<arrow::StructArray>(
      (*batch)->GetColumnByName("observation.images.top"));
  const auto bytes = std::static_pointer_cast<arrow::BinaryArray>(images->field(0));
  const auto image = decode_image(as_bytes(bytes->GetView(1)));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->pixels, pictures(**episode, "observation.images.top", {4, 5}));
}

TEST(Simulated, GivesEveryViewItsOwnPicture) {
  SimulatedOptions options = small();
  options.cameras = 8;
  const auto source = must_open(options);
  const auto episode = source->open(0);
  std::set<std::string> digests;
  for (const std::string& camera : source->schema().cameras()) {
    digests.insert(sha256_hex(pictures(**episode, camera, {0, 1})));
  }
  EXPECT_EQ(digests.size(), 8U);
}

}  // namespace
}  // namespace ropewalk
