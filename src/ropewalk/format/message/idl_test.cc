// IDL schemas, and CDR in the forms that only IDL types have.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ropewalk/format/message/message.h"
#include "ropewalk/format/message/wire_internal.h"

namespace ropewalk::message {
namespace {

using testing::HasSubstr;

std::shared_ptr<const MessageCodec> omgidl(std::string_view schema, std::string_view name = "T") {
  auto codec = MessageCodec::compile({"cdr", name, "omgidl", as_bytes(schema)});
  EXPECT_TRUE(codec.ok()) << codec.status().to_string();
  return codec.ok() ? *codec : nullptr;
}

std::string refusal(std::string_view schema, std::string_view name = "T") {
  const auto codec = MessageCodec::compile({"cdr", name, "omgidl", as_bytes(schema)});
  return codec.ok() ? "compiled" : codec.status().to_string();
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

TEST(Idl, ModulesConstantsTypedefsAndArraysResolve) {
  const auto codec = omgidl(R"(
    #pragma ignored
    module a { const long N = (1 << 2) - 1; /* three */
      module b { typedef double pair[2]; typedef sequence<pair, N> pairs;
        struct Base { short id; };
        enum Color { RED, @value(5) GREEN, BLUE }; // after green
        struct T : Base { pairs p; Color c; long grid[2][N]; ::a::b::Color d[1]; string<N> s; };
      };
    };)",
                            "a::b::T");
  const std::string text =
      R"({"id":7,"p":[[1.0,2.0]],"c":"BLUE","grid":[[1,2,3],[4,5,6]],"d":["GREEN"],"s":"abc"})";
  const Bytes payload = from_json(*codec, text);
  EXPECT_EQ(json_of(*codec, payload), text);
  // id, padding, count, the pair at 8, BLUE = 6
  EXPECT_EQ(payload[4], 7);
  EXPECT_EQ(payload[8], 1);
  EXPECT_EQ(payload[28], 6);
}

TEST(Idl, Ros2FilesBehindSeparatorsAreOneText) {
  const std::string rule(80, '=');
  const std::string schema = rule + "\nIDL: pkg/msg/Root\n#include \"pkg/msg/Part.idl\"\n" +
                             "module pkg { module msg { struct Root { pkg::msg::Part part; "
                             "double x; }; }; };\n" +
                             rule +
                             "\nIDL: pkg/msg/Part\nmodule pkg { module msg { module "
                             "Part_Constants { const octet A = 1; }; "
                             "@verbatim (language=\"comment\", text=\"a\" \"b\")\n"
                             "struct Part { octet a; wstring<3> w; }; }; };\n";
  const auto codec = MessageCodec::compile({"cdr", "pkg/msg/Root", "ros2idl", as_bytes(schema)});
  ASSERT_TRUE(codec.ok()) << codec.status().to_string();
  const std::string text = R"({"part":{"a":1,"w":"xy"},"x":0.5})";
  EXPECT_EQ(json_of(**codec, from_json(**codec, text)), text);
}

TEST(Idl, RefusalsNameTheLine) {
  EXPECT_THAT(refusal("struct T {\n long a\n};"), HasSubstr("line 3: ';' expected, '}' found"));
  EXPECT_THAT(refusal("struct T {\n map<long, string> m; };"),
              HasSubstr("line 2: there is no decoder for 'map'"));
  EXPECT_THAT(refusal("struct T { Gone g; };"), HasSubstr("type 'Gone' is not defined"));
  EXPECT_THAT(refusal("struct T { long a[N]; };"), HasSubstr("constant 'N' is not defined"));
  EXPECT_THAT(refusal("struct T { T t; };"), HasSubstr("T contains itself"));
  EXPECT_THAT(refusal("typedef A B; typedef B A; struct T { A a; };"), HasSubstr("by itself"));
  EXPECT_THAT(
      refusal("struct A : B { long a; }; struct B : A { long b; }; struct T : A { long c; };"),
      HasSubstr("inheritance"));
  EXPECT_THAT(refusal("const long A = B + B; const long B = A; struct T { long a[A]; };"),
              HasSubstr("too deep"));
  EXPECT_THAT(refusal("struct B { long a; }; struct T : B { long a; };"),
              HasSubstr("a second member 'a'"));
  EXPECT_THAT(refusal("struct U { long a; };"), HasSubstr("does not define 'T'"));
  EXPECT_THAT(refusal("struct T { long a; }; /* open"), HasSubstr("line 1: a comment has no end"));
}

TEST(Idl, SelfReferenceThroughASequenceIsBounded) {
  const auto codec = omgidl("@final struct T { octet a; sequence<T> kids; };");
  const std::string text =
      R"({"a":1,"kids":[{"a":2,"kids":[]},{"a":3,"kids":[{"a":4,"kids":[]}]}]})";
  EXPECT_EQ(json_of(*codec, from_json(*codec, text)), text);
  Bytes deep = {0, 1, 0, 0};
  for (int i = 0; i < 1000; ++i) {
    const Bytes level = {9, 0, 0, 0, 1, 0, 0, 0};
    deep.insert(deep.end(), level.begin(), level.end());
  }
  EXPECT_THAT(json_of(*codec, deep), HasSubstr("nested deeper than 128 levels"));
}

// Bytes by the examples of the XTypes rules.
TEST(Xcdr2, AppendableTypesHaveALength) {
  const auto codec = omgidl("@appendable struct T { octet a; double b; @optional long c; };");
  const Bytes payload = {0, 9, 0, 0, 17, 0, 0, 0,                    // DHEADER
                         7, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0xF0, 0x3F,  // b aligned to 4
                         0, 0, 0, 0, 0};                             // c absent, then new members
  EXPECT_EQ(json_of(*codec, payload), R"({"a":7,"b":1.0,"c":null})");
  // An older writer knew `a` alone.
  EXPECT_EQ(json_of(*codec, Bytes{0, 9, 0, 0, 1, 0, 0, 0, 7}), R"({"a":7,"b":null,"c":null})");
  const Bytes written = from_json(*codec, R"({"a":7,"b":1.0,"c":5})");
  EXPECT_EQ(written, (Bytes{0, 9, 0, 0, 20,   0,    0, 0, 7, 0, 0, 0, 0, 0,
                            0, 0, 0, 0, 0xF0, 0x3F, 1, 0, 0, 0, 5, 0, 0, 0}));
}

TEST(Xcdr2, MutableMembersAreFoundByIdInAnyOrder) {
  const auto codec = omgidl(
      "@mutable struct T { @id(10) octet a; @id(3) string s; sequence<long> n; @optional long o; "
      "};");
  const Bytes payload = {0,  0x0B, 0, 0,    44, 0, 0, 0,                              // DHEADER
                         3,  0,    0, 0x50, 3,  0, 0, 0, 'h', 'i', 0, 0,              // s, code 5
                         99, 0,    0, 0x20, 1,  2, 3, 4,                              // unknown
                         4,  0,    0, 0x60, 2,  0, 0, 0, 1,   0,   0, 0, 2, 0, 0, 0,  // n, code 6
                         10, 0,    0, 0x00, 7,  0, 0, 0};                             // a
  EXPECT_EQ(json_of(*codec, payload), R"({"a":7,"s":"hi","n":[1,2],"o":null})");
  const std::string text = R"({"a":7,"s":"hi","n":[1,2],"o":4})";
  EXPECT_EQ(json_of(*codec, from_json(*codec, text)), text);
  Bytes must = payload;
  must[23] = 0xA0;  // the unknown member must be understood
  EXPECT_THAT(json_of(*codec, must), HasSubstr("member 99 must be understood"));
}

TEST(Xcdr2, CollectionsOfAnythingButPrimitivesHaveALength) {
  const auto codec = omgidl(
      "@final struct P { octet x; }; @appendable struct T { sequence<P> p; "
      "sequence<string> s; long n[2]; };");
  const Bytes payload = {0,  9, 0, 0, 38, 0, 0, 0,                            // T
                         6,  0, 0, 0, 2,  0, 0, 0, 1, 2, 0, 0,                // p
                         10, 0, 0, 0, 1,  0, 0, 0, 2, 0, 0, 0, 'a', 0, 0, 0,  // s
                         5,  0, 0, 0, 6,  0, 0, 0, 0, 0};                     // n
  EXPECT_EQ(json_of(*codec, payload), R"({"p":[{"x":1},{"x":2}],"s":["a"],"n":[5,6]})");
}

TEST(Xcdr2, RowsOfEnumerationsAreReadWithAndWithoutLength) {
  const auto codec = omgidl("enum E { A, B }; @final struct T { sequence<E> e; octet k; };");
  const Bytes bare = {0, 7, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9};  // Fast-CDR
  EXPECT_EQ(json_of(*codec, bare), R"({"e":["B","A"],"k":9})");
  const Bytes by_xtypes = {0, 7, 0, 0, 12, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9};
  EXPECT_EQ(json_of(*codec, by_xtypes), R"({"e":["B","A"],"k":9})");
}

TEST(Xcdr1, OptionalMembersHaveAParameterHeader) {
  const auto codec = omgidl("struct T { octet a; @optional double b; @optional long c; };");
  const Bytes payload = {0, 1, 0, 0, 7, 0, 0,    0,    1, 0, 8, 0,  // id 1, 8 bytes
                         0, 0, 0, 0, 0, 0, 0xF0, 0x3F,              // counted from here
                         2, 0, 0, 0};                               // id 2, absent
  EXPECT_EQ(json_of(*codec, payload), R"({"a":7,"b":1.0,"c":null})");
}

TEST(Xcdr1, MutableTypesAreParameterLists) {
  const auto codec = omgidl("@mutable struct T { @id(1) long a; @id(70000) double b; };");
  const Bytes payload = {
      0,    3,    0, 0, 0x01, 0x3F, 8, 0, 0x70, 0x11, 1,    0,
      8,    0,    0, 0, 0,    0,    0, 0, 0,    0,    0xF0, 0x3F,  // b, extended header
      5,    0,    4, 0, 1,    2,    3, 4,                          // unknown
      1,    0x40, 4, 0, 9,    0,    0, 0,                          // a, must be understood
      0x02, 0x3F, 0, 0};                                           // the end
  EXPECT_EQ(json_of(*codec, payload), R"({"a":9,"b":1.0})");
}

TEST(Cdr, UnionsEnumsAndBitmasks) {
  const auto codec = omgidl(R"(
    @bit_bound(8) enum Kind { NONE, NUMBER, TEXT };
    @bit_bound(16) bitmask Flags { @position(3) LOW, HIGH };
    union Any switch (Kind) { case NUMBER: double n; case TEXT: string s; default: octet other; };
    union Plain switch (long) { case 1: case 2: octet o; };
    struct T { Any a; Any b; Any c; Flags f; Plain p; Plain q; };)");
  const std::string text =
      R"({"a":{"_d":"NUMBER","n":0.5},"b":{"_d":"TEXT","s":"x"},"c":{"_d":"NONE","other":3},)"
      R"("f":24,"p":{"_d":2,"o":9},"q":{"_d":7}})";
  const Bytes payload = from_json(*codec, text);
  EXPECT_EQ(json_of(*codec, payload), text);
  EXPECT_EQ(payload[4], 1);  // one byte for the enumeration
  EXPECT_EQ(payload[12 + 7], 0x3F);
}

TEST(Cdr, LongDoublesAreSixteenBytes) {
  const auto codec = omgidl("struct T { octet a; long double b; };");
  const Bytes payload = {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,    0,    0,
                         0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0xFF, 0xBF};
  EXPECT_EQ(json_of(*codec, payload), R"({"a":1,"b":-1.5})");
  EXPECT_EQ(from_json(*codec, R"({"a":1,"b":-1.5})"), payload);
}

TEST(Cdr, AlignmentFromByteZeroIsFoundByTrial) {
  const auto codec = omgidl("struct T { long a; double b; };");
  const Bytes micro = {0, 1, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F};
  EXPECT_EQ(json_of(*codec, micro), R"({"a":5,"b":1.0})");
  const Bytes usual = {0, 1, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F};
  EXPECT_EQ(json_of(*codec, usual), R"({"a":5,"b":1.0})");
}

// Every wire format reads back what it wrote, in both byte orders.
TEST(Cdr, EveryFormatRoundTrips) {
  const std::string schema = R"(
    @appendable enum E { A, B };
    @final struct F { octet a; double b; @optional wstring w; };
    @appendable struct G : F { sequence<F, 4> fs; E e[2]; };
    @mutable union U switch (boolean) { case TRUE: G g; case FALSE: sequence<E> es; };
    struct T { @key octet k; U u; sequence<U> us; @optional G g; @optional long long n; float x[2][2]; };)";
  const Limits limits;
  const auto table = parse_idl(schema, "T", false, limits);
  ASSERT_TRUE(table.ok()) << table.status().to_string();
  const std::string text =
      R"({"k":1,"u":{"_d":true,"g":{"a":2,"b":0.5,"w":"wé","fs":[{"a":3,"b":1.5,"w":null}],)"
      R"("e":["B","A"]}},"us":[{"_d":false,"es":["B"]},{"_d":true,"g":{"a":0,"b":0.0,"w":null,)"
      R"("fs":[],"e":["A","A"]}}],"g":null,"n":-5,"x":[[1.0,2.0],[3.0,4.0]]})";
  const auto json = parse_json(text);
  for (const bool swapped : {false, true}) {
    for (const bool xcdr2 : {false, true}) {
      for (const int headers : {0, 1, 2}) {
        WireFormat format{.swapped = swapped, .xcdr2 = xcdr2};
        format.delimited = xcdr2 && headers == 1;
        format.parameter_list = headers == 2;
        format.max_alignment = xcdr2 ? 4 : 8;
        const auto payload = encode_wire(*table, format, value_of_json(*json));
        ASSERT_TRUE(payload.ok()) << payload.status().to_string();
        Message message;
        const Status status = decode_cdr(*table, true, *payload, limits, message);
        ASSERT_TRUE(status.ok()) << status.to_string();
        EXPECT_EQ(to_json_text(message.root()), text) << swapped << xcdr2 << headers;
      }
    }
  }
}

}  // namespace
}  // namespace ropewalk::message
