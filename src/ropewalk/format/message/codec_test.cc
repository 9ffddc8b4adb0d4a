// The common face of all encodings, and CDR and ROS 1 by hand-written payloads.
#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ropewalk/format/message/message.h"

namespace ropewalk::message {
namespace {

using testing::HasSubstr;

const std::string kRule(80, '=');

const std::string kJointState = R"(# joints
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
)" + kRule + R"(
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
)" + kRule + R"(
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
)";

std::shared_ptr<const MessageCodec> compile(std::string_view encoding, std::string_view name,
                                            std::string_view schema_encoding,
                                            std::string_view schema) {
  auto codec = MessageCodec::compile({encoding, name, schema_encoding, as_bytes(schema)});
  EXPECT_TRUE(codec.ok()) << codec.status().to_string();
  return codec.ok() ? *codec : nullptr;
}

std::shared_ptr<const MessageCodec> ros2(std::string_view schema) {
  return compile("cdr", "pkg/msg/Root", "ros2msg", schema);
}

Bytes from_json(const MessageCodec& codec, std::string_view text) {
  const auto json = parse_json(text);
  EXPECT_TRUE(json.ok()) << json.status().to_string();
  auto bytes = codec.encode(value_of_json(*json));
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? *bytes : Bytes();
}

std::string json_of(const MessageCodec& codec, ByteSpan payload, const JsonOptions& options = {}) {
  const auto message = codec.decode(payload);
  EXPECT_TRUE(message.ok()) << message.status().to_string();
  return message.ok() ? to_json_text(message->root(), options) : std::string();
}

std::string failure(const MessageCodec& codec, ByteSpan payload) {
  const auto message = codec.decode(payload);
  EXPECT_FALSE(message.ok());
  return message.ok() ? std::string() : message.status().to_string();
}

TEST(MessageCodec, RefusesAnUnknownEncodingByName) {
  const auto codec = MessageCodec::compile({"capnproto", "a.B", "capnproto", {}});
  ASSERT_FALSE(codec.ok());
  EXPECT_EQ(codec.status().code(), StatusCode::unimplemented);
  EXPECT_THAT(codec.status().to_string(), HasSubstr("'capnproto'"));
  EXPECT_EQ(MessageCodec::compile({"ros1", "a/B", "ros2msg", {}}).status().code(),
            StatusCode::unimplemented);
}

TEST(Cdr, DecodesPrimitivesAtTheirAlignment) {
  const auto codec = ros2("bool a\nfloat64 b\nint8 c\nuint16 d\nbyte e\nint64 f\nfloat32 g\n");
  const Bytes payload = {0,    1,    0,    0,                             // little-endian CDR
                         1,    0,    0,    0,    0,    0,    0,    0,     // a, padding to 8
                         0,    0,    0,    0,    0,    0,    0xF8, 0x3F,  // b = 1.5
                         0xFE, 0,    0x34, 0x12, 0xFF, 0,    0,    0,     // c = -2, d, e, padding
                         0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F,  // f
                         0xCD, 0xCC, 0xCC, 0x3D};                         // g = 0.1f
  EXPECT_EQ(json_of(*codec, payload),
            R"({"a":true,"b":1.5,"c":-2,"d":4660,"e":255,"f":"9223372036854775807","g":0.1})");
  EXPECT_EQ(json_of(*codec, payload, {.wide_integers_as_text = false}),
            R"({"a":true,"b":1.5,"c":-2,"d":4660,"e":255,"f":9223372036854775807,"g":0.1})");
  const auto message = codec->decode(payload);
  EXPECT_EQ(*codec->encode(message->root()), payload);
}

TEST(Cdr, ReadsBigEndian) {
  const auto codec = ros2("uint16 a\nfloat64[] b\nstring c\n");
  const Bytes payload = {0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 0, 0,   1,   0x3F, 0xF8,
                         0, 0, 0, 0, 0,    0,    0, 0, 0, 3, 'h', 'i', 0};
  EXPECT_EQ(json_of(*codec, payload), R"({"a":4660,"b":[1.5],"c":"hi"})");
}

TEST(Cdr, DecodesAJointState) {
  const auto codec = compile("cdr", "sensor_msgs/msg/JointState", "ros2msg", kJointState);
  const std::string text =
      R"({"header":{"stamp":{"sec":-5,"nanosec":7},"frame_id":"base"},"name":["a","bc"],)"
      R"("position":[0.5,-1.0],"velocity":[],"effort":["NaN","Infinity"]})";
  const Bytes payload = from_json(*codec, text);
  EXPECT_EQ(json_of(*codec, payload), text);

  const auto message = codec->decode(payload);
  const Value::Numbers* position = message->root().find("position")->as_numbers();
  ASSERT_NE(position, nullptr);
  EXPECT_EQ(position->dtype, DType::float64);
  EXPECT_GE(position->data.data(), payload.data());  // a view, no copy
  EXPECT_LE(position->data.data() + position->data.size(), payload.data() + payload.size());
  EXPECT_EQ(message->root().find_path("header.stamp.sec")->as_int64(), -5);
  EXPECT_EQ(message->root().find_path("name[1]")->as_string(), "bc");
  EXPECT_EQ(message->root().find_path("name[2]"), nullptr);
}

TEST(Cdr, EmptySequencesTakeNoPadding) {
  const auto codec = ros2("float64[] a\nuint8 b\n");
  const Bytes payload = {0, 1, 0, 0, 0, 0, 0, 0, 9};
  EXPECT_EQ(json_of(*codec, payload), R"({"a":[],"b":9})");
  EXPECT_EQ(from_json(*codec, R"({"a":[],"b":9})"), payload);
}

TEST(Cdr, AnEmptyStringMayHaveLengthZeroOrOne) {
  const auto codec = ros2("string a\nstring b\n");
  EXPECT_EQ(json_of(*codec, Bytes{0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}), R"({"a":"","b":""})");
}

TEST(Cdr, AnEmptyStructureIsOneByte) {
  const auto codec = ros2("Nothing a\nuint8 b\n" + kRule + "\nMSG: pkg/Nothing\n");
  EXPECT_EQ(json_of(*codec, Bytes{0, 1, 0, 0, 0, 7}), R"({"a":{},"b":7})");
  const auto empty = ros2("# nothing\n");
  EXPECT_EQ(json_of(*empty, Bytes{0, 1, 0, 0, 0}), "{}");
  EXPECT_EQ(json_of(*empty, Bytes{0, 1, 0, 0}), "{}");
  EXPECT_EQ(from_json(*empty, "{}"), (Bytes{0, 1, 0, 0, 0}));
}

TEST(Cdr, WideStringsOfBothFormsAreTold) {
  const auto codec = ros2("uint8 a\nwstring b\nuint16 c\n");
  const Bytes narrow = {0, 1, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0x3D, 0xD8, 0x00, 0xDE, 'z', 0, 5, 0};
  EXPECT_EQ(json_of(*codec, narrow), "{\"a\":1,\"b\":\"\xF0\x9F\x98\x80z\",\"c\":5}");
  const Bytes wide = {0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0xF6, 1, 0, 'z', 0, 0, 0, 5, 0};
  EXPECT_EQ(json_of(*codec, wide), "{\"a\":1,\"b\":\"\xF0\x9F\x98\x80z\",\"c\":5}");
  EXPECT_EQ(from_json(*codec, "{\"a\":1,\"b\":\"\xF0\x9F\x98\x80z\",\"c\":5}"), narrow);
}

TEST(Cdr, DamageNamesTheFieldAndTheByte) {
  const auto codec = compile("cdr", "sensor_msgs/msg/JointState", "ros2msg", kJointState);
  const Bytes payload = from_json(
      *codec, R"({"header":{"frame_id":"base"},"name":["a","bc"],"position":[0.5,-1.0]})");
  EXPECT_THAT(failure(*codec, ByteSpan(payload).first(9)),
              HasSubstr("header.stamp.nanosec: byte 8: 4 bytes expected, 1 left"));
  EXPECT_THAT(failure(*codec, ByteSpan(payload).first(37)),
              HasSubstr("name[1]: byte 36: 4 bytes expected, 1 left"));
  EXPECT_THAT(failure(*codec, Bytes{0, 0x22, 0, 0}), HasSubstr("byte 1"));
  EXPECT_THAT(failure(*codec, Bytes{0, 1}), HasSubstr("encapsulation header"));
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(codec->decode(ByteSpan(payload).first(size)).ok()) << size;
  }
}

