#include "ropewalk/dataset/lerobot/prove.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/core/json.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/video_shard_internal.h"
#include "ropewalk/format/parquet/reader.h"
#include "ropewalk/format/video/packets.h"

namespace ropewalk {
namespace {

using lerobot_internal::FileNumber;

constexpr std::uint64_t kMaxTextBytes = 4ULL << 30;
const std::vector<std::string> kNumberColumns{"episode_index", "index", "frame_index", "task_index",
                                              "timestamp"};

Status differs(const std::string& file, const std::string& place, const std::string& expected,
               const std::string& found) {
  return data_loss(fmt::format("{}: {}: expected {}, found {}", file, place, expected, found));
}

template <typename T>
Status expect_equal(const std::string& file, const std::string& place, const T& expected,
                    const T& found) {
  if (expected == found) return ok_status();
  return differs(file, place, fmt::format("{}", expected), fmt::format("{}", found));
}

Result<Json> read_json(const std::filesystem::path& root, const std::string& path) {
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text, read_text_file(root / path, kMaxTextBytes));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(Json out, parse_json(text), path);
  return out;
}

Result<std::vector<Json>> read_lines(const std::filesystem::path& root, const std::string& path) {
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text, read_text_file(root / path, kMaxTextBytes));
  std::vector<Json> out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    ROPEWALK_ASSIGN_OR_RETURN_CTX(Json line,
                                  parse_json(std::string_view(text).substr(at, end - at)),
                                  fmt::format("{}: line {}", path, out.size() + 1));
    out.push_back(std::move(line));
    at = end + 1;
  }
  return out;
}

Result<std::int64_t> integer(const Json& json, const std::string& file, const char* key) {
  const auto found = json.get_int64(key);
  if (!found) return differs(file, key, "an integer", "none");
  return *found;
}

/// What info.json and the two JSON-lines files say.
struct Declared {
  std::int64_t episodes = 0;
  std::int64_t frames = 0;
  std::int64_t tasks = 0;
  std::int64_t chunks_size = 0;
  Rational fps;
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> first_index;  ///< `index` of the first row
  std::vector<std::string> task_texts;
};

Result<Declared> read_declared(const std::filesystem::path& root, const char* version) {
  const std::string file = "meta/info.json";
  ROPEWALK_ASSIGN_OR_RETURN(const Json info, read_json(root, file));
  ROPEWALK_RETURN_IF_ERROR(expect_equal<std::string>(
      file, "codebase_version", version, info.get_string("codebase_version").value_or("none")));
  Declared out;
  ROPEWALK_ASSIGN_OR_RETURN(out.episodes, integer(info, file, "total_episodes"));
  ROPEWALK_ASSIGN_OR_RETURN(out.frames, integer(info, file, "total_frames"));
  ROPEWALK_ASSIGN_OR_RETURN(out.tasks, integer(info, file, "total_tasks"));
  ROPEWALK_ASSIGN_OR_RETURN(out.chunks_size, integer(info, file, "chunks_size"));
  ROPEWALK_ASSIGN_OR_RETURN(out.fps, rational_from_rate(info.get_double("fps").value_or(0)));
  ROPEWALK_ASSIGN_OR_RETURN(const auto rows, read_lines(root, "meta/episodes.jsonl"));
  std::int64_t frames = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string line = fmt::format("meta/episodes.jsonl: line {}", i + 1);
    ROPEWALK_ASSIGN_OR_RETURN(const auto index, integer(rows[i], line, "episode_index"));
    ROPEWALK_RETURN_IF_ERROR(
        expect_equal(line, "episode_index", static_cast<std::int64_t>(i), index));
    ROPEWALK_ASSIGN_OR_RETURN(const auto length, integer(rows[i], line, "length"));
    out.lengths.push_back(length);
    out.first_index.push_back(frames);
    frames += length;
  }
  ROPEWALK_RETURN_IF_ERROR(
      expect_equal(file, "total_episodes", static_cast<std::int64_t>(rows.size()), out.episodes));
  ROPEWALK_RETURN_IF_ERROR(expect_equal(file, "total_frames", frames, out.frames));
  ROPEWALK_ASSIGN_OR_RETURN(const auto tasks, read_lines(root, "meta/tasks.jsonl"));
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::string line = fmt::format("meta/tasks.jsonl: line {}", i + 1);
    ROPEWALK_ASSIGN_OR_RETURN(const auto index, integer(tasks[i], line, "task_index"));
    ROPEWALK_RETURN_IF_ERROR(expect_equal(line, "task_index", static_cast<std::int64_t>(i), index));
    out.task_texts.push_back(tasks[i].get_string("task").value_or(""));
  }
  ROPEWALK_RETURN_IF_ERROR(
      expect_equal(file, "total_tasks", static_cast<std::int64_t>(tasks.size()), out.tasks));
  return out;
}

