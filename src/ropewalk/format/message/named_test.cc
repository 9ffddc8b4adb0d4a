// Encodings whose payloads or schemas are made by other libraries: protobuf, flatbuffer, CBOR.
#include <cmath>
#include <string>

#include <flatbuffers/idl.h>
#include <gmock/gmock.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include "ropewalk/format/message/message.h"

namespace ropewalk::message {
namespace {

namespace pb = google::protobuf;
using testing::HasSubstr;

pb::FileDescriptorProto parse_proto(const std::string& name, const std::string& text) {
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  pb::io::Tokenizer tokenizer(&stream, nullptr);
  pb::FileDescriptorProto file;
  EXPECT_TRUE(pb::compiler::Parser().Parse(&tokenizer, &file)) << name;
  file.set_name(name);
  return file;
}

Result<std::shared_ptr<const MessageCodec>> compile_protobuf(
    const std::vector<pb::FileDescriptorProto>& files, std::string_view name) {
  pb::FileDescriptorSet set;
  for (const auto& file : files) *set.add_file() = file;
  const std::string bytes = set.SerializeAsString();
  return MessageCodec::compile({"protobuf", name, "protobuf", as_bytes(bytes)});
}

std::shared_ptr<const MessageCodec> protobuf(const std::string& text, std::string_view name) {
  auto codec = compile_protobuf({parse_proto("root.proto", text)}, name);
  EXPECT_TRUE(codec.ok()) << codec.status().to_string();
  return codec.ok() ? *codec : nullptr;
}

std::string json_of(const MessageCodec& codec, ByteSpan payload) {
  const auto message = codec.decode(payload);
  return message.ok() ? to_json_text(message->root()) : message.status().to_string();
}

Bytes from_json(const MessageCodec& codec, std::string_view text) {
  const auto json = parse_json(text);
  EXPECT_TRUE(json.ok());
  const auto bytes = codec.encode(value_of_json(*json));
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? *bytes : Bytes();
}

TEST(Protobuf, EveryKindRoundTrips) {
  const auto codec = protobuf(R"(syntax = "proto3"; package a;
    enum E { ZERO = 0; ONE = 1; MINUS = -1; }
    message M { double d = 1; float f = 2; int32 i = 3; int64 l = 4; uint32 u = 5; uint64 ul = 6;
      sint32 s = 7; sint64 sl = 8; fixed32 x = 9; fixed64 xl = 10; sfixed32 y = 11;
      sfixed64 yl = 12; bool b = 13; string t = 14; bytes o = 15; E e = 16; M m = 17;
      repeated int32 ri = 18; repeated double rd = 19; repeated string rs = 20;
      repeated E re = 21; repeated M rm = 22; map<string, int32> ms = 23; map<int64, M> mm = 24;
      oneof c { int32 ca = 25; string cb = 26; } optional int32 q = 27; map<bool, E> mb = 28;
      repeated sint64 rz = 29; repeated bool rb = 30; })",
                              "a.M");
  const std::string empty =
      R"({"d":0.0,"f":0.0,"i":0,"l":0,"u":0,"ul":0,"s":0,"sl":0,"x":0,"xl":0,"y":0,"yl":0,)"
      R"("b":false,"t":"","o":"","e":"ZERO","ri":[],"rd":[],"rs":[],"re":[],"rm":[],"ms":{},)"
      R"("mm":{},"mb":{},"rz":[],"rb":[]})";
  EXPECT_EQ(json_of(*codec, {}), empty);
  EXPECT_EQ(from_json(*codec, empty), Bytes());
  const std::string text =
      R"({"d":0.1,"f":0.1,"i":-1,"l":"-9223372036854775808","u":4294967295,)"
      R"("ul":"18446744073709551615","s":-2147483648,"sl":-3,"x":5,"xl":6,"y":-7,"yl":-8,"b":true,)"
      R"("t":"é","o":"AP8=","e":"MINUS","m":)" +
      empty + R"(,"ri":[1,-1,300],"rd":[1.5,"NaN"],"rs":["","b"],"re":["ONE","MINUS"],"rm":[)" +
      empty + R"(],"ms":{"k":7,"":0},"mm":{"-5":)" + empty +
      R"(},"cb":"","q":0,"mb":{"true":"ONE"},"rz":[-1,1],"rb":[true,false]})";
  EXPECT_EQ(json_of(*codec, from_json(*codec, text)), text);
}

TEST(Protobuf, PackedAndUnpackedAreBothRead) {
  const auto codec =
      protobuf(R"(syntax = "proto2"; message M { repeated int32 p = 1 [packed = true];
      repeated int32 u = 2; repeated float f = 3 [packed = true]; })",
               "M");
  EXPECT_EQ(json_of(*codec, Bytes{0x08, 1,    0x0A, 2,    2,    3, 0x08, 4,    0x12, 1,
                                  5,    0x10, 6,    0x1A, 4,    0, 0,    0x80, 0x3F, 0x1D,
                                  0,    0,    0,    0x40, 0x1A, 4, 0,    0,    0x80, 0x3F}),
            R"({"p":[1,2,3,4],"u":[5,6],"f":[1.0,2.0,1.0]})");
}

