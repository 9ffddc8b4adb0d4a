#include "ropewalk/dataset/eva_hdf5/eva_hdf5.h"

#include <chrono>
#include <cstring>
#include <mutex>
#include <random>

#include <arrow/api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/fault.h"
#include "ropewalk/dataset/eva_hdf5/items_internal.h"
#include "ropewalk/episode/dense_column.h"
#include "ropewalk/format/hdf5/reader.h"

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr FrameShape kTop{6, 8, 3, 1};
constexpr FrameShape kDepth{5, 7, 1, 2};

Bytes picture(std::string_view camera, const FrameShape& shape, std::int64_t episode,
              std::int64_t ordinal) {
  Bytes out(shape.frame_bytes());
  const auto seed = static_cast<std::size_t>(episode * 1009 + ordinal * 31) + camera.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(seed + i * 7 + i / 13);
  }
  return out;
}

/// Pictures made by a formula; ends early when told so.
class FormulaFrames final : public FrameReader {
 public:
  FormulaFrames(std::string camera, FrameShape shape, std::int64_t episode, FrameRange range,
                std::int64_t there)
      : camera_(std::move(camera)),
        shape_(shape),
        episode_(episode),
        range_(range),
        there_(there) {}
  FrameShape shape() const override { return shape_; }
  Result<bool> next(MutableByteSpan out) override {
    if (range_.begin >= std::min(range_.end, there_)) return false;
    std::ranges::copy(picture(camera_, shape_, episode_, range_.begin++), out.begin());
    return true;
  }

 private:
  std::string camera_;
  FrameShape shape_;
  std::int64_t episode_;
  FrameRange range_;
  std::int64_t there_;
};

struct Options {
  std::int64_t length = 40;
  std::int64_t frames_there = INT64_MAX;
  std::int64_t unit = 10;  ///< frames that decode together
  bool has_depth = true;
};

class FormulaEpisode final : public Episode {
 public:
  FormulaEpisode(const Schema& schema, EpisodeInfo info, Options options)
      : schema_(schema), info_(std::move(info)), options_(options) {}
  const EpisodeInfo& info() const override { return info_; }
  const Schema& schema() const override { return schema_; }
  Result<std::shared_ptr<arrow::RecordBatch>> columns(FrameRange range) const override {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const Feature* feature : schema_.of_kind(FeatureKind::column)) {
      DenseColumn column;
      column.dtype = feature->dtype;
      column.shape = {info_.length};
      if (feature->shape != std::vector<std::int64_t>{1}) {
        column.shape.insert(column.shape.end(), feature->shape.begin(), feature->shape.end());
      }
      const std::int64_t count = *element_count(column.shape);
      if (feature->dtype == DType::string) {
        for (std::int64_t i = 0; i < count; ++i) {
          column.texts.push_back(i % 3 == 1 ? std::nullopt
                                            : std::optional("wört " + std::to_string(i)));
        }
      } else {
        column.data.resize(static_cast<std::size_t>(count) * dtype_size(feature->dtype));
        for (std::int64_t i = 0; i < count; ++i) put(*feature, i, column.data);
      }
      ROPEWALK_ASSIGN_OR_RETURN(const auto array, arrow_column(column, *feature));
      fields.push_back(arrow::field(feature->name, array->type()));
      arrays.push_back(array->Slice(range.begin, range.size()));
    }
    return arrow::RecordBatch::Make(arrow::schema(fields), range.size(), arrays);
  }
  Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                              FrameForm) const override {
    return std::unique_ptr<FrameReader>(
        std::make_unique<FormulaFrames>(std::string(camera), camera == "depth" ? kDepth : kTop,
                                        info_.index, range, options_.frames_there));
  }
  FrameRange decode_unit(std::string_view, std::int64_t frame) const override {
    const std::int64_t begin = frame / options_.unit * options_.unit;
    return {begin, std::min(begin + options_.unit, info_.length)};
  }
  Result<std::string> task_text(std::int64_t index) const override {
    return "task " + std::to_string(index);
  }
  bool has_camera(std::string_view camera) const override {
    return camera != "depth" || options_.has_depth;
  }

 private:
  void put(const Feature& feature, std::int64_t i, Bytes& data) const {
    const auto store = [&](auto value) {
      std::memcpy(data.data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
    };
    if (feature.name == "task_index") return store(std::int64_t{4 + i / 20});
    switch (feature.dtype) {
      case DType::float32:
        return store(static_cast<float>(i) * 0.37F + static_cast<float>(info_.index));
      case DType::float64:
        return store(1.7e9 + static_cast<double>(i) / 30);
      case DType::boolean:
        return store(static_cast<std::uint8_t>(i % 3 == 0));
      default:
        return store(std::int64_t{i});
    }
  }
  const Schema& schema_;
  EpisodeInfo info_;
  Options options_;
};

