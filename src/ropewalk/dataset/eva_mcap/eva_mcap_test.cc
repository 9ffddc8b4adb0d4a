#include "ropewalk/dataset/eva_mcap/eva_mcap.h"

#include <cstring>

#include <arrow/api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/fault.h"
#include "ropewalk/format/mcap/reader.h"
#include "ropewalk/format/message/msgpack_numpy.h"

#include "tests/support/memory_episode.h"
#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::MemoryEpisode;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr FrameShape kSmall{6, 8, 3, 1};
// Above the size from which frames go straight to the file.
constexpr FrameShape kLarge{320, 280, 3, 1};

std::uint8_t pixel(std::size_t camera, std::int64_t episode, std::int64_t ordinal, std::size_t i) {
  return static_cast<std::uint8_t>(
      camera * 57 + static_cast<std::size_t>(episode * 31 + ordinal * 7) + i * 3 + i / 11);
}

struct Shape {
  std::int64_t length = 20;
  FrameShape frame = kSmall;
  std::int64_t frames_there = INT64_MAX;  // of the videos
  bool has_inline = true;
  bool has_side = true;
};

// Ends early when told so.
class CutEpisode final : public MemoryEpisode {
 public:
  std::int64_t frames_there = INT64_MAX;
  Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                              FrameForm form) const override {
    range.end = std::min(range.end, frames_there);
    return MemoryEpisode::frames(camera, range, form);
  }
};

class TestSource final : public EpisodeSource {
 public:
  explicit TestSource(std::int64_t episodes, Shape shape = {}) : shape_(shape) {
    schema_.fps = {20, 1};
    schema_.robot_type = "two arms";
    schema_.features = {
        {.name = "observation.state", .dtype = DType::float32, .shape = {3}},
        {.name = "capture_time", .dtype = DType::float64, .shape = {1}},
        {.name = "intervention", .dtype = DType::boolean, .shape = {1}},
        {.name = "language", .dtype = DType::string, .shape = {1}},
        {.name = "note", .dtype = DType::string, .shape = {1}},
        {.name = "side", .kind = FeatureKind::video, .dtype = DType::uint8, .shape = {6, 8, 3}},
        {.name = "front", .kind = FeatureKind::video, .dtype = DType::uint8, .shape = {6, 8, 3}},
        {.name = "wrist", .kind = FeatureKind::image, .dtype = DType::uint8, .shape = {6, 8, 3}}};
    for (Feature& feature : default_features()) schema_.features.push_back(feature);
    if (!shape.has_inline) schema_.features.erase(schema_.features.begin() + 7);
    for (std::int64_t i = 0; i < episodes; ++i) {
      EpisodeInfo info;
      info.index = 10 + i;
      info.length = shape.length;
      info.tasks = {"task 5"};
      info.row = *parse_json(R"({"episode_index": 0, "tasks": [], "length": 0, "quality": "red",
        "quality_issues": [{"code": "idle_span", "count": 2, "max": 0.5}], "qc_note": "läuft",
        "empty": null, "video_keys": ["front", "side"], "total_videos": 2})");
      infos_.push_back(std::move(info));
    }
  }
  const Schema& schema() const override { return schema_; }
  const std::string& name() const override { return name_; }
  std::string_view format() const override { return "test"; }
  std::int64_t size() const override { return static_cast<std::int64_t>(infos_.size()); }
  EpisodeInfo info(std::int64_t i) const override { return infos_[static_cast<std::size_t>(i)]; }
  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override {
    auto out = std::make_unique<CutEpisode>();
    out->frames_there = shape_.frames_there;
    out->info_value = info(i);
    out->schema_value = schema_;
    out->tasks = {{4, "task 4"}, {5, "task 5"}};
    out->table = table(i);
    const char* names[] = {"side", "front", "wrist"};
    for (std::size_t c = 0; c < 3; ++c) {
      if ((c == 2 && !shape_.has_inline) || (c == 0 && !shape_.has_side)) continue;
      out->cameras[names[c]] = {shape_.frame, [c, i](std::int64_t ordinal, MutableByteSpan to) {
                                  for (std::size_t k = 0; k < to.size(); ++k) {
                                    to[k] = pixel(c, i, ordinal, k);
                                  }
                                }};
    }
    return std::unique_ptr<Episode>(std::move(out));
  }
  Schema& mutable_schema() { return schema_; }

 private:
  std::shared_ptr<arrow::RecordBatch> table(std::int64_t episode) const {
    const std::int64_t rows = shape_.length;
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    const auto add = [&](const std::string& name, std::shared_ptr<arrow::Array> array) {
      fields.push_back(arrow::field(name, array->type()));
      arrays.push_back(std::move(array));
    };
    add("observation.state", test::vector_column(rows, 3, [&](std::int64_t row, int d) {
          return static_cast<float>(row) * 0.37F + static_cast<float>(d) +
                 static_cast<float>(episode);
        }));
    add("capture_time", test::scalar_column<arrow::DoubleBuilder>(rows, [](std::int64_t row) {
          return 1.7e9 + static_cast<double>(row) / 20;
        }));
    add("intervention", test::scalar_column<arrow::BooleanBuilder>(
                            rows, [](std::int64_t row) { return row % 3 == 0; }));
    add("language", test::scalar_column<arrow::StringBuilder>(
                        rows, [](std::int64_t row) { return "wört " + std::to_string(row); }));
    arrow::StringBuilder notes;
    for (std::int64_t row = 0; row < rows; ++row) {
      test::must(row % 2 == 0 ? notes.AppendNull() : notes.Append("n"));
    }
    add("note", notes.Finish().ValueOrDie());
    add("timestamp", test::scalar_column<arrow::FloatBuilder>(
                         rows, [](std::int64_t row) { return static_cast<float>(row) / 20; }));
    for (const char* name : {"frame_index", "episode_index", "index"}) {
      add(name,
          test::scalar_column<arrow::Int64Builder>(rows, [](std::int64_t row) { return row; }));
    }
    add("task_index", test::scalar_column<arrow::Int64Builder>(
                          rows, [](std::int64_t row) { return row < 10 ? 4 : 5; }));
    return arrow::RecordBatch::Make(arrow::schema(fields), rows, arrays);
  }

  Shape shape_;
  Schema schema_;
  std::string name_ = "test";
  std::vector<EpisodeInfo> infos_;
};

