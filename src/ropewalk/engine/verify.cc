#include "ropewalk/engine/verify.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/process.h"
#include "ropewalk/dataset/lerobot/ledger.h"
#include "ropewalk/dataset/lerobot/lerobot.h"
#include "ropewalk/engine/open.h"
#include "ropewalk/engine/subset_source.h"
#include "ropewalk/stage/publish/publish.h"

namespace ropewalk {
namespace {

using Outcome = ChecklistItem::Outcome;

void note(HalfVerification& half, std::string name, const Status& status, std::string detail) {
  half.checklist.push_back({std::move(name), status.ok() ? Outcome::passed : Outcome::failed,
                            status.ok() ? std::move(detail) : std::string(status.message())});
}

// Reads every file back and compares size and SHA-256 with the manifest.
Result<std::uint64_t> check_hashes(const Manifest& manifest, const std::filesystem::path& half,
                                   const RunContext& context) {
  std::mutex mutex;
  Progress progress{.phase = fmt::format("hashing {}", half.filename().string()),
                    .item = {},
                    .done = 0,
                    .total = static_cast<std::int64_t>(manifest.files.size()),
                    .unit = "files",
                    .bytes_total = manifest.total_bytes()};
  const auto count = static_cast<std::int64_t>(manifest.files.size());
  const Status status = parallel_for(context.pool, count, [&](std::int64_t i) -> Status {
    const WrittenFile& file = manifest.files[static_cast<std::size_t>(i)];
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto source, open_source(half / file.path), file.path);
    if (source->size() != file.size_bytes) {
      return data_loss(fmt::format("{}: expected {} bytes, found {}", file.path, file.size_bytes,
                                   source->size()));
    }
    Sha256 hash;
    Bytes block(4 << 20);
    for (std::uint64_t at = 0; at < file.size_bytes;) {
      ROPEWALK_RETURN_IF_ERROR(context.check_stop());
      const auto step =
          static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), file.size_bytes - at));
      ROPEWALK_RETURN_IF_ERROR(source->read_at(at, MutableByteSpan(block).first(step)));
      hash.update(ByteSpan(block).first(step));
      at += step;
    }
    const std::string found = hash.finish_hex();
    if (found != file.sha256) {
      return data_loss(
          fmt::format("{}: expected SHA-256 {}, found {}", file.path, file.sha256, found));
    }
    const std::lock_guard lock(mutex);
    ++progress.done;
    progress.bytes_done += file.size_bytes;
    context.report(progress);
    return ok_status();
  });
  ROPEWALK_RETURN_IF_ERROR(status);
  return manifest.total_bytes();
}

// Where the episodes that the marker names stand in the source.
Result<std::vector<std::int64_t>> source_positions(const LerobotSource& source,
                                                   const SplitMarker& marker) {
  std::vector<std::int64_t> out;
  for (const std::int64_t index : marker.source_episode_indices) {
    const auto position = source.position_of(index);
    if (!position) {
      return data_loss(fmt::format("source {} has no episode {} any more", source.name(), index));
    }
    out.push_back(*position);
  }
  return out;
}

// One value of the first feature whose name begins with `prefix`, as proof that arrays read.
ChecklistItem read_one_value(const Episode& episode, std::string_view prefix, const char* name) {
  const auto batch = episode.columns({0, 1});
  if (!batch.ok()) return {name, Outcome::failed, std::string(batch.status().message())};
  for (int i = 0; i < (*batch)->num_columns(); ++i) {
    const std::string& column = (*batch)->schema()->field(i)->name();
    if (!column.starts_with(prefix) || (*batch)->column(i)->length() == 0) continue;
    const auto scalar = (*batch)->column(i)->GetScalar(0);
    if (!scalar.ok()) return {name, Outcome::failed, scalar.status().ToString()};
    std::string text = (*scalar)->ToString();
    // Arrow names the type of a list before its values.
    if (const std::size_t values = text.rfind('['); values != std::string::npos) {
      text.erase(0, values);
    }
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return {name, Outcome::passed, fmt::format("{} = {}", column, text)};
  }
  return {name, Outcome::skipped, fmt::format("no column begins with {}", prefix)};
}

