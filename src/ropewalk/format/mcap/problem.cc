#include "ropewalk/format/mcap/problem.h"

#include <fmt/format.h>

namespace ropewalk::mcap {

std::string_view problem_kind_name(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::no_records:
      return "no_records";
    case ProblemKind::unfinished:
      return "unfinished";
    case ProblemKind::truncated:
      return "truncated";
    case ProblemKind::bad_record:
      return "bad_record";
    case ProblemKind::bad_footer:
      return "bad_footer";
    case ProblemKind::bad_summary:
      return "bad_summary";
    case ProblemKind::zero_run:
      return "zero_run";
    case ProblemKind::lost_range:
      return "lost_range";
    case ProblemKind::chunk_crc:
      return "chunk_crc";
    case ProblemKind::chunk_damaged:
      return "chunk_damaged";
    case ProblemKind::chunk_cut:
      return "chunk_cut";
    case ProblemKind::unknown_compression:
      return "unknown_compression";
    case ProblemKind::limit:
      return "limit";
    case ProblemKind::nested_record:
      return "nested_record";
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
    case ProblemKind::duplicate_key:
      return "duplicate_key";
    case ProblemKind::attachment_crc:
      return "attachment_crc";
    case ProblemKind::data_crc:
      return "data_crc";
    case ProblemKind::statistics_mismatch:
      return "statistics_mismatch";
    case ProblemKind::trailing_data:
      return "trailing_data";
  }
  return "unknown";
}

bool is_loss(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::truncated:
    case ProblemKind::bad_record:
    case ProblemKind::zero_run:
    case ProblemKind::lost_range:
    case ProblemKind::chunk_crc:
    case ProblemKind::chunk_damaged:
    case ProblemKind::chunk_cut:
    case ProblemKind::unknown_compression:
    case ProblemKind::limit:
    case ProblemKind::nested_record:
    case ProblemKind::attachment_crc:
      return true;
    case ProblemKind::no_records:
    case ProblemKind::unfinished:
    case ProblemKind::bad_footer:
    case ProblemKind::bad_summary:
    case ProblemKind::index_mismatch:
    case ProblemKind::unindexed:
    case ProblemKind::unknown_channel:
    case ProblemKind::missing_schema:
    case ProblemKind::conflicting_definition:
    case ProblemKind::duplicate_key:
    case ProblemKind::data_crc:
    case ProblemKind::statistics_mismatch:
    case ProblemKind::trailing_data:
      return false;
  }
  return true;
}

std::string to_line(const Problem& problem) {
  return fmt::format("byte {} (+{}): {}: {}", problem.offset, problem.length,
                     problem_kind_name(problem.kind), problem.detail);
}

}  // namespace ropewalk::mcap