class FormulaSource final : public EpisodeSource {
 public:
  FormulaSource(std::int64_t episodes, Options options = {}) : options_(options) {
    schema_.fps = {20, 1};
    schema_.robot_type = "two arms";
    schema_.features = {
        {.name = "observation.state", .dtype = DType::float32, .shape = {3}},
        {.name = "observation.touch", .dtype = DType::float32, .shape = {2, 2}},
        {.name = "capture_time", .dtype = DType::float64, .shape = {1}},
        {.name = "intervention", .dtype = DType::boolean, .shape = {1}},
        {.name = "language", .dtype = DType::string, .shape = {1}},
        {.name = "video.wrist",
         .kind = FeatureKind::video,
         .dtype = DType::uint8,
         .shape = {6, 8, 3}},
        {.name = "video.front",
         .kind = FeatureKind::video,
         .dtype = DType::uint8,
         .shape = {6, 8, 3}},
        {.name = "depth", .kind = FeatureKind::image, .dtype = DType::uint8, .shape = {5, 7, 1}}};
    for (Feature& feature : default_features()) schema_.features.push_back(feature);
    for (std::int64_t i = 0; i < episodes; ++i) {
      EpisodeInfo info;
      info.index = 10 + i;
      info.length = options.length;
      info.tasks = {"task 5"};
      info.row = *parse_json(R"({"episode_index": 0, "tasks": [], "length": 0, "quality": "red",
        "quality_issues": [{"code": "idle_span", "count": 2, "max": 0.5}], "qc_verdict": "pass",
        "qc_note": "läuft", "source_fps": {"top": 29.97}, "empty": null, "flag": true,
        "big": 18446744073709551615, "ratio": 0.1, "nul": "a\u0000b", "list": [],
        "video_keys": ["video.front", "video.wrist"], "total_videos": 2})");
      infos_.push_back(std::move(info));
    }
  }
  const Schema& schema() const override { return schema_; }
  const std::string& name() const override { return name_; }
  std::string_view format() const override { return "formula"; }
  std::int64_t size() const override { return static_cast<std::int64_t>(infos_.size()); }
  EpisodeInfo info(std::int64_t i) const override { return infos_[static_cast<std::size_t>(i)]; }
  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override {
    return std::unique_ptr<Episode>(std::make_unique<FormulaEpisode>(schema_, info(i), options_));
  }
  Schema& mutable_schema() { return schema_; }

 private:
  Options options_;
  Schema schema_;
  std::string name_ = "formula";
  std::vector<EpisodeInfo> infos_;
};

Status export_to(const std::filesystem::path& root, const EpisodeSource& source,
                 const EvaHdf5Options& options = {}, ThreadPool* pool = nullptr,
                 std::vector<WrittenFile>* files = nullptr) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, create_eva_hdf5_sink(root, source.schema(), options));
  RunContext context;
  context.pool = pool;
  ROPEWALK_RETURN_IF_ERROR(copy(source, *sink, context));
  if (files != nullptr) *files = sink->files();
  return ok_status();
}