/// Checks the five numbered columns of one episode.
Status check_rows(const ParquetReader& reader, RowRange range, const Declared& declared,
                  std::int64_t episode, const std::string& file) {
  const auto e = static_cast<std::size_t>(episode);
  ROPEWALK_ASSIGN_OR_RETURN(const auto batch, reader.read(range, kNumberColumns));
  const auto column = [&](int i) -> const std::int64_t* {
    const auto& array = batch->column(i);
    if (array->type_id() != arrow::Type::INT64 || array->null_count() != 0) return nullptr;
    return static_cast<const arrow::Int64Array&>(*array).raw_values();
  };
  for (int i = 0; i < 4; ++i) {
    if (column(i) == nullptr) {
      return differs(file, kNumberColumns[static_cast<std::size_t>(i)], "int64 without nulls",
                     batch->column(i)->type()->ToString());
    }
  }
  if (batch->column(4)->type_id() != arrow::Type::FLOAT) {
    return differs(file, "timestamp", "float", batch->column(4)->type()->ToString());
  }
  const auto* times = static_cast<const arrow::FloatArray&>(*batch->column(4)).raw_values();
  for (std::int64_t row = 0; row < batch->num_rows(); ++row) {
    const auto check = [&](int i, std::int64_t expected) -> Status {
      if (column(i)[row] == expected) return ok_status();
      return differs(file,
                     fmt::format("episode {}: row {}: {}", episode, row,
                                 kNumberColumns[static_cast<std::size_t>(i)]),
                     fmt::format("{}", expected), fmt::format("{}", column(i)[row]));
    };
    ROPEWALK_RETURN_IF_ERROR(check(0, episode));
    ROPEWALK_RETURN_IF_ERROR(check(1, declared.first_index[e] + row));
    ROPEWALK_RETURN_IF_ERROR(check(2, row));
    if (column(3)[row] < 0 || column(3)[row] >= declared.tasks) {
      return differs(file, fmt::format("episode {}: row {}: task_index", episode, row),
                     fmt::format("0 to {}", declared.tasks - 1), fmt::format("{}", column(3)[row]));
    }
    const float expected = frame_timestamp_f32(row, declared.fps);
    if (!(std::abs(times[row] - expected) <= std::max(1e-6F, expected * 2.4e-7F))) {
      return differs(file, fmt::format("episode {}: row {}: timestamp", episode, row),
                     fmt::format("{}", expected), fmt::format("{}", times[row]));
    }
  }
  return ok_status();
}

Result<std::string> hash_file(const Source& source) {
  Sha256 hash;
  Bytes block(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < source.size();) {
    const auto step =
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), source.size() - at));
    ROPEWALK_RETURN_IF_ERROR(source.read_at(at, {block.data(), step}));
    hash.update({block.data(), step});
    at += step;
  }
  return hash.finish_hex();
}

Status expect_files(const std::filesystem::path& root, const std::string& directory,
                    std::set<std::string> expected) {
  std::vector<std::string> found;
  ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(root / directory));
  if (there) {
    ROPEWALK_ASSIGN_OR_RETURN(found, list_tree(root / directory));
  }
  for (const std::string& file : found) {
    if (expected.erase(directory + "/" + file) == 0) {
      return data_loss(fmt::format("{}/{}: a file that nothing names", directory, file));
    }
  }
  if (!expected.empty()) return data_loss(*expected.begin() + ": is not there");
  return ok_status();
}

struct Totals {
  std::atomic<std::int64_t> packets{0};
  std::atomic<std::uint64_t> bytes{0};
};