TEST(Cdr, LyingCountsAreRefusedBeforeMemoryIsTaken) {
  const auto codec = ros2("Point[] a\n" + kRule + "\nMSG: pkg/Point\nfloat64 x\nfloat64 y\n");
  EXPECT_THAT(failure(*codec, Bytes{0, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3}),
              HasSubstr("a: byte 8: 4294967295 elements of at least 16 bytes, 3 bytes left"));
  const auto numbers = ros2("float64[] a\n");
  EXPECT_THAT(failure(*numbers, Bytes{0, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F}), HasSubstr("a: byte 8"));
}

TEST(Cdr, BoundsAreChecked) {
  const auto codec = ros2("uint8[<=2] a\nstring<=3 b\n");
  EXPECT_EQ(json_of(*codec, from_json(*codec, R"({"a":"AQI=","b":"abc"})")),
            R"({"a":"AQI=","b":"abc"})");
  EXPECT_THAT(failure(*codec, Bytes{0, 1, 0, 0, 3, 0, 0, 0, 1, 2, 3, 0, 1, 0, 0, 0, 0}),
              HasSubstr("a: byte 8: a sequence of 3, its bound is 2"));
  const auto json = parse_json(R"({"b":"abcd"})");
  EXPECT_THAT(codec->encode(value_of_json(*json)).status().to_string(), HasSubstr("b: 4 elements"));
}

