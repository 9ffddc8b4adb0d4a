#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/episodes_internal.h"
#include "ropewalk/dataset/lerobot/values_internal.h"

namespace ropewalk::lerobot {
namespace {

constexpr std::string_view kDirectory = "meta/episodes";
constexpr std::int64_t kBlockRows = 1000;  // as many as our own row groups hold

bool is_locator(std::string_view column) {
  return column == "dataset_from_index" || column == "dataset_to_index" ||
         column.starts_with("data/") || column.starts_with("videos/") ||
         column.starts_with("meta/episodes/");
}

bool is_core(std::string_view column) {
  return column == "episode_index" || column == "tasks" || column == "length";
}

/// Appends the values of a column, or `rows` absent values where the file has no such column.
Status append_int64(const arrow::RecordBatch& batch, const std::string& column,
                    std::vector<std::int64_t>& out) {
  const auto array = batch.GetColumnByName(column);
  if (array == nullptr) {
    out.resize(out.size() + static_cast<std::size_t>(batch.num_rows()), kNoValue);
    return ok_status();
  }
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto values, int64_values(*array), column);
  out.insert(out.end(), values.begin(), values.end());
  return ok_status();
}

Status append_double(const arrow::RecordBatch& batch, const std::string& column,
                     std::vector<double>& out) {
  const auto array = batch.GetColumnByName(column);
  if (array == nullptr) {
    out.resize(out.size() + static_cast<std::size_t>(batch.num_rows()), std::nan(""));
    return ok_status();
  }
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto values, double_values(*array), column);
  out.insert(out.end(), values.begin(), values.end());
  return ok_status();
}

/// Removes null members of objects: a struct column has the keys of all rows, an object its own.
void strip_nulls(Json& value) {
  if (Json::Object* members = value.as_object()) {
    std::erase_if(*members, [](const Json::Member& member) { return member.second.is_null(); });
    for (auto& member : *members) strip_nulls(member.second);
  } else if (Json::Array* items = value.as_array()) {
    for (Json& item : *items) strip_nulls(item);
  }
}

}  // namespace

Status EpisodesV3::read_shard(Shard shard, const std::vector<std::string>& cameras) {
  std::vector<std::string> wanted;
  const auto want = [&](const std::string& column) {
    if (shard.reader->has_column(column)) wanted.push_back(column);
  };
  for (const char* column : {"episode_index", "length", "data/chunk_index", "data/file_index",
                             "dataset_from_index", "dataset_to_index", "tasks"}) {
    want(column);
  }
  for (const std::string& key : cameras) {
    for (const char* part : {"chunk_index", "file_index", "from_timestamp", "to_timestamp"}) {
      want(fmt::format("videos/{}/{}", key, part));
    }
  }
  for (const std::string& column : shard.reader->columns()) {
    if (column.starts_with("stats/")) {
      shard.statistics.push_back(column);
    } else if (!is_core(column) && !is_locator(column)) {
      shard.extra.push_back(column);
    }
  }
  shard.first_row = index_.size();
  if (!wanted.empty()) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto batch, shard.reader->read_all(wanted));
    shard.rows = static_cast<std::size_t>(batch->num_rows());
    // Into columns of this shard first: a column that cannot be read must leave no half row.
    EpisodesV3 part;
    part.cameras_.resize(cameras.size());
    ROPEWALK_RETURN_IF_ERROR(append_int64(*batch, "episode_index", part.index_));
    ROPEWALK_RETURN_IF_ERROR(append_int64(*batch, "length", part.length_));
    ROPEWALK_RETURN_IF_ERROR(append_int64(*batch, "data/chunk_index", part.data_chunk_));
    ROPEWALK_RETURN_IF_ERROR(append_int64(*batch, "data/file_index", part.data_file_));
    ROPEWALK_RETURN_IF_ERROR(append_int64(*batch, "dataset_from_index", part.from_));
    ROPEWALK_RETURN_IF_ERROR(append_int64(*batch, "dataset_to_index", part.to_));
    for (std::size_t i = 0; i < cameras.size(); ++i) {
      const std::string prefix = "videos/" + cameras[i] + "/";
      Camera& camera = part.cameras_[i];
      ROPEWALK_RETURN_IF_ERROR(append_int64(*batch, prefix + "chunk_index", camera.chunk));
      ROPEWALK_RETURN_IF_ERROR(append_int64(*batch, prefix + "file_index", camera.file));
      ROPEWALK_RETURN_IF_ERROR(append_double(*batch, prefix + "from_timestamp", camera.from_s));
      ROPEWALK_RETURN_IF_ERROR(append_double(*batch, prefix + "to_timestamp", camera.to_s));
    }
    shard.tasks = batch->GetColumnByName("tasks");
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(index_, part.index_);
    append(length_, part.length_);
    append(data_chunk_, part.data_chunk_);
    append(data_file_, part.data_file_);
    append(from_, part.from_);
    append(to_, part.to_);
    for (std::size_t i = 0; i < cameras.size(); ++i) {
      append(cameras_[i].chunk, part.cameras_[i].chunk);
      append(cameras_[i].file, part.cameras_[i].file);
      append(cameras_[i].from_s, part.cameras_[i].from_s);
      append(cameras_[i].to_s, part.cameras_[i].to_s);
    }
  }
  for (std::size_t row = 0; row < shard.rows; ++row) {
    const std::size_t at = shard.first_row + row;
    if (index_[at] == kNoValue) index_[at] = static_cast<std::int64_t>(at);
    if (length_[at] == kNoValue && from_[at] != kNoValue && to_[at] != kNoValue) {
      length_[at] = to_[at] - from_[at];
    }
    if (length_[at] < 0) length_[at] = -1;
    places_.push_back(
        {static_cast<std::uint32_t>(shards_.size()), static_cast<std::uint32_t>(row)});
  }
  shards_.push_back(std::move(shard));
  return ok_status();
}