void expect_same_frames(const Episode& source, const Episode& found, const std::string& camera) {
  const FrameRange all{0, source.info().length};
  const auto expected = source.frames(camera, all, {});
  const auto reader = found.frames(camera, all, {});
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

TEST(EvaHdf5, RoundTripsColumnsPicturesRowsAndTasks) {
  ThreadPool pool(3);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    for (const char* compression : {"none", "gzip:4"}) {
      const TempDir dir("eva");
      const FormulaSource source(3, {.length = 150});
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
      const auto back = open_eva_hdf5(dir.path());
      ASSERT_TRUE(back.ok()) << back.status().to_string();
      ASSERT_EQ((*back)->size(), 3);
      EXPECT_EQ((*back)->format(), "hdf5");
      EXPECT_EQ((*back)->schema().fps, (Rational{20, 1}));
      for (std::int64_t i = 0; i < 3; ++i) {
        const auto original = source.open(i);
        const auto found = (*back)->open(i);
        ASSERT_TRUE(found.ok()) << found.status().to_string();
        const auto expected = (*original)->columns({0, 150});
        const auto columns = (*found)->columns({0, 150});
        ASSERT_TRUE(columns.ok()) << columns.status().to_string();
        ASSERT_EQ((*columns)->num_columns(), 10);
        for (const char* name : {"observation.state", "observation.touch", "capture_time",
                                 "intervention", "language", "timestamp", "frame_index"}) {
          const auto a = (*expected)->GetColumnByName(name);
          const auto b = (*columns)->GetColumnByName(name);
          ASSERT_NE(b, nullptr) << name;
          EXPECT_TRUE(a->Equals(b)) << name << ": " << b->ToString();
        }
        const auto indices = (*columns)->GetColumnByName("index");
        EXPECT_EQ(static_cast<const arrow::Int64Array&>(*indices).Value(3), 150 * i + 3);
        // Task 5 is registered first, being in the row; the rows hold 4, 4 …, 5, 5 …
        EXPECT_EQ(*(*found)->task_text(0), "task 5");
        EXPECT_EQ(*(*found)->task_text(1), "task 4");
        for (const char* camera : {"video.wrist", "video.front", "depth"}) {
          expect_same_frames(**original, **found, camera);
        }
        EXPECT_EQ((*found)->info().verdict, "pass");
        EXPECT_EQ((*found)->info().note, "läuft");
        EXPECT_EQ((*found)->info().row.find("video_keys"), nullptr);
        EXPECT_EQ((*found)->packets("video.front").status().code(),
                  StatusCode::failed_precondition);
      }
      EXPECT_EQ((*back)->statistics().find("observation.state")->find("min")->dump(),
                "[10.0,10.369999885559082,10.739999771118164]")
          << (*back)->statistics().dump();
    }
  }
}

TEST(EvaHdf5, WritesTheLayout) {
  const TempDir dir("eva");
  const FormulaSource source(1);
  ASSERT_TRUE(export_to(dir.path(), source).ok());
  const auto reader = Hdf5Reader::open(dir / "data/chunk-000/episode_000000.hdf5");
  ASSERT_TRUE(reader.ok()) << reader.status().to_string();
  EXPECT_THAT(*reader->list(""), ElementsAre("columns", "images", "metadata"));
  const auto keys = [&](const std::string& group) {
    std::vector<std::string> out;
    const auto names = reader->list(group);
    for (const std::string& name : *names) {
      const auto info = reader->describe(group + "/" + name);
      out.push_back(*info->text_attribute("key") + ":" + *info->text_attribute("kind"));
    }
    return out;
  };
  EXPECT_THAT(
      keys("columns"),
      ElementsAre("observation.state:array", "observation.touch:array", "capture_time:array",
                  "intervention:array", "language:msgpack", "timestamp:array", "frame_index:array",
                  "episode_index:array", "index:array", "task_index:array"));
  // The inline image first, then the videos in the order of video_keys.
  EXPECT_THAT(keys("images"), ElementsAre("depth:array", "video.front:array", "video.wrist:array"));
  EXPECT_THAT(keys("metadata"),
              ElementsAre("episode_index:array", "tasks:msgpack", "length:array", "quality:string",
                          "quality_issues:msgpack", "qc_verdict:string", "qc_note:string",
                          "source_fps:msgpack", "empty:none", "flag:array", "big:msgpack",
                          "ratio:array", "nul:msgpack", "list:msgpack", "fps:array"));
  const auto state = reader->describe("columns/item_000000/value");
  EXPECT_EQ(state->dtype, DType::float32);
  EXPECT_THAT(state->shape, ElementsAre(40, 3));
  EXPECT_THAT(reader->describe("columns/item_000001/value")->shape, ElementsAre(40, 2, 2));
  EXPECT_EQ(reader->describe("columns/item_000003/value")->dtype, DType::boolean);
  const auto depth = reader->describe("images/item_000000/value");
  EXPECT_EQ(depth->dtype, DType::uint16);
  EXPECT_THAT(depth->shape, ElementsAre(40, 5, 7, 1));
  EXPECT_THAT(depth->chunk, ElementsAre(1, 5, 7, 1));
  EXPECT_FALSE(depth->filtered);
  EXPECT_TRUE(reader->describe("metadata/item_000000/value")->shape.empty());
  EXPECT_THAT(reader->describe("metadata/item_000008/value")->shape, ElementsAre(0));

  const auto info = parse_json(test::read_file(dir / "meta/info.json"));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->get_string("codebase_version"), "hdf5");
  EXPECT_EQ(info->get_string("dataset_format"), "hdf5");
  EXPECT_EQ(info->get_bool("embedded_images"), true);
  EXPECT_EQ(info->get_int64("total_videos"), 0);
  EXPECT_EQ(info->find("video_path"), nullptr);
  EXPECT_EQ(info->get_string("data_path"),
            "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.hdf5");
  EXPECT_EQ(info->find("features")->find("video.front")->get_string("dtype"), "image");
}

