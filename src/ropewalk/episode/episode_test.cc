#include <gtest/gtest.h>

#include "ropewalk/episode/schema.h"

namespace ropewalk {
namespace {

TEST(FlatNames, ReadsEveryFormFoundInPublicSets) {
  const std::vector<std::string> expected{"a", "b"};
  for (const char* text : {R"(["a","b"])", R"([["a","b"]])", R"({"motors":["a","b"]})",
                           R"({"axes":["a","b"]})", R"({"b":1,"a":0})"}) {
    EXPECT_EQ(flat_names(*parse_json(text), 2), expected) << text;
  }
  EXPECT_EQ(flat_names(*parse_json(R"(["a"])"), 2), std::nullopt);
  EXPECT_EQ(flat_names(Json(), 2), std::nullopt);
  EXPECT_EQ(flat_names(*parse_json(R"({"a":0,"b":7})"), 2), std::nullopt);
}

TEST(Schema, FindsFeaturesAndCameras) {
  Schema schema;
  schema.features = default_features();
  schema.features.push_back({.name = "cam", .kind = FeatureKind::video, .shape = {4, 6, 3}});
  schema.features.push_back({.name = "cloud", .kind = FeatureKind::points, .shape = {-1, 3}});
  EXPECT_EQ(schema.cameras(), std::vector<std::string>{"cam"});
  EXPECT_EQ(schema.find("index")->dtype, DType::int64);
  EXPECT_EQ(schema.find("nothing"), nullptr);
  EXPECT_TRUE(schema.find("cloud")->is_ragged());
  EXPECT_EQ(schema.find("cam")->elements(), 72);
}

}  // namespace
}  // namespace ropewalk
