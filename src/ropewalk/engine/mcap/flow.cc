// MessageFlow: the selected messages of several inputs as one stream.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/engine/mcap/copy_internal.h"

namespace ropewalk {
namespace {

struct OwnMessage {
  mcap::MessageHead head;
  Bytes data;
  mcap::Channel channel;
  std::optional<mcap::Schema> schema;
  std::size_t input = 0;
};

}  // namespace

struct MessageFlow::Impl {
  const std::vector<McapInput>* inputs = nullptr;
  const McapSelection* selection = nullptr;
  McapOrder order = McapOrder::preserve;
  ProblemLog* log = nullptr;
  std::vector<std::optional<std::vector<std::string>>> topics;  // by input

  std::deque<OwnMessage> latched;  // by log time
  std::size_t next_latched = 0;

  std::vector<std::string> passes;  // topics still to come, in topic order
  std::size_t next_pass = 0;
  std::uint64_t pass = 0;

  struct Lane {
    std::size_t input = 0;
    mcap::MessageReader reader;
    mcap::MessageView view;
  };
  std::vector<Lane> lanes;  // a heap by time in merged orders; else in turn, last first
  bool merged = false;
  bool advance_front = false;

  static bool later(const Lane& a, const Lane& b) {
    if (a.view.log_time != b.view.log_time) return a.view.log_time > b.view.log_time;
    return a.input > b.input;
  }

