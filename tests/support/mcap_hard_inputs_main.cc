// Writes the hard MCAP inputs to a directory: mcap_hard_inputs DIR
#include <cstdio>
#include <filesystem>

#include "tests/support/mcap_hard_inputs.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: mcap_hard_inputs DIR\n");
    return 2;
  }
  const std::filesystem::path root = argv[1];
  std::filesystem::create_directories(root);
  for (const auto& input : ropewalk::mcap::mcap_hard_inputs()) {
    const auto written = ropewalk::write_new_file(root / (input.name + ".mcap"), input.file);
    if (!written.ok()) {
      std::fprintf(stderr, "%s\n", written.to_string().c_str());
      return 1;
    }
  }
  return 0;
}