TEST(Protobuf, GroupsExtensionsAndUnknownFieldsAreKept) {
  const auto codec = protobuf(R"(syntax = "proto2"; package a; message M {
      optional group G = 1 { optional int32 v = 2; } extensions 100 to 200;
      optional int32 d = 3 [default = 9]; }
    extend M { optional string note = 101; })",
                              "a.M");
  const Bytes payload = {0x0B, 0x10, 5,    0x0C,                          // group G
                         0xAA, 0x06, 2,    'h',  'i',                     // extension 101
                         0x20, 7,    0x2D, 1,    0,   0, 0, 0x32, 1, 9};  // 4, 5 and 6 are unknown
  EXPECT_EQ(json_of(*codec, payload),
            R"({"g":{"v":5},"[a.note]":"hi","#4":7,"#5":[1],"#6":"CQ=="})");
  const auto message = codec->decode(payload);
  EXPECT_EQ(*codec->encode(message->root()), payload);
}

TEST(Protobuf, ASplitMessageIsMerged) {
  const auto codec = protobuf(
      R"(syntax = "proto3"; message M { message P { int32 a = 1; repeated int32 b = 2; } P p = 1;
         oneof o { int32 x = 2; int32 y = 3; } })",
      "M");
  EXPECT_EQ(json_of(*codec, Bytes{0x0A, 4, 8, 1, 16, 2, 0x10, 1, 0x0A, 2, 16, 3, 0x18, 2}),
            R"({"p":{"a":1,"b":[2,3]},"y":2})");
}

TEST(Protobuf, FilesInAnyOrderAndKnownImportsLeftOut) {
  const auto root = parse_proto("z.proto", R"(syntax = "proto3"; package z;
      import "a.proto"; import "google/protobuf/timestamp.proto";
      message M { a.P p = 1; google.protobuf.Timestamp t = 2; })");
  const auto part =
      parse_proto("a.proto", R"(syntax = "proto3"; package a; message P { int32 i = 1; })");
  const auto codec = compile_protobuf({root, part}, ".z.M");
  ASSERT_TRUE(codec.ok()) << codec.status().to_string();
  const std::string text = R"({"p":{"i":3},"t":{"seconds":5,"nanos":6}})";
  EXPECT_EQ(json_of(**codec, from_json(**codec, text)), text);
  EXPECT_THAT(compile_protobuf({root}, "z.M").status().to_string(),
              HasSubstr("'z.proto' imports 'a.proto'"));
  EXPECT_THAT(compile_protobuf({part}, "a.Q").status().to_string(),
              HasSubstr("no message type 'a.Q'"));
  auto ring = part;
  ring.add_dependency("a.proto");
  EXPECT_FALSE(compile_protobuf({ring}, "a.P").ok());
}

TEST(Protobuf, DamageNamesTheFieldAndTheByte) {
  const auto codec = protobuf(
      R"(syntax = "proto3"; message M { M m = 1; repeated M rm = 2; double d = 3; string s = 4; })",
      "M");
  EXPECT_THAT(json_of(*codec, Bytes{0x12, 0, 0x12, 4, 0x0A, 2, 0x19, 1}),
              HasSubstr("rm[1].m.d: byte 7: 8 bytes expected, 1 left"));
  EXPECT_THAT(json_of(*codec, Bytes{0x22, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 'a'}),
              HasSubstr("s: byte 1: 4294967295 bytes expected, 1 left"));
  EXPECT_THAT(json_of(*codec, Bytes{0x0C}), HasSubstr("byte 0: the end of a group"));
  Bytes deep;
  for (int i = 0; i < 200; ++i) {
    Bytes outer = {0x0A, static_cast<std::uint8_t>((deep.size() & 0x7F) | 0x80),
                   static_cast<std::uint8_t>(deep.size() >> 7)};
    outer.insert(outer.end(), deep.begin(), deep.end());
    deep = outer;
  }
  EXPECT_THAT(json_of(*codec, deep), HasSubstr("nested deeper than 100 levels"));
}

