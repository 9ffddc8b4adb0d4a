#include "ropewalk/dataset/lerobot/check.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/dataset/lerobot/source_internal.h"
#include "ropewalk/format/image/image.h"

namespace ropewalk {
namespace {

using lerobot::FindingLog;
using lerobot::FindingPlace;

/// Pictures stored in tables are checked in blocks, so that memory stays bounded.
constexpr std::int64_t kPictureRows = 64;
/// Upstream v2.1 compares neighbouring timestamps in float32 with this tolerance.
constexpr float kUpstreamTolerance = 1e-4F;

/// Counts what is wrong with one feature of one episode and remembers the first place.
struct Tally {
  std::int64_t count = 0;
  std::int64_t first = -1;
  std::string found;
  void add(std::int64_t row, std::string what = {}) {
    if (count++ == 0) {
      first = row;
      found = std::move(what);
    }
  }
};

template <typename Array>
void tally_non_finite(const arrow::Array& leaf, std::int64_t per_row, Tally& tally) {
  const auto& values = static_cast<const Array&>(leaf);
  const auto* raw = values.raw_values();
  for (std::int64_t i = 0; i < values.length(); ++i) {
    if (!std::isfinite(raw[i])) tally.add(i / per_row, std::isnan(raw[i]) ? "NaN" : "infinity");
  }
}

const arrow::Array* leaf_of(const arrow::Array& column, std::shared_ptr<arrow::Array>& keep) {
  const arrow::Array* at = &column;
  while (true) {
    if (at->type_id() == arrow::Type::FIXED_SIZE_LIST) {
      const auto& list = static_cast<const arrow::FixedSizeListArray&>(*at);
      keep = list.values()->Slice(list.value_offset(0), list.length() * list.value_length(0));
    } else if (at->type_id() == arrow::Type::LIST) {
      const auto& list = static_cast<const arrow::ListArray&>(*at);
      keep = list.values();
    } else {
      return at;
    }
    at = keep.get();
  }
}

/// Everything that reading one episode shows.
class EpisodeCheck {
 public:
  EpisodeCheck(const LerobotSource& source, std::int64_t position, bool strict)
      : source_(source),
        impl_(source.impl()),
        position_(position),
        row_(impl_.rows[static_cast<std::size_t>(position)]),
        index_(source.index_of(position)),
        length_(source.length_of(position)),
        path_(impl_.data_path(row_)),
        log_(strict) {}

  Findings run(bool decode, std::int64_t expected_index, std::int64_t& decoded) {
    check_table(expected_index);
    for (const Feature* feature : source_.schema().of_kind(FeatureKind::image)) {
      check_pictures(*feature);
    }
    if (decode) check_frames(decoded);
    return log_.findings();
  }

 private:
  void add(std::string_view code, FindingPlace place) {
    if (place.file.empty()) place.file = path_;
    place.episode = index_;
    log_.add(code, std::move(place));
  }
  void add(std::string_view code, const std::string& feature, const Tally& tally,
           std::string declared = {}) {
    if (tally.count == 0) return;
    add(code, {.feature = feature,
               .row = tally.first,
               .count = tally.count,
               .declared = std::move(declared),
               .found = tally.found});
  }

  void add_error(const std::string& feature, const Status& status) {
    const std::string_view reason = status.reason();
    const bool known = reason == "value_missing" || reason == "row_count_mismatch" ||
                       reason == "column_missing" || reason == "path_escapes_root";
    add(known ? reason : std::string_view("value_invalid"),
        {.feature = feature,
         .found = lerobot::message_without_place(impl_, status, path_, feature)});
  }

  void check_table(std::int64_t expected_index) {
    // Column by column, so that one that cannot be read hides no other.
    for (const Feature& feature : source_.schema().features) {
      if (feature.kind != FeatureKind::column) continue;
      lerobot::ReadNotes notes;
      const auto batch = impl_.read(row_, length_, {0, length_}, {feature.name}, &notes);
      if (!batch.ok()) {
        add_error(feature.name, batch.status());
        continue;
      }
      const auto column = (*batch)->column(0);
      if (feature.name == "timestamp") {
        check_timestamps(column, notes);
      } else if (feature.name == "frame_index") {
        if (notes.sorted) add("rows_out_of_order", {.feature = feature.name});
        check_counting("frame_index_broken", feature.name, column, 0, 1);
      } else if (feature.name == "episode_index") {
        check_counting("episode_index_broken", feature.name, column, index_, 0);
      } else if (feature.name == "index") {
        check_index(column, expected_index);
      } else if (feature.name == "task_index") {
        check_tasks(column);
      }
      std::shared_ptr<arrow::Array> keep;
      const arrow::Array* leaf = leaf_of(*column, keep);
      Tally tally;
      const std::int64_t per_row = std::max<std::int64_t>(1, feature.elements());
      if (leaf->type_id() == arrow::Type::FLOAT) {
        tally_non_finite<arrow::FloatArray>(*leaf, per_row, tally);
      } else if (leaf->type_id() == arrow::Type::DOUBLE) {
        tally_non_finite<arrow::DoubleArray>(*leaf, per_row, tally);
      }
      add("value_not_finite", feature.name, tally);
    }
  }

