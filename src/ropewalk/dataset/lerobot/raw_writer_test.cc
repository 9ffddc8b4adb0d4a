#include "ropewalk/dataset/lerobot/raw_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/ledger.h"
#include "ropewalk/dataset/lerobot/raw_recovery.h"
#include "ropewalk/dataset/lerobot/source.h"
#include "ropewalk/format/parquet/reader.h"
#include "ropewalk/format/video/probe.h"

#include "tests/support/memory_episode.h"
#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::MemoryEpisode;
using test::TempDir;

constexpr const char* kTop = "observation.images.top";
constexpr const char* kSide = "observation.images.side";

Schema recorded_schema() {
  Schema schema;
  schema.fps = {20, 1};
  schema.robot_type = "memory";
  schema.features.push_back({.name = "observations.state.qpos",
                             .shape = {3},
                             .names = Json(Json::Array{Json("a"), Json("b"), Json("c")})});
  schema.features.push_back({.name = "action.qpos", .shape = {3}});
  for (const char* camera : {kTop, kSide}) {
    schema.features.push_back(
        {.name = camera, .kind = FeatureKind::video, .dtype = DType::uint8, .shape = {32, 48, 3}});
  }
  for (Feature& feature : default_features()) schema.features.push_back(std::move(feature));
  schema.extra = Json(Json::Object{{"house", Json("number 7")}});
  return schema;
}

/// `row_length` vectors of `width` elements and two cameras with `pictures` frames.
std::unique_ptr<MemoryEpisode> recorded(std::int64_t number, std::int64_t length,
                                        const std::string& task, int width = 3,
                                        std::int64_t pictures = -1) {
  auto episode = std::make_unique<MemoryEpisode>();
  episode->schema_value = recorded_schema();
  episode->info_value.index = number;
  episode->info_value.length = length;
  episode->info_value.tasks = {task};
  episode->info_value.row = Json(
      Json::Object{{"episode_index", Json(number)},
                   {"tasks", Json(Json::Array{Json(task)})},
                   {"length", Json(length)},
                   {"take_id", Json(fmt::format("take-{}", number))},
                   {"started_at", Json(fmt::format("2026-03-0{}T10:00:00+00:00", number % 8 + 1))},
                   {"ended_at", Json(fmt::format("2026-03-0{}T10:00:09+00:00", number % 8 + 1))},
                   {"unknown_key", Json("kept")}});
  const auto vectors = [&](float factor, int w) {
    return test::vector_column(length, w, [=](std::int64_t row, int d) {
      return factor * static_cast<float>(number * 100 + row * 3 + d);
    });
  };
  const auto numbers = [&](std::int64_t step) {
    return test::scalar_column<arrow::Int64Builder>(length,
                                                    [=](std::int64_t row) { return step * row; });
  };
  const auto timestamp = test::scalar_column<arrow::FloatBuilder>(
      length, [](std::int64_t row) { return static_cast<float>(static_cast<double>(row) / 20.0); });
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  const auto add = [&](const char* name, std::shared_ptr<arrow::Array> array) {
    fields.push_back(arrow::field(name, array->type()));
    arrays.push_back(std::move(array));
  };
  add("observations.state.qpos", vectors(1.0F, 3));
  add("action.qpos", vectors(0.5F, width));
  add("timestamp", timestamp);
  for (const char* name : {"frame_index", "episode_index", "index", "task_index"}) {
    add(name, numbers(99));  // the writer numbers anew
  }
  episode->table = arrow::RecordBatch::Make(arrow::schema(fields), length, arrays);
  const auto paint = [number](int shade) {
    return [number, shade](std::int64_t ordinal, MutableByteSpan out) {
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(shade + number * 31) + i / 9 +
                                           static_cast<std::size_t>(ordinal) * 5);
      }
    };
  };
  episode->cameras[kTop] = {{32, 48, 3, 1}, paint(20)};
  episode->cameras[kSide] = {{32, 48, 3, 1}, paint(90)};
  if (pictures >= 0) {
    episode->info_value.row.set("short_video", true);
    class Short : public MemoryEpisode {
     public:
      std::int64_t pictures = 0;
      Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                                  FrameForm form) const override {
        if (camera == kSide) range.end = std::min(range.end, pictures);
        return MemoryEpisode::frames(camera, range, form);
      }
    };
    auto shorter = std::make_unique<Short>();
    static_cast<MemoryEpisode&>(*shorter) = *episode;
    shorter->pictures = pictures;
    return shorter;
  }
  return episode;
}

