#include "ropewalk/dataset/lerobot/source.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/source_internal.h"

namespace ropewalk {

using lerobot::kNoValue;

namespace {

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

Result<EpisodeInfo> LerobotSource::Impl::read_row(std::size_t row) const {
  ROPEWALK_ASSIGN_OR_RETURN(EpisodeInfo out,
                            v3 ? v3->info(row) : v2->info(row, tasks, options.limits));
  if (v3) {
    std::call_once(kept_once,
                   [this] { kept_rows = lerobot::KeptRows::read(root, options.limits); });
    out.row = kept_rows.restore(out.index, std::move(out.row));
    lerobot::read_row_members(out, tasks);
  }
  return out;
}

Result<EpisodeInfo> LerobotSource::Impl::read_info(std::int64_t position) const {
  const auto at = static_cast<std::size_t>(position);
  ROPEWALK_ASSIGN_OR_RETURN(EpisodeInfo out, read_row(rows[at]));
  out.index = index_of_row(rows[at]);
  out.length = lengths[at];
  return out;
}

std::string LerobotSource::Impl::data_path(std::size_t row) const {
  if (v3) {
    return info.data_path.format({.chunk_index = std::max<std::int64_t>(0, v3->data_chunk(row)),
                                  .file_index = std::max<std::int64_t>(0, v3->data_file(row))});
  }
  const std::int64_t index = v2->index(row);
  const std::int64_t chunk = index / info.chunks_size;
  std::string path = info.data_path.format({.episode_chunk = chunk, .episode_index = index});
  if (chunk != 0 && !is_there(root / path)) {
    std::string other = info.data_path.format({.episode_chunk = 0, .episode_index = index});
    if (is_there(root / other)) return other;
  }
  return path;
}

std::string LerobotSource::Impl::video_path(std::size_t row, const std::string& key) const {
  if (v3) {
    const auto* camera = v3->camera(key);
    const std::int64_t chunk = camera != nullptr ? camera->chunk[row] : kNoValue;
    const std::int64_t file = camera != nullptr ? camera->file[row] : kNoValue;
    if (chunk == kNoValue || file == kNoValue) return {};
    return info.video_path.format({.chunk_index = chunk, .file_index = file, .video_key = key});
  }
  const std::int64_t index = v2->index(row);
  const std::int64_t chunk = index / info.chunks_size;
  std::string path =
      info.video_path.format({.episode_chunk = chunk, .episode_index = index, .video_key = key});
  if (chunk != 0 && !is_there(root / path)) {
    std::string other =
        info.video_path.format({.episode_chunk = 0, .episode_index = index, .video_key = key});
    if (is_there(root / other)) return other;
  }
  return path;
}

bool LerobotSource::Impl::has_camera(std::size_t row, const std::string& key,
                                     const Json& values) const {
  if (v3) {
    const auto* camera = v3->camera(key);
    return camera != nullptr && camera->chunk[row] != kNoValue && camera->file[row] != kNoValue;
  }
  // A recorder that lists the files it wrote says so; otherwise every episode has every camera.
  const Json* found = values.find("video_keys");
  const Json::Array* keys = found != nullptr ? found->as_array() : nullptr;
  if (keys == nullptr) return true;
  return std::ranges::any_of(*keys, [&](const Json& item) {
    return item.as_string() != nullptr && *item.as_string() == key;
  });
}

Result<std::int64_t> LerobotSource::Impl::first_frame(std::size_t row, const std::string& key,
                                                      const Mp4Index& index) const {
  if (!v3) return std::int64_t{0};
  if (const auto at = video_begin.find(key);
      at != video_begin.end() && at->second[row] != kNoValue) {
    return at->second[row];
  }
  const auto* camera = v3->camera(key);
  const double from_s = camera != nullptr ? camera->from_s[row] : std::nan("");
  const double frame = from_s * info.schema.fps.to_double();
  if (!(frame > -0.5) || frame > static_cast<double>(index.frame_count())) {
    return data_loss(fmt::format("{}: from_timestamp {} s lies outside of its {} frames",
                                 index.name, from_s, index.frame_count()));
  }
  return static_cast<std::int64_t>(std::llround(frame));
}

Result<std::shared_ptr<const lerobot::Clip>> LerobotSource::Impl::clip(
    const std::string& path) const {
  return clips.get(path, [&] { return lerobot::open_clip(root / path, options.limits); });
}

Result<std::shared_ptr<const lerobot::DataFile>> LerobotSource::Impl::table(
    const std::string& path) const {
  return tables.get(path,
                    [&] { return lerobot::open_data_file(root / path, is_v3(), options.limits); });
}

std::string LerobotSource::Impl::data_directory() const {
  const std::string& text = info.data_path.text();
  return text.substr(0, text.find('/'));
}

const lerobot::DataMap& LerobotSource::Impl::data_map() const {
  std::call_once(map_once, [this] {
    auto made = std::make_unique<lerobot::DataMap>();
    std::int64_t first_row = 0;
    for (const std::string& path : lerobot::list_chunk_files(root, data_directory(), ".parquet")) {
      const auto file = table(path);
      made->files.push_back({path, first_row, file.ok() ? ok_status() : file.status()});
      if (!file.ok()) continue;
      for (const lerobot::EpisodeRun& run : (*file)->runs) {
        made->places[run.episode].push_back({path, run.rows});
        made->first_row.try_emplace(run.episode, first_row + run.rows.begin);
      }
      first_row += (*file)->reader->rows();
    }
    map = std::move(made);
    map_ready.store(true, std::memory_order_release);
  });
  return *map;
}

Result<std::vector<lerobot::DataPlace>> LerobotSource::Impl::places(std::size_t row) const {
  std::vector<lerobot::DataPlace> out;
  const std::string path = data_path(row);
  if (!v3) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto file, table(path));
    out.push_back({path, {0, file->reader->rows()}});
    return out;
  }
  const std::int64_t index = v3->index(row);
  if (!map_ready.load(std::memory_order_acquire)) {
    const auto file = table(path);
    if (file.ok()) {
      for (const RowRange rows_here : (*file)->rows_of(index)) out.push_back({path, rows_here});
      if (!out.empty()) return out;
    } else if (file.status().code() != StatusCode::not_found) {
      return file.status();
    }
  }
  // The locator is stale, or the survey looked already: the rows of the data files decide.
  const auto& known = data_map();
  const auto at = known.places.find(index);
  if (at == known.places.end()) {
    return not_found(
        fmt::format("{}: episode {} has no rows in any data file", (root / path).string(), index));
  }
  return at->second;
}

