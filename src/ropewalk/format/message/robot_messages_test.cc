// What robots send, in ROS 1, ROS 2 and foxglove form; raw pictures to RGB.
#include <cmath>
#include <deque>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ropewalk/format/message/message.h"

namespace ropewalk::message {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A message read from JSON, where bytes are told by a schema.
class FromJson {
 public:
  FromJson(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {
    codec_ = *MessageCodec::compile(
        {"json", name_, "jsonschema",
         as_bytes(R"({"properties":{"data":{"type":"string","contentEncoding":"base64"}}})")});
    auto message = codec_->decode(as_bytes(text_));
    EXPECT_TRUE(message.ok()) << message.status().to_string();
    message_ = std::move(message).value();
  }
  Result<RobotMessage> read() const { return read_robot_message(name_, message_.root()); }
  template <typename T>
  T as() const {
    const auto message = read();
    EXPECT_TRUE(message.ok()) << message.status().to_string();
    const T* held = message.ok() ? std::get_if<T>(&*message) : nullptr;
    EXPECT_NE(held, nullptr);
    return held == nullptr ? T{} : *held;
  }

 private:
  std::string name_;
  std::string text_;
  std::shared_ptr<const MessageCodec> codec_;
  Message message_;
};

// Messages outlive the views that are taken of them.
const FromJson& from_json(std::string name, std::string text) {
  static std::deque<FromJson> kept;
  return kept.emplace_back(std::move(name), std::move(text));
}

TEST(RobotMessages, NamesOfAllNotationsAreOneKind) {
  for (const std::string_view name :
       {"sensor_msgs/Image", "sensor_msgs/msg/Image", "sensor_msgs::msg::Image",
        "foxglove.RawImage", "foxglove_msgs/RawImage", "foxglove_msgs/msg/RawImage",
        "foxglove::RawImage"}) {
    EXPECT_EQ(robot_message_kind(name), 1U) << name;
  }
  EXPECT_EQ(robot_message_kind("std_msgs/msg/String"), std::nullopt);
  EXPECT_EQ(robot_message_kind("my_msgs/msg/Image"), std::nullopt);
  EXPECT_EQ(read_robot_message("std_msgs/msg/String", Value()).status().code(),
            StatusCode::not_found);
}

TEST(RobotMessages, JointStatesOfRosAndFoxglove) {
  const FromJson& ros = from_json("sensor_msgs/msg/JointState",
                                  R"({"header":{"stamp":{"sec":2,"nanosec":5},"frame_id":"base"},
                         "name":["a","b"],"position":[1,2.5],"velocity":[],"effort":[3,4]})");
  const auto joints = ros.as<JointStates>();
  EXPECT_EQ(joints.stamp.time_ns, 2'000'000'005);
  EXPECT_EQ(joints.stamp.frame_id, "base");
  EXPECT_THAT(joints.names, ElementsAre("a", "b"));
  EXPECT_THAT(joints.position, ElementsAre(1, 2.5));
  EXPECT_TRUE(joints.velocity.empty());
  EXPECT_THAT(joints.effort, ElementsAre(3, 4));

  const FromJson& fox = from_json("foxglove.JointStates",
                                  R"({"timestamp":{"seconds":1,"nanos":2},
                         "joints":[{"name":"a","position":0.5},{"name":"b","velocity":2}]})");
  const auto states = fox.as<JointStates>();
  EXPECT_EQ(states.stamp.time_ns, 1'000'000'002);
  EXPECT_THAT(states.position, ElementsAre(0.5, testing::IsNan()));
  EXPECT_THAT(states.velocity, ElementsAre(testing::IsNan(), 2));

  const FromJson& uneven =
      from_json("sensor_msgs/JointState", R"({"name":["a","b"],"position":[1]})");
  EXPECT_THAT(uneven.read().status().to_string(),
              HasSubstr("sensor_msgs/JointState: position: 1 numbers for 2 names"));
}

TEST(RobotMessages, PicturesAndVideo) {
  const auto raw =
      from_json("sensor_msgs/Image",
                R"({"header":{"stamp":{"sec":1,"nsec":0}},"width":1,"height":2,"step":3,
                                "encoding":"rgb8","is_bigendian":0,"data":"AQIDBAUG"})")
          .as<RawImage>();
  EXPECT_EQ(raw.width, 1U);
  EXPECT_EQ(raw.encoding, "rgb8");
  EXPECT_THAT(raw.data, ElementsAre(1, 2, 3, 4, 5, 6));
  const auto jpeg = from_json("sensor_msgs/msg/CompressedImage",
                              R"({"format":"bgr8; jpeg compressed bgr8","data":"/9g="})")
                        .as<CompressedImage>();
  EXPECT_EQ(jpeg.codec, CompressedImage::Codec::jpeg);
  const auto video =
      from_json("foxglove.CompressedVideo", R"({"format":"h265","frame_id":"cam","data":"AAAA"})")
          .as<CompressedVideo>();
  EXPECT_EQ(video.codec, CompressedVideo::Codec::h265);
  EXPECT_EQ(video.stamp.frame_id, "cam");
  EXPECT_THAT(from_json("foxglove.RawImage", R"({"width":1,"height":1,"step":1,"encoding":"x"})")
                  .read()
                  .status()
                  .to_string(),
              HasSubstr("foxglove.RawImage: data: bytes expected, nothing found"));
}

TEST(RobotMessages, PointFieldsHaveTheCodesOfTheirSchema) {
  const auto ros = from_json("sensor_msgs/msg/PointCloud2",
                             R"({"height":1,"width":1,"point_step":4,"row_step":4,"data":"AAAAAA==",
                                "fields":[{"name":"x","offset":0,"datatype":1,"count":4}]})")
                       .as<PointCloud>();
  EXPECT_EQ(ros.fields[0].dtype, DType::int8);
  EXPECT_EQ(ros.fields[0].count, 4U);
  const auto fox = from_json("foxglove.PointCloud",
                             R"({"point_stride":2,"data":"AAAAAA==",
                                "fields":[{"name":"i","offset":1,"type":1}]})")
                       .as<PointCloud>();
  EXPECT_EQ(fox.fields[0].dtype, DType::uint8);
  EXPECT_EQ(fox.width, 2U);
  EXPECT_THAT(
      from_json("foxglove.PointCloud",
                R"({"point_stride":2,"data":"","fields":[{"name":"i","offset":1,"type":7}]})")
          .read()
          .status()
          .to_string(),
      HasSubstr("fields.i: beyond the 2 bytes of a point"));
  EXPECT_FALSE(from_json("sensor_msgs/PointCloud2",
                         R"({"height":2,"width":1,"point_step":4,"row_step":4,"data":"AAAAAA==",
                            "fields":[]})")
                   .read()
                   .ok());
}