Json json_of(const std::filesystem::path& path) {
  auto parsed = parse_json(test::read_file(path));
  EXPECT_TRUE(parsed.ok()) << path;
  return parsed.ok() ? *parsed : Json();
}

std::vector<Json> lines_of(const std::filesystem::path& path) {
  std::vector<Json> out;
  std::string text = test::read_file(path);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_NE(end, std::string::npos) << path << ": no last LF";
    if (end == std::string::npos) break;
    auto parsed = parse_json(std::string_view(text).substr(at, end - at));
    EXPECT_TRUE(parsed.ok());
    if (parsed.ok()) out.push_back(*parsed);
    at = end + 1;
  }
  return out;
}

RawWriter must_create(const std::filesystem::path& root, RawWriterOptions options) {
  auto writer = RawWriter::create(root, recorded_schema(), std::move(options));
  EXPECT_TRUE(writer.ok()) << writer.status().to_string();
  return std::move(writer).value();
}

#define ASSERT_OK(expr)                               \
  do {                                                \
    const Status status_ = (expr);                    \
    ASSERT_TRUE(status_.ok()) << status_.to_string(); \
  } while (false)

const RawWriterOptions kBulk{.durable = false, .row_times = true};

void write_three(const std::filesystem::path& root, const RunContext& context = {},
                 const RawJudge& judge = {}) {
  RawWriter writer = must_create(root, kBulk);
  ASSERT_OK(writer.append(*recorded(0, 25, "lift"), context));
  ASSERT_OK(writer.append(*recorded(1, 12, "turn"), context));
  ASSERT_OK(writer.append(*recorded(2, 7, "lift"), context));
  ASSERT_OK(writer.finish(context, judge));
  EXPECT_EQ(writer.episodes(), 3);
  EXPECT_EQ(writer.frames(), 44);
}

TEST(RawWriter, WritesMetadataAsARecorderDoes) {
  const TempDir dir("raw");
  write_three(dir / "raw");
  const Json info = json_of(dir / "raw" / "meta" / "info.json");
  EXPECT_EQ(info.get_string("codebase_version"), "v2.1");
  EXPECT_EQ(info.find("dataset_format"), nullptr);
  EXPECT_EQ(info.get_int64("total_episodes"), 3);
  EXPECT_EQ(info.get_int64("total_frames"), 44);
  EXPECT_EQ(info.get_int64("total_tasks"), 2);
  EXPECT_EQ(info.get_int64("total_videos"), 6);
  EXPECT_EQ(info.get_int64("total_chunks"), 1);
  EXPECT_EQ(info.get_int64("chunks_size"), 1000);
  EXPECT_TRUE(info.find("fps")->is_integer());
  EXPECT_EQ(info.find("splits")->get_string("train"), "0:3");
  EXPECT_EQ(info.get_string("collection_started_at"), "2026-03-01T10:00:00+00:00");
  EXPECT_EQ(info.get_string("house"), "number 7");
  EXPECT_EQ(info.find("features")->find(kTop)->get_string("dtype"), "video");

  const auto rows = lines_of(dir / "raw" / "meta" / "episodes.jsonl");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[1].get_int64("episode_index"), 1);
  EXPECT_EQ(rows[1].get_int64("length"), 12);
  EXPECT_EQ(rows[1].get_string("unknown_key"), "kept");
  EXPECT_EQ(*rows[1].find("video_keys"), Json(Json::Array{Json(kSide), Json(kTop)}));
  EXPECT_EQ(rows[1].find("quality"), nullptr) << "nobody checked it";

  const auto tasks = lines_of(dir / "raw" / "meta" / "tasks.jsonl");
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[1].get_string("task"), "turn");

  const auto stats = lines_of(dir / "raw" / "meta" / "episodes_stats.jsonl");
  ASSERT_EQ(stats.size(), 3U);
  const Json* qpos = stats[1].find("stats")->find("observations.state.qpos");
  ASSERT_NE(qpos, nullptr);
  EXPECT_EQ(*qpos->find("min"), Json(Json::Array{Json(100.0), Json(101.0), Json(102.0)}));
  EXPECT_EQ(*qpos->find("count"), Json(Json::Array{Json(12)}));
  EXPECT_NE(stats[1].find("stats")->find("index"), nullptr) << "every numeric column";
  EXPECT_EQ(stats[1].find("stats")->find(kTop)->find("mean")->size(), 3U);

  const Json whole = json_of(dir / "raw" / "meta" / "stats.json");
  EXPECT_EQ(whole.size(), 2U) << "the recorded vectors alone";
  EXPECT_EQ(whole.find("action.qpos")->find("count"), nullptr);
}

