#pragma once
// MCAP files that other readers lose or misread: the twenty groups of hard inputs of Ropewalk's
// MCAP page, section 9, made from code, small and the same every time.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/format/mcap/mcap.h"

#include "tests/support/mcap_files.h"

namespace ropewalk::mcap {

struct ExpectedProblem {
  ProblemKind kind = ProblemKind::unfinished;
  std::optional<std::uint64_t> offset;
  std::optional<std::uint64_t> length;
};

struct HardInput {
  int group = 0;     ///< 1 to 20
  std::string name;  ///< "03-cut-zstd-50"
  Bytes file;
  bool opens = true;  ///< else Reader::open refuses it
  /// What strict reading delivers, in file order. A prefix, where only the least is known.
  std::vector<TestMessage> messages;
  bool prefix = false;
  std::vector<ExpectedProblem> problems;  ///< each of these is told
  bool recovers = true;
  bool loses = false;  ///< recovery reports loss
};

std::vector<HardInput> mcap_hard_inputs();

}  // namespace ropewalk::mcap