constexpr const char* kAxes = R"({"x":1,"y":2,"z":3})";
constexpr const char* kTurn = R"({"x":0,"y":0,"z":0,"w":1})";

TEST(RobotMessages, MotionOfEveryForm) {
  const auto with = [](std::string text) {
    for (std::size_t at; (at = text.find('V')) != std::string::npos;) text.replace(at, 1, kAxes);
    for (std::size_t at; (at = text.find('Q')) != std::string::npos;) text.replace(at, 1, kTurn);
    return text;
  };
  const auto imu =
      from_json("sensor_msgs/Imu",
                with(R"({"orientation":Q,"angular_velocity":V,"linear_acceleration":V})"))
          .as<Imu>();
  EXPECT_EQ(imu.orientation->at(3), 1);
  EXPECT_THAT(imu.linear_acceleration, ElementsAre(1, 2, 3));

  const auto tf =
      from_json("tf2_msgs/msg/TFMessage",
                with(R"({"transforms":[{"header":{"frame_id":"a","stamp":{"sec":1,"nanosec":0}},
                       "child_frame_id":"b","transform":{"translation":V,"rotation":Q}}]})"))
          .as<Transforms>();
  EXPECT_EQ(tf.transforms[0].stamp.frame_id, "a");
  EXPECT_EQ(tf.transforms[0].child_frame_id, "b");
  const auto fox = from_json("foxglove.FrameTransform",
                             with(R"({"parent_frame_id":"a","child_frame_id":"b","translation":V,
                                    "rotation":Q})"))
                       .as<Transforms>();
  EXPECT_EQ(fox.transforms[0].stamp.frame_id, "a");
  EXPECT_THAT(fox.transforms[0].translation, ElementsAre(1, 2, 3));

  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"geometry_msgs/Pose", R"({"position":V,"orientation":Q})"},
           {"geometry_msgs/msg/PoseStamped", R"({"pose":{"position":V,"orientation":Q}})"},
           {"geometry_msgs/PoseWithCovarianceStamped",
            R"({"pose":{"pose":{"position":V,"orientation":Q}}})"},
           {"foxglove.PoseInFrame", R"({"pose":{"position":V,"orientation":Q}})"}}) {
    EXPECT_THAT(from_json(name, with(text)).as<Pose>().position, ElementsAre(1, 2, 3)) << name;
  }
  EXPECT_THAT(from_json("geometry_msgs/TwistStamped", with(R"({"twist":{"linear":V,"angular":V}})"))
                  .as<Twist>()
                  .angular,
              ElementsAre(1, 2, 3));
  EXPECT_THAT(
      from_json("geometry_msgs/msg/WrenchStamped", with(R"({"wrench":{"force":V,"torque":V}})"))
          .as<Wrench>()
          .force,
      ElementsAre(1, 2, 3));
  EXPECT_THAT(from_json("geometry_msgs/Wrench", with(R"({"force":{"x":1,"y":2},"torque":V})"))
                  .read()
                  .status()
                  .to_string(),
              HasSubstr("force.z: a number expected, nothing found"));
}