TEST(EvaHdf5, WritesEpisodesWithoutFramesAndWithoutACamera) {
  const TempDir dir("eva");
  const FormulaSource empty(1, {.length = 0});
  Status status = export_to(dir / "empty", empty);
  ASSERT_TRUE(status.ok()) << status.to_string();
  auto reader = Hdf5Reader::open(dir / "empty/data/chunk-000/episode_000000.hdf5");
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(reader->describe("images/item_000000/value")->shape, ElementsAre(0));
  EXPECT_EQ(reader->describe("images/item_000000/value")->dtype, DType::uint8);
  const auto back = open_eva_hdf5(dir / "empty");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ((*(*(*back)->open(0))->columns({0, 0}))->num_rows(), 0);

  const FormulaSource lacking(1, {.has_depth = false});
  const auto sink = create_eva_hdf5_sink(dir / "lacking", lacking.schema());
  ASSERT_TRUE(sink.ok());
  ASSERT_TRUE(copy(lacking, **sink, {}).ok());
  EXPECT_EQ((*sink)->findings().count("missing_camera"), 1);
  const auto found = open_eva_hdf5(dir / "lacking");
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE((*(*found)->open(0))->has_camera("depth"));

  const FormulaSource none(0);
  ASSERT_TRUE(export_to(dir / "none", none).ok());
  EXPECT_EQ((*open_eva_hdf5(dir / "none"))->size(), 0);
  EXPECT_FALSE(std::filesystem::exists(dir / "none/data"));
}

TEST(EvaHdf5, PicturesThatEndEarlyAreAnErrorAndTheSinkTakesNoMore) {
  ThreadPool pool(2);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    const TempDir dir("eva");
    const FormulaSource source(1, {.frames_there = 37});
    const auto sink = create_eva_hdf5_sink(dir.path(), source.schema());
    ASSERT_TRUE(sink.ok());
    RunContext context;
    context.pool = threads;
    const auto episode = source.open(0);
    const Status status = (*sink)->write(**episode, context);
    EXPECT_EQ(status.code(), StatusCode::data_loss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("frame 37: the pictures end early"));
    EXPECT_EQ((*sink)->write(**episode, context).code(), StatusCode::failed_precondition);
    EXPECT_EQ((*sink)->finish(context).code(), StatusCode::failed_precondition);
    EXPECT_TRUE(std::filesystem::is_empty(dir / "data/chunk-000"));
  }
}

TEST(EvaHdf5, StopsOnRequest) {
  const TempDir dir("eva");
  const FormulaSource source(1);
  const auto sink = create_eva_hdf5_sink(dir.path(), source.schema());
  std::stop_source stop;
  stop.request_stop();
  RunContext context;
  context.stop = stop.get_token();
  EXPECT_EQ((*sink)->write(**source.open(0), context).code(), StatusCode::cancelled);
}

TEST(EvaHdf5, RefusesWhatTheLayoutCannotHold) {
  const TempDir dir("eva");
  FormulaSource source(1);
  source.mutable_schema().features.push_back(
      {.name = "cloud", .kind = FeatureKind::points, .shape = {-1, 3}});
  const auto sink = create_eva_hdf5_sink(dir.path(), source.schema());
  EXPECT_EQ(sink.status().code(), StatusCode::unimplemented);
  EXPECT_THAT(std::string(sink.status().message()),
              testing::AllOf(HasSubstr("cloud"), HasSubstr("points")));
  EXPECT_EQ(create_eva_hdf5_sink(dir.path(), FormulaSource(1).schema(), {.compression = "lzf"})
                .status()
                .code(),
            StatusCode::invalid_argument);
}

TEST(EvaHdf5, FullDiskAtAnyStepIsOneError) {
  ThreadPool pool(2);
  int failures = 0;
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 2000);
    const TempDir dir("eva");
    const FormulaSource source(1, {.length = 2});
    std::mutex mutex;
    int left = n;
    set_fault_hook([&](std::string_view point) {
      const std::lock_guard lock(mutex);
      return point.starts_with("io.") && left-- == 0 ? resource_exhausted("no space left")
                                                     : ok_status();
    });
    const Status status = export_to(dir.path(), source, {}, n % 2 == 0 ? &pool : nullptr);
    set_fault_hook(nullptr);
    if (status.ok()) break;
    ++failures;
    EXPECT_EQ(status.code(), StatusCode::resource_exhausted) << n << ": " << status.to_string();
  }
  EXPECT_GT(failures, 20);
}

