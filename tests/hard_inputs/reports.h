#pragma once
// The cases of the hard inputs H01 to H20: what is written, and the report that is expected in both
// modes, which lies beside the tests in expected/<name>.txt.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ropewalk::test {

struct HardInput {
  std::string name;
  /// Writes the dataset; returns false when a tool it needs is not there.
  std::function<bool(const std::filesystem::path& root)> write;
};

/// H01 to H07, H08 to H14, H15 to H20.
std::vector<HardInput> metadata_inputs();
std::vector<HardInput> content_inputs();
std::vector<HardInput> file_inputs();

}  // namespace ropewalk::test