RawImage picture(std::string_view encoding, std::uint32_t width, std::uint32_t height,
                 std::uint32_t step, const Bytes& data) {
  RawImage out;
  out.width = width;
  out.height = height;
  out.step = step;
  out.encoding = encoding;
  out.data = data;
  return out;
}

Bytes rgb(const RawImage& image) {
  Bytes out(std::size_t{image.width} * image.height * 3);
  const Status status = to_rgb8(image, out);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return out;
}

TEST(Pixels, PackedColoursAndGrey) {
  const Bytes pixel = {10, 20, 30, 40};
  EXPECT_THAT(rgb(picture("rgb8", 1, 1, 3, pixel)), ElementsAre(10, 20, 30));
  EXPECT_THAT(rgb(picture("bgr8", 1, 1, 3, pixel)), ElementsAre(30, 20, 10));
  EXPECT_THAT(rgb(picture("rgba8", 1, 1, 4, pixel)), ElementsAre(10, 20, 30));
  EXPECT_THAT(rgb(picture("bgra8", 1, 1, 4, pixel)), ElementsAre(30, 20, 10));
  EXPECT_THAT(rgb(picture("mono8", 2, 1, 2, pixel)), ElementsAre(10, 10, 10, 20, 20, 20));
  RawImage wide = picture("mono16", 1, 1, 2, pixel);
  EXPECT_THAT(rgb(wide), ElementsAre(20, 20, 20));
  wide.is_big_endian = true;
  EXPECT_THAT(rgb(wide), ElementsAre(10, 10, 10));
}