  mcap::MessageQuery query(std::size_t input, mcap::Order by) const {
    return {.order = by,
            .begin_time = selection->begin_time,
            .last_time = selection->last_time(),
            .topics = topics[input]};
  }
  // Takes what a lane met; returns its status.
  Status close(Lane& lane) {
    log->add((*inputs)[lane.input].name, lane.reader.problems());
    return lane.reader.status().with_context((*inputs)[lane.input].name);
  }
  Status start_lanes(const std::optional<std::string>& only_topic);
  Status collect_latched(const TopicFilter& last);
  Result<bool> next_from_lanes(FlowMessage& out);
  Result<bool> next_in_turn(FlowMessage& out);
  Result<bool> next_merged(FlowMessage& out);
  bool take_latched(FlowMessage& out, const std::optional<std::string>& only_topic);
};

// Finds the last message before the range for each channel that `last` names.
Status MessageFlow::Impl::collect_latched(const TopicFilter& last) {
  if (selection->begin_time == 0) return ok_status();
  for (std::size_t input = 0; input < inputs->size(); ++input) {
    const mcap::Reader& reader = (*inputs)[input].reader;
    std::vector<std::string> wanted;
    std::set<std::string> open_topics;
    std::set<std::uint16_t> open_channels;
    for (const auto& [id, channel] : reader.channels()) {
      const auto& allowed = topics[input];
      if (allowed.has_value() && std::ranges::find(*allowed, channel.topic) == allowed->end()) {
        continue;
      }
      ROPEWALK_ASSIGN_OR_RETURN(const bool matches, last.matches(channel.topic));
      if (!matches) continue;
      if (open_topics.insert(channel.topic).second) wanted.push_back(channel.topic);
      open_channels.insert(id);
    }
    if (wanted.empty()) continue;
    mcap::MessageReader messages = reader.messages({.order = mcap::Order::reverse_log_time,
                                                    .begin_time = 0,
                                                    .last_time = selection->begin_time - 1,
                                                    .topics = wanted});
    for (mcap::MessageView m; !open_channels.empty() && messages.next(m);) {
      if (open_channels.erase(m.channel_id) == 0) continue;
      latched.push_back({.head = m,
                         .data = Bytes(m.data.begin(), m.data.end()),
                         .channel = *m.channel,
                         .schema = m.schema == nullptr ? std::optional<mcap::Schema>() : *m.schema,
                         .input = input});
    }
    log->add((*inputs)[input].name, messages.problems());
    ROPEWALK_RETURN_IF_ERROR(messages.status().with_context((*inputs)[input].name));
  }
  std::ranges::stable_sort(latched, {}, [](const OwnMessage& m) { return m.head.log_time; });
  return ok_status();
}

Status MessageFlow::Impl::start_lanes(const std::optional<std::string>& only_topic) {
  ++pass;
  next_latched = 0;
  advance_front = false;
  lanes.clear();
  merged = order != McapOrder::preserve;
  for (std::size_t input = 0; input < inputs->size(); ++input) {
    mcap::MessageQuery wanted = query(input, merged ? mcap::Order::log_time : mcap::Order::file);
    if (only_topic.has_value()) {
      // A topic of no known channel may still be that of messages whose channel is lost.
      if ((*inputs)[input].reader.channels_of(*only_topic).empty() &&
          !only_topic->starts_with("unknown/")) {
        continue;
      }
      wanted.topics = std::vector<std::string>{*only_topic};
    }
    lanes.push_back({.input = input,
                     .reader = (*inputs)[input].reader.messages(std::move(wanted)),
                     .view = {}});
  }
  if (!merged) {
    std::ranges::reverse(lanes);
    return ok_status();
  }
  for (std::size_t i = 0; i < lanes.size();) {
    if (lanes[i].reader.next(lanes[i].view)) {
      ++i;
      continue;
    }
    ROPEWALK_RETURN_IF_ERROR(close(lanes[i]));
    lanes.erase(lanes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::ranges::make_heap(lanes, later);
  return ok_status();
}

bool MessageFlow::Impl::take_latched(FlowMessage& out,
                                     const std::optional<std::string>& only_topic) {
  while (next_latched < latched.size()) {
    const OwnMessage& own = latched[next_latched++];
    if (only_topic.has_value() && own.channel.topic != *only_topic) continue;
    static_cast<mcap::MessageHead&>(out.view) = own.head;
    out.view.data = own.data;
    out.view.channel = &own.channel;
    out.view.schema = own.schema.has_value() ? &*own.schema : nullptr;
    out.view.verified = mcap::Verified::checked;
    out.input = own.input;
    return true;
  }
  return false;
}

Result<bool> MessageFlow::Impl::next_in_turn(FlowMessage& out) {
  while (!lanes.empty()) {
    Lane& lane = lanes.back();
    if (lane.reader.next(out.view)) {
      out.input = lane.input;
      return true;
    }
    ROPEWALK_RETURN_IF_ERROR(close(lane));
    lanes.pop_back();
    ++pass;
  }
  return false;
}

Result<bool> MessageFlow::Impl::next_merged(FlowMessage& out) {
  if (advance_front) {
    advance_front = false;
    // With one lane left the heap has nothing to say.
    std::ranges::pop_heap(lanes, later);
    Lane& lane = lanes.back();
    if (lane.reader.next(lane.view)) {
      std::ranges::push_heap(lanes, later);
    } else {
      ROPEWALK_RETURN_IF_ERROR(close(lane));
      lanes.pop_back();
      ++pass;
    }
  }
  if (lanes.empty()) return false;
  out.view = lanes.front().view;
  out.input = lanes.front().input;
  advance_front = true;
  return true;
}

Result<bool> MessageFlow::Impl::next_from_lanes(FlowMessage& out) {
  return merged ? next_merged(out) : next_in_turn(out);
}

MessageFlow::MessageFlow(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MessageFlow::MessageFlow(MessageFlow&&) noexcept = default;
MessageFlow::~MessageFlow() = default;
std::uint64_t MessageFlow::pass() const { return impl_->pass; }
const std::optional<std::vector<std::string>>& MessageFlow::topics_of(std::size_t input) const {
  return impl_->topics[input];
}

Result<MessageFlow> MessageFlow::create(const std::vector<McapInput>& inputs,
                                        const McapSelection& selection, McapOrder order,
                                        ProblemLog& log,
                                        const std::optional<std::vector<std::string>>& only) {
  ROPEWALK_RETURN_IF_ERROR(selection.validate());
  ROPEWALK_ASSIGN_OR_RETURN(
      const TopicFilter filter,
      TopicFilter::create(selection.include_topics, selection.exclude_topics));
  auto impl = std::make_unique<Impl>();
  impl->inputs = &inputs;
  impl->selection = &selection;
  impl->order = order;
  impl->log = &log;
  std::set<std::string> all_topics;
  for (const McapInput& input : inputs) {
    ROPEWALK_ASSIGN_OR_RETURN(auto topics, selected_topics(input.reader, filter));
    if (only.has_value()) {
      if (!topics.has_value()) topics = only;
      std::erase_if(*topics, [&](const std::string& topic) {
        return std::ranges::find(*only, topic) == only->end();
      });
    }
    for (const auto& [id, channel] : input.reader.channels()) {
      if (!topics.has_value()) all_topics.insert(channel.topic);
    }
    if (!topics.has_value() && order == McapOrder::topic) {
      for (const mcap::ChunkIndex& chunk : input.reader.chunks()) {
        for (const auto& [id, offset] : chunk.message_index_offsets) {
          if (!input.reader.channels().contains(id)) {
            all_topics.insert(fmt::format("unknown/{}", id));
          }
        }
      }
    }
    if (topics.has_value()) all_topics.insert(topics->begin(), topics->end());
    impl->topics.push_back(std::move(topics));
  }
  if (!selection.last_per_channel.empty()) {
    ROPEWALK_ASSIGN_OR_RETURN(const TopicFilter last,
                              TopicFilter::create(selection.last_per_channel, {}));
    ROPEWALK_RETURN_IF_ERROR(impl->collect_latched(last));
  }
  if (order == McapOrder::topic) {
    impl->passes.assign(all_topics.begin(), all_topics.end());
  } else {
    ROPEWALK_RETURN_IF_ERROR(impl->start_lanes(std::nullopt));
  }
  return MessageFlow(std::move(impl));
}

Result<bool> MessageFlow::next(FlowMessage& out) {
  Impl& flow = *impl_;
  if (flow.order != McapOrder::topic) {
    if (flow.take_latched(out, std::nullopt)) return true;
    return flow.next_from_lanes(out);
  }
  while (true) {
    if (flow.next_pass > 0) {
      if (flow.take_latched(out, flow.passes[flow.next_pass - 1])) return true;
      ROPEWALK_ASSIGN_OR_RETURN(const bool more, flow.next_from_lanes(out));
      if (more) return true;
    }
    if (flow.next_pass == flow.passes.size()) return false;
    ROPEWALK_RETURN_IF_ERROR(flow.start_lanes(flow.passes[flow.next_pass++]));
  }
}

}  // namespace ropewalk
