#include "ropewalk/format/message/msgpack.h"

#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "ropewalk/format/message/msgpack_numpy.h"

namespace ropewalk::msgpack {
namespace {

Bytes hex(std::string_view text) {
  Bytes out;
  int high = -1;
  for (const char c : text) {
    if (c == ' ') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      out.push_back(static_cast<std::uint8_t>(high * 16 + digit));
      high = -1;
    }
  }
  return out;
}

template <typename Write>
std::string written(Write write) {
  Bytes out;
  Writer writer(out);
  write(writer);
  return to_hex(out);
}

Bytes array_bytes(DType dtype, std::vector<std::int64_t> shape, ByteSpan data) {
  Bytes out;
  const Status status =
      append_ndarray(out, {.dtype = dtype, .shape = std::move(shape), .data = data});
  EXPECT_TRUE(status.ok()) << status.to_string();
  return out;
}

constexpr std::string_view kUint8Array =
    "84 c40b 5f5f6e6461727261795f5f c3 c404 64617461 c40c 000102030405060708090a0b c405 6474797065 "
    "a3 7c7531 c405 7368617065 93 02 02 03";
constexpr std::string_view kFloat64Array =
    "84 c40b 5f5f6e6461727261795f5f c3 c404 64617461 c410 000000000000f03f0000000000000040 c405 "
    "6474797065 a3 3c6638 c405 7368617065 92 01 02";

TEST(Msgpack, IntegersTakeTheirSmallestForm) {
  const auto integer = [](std::int64_t value) {
    return written([&](Writer& w) { w.integer(value); });
  };
  EXPECT_EQ(integer(0), "00");
  EXPECT_EQ(integer(127), "7f");
  EXPECT_EQ(integer(128), "cc80");
  EXPECT_EQ(integer(256), "cd0100");
  EXPECT_EQ(integer(65536), "ce00010000");
  EXPECT_EQ(integer(1LL << 32), "cf0000000100000000");
  EXPECT_EQ(integer(-1), "ff");
  EXPECT_EQ(integer(-32), "e0");
  EXPECT_EQ(integer(-33), "d0df");
  EXPECT_EQ(integer(-129), "d1ff7f");
  EXPECT_EQ(integer(-32769), "d2ffff7fff");
  EXPECT_EQ(integer(std::numeric_limits<std::int64_t>::min()), "d38000000000000000");
  EXPECT_EQ(written([](Writer& w) { w.unsigned_integer(~std::uint64_t{0}); }),
            "cfffffffffffffffff");
}

TEST(Msgpack, HeadsChangeFormAtTheirLimits) {
  const auto head = [](auto member, std::uint64_t size) {
    return written([&](Writer& w) { EXPECT_TRUE((w.*member)(size).ok()); });
  };
  EXPECT_EQ(head(&Writer::array_head, 15), "9f");
  EXPECT_EQ(head(&Writer::array_head, 16), "dc0010");
  EXPECT_EQ(head(&Writer::array_head, 65536), "dd00010000");
  EXPECT_EQ(head(&Writer::map_head, 15), "8f");
  EXPECT_EQ(head(&Writer::map_head, 16), "de0010");
  EXPECT_EQ(head(&Writer::map_head, 65536), "df00010000");
  EXPECT_EQ(head(&Writer::binary_head, 255), "c4ff");
  EXPECT_EQ(head(&Writer::binary_head, 256), "c50100");
  EXPECT_EQ(head(&Writer::binary_head, 65536), "c600010000");
  const auto string = [](std::size_t size) {
    return written([&](Writer& w) { EXPECT_TRUE(w.string(std::string(size, 'a')).ok()); });
  };
  EXPECT_EQ(string(31).substr(0, 2), "bf");
  EXPECT_EQ(string(32).substr(0, 4), "d920");
  EXPECT_EQ(string(256).substr(0, 6), "da0100");
  EXPECT_EQ(string(65536).substr(0, 10), "db00010000");
  Bytes out;
  EXPECT_EQ(Writer(out).binary_head(1ULL << 32).code(), StatusCode::resource_exhausted);
}

TEST(Msgpack, GoldenEpisodeMapIsWrittenExactly) {
  Json metadata = Json::object();
  metadata.set("episode_index", 0);
  metadata.set("fps", 30.0);
  Json body = Json::object();
  body.set("columns", Json::object());
  body.set("images", Json::object());
  body.set("metadata", metadata);
  EXPECT_EQ(written([&](Writer& w) { EXPECT_TRUE(w.json(body).ok()); }),
            to_hex(hex("83 a7 636f6c756d6e73 80 a6 696d61676573 80 a8 6d65746164617461 82 ad "
                       "657069736f64655f696e646578 00 a3 667073 cb 403e000000000000")));
}

TEST(Msgpack, GoldenArraysAreWrittenExactly) {
  Bytes twelve(12);
  std::iota(twelve.begin(), twelve.end(), std::uint8_t{0});
  const Bytes small = array_bytes(DType::uint8, {2, 2, 3}, twelve);
  EXPECT_EQ(to_hex(small), to_hex(hex(kUint8Array)));
  EXPECT_EQ(small.size(), 57u);
  const double values[] = {1, 2};
  Bytes raw(sizeof values);
  std::memcpy(raw.data(), values, sizeof values);
  EXPECT_EQ(to_hex(array_bytes(DType::float64, {1, 2}, raw)), to_hex(hex(kFloat64Array)));

  const auto frame = ndarray_frame(DType::uint8, std::vector<std::int64_t>{480, 640, 3});
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->total_bytes(), 921'652u);
  EXPECT_EQ(to_hex(frame->head),
            to_hex(hex("84 c40b 5f5f6e6461727261795f5f c3 c404 64617461 c6 000e1000")));
  EXPECT_EQ(to_hex(frame->tail),
            to_hex(hex("c405 6474797065 a3 7c7531 c405 7368617065 93 cd01e0 cd0280 03")));
}

TEST(Msgpack, GoldenScalarIsWrittenExactly) {
  Bytes out;
  ASSERT_TRUE(append_scalar(out, DType::float32, 1.5).ok());
  EXPECT_EQ(to_hex(out), to_hex(hex("83 c40d 5f5f6e7067656e657269635f5f c3 c404 64617461 cb "
                                    "3ff8000000000000 c405 6474797065 a3 3c6634")));
  const auto value = decode(out);
  ASSERT_TRUE(value.ok());
  ASSERT_NE(as_scalar(*value), nullptr);
  EXPECT_EQ(as_scalar(*value)->as_double(), 1.5);
  EXPECT_EQ(to_json(*value)->as_double(), 1.5);
}

TEST(Msgpack, ArrayBeyondABinaryIsRefusedByName) {
  const auto frame = ndarray_frame(DType::uint8, std::vector<std::int64_t>{1LL << 32});
  EXPECT_EQ(frame.status().code(), StatusCode::resource_exhausted);
  EXPECT_TRUE(ndarray_frame(DType::uint8, std::vector<std::int64_t>{(1LL << 32) - 1}).ok());
  EXPECT_EQ(ndarray_frame(DType::string, std::vector<std::int64_t>{1}).status().code(),
            StatusCode::invalid_argument);
}

TEST(Msgpack, EveryValueReadsBackEqual) {
  const auto json = parse_json(
      R"({"a": null, "b": [true, false, -1, -40, 300, 70000, 5000000000, -5000000000], "c": 1.25,
          "d": {"": "", "unicode": "dé", "nested": [[[]], {}]}, "e": 18446744073709551615})");
  ASSERT_TRUE(json.ok());
  Bytes out;
  ASSERT_TRUE(Writer(out).json(*json).ok());
  const auto value = decode(out);
  ASSERT_TRUE(value.ok()) << value.status().to_string();
  const auto back = to_json(*value);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->dump(), json->dump());
}