TEST(RosMsg, NamesResolveInTheOwnPackageFirst) {
  const auto codec = ros2("A a\nother/A b\nother/msg/A c\n" + kRule + "\nMSG: pkg/A\nuint8 own\n" +
                          kRule + "\nMSG: other/msg/A\nuint8 foreign\n");
  EXPECT_EQ(json_of(*codec, Bytes{0, 1, 0, 0, 1, 2, 3}),
            R"({"a":{"own":1},"b":{"foreign":2},"c":{"foreign":3}})");
}

TEST(RosMsg, ConstantsAndDefaultsAreNotOnTheWire) {
  const auto codec = ros2(
      "int32 X=5\nstring NAME = \"a # b\"  # text\nuint8[<=3] A=[1]\nuint8 y 7\n"
      "string<=5 s \"hi\"\nuint8[2] z [1, 2] # two\n");
  EXPECT_EQ(json_of(*codec, Bytes{0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 'x', 0, 8, 9}),
            R"({"y":1,"s":"x","z":"CAk="})");
}

TEST(RosMsg, MissingTypesAndBrokenLinesAreNamed) {
  const auto missing =
      MessageCodec::compile({"cdr", "pkg/msg/Root", "ros2msg", as_bytes("uint8 a\npkg/Gone b\n")});
  EXPECT_EQ(missing.status().code(), StatusCode::not_found);
  EXPECT_THAT(missing.status().to_string(), HasSubstr("pkg/Root: line 2: type 'pkg/Gone'"));
  const auto broken =
      MessageCodec::compile({"cdr", "pkg/msg/Root", "ros2msg", as_bytes("uint8[x] a\n")});
  EXPECT_THAT(broken.status().to_string(), HasSubstr("line 1: 'uint8[x]': 'x' is no length"));
  const auto twice =
      MessageCodec::compile({"cdr", "pkg/msg/Root", "ros2msg", as_bytes("bool a\nint8 a\n")});
  EXPECT_THAT(twice.status().to_string(), HasSubstr("line 2: a second field 'a'"));
  const auto ring = MessageCodec::compile({"cdr", "pkg/msg/Root", "ros2msg", as_bytes("Root a\n")});
  EXPECT_THAT(ring.status().to_string(), HasSubstr("pkg/Root contains itself"));
}