TEST(RawWriter, WritesTablesAndClipsThatReadBackEqual) {
  const TempDir dir("raw");
  write_three(dir / "raw");
  const auto source = open_lerobot(dir / "raw", {.strict = true});
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EXPECT_TRUE((*source)->findings().empty()) << (*source)->findings().to_json().dump(1);
  ASSERT_EQ((*source)->size(), 3);
  const auto written = recorded(1, 12, "turn");
  const auto episode = (*source)->open(1);
  ASSERT_TRUE(episode.ok());
  const auto batch = (*episode)->columns({0, 12});
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  for (const char* name : {"observations.state.qpos", "action.qpos", "timestamp"}) {
    EXPECT_TRUE((*batch)->GetColumnByName(name)->Equals(written->table->GetColumnByName(name)))
        << name;
  }
  const auto at = [&](const char* name, std::int64_t row) {
    return std::static_pointer_cast<arrow::Int64Array>((*batch)->GetColumnByName(name))->Value(row);
  };
  EXPECT_EQ(at("episode_index", 3), 1);
  EXPECT_EQ(at("frame_index", 3), 3);
  EXPECT_EQ(at("index", 3), 25 + 3);
  EXPECT_EQ(at("task_index", 3), 1);

  const auto index =
      probe_mp4(dir / "raw" / fmt::format("videos/chunk-000/{}/episode_000000.mp4", kTop));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->params.codec, "h264");
  EXPECT_EQ(index->frame_count(), 25);
  EXPECT_EQ(index->fps, (Rational{20, 1}));
  EXPECT_EQ(index->timescale, 10240U);
  EXPECT_EQ(index->reorder_delay, 0) << "no B-frames";
  for (std::size_t i = 0; i < index->packets.size(); ++i) {
    EXPECT_EQ(index->packets[i].keyframe, i % 10 == 0) << i;
  }
}

TEST(RawWriter, DeclaresTypesInTheFooter) {
  const TempDir dir("raw");
  write_three(dir / "raw");
  const auto reader =
      ParquetReader::open(dir / "raw" / "data" / "chunk-000" / "episode_000002.parquet");
  ASSERT_TRUE(reader.ok()) << reader.status().to_string();
  EXPECT_EQ((*reader)->row_groups().size(), 1U);
  const auto field = (*reader)->schema()->GetFieldByName("action.qpos");
  EXPECT_TRUE(field->type()->Equals(arrow::fixed_size_list(arrow::float32(), 3)) ||
              field->type()->id() == arrow::Type::FIXED_SIZE_LIST)
      << field->type()->ToString();
  const auto huggingface = (*reader)->metadata("huggingface");
  ASSERT_TRUE(huggingface.has_value());
  EXPECT_NE(huggingface->find("\"_type\": \"Sequence\""), std::string::npos);
}

TEST(RawWriter, WritesTheLedgerThatBelongsToTheRows) {
  const TempDir dir("raw");
  write_three(dir / "raw");
  const auto lines = lines_of(dir / "raw" / "meta" / "ledger.jsonl");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[2].get_int64("rev"), 3);
  EXPECT_EQ(lines[2].get_string("kind"), "saved");
  EXPECT_EQ(lines[2].get_string("at"), "2026-03-03T10:00:09.000000Z");
  EXPECT_EQ(lines[2].get_string("take_id"), "take-2");
  auto ledger = Ledger::open_for_write(dir / "raw", {"somebody", "cli"});
  ASSERT_TRUE(ledger.ok()) << ledger.status().to_string();
  EXPECT_EQ(ledger->revision(), 3) << "nothing had to be imported";
  EXPECT_TRUE(ledger->findings().empty()) << ledger->findings().to_json().dump(1);
  ASSERT_OK(ledger->mark({.episodes = {1}, .verdict = "fail"}).status());
  ASSERT_OK(ledger->project());
  EXPECT_EQ(lines_of(dir / "raw" / "meta" / "episodes.jsonl")[1].get_string("qc_verdict"), "fail");
}