Status read_whole(const std::filesystem::path& root) {
  // Some damage makes the library walk in circles.
  Hdf5ReaderOptions reader_options;
  reader_options.max_cpu = std::chrono::seconds(1);
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_eva_hdf5(root, {}, reader_options));
  ROPEWALK_ASSIGN_OR_RETURN(const auto episode, source->open(0));
  const FrameRange all{0, episode->info().length};
  ROPEWALK_RETURN_IF_ERROR(episode->columns(all).status());
  for (const char* camera : {"depth", "video.front", "video.wrist"}) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto reader, episode->frames(camera, all));
    Bytes pixels(reader->shape().frame_bytes());
    for (std::int64_t i = 0; i < all.end; ++i)
      ROPEWALK_RETURN_IF_ERROR(reader->next(pixels).status());
  }
  return ok_status();
}

TEST(EvaHdf5, DamagedCopiesGiveOkOrAStatusThatNamesTheFile) {
  const TempDir dir("eva");
  ASSERT_TRUE(export_to(dir.path(), FormulaSource(1, {.length = 3})).ok());
  const auto path = dir / "data/chunk-000/episode_000000.hdf5";
  const std::string good = test::read_file(path);
  ASSERT_TRUE(read_whole(dir.path()).ok()) << read_whole(dir.path()).to_string();
  std::mt19937 random(3);
  int refused = 0;
  int died = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    const unsigned changes = 1 + random() % 4;
    for (unsigned k = 0; k < changes; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    test::write_file(path, bad);
    const Status status = read_whole(dir.path());
    if (status.ok()) continue;
    ++refused;
    if (status.message().find("ended by SIG") != std::string_view::npos) ++died;
    EXPECT_THAT(std::string(status.message()), HasSubstr("episode_000000.hdf5"));
  }
  EXPECT_GT(refused, 10);
  RecordProperty("refused", refused);
  RecordProperty("died", died);
}

