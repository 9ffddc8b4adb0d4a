#include "ropewalk/engine/mcap/diff.h"

#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/engine/mcap/copy_internal.h"
#include "ropewalk/engine/mcap/inspect.h"

namespace ropewalk {
namespace {

struct Digest {
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  std::uint32_t crc_c = 0;
  auto operator<=>(const Digest&) const = default;

  void add(ByteSpan bytes) {
    size += bytes.size();
    crc = crc32(crc, bytes);
    crc_c = crc32c(crc_c, bytes);
  }
};

Digest digest(ByteSpan bytes) {
  Digest out;
  out.add(bytes);
  return out;
}

// A message without its payload. `topic` and `type` are numbers shared by both files.
struct Item {
  std::size_t topic = 0;
  std::size_t type = 0;
  std::uint32_t sequence = 0;
  std::uint64_t publish_time = 0;
  Digest data;
  auto operator<=>(const Item&) const = default;
};

class Comparison {
 public:
  Comparison(const McapDiffRequest& request, const RunContext& context, McapDiffReport& report)
      : request_(request), context_(context), report_(report) {}

  Status run();

 private:
  struct Side {
    std::optional<MessageFlow> flow;
    FlowMessage message;
    bool more = false;
    std::unordered_map<const mcap::Channel*, std::pair<std::size_t, std::size_t>> known;
    std::uint64_t pass = 0;
  };

  void note(McapDifference difference) {
    ++report_.difference_count;
    if (report_.differences.size() < request_.max_listed) {
      report_.differences.push_back(std::move(difference));
    }
  }
  std::size_t number(std::map<std::string, std::size_t>& names, const std::string& name) {
    return names.emplace(name, names.size()).first->second;
  }
  Status advance(Side& side) {
    ROPEWALK_ASSIGN_OR_RETURN(side.more, side.flow->next(side.message));
    return ok_status();
  }
  Status take_group(Side& side, std::uint64_t time, std::vector<Item>& items);
  void compare_groups(std::uint64_t time, std::vector<Item>& left, std::vector<Item>& right);
  std::string describe(const Item& a, const Item& b) const;
  void compare_named(const std::string& what, const std::vector<std::map<std::string, int>>& sides);
  Status compare_definitions(const std::vector<McapInput>& inputs, const MessageFlow& left,
                             const MessageFlow& right);