TEST(Pixels, YuvIsBt601InVideoRange) {
  // White, black, red: Y 235, 16, 81; U 128, 128, 90; V 128, 128, 240.
  const Bytes yuyv = {235, 128, 16, 128, 81, 90, 81, 240};
  EXPECT_THAT(rgb(picture("yuyv", 4, 1, 8, yuyv)),
              ElementsAre(255, 255, 255, 0, 0, 0, 255, 0, 0, 255, 0, 0));
  const Bytes uyvy = {128, 235, 128, 16, 90, 81, 240, 81};
  EXPECT_EQ(rgb(picture("uyvy", 4, 1, 8, uyvy)), rgb(picture("yuv422_yuy2", 4, 1, 8, yuyv)));
  const Bytes nv12 = {235, 235, 81, 81, 235, 235, 81, 81, 128, 128, 90, 240};
  EXPECT_THAT(rgb(picture("nv12", 4, 2, 4, nv12)),
              ElementsAre(255, 255, 255, 255, 255, 255, 255, 0, 0, 255, 0, 0, 255, 255, 255, 255,
                          255, 255, 255, 0, 0, 255, 0, 0));
}

TEST(Pixels, BayerPatternsAreFlatWhereTheSceneIs) {
  // A scene of one colour (200, 100, 50), seen through each pattern.
  const std::array<std::uint8_t, 3> scene = {200, 100, 50};
  const std::vector<std::pair<std::string, std::array<int, 4>>> patterns = {
      {"bayer_rggb8", {0, 1, 1, 2}},
      {"bayer_bggr8", {2, 1, 1, 0}},
      {"bayer_gbrg8", {1, 2, 0, 1}},
      {"bayer_grbg8", {1, 0, 2, 1}}};
  for (const auto& [name, places] : patterns) {
    Bytes mosaic;
    for (std::size_t y = 0; y < 5; ++y) {
      for (std::size_t x = 0; x < 4; ++x) {
        mosaic.push_back(scene[static_cast<std::size_t>(places[(y % 2) * 2 + x % 2])]);
      }
    }
    const Bytes out = rgb(picture(name, 4, 5, 4, mosaic));
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], scene[i % 3]) << name << i;
  }
}

TEST(Pixels, DepthIsMetres) {
  const Bytes millimetres = {0xE8, 0x03, 0, 0, 9, 9, 0x0A, 0x00, 1, 0};
  std::vector<float> depth(4);
  ASSERT_TRUE(to_depth_m(picture("16UC1", 2, 2, 6, millimetres), depth).ok());
  EXPECT_THAT(depth, ElementsAre(1.0F, 0.0F, 0.010F, 0.001F));
  const Bytes metres = {0, 0, 0xC0, 0x3F};
  ASSERT_TRUE(to_depth_m(picture("32FC1", 1, 1, 4, metres), std::span(depth).first(1)).ok());
  EXPECT_EQ(depth[0], 1.5F);
  EXPECT_EQ(to_depth_m(picture("rgb8", 1, 1, 3, metres), std::span(depth).first(1)).code(),
            StatusCode::unimplemented);
}

TEST(Pixels, SizesThatLieAreRefused) {
  Bytes out(12);
  const Bytes data(11);
  EXPECT_THAT(to_rgb8(picture("rgb8", 2, 2, 6, data), out).to_string(),
              HasSubstr("data: 11 bytes for 2 rows of 6 bytes"));
  EXPECT_THAT(to_rgb8(picture("rgb8", 2, 2, 5, data), out).to_string(), HasSubstr("step: 5 bytes"));
  EXPECT_THAT(to_rgb8(picture("nv12", 2, 2, 6, data), out).to_string(), HasSubstr("3 rows"));
  EXPECT_EQ(to_rgb8(picture("rgb8", 0xFFFFFFFF, 0xFFFFFFFF, 6, data), out).code(),
            StatusCode::resource_exhausted);
  EXPECT_THAT(to_rgb8(picture("8UC7", 1, 1, 7, data), out).to_string(), HasSubstr("'8UC7'"));
  EXPECT_EQ(to_rgb8(picture("mono8", 2, 2, 2, data), std::span(out).first(3)).code(),
            StatusCode::invalid_argument);
  // The last row may end without its padding.
  EXPECT_TRUE(to_rgb8(picture("mono8", 1, 2, 10, data), std::span(out).first(6)).ok());
}

}  // namespace
}  // namespace ropewalk::message
