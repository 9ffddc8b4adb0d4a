#pragma once
// Message: payload bytes to named values and back. The front door of format/message; it knows
// encodings, and neither containers nor the meaning of topics.
//
// Typical usage: compile the schema of a channel once, then decode its payloads.
//
//   auto codec = message::MessageCodec::compile({"cdr", "sensor_msgs/msg/JointState", "ros2msg",
//                                                schema_bytes});
//   auto decoded = (*codec)->decode(payload);
//   std::string text = message::to_json_text(decoded->root());
//
// codec.h: MessageCodec, one compiled schema: decode and encode.
// value.h: Value, a tree of views, and Message, which owns what the payload does not hold.
// value_json.h: values to JSON text and back.
// row_extractor.h: chosen numeric fields straight into rows of doubles.
// robot_messages.h: joint states, pictures, video, points and motion as plain structs.
// pixels.h: raw pictures to RGB, depth to metres.
// msgpack.h: MessagePack, a writer of the smallest form of each value, and a bounded decoder.
// msgpack_numpy.h: NumPy arrays and scalars in MessagePack, as openpi's client writes them.
//
// Limits: depth, and counts against the bytes that are left; an encoding without a decoder is
// refused by name in compile, so that callers carry the raw bytes. Spec: mcap 5.
#include "ropewalk/format/message/codec.h"
#include "ropewalk/format/message/msgpack.h"
#include "ropewalk/format/message/msgpack_numpy.h"
#include "ropewalk/format/message/pixels.h"
#include "ropewalk/format/message/robot_messages.h"
#include "ropewalk/format/message/row_extractor.h"
#include "ropewalk/format/message/value.h"
#include "ropewalk/format/message/value_json.h"
