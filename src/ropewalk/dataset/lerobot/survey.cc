// The survey: footer and index of every file looked at before the first episode is asked for.
// Spec: lerobot-formats hard inputs H05, H08, H09, H14, H16 to H19.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <arrow/type.h>
#include <fmt/format.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/dataset/lerobot/source_internal.h"
#include "ropewalk/dataset/lerobot/table_cast_internal.h"

namespace ropewalk::lerobot {
namespace {

/// What is known of one camera of one episode.
struct CameraState {
  bool expected = false;
  std::string path;
  Status status;
  std::int64_t begin = 0;   ///< first frame in the file
  std::int64_t frames = 0;  ///< that belong to the episode
};

struct EpisodeState {
  std::string data_path;
  Status data_status;
  std::int64_t rows = 0;
  std::vector<CameraState> cameras;  ///< by place among the video features
};

/// How a column of the files differs from its declaration, over all episodes.
struct ColumnState {
  std::int64_t missing = 0;
  std::int64_t differing = 0;
  std::string stored;  ///< the first type that differs
};

/// What a video file holds beside frames, told once per file.
struct ClipNotes {
  bool audio = false;
  bool variable = false;
  std::size_t hidden = 0;
  std::uint64_t trailing = 0;
  std::int64_t first_pts = 0;
};

bool is_missing(const Status& status) { return status.code() == StatusCode::not_found; }

class Survey {
 public:
  explicit Survey(LerobotSource::Impl& impl) : impl_(impl), log_(impl.log) {
    for (const Feature* feature : impl.info.schema.of_kind(FeatureKind::video)) {
      cameras_.push_back(feature->name);
      keys_.push_back(impl.info.physical_name(feature->name));
    }
    columns_.resize(impl.info.schema.features.size());
  }

  Status run() {
    const std::size_t count = impl_.listed;
    states_.resize(count);
    if (impl_.is_v3()) survey_data_files();
    ROPEWALK_RETURN_IF_ERROR(parallel_for(impl_.options.pool, static_cast<std::int64_t>(count),
                                          [this](std::int64_t row) -> Status {
                                            if (impl_.options.stop.stop_requested())
                                              return cancelled();
                                            look_at(static_cast<std::size_t>(row));
                                            return ok_status();
                                          }));
    if (impl_.v2) ROPEWALK_RETURN_IF_ERROR(impl_.v2->note_oddities(impl_.options.limits, log_));
    if (impl_.is_v3()) compare_locators();
    decide();
    settle_columns();
    for (const auto& [path, notes] : clip_notes_) tell(path, notes);
    note_leftovers(impl_);
    return ok_status();
  }

 private:
  void look_at(std::size_t row) {
    EpisodeState& state = states_[row];
    Json values;
    if (auto info = impl_.read_row(row); info.ok()) values = std::move(info->row);
    state.data_path = impl_.data_path(row);
    const auto places = impl_.places(row);
    if (!places.ok()) {
      state.data_status = places.status();
    } else {
      for (const DataPlace& place : *places) state.rows += place.rows.size();
      if (!impl_.is_v3()) look_at_columns(state.data_path);
    }
    state.cameras.resize(keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      CameraState& camera = state.cameras[i];
      camera.expected = impl_.has_camera(row, keys_[i], values);
      if (!camera.expected) continue;
      camera.path = impl_.video_path(row, keys_[i]);
      look_at_clip(row, i, camera);
    }
  }

  void look_at_clip(std::size_t row, std::size_t at, CameraState& camera) {
    const auto clip = impl_.clip(camera.path);
    if (!clip.ok()) {
      camera.status = clip.status();
      return;
    }
    const Mp4Index& index = *(*clip)->index;
    note_clip(camera.path, index);
    if (!impl_.is_v3()) {
      camera.frames = index.frame_count();
      return;
    }
    const auto begin = impl_.first_frame(row, keys_[at], index);
    if (!begin.ok()) {
      camera.status = begin.status();
      return;
    }
    camera.begin = *begin;
    const double to_s = impl_.v3->camera(keys_[at])->to_s[row];
    const double end = to_s * impl_.info.schema.fps.to_double();
    const std::int64_t listed_end =
        std::isfinite(end) && std::abs(end) < 1e15 ? std::llround(end) : *begin;
    camera.frames = std::max<std::int64_t>(
        0, std::min(index.frame_count(), std::max(listed_end, *begin)) - *begin);
  }