  void check_timestamps(const std::shared_ptr<arrow::Array>& column,
                        const lerobot::ReadNotes& notes) {
    const Rational fps = source_.schema().fps;
    if (notes.timestamps_rebuilt > 0) {
      add("timestamp_broken", {.feature = "timestamp",
                               .count = notes.timestamps_rebuilt,
                               .declared = "frame / " + to_string(fps),
                               .found = "off by more than half a frame"});
    }
    const auto& values = static_cast<const arrow::FloatArray&>(*column);
    Tally off;
    Tally tolerance;
    const auto step = static_cast<float>(1.0 / fps.to_double());
    for (std::int64_t i = 0; i < values.length(); ++i) {
      const double value = static_cast<double>(values.Value(i));
      const double exact = frame_seconds(i, fps);
      // Float32 itself is coarser than the tolerance in long episodes.
      const double allowed = 1e-4 + std::abs(exact) * 1.2e-7;
      if (std::abs(value - exact) > allowed) {
        off.add(i, fmt::format("{} s at frame {}", value, i));
      }
      if (i > 0 && std::abs((values.Value(i) - values.Value(i - 1)) - step) > kUpstreamTolerance) {
        tolerance.add(i, fmt::format("step {} s", values.Value(i) - values.Value(i - 1)));
      }
    }
    add("timestamp_off_grid", "timestamp", off, "frame / " + to_string(fps));
    if (off.count == 0) add("timestamp_tolerance", "timestamp", tolerance, "1e-4 s per step");
  }

  void check_counting(std::string_view code, const std::string& feature,
                      const std::shared_ptr<arrow::Array>& column, std::int64_t first,
                      std::int64_t step) {
    const auto values = lerobot::int64_values(*column);
    if (!values.ok()) return;
    Tally tally;
    for (std::size_t i = 0; i < values->size(); ++i) {
      const std::int64_t expected = first + static_cast<std::int64_t>(i) * step;
      if ((*values)[i] != expected) {
        tally.add(static_cast<std::int64_t>(i), fmt::format("{}", (*values)[i]));
      }
    }
    add(code, feature, tally,
        tally.count > 0 ? fmt::format("{}", first + tally.first * step) : std::string());
  }

  void check_index(const std::shared_ptr<arrow::Array>& column, std::int64_t expected_index) {
    const auto values = lerobot::int64_values(*column);
    if (!values.ok() || values->empty()) return;
    // Where episodes are left out the numbers before are not known: then any start will do.
    const std::int64_t first = expected_index >= 0 ? expected_index : values->front();
    check_counting("index_not_contiguous", "index", column, first, 1);
  }

  void check_tasks(const std::shared_ptr<arrow::Array>& column) {
    if (impl_.tasks.entries().empty()) return;
    const auto values = lerobot::int64_values(*column);
    if (!values.ok()) return;
    Tally tally;
    for (std::size_t i = 0; i < values->size(); ++i) {
      if (impl_.tasks.find((*values)[i]) == nullptr) {
        tally.add(static_cast<std::int64_t>(i), fmt::format("{}", (*values)[i]));
      }
    }
    add("task_index_unknown", "task_index", tally,
        fmt::format("{} tasks", impl_.tasks.entries().size()));
  }