/// Checks that one file holds exactly the clips recorded for it.
Status check_video(const std::filesystem::path& root, const std::vector<const ClipRecord*>& clips,
                   bool packed, Rational fps, Totals& totals) {
  const std::string& file = clips.front()->path;
  ROPEWALK_ASSIGN_OR_RETURN(const auto opened, open_source(root / file));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const Mp4Index index, probe_mp4(*opened), file);
  totals.packets += static_cast<std::int64_t>(index.packets.size());
  totals.bytes += index.file_bytes;
  std::int64_t frames = 0;
  for (const ClipRecord* clip : clips) {
    ROPEWALK_RETURN_IF_ERROR(
        expect_equal(file, fmt::format("episode {}: first frame", clip->episode_index), frames,
                     clip->first_frame));
    frames += clip->frames;
  }
  ROPEWALK_RETURN_IF_ERROR(expect_equal(file, "frames", frames, index.frame_count()));
  for (const ClipRecord* clip : clips) {
    const std::string place = fmt::format("episode {}: packets", clip->episode_index);
    std::string found;
    if (clip->whole_file) {
      ROPEWALK_ASSIGN_OR_RETURN(found, hash_file(*opened));
    } else {
      ROPEWALK_ASSIGN_OR_RETURN_CTX(
          const PacketRange range,
          index.packets_of({clip->first_frame, clip->first_frame + clip->frames}),
          file + ": " + place);
      ROPEWALK_ASSIGN_OR_RETURN(found, packet_sha256(index, *opened, range));
    }
    ROPEWALK_RETURN_IF_ERROR(expect_equal(file, place + ": SHA-256", clip->sha256, found));
  }
  if (!packed) return ok_status();
  if (index.rate != RateKind::exact || index.fps != fps) {
    return differs(file, "rate", to_string(fps) + " exactly", to_string(index.fps));
  }
  ROPEWALK_RETURN_IF_ERROR(
      expect_equal<std::int64_t>(file, "time of the first frame", 0, index.first_pts));
  return expect_equal(file, "edit list", false, index.has_edit_list);
}

Status check_videos(const std::filesystem::path& root, const std::vector<ClipRecord>& clips,
                    bool packed, Rational fps, const RunContext& context, ProofReport& report) {
  std::map<std::string, std::vector<const ClipRecord*>> by_file;
  for (const ClipRecord& clip : clips) by_file[clip.path].push_back(&clip);
  std::vector<std::vector<const ClipRecord*>> files;
  std::set<std::string> names;
  for (auto& [file, list] : by_file) {
    std::ranges::sort(list, {}, &ClipRecord::first_frame);
    files.push_back(std::move(list));
    names.insert(file);
  }
  Totals totals;
  Status status = parallel_for(
      context.pool, static_cast<std::int64_t>(files.size()), [&](std::int64_t i) -> Status {
        ROPEWALK_RETURN_IF_ERROR(context.check_stop());
        return check_video(root, files[static_cast<std::size_t>(i)], packed, fps, totals);
      });
  if (!status.ok()) return status;
  report.clips = static_cast<std::int64_t>(clips.size());
  report.packets = totals.packets;
  report.video_bytes = totals.bytes;
  return expect_files(root, "videos", std::move(names));
}

/// A column of meta/episodes as int64; nulls are -1.
Result<std::vector<std::int64_t>> locator(const arrow::RecordBatch& rows, const std::string& file,
                                          const std::string& name) {
  const auto column = rows.GetColumnByName(name);
  if (column == nullptr || column->type_id() != arrow::Type::INT64) {
    return differs(file, name, "an int64 column", "none");
  }
  const auto& values = static_cast<const arrow::Int64Array&>(*column);
  std::vector<std::int64_t> out;
  for (std::int64_t row = 0; row < values.length(); ++row) {
    out.push_back(values.IsNull(row) ? -1 : values.Value(row));
  }
  return out;
}

