// What opening notices beside the rows: cameras against their first pictures, statistics, files
// that do not belong.
#include <algorithm>
#include <set>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/source_internal.h"
#include "ropewalk/format/image/image.h"

namespace ropewalk::lerobot {
namespace {

constexpr std::size_t kRowsTried = 200;

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

void settle_shape(LerobotSource::Impl& impl, Feature& feature, const std::string& file, int width,
                  int height, std::string_view stored) {
  if (feature.shape == std::vector<std::int64_t>{height, width, feature.shape[2]}) return;
  const std::vector<std::int64_t> found{height, width, feature.shape[2]};
  if (feature.shape[0] > 0) {
    impl.log.add("camera_shape_mismatch",
                 {.file = file,
                  .feature = feature.name,
                  .declared = shape_text(feature.shape),
                  .found = fmt::format("{} {}", stored, shape_text(found))});
  }
  feature.shape = found;
}

void settle_video(LerobotSource::Impl& impl, Feature& feature) {
  const std::string& key = impl.info.physical_name(feature.name);
  for (std::size_t row = 0; row < std::min(impl.listed, kRowsTried); ++row) {
    const std::string path = impl.video_path(row, key);
    if (path.empty() || !is_there(impl.root / path)) continue;
    const auto clip = impl.clip(path);
    if (!clip.ok()) continue;
    const Mp4Index& index = *(*clip)->index;
    settle_shape(impl, feature, path, index.params.width, index.params.height, "video");
    for (const char* name : {"video.codec", "codec"}) {
      const auto declared = feature.info.get_string(name);
      if (declared && *declared != index.params.codec) {
        impl.log.add("codec_mismatch", {.file = path,
                                        .feature = feature.name,
                                        .declared = *declared,
                                        .found = index.params.codec});
      }
    }
    if (index.rate == RateKind::exact && index.frame_count() > 1 &&
        !(index.fps == impl.info.schema.fps)) {
      impl.log.add("fps_mismatch", {.file = path,
                                    .feature = feature.name,
                                    .declared = to_string(impl.info.schema.fps),
                                    .found = to_string(index.fps)});
    }
    return;
  }
}

void settle_images(LerobotSource::Impl& impl, Feature& feature) {
  for (std::size_t row = 0; row < std::min(impl.listed, kRowsTried); ++row) {
    const std::int64_t length = impl.length_of_row(row);
    if (length == 0 || !is_there(impl.root / impl.data_path(row))) continue;
    const auto batch =
        impl.read(row, std::max<std::int64_t>(1, length), {0, 1}, {feature.name}, nullptr);
    if (!batch.ok()) continue;
    const auto& pictures = static_cast<const arrow::StructArray&>(*(*batch)->column(0));
    const auto& bytes = static_cast<const arrow::BinaryArray&>(*pictures.field(0));
    if (bytes.IsNull(0)) continue;
    const auto found = probe_image(as_bytes(bytes.GetView(0)));
    if (!found.ok() || found->width == 0) continue;
    settle_shape(impl, feature, impl.data_path(row), found->width, found->height, "picture");
    return;
  }
}

/// Reports features that the statistics of the first episode lack.
void note_coverage(LerobotSource::Impl& impl) {
  if (impl.listed == 0) return;
  const Json statistics = impl.episode_statistics(0);
  if (!statistics.is_object()) return;
  const std::string file = impl.is_v3() ? "meta/episodes" : std::string(EpisodeStatisticsV2::kFile);
  bool quantiles = true;
  for (const Feature& feature : impl.info.schema.features) {
    const bool numeric = feature.kind == FeatureKind::column && dtype_is_numeric(feature.dtype);
    if (!numeric && !feature.is_camera()) continue;
    const Json* entry = statistics.find(impl.info.physical_name(feature.name));
    if (entry == nullptr) {
      impl.log.add("statistics_incomplete",
                   {.file = file, .feature = feature.name, .found = "no entry"});
      continue;
    }
    for (const char* part : {"min", "max", "mean", "std", "count"}) {
      if (entry->find(part) == nullptr) {
        impl.log.add("statistics_incomplete",
                     {.file = file, .feature = feature.name, .found = fmt::format("no {}", part)});
      }
    }
    if (!feature.is_camera() && entry->find("q50") == nullptr) quantiles = false;
  }
  if (impl.is_v3() && !quantiles) {
    impl.log.add("statistics_incomplete", {.file = file, .found = "no quantiles"});
  }
}

}  // namespace

std::string message_without_place(const LerobotSource::Impl& impl, const Status& status,
                                  const std::string& file, const std::string& feature) {
  std::string text = without_root(std::string(status.message()), impl.root);
  if (text.starts_with("episode ")) text.erase(0, std::min(text.size(), text.find(": ") + 2));
  for (const std::string& place : {file, feature}) {
    while (!place.empty() && text.starts_with(place + ": ")) text.erase(0, place.size() + 2);
  }
  return text;
}

void settle_cameras(LerobotSource::Impl& impl) {
  for (Feature& feature : impl.info.schema.features) {
    if (feature.kind == FeatureKind::video) settle_video(impl, feature);
    if (feature.kind == FeatureKind::image && impl.options.survey) settle_images(impl, feature);
  }
}

void note_statistics(LerobotSource::Impl& impl) {
  const auto missing = [&](const std::string& file, std::string found = {}) {
    impl.log.add("statistics_missing", {.file = file, .found = std::move(found)});
  };
  if (impl.listed == 0) return;
  switch (impl.info.generation) {
    case LerobotGeneration::v20:
      missing(std::string(EpisodeStatisticsV2::kFile), "format v2.0 has none per episode");
      if (!is_there(impl.root / "meta" / "stats.json")) missing("meta/stats.json");
      return;
    case LerobotGeneration::v21:
      if (!is_there(impl.root / EpisodeStatisticsV2::kFile)) {
        missing(std::string(EpisodeStatisticsV2::kFile));
        return;
      }
      break;
    case LerobotGeneration::v30:
      if (!is_there(impl.root / "meta" / "stats.json")) missing("meta/stats.json");
      if (!impl.v3->has_statistics()) {
        missing("meta/episodes", "no columns stats/*");
        return;
      }
      break;
  }
  if (!impl.options.survey) return;
  if (!impl.is_v3()) {
    impl.episode_statistics(0);
    if (impl.statistics_v2.size() < impl.listed) {
      impl.log.add("statistics_incomplete",
                   {.file = std::string(EpisodeStatisticsV2::kFile),
                    .count = static_cast<std::int64_t>(impl.listed - impl.statistics_v2.size()),
                    .declared = fmt::format("{} episodes", impl.listed),
                    .found = fmt::format("{} lines", impl.statistics_v2.size())});
    }
  }
  note_coverage(impl);
}

void note_leftovers(LerobotSource::Impl& impl) {
  const auto children = list_directory(impl.root);
  if (!children.ok()) return;
  const bool has_images = !impl.info.schema.of_kind(FeatureKind::image).empty();
  for (const std::string& name : *children) {
    const auto path = impl.root / name;
    if (is_there(path / "meta" / "info.json")) {
      impl.log.add("nested_dataset", {.file = name});
    } else if (name == "images" && !has_images) {
      const auto inside = list_directory(path);
      if (inside.ok() && !inside->empty()) {
        impl.log.add("leftover_files", {.file = name, .found = "pictures of a recording"});
      }
    } else if (name.starts_with("tmp") || name.ends_with(".tmp") || name.ends_with(".mp4") ||
               name.ends_with(".parquet")) {
      impl.log.add("leftover_files", {.file = name});
    }
  }
  if (const auto meta = list_directory(impl.root / "meta"); meta.ok()) {
    for (const std::string& name : *meta) {
      if (name.ends_with(".bak") || name.ends_with("~")) {
        impl.log.add("backup_file", {.file = "meta/" + name});
      }
    }
  }
  if (impl.is_v3()) return;
  // Tables and videos that no row names: a recording that ended before its row was written.
  std::set<std::string> named;
  for (std::size_t row = 0; row < impl.listed; ++row) {
    named.insert(impl.data_path(row));
    for (const Feature* feature : impl.info.schema.of_kind(FeatureKind::video)) {
      named.insert(impl.video_path(row, impl.info.physical_name(feature->name)));
    }
  }
  for (const std::string& directory : {impl.data_directory(), std::string("videos")}) {
    const auto files = list_tree(impl.root / directory);
    if (!files.ok()) continue;
    std::int64_t count = 0;
    std::string first;
    for (const std::string& file : *files) {
      if (named.contains(directory + "/" + file)) continue;
      if (count++ == 0) first = directory + "/" + file;
    }
    if (count > 0) {
      impl.log.add("leftover_files",
                   {.file = directory, .count = count, .found = first + " is in no row"});
    }
  }
}

}  // namespace ropewalk::lerobot
