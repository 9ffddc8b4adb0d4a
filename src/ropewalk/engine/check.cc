#include "ropewalk/engine/check.h"

#include <mutex>

#include <arrow/record_batch.h>
#include <fmt/format.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/engine/open.h"

namespace ropewalk {
namespace {

// Reads every column and, when asked, every picture of a dataset in one of our export layouts.
Result<CheckReport> check_by_reading(const std::filesystem::path& path, const CheckOptions& options,
                                     const RunContext& context) {
  CheckReport report;
  const auto opened = open_dataset(path, {.strict = options.strict});
  if (!opened.ok()) {
    report.findings.add({.code = "unreadable",
                         .severity = Severity::error,
                         .found = std::string(opened.status().message()),
                         .decision = "refused"});
    return report;
  }
  const EpisodeSource& source = **opened;
  report.format = source.format();
  report.listed = source.size();
  report.findings.append(source.findings());
  std::mutex mutex;
  Progress progress{.phase = "checking", .item = {}, .done = 0, .total = source.size()};
  const auto read = [&](std::int64_t i, std::int64_t& decoded) -> Status {
    ROPEWALK_ASSIGN_OR_RETURN(const auto episode, source.open(i));
    const std::int64_t length = episode->info().length;
    ROPEWALK_ASSIGN_OR_RETURN(const auto batch, episode->columns({0, length}));
    if (batch->num_rows() != length) {
      return data_loss(fmt::format("expected {} rows, found {}", length, batch->num_rows()));
    }
    if (!options.decode) return ok_status();
    for (const std::string& camera : source.schema().cameras()) {
      if (!episode->has_camera(camera)) continue;
      ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto reader, episode->frames(camera, {0, length}),
                                    camera);
      Bytes pixels(reader->shape().frame_bytes());
      for (std::int64_t frame = 0; frame < length; ++frame) {
        ROPEWALK_RETURN_IF_ERROR(context.check_stop());
        ROPEWALK_ASSIGN_OR_RETURN_CTX(const bool more, reader->next(pixels), camera);
        if (!more)
          return data_loss(fmt::format("{}: ends at frame {} of {}", camera, frame, length));
        ++decoded;
      }
    }
    return ok_status();
  };
  const Status done = parallel_for(context.pool, source.size(), [&](std::int64_t i) -> Status {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    std::int64_t decoded = 0;
    const Status status = read(i, decoded);
    if (status.code() == StatusCode::cancelled) return status;
    const std::lock_guard lock(mutex);
    report.decoded += decoded;
    if (status.ok()) {
      ++report.episodes;
      report.frames += source.info(i).length;
    } else {
      report.findings.add({.code = "episode_unreadable",
                           .severity = Severity::error,
                           .episode = i,
                           .found = std::string(status.message()),
                           .decision = "export it again"});
    }
    ++progress.done;
    context.report(progress);
    return ok_status();
  });
  ROPEWALK_RETURN_IF_ERROR(done);
  return report;
}

}  // namespace

Result<CheckReport> check_path(const std::filesystem::path& path, const CheckOptions& options,
                               const RunContext& context) {
  const auto kind = identify(path);
  if (!kind.ok()) {
    if (kind.status().code() == StatusCode::not_found && !std::filesystem::exists(path)) {
      return kind.status();
    }
    return check_dataset(path, options, context);
  }
  switch (*kind) {
    case PathKind::lerobot_v20:
    case PathKind::lerobot_v21:
    case PathKind::lerobot_v3:
      return check_dataset(path, options, context);
    case PathKind::hdf5_dataset:
    case PathKind::mcap_dataset:
    case PathKind::hdf5_episode:
    case PathKind::mcap_episode:
      return check_by_reading(path, options, context);
    case PathKind::export_pair: {
      ROPEWALK_ASSIGN_OR_RETURN(CheckReport report,
                                check_path(path / "accepted", options, context));
      ROPEWALK_ASSIGN_OR_RETURN(const CheckReport other,
                                check_path(path / "rejected", options, context));
      report.episodes += other.episodes;
      report.listed += other.listed;
      report.frames += other.frames;
      report.decoded += other.decoded;
      report.findings.append(other.findings);
      return report;
    }
  }
  return internal("unknown kind of path");
}

}  // namespace ropewalk
