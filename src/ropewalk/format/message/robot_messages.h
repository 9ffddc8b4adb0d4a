#pragma once
// What robots send, as plain structs: joint states, pictures, video, points, motion. The names of
// ROS 1, ROS 2, IDL and foxglove schemas lead to the same structs. Spec: mcap 5.4.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "ropewalk/format/message/value.h"

namespace ropewalk::message {

// Lifetime of all of them: texts and bytes are views into the message they were read from.
// Units: metres, radians, seconds and newtons, as the schemas say; times are ns since the epoch.

struct Stamp {
  std::int64_t time_ns = 0;  ///< 0 when the message has no time
  std::string_view frame_id;
};

using Vector3 = std::array<double, 3>;
using Quaternion = std::array<double, 4>;  ///< x, y, z, w

struct JointStates {
  Stamp stamp;
  std::vector<std::string_view> names;
  // Each has an element per name, NaN where the message has none; or is empty.
  std::vector<double> position;
  std::vector<double> velocity;
  std::vector<double> effort;
};

/// Pixels as they are; pixels.h turns them into RGB.
struct RawImage {
  Stamp stamp;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t step = 0;  ///< bytes of a row
  std::string_view encoding;
  bool is_big_endian = false;
  ByteSpan data;
};

struct CompressedImage {
  enum class Codec : std::uint8_t { unknown, jpeg, png, webp, avif };
  Stamp stamp;
  std::string_view format;  ///< as found: "jpeg", "bgr8; jpeg compressed bgr8"
  Codec codec = Codec::unknown;
  ByteSpan data;
};

/// One decodable frame. Shape: Annex B for H.264 and H.265, OBUs for AV1, one frame for VP9.
struct CompressedVideo {
  enum class Codec : std::uint8_t { unknown, h264, h265, vp9, av1 };
  Stamp stamp;
  std::string_view format;
  Codec codec = Codec::unknown;
  ByteSpan data;
};

struct PointCloud {
  struct Field {
    std::string_view name;
    std::uint32_t offset = 0;
    DType dtype = DType::float32;
    std::uint32_t count = 1;
  };
  Stamp stamp;
  std::uint32_t width = 0;   ///< points in a row
  std::uint32_t height = 0;  ///< rows; 1 for points without order
  std::uint32_t stride = 0;  ///< bytes of a point
  std::uint32_t row_step = 0;
  std::vector<Field> fields;
  bool is_big_endian = false;
  ByteSpan data;
};

struct Imu {
  Stamp stamp;
  std::optional<Quaternion> orientation;  ///< absent when its covariance begins with -1
  Vector3 angular_velocity{};
  Vector3 linear_acceleration{};
};

struct Transform {
  Stamp stamp;  ///< frame_id is the parent
  std::string_view child_frame_id;
  Vector3 translation{};
  Quaternion rotation{};
};
struct Transforms {
  std::vector<Transform> transforms;
};

struct Pose {
  Stamp stamp;
  Vector3 position{};
  Quaternion orientation{};
};
struct Twist {
  Stamp stamp;
  Vector3 linear{};
  Vector3 angular{};
};
struct Wrench {
  Stamp stamp;
  Vector3 force{};
  Vector3 torque{};
};

using RobotMessage = std::variant<JointStates, RawImage, CompressedImage, CompressedVideo,
                                  PointCloud, Imu, Transforms, Pose, Twist, Wrench>;

/// The kind of a schema by its name: the index into RobotMessage, or nullopt for a schema that is
/// none of them. sensor_msgs/JointState, sensor_msgs/msg/JointState, foxglove.RawImage,
/// foxglove_msgs/msg/RawImage and foxglove::RawImage are all understood.
std::optional<std::size_t> robot_message_kind(std::string_view schema_name);

/// Errors: not_found for a schema that is no kind of these; data_loss naming a field that the
/// message lacks or that has another type.
Result<RobotMessage> read_robot_message(std::string_view schema_name, const Value& root);

}  // namespace ropewalk::message