  const McapDiffRequest& request_;
  const RunContext& context_;
  McapDiffReport& report_;
  std::map<std::string, std::size_t> topics_;
  std::vector<std::string> topic_names_;
  std::map<std::string, std::size_t> types_;
  std::uint64_t compared_ = 0;
};

// What a channel means apart from its topic.
std::string type_text(const mcap::Channel& channel, const mcap::Schema* schema) {
  mcap::StringMap metadata = channel.metadata;
  std::ranges::sort(metadata);
  std::string out = channel.message_encoding + '\0';
  for (const auto& [key, value] : metadata) out += key + '\0' + value + '\0';
  if (schema != nullptr) {
    const Digest data = digest(schema->data);
    out += fmt::format("{}\n{}\n{} {} {}", schema->name, schema->encoding, data.size, data.crc,
                       data.crc_c);
  }
  return out;
}

Status Comparison::take_group(Side& side, std::uint64_t time, std::vector<Item>& items) {
  while (side.more && side.message.view.log_time == time) {
    const mcap::MessageView& view = side.message.view;
    if (side.flow->pass() != side.pass) side.known.clear();
    side.pass = side.flow->pass();
    auto known = side.known.find(view.channel);
    if (known == side.known.end()) {
      const std::size_t topic = number(topics_, view.channel->topic);
      if (topic == topic_names_.size()) topic_names_.push_back(view.channel->topic);
      const std::size_t type = number(types_, type_text(*view.channel, view.schema));
      known = side.known.emplace(view.channel, std::pair(topic, type)).first;
    }
    items.push_back({.topic = known->second.first,
                     .type = known->second.second,
                     .sequence = request_.ignore_sequence ? 0 : view.sequence,
                     .publish_time = request_.ignore_publish_time ? 0 : view.publish_time,
                     .data = digest(view.data)});
    if (++compared_ % 65'536 == 0) {
      ROPEWALK_RETURN_IF_ERROR(context_.check_stop());
      context_.report({.phase = "comparing",
                       .item = {},
                       .done = static_cast<std::int64_t>(compared_),
                       .unit = "messages"});
    }
    ROPEWALK_RETURN_IF_ERROR(advance(side));
  }
  return ok_status();
}

std::string Comparison::describe(const Item& a, const Item& b) const {
  std::vector<std::string> parts;
  if (a.type != b.type) parts.push_back("schema, encoding or channel metadata");
  if (a.sequence != b.sequence) {
    parts.push_back(fmt::format("sequence {} and {}", a.sequence, b.sequence));
  }
  if (a.publish_time != b.publish_time) {
    parts.push_back(fmt::format("publish time {} and {}", a.publish_time, b.publish_time));
  }
  if (a.data.size != b.data.size) {
    parts.push_back(fmt::format("payload of {} and {} bytes", a.data.size, b.data.size));
  } else if (a.data != b.data) {
    parts.push_back(fmt::format("payload, {} bytes each", a.data.size));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void Comparison::compare_groups(std::uint64_t time, std::vector<Item>& left,
                                std::vector<Item>& right) {
  if (left == right) {
    for (const Item& item : left) ++report_.topics[topic_names_[item.topic]].equal;
    return;
  }
  std::ranges::sort(left);
  std::ranges::sort(right);
  std::vector<Item> only_left;
  std::vector<Item> only_right;
  std::ranges::set_difference(left, right, std::back_inserter(only_left));
  std::ranges::set_difference(right, left, std::back_inserter(only_right));
  for (const Item& item : left) ++report_.topics[topic_names_[item.topic]].equal;
  for (const Item& item : only_left) --report_.topics[topic_names_[item.topic]].equal;
  // What is left over is paired by topic: both are sorted by it.
  std::size_t i = 0;
  std::size_t k = 0;
  while (i < only_left.size() || k < only_right.size()) {
    using Kind = McapDifference::Kind;
    const bool has_left = i < only_left.size();
    const bool has_right = k < only_right.size();
    if (has_left && has_right && only_left[i].topic == only_right[k].topic) {
      const std::string& name = topic_names_[only_left[i].topic];
      ++report_.topics[name].changed;
      note({Kind::changed, "message", name, time, describe(only_left[i++], only_right[k++])});
    } else if (has_left && (!has_right || only_left[i].topic < only_right[k].topic)) {
      const std::string& name = topic_names_[only_left[i].topic];
      ++report_.topics[name].only_left;
      note({Kind::only_left, "message", name, time,
            fmt::format("payload of {} bytes", only_left[i++].data.size)});
    } else {
      const std::string& name = topic_names_[only_right[k].topic];
      ++report_.topics[name].only_right;
      note({Kind::only_right, "message", name, time,
            fmt::format("payload of {} bytes", only_right[k++].data.size)});
    }
  }
}

// Both sides as texts with how often each occurs; a text is "name\0content".
void Comparison::compare_named(const std::string& what,
                               const std::vector<std::map<std::string, int>>& sides) {
  const auto missing = [&](const std::map<std::string, int>& from,
                           const std::map<std::string, int>& in) {
    std::multimap<std::string, std::string> out;  // name → content
    for (const auto& [text, count] : from) {
      const auto other = in.find(text);
      const int rest = count - (other == in.end() ? 0 : other->second);
      const std::size_t end = text.find('\0');
      for (int n = 0; n < rest; ++n) out.emplace(text.substr(0, end), text.substr(end + 1));
    }
    return out;
  };
  auto left = missing(sides[0], sides[1]);
  auto right = missing(sides[1], sides[0]);
  for (const auto& [name, content] : left) {
    const auto other = right.find(name);
    if (other == right.end()) {
      note({McapDifference::Kind::only_left, what, name, 0, content});
    } else {
      note({McapDifference::Kind::changed, what, name, 0,
            fmt::format("{} and {}", content, other->second)});
      right.erase(other);
    }
  }
  for (const auto& [name, content] : right) {
    note({McapDifference::Kind::only_right, what, name, 0, content});
  }
}

Status Comparison::compare_definitions(const std::vector<McapInput>& inputs,
                                       const MessageFlow& left, const MessageFlow& right) {
  if (inputs[0].reader.header().profile != inputs[1].reader.header().profile) {
    note({McapDifference::Kind::changed, "profile", "", 0,
          fmt::format("'{}' and '{}'", inputs[0].reader.header().profile,
                      inputs[1].reader.header().profile)});
  }
  std::vector<std::map<std::string, int>> channels(2);
  std::vector<std::map<std::string, int>> metadata(2);
  std::vector<std::map<std::string, int>> attachments(2);
  for (std::size_t side = 0; side < 2; ++side) {
    const mcap::Reader& reader = inputs[side].reader;
    const auto& topics = (side == 0 ? left : right).topics_of(0);
    for (const auto& [id, channel] : reader.channels()) {
      if (topics.has_value() && std::ranges::find(*topics, channel.topic) == topics->end()) {
        continue;
      }
      const auto schema = reader.schemas().find(channel.schema_id);
      const mcap::Schema* found = schema == reader.schemas().end() ? nullptr : &schema->second;
      const Digest type = digest(as_bytes(type_text(channel, found)));
      channels[side]
              [channel.topic + '\0' +
               fmt::format("{} {} #{:08x}{:08x}", found == nullptr ? "no schema" : found->name,
                           channel.message_encoding, type.crc, type.crc_c)] = 1;
    }
    if (request_.selection.metadata) {
      for (const mcap::MetadataIndex& index : reader.metadata()) {
        ROPEWALK_ASSIGN_OR_RETURN(const mcap::Metadata record, reader.read_metadata(index));
        mcap::StringMap sorted = record.metadata;
        std::ranges::sort(sorted);
        ++metadata[side][record.name + '\0' +
                         to_json(mcap::Metadata{record.name, sorted}).find("metadata")->dump()];
      }
    }
    if (request_.selection.attachments) {
      for (const mcap::AttachmentIndex& index : reader.attachments()) {
        Digest data;
        const Status read = reader.read_attachment(index, [&](ByteSpan bytes) {
          data.add(bytes);
          return context_.check_stop();
        });
        if (read.code() == StatusCode::cancelled) return read;
        ++attachments[side]
                     [index.name + '\0' +
                      fmt::format("{} logged {} created {} {} bytes #{:08x}{:08x}{}",
                                  index.media_type, index.log_time, index.create_time, data.size,
                                  data.crc, data.crc_c, read.ok() ? "" : " damaged")];
      }
    }
  }
  compare_named("channel", channels);
  compare_named("metadata", metadata);
  compare_named("attachment", attachments);
  return ok_status();
}

Status Comparison::run() {
  ProblemLog log;
  ROPEWALK_ASSIGN_OR_RETURN(const std::vector<McapInput> both,
                            open_inputs({request_.left, request_.right}, false, log));
  std::vector<std::vector<McapInput>> inputs(2);
  inputs[0].push_back(both[0]);
  inputs[1].push_back(both[1]);
  report_.left = both[0].name;
  report_.right = both[1].name;
  Side sides[2];
  for (std::size_t i = 0; i < 2; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(MessageFlow flow, MessageFlow::create(inputs[i], request_.selection,
                                                                    McapOrder::log_time, log));
    sides[i].flow.emplace(std::move(flow));
  }
  ROPEWALK_RETURN_IF_ERROR(compare_definitions(both, *sides[0].flow, *sides[1].flow));
  for (Side& side : sides) {
    ROPEWALK_RETURN_IF_ERROR(advance(side));
  }
  std::vector<Item> left;
  std::vector<Item> right;
  while (sides[0].more || sides[1].more) {
    std::uint64_t time = 0;
    if (sides[0].more && sides[1].more) {
      time = std::min(sides[0].message.view.log_time, sides[1].message.view.log_time);
    } else {
      time = (sides[0].more ? sides[0] : sides[1]).message.view.log_time;
    }
    left.clear();
    right.clear();
    ROPEWALK_RETURN_IF_ERROR(take_group(sides[0], time, left));
    ROPEWALK_RETURN_IF_ERROR(take_group(sides[1], time, right));
    compare_groups(time, left, right);
  }
  report_.problems = log.take();
  return ok_status();
}

std::string_view kind_name(McapDifference::Kind kind) {
  switch (kind) {
    case McapDifference::Kind::only_left:
      return "only_left";
    case McapDifference::Kind::only_right:
      return "only_right";
    case McapDifference::Kind::changed:
      return "changed";
  }
  return "changed";
}

}  // namespace

Result<McapDiffReport> diff_mcap(const McapDiffRequest& request, const RunContext& context) {
  ROPEWALK_RETURN_IF_ERROR(request.selection.validate());
  McapDiffReport report;
  Comparison comparison(request, context, report);
  ROPEWALK_RETURN_IF_ERROR(comparison.run());
  return report;
}

Json McapDiffReport::to_json() const {
  Json json = Json::object();
  json.set("left", left);
  json.set("right", right);
  json.set("equal", equal());
  json.set("difference_count", difference_count);
  Json per_topic = Json::object();
  for (const auto& [topic, counts] : topics) {
    Json entry = Json::object();
    entry.set("equal", counts.equal);
    entry.set("changed", counts.changed);
    entry.set("only_left", counts.only_left);
    entry.set("only_right", counts.only_right);
    per_topic.set(valid_utf8(topic), std::move(entry));
  }
  json.set("topics", std::move(per_topic));
  Json list = Json::array();
  for (const McapDifference& difference : differences) {
    Json entry = Json::object();
    entry.set("kind", kind_name(difference.kind));
    entry.set("what", difference.what);
    entry.set("name", valid_utf8(difference.name));
    if (difference.what == "message") entry.set("log_time", difference.log_time);
    entry.set("detail", valid_utf8(difference.detail));
    list.push_back(std::move(entry));
  }
  json.set("differences", std::move(list));
  json.set("problems", ropewalk::to_json(problems));
  return json;
}

}  // namespace ropewalk
