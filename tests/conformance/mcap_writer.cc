// mcap_writer FILE.json: writes the MCAP file that the records describe to standard output.
#include <cstdio>

#include "tests/conformance/mcap_conformance.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: mcap_writer FILE.json\n", stderr);
    return 2;
  }
  const auto document = ropewalk::test::read_json_file(argv[1]);
  if (!document.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], document.status().to_string().c_str());
    return 1;
  }
  const auto bytes = ropewalk::test::write_records(*document);
  if (!bytes.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], bytes.status().to_string().c_str());
    return 1;
  }
  return std::fwrite(bytes->data(), 1, bytes->size(), stdout) == bytes->size() ? 0 : 1;
}
