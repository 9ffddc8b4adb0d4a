// `ropewalk mcap …` run in this process: arguments in, exit code, files and text out.
#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

#include "ropewalk/engine/mcap/files.h"

#include "apps/cli/commands.h"
#include "tests/support/mcap_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk {
namespace {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

// Runs one command line as the program does.
Outcome run(std::vector<std::string> arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  {
    cli::Session session;
    CLI::App app("", "ropewalk");
    app.require_subcommand(1);
    cli::add_mcap(app, session);
    std::ranges::reverse(arguments);
    try {
      app.parse(arguments);
      outcome.code = session.run();
    } catch (const CLI::Success& help) {
      outcome.code = app.exit(help);
    } catch (const CLI::ParseError& error) {
      app.exit(error);
      outcome.code = cli::exit_code(StatusCode::invalid_argument);
    }
  }
  std::fflush(stdout);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

Json json_of(const Outcome& outcome) {
  auto json = parse_json(outcome.out);
  EXPECT_TRUE(json.ok()) << outcome.out << outcome.err;
  return json.ok() ? *json : Json();
}

class McapCli : public ::testing::Test {
 protected:
  McapCli() {
    const Bytes file = mcap::write_file({.profile = "", .chunk_bytes = 300}, [](mcap::Writer& w) {
      const auto schema = w.add_schema("Pose", "jsonschema", as_bytes("{}"));
      const auto pose = w.add_channel({.schema_id = *schema,
                                       .topic = "/pose",
                                       .message_encoding = "json",
                                       .metadata = {{"unit", "m"}}});
      const auto raw = w.add_channel({.topic = "/raw", .message_encoding = "secret"});
      ASSERT_TRUE(w.write_metadata({.name = "robot", .metadata = {{"name", "one"}}}).ok());
      for (std::uint32_t i = 0; i < 10; ++i) {
        const std::uint64_t time = 1'000'000'000ULL * (i + 1);
        const std::string text =
            R"({"x": )" + std::to_string(i) + R"(, "name": "a,b", "v": [1, 2]})";
        ASSERT_TRUE(
            w.write({.channel_id = *pose, .sequence = i, .log_time = time, .publish_time = time},
                    as_bytes(text))
                .ok());
        ASSERT_TRUE(w.write({.channel_id = *raw, .log_time = time + 5, .publish_time = time},
                            as_bytes("\x01\x02"))
                        .ok());
      }
      ASSERT_TRUE(
          w.write_attachment(
               {.log_time = 7, .create_time = 8, .name = "note.txt", .media_type = "text/plain"},
               as_bytes("hello"))
              .ok());
    });
    test::write_file(dir_ / "in.mcap", as_text(file));
  }
  std::string path(const std::string& name) { return (dir_ / name).string(); }
  std::string in() { return path("in.mcap"); }
  std::vector<mcap::TestMessage> messages(const std::string& name) {
    const auto input = open_mcap(path(name));
    EXPECT_TRUE(input.ok()) << input.status().to_string();
    return input.ok() ? mcap::read_all(input->reader, {.order = mcap::Order::file}).messages
                      : std::vector<mcap::TestMessage>();
  }

  test::TempDir dir_;
};

TEST_F(McapCli, InfoCountsMessagesPerChannel) {
  const Outcome text = run({"mcap", "info", in()});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("9.000000005s"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("/pose"), std::string::npos);
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);  // no colours into a pipe
  const Json json = json_of(run({"mcap", "info", in(), "--json", "--rates"}));
  EXPECT_EQ(json.get_int64("messages"), 20);
  EXPECT_EQ(json.get_int64("attachments"), 1);
  ASSERT_EQ(json.find("channels")->size(), 2U);
  const Json& pose = (*json.find("channels")->as_array())[0];
  EXPECT_EQ(pose.get_string("topic"), "/pose");
  EXPECT_EQ(pose.get_int64("messages"), 10);
  EXPECT_EQ(pose.get_double("max_hz"), 1.0);
}

TEST_F(McapCli, ListsAndGetsParts) {
  EXPECT_EQ(json_of(run({"mcap", "ls", "channels", in(), "--json"})).size(), 2U);
  EXPECT_EQ(json_of(run({"mcap", "list", "schemas", in(), "--json"})).size(), 1U);
  EXPECT_GT(json_of(run({"mcap", "ls", "chunks", in(), "--json"})).size(), 2U);
  EXPECT_NE(run({"mcap", "ls", "metadata", in()}).out.find(R"({"name": "one"})"),
            std::string::npos);
  EXPECT_NE(run({"mcap", "ls", "attachments", in()}).out.find("note.txt"), std::string::npos);
  EXPECT_EQ(json_of(run({"mcap", "get", "metadata", in(), "-n", "robot"})).get_string("name"),
            "one");
  EXPECT_EQ(run({"mcap", "get", "attachment", in(), "-n", "note.txt", "-o", path("n")}).code, 0);
  EXPECT_EQ(test::read_file(dir_ / "n"), "hello");
  EXPECT_EQ(run({"mcap", "get", "attachment", in(), "-n", "nothing", "-o", path("m")}).code, 6);
  EXPECT_EQ(run({"mcap", "get", "attachment", in(), "-n", "note.txt", "-o", path("n")}).code, 7);
}

TEST_F(McapCli, AddsPartsInPlace) {
  const auto before = messages("in.mcap");
  test::write_file(dir_ / "map.png", "pixels");
  EXPECT_EQ(run({"mcap", "add", "attachment", in(), "-f", path("map.png"), "--content-type",
                 "image/png", "--log-time", "42", "--creation-time", "1970-01-01T00:00:01Z"})
                .code,
            0);
  EXPECT_EQ(
      run({"mcap", "add", "metadata", in(), "-n", "cell", "-k", "arm=left", "-k", "a=b=c"}).code,
      0);
  EXPECT_EQ(run({"mcap", "add", "metadata", in(), "-n", "cell", "-k", "nonsense"}).code, 2);
  EXPECT_EQ(run({"mcap", "add", "metadata", in(), "-n", "x", "-k", "a=1", "-k", "a=2"}).code, 2);
  EXPECT_EQ(json_of(run({"mcap", "get", "metadata", in(), "-n", "cell"})).get_string("a"), "b=c");
  const Json attachments = json_of(run({"mcap", "ls", "attachments", in(), "--json"}));
  ASSERT_EQ(attachments.size(), 2U);
  const Json& added = (*attachments.as_array())[1];
  EXPECT_EQ(added.get_string("name"), "map.png");
  EXPECT_EQ(added.get_int64("log_time"), 42);
  EXPECT_EQ(added.get_int64("create_time"), 1'000'000'000);
  EXPECT_EQ(messages("in.mcap"), before);
  EXPECT_EQ(run({"mcap", "doctor", in()}).code, 0);
}

TEST_F(McapCli, FilterTrimSortAndCompressCopy) {
  EXPECT_EQ(run({"mcap", "filter", in(), "-y", "/po.*", "-o", path("f.mcap")}).code, 0);
  EXPECT_EQ(messages("f.mcap").size(), 10U);
  EXPECT_EQ(run({"mcap", "trim", in(), "-s", "2", "-e", "4", "-o", path("t.mcap")}).code, 0);
  ASSERT_EQ(messages("t.mcap").size(), 4U);
  EXPECT_EQ(messages("t.mcap")[0].time, 2'000'000'000U);
  EXPECT_EQ(run({"mcap", "sort", in(), "--order", "topic", "-o", path("s.mcap")}).code, 0);
  EXPECT_EQ(messages("s.mcap")[9].topic, "/pose");
  EXPECT_EQ(messages("s.mcap")[10].topic, "/raw");
  EXPECT_EQ(run({"mcap", "compress", in(), "--compression", "lz4", "-o", path("c.mcap")}).code, 0);
  EXPECT_EQ(messages("c.mcap"), messages("in.mcap"));
  const Outcome again = run({"mcap", "sort", in(), "-o", path("s.mcap")});
  EXPECT_EQ(again.code, 7);
  EXPECT_NE(again.err.find("--force"), std::string::npos);
  EXPECT_EQ(run({"mcap", "sort", in(), "-o", path("s.mcap"), "--force"}).code, 0);
  EXPECT_EQ(run({"mcap", "filter", in(), "-y", "(", "-o", path("x.mcap")}).code, 2);
  EXPECT_EQ(run({"mcap", "filter", in(), "-y", "a", "-n", "b", "-o", path("x.mcap")}).code, 2);
  EXPECT_EQ(run({"mcap", "filter", path("absent"), "-o", path("x.mcap")}).code, 6);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "x.mcap"));
}

TEST_F(McapCli, FilterWritesToAPipe) {
  const Outcome piped = run({"mcap", "filter", in()});
  EXPECT_EQ(piped.code, 0) << piped.err;
  const auto reader = mcap::Reader::open(
      memory_source(Bytes(as_bytes(piped.out).begin(), as_bytes(piped.out).end())));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(mcap::read_all(*reader, {.order = mcap::Order::file}).messages, messages("in.mcap"));
}

TEST_F(McapCli, MergeSplitAndDiffAgree) {
  EXPECT_EQ(run({"mcap", "split", in(), "--by-topic", "-o", path("parts")}).code, 0);
  EXPECT_EQ(messages("parts/in_pose.mcap").size(), 10U);
  EXPECT_EQ(run({"mcap", "merge", path("parts/in_pose.mcap"), path("parts/in_raw.mcap"), "-o",
                 path("m.mcap")})
                .code,
            0);
  const Outcome same = run({"mcap", "diff", in(), path("m.mcap")});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_EQ(run({"mcap", "filter", in(), "-e", "10", "-o", path("short.mcap")}).code, 0);
  const Outcome differs = run({"mcap", "diff", in(), path("short.mcap"), "--json"});
  EXPECT_EQ(differs.code, 1);
  const Json json = json_of(differs);
  EXPECT_EQ(json.get_int64("difference_count"), 2);
  EXPECT_EQ(json.find("topics")->find("/pose")->get_int64("only_left"), 1);
  EXPECT_EQ(run({"mcap", "split", in(), "-o", path("p2")}).code, 2);
  EXPECT_EQ(run({"mcap", "split", in(), "--count", "1", "--by-topic", "-o", path("p2")}).code, 2);
  EXPECT_EQ(run({"mcap", "split", in(), "--duration", "4s", "-o", path("p2")}).code, 0);
  EXPECT_EQ(messages("p2/in_0003.mcap").size(), 4U);
}

TEST_F(McapCli, DiffNamesChangedPayloads) {
  const auto file = [&](const std::string& name, const std::string& data) {
    test::write_file(dir_ / name,
                     as_text(mcap::write_messages({}, {{"/a", 1, 0, "same"}, {"/a", 2, 0, data}})));
    return path(name);
  };
  const Outcome outcome = run({"mcap", "diff", file("l.mcap", "left"), file("r.mcap", "righ")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("~ message /a at 2: payload, 4 bytes each"), std::string::npos)
      << outcome.out;
}

TEST_F(McapCli, CatDecodesWhatItCan) {
  const Outcome json = run(
      {"mcap", "cat", in(), "--format", "ndjson", "--limit", "2", "--time-format", "nanoseconds"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(json.out,
            R"({"topic":"/pose","sequence":0,"log_time":1000000000,"publish_time":1000000000,)"
            R"("data":{"x":0,"name":"a,b","v":[1,2]}})"
            "\n"
            R"({"topic":"/raw","sequence":0,"log_time":1000000005,"publish_time":1000000000,)"
            R"("data_base64":"AQI="})"
            "\n");
  EXPECT_NE(json.err.find("/raw is printed undecoded"), std::string::npos);
  const Outcome csv = run({"mcap", "cat", in(), "--topics", "/pose", "--format", "csv", "--limit",
                           "1", "--time-format", "nanoseconds"});
  EXPECT_EQ(csv.out,
            "log_time,publish_time,sequence,x,name,v[0],v[1]\n"
            "1000000000,1000000000,0,0,\"a,b\",1,2\n");
  EXPECT_EQ(run({"mcap", "cat", in(), "--format", "csv"}).code, 2);
  const Outcome text = run({"mcap", "cat", in(), "--topics", "/raw,/nothing", "--limit", "1"});
  EXPECT_EQ(text.out, "1.000000005 /raw [no schema] <2 bytes>\n");
}

TEST_F(McapCli, UsageOfTopicsAddsUp) {
  const Json exact = json_of(run({"mcap", "du", in(), "--json"}));
  std::int64_t file = 0;
  for (const auto& [kind, use] : *exact.find("records")->as_object()) {
    file += *use.get_int64("bytes");
  }
  EXPECT_EQ(file, *exact.get_int64("size_bytes"));
  EXPECT_EQ(exact.find("topics")->find("/raw")->get_int64("bytes"), 10 * (31 + 2));
  const Json rough = json_of(run({"mcap", "du", in(), "--json", "--approximate"}));
  EXPECT_EQ(rough.find("topics")->find("/pose")->get_int64("messages"), 10);
}

TEST_F(McapCli, DoctorFindsFaultsAndRecoverRepairs) {
  const Outcome healthy = run({"mcap", "doctor", in()});
  EXPECT_EQ(healthy.code, 0) << healthy.err;
  EXPECT_EQ(run({"mcap", "doctor", in(), "--strict-message-order"}).code, 0);
  std::string bytes = test::read_file(dir_ / "in.mcap");
  test::write_file(dir_ / "cut.mcap", bytes.substr(0, bytes.size() - 500));
  EXPECT_EQ(run({"mcap", "doctor", path("cut.mcap")}).code, 1);
  // A wrong count in the statistics: found by comparing, since the summary carries no CRC here.
  ASSERT_EQ(
      run({"mcap", "filter", in(), "--no-crc", "--compression", "none", "-o", path("nocrc.mcap")})
          .code,
      0);
  std::string wrong = test::read_file(dir_ / "nocrc.mcap");
  const std::string head("\x0B\x42\0\0\0\0\0\0\0", 9);  // Statistics of two channels: 66 bytes
  const std::size_t at = wrong.rfind(head);
  ASSERT_NE(at, std::string::npos);
  wrong[at + 9] ^= 1;
  test::write_file(dir_ / "wrong.mcap", wrong);
  const Outcome found = run({"mcap", "doctor", path("wrong.mcap")});
  EXPECT_EQ(found.code, 1);
  EXPECT_NE(found.err.find("message_count is 21, the file has 20"), std::string::npos) << found.err;

  const auto chunks =
      mcap::Reader::open(memory_source(Bytes(as_bytes(bytes).begin(), as_bytes(bytes).end())))
          ->chunks();
  test::write_file(dir_ / "crash.mcap", bytes.substr(0, chunks.back().chunk_start_offset + 60));
  const Outcome recovered =
      run({"mcap", "recover", path("crash.mcap"), "-o", path("whole.mcap"), "--json"});
  EXPECT_EQ(recovered.code, 3) << recovered.err;
  EXPECT_EQ(json_of(recovered).find("read_back")->as_bool(), true);
  EXPECT_EQ(run({"mcap", "doctor", path("whole.mcap")}).code, 0);
  EXPECT_GE(messages("whole.mcap").size(), 16U);
  EXPECT_EQ(run({"mcap", "recover", in(), "-o", path("fine.mcap")}).code, 0);
  EXPECT_EQ(run({"mcap", "diff", in(), path("fine.mcap")}).code, 0);
}

TEST_F(McapCli, UnfinishedFilesAreReadAndTold) {
  std::string bytes = test::read_file(dir_ / "in.mcap");
  const auto chunks =
      mcap::Reader::open(memory_source(Bytes(as_bytes(bytes).begin(), as_bytes(bytes).end())))
          ->chunks();
  test::write_file(dir_ / "open.mcap", bytes.substr(0, chunks[1].chunk_start_offset));
  const Outcome info = run({"mcap", "info", path("open.mcap")});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_NE(info.out.find("unfinished"), std::string::npos);
  EXPECT_EQ(run({"mcap", "info", path("absent.mcap")}).code, 6);
  test::write_file(dir_ / "empty.mcap", "");
  EXPECT_EQ(run({"mcap", "info", path("empty.mcap")}).code, 4);
  const Json error = json_of(run({"mcap", "info", path("empty.mcap"), "--json"}));
  EXPECT_EQ(error.find("error")->get_string("code"), "data_loss");
}

TEST_F(McapCli, EveryCommandHasHelpWithAnExample) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"info"},
                                             {"ls"},
                                             {"ls", "chunks"},
                                             {"du"},
                                             {"cat"},
                                             {"filter"},
                                             {"trim"},
                                             {"sort"},
                                             {"compress"},
                                             {"decompress"},
                                             {"merge"},
                                             {"split"},
                                             {"doctor"},
                                             {"diff"},
                                             {"get", "metadata"},
                                             {"add", "metadata"},
                                             {"add", "attachment"},
                                             {"convert"},
                                             {"extract"},
                                             {"recover"}}) {
    std::vector<std::string> arguments{"mcap"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    arguments.push_back("--help");
    const Outcome help = run(arguments);
    EXPECT_EQ(help.code, 0) << command[0];
    EXPECT_NE(help.out.find("Example:\n  ropewalk mcap " + command[0]), std::string::npos)
        << help.out;
  }
}

TEST_F(McapCli, BagsConvertToMcapAndBack) {
  ROPEWALK_REQUIRE_TESTDATA(bags, "rosbag1");
  std::size_t converted = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(bags)) {
    if (entry.path().extension() != ".bag" || entry.file_size() == 0) continue;
    const std::string stem = "bag" + std::to_string(++converted);
    const Outcome to = run({"mcap", "convert", entry.path().string(), path(stem + ".mcap")});
    ASSERT_TRUE(to.code == 0 || to.code == 3) << entry.path() << to.err;
    EXPECT_EQ(run({"mcap", "doctor", path(stem + ".mcap"), "-q"}).code, 0) << entry.path();
    const Outcome back = run({"mcap", "convert", path(stem + ".mcap"), path(stem + ".bag")});
    ASSERT_EQ(back.code, 0) << entry.path() << back.err;
    ASSERT_EQ(run({"mcap", "convert", path(stem + ".bag"), path(stem + "b.mcap")}).code, 0);
    const Outcome same =
        run({"mcap", "diff", path(stem + ".mcap"), path(stem + "b.mcap"), "-n", "none"});
    EXPECT_EQ(same.code, 0) << entry.path() << same.out;
  }
  EXPECT_GE(converted, 3U);
}

TEST_F(McapCli, BothFormsOfARos2BagGiveTheSameMessages) {
  ROPEWALK_REQUIRE_TESTDATA(bags, "rosbag2");
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(bags)) {
    if (entry.path().filename() != "metadata.yaml") continue;
    const std::string stem = "b" + std::to_string(++compared);
    const std::string source = entry.path().parent_path().string();
    const Outcome to = run({"mcap", "convert", source, path(stem + ".mcap")});
    if (to.code != 0 && to.code != 3) {
      EXPECT_FALSE(to.err.empty());
      continue;
    }
    const auto first = messages(stem + ".mcap");
    if (first.empty()) continue;
    const Outcome back =
        run({"mcap", "convert", path(stem + ".mcap"), path(stem), "--skip-unsupported"});
    ASSERT_TRUE(back.code == 0 || back.code == 3) << source << back.err;
    if (back.err.find("that a bag cannot hold") != std::string::npos) continue;
    ASSERT_EQ(run({"mcap", "convert", path(stem), path(stem + "b.mcap")}).code, 0);
    EXPECT_EQ(messages(stem + "b.mcap").size(), first.size()) << source;
  }
  EXPECT_GE(compared, 2U);
}

}  // namespace
}  // namespace ropewalk