TEST(EvaHdf5, NamesWhatDoesNotFit) {
  const TempDir dir("eva");
  ASSERT_TRUE(export_to(dir.path(), FormulaSource(2)).ok());
  const auto first = dir / "data/chunk-000/episode_000000.hdf5";
  const auto second = dir / "data/chunk-000/episode_000001.hdf5";
  std::filesystem::copy_file(first, second, std::filesystem::copy_options::overwrite_existing);
  const auto source = open_eva_hdf5(dir.path());
  ASSERT_TRUE(source.ok());
  const auto swapped = (*source)->open(1);
  EXPECT_EQ(swapped.status().code(), StatusCode::data_loss);
  EXPECT_THAT(std::string(swapped.status().message()),
              HasSubstr("episode_000001.hdf5: metadata: episode_index: expected 1, found 0"));
  std::filesystem::remove(second);
  EXPECT_EQ((*source)->open(1).status().code(), StatusCode::not_found);
  test::write_file(second, "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_EQ((*source)->open(1).status().code(), StatusCode::data_loss);
  EXPECT_EQ((*source)->open(2).status().code(), StatusCode::out_of_range);
  const auto episode = (*source)->open(0);
  ASSERT_TRUE(episode.ok());
  EXPECT_EQ((*episode)->frames("nothing", {0, 1}, {}).status().code(), StatusCode::not_found);
  EXPECT_EQ((*episode)->frames("depth", {0, 41}, {}).status().code(), StatusCode::out_of_range);
  EXPECT_EQ((*episode)->frames("depth", {0, 1}, {.width = 3}).status().code(),
            StatusCode::unimplemented);
}

TEST(EvaHdf5, OpeningProvesThatEveryRowHasItsValuesAndPictures) {
  const TempDir dir("eva");
  ASSERT_TRUE(export_to(dir.path(), FormulaSource(1)).ok());
  const auto path = dir / "data/chunk-000/episode_000000.hdf5";
  const std::vector<std::int64_t> shape{6, 8, 3};
  const auto rewrite = [&](std::int64_t rows, std::int64_t pictures) {
    std::filesystem::remove(path);
    auto writer = Hdf5Writer::create(path);
    ASSERT_TRUE(writer.ok());
    eva_hdf5::ItemWriter columns(*writer, "columns");
    ASSERT_TRUE(columns.begin().ok());
    const DenseColumn index{DType::int64, {rows}, Bytes(static_cast<std::size_t>(8 * rows)), {}};
    ASSERT_TRUE(columns.add_column("index", index).ok());
    eva_hdf5::ItemWriter images(*writer, "images");
    ASSERT_TRUE(images.begin().ok());
    {
      const auto frames = images.add_frames("video.front", shape, pictures, DType::uint8, {});
      ASSERT_TRUE(frames.ok());
      for (std::int64_t i = 0; i < pictures; ++i) {
        ASSERT_TRUE((*frames)->write(i, picture("video.front", kTop, 0, i)).ok());
      }
    }
    ASSERT_TRUE(eva_hdf5::ItemWriter(*writer, "metadata").begin().ok());
    const auto closed = writer->close();
    ASSERT_TRUE(closed.ok() && seal(*closed).ok());
  };
  const auto source = open_eva_hdf5(dir.path());
  ASSERT_TRUE(source.ok());
  rewrite(40, 40);
  EXPECT_TRUE((*source)->open(0).ok());
  rewrite(40, 39);
  EXPECT_THAT(std::string((*source)->open(0).status().message()),
              HasSubstr("camera video.front: expected 40 frames, one per row, found 39"));
  rewrite(41, 40);
  EXPECT_THAT(std::string((*source)->open(0).status().message()),
              HasSubstr("column index: expected 40 rows, found shape [41]"));
}

TEST(EvaHdf5, ReadsNamedColumnsAlone) {
  const TempDir dir("eva");
  ASSERT_TRUE(export_to(dir.path(), FormulaSource(1)).ok());
  const auto source = open_eva_hdf5(dir.path());
  const auto episode = (*source)->open(0);
  ASSERT_TRUE(episode.ok());
  const auto batch = (*episode)->columns_of({"index", "capture_time"}, {10, 12});
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_THAT((*batch)->schema()->field_names(), ElementsAre("capture_time", "index"));
  EXPECT_EQ((*batch)->num_rows(), 2);
  EXPECT_EQ((*episode)->columns_of({"depth"}, {0, 1}).status().code(), StatusCode::not_found);
}

TEST(EvaHdf5, ServesCropsAndPlanes) {
  const TempDir dir("eva");
  ASSERT_TRUE(export_to(dir.path(), FormulaSource(1)).ok());
  const auto source = open_eva_hdf5(dir.path());
  const auto episode = (*source)->open(0);
  ASSERT_TRUE(episode.ok());
  const auto reader = (*episode)->frames(
      "video.front", {5, 6},
      {.layout = FrameLayout::chw, .crop_x = 2, .crop_y = 1, .crop_width = 4, .crop_height = 3});
  ASSERT_TRUE(reader.ok()) << reader.status().to_string();
  EXPECT_EQ((*reader)->shape(), (FrameShape{3, 4, 3, 1}));
  Bytes out(36);
  ASSERT_TRUE(*(*reader)->next(out));
  const Bytes whole = picture("video.front", kTop, 10, 5);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < 3; ++y) {
      for (std::size_t x = 0; x < 4; ++x) {
        ASSERT_EQ(out[(c * 3 + y) * 4 + x], whole[((y + 1) * 8 + x + 2) * 3 + c]);
      }
    }
  }
}

TEST(EvaHdf5, ReadsRowValuesBackAsTheyWere) {
  const TempDir dir("eva");
  const FormulaSource source(1);
  ASSERT_TRUE(export_to(dir.path(), source).ok());
  const auto reader = Hdf5Reader::open(dir / "data/chunk-000/episode_000000.hdf5");
  ASSERT_TRUE(reader.ok());
  const auto items = eva_hdf5::read_items(*reader, "metadata");
  ASSERT_TRUE(items.ok()) << items.status().to_string();
  Json row = Json::object();
  for (const eva_hdf5::Item& item : *items) {
    const auto value = eva_hdf5::read_json(*reader, item, {});
    ASSERT_TRUE(value.ok()) << item.key << ": " << value.status().to_string();
    row.set(item.key, *value);
  }
  Json expected = source.info(0).row;
  expected.set("tasks", *parse_json(R"(["task 5", "task 4"])"));
  expected.set("length", 40);
  expected.set("fps", 20.0);
  expected.erase("video_keys");
  expected.erase("total_videos");
  EXPECT_EQ(row.dump(), expected.dump());
}

}  // namespace
}  // namespace ropewalk