ChecklistItem read_one_frame(const Episode& episode) {
  for (const std::string& camera : episode.schema().cameras()) {
    if (!episode.has_camera(camera)) continue;
    const std::int64_t middle = episode.info().length / 2;
    const auto reader = episode.frames(camera, {middle, middle + 1});
    if (!reader.ok()) return {"frame", Outcome::failed, std::string(reader.status().message())};
    Bytes pixels((*reader)->shape().frame_bytes());
    const auto read = (*reader)->next(pixels);
    if (!read.ok()) return {"frame", Outcome::failed, std::string(read.status().message())};
    std::uint64_t sum = 0;
    for (const std::uint8_t value : pixels) sum += value;
    const FrameShape shape = (*reader)->shape();
    return {"frame", *read ? Outcome::passed : Outcome::failed,
            fmt::format("{} frame {}: {}x{}x{}, mean {:.1f}", camera, middle, shape.height,
                        shape.width, shape.channels,
                        static_cast<double>(sum) /
                            static_cast<double>(std::max<std::size_t>(1, pixels.size())))};
  }
  return {"frame", Outcome::skipped, "no cameras"};
}

std::string layout_item(const std::string& format) {
  if (format == "lerobot_v21") return "packets";
  if (format == "lerobot_v3") return "locators and packets";
  if (format == "hdf5") return "axis 0";
  return "image messages";
}

Result<HalfVerification> verify_half(const std::filesystem::path& path,
                                     const VerifyRequest& request, const RunContext& context) {
  HalfVerification half;
  half.path = path;
  ROPEWALK_ASSIGN_OR_RETURN(const Marker raw, read_marker(path));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(half.marker, split_marker_from_json(raw.json), path.string());
  const SplitMarker& marker = half.marker;
  note(half, "marker", ok_status(),
       fmt::format("{}, {}, {} source episodes, from {}", marker.subset, marker.dataset_format,
                   marker.source_episode_indices.size(), marker.source_dir));

  const auto manifest = read_manifest(path);
  if (manifest.ok()) {
    const auto hashed = check_hashes(*manifest, path, context);
    if (!hashed.ok() && hashed.status().code() == StatusCode::cancelled) return hashed.status();
    note(half, "manifest", hashed.status(),
         fmt::format("{} files, {} bytes, SHA-256 equal", manifest->files.size(),
                     hashed.ok() ? *hashed : 0));
  } else if (manifest.status().code() == StatusCode::not_found && marker.export_id.empty()) {
    half.checklist.push_back(
        {"manifest", Outcome::skipped, "written by another program, which keeps none"});
  } else {
    note(half, "manifest", manifest.status(), "");
  }

  const auto written = open_dataset(path);
  if (!written.ok()) {
    note(half, "opens", written.status(), "");
    return half;
  }
  half.episodes = (*written)->size();
  for (std::int64_t i = 0; i < (*written)->size(); ++i) half.frames += (*written)->info(i).length;
  const auto listed = static_cast<std::int64_t>(marker.source_episode_indices.size());
  note(half, "totals",
       half.episodes == listed
           ? ok_status()
           : data_loss(fmt::format("marker lists {} episodes, found {}", listed, half.episodes)),
       fmt::format("{} episodes, {} rows", half.episodes, half.frames));
  const Status structure = prove_structure(path, marker.dataset_format, **written, context);
  if (structure.code() == StatusCode::cancelled) return structure;
  note(half, layout_item(marker.dataset_format), structure, "counts, order and times hold");

  if (half.episodes > 0) {
    const auto episode = (*written)->open(0);
    if (episode.ok()) {
      half.checklist.push_back(read_one_value(**episode, "observation", "state value"));
      half.checklist.push_back(read_one_value(**episode, "action", "action value"));
      half.checklist.push_back(read_one_frame(**episode));
    } else {
      note(half, "episode 0", episode.status(), "");
    }
  }

  const std::filesystem::path source_path =
      request.against.value_or(std::filesystem::path(marker.source_dir));
  const auto source = open_lerobot(source_path, {});
  if (!source.ok()) {
    if (request.against) return source.status();
    half.checklist.push_back({"content", Outcome::skipped,
                              fmt::format("source not at hand ({}); name it with --against",
                                          source.status().message())});
    return half;
  }
  const auto positions = source_positions(**source, marker);
  if (!positions.ok()) {
    note(half, "content", positions.status(), "");
    return half;
  }
  const SubsetSource subset(**source, *positions);
  ROPEWALK_ASSIGN_OR_RETURN(const ContentProof proof,
                            prove_content(path, subset, request.full, context));
  half.findings.append(proof.findings);
  note(half, "content",
       proof.findings.has_errors() ? data_loss(to_line(proof.findings.entries().front()))
                                   : ok_status(),
       fmt::format("{} columns of {} episodes and {} decoded frames equal the source",
                   proof.columns, proof.episodes, proof.frames));
  return half;
}

}  // namespace