TEST(Msgpack, EveryTagIsDecoded) {
  EXPECT_EQ(decode(hex("ca3fc00000"))->as_double(), 1.5);
  EXPECT_EQ(decode(hex("cf8000000000000000"))->as_double(), 9223372036854775808.0);
  EXPECT_EQ(decode(hex("d2ffffffff"))->as_int64(), -1);
  EXPECT_EQ(decode(hex("cf0000000000000005"))->as_int64(), 5);
  EXPECT_EQ(decode(hex("d6ff00000001"))->type_name(), "extension");
  EXPECT_EQ(decode(hex("c70105aa"))->type_name(), "extension");
  EXPECT_EQ(decode(hex("dc0001c0"))->as_array()->size(), 1u);
  EXPECT_EQ(decode(hex("df00000001a16101"))->find("a")->as_int64(), 1);
  EXPECT_EQ(decode(hex("c1")).status().code(), StatusCode::data_loss);
}

TEST(Msgpack, ClaimsBeyondTheBytesAreRefusedWithoutAllocating) {
  for (const std::string_view bomb : {"ddffffffff", "dfffffffff", "dbffffffff", "c6ffffffff",
                                      "c9ffffffff00", "dc0002c0", "cd01", ""}) {
    EXPECT_EQ(decode(hex(bomb)).status().code(), StatusCode::data_loss) << bomb;
  }
  const Bytes deep(1000, 0x91);
  EXPECT_EQ(decode(deep).status().code(), StatusCode::resource_exhausted);
  Bytes many = hex("dd00500000");
  many.resize(many.size() + 0x500000, 0xC0);
  EXPECT_EQ(decode(many).status().code(), StatusCode::resource_exhausted);
}

TEST(Msgpack, BytesAfterTheValueAreAnErrorUnlessAskedFor) {
  EXPECT_EQ(decode(hex("01 02")).status().code(), StatusCode::data_loss);
  std::size_t used = 0;
  EXPECT_TRUE(decode(hex("cd0102 02"), {}, &used).ok());
  EXPECT_EQ(used, 3u);
}