TEST(RawWriter, GivesTheSameBytesOnAnyNumberOfThreads) {
  const TempDir dir("raw");
  write_three(dir / "one");
  ThreadPool pool(3);
  write_three(dir / "two", {.pool = &pool});
  const auto files = list_tree(dir / "one");
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(*files, list_tree(dir / "two").value());
  EXPECT_EQ(files->size(), 3U + 6U + 7U) << fmt::format("{}", fmt::join(*files, " "));
  for (const std::string& file : *files) {
    EXPECT_EQ(test::read_file(dir / "one" / file), test::read_file(dir / "two" / file)) << file;
  }
}

TEST(RawWriter, PutsTheQualityOfTheJudgeIntoRowsAndLedger) {
  const TempDir dir("raw");
  const RawJudge judge = [](const std::filesystem::path& root) -> Result<std::vector<RawQuality>> {
    const auto source = open_lerobot(root);
    EXPECT_TRUE(source.ok()) << source.status().to_string();
    EXPECT_EQ((*source)->size(), 3);
    RawQuality red{.quality = "red"};
    red.issues.push_back(Json(Json::Object{{"severity", Json("red")}, {"code", Json("black")}}));
    RawQuality noted{.quality = "green"};
    noted.findings.push_back(Json(Json::Object{{"code", Json("idle_span")}}));
    return std::vector<RawQuality>{{.quality = "green"}, red, noted};
  };
  write_three(dir / "raw", {}, judge);
  const auto rows = lines_of(dir / "raw" / "meta" / "episodes.jsonl");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].get_string("quality"), "green");
  EXPECT_EQ(rows[0].find("quality_issues")->size(), 0U);
  EXPECT_EQ(rows[0].find("quality_findings"), nullptr);
  EXPECT_EQ(rows[1].get_string("quality"), "red");
  EXPECT_EQ((*rows[1].find("quality_issues")->as_array())[0].get_string("code"), "black");
  EXPECT_EQ(rows[2].find("quality_findings")->size(), 1U);
  auto ledger = Ledger::open_for_write(dir / "raw", {"somebody", "cli"});
  ASSERT_TRUE(ledger.ok());
  EXPECT_EQ(ledger->revision(), 3);
  EXPECT_EQ(ledger->find(1)->quality, "red");
}

TEST(RawWriter, CommitsEpisodesOneByOneAndGoesOnLater) {
  const TempDir dir("raw");
  const auto root = dir / "set" / "raw";
  {
    RawWriter writer = must_create(root, {});
    ASSERT_OK(writer.append(*recorded(0, 9, "lift"), {}));
    const auto second = RawWriter::create(root, recorded_schema());
    EXPECT_EQ(second.status().reason(), "DATASET_LOCKED") << second.status().to_string();
    // What is committed is whole before the next one begins.
    const auto source = open_lerobot(root, {.strict = true});
    ASSERT_TRUE(source.ok()) << source.status().to_string();
    EXPECT_EQ((*source)->size(), 1);
  }
  auto ledger = Ledger::open_for_write(root, {"somebody", "cli"});
  ASSERT_TRUE(ledger.ok());
  ASSERT_OK(ledger->mark({.episodes = {0}, .verdict = "pass"}).status());
  {
    RawWriter writer = must_create(root, {});
    EXPECT_EQ(writer.episodes(), 1);
    EXPECT_EQ(writer.frames(), 9);
    ASSERT_OK(writer.append(*recorded(1, 6, "turn"), {}));
    ASSERT_OK(writer.append(*recorded(2, 5, "lift"), {}));
    ASSERT_OK(writer.finish({}));
  }
  const auto source = open_lerobot(root, {.strict = true});
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  ASSERT_EQ((*source)->size(), 3);
  EXPECT_EQ((*source)->info(2).tasks, std::vector<std::string>{"lift"});
  EXPECT_EQ(json_of(root / "meta" / "info.json").get_int64("total_frames"), 20);
  EXPECT_EQ(lines_of(root / "meta" / "tasks.jsonl").size(), 2U);
  const auto lines = lines_of(root / "meta" / "ledger.jsonl");
  ASSERT_EQ(lines.size(), 4U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].get_int64("rev"), static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(lines[i].get_string("kind"), i == 1 ? "verdict" : "saved");
  }
  auto after = Ledger::open_for_write(root, {"somebody", "cli"});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->revision(), 4) << "no line about a foreign edit";
  EXPECT_EQ(after->find(0)->verdict, "pass");
  const auto left = list_directory(dir / "set" / ".staging");
  ASSERT_TRUE(left.ok());
  EXPECT_TRUE(left->empty());
}