Result<EpisodesV3> EpisodesV3::read(const std::filesystem::path& root,
                                    const std::vector<std::string>& cameras, const Limits& limits,
                                    FindingLog& log) {
  EpisodesV3 out;
  out.camera_keys_ = cameras;
  out.cameras_.resize(cameras.size());
  for (const std::string& file : list_chunk_files(root, kDirectory, ".parquet")) {
    const auto tell = [&](const Status& status) {
      std::string text = without_root(std::string(status.message()), root);
      if (text.starts_with(file + ": ")) text.erase(0, file.size() + 2);
      log.add("meta_file_unreadable", {.file = file, .found = std::move(text)});
    };
    auto reader = ParquetReader::open(root / file, limits);
    if (!reader.ok()) {
      tell(reader.status());
      continue;
    }
    if (out.index_.size() + static_cast<std::uint64_t>((*reader)->rows()) > limits.max_episodes) {
      return resource_exhausted(
          fmt::format("{}: more than {} episodes", file, limits.max_episodes));
    }
    Shard shard;
    shard.file = file;
    shard.reader = std::move(*reader);
    if (Status read = out.read_shard(std::move(shard), cameras); !read.ok()) {
      tell(read);
    }
  }
  out.note_columns(log);
  ROPEWALK_RETURN_IF_ERROR(out.drop_duplicates(log));
  note_numbering(out.index_, std::string(kDirectory), log);
  return out;
}

void EpisodesV3::note_columns(FindingLog& log) const {
  if (shards_.empty()) return;
  const auto kept = [](const Shard& shard) {
    return std::set<std::string>(shard.reader->columns().begin(), shard.reader->columns().end());
  };
  const std::set<std::string> first = kept(shards_.front());
  for (const char* column : {"episode_index", "length", "tasks"}) {
    if (!first.contains(column)) {
      log.add("meta_columns_differ",
              {.file = shards_.front().file, .declared = column, .found = "no such column"});
    }
  }
  for (std::size_t i = 1; i < shards_.size(); ++i) {
    const std::set<std::string> other = kept(shards_[i]);
    if (other == first) continue;
    std::vector<std::string> difference;
    std::ranges::set_symmetric_difference(first, other, std::back_inserter(difference));
    log.add("meta_columns_differ",
            {.file = shards_[i].file,
             .declared = "columns of " + shards_.front().file,
             .found = fmt::format("{} differ, {} first", difference.size(), difference.front())});
  }
}

void EpisodesV3::remove_row(std::size_t row) {
  const auto at = static_cast<std::ptrdiff_t>(row);
  const auto erase = [at](auto& from) { from.erase(from.begin() + at); };
  erase(places_);
  erase(index_);
  erase(length_);
  erase(data_chunk_);
  erase(data_file_);
  erase(from_);
  erase(to_);
  for (Camera& camera : cameras_) {
    erase(camera.chunk);
    erase(camera.file);
    erase(camera.from_s);
    erase(camera.to_s);
  }
}