TEST(MsgpackNumpy, ArraysAreReadWithStringKeysInAnyOrderAndBothByteOrders) {
  const Bytes plain = hex(kFloat64Array);
  const auto value = decode(plain);
  const auto array = as_ndarray(*value);
  ASSERT_TRUE(array.ok() && array->has_value());
  EXPECT_EQ((*array)->dtype, DType::float64);
  EXPECT_EQ((*array)->shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(to_json(*value)->dump(), "[[1.0,2.0]]");

  // {"shape": [2], "dtype": ">i2", "data": 0001 fffe, "__ndarray__": true} with string keys.
  const Bytes other =
      hex("84 a5 7368617065 91 02 a5 6474797065 a3 3e6932 a4 64617461 c404 0001fffe ab "
          "5f5f6e6461727261795f5f c3");
  const auto swapped = as_ndarray(*decode(other));
  ASSERT_TRUE(swapped.ok() && swapped->has_value());
  EXPECT_EQ((*swapped)->dtype, DType::int16);
  EXPECT_EQ(to_hex((*swapped)->data), "0100feff");
}

TEST(MsgpackNumpy, ShapeMustMatchTheData) {
  Bytes bytes = hex(kUint8Array);
  bytes.back() = 4;  // 2 x 2 x 4
  const auto value = decode(bytes);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(as_ndarray(*value).status().code(), StatusCode::data_loss);
  // A shape whose product overflows.
  const Bytes overflow =
      hex("84 a5 7368617065 92 cf4000000000000000 04 a5 6474797065 a3 7c7531 a4 64617461 c400 ab "
          "5f5f6e6461727261795f5f c3");
  EXPECT_EQ(as_ndarray(*decode(overflow)).status().code(), StatusCode::data_loss);
}

TEST(MsgpackNumpy, PlainMapsAreNoArrays) {
  const Bytes map = hex("81 a16101");
  const auto none = as_ndarray(*decode(map));
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  EXPECT_EQ(as_scalar(*decode(map)), nullptr);
}

TEST(MsgpackNumpy, ComplexAndObjectTypesAreRefusedByName) {
  const Bytes complex =
      hex("84 a5 7368617065 91 01 a5 6474797065 a4 3c633136 a4 64617461 c410 "
          "00000000000000000000000000000000 ab 5f5f6e6461727261795f5f c3");
  const auto refused = as_ndarray(*decode(complex));
  EXPECT_EQ(refused.status().code(), StatusCode::unimplemented);
  EXPECT_NE(refused.status().message().find("<c16"), std::string_view::npos);
}

TEST(MsgpackNumpy, TextArraysAreUcs4AndReadBackEqual) {
  const std::vector<std::string> texts{"a", "", "dé", "日本", "\xF0\x9F\x98\x80x"};
  Bytes out;
  ASSERT_TRUE(append_text_array(out, texts, std::vector<std::int64_t>{5}).ok());
  const auto value = decode(out);
  EXPECT_EQ(value->find("dtype")->as_string(), "<U2");
  EXPECT_EQ(value->find("data")->as_binary()->size(), 5u * 2 * 4);
  const auto array = as_ndarray(*value);
  ASSERT_TRUE(array.ok() && array->has_value()) << array.status().to_string();
  ASSERT_EQ((*array)->texts.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ((*array)->texts[i], texts[i]);
  const std::vector<std::string> bad{std::string("a\0", 2)};
  EXPECT_EQ(append_text_array(out, bad, std::vector<std::int64_t>{1}).code(),
            StatusCode::invalid_argument);
  const std::vector<std::string> latin{"\xE9"};
  EXPECT_EQ(append_text_array(out, latin, std::vector<std::int64_t>{1}).code(),
            StatusCode::invalid_argument);
}

TEST(MsgpackNumpy, ObjectArraysOfOtherWritersAreRead) {
  Json map = Json::object();
  map.set("__eva_numpy_array__", true);
  map.set("dtype", "<U3");
  Json shape = Json::array();
  shape.push_back(2);
  Json values = Json::array();
  values.push_back("one");
  values.push_back("two");
  map.set("shape", shape);
  map.set("values", values);
  Bytes out;
  ASSERT_TRUE(Writer(out).json(map).ok());
  const auto array = as_ndarray(*decode(out));
  ASSERT_TRUE(array.ok() && array->has_value()) << array.status().to_string();
  EXPECT_EQ((*array)->texts, (std::vector<std::optional<std::string>>{"one", "two"}));
}

TEST(MsgpackNumpy, ObjectArraysKeepNullAndAnyBytes) {
  const std::vector<std::optional<std::string>> texts{std::nullopt, std::string("a\0", 2), "\xE9"};
  for (const bool binary : {false, true}) {
    Bytes out;
    ASSERT_TRUE(append_object_array(out, texts, std::vector<std::int64_t>{3}, binary).ok());
    const auto array = as_ndarray(*decode(out));
    ASSERT_TRUE(array.ok() && array->has_value()) << array.status().to_string();
    EXPECT_EQ((*array)->texts, texts);
    EXPECT_EQ((*array)->dtype, binary ? DType::bytes : DType::string);
  }
}

}  // namespace
}  // namespace ropewalk::msgpack