Status check_camera_locators(const arrow::RecordBatch& rows, const std::string& file,
                             const std::string& camera, std::int64_t first_episode,
                             const std::map<std::int64_t, const ClipRecord*>& clips,
                             const Declared& declared) {
  const std::string prefix = "videos/" + camera + "/";
  ROPEWALK_ASSIGN_OR_RETURN(const auto chunk, locator(rows, file, prefix + "chunk_index"));
  ROPEWALK_ASSIGN_OR_RETURN(const auto number, locator(rows, file, prefix + "file_index"));
  const auto from = rows.GetColumnByName(prefix + "from_timestamp");
  const auto to = rows.GetColumnByName(prefix + "to_timestamp");
  if (from == nullptr || to == nullptr || from->type_id() != arrow::Type::DOUBLE ||
      to->type_id() != arrow::Type::DOUBLE) {
    return differs(file, prefix + "from_timestamp", "double columns", "none");
  }
  for (std::int64_t row = 0; row < rows.num_rows(); ++row) {
    const auto i = static_cast<std::size_t>(row);
    const auto at = clips.find(first_episode + row);
    const std::string place = fmt::format("row {}: {}", row, prefix);
    if (at == clips.end()) {
      if (chunk[i] == -1 && number[i] == -1 && from->IsNull(row) && to->IsNull(row)) continue;
      return differs(file, place, "null, since no clip was written",
                     fmt::format("file {}", number[i]));
    }
    const ClipRecord& clip = *at->second;
    ROPEWALK_RETURN_IF_ERROR(expect_equal(
        file, place, clip.path,
        fmt::format("videos/{}/{}.mp4", camera, FileNumber{chunk[i], number[i]}.text())));
    ROPEWALK_RETURN_IF_ERROR(
        expect_equal(file, place + "frames",
                     declared.lengths[static_cast<std::size_t>(clip.episode_index)], clip.frames));
    ROPEWALK_RETURN_IF_ERROR(
        expect_equal(file, place + "from_timestamp", frame_seconds(clip.first_frame, declared.fps),
                     static_cast<const arrow::DoubleArray&>(*from).Value(row)));
    ROPEWALK_RETURN_IF_ERROR(expect_equal(
        file, place + "to_timestamp", frame_seconds(clip.first_frame + clip.frames, declared.fps),
        static_cast<const arrow::DoubleArray&>(*to).Value(row)));
  }
  return ok_status();
}

struct DataPlace {
  std::string file;
  std::size_t row_group = 0;
};

/// Checks meta/episodes and returns where each episode's rows lie.
Result<std::vector<DataPlace>> check_meta_episodes(const std::filesystem::path& root,
                                                   const std::vector<ClipRecord>& clips,
                                                   const std::vector<std::string>& cameras,
                                                   const Declared& declared) {
  std::map<std::string, std::map<std::int64_t, const ClipRecord*>> by_camera;
  for (const ClipRecord& clip : clips) by_camera[clip.camera][clip.episode_index] = &clip;
  std::vector<DataPlace> places;
  std::shared_ptr<arrow::Schema> schema;
  std::set<std::string> files;
  FileNumber number;
  while (static_cast<std::int64_t>(places.size()) < declared.episodes) {
    number.advance(declared.chunks_size);
    const std::string file = fmt::format("meta/episodes/{}.parquet", number.text());
    files.insert(file);
    ROPEWALK_ASSIGN_OR_RETURN(const auto reader, ParquetReader::open(root / file));
    if (schema == nullptr) schema = reader->schema();
    if (!schema->Equals(*reader->schema(), false)) {
      return differs(file, "columns", "those of the first file", reader->schema()->ToString());
    }
    std::vector<std::string> columns{"episode_index",
                                     "length",
                                     "data/chunk_index",
                                     "data/file_index",
                                     "dataset_from_index",
                                     "dataset_to_index",
                                     "meta/episodes/chunk_index",
                                     "meta/episodes/file_index"};
    for (const std::string& camera : cameras) {
      for (const char* name : {"chunk_index", "file_index", "from_timestamp", "to_timestamp"}) {
        columns.push_back("videos/" + camera + "/" + name);
      }
    }
    ROPEWALK_ASSIGN_OR_RETURN(const auto rows, reader->read_all(columns));
    std::vector<std::vector<std::int64_t>> values;
    for (int i = 0; i < 8; ++i) {
      ROPEWALK_ASSIGN_OR_RETURN(auto found,
                                locator(*rows, file, columns[static_cast<std::size_t>(i)]));
      values.push_back(std::move(found));
    }
    const auto first = static_cast<std::int64_t>(places.size());
    if (rows->num_rows() == 0 || first + rows->num_rows() > declared.episodes) {
      return differs(file, "rows", fmt::format("1 to {}", declared.episodes - first),
                     fmt::format("{}", rows->num_rows()));
    }
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows->num_rows()); ++row) {
      const auto e = static_cast<std::size_t>(first) + row;
      const std::array<std::int64_t, 8> expected{static_cast<std::int64_t>(e),
                                                 declared.lengths[e],
                                                 values[2][row],
                                                 values[3][row],
                                                 declared.first_index[e],
                                                 declared.first_index[e] + declared.lengths[e],
                                                 number.chunk,
                                                 number.file};
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ROPEWALK_RETURN_IF_ERROR(expect_equal(file, fmt::format("row {}: {}", row, columns[i]),
                                              expected[i], values[i][row]));
      }
      DataPlace place{
          fmt::format("data/{}.parquet", FileNumber{values[2][row], values[3][row]}.text()), 0};
      if (!places.empty() && places.back().file == place.file) {
        place.row_group = places.back().row_group + 1;
      }
      places.push_back(std::move(place));
    }
    for (const std::string& camera : cameras) {
      ROPEWALK_RETURN_IF_ERROR(
          check_camera_locators(*rows, file, camera, first, by_camera[camera], declared));
    }
  }
  ROPEWALK_RETURN_IF_ERROR(expect_files(root, "meta/episodes", std::move(files)));
  return places;
}

