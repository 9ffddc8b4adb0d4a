// mcap_streamed_reader FILE: prints what the conformance suite expects of this kind of reader.
#include <cstdio>

#include "tests/conformance/mcap_conformance.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: mcap_streamed_reader FILE\n", stderr);
    return 2;
  }
  const auto json = ropewalk::test::streamed_records(argv[1]);
  if (!json.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], json.status().to_string().c_str());
    return 1;
  }
  std::puts(json->dump().c_str());
  return 0;
}