TEST(RosMsg, TimesAreKnownWithoutDefinition) {
  const auto codec = ros2("builtin_interfaces/Time a\nbuiltin_interfaces/msg/Duration b\n");
  EXPECT_EQ(json_of(*codec, Bytes{0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}),
            R"({"a":{"sec":1,"nanosec":2},"b":{"sec":3,"nanosec":4}})");
}

TEST(Ros1, DecodesWithoutAlignment) {
  const auto codec = compile("ros1", "pkg/Root", "ros1msg",
                             "Header header\nuint8 a\nduration b\nbyte c\nchar d\nfloat32[2] e\n"
                             "string[] f\n" +
                                 kRule +
                                 "\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\n"
                                 "string frame_id\n");
  const Bytes payload = {1,   0, 0,    0,    2,    0,    0, 0, 3, 0, 0,    0,    1,   0,  0, 0,
                         'w', 9, 0xFF, 0xFF, 0xFF, 0xFF, 4, 0, 0, 0, 0xFE, 0xFE, 0,   0,  0, 0x3F,
                         0,   0, 0x80, 0x3F, 1,    0,    0, 0, 2, 0, 0,    0,    'h', 'i'};
  const std::string text = R"({"header":{"seq":1,"stamp":{"sec":2,"nsec":3},"frame_id":"w"},"a":9,)"
                           R"("b":{"sec":-1,"nsec":4},"c":-2,"d":254,"e":[0.5,1.0],"f":["hi"]})";
  EXPECT_EQ(json_of(*codec, payload), text);
  EXPECT_EQ(from_json(*codec, text), payload);
  EXPECT_THAT(failure(*codec, ByteSpan(payload).first(45)), HasSubstr("f[0]: byte 44"));
}

TEST(Ros1, ElementsWithoutBytesCannotFillMemory) {
  const auto codec =
      compile("ros1", "pkg/Root", "ros1msg", "Nothing[] a\n" + kRule + "\nMSG: pkg/Nothing\n");
  EXPECT_EQ(json_of(*codec, Bytes{2, 0, 0, 0}), R"({"a":[{},{}]})");
  EXPECT_FALSE(codec->decode(Bytes{0xFF, 0xFF, 0xFF, 0xFF}).ok());
}

TEST(JsonCodec, KeepsIntegersExactAndReadsBytesBySchema) {
  const auto codec =
      compile("json", "foxglove.RawImage", "jsonschema",
              R"({"type":"object","properties":{"data":{"type":"string","contentEncoding":"base64"},
          "x":{"type":"number"},"p":{"type":"array","items":{"$ref":"#/$defs/P"}}},
          "$defs":{"P":{"type":"object","properties":{"y":{"type":"number"}}}}})");
  const std::string text =
      R"({"data":"AQI=","x":"NaN","t":9007199254740993,"name":"NaN","p":[{"y":"-Infinity"}]})";
  const auto message = codec->decode(as_bytes(text));
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->root().find("data")->as_binary()->size(), 2U);
  EXPECT_TRUE(std::isnan(*message->root().find("x")->as_double()));
  EXPECT_EQ(message->root().find_path("p[0].y")->as_double(), -HUGE_VAL);
  EXPECT_EQ(message->root().find("name")->as_string(), "NaN");
  EXPECT_EQ(message->root().find("t")->as_int64(), 9007199254740993);
  EXPECT_EQ(as_text(*codec->encode(message->root())), text);
  EXPECT_FALSE(codec->decode(as_bytes("{\"a\":")).ok());
}