Status EpisodesV3::drop_duplicates(FindingLog& log) {
  bool increasing = true;
  for (std::size_t i = 1; i < index_.size(); ++i) {
    if (index_[i] <= index_[i - 1]) increasing = false;
  }
  if (increasing) return ok_status();
  std::unordered_map<std::int64_t, std::size_t> seen;
  std::vector<std::size_t> removed;
  for (std::size_t i = 0; i < index_.size(); ++i) {
    const auto [at, added] = seen.try_emplace(index_[i], i);
    if (added) continue;
    const std::size_t before = at->second;  // rows are equal: the first place is kept
    if (length_[before] != length_[i] || from_[before] != from_[i]) {
      return log.fatal(
          "duplicate_episode_conflict",
          {.file = std::string(kDirectory),
           .episode = index_[i],
           .declared = fmt::format("length {}", length_[before]),
           .found = fmt::format("length {}", length_[i])},
          data_loss(fmt::format("{}: episode {} has two rows that differ; remove one of them",
                                kDirectory, index_[i])));
    }
    log.add("duplicate_episode", {.file = std::string(kDirectory), .episode = index_[i]});
    removed.push_back(i);
  }
  std::ranges::sort(removed);
  for (auto at = removed.rbegin(); at != removed.rend(); ++at) remove_row(*at);
  return ok_status();
}

const EpisodesV3::Camera* EpisodesV3::camera(std::string_view key) const {
  const auto at = std::ranges::find(camera_keys_, key);
  return at == camera_keys_.end() ? nullptr
                                  : &cameras_[static_cast<std::size_t>(at - camera_keys_.begin())];
}

Result<std::shared_ptr<const EpisodesV3::Block>> EpisodesV3::block_around(Place place) const {
  const std::lock_guard lock(recent_->mutex);
  if (const auto& known = recent_->block; known != nullptr && known->shard == place.shard &&
                                          known->rows.begin <= place.row &&
                                          place.row < known->rows.end) {
    return known;
  }
  const Shard& shard = shards_[place.shard];
  auto made = std::make_shared<Block>();
  made->shard = place.shard;
  made->rows.begin = place.row - place.row % kBlockRows;
  made->rows.end =
      std::min<std::int64_t>(made->rows.begin + kBlockRows, static_cast<std::int64_t>(shard.rows));
  ROPEWALK_ASSIGN_OR_RETURN(made->batch, shard.reader->read(made->rows, shard.extra));
  recent_->block = made;
  return std::shared_ptr<const Block>(std::move(made));
}

Result<EpisodeInfo> EpisodesV3::info(std::size_t row) const {
  const Place place = places_[row];
  const Shard& shard = shards_[place.shard];
  EpisodeInfo out;
  out.index = index_[row];
  out.length = length_[row];
  out.row.set("episode_index", out.index);
  if (shard.tasks != nullptr) out.row.set("tasks", json_value(*shard.tasks, place.row));
  out.row.set("length", out.length);
  if (!shard.extra.empty()) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto block, block_around(place));
    const arrow::RecordBatch& batch = *block->batch;
    const std::int64_t at = place.row - block->rows.begin;
    for (int i = 0; i < batch.num_columns(); ++i) {
      // A column that the row's writer did not know is null; the key is then absent.
      if (batch.column(i)->IsNull(at)) continue;
      Json value = json_value(*batch.column(i), at);
      strip_nulls(value);
      out.row.set(batch.column_name(i), std::move(value));
    }
  }
  return out;
}

bool EpisodesV3::has_statistics() const {
  return std::ranges::any_of(shards_, [](const Shard& shard) { return !shard.statistics.empty(); });
}

Json EpisodesV3::statistics(std::size_t row) const {
  const Place place = places_[row];
  const Shard& shard = shards_[place.shard];
  if (shard.statistics.empty()) return {};
  const auto batch = shard.reader->read({place.row, std::int64_t{place.row} + 1}, shard.statistics);
  if (!batch.ok()) return {};
  Json out = Json::object();
  for (int i = 0; i < (*batch)->num_columns(); ++i) {
    const std::string_view path = std::string_view((*batch)->column_name(i)).substr(6);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos || (*batch)->column(i)->IsNull(0)) continue;
    const std::string_view feature = path.substr(0, slash);
    if (out.find(feature) == nullptr) out.set(feature, Json::object());
    out.find(feature)->set(path.substr(slash + 1), json_value(*(*batch)->column(i), 0));
  }
  return out;
}

}  // namespace ropewalk::lerobot
