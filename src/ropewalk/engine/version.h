#pragma once
// The version of this build, as it stands in files we write and in `ropewalk --version`.
namespace ropewalk {

/// For example "0.1.0".
const char* version();

}  // namespace ropewalk
