#pragma once
// Names inside and beside a pair that more than one file of this module knows.
#include <array>
#include <filesystem>
#include <string_view>

#include "ropewalk/base/core/bytes.h"

namespace ropewalk {

inline constexpr std::array<std::string_view, 2> kHalves{"accepted", "rejected"};
inline constexpr std::string_view kVerificationName = "verify.json";
inline constexpr std::string_view kVerificationTemporaryName = ".verify.json.tmp";
inline constexpr std::string_view kReceiptName = "upload_receipt.json";
/// Says who builds a stage; gone before the stage becomes visible.
inline constexpr std::string_view kOwnerName = ".owner.json";

/// Replaces `path` durably by way of `temporary`, a fixed name in the same directory, so that a
/// crash leaves at most one known left-over. The caller holds the lock under which both are
/// written.
Status replace_with_temporary(const std::filesystem::path& path, ByteSpan bytes,
                              const std::filesystem::path& temporary);

}  // namespace ropewalk