  void check_pictures(const Feature& feature) {
    Tally unreadable;
    for (std::int64_t begin = 0; begin < length_; begin += kPictureRows) {
      const FrameRange range{begin, std::min(length_, begin + kPictureRows)};
      lerobot::ReadNotes notes;
      const auto batch = impl_.read(row_, length_, range, {feature.name}, &notes);
      if (!batch.ok()) {
        if (batch.status().code() == StatusCode::not_found) {
          add("image_unreadable", {.feature = feature.name,
                                   .row = begin,
                                   .found = lerobot::message_without_place(impl_, batch.status(),
                                                                           path_, feature.name)});
        } else {
          add_error(feature.name, batch.status());
        }
        return;
      }
      const auto& pictures = static_cast<const arrow::StructArray&>(*(*batch)->column(0));
      const auto& bytes = static_cast<const arrow::BinaryArray&>(*pictures.field(0));
      for (std::int64_t i = 0; i < bytes.length(); ++i) {
        const auto found = probe_image(as_bytes(bytes.GetView(i)));
        if (!found.ok()) {
          unreadable.add(begin + i, std::string(found.status().message()));
        } else if (found->width != feature.shape[1] || found->height != feature.shape[0]) {
          unreadable.add(begin + i, fmt::format("{}x{}", found->width, found->height));
        }
      }
    }
    add("image_unreadable", feature.name, unreadable,
        fmt::format("{}x{}", feature.shape[1], feature.shape[0]));
  }

  void check_frames(std::int64_t& decoded) {
    const auto episode = source_.open(position_);
    if (!episode.ok()) return;
    for (const std::string& camera : source_.schema().cameras()) {
      if (!(*episode)->has_camera(camera)) continue;
      const bool stored = source_.schema().find(camera)->kind == FeatureKind::image;
      if (stored && log_.findings().has_errors()) continue;  // said already, with its row
      const std::string file =
          stored ? path_ : impl_.video_path(row_, impl_.info.physical_name(camera));
      const auto reader = (*episode)->frames(camera, {0, length_}, {});
      std::int64_t done = 0;
      Status status = reader.status();
      if (reader.ok()) {
        Bytes pixels((*reader)->shape().frame_bytes());
        while (true) {
          const auto more = (*reader)->next(pixels);
          if (!more.ok()) {
            status = more.status();
            break;
          }
          if (!*more) break;
          ++done;
        }
      }
      decoded += done;
      if (!status.ok()) {
        add("frame_unreadable",
            {.file = file,
             .feature = camera,
             .row = done,
             .found = lerobot::message_without_place(impl_, status, file, camera)});
      }
    }
  }