  void note_clip(const std::string& path, const Mp4Index& index) {
    ClipNotes notes;
    notes.audio = index.has_audio;
    notes.variable = index.rate == RateKind::variable;
    notes.hidden = index.hidden_packets;
    notes.trailing = index.trailing_bytes;
    notes.first_pts = index.first_pts;
    if (!notes.audio && !notes.variable && notes.hidden == 0 && notes.trailing == 0 &&
        notes.first_pts == 0) {
      return;
    }
    const std::lock_guard lock(mutex_);
    clip_notes_.try_emplace(path, notes);
  }

  void tell(const std::string& path, const ClipNotes& notes) {
    if (notes.audio) log_.add("audio_not_read", {.file = path});
    if (notes.variable) log_.add("video_rate_variable", {.file = path});
    if (notes.hidden > 0) {
      log_.add("video_frames_hidden",
               {.file = path, .count = static_cast<std::int64_t>(notes.hidden)});
    }
    if (notes.trailing > 0) {
      log_.add("video_trailing_bytes",
               {.file = path, .found = fmt::format("{} bytes", notes.trailing)});
    }
    if (notes.first_pts != 0) {
      log_.add("video_first_frame_late",
               {.file = path, .found = fmt::format("{} ticks", notes.first_pts)});
    }
  }

  /// Compares the columns of one file with the schema.
  void look_at_columns(const std::string& path) {
    const auto file = impl_.table(path);
    if (!file.ok()) return;
    const ParquetReader& reader = *(*file)->reader;
    std::set<std::string> declared;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < impl_.info.schema.features.size(); ++i) {
      const Feature& feature = impl_.info.schema.features[i];
      declared.insert(impl_.info.physical[i]);
      if (feature.kind != FeatureKind::column && feature.kind != FeatureKind::image) continue;
      if (!reader.has_column(impl_.info.physical[i])) {
        ++columns_[i].missing;
        continue;
      }
      const auto field = reader.schema()->GetFieldByName(impl_.info.physical[i]);
      if (field != nullptr && !stores_as_declared(*field->type(), feature)) {
        ++columns_[i].differing;
        if (columns_[i].stored.empty()) columns_[i].stored = field->type()->ToString();
      }
    }
    for (const std::string& column : reader.columns()) {
      if (!declared.contains(column)) ++undeclared_[column];
    }
    ++files_seen_;
  }

  void survey_data_files() {
    for (const DataMap::File& file : impl_.data_map().files) {
      if (file.status.ok()) {
        look_at_columns(file.path);
      } else {
        log_.add(
            "data_file_unreadable",
            {.file = file.path, .found = message_without_place(impl_, file.status, file.path)});
      }
    }
    std::set<std::int64_t> listed;
    for (std::size_t row = 0; row < impl_.listed; ++row) listed.insert(impl_.index_of_row(row));
    std::vector<std::int64_t> unlisted;
    for (const auto& entry : impl_.data_map().places) {
      if (!listed.contains(entry.first)) unlisted.push_back(entry.first);
    }
    std::ranges::sort(unlisted);
    for (const std::int64_t episode : unlisted) {
      log_.add("episode_not_in_meta", {.episode = episode});
    }
  }

  /// Compares locators of v3.0 with the rows and lengths that are there.
  void compare_locators() {
    const EpisodesV3& meta = *impl_.v3;
    const DataMap& map = impl_.data_map();
    for (std::size_t row = 0; row < impl_.listed; ++row) {
      const auto places = map.places.find(meta.index(row));
      if (places == map.places.end()) continue;
      const std::string& found = places->second.front().file;
      if (meta.data_chunk(row) == kNoValue || found != states_[row].data_path) {
        log_.add("data_location_stale",
                 {.episode = meta.index(row), .declared = states_[row].data_path, .found = found});
      }
      const std::int64_t first = map.first_row.at(meta.index(row));
      const std::int64_t end = first + states_[row].rows;
      if (meta.from(row) != first || meta.to(row) != end) {
        const auto text = [](std::int64_t value) {
          return value == kNoValue ? std::string("null") : fmt::format("{}", value);
        };
        log_.add("dataset_range_wrong",
                 {.episode = meta.index(row),
                  .declared = fmt::format("{}..{}", text(meta.from(row)), text(meta.to(row))),
                  .found = fmt::format("{}..{}", first, end)});
      }
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) compare_spans(i);
  }