Status export_to(const std::filesystem::path& root, const EpisodeSource& source,
                 const EvaMcapOptions& options = {}, ThreadPool* pool = nullptr,
                 std::vector<WrittenFile>* files = nullptr) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, create_eva_mcap_sink(root, source.schema(), options));
  RunContext context;
  context.pool = pool;
  ROPEWALK_RETURN_IF_ERROR(copy(source, *sink, context));
  if (files != nullptr) *files = sink->files();
  return ok_status();
}

void expect_same_frames(const Episode& source, const Episode& found, const std::string& camera) {
  const FrameRange all{0, source.info().length};
  const auto expected = source.frames(camera, all);
  const auto reader = found.frames(camera, all);
  ASSERT_TRUE(expected.ok() && reader.ok()) << reader.status().to_string();
  ASSERT_EQ((*expected)->shape(), (*reader)->shape());
  Bytes a((*expected)->shape().frame_bytes());
  Bytes b(a.size());
  for (std::int64_t i = 0; i < all.end; ++i) {
    ASSERT_TRUE(*(*expected)->next(a));
    const auto there = (*reader)->next(b);
    ASSERT_TRUE(there.ok() && *there) << there.status().to_string();
    ASSERT_EQ(a, b) << camera << " frame " << i;
  }
  EXPECT_FALSE(*(*reader)->next(b));
}

