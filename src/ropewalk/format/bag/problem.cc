#include "ropewalk/format/bag/problem.h"

#include <fmt/format.h>

#include "ropewalk/format/bag/bag_internal.h"

namespace ropewalk::bag {
namespace {

constexpr std::uint64_t kMaxEntriesPerKind = 1000;

}  // namespace

std::string_view problem_kind_name(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::unfinished:
      return "unfinished";
    case ProblemKind::truncated:
      return "truncated";
    case ProblemKind::bad_record:
      return "bad_record";
    case ProblemKind::bad_index:
      return "bad_index";
    case ProblemKind::lost_range:
      return "lost_range";
    case ProblemKind::chunk_damaged:
      return "chunk_damaged";
    case ProblemKind::chunk_cut:
      return "chunk_cut";
    case ProblemKind::unknown_compression:
      return "unknown_compression";
    case ProblemKind::limit:
      return "limit";
    case ProblemKind::index_mismatch:
      return "index_mismatch";
    case ProblemKind::unindexed:
      return "unindexed";
    case ProblemKind::unknown_channel:
      return "unknown_channel";
    case ProblemKind::missing_schema:
      return "missing_schema";
    case ProblemKind::conflicting_definition:
      return "conflicting_definition";
    case ProblemKind::database_damaged:
      return "database_damaged";
    case ProblemKind::rows_lost:
      return "rows_lost";
    case ProblemKind::message_damaged:
      return "message_damaged";
    case ProblemKind::missing_file:
      return "missing_file";
    case ProblemKind::metadata_mismatch:
      return "metadata_mismatch";
  }
  return "unknown";
}

std::string to_line(const Problem& problem) {
  std::string place = problem.file.empty() ? "" : problem.file + ": ";
  if (problem.length != 0) {
    place += fmt::format("byte {} (+{}): ", problem.offset, problem.length);
  } else if (problem.offset != 0) {
    place += fmt::format("byte {}: ", problem.offset);
  }
  return fmt::format("{}{}: {}", place, problem_kind_name(problem.kind), problem.detail);
}

void ProblemLog::add(ProblemKind kind, std::uint64_t offset, std::uint64_t length,
                     std::string detail) {
  Folded& folded = folded_[kind];
  ++folded.seen;
  if (folded.seen <= kMaxEntriesPerKind) {
    folded.last_entry = entries_.size();
    entries_.push_back({.kind = kind,
                        .file = file_,
                        .offset = offset,
                        .length = length,
                        .detail = std::move(detail)});
    return;
  }
  Problem& last = entries_[folded.last_entry];
  if (folded.seen == kMaxEntriesPerKind + 1) last.detail.clear();
  last.length = 0;
  last.detail = fmt::format("{} more of this kind, from here to byte {}",
                            folded.seen - kMaxEntriesPerKind + 1, offset);
}

void ProblemLog::append(const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) {
    add(problem.kind, problem.offset, problem.length, problem.detail);
    if (folded_[problem.kind].seen <= kMaxEntriesPerKind) entries_.back().file = problem.file;
  }
}

std::optional<std::uint64_t> BagFile::message_count() const {
  std::uint64_t sum = 0;
  for (const Channel& channel : channels) {
    if (!channel.message_count) return std::nullopt;
    sum += *channel.message_count;
  }
  return sum;
}

void BagFile::extend_range(std::int64_t first_ns, std::int64_t last_ns) {
  if (!range) {
    range = TimeRange{first_ns, last_ns};
    return;
  }
  range->first_ns = std::min(range->first_ns, first_ns);
  range->last_ns = std::max(range->last_ns, last_ns);
}

}  // namespace ropewalk::bag