bool HalfVerification::passed() const {
  for (const ChecklistItem& item : checklist) {
    if (item.outcome == Outcome::failed) return false;
  }
  return !findings.has_errors();
}

bool VerifyReport::passed() const {
  for (const HalfVerification& half : halves) {
    if (!half.passed()) return false;
  }
  return !halves.empty();
}

Json VerifyReport::to_json() const {
  Json out = Json::object();
  out.set("format", format);
  out.set("result", passed() ? "passed" : "failed");
  Json list = Json::array();
  for (const HalfVerification& half : halves) {
    Json entry = Json::object();
    entry.set("path", half.path.string());
    entry.set("marker", ropewalk::to_json(half.marker));
    entry.set("episodes", half.episodes);
    entry.set("frames", half.frames);
    entry.set("result", half.passed() ? "passed" : "failed");
    Json items = Json::array();
    for (const ChecklistItem& item : half.checklist) {
      Json line = Json::object();
      line.set("name", item.name);
      line.set("outcome", item.outcome == Outcome::passed   ? "passed"
                          : item.outcome == Outcome::failed ? "failed"
                                                            : "skipped");
      line.set("detail", item.detail);
      items.push_back(std::move(line));
    }
    entry.set("checklist", std::move(items));
    entry.set("findings", half.findings.to_json());
    list.push_back(std::move(entry));
  }
  out.set("halves", std::move(list));
  out.set("recorded", recorded);
  out.set("seconds", seconds);
  return out;
}

Result<VerifyReport> verify_path(const VerifyRequest& request, const RunContext& context) {
  const auto started = std::chrono::steady_clock::now();
  VerifyReport report;
  ROPEWALK_ASSIGN_OR_RETURN(const PairPresence presence, look_at(request.path));
  std::optional<FileLock> lock;
  if (presence == PairPresence::pair) {
    ROPEWALK_ASSIGN_OR_RETURN(const PairTarget target, target_at(request.path));
    // A pair on read-only media has nobody to keep out.
    if (auto shared = lock_pair(target, FileLock::Mode::shared); shared.ok()) {
      lock.emplace(std::move(shared).value());
    } else if (shared.status().code() == StatusCode::unavailable) {
      return shared.status();
    }
    ROPEWALK_ASSIGN_OR_RETURN(const Pair pair, read_pair(request.path));
    for (const char* half : {"accepted", "rejected"}) {
      ROPEWALK_ASSIGN_OR_RETURN(HalfVerification verified,
                                verify_half(request.path / half, request, context));
      report.halves.push_back(std::move(verified));
    }
    note(report.halves.front(), "halves belong together",
         pair.mixed.empty() ? ok_status() : data_loss(pair.mixed),
         fmt::format("export {}", pair.accepted.export_id));
  } else {
    auto marker = read_marker(request.path);
    if (!marker.ok()) {
      return failed_precondition(fmt::format(
          "{}: no export pair and no half of one ({}); `ropewalk check` validates other "
          "datasets",
          request.path.string(), marker.status().message()));
    }
    ROPEWALK_ASSIGN_OR_RETURN(HalfVerification verified,
                              verify_half(request.path, request, context));
    report.halves.push_back(std::move(verified));
  }
  report.format = report.halves.front().marker.dataset_format;
  // Without the source the content is not proven: such a run is told, not kept.
  const auto compared = [](const HalfVerification& half) {
    return std::ranges::none_of(half.checklist, [](const ChecklistItem& item) {
      return item.name == "content" && item.outcome == Outcome::skipped;
    });
  };
  if (presence == PairPresence::pair && std::ranges::all_of(report.halves, compared)) {
    Verification verification{.export_id = report.halves.front().marker.export_id,
                              .verified_at = utc_now(),
                              .result = report.passed() ? "passed" : "failed"};
    verification.accepted_manifest_sha256 = manifest_sha256(request.path / "accepted").value_or("");
    verification.rejected_manifest_sha256 = manifest_sha256(request.path / "rejected").value_or("");
    for (const HalfVerification& half : report.halves) {
      for (const Finding& finding : half.findings.entries()) {
        verification.findings.push_back(to_json(finding));
      }
    }
    report.recorded = write_verification(request.path, verification).ok();
  }
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace ropewalk