Status check_data_files(const std::filesystem::path& root, const std::vector<DataPlace>& places,
                        const Declared& declared, const RunContext& context) {
  struct File {
    std::string name;
    std::int64_t first_episode = 0;
    std::size_t episodes = 0;
  };
  std::vector<File> files;
  std::set<std::string> names;
  for (std::size_t e = 0; e < places.size(); ++e) {
    if (files.empty() || files.back().name != places[e].file) {
      files.push_back({places[e].file, static_cast<std::int64_t>(e), 0});
      names.insert(places[e].file);
    }
    ++files.back().episodes;
  }
  std::mutex mutex;
  std::shared_ptr<arrow::Schema> schema;
  Status status = parallel_for(
      context.pool, static_cast<std::int64_t>(files.size()), [&](std::int64_t i) -> Status {
        const File& file = files[static_cast<std::size_t>(i)];
        ROPEWALK_ASSIGN_OR_RETURN(const auto reader, ParquetReader::open(root / file.name));
        {
          const std::lock_guard lock(mutex);
          if (schema == nullptr) schema = reader->schema();
          if (!schema->Equals(*reader->schema(), false)) {
            return differs(file.name, "columns", schema->ToString(), reader->schema()->ToString());
          }
        }
        ROPEWALK_RETURN_IF_ERROR(
            expect_equal(file.name, "row groups", file.episodes, reader->row_groups().size()));
        for (std::size_t group = 0; group < file.episodes; ++group) {
          ROPEWALK_RETURN_IF_ERROR(context.check_stop());
          const auto episode = file.first_episode + static_cast<std::int64_t>(group);
          const ParquetRowGroup& rows = reader->row_groups()[group];
          ROPEWALK_RETURN_IF_ERROR(expect_equal(file.name, fmt::format("row group {}: rows", group),
                                                declared.lengths[static_cast<std::size_t>(episode)],
                                                rows.rows));
          ROPEWALK_RETURN_IF_ERROR(check_rows(*reader, {rows.first_row, rows.first_row + rows.rows},
                                              declared, episode, file.name));
        }
        return ok_status();
      });
  if (!status.ok()) return status;
  return expect_files(root, "data", std::move(names));
}