TEST(RawWriter, NeverGivesANumberAgainThatAFileHas) {
  const TempDir dir("raw");
  const auto root = dir / "set" / "raw";
  {
    RawWriter writer = must_create(root, {});
    ASSERT_OK(writer.append(*recorded(0, 4, "lift"), {}));
  }
  test::write_file(root / "data" / "chunk-000" / "episode_000004.parquet", "of a lost row");
  RawWriter writer = must_create(root, {});
  ASSERT_OK(writer.append(*recorded(1, 4, "lift"), {}));
  EXPECT_EQ(lines_of(root / "meta" / "episodes.jsonl")[1].get_int64("episode_index"), 5);
}

TEST(RawWriter, RefusesADatasetOfOtherFeatures) {
  const TempDir dir("raw");
  const auto root = dir / "set" / "raw";
  {
    RawWriter writer = must_create(root, {});
    ASSERT_OK(writer.append(*recorded(0, 4, "lift"), {}));
  }
  Schema other = recorded_schema();
  other.features.front().shape = {4};
  EXPECT_EQ(RawWriter::create(root, other).status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(RawWriter::create(root, recorded_schema(), kBulk).status().code(),
            StatusCode::already_exists);
}

TEST(RawWriter, RefusesEpisodesThatAreNotWholeAndKeepsNothingOfThem) {
  const TempDir dir("raw");
  const auto root = dir / "set" / "raw";
  RawWriter writer = must_create(root, {});
  auto without = recorded(0, 8, "lift");
  without->cameras.erase(kSide);
  EXPECT_EQ(writer.append(*without, {}).code(), StatusCode::data_loss);
  EXPECT_EQ(writer.append(*recorded(0, 8, "lift", 2), {}).code(), StatusCode::data_loss);
  EXPECT_EQ(writer.append(*recorded(0, 8, "lift", 3, 5), {}).code(), StatusCode::data_loss);
  auto two = recorded(0, 8, "lift");
  two->info_value.tasks.push_back("turn");
  EXPECT_EQ(writer.append(*two, {}).code(), StatusCode::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(root / "data"));
  ASSERT_OK(writer.append(*recorded(0, 8, "lift"), {}));
  EXPECT_EQ(lines_of(root / "meta" / "episodes.jsonl").at(0).get_int64("episode_index"), 0)
      << "a failed episode takes no number";
}

TEST(RawWriter, WritesFaultyEpisodesAsTheyAreWhenAsked) {
  const TempDir dir("raw");
  RawWriterOptions options = kBulk;
  options.faithful = true;
  RawWriter writer = must_create(dir / "raw", options);
  auto without = recorded(0, 8, "lift");
  without->cameras.erase(kSide);
  ASSERT_OK(writer.append(*without, {}));
  ASSERT_OK(writer.append(*recorded(1, 8, "lift", 2), {}));
  ASSERT_OK(writer.append(*recorded(2, 8, "lift", 3, 5), {}));
  auto lacking = recorded(3, 8, "lift");
  lacking->table = lacking->table->RemoveColumn(0).ValueOrDie();
  ASSERT_OK(writer.append(*lacking, {}));
  ASSERT_OK(writer.finish({}));
  const auto rows = lines_of(dir / "raw" / "meta" / "episodes.jsonl");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(*rows[0].find("video_keys"), Json(Json::Array{Json(kTop)}));
  EXPECT_EQ(rows[0].get_int64("total_videos"), 1);
  EXPECT_EQ(json_of(dir / "raw" / "meta" / "info.json").get_int64("total_videos"), 7);
  const auto clip =
      probe_mp4(dir / "raw" / fmt::format("videos/chunk-000/{}/episode_000002.mp4", kSide));
  ASSERT_TRUE(clip.ok());
  EXPECT_EQ(clip->frame_count(), 5);
  const auto table =
      ParquetReader::open(dir / "raw" / "data" / "chunk-000" / "episode_000003.parquet");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ((*table)->schema()->GetFieldIndex("observations.state.qpos"), -1);
  EXPECT_EQ((*table)->rows(), 8);
  // The statistics of the whole are those of the vectors as declared.
  EXPECT_EQ(json_of(dir / "raw" / "meta" / "stats.json").find("action.qpos")->find("mean")->size(),
            3U);
}

// --- what a crash left (review-export-upload 3.5) ---

std::vector<std::string> codes_of(const Findings& findings) {
  std::vector<std::string> out;
  for (const Finding& finding : findings.entries()) out.push_back(finding.code);
  std::ranges::sort(out);
  return out;
}

/// A raw dataset of two episodes below `dir`, committed one by one.
std::filesystem::path two_committed(const TempDir& dir) {
  const auto root = dir / "set" / "raw";
  RawWriter writer = must_create(root, {});
  EXPECT_TRUE(writer.append(*recorded(0, 9, "lift"), {}).ok());
  EXPECT_TRUE(writer.append(*recorded(1, 6, "turn"), {}).ok());
  return root;
}

TEST(RawRecovery, FindsNothingToDoInAWholeDataset) {
  const TempDir dir("raw");
  const auto root = two_committed(dir);
  const auto before = test::read_file(root / "meta" / "info.json");
  const auto found = recover_raw(root, {"system", "cli"});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_TRUE(found->empty()) << found->to_json().dump(2);
  EXPECT_EQ(test::read_file(root / "meta" / "info.json"), before);
  EXPECT_FALSE(std::filesystem::exists(dir / "set" / ".orphans"));
}

// Killed between the renames of the files and the row: nobody may count these files.
TEST(RawRecovery, MovesFilesWithoutARowAsideAndLosesNoByte) {
  const TempDir dir("raw");
  const auto root = two_committed(dir);
  const std::string table = "data/chunk-000/episode_000002.parquet";
  const std::string clip = fmt::format("videos/chunk-000/{}/episode_000002.mp4", kTop);
  test::write_file(root / table, "rows");
  test::write_file(root / clip, "pictures");
  test::write_file(dir / "set" / ".staging" / "take-3" / "half.mp4", "half");
  const auto found = recover_raw(root, {"system", "cli"});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(codes_of(*found),
            (std::vector<std::string>{"orphan_moved", "orphan_moved", "staging_moved"}));
  EXPECT_FALSE(std::filesystem::exists(root / table));
  EXPECT_FALSE(std::filesystem::exists(root / clip));
  const auto orphans = dir / "set" / ".orphans";
  EXPECT_EQ(test::read_file(orphans / table), "rows");
  EXPECT_EQ(test::read_file(orphans / clip), "pictures");
  EXPECT_EQ(test::read_file(orphans / "staging" / "take-3" / "half.mp4"), "half");
  EXPECT_TRUE(list_directory(dir / "set" / ".staging")->empty());
  ASSERT_TRUE(open_lerobot(root, {.strict = true, .survey = true}).ok());
  // Once more: what lies there is not overwritten.
  test::write_file(root / table, "other rows");
  ASSERT_TRUE(recover_raw(root, {"system", "cli"}).ok());
  EXPECT_EQ(test::read_file(orphans / table), "rows");
  EXPECT_EQ(test::read_file(orphans / (table + ".1")), "other rows");
}

TEST(RawRecovery, CutsATornRowAndKeepsItsBytes) {
  const TempDir dir("raw");
  const auto root = two_committed(dir);
  const auto rows = test::read_file(root / "meta" / "episodes.jsonl");
  const auto stats = test::read_file(root / "meta" / "episodes_stats.jsonl");
  test::write_file(root / "meta" / "episodes.jsonl", rows + "{\"episode_index\": 2, \"tas");
  test::write_file(root / "meta" / "episodes_stats.jsonl", stats + std::string(40, '\0'));
  RawWriter writer = must_create(root, {});
  EXPECT_EQ(codes_of(writer.findings()),
            (std::vector<std::string>{"row_line_cut", "row_line_cut"}));
  EXPECT_EQ(test::read_file(root / "meta" / "episodes.jsonl"), rows);
  EXPECT_EQ(test::read_file(root / "meta" / "episodes_stats.jsonl"), stats);
  EXPECT_EQ(test::read_file(dir / "set" / ".orphans" / "meta" / "episodes.jsonl.torn"),
            "{\"episode_index\": 2, \"tas");
  ASSERT_OK(writer.append(*recorded(2, 4, "lift"), {}));
  EXPECT_EQ(lines_of(root / "meta" / "episodes.jsonl").size(), 3U);
}

// Killed right behind the commit point: ledger line, info.json and stats.json are still to come.
TEST(RawRecovery, CompletesACommitThatReachedItsRow) {
  const TempDir dir("raw");
  const auto root = dir / "set" / "raw";
  std::map<std::string, std::string> before;
  {
    RawWriter writer = must_create(root, {});
    ASSERT_OK(writer.append(*recorded(0, 9, "lift"), {}));
    for (const char* file : {"ledger.jsonl", "info.json", "stats.json"}) {
      before[file] = test::read_file(root / "meta" / file);
    }
    ASSERT_OK(writer.append(*recorded(1, 6, "turn"), {}));
  }
  const Json info = json_of(root / "meta" / "info.json");
  const Json stats = json_of(root / "meta" / "stats.json");
  for (const auto& [file, text] : before) test::write_file(root / "meta" / file, text);
  const auto found = recover_raw(root, {"system", "cli"});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->count("info_rebuilt"), 1);
  EXPECT_EQ(found->count("statistics_rebuilt"), 1);
  const auto lines = lines_of(root / "meta" / "ledger.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].get_string("kind"), "saved");
  EXPECT_EQ(lines[1].get_string("client"), "recorder");
  EXPECT_EQ(lines[1].get_string("take_id"), "take-1");
  EXPECT_EQ(lines[1].get_int64("episode_index"), 1);
  EXPECT_EQ(lines[1].find("after")->get_int64("length"), 6);
  const Json rebuilt = json_of(root / "meta" / "info.json");
  for (const char* key : {"total_episodes", "total_frames", "total_videos", "splits", "house"}) {
    EXPECT_EQ(*rebuilt.find(key), *info.find(key)) << key;
  }
  EXPECT_EQ(json_of(root / "meta" / "stats.json"), stats);
  EXPECT_TRUE(recover_raw(root, {"system", "cli"})->empty());
}

TEST(RawRecovery, MovesNothingWhereTheRowsCannotBeTrusted) {
  const TempDir dir("raw");
  const auto root = two_committed(dir);
  const auto rows = lines_of(root / "meta" / "episodes.jsonl");
  test::write_file(root / "meta" / "episodes.jsonl",
                   "{\"episode_index\": 0, \n" + rows[1].dump_spaced() + "\n");
  test::write_file(root / "data" / "chunk-000" / "episode_000007.parquet", "whose?");
  const auto found = recover_raw(root, {"system", "cli"});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->count("orphans_undecided"), 1);
  EXPECT_EQ(found->count("orphan_moved"), 0);
  EXPECT_TRUE(std::filesystem::exists(root / "data/chunk-000/episode_000007.parquet"));
  EXPECT_TRUE(std::filesystem::exists(root / "data/chunk-000/episode_000000.parquet"));
}

TEST(RawRecovery, LeavesTheStageOfANeighbourAndAWriterAtWorkAlone) {
  const TempDir dir("raw");
  const auto root = two_committed(dir);
  test::write_file(dir / "set" / "other" / "meta" / "episodes.jsonl", "");
  test::write_file(dir / "set" / ".staging" / "take-3" / "half.mp4", "half");
  EXPECT_EQ(recover_raw(root, {"system", "cli"})->count("staging_shared"), 1);
  EXPECT_TRUE(std::filesystem::exists(dir / "set" / ".staging" / "take-3" / "half.mp4"));
  RawWriter writer = must_create(root, {});
  EXPECT_EQ(recover_raw(root, {"system", "cli"}).status().reason(), "DATASET_LOCKED");
}

}  // namespace
}  // namespace ropewalk