constexpr const char* kFlatSchema = R"(
  namespace f; enum Color : ubyte { Red, Green = 5 } struct V { x: float; n: [short:2]; c: Color; }
  table Leaf { v: int = 7; } table Other { s: string; }
  union Any { Leaf, Other }
  table Root { t: string; b: [ubyte]; d: [double]; v: V; vs: [V]; leaf: Leaf; leaves: [Leaf];
    names: [string]; any: Any; anys: [Any]; c: Color = Green; o: int = null; q: ulong; k: [Color];
    f: bool = true; gone: int (deprecated); }
  root_type Root; )";

struct Flat {
  std::shared_ptr<const MessageCodec> codec;
  Bytes payload;
};

Flat flat(const char* json) {
  flatbuffers::Parser parser;
  EXPECT_TRUE(parser.Parse(kFlatSchema)) << parser.error_;
  parser.Serialize();
  const ByteSpan schema(parser.builder_.GetBufferPointer(), parser.builder_.GetSize());
  Flat out;
  auto codec = MessageCodec::compile({"flatbuffer", "f.Root", "flatbuffer", schema});
  EXPECT_TRUE(codec.ok()) << codec.status().to_string();
  if (codec.ok()) out.codec = *codec;
  flatbuffers::Parser data;
  EXPECT_TRUE(data.Parse(kFlatSchema) && data.Parse(json)) << data.error_;
  out.payload.assign(data.builder_.GetBufferPointer(),
                     data.builder_.GetBufferPointer() + data.builder_.GetSize());
  return out;
}

TEST(Flatbuffer, DecodesEveryKind) {
  const Flat made = flat(R"({t: "hi", b: [1, 2], d: [0.5, -1], v: {x: 1.5, n: [3, -4], c: "Green"},
    vs: [{x: 2, n: [0, 1], c: "Red"}], leaf: {}, leaves: [{v: 1}, {}], names: ["a", ""],
    any_type: "Other", any: {s: "x"}, anys_type: ["Leaf", "Other"], anys: [{v: 9}, {}],
    q: 18446744073709551615, k: ["Red", "Green"]})");
  EXPECT_EQ(json_of(*made.codec, made.payload),
            R"({"t":"hi","b":"AQI=","d":[0.5,-1.0],"v":{"x":1.5,"n":[3,-4],"c":"Green"},)"
            R"("vs":[{"x":2.0,"n":[0,1],"c":"Red"}],"leaf":{"v":7},"leaves":[{"v":1},{"v":7}],)"
            R"("names":["a",""],"any_type":"Other","any":{"s":"x"},"anys_type":["Leaf","Other"],)"
            R"("anys":[{"v":9},{}],"c":"Green","q":"18446744073709551615","k":["Red","Green"],)"
            R"("f":true})");
}

TEST(Flatbuffer, AbsentFieldsHaveTheirDefault) {
  const Flat made = flat("{}");
  EXPECT_EQ(json_of(*made.codec, made.payload),
            R"({"b":"","d":[],"vs":[],"leaves":[],"names":[],"any_type":"NONE","anys_type":[],)"
            R"("anys":[],"c":"Green","q":0,"k":[],"f":true})");
}

TEST(Flatbuffer, AnyStartOfThePayloadWillDo) {
  const Flat made = flat(R"({d: [1, 2]})");
  Bytes shifted = {0};
  shifted.insert(shifted.end(), made.payload.begin(), made.payload.end());
  EXPECT_EQ(json_of(*made.codec, ByteSpan(shifted).subspan(1)), json_of(*made.codec, made.payload));
}