Status check_tasks_table(const std::filesystem::path& root, const Declared& declared) {
  const std::string file = "meta/tasks.parquet";
  const std::vector<std::string> columns{"task_index", "task"};
  ROPEWALK_ASSIGN_OR_RETURN(const auto reader, ParquetReader::open(root / file));
  ROPEWALK_ASSIGN_OR_RETURN(const auto rows, reader->read_all(columns));
  ROPEWALK_RETURN_IF_ERROR(expect_equal(file, "rows", declared.tasks, rows->num_rows()));
  ROPEWALK_ASSIGN_OR_RETURN(const auto numbers, locator(*rows, file, "task_index"));
  if (rows->column(1)->type_id() != arrow::Type::STRING) {
    return differs(file, "task", "string", rows->column(1)->type()->ToString());
  }
  const auto& texts = static_cast<const arrow::StringArray&>(*rows->column(1));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    ROPEWALK_RETURN_IF_ERROR(
        expect_equal(file, fmt::format("row {}: task_index", i), row, numbers[i]));
    ROPEWALK_RETURN_IF_ERROR(expect_equal(file, fmt::format("row {}: task", i),
                                          declared.task_texts[i], texts.GetString(row)));
  }
  return ok_status();
}

}  // namespace

Result<ProofReport> prove_v21(const std::filesystem::path& root,
                              const std::vector<ClipRecord>& clips, const RunContext& context) {
  ROPEWALK_ASSIGN_OR_RETURN(const Declared declared, read_declared(root, "v2.1"));
  ProofReport report{.episodes = declared.episodes, .rows = declared.frames};
  std::set<std::string> files;
  for (std::int64_t e = 0; e < declared.episodes; ++e) {
    files.insert(
        fmt::format("data/chunk-{:03d}/episode_{:06d}.parquet", e / declared.chunks_size, e));
  }
  ROPEWALK_RETURN_IF_ERROR(expect_files(root, "data", files));
  const std::vector<std::string> tables(files.begin(), files.end());
  Status status = parallel_for(context.pool, declared.episodes, [&](std::int64_t e) -> Status {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    const std::string& file = tables[static_cast<std::size_t>(e)];
    ROPEWALK_ASSIGN_OR_RETURN(const auto reader, ParquetReader::open(root / file));
    ROPEWALK_RETURN_IF_ERROR(
        expect_equal<std::size_t>(file, "row groups", 1, reader->row_groups().size()));
    ROPEWALK_RETURN_IF_ERROR(
        expect_equal(file, "rows", declared.lengths[static_cast<std::size_t>(e)], reader->rows()));
    return check_rows(*reader, {0, reader->rows()}, declared, e, file);
  });
  if (!status.ok()) return status;
  for (const ClipRecord& clip : clips) {
    const auto e = static_cast<std::size_t>(clip.episode_index);
    if (e >= declared.lengths.size()) {
      return differs(clip.path, "episode", fmt::format("below {}", declared.episodes),
                     fmt::format("{}", clip.episode_index));
    }
    ROPEWALK_RETURN_IF_ERROR(expect_equal(clip.path, "frames", declared.lengths[e], clip.frames));
  }
  ROPEWALK_RETURN_IF_ERROR(check_videos(root, clips, false, declared.fps, context, report));
  return report;
}

Result<ProofReport> prove_v3(const std::filesystem::path& root,
                             const std::vector<ClipRecord>& clips, const RunContext& context) {
  ROPEWALK_ASSIGN_OR_RETURN(const Declared declared, read_declared(root, "v3.0"));
  ProofReport report{.episodes = declared.episodes, .rows = declared.frames};
  ROPEWALK_ASSIGN_OR_RETURN(const Json info, read_json(root, "meta/info.json"));
  std::vector<std::string> cameras;
  if (const Json* features = info.find("features"); features != nullptr && features->is_object()) {
    for (const auto& [name, feature] : *features->as_object()) {
      if (feature.get_string("dtype") == "video") cameras.push_back(name);
    }
  }
  ROPEWALK_ASSIGN_OR_RETURN(const auto places, check_meta_episodes(root, clips, cameras, declared));
  ROPEWALK_RETURN_IF_ERROR(check_data_files(root, places, declared, context));
  if (declared.episodes > 0) ROPEWALK_RETURN_IF_ERROR(check_tasks_table(root, declared));
  ROPEWALK_RETURN_IF_ERROR(check_videos(root, clips, true, declared.fps, context, report));
  return report;
}

}  // namespace ropewalk
