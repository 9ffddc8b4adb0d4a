#include "ropewalk/engine/prove.h"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/engine/compare.h"
#include "ropewalk/engine/open.h"

namespace ropewalk {

Status prove_structure(const std::filesystem::path& half, std::string_view format,
                       const EpisodeSource& expected, const RunContext& context) {
  ROPEWALK_ASSIGN_OR_RETURN_CTX(
      const auto written,
      open_dataset(half, {.survey = true, .pool = context.pool, .stop = context.stop}),
      half.string());
  if (written->format() != format) {
    return data_loss(
        fmt::format("{}: expected format {}, found {}", half.string(), format, written->format()));
  }
  // The survey compared locators, tables and videos with one another; of our own output nothing may
  // need a repair.
  for (const Finding& finding : written->findings().entries()) {
    if (finding.severity == Severity::info) continue;
    return data_loss(fmt::format("{}: {}", half.string(), to_line(finding)));
  }
  if (written->size() != expected.size()) {
    return data_loss(fmt::format("{}: expected {} episodes, found {}", half.string(),
                                 expected.size(), written->size()));
  }
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    if (written->info(i).length != expected.info(i).length || written->info(i).index != i) {
      return data_loss(fmt::format("{}: episode {}: expected length {}, found episode {} of {}",
                                   half.string(), i, expected.info(i).length,
                                   written->info(i).index, written->info(i).length));
    }
  }
  if (format.starts_with("lerobot")) return ok_status();
  return parallel_for(context.pool, written->size(), [&](std::int64_t i) -> Status {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto episode, written->open(i),
                                  fmt::format("{}: episode {}", half.string(), i));
    // One row proves that the file opens, is complete and holds as many rows as its metadata says.
    const std::int64_t length = episode->info().length;
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto batch,
                                  episode->columns({0, std::min<std::int64_t>(1, length)}),
                                  fmt::format("{}: episode {}", half.string(), i));
    return ok_status();
  });
}

Result<ContentProof> prove_content(const std::filesystem::path& half, const EpisodeSource& source,
                                   bool all_frames, const RunContext& context) {
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto written, open_dataset(half, {}), half.string());
  ContentProof proof;
  if (written->size() != source.size()) {
    proof.findings.add({.code = "episode_count",
                        .severity = Severity::error,
                        .declared = fmt::format("{}", source.size()),
                        .found = fmt::format("{}", written->size()),
                        .decision = "export again"});
    return proof;
  }
  std::vector<std::int64_t> index_begin(static_cast<std::size_t>(source.size()) + 1, 0);
  for (std::int64_t i = 0; i < source.size(); ++i) {
    index_begin[static_cast<std::size_t>(i) + 1] =
        index_begin[static_cast<std::size_t>(i)] + source.info(i).length;
  }
  std::mutex mutex;
  Progress progress{.phase = fmt::format("verifying {}", half.filename().string()),
                    .item = {},
                    .done = 0,
                    .total = source.size()};
  const Status status = parallel_for(context.pool, source.size(), [&](std::int64_t i) -> Status {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    const auto compare = [&]() -> Result<CompareResult> {
      ROPEWALK_ASSIGN_OR_RETURN(const auto original, source.open(i));
      ROPEWALK_ASSIGN_OR_RETURN(const auto copied, written->open(i));
      return compare_episodes(*original, *copied, {i, index_begin[static_cast<std::size_t>(i)]},
                              {.all_frames = all_frames}, context);
    };
    const Result<CompareResult> result = compare();
    if (!result.ok() && result.status().code() == StatusCode::cancelled) return result.status();
    const std::lock_guard lock(mutex);
    ++proof.episodes;
    if (result.ok()) {
      proof.columns += result->columns;
      proof.frames += result->frames;
    } else {
      proof.findings.add({.code = "content_differs",
                          .severity = Severity::error,
                          .episode = i,
                          .found = std::string(result.status().message()),
                          .decision = "export again"});
    }
    ++progress.done;
    progress.item = fmt::format("episode {}", i);
    context.report(progress);
    return ok_status();
  });
  ROPEWALK_RETURN_IF_ERROR(status);
  return proof;
}

}  // namespace ropewalk