mcap::Reader open_file(const std::filesystem::path& path) {
  auto source = open_source(path);
  EXPECT_TRUE(source.ok()) << source.status().to_string();
  auto reader = mcap::Reader::open(std::move(*source));
  EXPECT_TRUE(reader.ok()) << reader.status().to_string();
  return std::move(*reader);
}

TEST(EvaMcap, PeriodIsRoundedHalfToEvenAndNeverZero) {
  EXPECT_EQ(eva_mcap_period_ns({20, 1}), 50'000'000U);
  EXPECT_EQ(eva_mcap_period_ns({30, 1}), 33'333'333U);
  EXPECT_EQ(eva_mcap_period_ns({50, 1}), 20'000'000U);
  EXPECT_EQ(eva_mcap_period_ns({2997, 100}), 33'366'700U);
  EXPECT_EQ(eva_mcap_period_ns({30000, 1001}), 33'366'667U);
  EXPECT_EQ(eva_mcap_period_ns({400'000'000, 1}), 2U);    // 2.5
  EXPECT_EQ(eva_mcap_period_ns({2'000'000'000, 3}), 2U);  // 1.5
  EXPECT_EQ(eva_mcap_period_ns({4'000'000'000, 1}), 1U);
}

TEST(EvaMcap, RoundTripsColumnsPicturesRowsAndTasks) {
  ThreadPool pool(3);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    for (const char* compression : {"none", "lz4", "zstd"}) {
      for (const FrameShape& frame : {kSmall, kLarge}) {
        const TempDir dir("eva");
        // Without inline pictures the episode message is compressed as well.
        const bool has_inline = std::string_view(compression) != "lz4";
        const TestSource source(3, {.frame = frame, .has_inline = has_inline});
        std::vector<WrittenFile> files;
        const Status status =
            export_to(dir.path(), source, {.compression = compression}, threads, &files);
        ASSERT_TRUE(status.ok()) << status.to_string();
        ASSERT_EQ(files.size(), 7U);
        for (const WrittenFile& file : files) {
          const std::string content = test::read_file(dir / file.path);
          EXPECT_EQ(file.size_bytes, content.size());
          EXPECT_EQ(file.sha256, sha256_hex(as_bytes(content))) << file.path;
        }
        const auto back = open_eva_mcap(dir.path());
        ASSERT_TRUE(back.ok()) << back.status().to_string();
        ASSERT_EQ((*back)->size(), 3);
        EXPECT_EQ((*back)->format(), "mcap");
        for (std::int64_t i = 0; i < 3; ++i) {
          const auto original = source.open(i);
          const auto found = (*back)->open(i);
          ASSERT_TRUE(found.ok()) << found.status().to_string();
          const auto expected = (*original)->columns({0, 20});
          const auto columns = (*found)->columns({0, 20});
          ASSERT_TRUE(columns.ok()) << columns.status().to_string();
          ASSERT_EQ((*columns)->num_columns(), 10);
          for (const char* name : {"observation.state", "capture_time", "intervention", "language",
                                   "note", "timestamp", "frame_index"}) {
            const auto a = (*expected)->GetColumnByName(name);
            const auto b = (*columns)->GetColumnByName(name);
            ASSERT_NE(b, nullptr) << name;
            EXPECT_TRUE(a->Equals(b)) << name << ": " << b->ToString();
          }
          const auto indices = (*columns)->GetColumnByName("index");
          EXPECT_EQ(static_cast<const arrow::Int64Array&>(*indices).Value(3), 20 * i + 3);
          EXPECT_EQ(*(*found)->task_text(0), "task 5");
          EXPECT_EQ(*(*found)->task_text(1), "task 4");
          for (const std::string& camera : source.schema().cameras()) {
            expect_same_frames(**original, **found, camera);
          }
          EXPECT_EQ((*found)->info().note, "läuft");
          EXPECT_EQ((*found)->info().row.find("video_keys"), nullptr);
          EXPECT_EQ((*found)->packets("front").status().code(), StatusCode::failed_precondition);
        }
      }
    }
  }
}

TEST(EvaMcap, WritesTheLayout) {
  const TempDir dir("eva");
  const TestSource source(1, {.frame = kLarge});
  ASSERT_TRUE(export_to(dir.path(), source).ok());
  const mcap::Reader reader = open_file(dir / "data/chunk-000/episode_000000.mcap");
  EXPECT_TRUE(reader.problems().empty());
  EXPECT_EQ(reader.header().profile, "eva-client");
  EXPECT_EQ(reader.header().library, "eva-client");
  ASSERT_EQ(reader.metadata().size(), 1U);
  EXPECT_EQ(reader.metadata()[0].name, "ropewalk");
  const auto metadata = reader.read_metadata(reader.metadata()[0]);
  EXPECT_THAT(metadata->metadata, ElementsAre(std::pair<std::string, std::string>(
                                      "version", metadata->metadata.at(0).second)));
  ASSERT_EQ(reader.schemas().size(), 1U);
  const mcap::Schema& schema = reader.schemas().at(1);
  EXPECT_EQ(schema.name, "eva_client.episode");
  EXPECT_EQ(schema.encoding, "jsonschema");
  EXPECT_EQ(as_text(schema.data), R"({"type":"object"})");

  // Frame-major, cameras in the order of video_keys, shared times.
  std::vector<std::string> order;
  mcap::MessageReader messages = reader.messages({.order = mcap::Order::file});
  for (mcap::MessageView m; messages.next(m);) {
    EXPECT_EQ(m.channel->message_encoding, "messagepack");
    EXPECT_EQ(m.log_time, m.publish_time);
    EXPECT_EQ(m.verified, mcap::Verified::checked);
    if (order.empty()) {
      EXPECT_EQ(m.channel->topic, "episode");
      EXPECT_EQ(m.channel->schema_id, 1);
      EXPECT_EQ(m.log_time, 0U);
    } else {
      EXPECT_EQ(m.channel->schema_id, 0);
      EXPECT_EQ(m.log_time, (m.sequence + std::uint64_t{1}) * 50'000'000U);
      EXPECT_EQ(m.sequence, (order.size() - 1) / 2);
    }
    order.push_back(m.channel->topic);
  }
  ASSERT_EQ(order.size(), 41U);
  EXPECT_EQ(order[1], "episode/image/front");
  EXPECT_EQ(order[2], "episode/image/side");
  EXPECT_EQ(order[3], "episode/image/front");
  for (const mcap::ChunkIndex& chunk : reader.chunks()) EXPECT_EQ(chunk.compression, "");
  EXPECT_EQ(reader.statistics()->message_count, 41U);

  mcap::MessageLoader loader = reader.loader();
  const auto refs = *reader.locate("episode");
  const auto message = loader.load(refs[0]);
  const auto body = msgpack::decode(message->data);
  ASSERT_TRUE(body.ok()) << body.status().to_string();
  ASSERT_EQ(body->as_map()->size(), 3U);
  EXPECT_EQ(body->as_map()->at(0).first.as_string(), "columns");
  EXPECT_EQ(body->as_map()->at(1).first.as_string(), "images");
  EXPECT_EQ(body->as_map()->at(2).first.as_string(), "metadata");
  EXPECT_EQ(body->find("columns")->find("observation.state")->find("dtype")->as_string(), "<f4");
  EXPECT_EQ(body->find("columns")->find("language")->find("dtype")->as_string(), "<U7");
  EXPECT_EQ(body->find("columns")->find("wrist"), nullptr);
  const auto wrist = msgpack::as_ndarray(*body->find("images")->find("wrist"));
  EXPECT_THAT((*wrist)->shape, ElementsAre(20, 320, 280, 3));
  const auto row = msgpack::to_json(*body->find("metadata"));
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->dump(),
            R"({"episode_index":0,"tasks":["task 5","task 4"],"length":20,"quality":"red",)"
            R"("quality_issues":[{"code":"idle_span","count":2,"max":0.5}],"qc_note":"läuft",)"
            R"("empty":null,"fps":20.0})");

  const auto info = parse_json(test::read_file(dir / "meta/info.json"));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->get_string("codebase_version"), "mcap");
  EXPECT_EQ(info->get_string("dataset_format"), "mcap");
  EXPECT_EQ(info->get_bool("embedded_images"), true);
  EXPECT_EQ(info->get_int64("total_videos"), 0);
  EXPECT_EQ(info->get_string("data_path"),
            "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.mcap");
}

TEST(EvaMcap, FilesAreTheSameWithAndWithoutThreads) {
  const TempDir dir("eva");
  const TestSource source(2, {.frame = kLarge});
  ThreadPool pool(3);
  ASSERT_TRUE(export_to(dir / "a", source).ok());
  ASSERT_TRUE(export_to(dir / "b", source, {}, &pool).ok());
  for (const char* file :
       {"data/chunk-000/episode_000000.mcap", "data/chunk-000/episode_000001.mcap"}) {
    EXPECT_EQ(test::read_file(dir / "a" / file), test::read_file(dir / "b" / file));
  }
}

TEST(EvaMcap, CropAndPlanarFramesAreCutFromTheStoredPixels) {
  const TempDir dir("eva");
  const TestSource source(1);
  ASSERT_TRUE(export_to(dir.path(), source).ok());
  const auto back = open_eva_mcap(dir.path());
  const auto episode = (*back)->open(0);
  FrameForm form;
  form.layout = FrameLayout::chw;
  form.crop_x = 2;
  form.crop_y = 1;
  form.crop_width = 3;
  form.crop_height = 2;
  const auto reader = (*episode)->frames("front", {5, 6}, form);
  ASSERT_TRUE(reader.ok()) << reader.status().to_string();
  ASSERT_EQ((*reader)->shape().frame_bytes(), 18U);
  Bytes out(18);
  ASSERT_TRUE(*(*reader)->next(out));
  // Channel 1, row 1 of the crop, column 2 of the crop.
  EXPECT_EQ(out[6 + 3 + 2], pixel(1, 0, 5, ((1 + 1) * 8 + 2 + 2) * 3 + 1));
  form.width = 100;
  EXPECT_EQ((*episode)->frames("front", {5, 6}, form).status().code(), StatusCode::unimplemented);
}

TEST(EvaMcap, WritesEpisodesWithoutFramesAndWithoutACamera) {
  const TempDir dir("eva");
  const TestSource empty(1, {.length = 0});
  const Status status = export_to(dir / "empty", empty);
  ASSERT_TRUE(status.ok()) << status.to_string();
  auto back = open_eva_mcap(dir / "empty");
  ASSERT_TRUE(back.ok());
  const auto episode = (*back)->open(0);
  ASSERT_TRUE(episode.ok()) << episode.status().to_string();
  EXPECT_EQ((*(*episode)->columns({0, 0}))->num_rows(), 0);

  const TestSource lacking(1, {.has_side = false});
  const auto sink = create_eva_mcap_sink(dir / "lacking", lacking.schema());
  ASSERT_TRUE(copy(lacking, **sink, {}).ok());
  EXPECT_EQ((*sink)->findings().count("missing_camera"), 1);
  back = open_eva_mcap(dir / "lacking");
  EXPECT_FALSE((*(*back)->open(0))->has_camera("side"));
  EXPECT_TRUE((*(*back)->open(0))->has_camera("front"));

  const TestSource none(0);
  ASSERT_TRUE(export_to(dir / "none", none).ok());
  EXPECT_EQ((*open_eva_mcap(dir / "none"))->size(), 0);
}

TEST(EvaMcap, PicturesThatEndEarlyAreAnErrorAndTheSinkTakesNoMore) {
  ThreadPool pool(2);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    const TempDir dir("eva");
    const TestSource source(1, {.frames_there = 17, .has_inline = false});
    const auto sink = create_eva_mcap_sink(dir.path(), source.schema());
    RunContext context;
    context.pool = threads;
    const auto episode = source.open(0);
    const Status status = (*sink)->write(**episode, context);
    EXPECT_EQ(status.code(), StatusCode::data_loss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("frame 17: the pictures end early"));
    EXPECT_EQ((*sink)->write(**episode, context).code(), StatusCode::failed_precondition);
    EXPECT_EQ((*sink)->finish(context).code(), StatusCode::failed_precondition);
  }
}

TEST(EvaMcap, FailedWritesAreReturned) {
  const TempDir dir("eva");
  const TestSource source(2, {.frame = kLarge});
  ThreadPool pool(2);
  for (int good = 0; good < 6; ++good) {
    int calls = 0;
    set_fault_hook([&](std::string_view point) {
      return point == "io.write" && calls++ >= good ? resource_exhausted("no space left")
                                                    : ok_status();
    });
    const Status status = export_to(dir / std::to_string(good), source, {}, &pool);
    set_fault_hook(nullptr);
    EXPECT_EQ(status.code(), StatusCode::resource_exhausted) << good;
  }
}

TEST(EvaMcap, StopsOnRequest) {
  const TempDir dir("eva");
  const TestSource source(1);
  const auto sink = create_eva_mcap_sink(dir.path(), source.schema());
  std::stop_source stop;
  stop.request_stop();
  RunContext context;
  context.stop = stop.get_token();
  EXPECT_EQ((*sink)->write(**source.open(0), context).code(), StatusCode::cancelled);
}

TEST(EvaMcap, RefusesWhatTheLayoutCannotHold) {
  const TempDir dir("eva");
  TestSource source(1);
  source.mutable_schema().features.push_back(
      {.name = "cloud", .kind = FeatureKind::points, .shape = {-1, 3}});
  const auto sink = create_eva_mcap_sink(dir / "points", source.schema());
  EXPECT_EQ(sink.status().code(), StatusCode::unimplemented);
  EXPECT_THAT(std::string(sink.status().message()), HasSubstr("cloud"));
  const TestSource plain(1);
  EXPECT_EQ(
      create_eva_mcap_sink(dir / "gzip", plain.schema(), {.compression = "gzip"}).status().code(),
      StatusCode::invalid_argument);
}

TEST(EvaMcap, DamagedFilesAreNamed) {
  const TempDir dir("eva");
  const TestSource source(1, {.frame = kLarge, .has_inline = false});
  ASSERT_TRUE(export_to(dir.path(), source).ok());
  const auto path = dir / "data/chunk-000/episode_000000.mcap";
  const std::string good = test::read_file(path);
  std::string bad = good;
  bad[good.size() / 2] ^= 1;
  test::write_file(path, bad);
  const auto back = open_eva_mcap(dir.path());
  const auto episode = (*back)->open(0);
  ASSERT_TRUE(episode.ok()) << episode.status().to_string();
  int failed = 0;
  for (const char* camera : {"front", "side"}) {
    const auto reader = (*episode)->frames(camera, {0, 20});
    ASSERT_TRUE(reader.ok());
    Bytes out((*reader)->shape().frame_bytes());
    for (;;) {
      const auto there = (*reader)->next(out);
      if (!there.ok()) {
        EXPECT_EQ(there.status().code(), StatusCode::data_loss);
        EXPECT_THAT(std::string(there.status().message()), HasSubstr("episode_000000.mcap"));
        ++failed;
        break;
      }
      if (!*there) break;
    }
  }
  EXPECT_EQ(failed, 1);
  // Its last frames are gone.
  test::write_file(path, good.substr(0, good.size() / 2));
  EXPECT_EQ((*back)->open(0).status().code(), StatusCode::data_loss);
  std::filesystem::remove(path);
  EXPECT_EQ((*back)->open(0).status().code(), StatusCode::not_found);
}

}  // namespace
}  // namespace ropewalk