TEST(MsgpackCodec, KeysThatAreNoTextBecomeText) {
  const auto codec = compile("msgpack", "", "", "");
  const Bytes payload = {0x83, 0x01, 0xA1, 'x',  0xA1, 'k', 0xC4, 0x02, 1,
                         2,    0xA1, 't',  0xD6, 0xFF, 0,   0,    0,    5};
  EXPECT_EQ(json_of(*codec, payload), R"({"1":"x","k":"AQI=","t":{"sec":5,"nsec":0}})");
}

TEST(MsgpackCodec, ANestedKeyIsRefused) {
  const auto codec = compile("msgpack", "", "", "");
  EXPECT_THAT(failure(*codec, Bytes{0x81, 0x81, 0x01, 0x02, 0x03}), HasSubstr("a map key"));
  EXPECT_THAT(failure(*compile("cbor", "", "", ""), Bytes{0xA1, 0xA1, 0x01, 0x02, 0x03}),
              HasSubstr("byte 3: a map key"));
}

TEST(RowExtractor, BooleansAreZeroOrOne) {
  const auto codec = ros2("bool a\nbool[2] b\n");
  const auto rows = RowExtractor::compile(codec, {{"a", 1}, {"b", 2}});
  std::vector<double> row(3);
  ASSERT_TRUE(rows->extract(Bytes{0, 1, 0, 0, 17, 0, 255}, row).ok());
  EXPECT_THAT(row, testing::ElementsAre(1, 0, 1));
}

TEST(ValueJson, BytesHaveThreeForms) {
  const Bytes bytes = {1, 2, 254};
  const Value value(Value::Numbers{.dtype = DType::uint8, .data = bytes});
  EXPECT_EQ(to_json_text(value), R"("AQL+")");
  EXPECT_EQ(to_json_text(value, {.bytes = BytesForm::numbers}), "[1,2,254]");
  EXPECT_EQ(to_json_text(value, {.bytes = BytesForm::elided}), R"("<3 bytes>")");
  EXPECT_EQ(*from_base64("AQL-"), bytes);
  EXPECT_EQ(*from_base64("AQ"), Bytes{1});
  EXPECT_EQ(from_base64("A"), std::nullopt);
  EXPECT_EQ(from_base64("A*=="), std::nullopt);
}

TEST(ValueJson, TextThatIsNoUtf8IsReplaced) {
  EXPECT_EQ(to_json_text(Value(std::string_view("a\xFF\"\n\x01\xC3\xA9"))),
            "\"a\xEF\xBF\xBD\\\"\\n\\u0001\xC3\xA9\"");
}

TEST(RowExtractor, TakesAJointStateIntoARow) {
  const auto codec = compile("cdr", "sensor_msgs/msg/JointState", "ros2msg", kJointState);
  const Bytes payload = from_json(
      *codec, R"({"header":{"stamp":{"sec":3,"nanosec":7},"frame_id":"base"},"name":["a","bc"],)"
              R"("position":[0.5,-1],"velocity":[],"effort":[4,5]})");
  const auto rows = RowExtractor::compile(
      codec, {{"effort", 2}, {"position", 2}, {"velocity", 2}, {"header.stamp.sec", 1}});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  ASSERT_EQ(rows->width(), 7U);
  std::vector<double> row(7);
  ASSERT_TRUE(rows->extract(payload, row).ok());
  EXPECT_THAT(row, testing::ElementsAre(4, 5, 0.5, -1, testing::IsNan(), testing::IsNan(), 3));

  EXPECT_FALSE(rows->extract(ByteSpan(payload).first(60), row).ok());
  const auto short_rows = RowExtractor::compile(codec, {{"position", 3}});
  EXPECT_THAT(short_rows->extract(payload, std::span(row).first(3)).to_string(),
              HasSubstr("position: byte 44: 3 elements expected, 2 found"));
}