  const LerobotSource& source_;
  const LerobotSource::Impl& impl_;
  std::int64_t position_;
  std::size_t row_;
  std::int64_t index_;
  std::int64_t length_;
  std::string path_;
  FindingLog log_;
};

}  // namespace

Json CheckReport::to_json() const {
  Json out = Json::object();
  out.set("ok", ok());
  out.set("format", format);
  out.set("episodes", episodes);
  out.set("listed", listed);
  out.set("frames", frames);
  out.set("decoded", decoded);
  out.set("findings", findings.to_json());
  return out;
}

Result<CheckReport> check_dataset(const std::filesystem::path& root, const CheckOptions& options,
                                  const RunContext& context) {
  CheckReport report;
  auto impl = LerobotOpener::begin(root, {.strict = options.strict,
                                          .survey = true,
                                          .limits = options.limits,
                                          .pool = context.pool,
                                          .stop = context.stop});
  const Status opened = LerobotOpener::run(*impl);
  if (!opened.ok()) {
    if (opened.code() == StatusCode::cancelled) return opened;
    std::error_code error;
    if (!std::filesystem::exists(root, error)) return opened;
    report.findings = impl->log.findings();
    if (!report.findings.has_errors()) {
      report.findings.add(lerobot::make_finding(
          "not_readable", {.found = lerobot::message_without_place(*impl, opened, impl->name)},
          options.strict));
    }
    return report;
  }
  report.listed = static_cast<std::int64_t>(impl->listed);
  const std::unique_ptr<LerobotSource> source = LerobotOpener::finish(std::move(impl));
  report.format = source->format();
  report.episodes = source->size();
  report.findings = source->findings();

  // `index` counts over the whole dataset: it is known only when every episode is there, in order.
  bool complete = report.episodes == report.listed;
  for (std::int64_t i = 0; i < report.episodes && complete; ++i) {
    complete = source->index_of(i) == i;
  }
  std::vector<std::int64_t> first_index(static_cast<std::size_t>(report.episodes), -1);
  for (std::int64_t i = 0; i < report.episodes; ++i) {
    if (complete) first_index[static_cast<std::size_t>(i)] = report.frames;
    report.frames += source->length_of(i);
  }
  std::vector<Findings> per_episode(static_cast<std::size_t>(report.episodes));
  std::mutex progress_mutex;
  Progress progress{.phase = "checking", .item = {}, .done = 0, .total = report.episodes};
  context.report(progress);
  const Status ran = parallel_for(context.pool, report.episodes, [&](std::int64_t i) -> Status {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    std::int64_t decoded = 0;
    const auto at = static_cast<std::size_t>(i);
    per_episode[at] =
        EpisodeCheck(*source, i, options.strict).run(options.decode, first_index[at], decoded);
    const std::lock_guard lock(progress_mutex);
    report.decoded += decoded;
    ++progress.done;
    progress.item = fmt::format("episode {}", source->index_of(i));
    context.report(progress);
    return ok_status();
  });
  ROPEWALK_RETURN_IF_ERROR(ran);
  for (const Findings& findings : per_episode) report.findings.append(findings);
  return report;
}

Result<Findings> validate_for_export(const LerobotSource& source,
                                     std::span<const std::int64_t> episodes,
                                     const RunContext& context) {
  const LerobotSource::Impl& impl = source.impl();
  FindingLog log(true);  // an export repairs nothing: every reason counts
  if (source.generation() != LerobotGeneration::v21 ||
      source.info_document().get_string("codebase_version").value_or("") != "v2.1") {
    log.add("source_not_v21",
            {.file = "meta/info.json",
             .declared = source.info_document().get_string("codebase_version").value_or("nothing"),
             .found = std::string(source.format())});
  }
  for (const Finding& finding : source.findings().entries()) {
    if (finding.code != "duplicate_episode" && finding.code != "malformed_line") continue;
    Finding refused = finding;
    refused.severity = Severity::error;
    refused.decision = "refused";
    log.findings().add(std::move(refused));
  }
  std::vector<std::int64_t> chosen(episodes.begin(), episodes.end());
  if (episodes.empty()) {
    for (std::int64_t i = 0; i < source.size(); ++i) chosen.push_back(i);
  }
  for (const std::int64_t i : chosen) {
    if (i < 0 || i >= source.size()) {
      return out_of_range(
          fmt::format("{}: episode at position {} of {}", source.name(), i, source.size()));
    }
  }
  if (chosen.empty()) log.add("no_episodes", {.file = "meta/episodes.jsonl"});

  std::vector<std::string> needed{"episode_index", "index"};
  for (std::size_t i = 0; i < impl.info.schema.features.size(); ++i) {
    const Feature& feature = impl.info.schema.features[i];
    if (feature.kind == FeatureKind::video || is_default_column(feature.name)) continue;
    needed.push_back(impl.info.physical[i]);
  }

  const auto check_one = [&](std::int64_t i, FindingLog& mine) {
    const std::size_t row = impl.rows[static_cast<std::size_t>(i)];
    const std::int64_t index = impl.index_of_row(row);
    const std::int64_t length = source.length_of(i);
    const auto refuse = [&](std::string_view code, FindingPlace place) {
      place.episode = index;
      if (place.decision.empty()) place.decision = "refused";
      mine.add(code, std::move(place));
    };
    const auto refuse_file = [&](std::string_view code, const std::string& path,
                                 const std::string& feature, const Status& status) {
      const bool missing = status.code() == StatusCode::not_found;
      const bool pointer = status.reason() == "LFS_POINTER";
      refuse(missing   ? "files_missing"
             : pointer ? "lfs_pointer"
                       : code,
             {.file = path,
              .feature = feature,
              .found = missing ? "no such file" : std::string(status.message()),
              .decision = missing   ? "put the file back, or leave the episode out"
                          : pointer ? "fetch it with `git lfs pull`"
                                    : ""});
    };
    static const Json kNoRow = Json::object();
    const auto known = impl.read_info(i);
    if (!known.ok()) {
      refuse("malformed_line",
             {.file = "meta/episodes.jsonl", .found = std::string(known.status().message())});
    }
    const std::string path = impl.data_path(row);
    std::int64_t rows = -1;
    const auto places = impl.places(row);
    if (!places.ok()) {
      refuse_file("table_unreadable", path, "", places.status());
    } else {
      rows = 0;
      for (const auto& place : *places) rows += place.rows.size();
      if (rows == 0) refuse("episode_empty", {.file = path});
      if (rows != length && rows != 0) {
        refuse("row_count_mismatch", {.file = path,
                                      .declared = fmt::format("length {}", length),
                                      .found = fmt::format("{} rows", rows),
                                      .decision = "correct the length, or leave the episode out"});
      }
      const auto file = impl.table(places->front().file);
      for (const std::string& column : needed) {
        if (!file.ok() || (*file)->reader->has_column(column)) continue;
        refuse("column_missing", {.file = path,
                                  .feature = column,
                                  .decision = "add the column, or leave the episode out"});
      }
      if (file.ok()) {
        for (const Feature* feature : impl.info.schema.of_kind(FeatureKind::column)) {
          const std::string& column = impl.info.physical_name(feature->name);
          const auto field = (*file)->reader->schema()->GetFieldByName(column);
          if (field == nullptr || field->type()->id() != arrow::Type::FIXED_SIZE_LIST) continue;
          const auto width =
              static_cast<const arrow::FixedSizeListType&>(*field->type()).list_size();
          if (feature->shape.size() != 1 || width == feature->shape[0]) continue;
          refuse("value_invalid", {.file = path,
                                   .feature = column,
                                   .declared = fmt::format("{} values a row", feature->shape[0]),
                                   .found = fmt::format("{}", width),
                                   .decision = "leave the episode out"});
        }
      }
      if (file.ok() && rows == length && rows > 0 && (*file)->reader->has_column("task_index") &&
          !impl.tasks.entries().empty()) {
        lerobot::ReadNotes notes;
        const auto batch = impl.read(row, length, {0, length}, {"task_index"}, &notes);
        if (!batch.ok()) {
          refuse("value_invalid", {.file = path,
                                   .feature = "task_index",
                                   .found = std::string(batch.status().message())});
        } else if (const auto values = lerobot::int64_values(*(*batch)->column(0)); values.ok()) {
          std::int64_t last = (*values)[0];
          Tally unknown;
          bool last_known = impl.tasks.find(last) != nullptr;
          for (std::size_t k = 0; k < values->size(); ++k) {
            if ((*values)[k] != last) {
              last = (*values)[k];
              last_known = impl.tasks.find(last) != nullptr;
            }
            if (!last_known) unknown.add(static_cast<std::int64_t>(k), fmt::format("{}", last));
          }
          if (unknown.count > 0) {
            mine.add("task_index_unknown",
                     {.file = path,
                      .episode = index,
                      .feature = "task_index",
                      .row = unknown.first,
                      .count = unknown.count,
                      .declared = fmt::format("{} tasks", impl.tasks.entries().size()),
                      .found = unknown.found});
          }
        }
      }
    }
    const Json& values = known.ok() ? known->row : kNoRow;
    for (const Feature* feature : impl.info.schema.of_kind(FeatureKind::video)) {
      const std::string& key = impl.info.physical_name(feature->name);
      if (!impl.has_camera(row, key, values)) continue;
      const std::string clip_path = impl.video_path(row, key);
      const auto clip = impl.clip(clip_path);
      if (!clip.ok()) {
        refuse_file("video_unreadable", clip_path, feature->name, clip.status());
        continue;
      }
      const std::int64_t frames = impl.is_v3() ? length : (*clip)->index->frame_count();
      if (rows > 0 && frames != rows) {
        refuse("frame_count_mismatch", {.file = clip_path,
                                        .feature = feature->name,
                                        .declared = fmt::format("{} rows", rows),
                                        .found = fmt::format("{} frames", frames),
                                        .decision = "repair with `ropewalk convert`, or leave the "
                                                    "episode out"});
      }
    }
  };

  std::vector<Findings> each(chosen.size());
  std::int64_t done = 0;
  std::mutex progress_mutex;
  const Status ran = parallel_for(
      context.pool, static_cast<std::int64_t>(chosen.size()), [&](std::int64_t k) -> Status {
        ROPEWALK_RETURN_IF_ERROR(context.check_stop());
        FindingLog mine(true);
        check_one(chosen[static_cast<std::size_t>(k)], mine);
        each[static_cast<std::size_t>(k)] = mine.findings();
        const std::lock_guard lock(progress_mutex);
        ++done;
        context.report({.phase = "validating",
                        .item = {},
                        .done = done,
                        .total = static_cast<std::int64_t>(chosen.size())});
        return ok_status();
      });
  ROPEWALK_RETURN_IF_ERROR(ran);
  for (const Findings& findings : each) log.findings().append(findings);
  return log.findings();
}

}  // namespace ropewalk