  void compare_spans(std::size_t at) {
    const EpisodesV3::Camera& camera = *impl_.v3->camera(keys_[at]);
    std::map<std::string, std::vector<std::size_t>> by_file;
    std::int64_t drifted = 0;
    for (std::size_t row = 0; row < impl_.listed; ++row) {
      const CameraState& state = states_[row].cameras[at];
      if (!state.expected) continue;
      if (is_missing(state.status)) continue;
      by_file[state.path].push_back(row);
      if (!state.status.ok()) continue;
      const Rational fps = impl_.info.schema.fps;
      const double from_s = camera.from_s[row];
      if (from_s != frame_seconds(std::llround(from_s * fps.to_double()), fps)) ++drifted;
    }
    if (drifted > 0) {
      log_.add("video_offset_drift", {.feature = cameras_[at],
                                      .count = drifted,
                                      .declared = "from_timestamp",
                                      .found = "no exact multiple of 1/fps"});
    }
    for (auto& [path, rows] : by_file) {
      const auto clip = impl_.clip(path);
      if (!clip.ok()) continue;
      std::ranges::sort(rows, [&](std::size_t a, std::size_t b) {
        const double from_a = camera.from_s[a];
        const double from_b = camera.from_s[b];
        if (std::isnan(from_a) != std::isnan(from_b)) return std::isnan(from_b);
        return from_a != from_b && !std::isnan(from_a) ? from_a < from_b : a < b;
      });
      std::int64_t before = 0;
      bool agrees = true;
      for (const std::size_t row : rows) {
        const CameraState& state = states_[row].cameras[at];
        if (!state.status.ok() || state.begin != before || state.frames != states_[row].rows) {
          agrees = false;
        }
        before += states_[row].rows;
      }
      // Lengths add up to the file, the stamps do not: the lengths are right.
      if (agrees || before != (*clip)->index->frame_count()) continue;
      auto& begins = impl_.video_begin[keys_[at]];
      begins.resize(impl_.listed, kNoValue);
      before = 0;
      for (const std::size_t row : rows) {
        CameraState& state = states_[row].cameras[at];
        if (state.begin != before || !state.status.ok()) {
          log_.add("video_offset_wrong", {.file = path,
                                          .episode = impl_.index_of_row(row),
                                          .feature = cameras_[at],
                                          .declared = fmt::format("{} s", camera.from_s[row]),
                                          .found = fmt::format("frame {}", before)});
        }
        begins[row] = before;
        state.begin = before;
        state.frames = states_[row].rows;
        state.status = ok_status();
        before += states_[row].rows;
      }
    }
  }

  void decide() {
    impl_.rows.clear();
    impl_.lengths.clear();
    impl_.table_rows.assign(impl_.listed, -1);
    for (std::size_t row = 0; row < impl_.listed; ++row) {
      impl_.table_rows[row] = states_[row].rows;
      const std::int64_t length = kept_length(row);
      if (length <= 0) continue;
      impl_.rows.push_back(static_cast<std::uint32_t>(row));
      impl_.lengths.push_back(length);
    }
  }

  void tell_unreadable(std::int64_t episode, const std::string& path, const Status& status,
                       std::string_view code, const std::string& feature) {
    const bool pointer = status.reason() == "LFS_POINTER";
    log_.add(pointer ? "lfs_pointer" : code,
             {.file = path,
              .episode = episode,
              .feature = feature,
              .found = pointer ? "a Git LFS pointer" : message_without_place(impl_, status, path)});
  }

