#include "ropewalk/format/message/robot_messages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "ropewalk/format/message/scalar_internal.h"

namespace ropewalk::message {
namespace {

constexpr std::int64_t kNsPerSec = 1'000'000'000;

enum class Kind : std::uint8_t {
  joint_states,
  raw_image,
  compressed_image,
  compressed_video,
  point_cloud,
  imu,
  transforms,
  pose,
  twist,
  wrench,
};

// The last part of a name and the package in front of it, in any of the notations.
std::pair<std::string_view, std::string_view> split_name(std::string_view name) {
  const std::size_t last = name.find_last_of("/.:");
  if (last == std::string_view::npos) return {{}, name};
  std::string_view package = name.substr(0, name.find_first_of("/.:"));
  if (package == "foxglove_msgs") package = "foxglove";
  return {package, name.substr(last + 1)};
}

std::optional<Kind> kind_of(std::string_view name) {
  struct Known {
    std::string_view package;
    std::string_view type;
    Kind kind;
  };
  static constexpr Known kKnown[] = {
      {"sensor_msgs", "JointState", Kind::joint_states},
      {"foxglove", "JointState", Kind::joint_states},
      {"foxglove", "JointStates", Kind::joint_states},
      {"sensor_msgs", "Image", Kind::raw_image},
      {"foxglove", "RawImage", Kind::raw_image},
      {"sensor_msgs", "CompressedImage", Kind::compressed_image},
      {"foxglove", "CompressedImage", Kind::compressed_image},
      {"foxglove", "CompressedVideo", Kind::compressed_video},
      {"sensor_msgs", "PointCloud2", Kind::point_cloud},
      {"foxglove", "PointCloud", Kind::point_cloud},
      {"sensor_msgs", "Imu", Kind::imu},
      {"foxglove", "Imu", Kind::imu},
      {"tf2_msgs", "TFMessage", Kind::transforms},
      {"tf", "tfMessage", Kind::transforms},
      {"geometry_msgs", "TransformStamped", Kind::transforms},
      {"foxglove", "FrameTransform", Kind::transforms},
      {"foxglove", "FrameTransforms", Kind::transforms},
      {"geometry_msgs", "Pose", Kind::pose},
      {"geometry_msgs", "PoseStamped", Kind::pose},
      {"geometry_msgs", "PoseWithCovariance", Kind::pose},
      {"geometry_msgs", "PoseWithCovarianceStamped", Kind::pose},
      {"foxglove", "PoseInFrame", Kind::pose},
      {"foxglove", "Pose", Kind::pose},
      {"geometry_msgs", "Twist", Kind::twist},
      {"geometry_msgs", "TwistStamped", Kind::twist},
      {"geometry_msgs", "TwistWithCovariance", Kind::twist},
      {"geometry_msgs", "TwistWithCovarianceStamped", Kind::twist},
      {"geometry_msgs", "Wrench", Kind::wrench},
      {"geometry_msgs", "WrenchStamped", Kind::wrench},
  };
  const auto [package, type] = split_name(name);
  for (const Known& known : kKnown) {
    if (known.package == package && known.type == type) return known.kind;
  }
  return std::nullopt;
}

Status lacks(std::string_view path, std::string_view wanted, const Value* found) {
  return data_loss(fmt::format("{}: {} expected, {} found", path, wanted,
                               found == nullptr ? "nothing" : found->type_name()));
}

Stamp stamp_of(const Value& value) {
  Stamp out;
  const Value* header = value.find("header");
  const Value& from = header == nullptr ? value : *header;
  for (const std::string_view name : {"frame_id", "parent_frame_id"}) {
    if (const Value* frame = from.find(name)) out.frame_id = frame->as_string().value_or("");
  }
  const Value* time = from.find("stamp");
  if (time == nullptr) time = from.find("timestamp");
  if (time == nullptr) return out;
  std::optional<Value::Time> read = time_of(*time);
  if (const Value* seconds = time->find("seconds"); seconds != nullptr && !read.has_value()) {
    const Value* nanos = time->find("nanos");
    read = Value::Time{.sec = seconds->as_int64().value_or(0),
                       .nsec = nanos == nullptr ? 0 : nanos->as_int64().value_or(0)};
  }
  constexpr std::int64_t kMostSec = std::numeric_limits<std::int64_t>::max() / kNsPerSec - 8;
  if (read.has_value() && std::abs(read->sec) < kMostSec && read->nsec >= 0 &&
      read->nsec <= std::numeric_limits<std::uint32_t>::max()) {
    out.time_ns = read->sec * kNsPerSec + read->nsec;
  }
  return out;
}

Result<std::uint32_t> number(const Value& value, std::string_view name) {
  const Value* held = value.find(name);
  const auto whole = held == nullptr ? std::nullopt : integer_of<std::uint32_t>(*held);
  if (!whole.has_value()) return lacks(name, "a number", held);
  return *whole;
}

Result<std::string_view> text(const Value& value, std::string_view name) {
  const Value* held = value.find(name);
  const auto read = held == nullptr ? std::nullopt : held->as_string();
  if (!read.has_value()) return lacks(name, "a text", held);
  return *read;
}

Result<ByteSpan> bytes(const Value& value, std::string_view name) {
  const Value* held = value.find(name);
  const auto read = held == nullptr ? std::nullopt : held->as_binary();
  if (!read.has_value()) return lacks(name, "bytes", held);
  return *read;
}

template <std::size_t N>
Result<std::array<double, N>> vector(const Value* value, std::string_view path) {
  constexpr std::string_view kNames[] = {"x", "y", "z", "w"};
  std::array<double, N> out{};
  if (value == nullptr) return lacks(path, "a vector", value);
  for (std::size_t i = 0; i < N; ++i) {
    const Value* part = value->find(kNames[i]);
    const auto real = part == nullptr ? std::nullopt : real_of(*part);
    if (!real.has_value()) return lacks(fmt::format("{}.{}", path, kNames[i]), "a number", part);
    out[i] = *real;
  }
  return out;
}

// The numbers of a field; empty when it is absent.
Result<std::vector<double>> numbers(const Value& value, std::string_view name) {
  std::vector<double> out;
  const Value* held = value.find(name);
  if (held == nullptr || held->is_nil()) return out;
  if (const Value::Numbers* row = held->as_numbers()) {
    for (std::size_t i = 0; i < row->size(); ++i) out.push_back(row->at(i));
    return out;
  }
  if (held->as_array() == nullptr) return lacks(name, "numbers", held);
  for (const Value& element : *held->as_array()) {
    const auto real = real_of(element);
    if (!real.has_value()) return lacks(name, "numbers", &element);
    out.push_back(*real);
  }
  return out;
}

Result<RobotMessage> joint_states(const Value& root) {
  JointStates out{.stamp = stamp_of(root)};
  // foxglove: one object per joint.
  const Value* joints = root.find("joints");
  if (joints == nullptr && root.find("name") != nullptr && root.find("name")->as_string()) {
    joints = &root;
  }
  if (joints != nullptr) {
    const auto add = [&](const Value& joint) -> Status {
      ROPEWALK_ASSIGN_OR_RETURN(const std::string_view name, text(joint, "name"));
      out.names.push_back(name);
      const auto take = [&](std::string_view field, std::vector<double>& row) {
        const Value* held = joint.find(field);
        row.push_back(held == nullptr ? std::nan("") : real_of(*held).value_or(std::nan("")));
      };
      take("position", out.position);
      take("velocity", out.velocity);
      take("effort", out.effort);
      return ok_status();
    };
    if (const Value::Array* array = joints->as_array()) {
      for (const Value& joint : *array) {
        ROPEWALK_RETURN_IF_ERROR(add(joint));
      }
    } else {
      ROPEWALK_RETURN_IF_ERROR(add(*joints));
    }
    return RobotMessage(std::move(out));
  }
  const Value* names = root.find("name");
  if (names == nullptr || names->as_array() == nullptr) return lacks("name", "texts", names);
  for (const Value& name : *names->as_array()) {
    const auto read = name.as_string();
    if (!read.has_value()) return lacks("name", "texts", &name);
    out.names.push_back(*read);
  }
  const auto take = [&](std::string_view field, std::vector<double>& row) -> Status {
    ROPEWALK_ASSIGN_OR_RETURN(row, numbers(root, field));
    if (row.empty() || out.names.empty() || row.size() == out.names.size()) return ok_status();
    return data_loss(
        fmt::format("{}: {} numbers for {} names", field, row.size(), out.names.size()));
  };
  ROPEWALK_RETURN_IF_ERROR(take("position", out.position));
  ROPEWALK_RETURN_IF_ERROR(take("velocity", out.velocity));
  ROPEWALK_RETURN_IF_ERROR(take("effort", out.effort));
  return RobotMessage(std::move(out));
}

bool is_set(const Value& root, std::string_view name) {
  const Value* held = root.find(name);
  return held != nullptr && held->as_double().value_or(0) != 0;
}

Result<RobotMessage> raw_image(const Value& root) {
  RawImage out{.stamp = stamp_of(root)};
  ROPEWALK_ASSIGN_OR_RETURN(out.width, number(root, "width"));
  ROPEWALK_ASSIGN_OR_RETURN(out.height, number(root, "height"));
  ROPEWALK_ASSIGN_OR_RETURN(out.step, number(root, "step"));
  ROPEWALK_ASSIGN_OR_RETURN(out.encoding, text(root, "encoding"));
  ROPEWALK_ASSIGN_OR_RETURN(out.data, bytes(root, "data"));
  out.is_big_endian = is_set(root, "is_bigendian");
  return RobotMessage(out);
}

Result<RobotMessage> compressed_image(const Value& root) {
  CompressedImage out{.stamp = stamp_of(root)};
  ROPEWALK_ASSIGN_OR_RETURN(out.format, text(root, "format"));
  ROPEWALK_ASSIGN_OR_RETURN(out.data, bytes(root, "data"));
  using enum CompressedImage::Codec;
  constexpr std::pair<std::string_view, CompressedImage::Codec> kWords[] = {
      {"jpeg", jpeg}, {"jpg", jpeg}, {"png", png}, {"webp", webp}, {"avif", avif}};
  // The transport puts the encoding of the pixels in front: "bgr8; jpeg compressed bgr8".
  for (const auto& [word, codec] : kWords) {
    if (out.codec == unknown && out.format.find(word) != std::string_view::npos) out.codec = codec;
  }
  return RobotMessage(out);
}

Result<RobotMessage> compressed_video(const Value& root) {
  CompressedVideo out{.stamp = stamp_of(root)};
  ROPEWALK_ASSIGN_OR_RETURN(out.format, text(root, "format"));
  ROPEWALK_ASSIGN_OR_RETURN(out.data, bytes(root, "data"));
  using enum CompressedVideo::Codec;
  constexpr std::pair<std::string_view, CompressedVideo::Codec> kWords[] = {
      {"h264", h264}, {"h265", h265}, {"hevc", h265}, {"vp9", vp9}, {"av1", av1}};
  for (const auto& [word, codec] : kWords) {
    if (out.format == word) out.codec = codec;
  }
  return RobotMessage(out);
}

// The codes of sensor_msgs/PointField and of foxglove.PackedElementField are not the same.
std::optional<DType> point_dtype(const Value& code, bool foxglove) {
  constexpr DType kRos[] = {DType::int8,  DType::uint8,  DType::int16,   DType::uint16,
                            DType::int32, DType::uint32, DType::float32, DType::float64};
  constexpr DType kFoxglove[] = {DType::uint8,  DType::int8,  DType::uint16,  DType::int16,
                                 DType::uint32, DType::int32, DType::float32, DType::float64};
  const auto number = integer_of<std::uint8_t>(code);
  if (!number.has_value() || *number < 1 || *number > std::size(kRos)) return std::nullopt;
  return foxglove ? kFoxglove[*number - 1] : kRos[*number - 1];
}

Result<RobotMessage> point_cloud(const Value& root) {
  PointCloud out{.stamp = stamp_of(root)};
  const bool foxglove = root.find("point_stride") != nullptr;
  ROPEWALK_ASSIGN_OR_RETURN(out.stride, number(root, foxglove ? "point_stride" : "point_step"));
  ROPEWALK_ASSIGN_OR_RETURN(out.data, bytes(root, "data"));
  if (out.stride == 0) return data_loss("a point of 0 bytes");
  const Value* fields = root.find("fields");
  if (fields == nullptr || fields->as_array() == nullptr) return lacks("fields", "a list", fields);
  for (const Value& field : *fields->as_array()) {
    PointCloud::Field one;
    ROPEWALK_ASSIGN_OR_RETURN(one.name, text(field, "name"));
    ROPEWALK_ASSIGN_OR_RETURN(one.offset, number(field, "offset"));
    const Value* code = field.find(foxglove ? "type" : "datatype");
    const auto dtype = code == nullptr ? std::nullopt : point_dtype(*code, foxglove);
    if (!dtype.has_value()) return lacks(fmt::format("fields.{}", one.name), "a type", code);
    one.dtype = *dtype;
    if (!foxglove) {
      ROPEWALK_ASSIGN_OR_RETURN(one.count, number(field, "count"));
    }
    if (one.offset + std::uint64_t{one.count} * dtype_size(one.dtype) > out.stride) {
      return data_loss(
          fmt::format("fields.{}: beyond the {} bytes of a point", one.name, out.stride));
    }
    out.fields.push_back(one);
  }
  if (foxglove) {
    out.height = 1;
    out.width =
        static_cast<std::uint32_t>(std::min<std::size_t>(out.data.size() / out.stride, 0xFFFFFFFF));
    out.row_step = out.width * out.stride;
    return RobotMessage(std::move(out));
  }
  ROPEWALK_ASSIGN_OR_RETURN(out.width, number(root, "width"));
  ROPEWALK_ASSIGN_OR_RETURN(out.height, number(root, "height"));
  ROPEWALK_ASSIGN_OR_RETURN(out.row_step, number(root, "row_step"));
  out.is_big_endian = is_set(root, "is_bigendian");
  const std::uint64_t row = std::uint64_t{out.width} * out.stride;
  if (out.height > 0 && row > 0 &&
      ((out.height > 1 && out.row_step < row) ||
       std::uint64_t{out.row_step} * (out.height - 1) + row > out.data.size())) {
    return data_loss(fmt::format("data: {} bytes for {} rows of {} points with {} bytes each",
                                 out.data.size(), out.height, out.width, out.stride));
  }
  return RobotMessage(std::move(out));
}

Result<RobotMessage> imu(const Value& root) {
  Imu out{.stamp = stamp_of(root)};
  ROPEWALK_ASSIGN_OR_RETURN(out.angular_velocity,
                            vector<3>(root.find("angular_velocity"), "angular_velocity"));
  ROPEWALK_ASSIGN_OR_RETURN(out.linear_acceleration,
                            vector<3>(root.find("linear_acceleration"), "linear_acceleration"));
  const Value* orientation = root.find("orientation");
  const Value* covariance = root.find("orientation_covariance");
  const Value::Numbers* row = covariance == nullptr ? nullptr : covariance->as_numbers();
  const bool unknown = row != nullptr && row->size() > 0 && row->at(0) == -1.0;
  if (orientation != nullptr && !orientation->is_nil() && !unknown) {
    ROPEWALK_ASSIGN_OR_RETURN(out.orientation, vector<4>(orientation, "orientation"));
  }
  return RobotMessage(out);
}

Result<Transform> transform(const Value& value) {
  Transform out{.stamp = stamp_of(value)};
  ROPEWALK_ASSIGN_OR_RETURN(out.child_frame_id, text(value, "child_frame_id"));
  const Value* inner = value.find("transform");
  const Value& from = inner == nullptr ? value : *inner;
  ROPEWALK_ASSIGN_OR_RETURN(out.translation, vector<3>(from.find("translation"), "translation"));
  ROPEWALK_ASSIGN_OR_RETURN(out.rotation, vector<4>(from.find("rotation"), "rotation"));
  return out;
}

Result<RobotMessage> transforms(const Value& root) {
  Transforms out;
  const Value* list = root.find("transforms");
  if (list == nullptr) {
    ROPEWALK_ASSIGN_OR_RETURN(Transform one, transform(root));
    out.transforms.push_back(one);
    return RobotMessage(std::move(out));
  }
  if (list->as_array() == nullptr) return lacks("transforms", "a list", list);
  for (std::size_t i = 0; i < list->as_array()->size(); ++i) {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(Transform one, transform((*list->as_array())[i]),
                                  fmt::format("transforms[{}]", i));
    out.transforms.push_back(one);
  }
  return RobotMessage(std::move(out));
}

// The object that has `member`: the message itself, or what stands under `name` once or twice.
const Value& inner(const Value& root, std::string_view name, std::string_view member) {
  const Value* at = &root;
  for (int i = 0; i < 2 && at->find(member) == nullptr && at->find(name) != nullptr; ++i) {
    at = at->find(name);
  }
  return *at;
}

Result<RobotMessage> pose(const Value& root) {
  Pose out{.stamp = stamp_of(root)};
  const Value& from = inner(root, "pose", "position");
  ROPEWALK_ASSIGN_OR_RETURN(out.position, vector<3>(from.find("position"), "position"));
  ROPEWALK_ASSIGN_OR_RETURN(out.orientation, vector<4>(from.find("orientation"), "orientation"));
  return RobotMessage(out);
}

Result<RobotMessage> twist(const Value& root) {
  Twist out{.stamp = stamp_of(root)};
  const Value& from = inner(root, "twist", "linear");
  ROPEWALK_ASSIGN_OR_RETURN(out.linear, vector<3>(from.find("linear"), "linear"));
  ROPEWALK_ASSIGN_OR_RETURN(out.angular, vector<3>(from.find("angular"), "angular"));
  return RobotMessage(out);
}

Result<RobotMessage> wrench(const Value& root) {
  Wrench out{.stamp = stamp_of(root)};
  const Value& from = inner(root, "wrench", "force");
  ROPEWALK_ASSIGN_OR_RETURN(out.force, vector<3>(from.find("force"), "force"));
  ROPEWALK_ASSIGN_OR_RETURN(out.torque, vector<3>(from.find("torque"), "torque"));
  return RobotMessage(out);
}

Result<RobotMessage> read(Kind kind, const Value& root) {
  switch (kind) {
    case Kind::joint_states:
      return joint_states(root);
    case Kind::raw_image:
      return raw_image(root);
    case Kind::compressed_image:
      return compressed_image(root);
    case Kind::compressed_video:
      return compressed_video(root);
    case Kind::point_cloud:
      return point_cloud(root);
    case Kind::imu:
      return imu(root);
    case Kind::transforms:
      return transforms(root);
    case Kind::pose:
      return pose(root);
    case Kind::twist:
      return twist(root);
    case Kind::wrench:
      return wrench(root);
  }
  return internal("a kind of message that no one knows");
}

}  // namespace

std::optional<std::size_t> robot_message_kind(std::string_view schema_name) {
  const auto kind = kind_of(schema_name);
  return kind.has_value() ? std::optional(static_cast<std::size_t>(*kind)) : std::nullopt;
}

Result<RobotMessage> read_robot_message(std::string_view schema_name, const Value& root) {
  const auto kind = kind_of(schema_name);
  if (!kind.has_value()) {
    return not_found(fmt::format("schema '{}' is none of the kinds that robots send", schema_name));
  }
  ROPEWALK_ASSIGN_OR_RETURN_CTX(RobotMessage out, read(*kind, root), schema_name);
  return out;
}

}  // namespace ropewalk::message
