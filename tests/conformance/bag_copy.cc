// bag_copy FROM TO [--compression none|lz4|bz2] [--chunk-bytes N] [--max-file-bytes N]
//
// Writes the messages of a bag, in time order, as a new one of the same kind: a .bag, or a
// directory of .db3 files.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "ropewalk/format/bag/bag.h"

namespace {

using namespace ropewalk;
using namespace ropewalk::bag;

template <typename Writer>
Status copy(const BagReader& bag, Writer writer) {
  std::vector<std::uint32_t> ids;
  for (const Channel& channel : bag.channels()) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t id, writer.add_channel(channel));
    ids.push_back(id);
  }
  MessageReader messages = bag.messages();
  for (MessageView m; messages.next(m);) {
    ROPEWALK_RETURN_IF_ERROR(writer.write(ids[m.channel_index], m.time_ns, m.data));
  }
  ROPEWALK_RETURN_IF_ERROR(messages.status());
  return writer.finish();
}

Status run(int argc, char** argv) {
  if (argc < 3) return invalid_argument("bag_copy FROM TO [options]");
  Rosbag1WriterOptions first;
  Rosbag2WriterOptions second{.ros_distro = "jazzy"};
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::string_view value = argv[i + 1];
    if (option == "--compression") {
      first.compression = compression_from_name(value).value_or(Compression::none);
    } else if (option == "--chunk-bytes") {
      first.chunk_bytes = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (option == "--max-file-bytes") {
      second.max_file_bytes = std::strtoull(argv[i + 1], nullptr, 10);
    }
  }
  ROPEWALK_ASSIGN_OR_RETURN(const BagReader bag, BagReader::open(argv[1]));
  if (bag.kind() == BagKind::rosbag1) {
    ROPEWALK_ASSIGN_OR_RETURN(Rosbag1Writer writer, Rosbag1Writer::create(argv[2], first));
    return copy(bag, std::move(writer));
  }
  ROPEWALK_ASSIGN_OR_RETURN(Rosbag2Writer writer, Rosbag2Writer::create(argv[2], second));
  return copy(bag, std::move(writer));
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc, argv);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.to_string());
  return 1;
}
