#include "tests/conformance/mcap_conformance.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/testdata.h"

namespace ropewalk::test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> mcap_files(const fs::path& root) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".mcap") out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

Json expected_of(const fs::path& mcap) {
  fs::path json = mcap;
  auto document = read_json_file(json.replace_extension(".json"));
  EXPECT_TRUE(document.ok()) << document.status().to_string();
  return document.ok() ? *document : Json();
}

std::vector<std::string> features_of(const Json& document) {
  std::vector<std::string> out;
  for (const Json& f : *document.find("meta")->find("variant")->find("features")->as_array()) {
    out.push_back(*f.as_string());
  }
  return out;
}
bool has_all(const std::vector<std::string>& features, std::vector<std::string> wanted) {
  return std::ranges::all_of(wanted, [&](const std::string& f) {
    return std::ranges::find(features, f) != features.end();
  });
}

const std::string& field(const Json& record, std::string_view name) {
  for (const Json& f : *record.find("fields")->as_array()) {
    if (*(*f.as_array())[0].as_string() == name) return *(*f.as_array())[1].as_string();
  }
  static const std::string kNone;
  return kNone;
}

// What an indexed reader must print, derived from the records of the file.
Json expected_indexed(const Json& document) {
  std::map<int, Json> schemas;
  std::map<int, Json> channels;
  std::vector<Json> messages;
  Json statistics = Json::array();
  for (const Json& record : *document.find("records")->as_array()) {
    const std::string& type = *record.find("type")->as_string();
    if (type == "Schema") schemas.insert_or_assign(std::stoi(field(record, "id")), record);
    if (type == "Channel") channels.insert_or_assign(std::stoi(field(record, "id")), record);
    if (type == "Message") messages.push_back(record);
    if (type == "Statistics") statistics.push_back(record);
  }
  std::ranges::stable_sort(messages, {},
                           [](const Json& m) { return std::stoull(field(m, "log_time")); });
  Json out = Json::object();
  out.set("schemas", Json::array());
  out.set("channels", Json::array());
  out.set("messages", Json::array());
  for (auto& [id, schema] : schemas) out.find("schemas")->push_back(schema);
  for (auto& [id, channel] : channels) out.find("channels")->push_back(channel);
  for (Json& message : messages) out.find("messages")->push_back(message);
  out.set("statistics", statistics);
  return out;
}

TEST(McapConformance, StreamedReaderReadsAllFiles) {
  ROPEWALK_REQUIRE_TESTDATA(root, "mcap-conformance/data");
  int passed = 0;
  for (const fs::path& file : mcap_files(root)) {
    const auto found = streamed_records(file);
    ASSERT_TRUE(found.ok()) << file << ": " << found.status().to_string();
    const Json document = expected_of(file);
    ASSERT_EQ(found->find("records")->dump_canonical(), document.find("records")->dump_canonical())
        << file;
    ++passed;
  }
  EXPECT_EQ(passed, 416);
}

TEST(McapConformance, IndexedReaderReadsFilesWithAndWithoutMessageIndex) {
  ROPEWALK_REQUIRE_TESTDATA(root, "mcap-conformance/data");
  int with_message_index = 0;
  int without_message_index = 0;
  for (const fs::path& file : mcap_files(root)) {
    const Json document = expected_of(file);
    const auto features = features_of(document);
    const Json expected = expected_indexed(document);
    if (expected.find("messages")->size() == 0 || !has_all(features, {"ch", "chx", "rch", "rsh"})) {
      continue;
    }
    const auto found = indexed_records(file);
    ASSERT_TRUE(found.ok()) << file << ": " << found.status().to_string();
    ASSERT_EQ(found->dump_canonical(), expected.dump_canonical()) << file;
    ++(has_all(features, {"mx"}) ? with_message_index : without_message_index);
  }
  EXPECT_EQ(with_message_index, 16);
  EXPECT_EQ(without_message_index, 16);
}

// The contract asks for 16 + 16 files; every other one must deliver its messages as well.
TEST(McapConformance, IndexedReaderDeliversTheMessagesOfEveryFile) {
  ROPEWALK_REQUIRE_TESTDATA(root, "mcap-conformance/data");
  int passed = 0;
  for (const fs::path& file : mcap_files(root)) {
    const auto found = indexed_records(file);
    ASSERT_TRUE(found.ok()) << file << ": " << found.status().to_string();
    const Json expected = expected_indexed(expected_of(file));
    for (const char* kind : {"schemas", "channels", "messages", "statistics"}) {
      ASSERT_EQ(found->find(kind)->dump_canonical(), expected.find(kind)->dump_canonical())
          << file << " " << kind;
    }
    ++passed;
  }
  EXPECT_EQ(passed, 416);
}

TEST(McapConformance, WriterReproducesEveryFileWithoutPadding) {
  ROPEWALK_REQUIRE_TESTDATA(root, "mcap-conformance/data");
  int passed = 0;
  for (const fs::path& file : mcap_files(root)) {
    const Json document = expected_of(file);
    if (has_all(features_of(document), {"pad"})) continue;
    const auto written = write_records(document);
    ASSERT_TRUE(written.ok()) << file << ": " << written.status().to_string();
    const auto expected = read_file(file, 1ULL << 20);
    ASSERT_TRUE(expected.ok());
    ASSERT_EQ(to_hex(*written), to_hex(*expected)) << file;
    ++passed;
  }
  EXPECT_EQ(passed, 208);
}

}  // namespace
}  // namespace ropewalk::test
