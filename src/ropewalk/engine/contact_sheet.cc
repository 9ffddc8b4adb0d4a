#include "ropewalk/engine/contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include <arrow/record_batch.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/dataset/lerobot/ledger.h"
#include "ropewalk/engine/contact_sheet_internal.h"
#include "ropewalk/engine/open.h"
#include "ropewalk/episode/dense_column.h"
#include "ropewalk/format/image/image.h"

namespace ropewalk {
namespace {

using sheet::Entry;
using sheet::Plot;
using sheet::Strip;

// How much is drawn per episode; less for many, so that a page of a thousand still opens.
struct Detail {
  int picture_height = 96;
  std::int64_t pictures = 6;  // per strip
  std::int64_t points = 160;  // per line
  std::size_t lines = 32;     // per plot
};

Detail detail_for(std::size_t episodes, std::size_t cameras) {
  constexpr std::size_t kMostPictures = 6000;
  Detail detail;
  const std::size_t strips = std::max<std::size_t>(1, episodes * std::max<std::size_t>(1, cameras));
  detail.pictures =
      static_cast<std::int64_t>(std::clamp<std::size_t>(kMostPictures / strips, 1, 6));
  if (episodes > 60) detail.points = 80;
  if (episodes > 300) {
    detail.points = 40;
    detail.lines = 16;
    detail.picture_height = 72;
  }
  return detail;
}

Status read_strip(const Episode& episode, const std::string& camera, const Detail& detail,
                  bool as_jpeg, Strip& strip) {
  const std::int64_t length = episode.info().length;
  const std::int64_t pictures = std::min(detail.pictures, length);
  FrameShape one;
  for (std::int64_t i = 0; i < pictures; ++i) {
    const std::int64_t middle = (2 * i + 1) * length / (2 * pictures);
    // A keyframe close by costs less and looks the same on a strip.
    const std::int64_t key = episode.decode_unit(camera, middle).begin;
    const std::int64_t frame = middle - key <= length / (4 * pictures) ? key : middle;
    if (i == 0) {
      ROPEWALK_ASSIGN_OR_RETURN(const auto probe, episode.frames(camera, {frame, frame + 1}));
      const FrameShape stored = probe->shape();
      if (stored.bytes_per_sample != 1 || stored.height <= 0 || stored.width <= 0) {
        return unimplemented("pictures of 16 bits are not drawn");
      }
      one.height = std::min(detail.picture_height, stored.height);
      one.width = std::max(8, stored.width * one.height / stored.height);
      one.channels = stored.channels;
      strip.shape = {one.height, one.width * static_cast<int>(pictures), 3, 1};
      strip.pixels.assign(strip.shape.frame_bytes(), 0);
    }
    ROPEWALK_ASSIGN_OR_RETURN(
        const auto reader,
        episode.frames(camera, {frame, frame + 1}, {.width = one.width, .height = one.height}));
    Bytes pixels(reader->shape().frame_bytes());
    ROPEWALK_ASSIGN_OR_RETURN(const bool more, reader->next(pixels));
    if (!more) return data_loss(fmt::format("frame {} is not there", frame));
    const auto channels = static_cast<std::size_t>(reader->shape().channels);
    for (std::size_t y = 0; y < static_cast<std::size_t>(one.height); ++y) {
      for (std::size_t x = 0; x < static_cast<std::size_t>(one.width); ++x) {
        const std::uint8_t* from =
            pixels.data() + (y * static_cast<std::size_t>(one.width) + x) * channels;
        std::uint8_t* to = strip.pixels.data() +
                           (y * static_cast<std::size_t>(strip.shape.width) +
                            static_cast<std::size_t>(i) * static_cast<std::size_t>(one.width) + x) *
                               3;
        for (std::size_t c = 0; c < 3; ++c) to[c] = from[channels == 1 ? 0 : c];
      }
    }
    ++strip.pictures;
  }
  if (as_jpeg && strip.pictures > 0) {
    ROPEWALK_ASSIGN_OR_RETURN(strip.jpeg, encode_jpeg(strip.shape, strip.pixels, 74));
    strip.pixels.clear();
    strip.pixels.shrink_to_fit();
  }
  return ok_status();
}

// The columns worth a plot: the first state and the first command that are vectors of numbers.
std::vector<const Feature*> plotted(const Schema& schema) {
  const auto is_vector = [](const Feature& feature) {
    return feature.kind == FeatureKind::column && dtype_is_float(feature.dtype) &&
           feature.shape.size() == 1 && feature.elements() > 0 && feature.elements() <= 512 &&
           !is_default_column(feature.name) && feature.name.find("time") == std::string::npos;
  };
  const Feature* state = nullptr;
  const Feature* command = nullptr;
  for (const Feature& feature : schema.features) {
    if (!is_vector(feature)) continue;
    const bool is_joint = feature.name.find("eef") == std::string::npos;
    if (feature.name.starts_with("action")) {
      if (command == nullptr && is_joint) command = &feature;
    } else if (state == nullptr && is_joint &&
               (feature.name.starts_with("observation") || feature.name.starts_with("state") ||
                feature.name.starts_with("qpos"))) {
      state = &feature;
    }
  }
  std::vector<const Feature*> out;
  if (state != nullptr) out.push_back(state);
  if (command != nullptr) out.push_back(command);
  return out;
}

Result<Plot> read_plot(const Episode& episode, const Feature& feature, const Detail& detail) {
  const std::int64_t length = episode.info().length;
  ROPEWALK_ASSIGN_OR_RETURN(const auto batch, episode.columns_of({feature.name}, {0, length}));
  if (batch->num_columns() != 1) return not_found(fmt::format("no column {}", feature.name));
  ROPEWALK_ASSIGN_OR_RETURN(const DenseColumn column, dense_column(*batch->column(0)));
  const auto width = static_cast<std::size_t>(feature.elements());
  const auto rows = static_cast<std::size_t>(length);
  const auto value = [&](std::size_t row, std::size_t element) {
    const std::size_t at = row * width + element;
    if (column.dtype == DType::float64) {
      double out;
      std::memcpy(&out, column.data.data() + at * sizeof(out), sizeof(out));
      return static_cast<float>(out);
    }
    float out;
    std::memcpy(&out, column.data.data() + at * sizeof(out), sizeof(out));
    return out;
  };
  const std::size_t bytes = column.dtype == DType::float64 ? 8 : 4;
  if ((column.dtype != DType::float32 && column.dtype != DType::float64) ||
      column.data.size() < rows * width * bytes) {
    return data_loss(fmt::format("{}: not {} rows of {} numbers", feature.name, rows, width));
  }
  Plot plot{.column = feature.name};
  const std::size_t points = std::min<std::size_t>(static_cast<std::size_t>(detail.points), rows);
  plot.low = INFINITY;
  plot.high = -INFINITY;
  for (std::size_t element = 0; element < std::min(width, detail.lines); ++element) {
    std::vector<float> line;
    for (std::size_t i = 0; i < points; ++i) {
      const std::size_t row = points > 1 ? i * (rows - 1) / (points - 1) : 0;
      const float number = value(row, element);
      line.push_back(std::isfinite(number) ? number : NAN);
      if (!std::isfinite(number)) continue;
      plot.low = std::min(plot.low, number);
      plot.high = std::max(plot.high, number);
    }
    plot.lines.push_back(std::move(line));
  }
  if (!(plot.high >= plot.low)) plot.low = plot.high = 0;
  return plot;
}

std::vector<QualityEntry> entries_of(const Json& list) {
  std::vector<QualityEntry> out;
  if (const Json::Array* array = list.as_array()) {
    for (const Json& entry : *array) out.push_back(issue_from_json(entry));
  }
  return out;
}

Entry entry_of(const EpisodeInfo& info, double fps) {
  Entry entry;
  entry.index = info.index;
  entry.length = info.length;
  entry.seconds = fps > 0 ? static_cast<double>(info.length) / fps : 0;
  entry.task = fmt::format("{}", fmt::join(info.tasks, "; "));
  entry.verdict = info.verdict;
  entry.quality = info.quality;
  entry.note = info.note;
  const Json* trashed = info.row.find("trashed_at");
  entry.is_trashed = trashed != nullptr && !trashed->is_null();
  entry.decision = decide(info.verdict, info.quality);
  entry.issues = entries_of(info.issues);
  if (const Json* findings = info.row.find("quality_findings")) {
    entry.findings = entries_of(*findings);
  }
  return entry;
}

Status fill(const EpisodeSource& source, std::int64_t position, const Detail& detail, bool as_jpeg,
            Entry& entry) {
  const auto episode = source.open(position);
  if (!episode.ok()) {
    entry.fault = episode.status().message();
    return ok_status();
  }
  for (const Feature* feature : plotted(source.schema())) {
    if (entry.length == 0) break;
    auto plot = read_plot(**episode, *feature, detail);
    if (plot.ok()) entry.plots.push_back(std::move(plot).value());
  }
  for (const std::string& camera : source.schema().cameras()) {
    Strip strip{.camera = camera};
    if (!(*episode)->has_camera(camera)) {
      strip.fault = "not recorded";
    } else if (entry.length > 0) {
      const Status read = read_strip(**episode, camera, detail, as_jpeg, strip);
      if (read.code() == StatusCode::resource_exhausted) return read;
      if (!read.ok()) strip = {.camera = camera, .fault = std::string(read.message())};
    }
    entry.strips.push_back(std::move(strip));
  }
  return ok_status();
}

}  // namespace

namespace sheet {

Sheet::Totals Sheet::totals() const {
  Totals out;
  std::map<std::string, std::int64_t> issue_codes, finding_codes;
  for (const Entry& entry : entries) {
    if (entry.is_trashed) {
      ++out.trashed;
      continue;
    }
    ++out.episodes;
    out.frames += entry.length;
    out.seconds += entry.seconds;
    if (entry.decision.outcome == Outcome::accepted) {
      ++out.accepted;
      out.accepted_frames += entry.length;
    } else {
      ++out.rejected;
    }
    out.overrides += entry.decision.overrides_quality ? 1 : 0;
    out.undecided += entry.verdict.empty() ? 1 : 0;
    out.unchecked += entry.quality.empty() ? 1 : 0;
    out.red += entry.quality == "red" ? 1 : 0;
    std::set<std::string> seen;
    for (const QualityEntry& issue : entry.issues) {
      if (seen.insert(issue.code).second) ++issue_codes[issue.code];
    }
    for (const QualityEntry& finding : entry.findings) {
      if (seen.insert(finding.code).second) ++finding_codes[finding.code];
    }
  }
  for (const auto& codes : {issue_codes, finding_codes}) {
    std::vector<std::pair<std::string, std::int64_t>> sorted(codes.begin(), codes.end());
    std::ranges::stable_sort(sorted, std::ranges::greater(),
                             [](const auto& e) { return e.second; });
    out.codes.insert(out.codes.end(), sorted.begin(), sorted.end());
  }
  return out;
}

std::string outcome_text(const Entry& entry) {
  if (entry.is_trashed) return "trashed";
  const bool over = entry.decision.overrides_quality;
  switch (entry.decision.by) {
    case DecidedBy::pass:
      return over ? "accepted: pass over red" : "accepted: pass";
    case DecidedBy::fail:
      return over ? "rejected: fail over green" : "rejected: fail";
    case DecidedBy::red:
      return "rejected: red, not reviewed";
    case DecidedBy::clean:
      return entry.quality.empty() ? "accepted: not checked" : "accepted: green";
  }
  return "";
}

std::string duration_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

std::vector<std::array<double, 2>> marks_of(const QualityEntry& issue, std::int64_t length) {
  const double frames = static_cast<double>(std::max<std::int64_t>(1, length));
  std::vector<std::array<double, 2>> out;
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    const double from = std::clamp(static_cast<double>(begin) / frames, 0.0, 1.0);
    const double to = std::clamp(static_cast<double>(end) / frames, from, 1.0);
    out.push_back({from, to});
  };
  if (!issue.spans.empty()) {
    for (const FrameRange& span : issue.spans) add(span.begin, span.end);
  } else if (issue.first_frame && issue.last_frame) {
    add(*issue.first_frame, *issue.last_frame + 1);
  } else {
    out.push_back({0.0, 1.0});
  }
  return out;
}

std::string short_name(std::string_view name) {
  for (const std::string_view prefix : {"observation.images.", "observations.images.",
                                        "observation.", "observations.", "images."}) {
    if (name.starts_with(prefix)) return std::string(name.substr(prefix.size()));
  }
  return std::string(name);
}

}  // namespace sheet

