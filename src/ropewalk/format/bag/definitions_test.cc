#include "ropewalk/format/bag/definitions.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace ropewalk::bag {
namespace {

using ropewalk::test::TempDir;
using ropewalk::test::write_file;

const std::string kLine(80, '=');

TEST(Ros1Md5, MatchesWhatRosPublishes) {
  EXPECT_EQ(*ros1_md5("std_msgs/String", "string data\n"), "992ce8a1687cec8c8bd883ec73ca41d1");
  EXPECT_EQ(*ros1_md5("std_msgs/Empty", ""), "d41d8cd98f00b204e9800998ecf8427e");
  const std::string header = "# comment\nuint32 seq\ntime stamp  # a = b\nstring frame_id\n";
  EXPECT_EQ(*ros1_md5("std_msgs/Header", header), "2176decaecbce78abc3b96ef049fabed");
  EXPECT_EQ(*ros1_md5("sensor_msgs/JointState",
                      "Header header\n\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
                      "float64[] effort\n\n" +
                          kLine + "\nMSG: std_msgs/Header\n" + header),
            "3066dcd76a6cfaef579bd0f34173e9fd");
  EXPECT_EQ(*ros1_md5("geometry_msgs/Twist",
                      "Vector3  linear\nVector3  angular\n" + kLine +
                          "\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z\n"),
            "9f195f881246fdfa2798d1d3eebca84a");
}

TEST(Ros1Md5, NamesWhatIsMissingAndRefusesCircles) {
  const auto missing = ros1_md5("a/B", "c/D d\n");
  EXPECT_EQ(missing.status().code(), StatusCode::not_found);
  EXPECT_NE(missing.status().message().find("c/D"), std::string_view::npos);
  EXPECT_EQ(ros1_md5("a/B", "B b\n").status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(ros1_md5("a/B", "oneword\n").status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(ros1_md5("B", "").status().code(), StatusCode::invalid_argument);
}

TEST(Ros1Md5, StringConstantsRunToTheEndOfTheLine) {
  // A '#' behind the sign belongs to the constant: another one, another sum.
  const auto with = ros1_md5("a/B", "string X = a # b\n");
  const auto without = ros1_md5("a/B", "string X = a\n");
  EXPECT_NE(*with, *without);
  EXPECT_EQ(*ros1_md5("a/B", "int32 X = 1 # b\n"), *ros1_md5("a/B", "int32  X=1\n"));
}

TEST(FindDefinition, GathersEveryTypeOnceFromAnyLayout) {
  const TempDir dir("definitions");
  write_file(dir / "share/a_msgs/msg/Top.msg",
             "b_msgs/Inner[] inner\nb_msgs/msg/Inner other\nstring<=5[<=3] s\nint32 X=3\n");
  write_file(dir / "checkout/b_msgs/msg/Inner.msg", "Leaf leaf # of this package\n");
  write_file(dir / "checkout/b_msgs/msg/Leaf.msg", "float64 x\n");
  const auto found = find_definition(dir.path(), "a_msgs/msg/Top");
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->encoding, "ros2msg");
  EXPECT_EQ((*found)->text,
            "b_msgs/Inner[] inner\nb_msgs/msg/Inner other\nstring<=5[<=3] s\nint32 X=3\n\n" +
                kLine + "\nMSG: b_msgs/Inner\nLeaf leaf # of this package\n\n" + kLine +
                "\nMSG: b_msgs/Leaf\nfloat64 x\n");
  EXPECT_EQ(find_definition(dir.path(), "a_msgs/Top").value()->text, (*found)->text);
}

TEST(FindDefinition, TakesIdlWhereThereIsNoMsgAndSaysWhatIsNotThere) {
  const TempDir dir("definitions");
  write_file(dir / "a_msgs/msg/Top.idl", "#include \"b_msgs/msg/Leaf.idl\"\nmodule a {};\n");
  write_file(dir / "b_msgs/msg/Leaf.idl", "module b {};\n");
  write_file(dir / "a_msgs/msg/Half.msg", "c_msgs/Gone x\n");
  const auto found = find_definition(dir.path(), "a_msgs/msg/Top");
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->encoding, "ros2idl");
  EXPECT_EQ((*found)->text,
            kLine + "\nIDL: a_msgs/msg/Top\n#include \"b_msgs/msg/Leaf.idl\"\nmodule a {};\n\n" +
                kLine + "\nIDL: b_msgs/msg/Leaf\nmodule b {};\n");
  EXPECT_FALSE(find_definition(dir.path(), "a_msgs/msg/Half")->has_value());
  EXPECT_FALSE(find_definition(dir.path(), "a_msgs/msg/None")->has_value());
  EXPECT_EQ(find_definition(dir.path(), "../msg/None").status().code(),
            StatusCode::invalid_argument);
}

}  // namespace
}  // namespace ropewalk::bag
