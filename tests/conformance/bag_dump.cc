// bag_dump PATH [--order file] [--lenient] [--definitions FOLDER] [--messages]
//
// Prints one JSON object about a bag: its channels, counts and times, for each channel the SHA-256
// over all of its messages (time as 8 bytes, little-endian, then the data), and what is wrong. With
// --messages every message as [channel, time, hexadecimal data].
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/core/json.h"
#include "ropewalk/format/bag/bag.h"

namespace {

using namespace ropewalk;
using namespace ropewalk::bag;

int fail(const Status& status) {
  fmt::print(stderr, "{}\n", status.to_string());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  ReaderOptions options;
  Query query;
  bool messages_too = false;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--order" && i + 1 < argc) {
      query.order = std::string_view(argv[++i]) == "file" ? Order::file : Order::time;
    } else if (argument == "--lenient") {
      options.lenient = true;
    } else if (argument == "--definitions" && i + 1 < argc) {
      options.definitions = argv[++i];
    } else if (argument == "--messages") {
      messages_too = true;
    } else {
      path = argument;
    }
  }
  const auto bag = BagReader::open(path, options);
  if (!bag.ok()) return fail(bag.status());
  std::vector<Sha256> digests(bag->channels().size());
  std::vector<std::uint64_t> counts(bag->channels().size());
  Json list = Json::array();
  MessageReader reader = bag->messages(query);
  for (MessageView m; reader.next(m);) {
    Bytes time;
    ByteWriter(time).write_le(m.time_ns);
    digests[m.channel_index].update(time);
    digests[m.channel_index].update(m.data);
    ++counts[m.channel_index];
    if (messages_too) {
      list.push_back(Json::Array{std::uint64_t{m.channel_index}, m.time_ns, to_hex(m.data)});
    }
  }
  if (!reader.status().ok()) return fail(reader.status());
  Json channels = Json::array();
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const Channel& c = bag->channels()[i];
    Json entry;
    entry.set("topic", c.topic);
    entry.set("type", c.type);
    entry.set("encoding", c.message_encoding);
    entry.set("schema_encoding", c.schema_encoding);
    entry.set("schema", c.schema);
    entry.set("md5sum", c.md5sum);
    entry.set("callerid", c.callerid);
    entry.set("latching", c.latching);
    entry.set("qos", c.offered_qos_profiles);
    entry.set("type_hash", c.type_hash);
    entry.set("stated", c.message_count ? Json(*c.message_count) : Json());
    entry.set("count", counts[i]);
    entry.set("sha256", digests[i].finish_hex());
    channels.push_back(std::move(entry));
  }
  Json problems = Json::array();
  for (const Problem& p : bag->problems()) problems.push_back(to_line(p));
  for (const Problem& p : reader.problems()) problems.push_back(to_line(p));
  const auto range = bag->time_range();
  Json out;
  out.set("kind", bag->kind() == BagKind::rosbag1 ? "rosbag1" : "sqlite3");
  out.set("first", range ? Json(range->first_ns) : Json());
  out.set("last", range ? Json(range->last_ns) : Json());
  out.set("channels", std::move(channels));
  out.set("problems", std::move(problems));
  if (messages_too) out.set("messages", std::move(list));
  fmt::print("{}\n", out.dump());
  return 0;
}