TEST(Flatbuffer, LyingOffsetsNeverLeaveThePayload) {
  const Flat made = flat(R"({t: "hi", leaf: {}, leaves: [{v: 1}], names: ["a"], any_type: "Other",
    any: {s: "x"}})");
  EXPECT_THAT(json_of(*made.codec, Bytes{0xFF, 0xFF, 0xFF, 0x7F}), HasSubstr("byte 2147483647"));
  int refused = 0;
  for (std::size_t at = 0; at < made.payload.size(); ++at) {
    for (const int value : {0x00, 0x7F, 0xFF}) {
      const Bytes exact = [&] {
        Bytes changed = made.payload;
        changed[at] = static_cast<std::uint8_t>(value);
        return changed;
      }();
      refused += made.codec->decode(exact).ok() ? 0 : 1;
    }
    EXPECT_TRUE(at == 0 || !made.codec->decode(ByteSpan(made.payload).first(4)).ok());
  }
  EXPECT_GT(refused, 20);
}

TEST(Flatbuffer, SchemasAreVerified) {
  EXPECT_FALSE(
      MessageCodec::compile({"flatbuffer", "f.Root", "flatbuffer", as_bytes("BFBS")}).ok());
  flatbuffers::Parser parser;
  ASSERT_TRUE(parser.Parse(kFlatSchema));
  parser.Serialize();
  const ByteSpan schema(parser.builder_.GetBufferPointer(), parser.builder_.GetSize());
  EXPECT_THAT(
      MessageCodec::compile({"flatbuffer", "f.V", "flatbuffer", schema}).status().to_string(),
      HasSubstr("no table 'f.V'"));
  EXPECT_FALSE(
      MessageCodec::compile({"flatbuffer", "f.Root", "flatbuffer", schema.first(300)}).ok());
}

std::shared_ptr<const MessageCodec> cbor() { return *MessageCodec::compile({"cbor", "", "", {}}); }

TEST(Cbor, ItemsOfEveryKind) {
  // {"a": [1, -2, 1.5 (half), 1e300], "b": h'0102', 3: true, "t": 1(5), "n": null,
  //  "f": 86(h'...'), "s": (_ "x", "y"), "i": [_ 1]}
  const Bytes payload = {0xA8, 0x61, 'a',  0x84, 0x01, 0x21, 0xF9, 0x3E, 0x00, 0xFB, 0x7E, 0x37,
                         0xE4, 0x3C, 0x88, 0x00, 0x75, 0x9C, 0x61, 'b',  0x42, 1,    2,    0x03,
                         0xF5, 0x61, 't',  0xC1, 0x05, 0x61, 'n',  0xF6, 0x61, 'f',  0xD8, 86,
                         0x48, 0,    0,    0,    0,    0,    0,    0xF8, 0x3F, 0x61, 's',  0x7F,
                         0x61, 'x',  0x61, 'y',  0xFF, 0x61, 'i',  0x9F, 0x01, 0xFF};
  EXPECT_EQ(json_of(*cbor(), payload),
            R"({"a":[1,-2,1.5,1e+300],"b":"AQI=","3":true,"t":{"sec":5,"nsec":0},"n":null,)"
            R"("f":[1.5],"s":"xy","i":[1]})");
  EXPECT_EQ(json_of(*cbor(), Bytes{0x3B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}),
            R"("-18446744073709551616")");
}

TEST(Cbor, DamageNamesTheByte) {
  EXPECT_THAT(json_of(*cbor(), Bytes{0x82, 0x01}), HasSubstr("byte 2: an item is cut short"));
  EXPECT_THAT(json_of(*cbor(), Bytes{0x9A, 0xFF, 0xFF, 0xFF, 0xFF}),
              HasSubstr("4294967295 values announced, 5 bytes left"));
  EXPECT_THAT(json_of(*cbor(), Bytes{0xFF}), HasSubstr("break with nothing to end"));
  EXPECT_THAT(json_of(*cbor(), Bytes{0x01, 0x01}), HasSubstr("1 bytes after the value"));
  EXPECT_THAT(json_of(*cbor(), Bytes(1000, 0x81)), HasSubstr("nested deeper than 128 levels"));
  EXPECT_THAT(json_of(*cbor(), Bytes(1000, 0x9F)), HasSubstr("nested deeper than 128 levels"));
  EXPECT_THAT(json_of(*cbor(), Bytes(1000, 0xC1)), HasSubstr("more than 16 tags"));
}

TEST(Cbor, RoundTripsJson) {
  const std::string text =
      R"({"a":[0,23,24,255,256,65536,4294967296,-1,-25],"b":{"c":1.5,"d":false,"e":null},"f":""})";
  EXPECT_EQ(json_of(*cbor(), from_json(*cbor(), text)), text);
}

}  // namespace
}  // namespace ropewalk::message