Json LerobotSource::Impl::episode_statistics(std::size_t row) const {
  if (v3) return v3->statistics(row);
  std::call_once(statistics_once, [this] {
    auto read = lerobot::EpisodeStatisticsV2::read(root, options.limits);
    if (read.ok()) statistics_v2 = std::move(*read);
  });
  return statistics_v2.find(v2->index(row), options.limits);
}

LerobotSource::LerobotSource(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LerobotSource::~LerobotSource() = default;

const Schema& LerobotSource::schema() const { return impl_->info.schema; }
const std::string& LerobotSource::name() const { return impl_->name; }
std::string_view LerobotSource::format() const {
  return lerobot_format_name(impl_->info.generation);
}
std::int64_t LerobotSource::size() const { return static_cast<std::int64_t>(impl_->rows.size()); }
EpisodeInfo LerobotSource::info(std::int64_t i) const {
  if (auto read = impl_->read_info(i); read.ok()) return std::move(read).value();
  EpisodeInfo out;
  out.index = index_of(i);
  out.length = length_of(i);
  out.row.set("episode_index", out.index);
  return out;
}
const Findings& LerobotSource::findings() const { return impl_->log.findings(); }
std::int64_t LerobotSource::left_out() const {
  std::int64_t out = static_cast<std::int64_t>(impl_->listed) - size();
  for (const char* code :
       {"malformed_line", "torn_line", "episode_not_in_meta", "meta_file_unreadable"}) {
    out += findings().count(code);
  }
  return out;
}
LerobotGeneration LerobotSource::generation() const { return impl_->info.generation; }
const std::filesystem::path& LerobotSource::root() const { return impl_->root; }
const Json& LerobotSource::info_document() const { return impl_->info.document; }
std::int64_t LerobotSource::index_of(std::int64_t i) const {
  return impl_->index_of_row(impl_->rows[static_cast<std::size_t>(i)]);
}
std::int64_t LerobotSource::length_of(std::int64_t i) const {
  return impl_->lengths[static_cast<std::size_t>(i)];
}
const std::vector<std::pair<std::int64_t, std::string>>& LerobotSource::tasks() const {
  return impl_->tasks.entries();
}

std::optional<std::int64_t> LerobotSource::position_of(std::int64_t index) const {
  // Nearly always an episode stands at its own number.
  if (index >= 0 && index < size() && index_of(index) == index) return index;
  for (std::int64_t i = 0; i < size(); ++i) {
    if (index_of(i) == index) return i;
  }
  return std::nullopt;
}

Result<std::unique_ptr<Episode>> LerobotSource::open(std::int64_t i) const {
  if (i < 0 || i >= size()) {
    return out_of_range(fmt::format("{}: episode at position {} of {}", name(), i, size()));
  }
  ROPEWALK_ASSIGN_OR_RETURN(EpisodeInfo info, impl_->read_info(i));
  return lerobot::make_episode(*this, i, std::move(info));
}

Json LerobotSource::statistics() const {
  lerobot::FindingLog log(false);
  auto document =
      lerobot::read_json_document(impl_->root, "meta/stats.json", impl_->options.limits, log);
  return document.ok() ? std::move(*document) : Json();
}

std::vector<std::string> LerobotSource::episode_paths(std::int64_t i) const {
  const std::size_t row = impl_->rows[static_cast<std::size_t>(i)];
  std::vector<std::string> out{impl_->data_path(row)};
  const EpisodeInfo known = info(i);
  for (const Feature* feature : schema().of_kind(FeatureKind::video)) {
    const std::string& key = impl_->info.physical_name(feature->name);
    if (!impl_->has_camera(row, key, known.row)) continue;
    out.push_back(impl_->video_path(row, key));
  }
  return out;
}

Result<std::vector<RevisionFile>> LerobotSource::episode_files(std::int64_t i) const {
  std::vector<RevisionFile> out;
  for (std::string& path : episode_paths(i)) {
    ROPEWALK_ASSIGN_OR_RETURN(auto found, file_info(impl_->root / path));
    if (found && found->is_symlink) {
      // Downloaded datasets are links into a store of blobs: the file behind the link counts.
      std::error_code error;
      const auto real = std::filesystem::canonical(impl_->root / path, error);
      if (error) continue;
      ROPEWALK_ASSIGN_OR_RETURN(found, file_info(real));
    }
    if (!found) continue;
    out.push_back({std::move(path), found->size_bytes, found->modified_ns});
  }
  return out;
}

std::unique_ptr<LerobotSource::Impl> LerobotOpener::begin(const std::filesystem::path& root,
                                                          const LerobotOptions& options) {
  return std::make_unique<LerobotSource::Impl>(root, options);
}

Status LerobotOpener::run(LerobotSource::Impl& impl) {
  const Limits& limits = impl.options.limits;
  // The probe gives the better messages for what is no dataset at all.
  if (!is_there(impl.root / "meta" / "info.json")) {
    ROPEWALK_ASSIGN_OR_RETURN([[maybe_unused]] const auto probe, probe_lerobot(impl.root, limits));
  }
  ROPEWALK_ASSIGN_OR_RETURN_CTX(
      Json document, lerobot::read_json_document(impl.root, "meta/info.json", limits, impl.log),
      impl.name);
  ROPEWALK_ASSIGN_OR_RETURN(const auto probe, lerobot::probe_document(impl.root, document));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(
      impl.info, lerobot::parse_info(std::move(document), probe.generation, impl.log), impl.name);

  if (probe.generation == LerobotGeneration::v30) {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(
        impl.tasks, lerobot::TaskList::read_v3(impl.root, limits, impl.log), impl.name);
    std::vector<std::string> cameras;
    for (const Feature* feature : impl.info.schema.of_kind(FeatureKind::video)) {
      cameras.push_back(impl.info.physical_name(feature->name));
    }
    ROPEWALK_ASSIGN_OR_RETURN_CTX(
        impl.v3, lerobot::EpisodesV3::read(impl.root, cameras, limits, impl.log), impl.name);
    impl.listed = impl.v3->size();
    if (impl.listed == 0 && impl.info.total_episodes.value_or(0) > 0 &&
        !is_there(impl.root / "meta" / "episodes")) {
      return not_found(
          fmt::format("{}: meta/episodes is not there, but info.json lists {} "
                      "episodes: its recorder never finished",
                      impl.name, *impl.info.total_episodes));
    }
  } else {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(
        impl.tasks, lerobot::TaskList::read_v2(impl.root, limits, impl.log), impl.name);
    ROPEWALK_ASSIGN_OR_RETURN_CTX(impl.v2, lerobot::EpisodesV2::read(impl.root, limits, impl.log),
                                  impl.name);
    impl.listed = impl.v2->size();
  }

  std::int64_t frames = 0;
  for (std::size_t row = 0; row < impl.listed; ++row) {
    std::int64_t length = impl.length_of_row(row);
    if (length < 0) {
      const auto places = impl.places(row);
      length = 0;
      if (places.ok()) {
        for (const auto& place : *places) length += place.rows.size();
      }
    }
    impl.rows.push_back(static_cast<std::uint32_t>(row));
    impl.lengths.push_back(length);
    frames += length;
  }
  const auto compare = [&](std::string_view key, std::optional<std::int64_t> declared,
                           std::int64_t found) {
    if (declared && *declared != found) {
      impl.log.add("total_mismatch", {.file = "meta/info.json",
                                      .declared = fmt::format("{} {}", key, *declared),
                                      .found = fmt::format("{}", found)});
    }
  };
  compare("total_episodes", impl.info.total_episodes, static_cast<std::int64_t>(impl.listed));
  compare("total_frames", impl.info.total_frames, frames);
  compare("total_tasks", impl.info.total_tasks,
          static_cast<std::int64_t>(impl.tasks.entries().size()));
  lerobot::check_splits(impl.info, static_cast<std::int64_t>(impl.listed), impl.log);
  lerobot::settle_cameras(impl);
  lerobot::note_statistics(impl);
  if (impl.options.survey) ROPEWALK_RETURN_IF_ERROR(lerobot::survey(impl));
  return ok_status();
}

std::unique_ptr<LerobotSource> LerobotOpener::finish(std::unique_ptr<LerobotSource::Impl> impl) {
  return std::unique_ptr<LerobotSource>(new LerobotSource(std::move(impl)));
}

Result<std::unique_ptr<LerobotSource>> open_lerobot(const std::filesystem::path& root,
                                                    const LerobotOptions& options) {
  auto impl = LerobotOpener::begin(root, options);
  ROPEWALK_RETURN_IF_ERROR(LerobotOpener::run(*impl));
  if (options.strict) ROPEWALK_RETURN_IF_ERROR(impl->log.refusal(impl->name));
  return LerobotOpener::finish(std::move(impl));
}

}  // namespace ropewalk
