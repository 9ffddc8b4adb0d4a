#pragma once
// Definitions of messages: found in a folder with all they need, and the MD5 of ROS 1 types.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ropewalk/base/core/result.h"

namespace ropewalk::bag {

struct Definition {
  std::string encoding;  ///< "ros2msg" or "ros2idl"
  std::string text;      ///< the definition and, after separators, every one that it needs
};

/// Finds `type` (`pkg/msg/Type` or `pkg/Type`) below `folder`: `pkg/msg/Type.msg`,
/// `share/pkg/msg/Type.msg`, or one directory deeper, as in a checkout; `.idl` where there is no
/// `.msg`. Returns nullopt when the type or one it needs is not there.
/// Errors: invalid_argument for what is no type; resource_exhausted above 16 MiB or 1000 types.
Result<std::optional<Definition>> find_definition(const std::filesystem::path& folder,
                                                  std::string_view type);

/// Computes the MD5 by which ROS 1 knows a type, from its text and those of the types it needs.
/// Errors: invalid_argument for a text that is no definition; not_found naming a type that is
/// needed and not in the text. Spec: ROS wiki, Technical Overview, "Message serialization and msg
/// MD5 sums".
Result<std::string> ros1_md5(std::string_view type, std::string_view definition);

}  // namespace ropewalk::bag
