#include "ropewalk/base/core/json.h"

#include <gtest/gtest.h>

namespace ropewalk {
namespace {

TEST(Json, KeepsKeyOrderIntegersAndDecimals) {
  const auto doc =
      parse_json(R"({"b":30.0,"a":[1,2,-3],"c":{"d":null,"e":true},"u":18446744073709551615})");
  ASSERT_TRUE(doc.ok());
  EXPECT_EQ(doc->dump(),
            R"({"b":30.0,"a":[1,2,-3],"c":{"d":null,"e":true},"u":18446744073709551615})");
  EXPECT_EQ(doc->dump_canonical(),
            R"({"a":[1,2,-3],"b":30.0,"c":{"d":null,"e":true},"u":18446744073709551615})");
  EXPECT_EQ(doc->dump_spaced().substr(0, 24), R"({"b": 30.0, "a": [1, 2, )");
  EXPECT_EQ(doc->get_int64("b"), 30);
}

TEST(Json, IndentsLikePythonsJson) {
  const auto doc = parse_json(R"({"a":[1,2],"b":{},"c":[]})");
  EXPECT_EQ(doc->dump(2), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": []\n}");
}

TEST(Json, ReportsNanDuplicateKeysAndByteOrderMark) {
  JsonNotes notes;
  const auto doc =
      parse_json("\xEF\xBB\xBF{\"a\":NaN,\"s\":\"NaN\",\"a\":[-Infinity,2]}", {}, &notes);
  ASSERT_TRUE(doc.ok()) << doc.status().to_string();
  EXPECT_EQ(doc->dump(), R"({"a":[null,2],"s":"NaN"})");
  EXPECT_TRUE(notes.byte_order_mark);
  EXPECT_EQ(notes.non_finite_literals, 2);
  EXPECT_EQ(notes.duplicate_keys, std::vector<std::string>{"a"});
}

TEST(Json, RefusesDeepNestingAndOversizedText) {
  Limits limits;
  limits.max_json_depth = 4;
  EXPECT_EQ(parse_json("[[[[[1]]]]]", limits).status().code(), StatusCode::resource_exhausted);
  EXPECT_TRUE(parse_json("[[[[1]]]]", limits).ok());
  limits.max_json_bytes = 3;
  EXPECT_EQ(parse_json("[1,2]", limits).status().code(), StatusCode::resource_exhausted);
}

TEST(Json, NamesTheByteOfASyntaxError) {
  const auto doc = parse_json("{\"a\": 1,}");
  EXPECT_EQ(doc.status().code(), StatusCode::data_loss);
  EXPECT_NE(doc.status().message().find("near byte 9"), std::string_view::npos)
      << doc.status().message();
  EXPECT_FALSE(parse_json("").ok());
  EXPECT_FALSE(parse_json("{} x").ok());
}

TEST(Json, EscapesControlCharactersAndKeepsUnicodeRaw) {
  Json value = Json::object();
  value.set("t", "a\n\x01\xE2\x80\xA8\"");
  EXPECT_EQ(value.dump(), "{\"t\":\"a\\n\\u0001\xE2\x80\xA8\\\"\"}");
  EXPECT_EQ(parse_json(value.dump())->get_string("t"), "a\n\x01\xE2\x80\xA8\"");
}

}  // namespace
}  // namespace ropewalk