Json ContactSheetReport::to_json() const {
  Json out;
  out.set("episodes", episodes);
  out.set("accepted", accepted);
  out.set("rejected", rejected);
  out.set("pictures", pictures);
  out.set("bytes", bytes);
  return out;
}

Result<ContactSheetReport> write_contact_sheet(const ContactSheetRequest& request,
                                               const RunContext& context) {
  const std::string ending = request.out.extension().string();
  if (ending != ".html" && ending != ".png") {
    return invalid_argument(
        fmt::format("{}: a contact sheet is written as .html or .png, not \"{}\"",
                    request.out.string(), ending));
  }
  const bool as_html = ending == ".html";
  ROPEWALK_ASSIGN_OR_RETURN(
      const auto source, open_dataset(request.path, {.pool = context.pool, .stop = context.stop}));
  std::optional<Ledger> ledger;
  if (auto opened = Ledger::open_for_read(request.path); opened.ok()) {
    ledger.emplace(std::move(opened).value());
  } else if (opened.status().reason() != "NOT_RAW_V21") {
    return std::move(opened).status();
  }

  sheet::Sheet sheet;
  const std::filesystem::path absolute = std::filesystem::absolute(request.path).lexically_normal();
  const auto named = absolute.has_filename() ? absolute : absolute.parent_path();
  sheet.title = named.filename() == "raw" && named.has_parent_path()
                    ? (named.parent_path().filename() / named.filename()).string()
                    : named.filename().string();
  sheet.format = source->format();
  sheet.robot = source->schema().robot_type;
  sheet.fps = source->schema().fps.to_double();
  sheet.has_ledger = ledger.has_value();
  sheet.revision = ledger ? ledger->revision() : 0;
  sheet.episodes_in_dataset = source->size();

  std::vector<std::int64_t> positions;
  std::set<std::int64_t> wanted;
  if (request.episodes) wanted.insert(request.episodes->begin(), request.episodes->end());
  for (std::int64_t i = 0; i < source->size(); ++i) {
    EpisodeInfo info = source->info(i);
    if (request.episodes && wanted.erase(info.index) == 0) continue;
    if (ledger) ledger->apply(info);
    positions.push_back(i);
    sheet.entries.push_back(entry_of(info, sheet.fps));
  }
  if (!wanted.empty()) {
    return not_found(fmt::format("{}: no episodes {}", request.path.string(), wanted));
  }
  if (!as_html && sheet.entries.size() > sheet::kMostPngEpisodes) {
    return invalid_argument(fmt::format(
        "{} episodes: a PNG sheet holds at most {}; name some with --episodes, or write .html",
        sheet.entries.size(), sheet::kMostPngEpisodes));
  }

  const Detail detail = detail_for(sheet.entries.size(), source->schema().cameras().size());
  Progress progress{.phase = "drawing",
                    .item = {},
                    .done = 0,
                    .total = static_cast<std::int64_t>(sheet.entries.size())};
  std::mutex mutex;
  const Status filled = parallel_for(
      context.pool, static_cast<std::int64_t>(sheet.entries.size()), [&](std::int64_t i) -> Status {
        ROPEWALK_RETURN_IF_ERROR(context.check_stop());
        const auto at = static_cast<std::size_t>(i);
        ROPEWALK_RETURN_IF_ERROR(fill(*source, positions[at], detail, as_html, sheet.entries[at]));
        const std::lock_guard lock(mutex);
        ++progress.done;
        progress.item = fmt::format("episode {}", sheet.entries[at].index);
        context.report(progress);
        return ok_status();
      });
  ROPEWALK_RETURN_IF_ERROR(filled);

  ContactSheetReport report;
  const sheet::Sheet::Totals totals = sheet.totals();
  report.episodes = static_cast<std::int64_t>(sheet.entries.size());
  report.accepted = totals.accepted;
  report.rejected = totals.rejected;
  for (const Entry& entry : sheet.entries) {
    for (const Strip& strip : entry.strips) report.pictures += strip.pictures;
  }
  Bytes png;
  std::string html;
  if (as_html) {
    html = sheet::render_html(sheet);
  } else {
    ROPEWALK_ASSIGN_OR_RETURN(png, sheet::render_png(sheet));
  }
  const ByteSpan bytes = as_html ? as_bytes(html) : ByteSpan(png);
  report.bytes = bytes.size();
  ROPEWALK_RETURN_IF_ERROR(replace_file(request.out, bytes));
  return report;
}

}  // namespace ropewalk