TEST(RowExtractor, RefusesPathsThatAreNotThere) {
  const auto codec = compile("cdr", "sensor_msgs/msg/JointState", "ros2msg", kJointState);
  const auto compiled = [&](std::string path, std::uint32_t width) {
    return RowExtractor::compile(codec, {{std::move(path), width}}).status();
  };
  EXPECT_EQ(compiled("positions", 14).code(), StatusCode::not_found);
  EXPECT_EQ(compiled("header.stamp.sec.x", 1).code(), StatusCode::not_found);
  EXPECT_EQ(compiled("name", 14).code(), StatusCode::invalid_argument);
  EXPECT_EQ(compiled("header.frame_id", 1).code(), StatusCode::invalid_argument);
  EXPECT_EQ(compiled("header.stamp.sec", 2).code(), StatusCode::invalid_argument);
}

TEST(RowExtractor, PicksElementsAndSkipsFixedRuns) {
  const auto codec =
      ros2("uint8 a\nPose[] poses\nfloat32[3] b\nuint8 c\nPose[2] d\nint64 e\n" + kRule +
           "\nMSG: pkg/Pose\nstring frame\nuint8 kind\nfloat64[3] at\nuint16 n\n");
  const Bytes payload = from_json(*codec,
                                  R"({"a":1,"poses":[{"frame":"x","kind":1,"at":[1,2,3],"n":4},
          {"frame":"yyyy","kind":2,"at":[5,6,7],"n":8}],"b":[9,10,11],"c":12,
          "d":[{"at":[13,14,15],"n":16},{"frame":"zz","at":[17,18,19],"n":20}],"e":21})");
  const auto rows = RowExtractor::compile(
      codec, {{"poses[1].at", 3}, {"poses[0].n", 1}, {"b", 3}, {"d[1].at[2]", 1}, {"e", 1}});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  std::vector<double> row(9);
  const Status status = rows->extract(payload, row);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_THAT(row, testing::ElementsAre(5, 6, 7, 4, 9, 10, 11, 19, 21));
  const auto beyond = RowExtractor::compile(codec, {{"poses[2].n", 1}});
  EXPECT_THAT(beyond->extract(payload, std::span(row).first(1)).to_string(),
              HasSubstr("poses[2].n: byte 12: there are 2 elements"));
}

TEST(RowExtractor, SkipsTheSameBytesAsTheDecoder) {
  // Every phase of a fixed run, in front of the wanted number.
  for (int lead = 0; lead < 9; ++lead) {
    std::string schema;
    for (int i = 0; i < lead; ++i) schema += "uint8 l" + std::to_string(i) + "\n";
    schema += "Fixed[1000] runs\nstring s\nFixed[] more\nuint8 wanted\n" + kRule +
              "\nMSG: pkg/Fixed\nuint8 a\nuint16 b\nfloat64 c\nuint8 d\n";
    const auto codec = ros2(schema);
    const Bytes payload = from_json(*codec, R"({"s":"abc","more":[{},{},{}],"wanted":77})");
    const auto rows = RowExtractor::compile(codec, {{"wanted", 1}});
    double wanted = 0;
    ASSERT_TRUE(rows->extract(payload, {&wanted, 1}).ok());
    EXPECT_EQ(wanted, 77) << lead;
  }
}

TEST(RowExtractor, ReadsNamedEncodingsToo) {
  const auto codec = compile("json", "", "", "");
  const auto rows = RowExtractor::compile(codec, {{"a.b", 2}, {"c[0].d", 1}});
  std::vector<double> row(3);
  ASSERT_TRUE(rows->extract(as_bytes(R"({"a":{"b":[1,2.5]},"c":[{"d":3}]})"), row).ok());
  EXPECT_THAT(row, testing::ElementsAre(1, 2.5, 3));
  EXPECT_FALSE(rows->extract(as_bytes(R"({"a":{"b":[1]}})"), row).ok());
}

}  // namespace
}  // namespace ropewalk::message