  /// Returns how many frames of an episode are kept; 0 leaves it out.
  std::int64_t kept_length(std::size_t row) {
    const EpisodeState& state = states_[row];
    const std::int64_t episode = impl_.index_of_row(row);
    bool usable = true;

    std::vector<std::string> missing;
    if (is_missing(state.data_status)) {
      std::error_code error;
      if (impl_.is_v3() && std::filesystem::exists(impl_.root / state.data_path, error)) {
        log_.add("episode_not_in_data", {.file = state.data_path, .episode = episode});
        usable = false;
      } else {
        missing.push_back(state.data_path);
      }
    } else if (!state.data_status.ok()) {
      tell_unreadable(episode, state.data_path, state.data_status, "table_unreadable", "");
      usable = false;
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const CameraState& camera = state.cameras[i];
      if (!camera.expected || camera.status.ok()) continue;
      if (is_missing(camera.status)) {
        missing.push_back(camera.path);
      } else {
        tell_unreadable(episode, camera.path, camera.status, "video_unreadable", cameras_[i]);
        usable = false;
      }
    }
    if (!missing.empty()) {
      log_.add("files_missing", {.file = missing.front(),
                                 .episode = episode,
                                 .declared = fmt::format("{} files", 1 + expected_clips(state)),
                                 .found = fmt::format("{} missing", missing.size())});
      usable = false;
    }
    if (!usable) return 0;

    const std::int64_t listed = impl_.length_of_row(row);
    if (listed >= 0 && listed != state.rows) {
      log_.add("row_count_mismatch", {.file = state.data_path,
                                      .episode = episode,
                                      .declared = fmt::format("length {}", listed),
                                      .found = fmt::format("{} rows", state.rows)});
    }
    if (state.rows == 0) {
      log_.add("episode_empty", {.file = state.data_path, .episode = episode});
      return 0;
    }
    return fit(state, episode);
  }

  static std::size_t expected_clips(const EpisodeState& state) {
    return static_cast<std::size_t>(std::ranges::count_if(state.cameras, &CameraState::expected));
  }

  /// Cuts table and clips to the shortest when they differ by one at most.
  std::int64_t fit(const EpisodeState& state, std::int64_t episode) {
    std::int64_t shortest = state.rows;
    std::int64_t longest = state.rows;
    for (const CameraState& camera : state.cameras) {
      if (!camera.expected) continue;
      shortest = std::min(shortest, camera.frames);
      longest = std::max(longest, camera.frames);
    }
    if (shortest == longest) return shortest;
    const bool cut = longest - shortest <= 1 && shortest > 0;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const CameraState& camera = state.cameras[i];
      if (!camera.expected || (camera.frames == state.rows)) continue;
      log_.add("frame_count_mismatch",
               {.file = camera.path,
                .episode = episode,
                .feature = cameras_[i],
                .declared = fmt::format("{} rows", state.rows),
                .found = fmt::format("{} frames", camera.frames),
                .decision = cut ? fmt::format("cut to {} frames", shortest) : std::string(),
                .severity = cut ? std::optional(Severity::warning) : std::nullopt});
    }
    return cut ? shortest : 0;
  }

  void settle_columns() {
    std::vector<std::string> dropped;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const ColumnState& state = columns_[i];
      const Feature& feature = impl_.info.schema.features[i];
      const std::string declared =
          fmt::format("{} {}", dtype_name(feature.dtype), shape_text(feature.shape));
      if (state.missing > 0) {
        const bool made = is_default_column(feature.name);
        log_.add("column_missing",
                 {.feature = feature.name,
                  .count = state.missing,
                  .declared = declared,
                  .found = fmt::format("absent from {} of {} tables", state.missing, files_seen_),
                  .decision = made ? "filled in" : std::string()});
        if (!made) dropped.push_back(feature.name);
      }
      if (state.differing > 0) {
        log_.add("column_type_differs", {.feature = feature.name,
                                         .count = state.differing,
                                         .declared = declared,
                                         .found = state.stored});
      }
    }
    for (const auto& [column, count] : undeclared_) {
      log_.add("column_not_declared", {.feature = column, .count = count});
    }
    for (const std::string& name : dropped) impl_.info.drop_feature(name);
  }

  LerobotSource::Impl& impl_;
  FindingLog& log_;
  std::vector<std::string> cameras_;  // names of the schema
  std::vector<std::string> keys_;     // names in paths
  std::vector<EpisodeState> states_;
  std::mutex mutex_;  // of the members below
  std::vector<ColumnState> columns_;
  std::map<std::string, std::int64_t> undeclared_;
  std::map<std::string, ClipNotes> clip_notes_;
  std::int64_t files_seen_ = 0;
};

}  // namespace

Status survey(LerobotSource::Impl& impl) { return Survey(impl).run(); }

}  // namespace ropewalk::lerobot
