// MessageReader: messages of the segments of a file in one of three orders.
//
// Note [Order]: times are compared as keys. A key is the log time, or its complement in reverse
// order; places in the file (segment, offset) break ties and are complemented alike. So one merge
// serves both directions: segments are activated in the order of their first key, and an activated
// segment gives its messages in the order of (key, place).
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/mcap/bindings_internal.h"
#include "ropewalk/format/mcap/reader_internal.h"

namespace ropewalk::mcap {
namespace {

struct Entry {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
};

// A segment at work: its messages in order, and its bytes unless the budget took them away.
struct Active {
  std::size_t segment = 0;
  LoadedSegment loaded;
  std::vector<Entry> entries;
  std::size_t at = 0;
  bool evicted = false;

  std::uint64_t key() const { return entries[at].key; }
};

}  // namespace

struct MessageReader::Impl {
  std::shared_ptr<const FileMap> map;
  MessageQuery query;
  Status status;
  ProblemList problems;

  std::vector<Segment> segments;  // verified copies
  Bindings bindings;

  // File order.
  std::size_t next_segment = 0;
  std::unique_ptr<Active> walked;
  ChunkWalker walker{ByteSpan{}};

  // Log-time orders.
  std::vector<std::size_t> plan;  // segments by first key
  std::size_t next_planned = 0;
  std::vector<std::unique_ptr<Active>> heap;
  std::unique_ptr<Active> current;
  std::uint64_t bound = 0;  // keys below it belong to current alone
  std::vector<std::unique_ptr<Active>> spare;
  std::uint64_t held_bytes = 0;
  std::uint64_t delivered = 0;
  bool compared = false;

  bool reverse() const { return query.order == Order::reverse_log_time; }
  std::uint64_t key_of(std::uint64_t time) const { return reverse() ? ~time : time; }
  std::uint64_t first_key(const Segment& s) const {
    return key_of(reverse() ? s.index.message_end_time : s.index.message_start_time);
  }
  bool in_time(std::uint64_t time) const {
    return time >= query.begin_time && time <= query.last_time;
  }
  Extent extent_of(std::size_t segment) const {
    return {.offset = segments[segment].offset,
            .length = segments[segment].end - segments[segment].offset};
  }

  bool filtered() const {
    return query.topics.has_value() || query.begin_time != 0 ||
           query.last_time != std::numeric_limits<std::uint64_t>::max();
  }
  void compare_count();
  void start();
  bool may_hold(Segment& segment);
  void on_other(std::uint8_t opcode, ByteSpan content, const Active& active, std::uint64_t offset);
  bool read_all_definitions();
  bool deliver(Active& active, std::uint64_t offset, const Message& message, MessageView& out);
  bool next_in_file_order(MessageView& out);
  bool next_by_time(MessageView& out);
  bool activate(std::size_t segment);
  void push(std::unique_ptr<Active> active);
  std::unique_ptr<Active> take_spare(std::size_t segment);
  void keep_within_budget();
  bool emit(MessageView& out);

  // Order of the heap: the smallest (key, place) on top.
  bool later(const std::unique_ptr<Active>& a, const std::unique_ptr<Active>& b) const {
    if (a->key() != b->key()) return a->key() > b->key();
    return reverse() ? a->segment < b->segment : a->segment > b->segment;
  }
};

MessageReader::MessageReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MessageReader::MessageReader(MessageReader&&) noexcept = default;
MessageReader& MessageReader::operator=(MessageReader&&) noexcept = default;
MessageReader::~MessageReader() = default;
const Status& MessageReader::status() const { return impl_->status; }
const std::vector<Problem>& MessageReader::problems() const { return impl_->problems; }

MessageReader Reader::messages(MessageQuery query) const {
  auto impl = std::make_unique<MessageReader::Impl>();
  impl->map = map_;
  impl->query = std::move(query);
  impl->start();
  return MessageReader(std::move(impl));
}

bool MessageReader::next(MessageView& out) {
  Impl& r = *impl_;
  if (!r.status.ok()) return false;
  if (r.query.order == Order::file ? r.next_in_file_order(out) : r.next_by_time(out)) {
    ++r.delivered;
    return true;
  }
  if (r.status.ok()) r.compare_count();
  return false;
}

// Everything was asked for: it must be as many messages as the file says, unless it is told already
// what is missing.
void MessageReader::Impl::compare_count() {
  if (filtered() || !map->statistics.has_value() || compared) return;
  compared = true;
  if (map->statistics->message_count == delivered) return;
  const auto told = [](const ProblemList& list) {
    return std::ranges::any_of(list, [](const Problem& p) { return is_loss(p.kind); });
  };
  if (told(problems) || told(map->problems)) return;
  problems.push_back({.kind = ProblemKind::statistics_mismatch,
                      .offset = map->source->size(),
                      .length = 0,
                      .detail = fmt::format("{} messages stated, {} found",
                                            map->statistics->message_count, delivered)});
}

void MessageReader::Impl::start() {
  bindings.start(map->schemas, map->channels, query.topics);
  for (const std::uint16_t id : map->ambiguous_channels) bindings.mark_ambiguous(id);
  segments = map->segments;
  for (const LooseDefinition& loose : map->loose_definitions) {
    const auto next = std::ranges::upper_bound(segments, loose.offset, {}, &Segment::offset);
    const Place place{.segment = static_cast<std::size_t>(next - segments.begin()), .offset = 0};
    ProblemList told_before;
    if (loose.channel.has_value()) {
      bindings.on_channel(*loose.channel, place, {.offset = loose.offset}, told_before);
    } else {
      bindings.on_schema(*loose.schema, place, {.offset = loose.offset}, told_before);
    }
  }
  if (bindings.take_new_ambiguity() || !map->ambiguous_channels.empty()) {
    if (query.order != Order::file && !read_all_definitions()) return;
  }
  if (query.order == Order::file && !filtered()) return;
  // An index under a CRC that holds is believed where looking at every chunk would cost more than
  // reading the wanted ones. What is read is compared all the same.
  const bool believe = filtered() || map->source->mapped().empty();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (believe && segments[i].index_crc && !segments[i].index.message_index_offsets.empty()) {
      segments[i].trusted = true;
    }
    status = verify_segment(*map, segments[i], problems);
    if (!status.ok()) return;
    if (query.order != Order::file && may_hold(segments[i])) plan.push_back(i);
  }
  std::ranges::stable_sort(plan, [&](std::size_t a, std::size_t b) {
    const std::uint64_t key_a = first_key(segments[a]);
    const std::uint64_t key_b = first_key(segments[b]);
    if (key_a != key_b) return key_a < key_b;
    return reverse() ? a > b : a < b;
  });
}

// Whether the filters leave anything of a segment.
bool MessageReader::Impl::may_hold(Segment& segment) {
  const ChunkIndex& index = segment.index;
  if (!segment.trusted || segment.suspect) return true;
  if (index.message_index_offsets.empty()) return false;  // verified: it has no message
  if (index.message_end_time < query.begin_time || index.message_start_time > query.last_time) {
    return false;
  }
  if (!query.topics.has_value()) return true;
  // A channel that is not known yet may turn out to be wanted.
  return std::ranges::any_of(index.message_index_offsets,
                             [&](const auto& entry) { return bindings.may_want(entry.first); });
}

// A record of a segment that is no message.
void MessageReader::Impl::on_other(std::uint8_t opcode, ByteSpan content, const Active& active,
                                   std::uint64_t offset) {
  const std::size_t segment = active.segment;
  const Place place{.segment = segment, .offset = offset};
  if (opcode == static_cast<std::uint8_t>(Opcode::schema)) {
    bindings.on_schema(content, place, extent_of(segment), problems, !active.loaded.damaged);
  } else if (opcode == static_cast<std::uint8_t>(Opcode::channel)) {
    bindings.on_channel(content, place, extent_of(segment), problems, !active.loaded.damaged);
  } else if (opcode <= static_cast<std::uint8_t>(Opcode::data_end)) {
    problems.push_back({.kind = ProblemKind::nested_record,
                        .offset = extent_of(segment).offset,
                        .length = extent_of(segment).length,
                        .detail = fmt::format("{} at byte {} of the chunk is not entered",
                                              opcode_name(opcode), offset)});
  }
}

// One id means several things, and chunks are not read in the order of the file: all definitions
// are met in that order once. Returns false when the source fails.
bool MessageReader::Impl::read_all_definitions() {
  ProblemList ignored;
  LoadedSegment loaded;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!segments[i].is_chunk) continue;
    status = load_segment(*map, map->segments[i], loaded, ignored);
    if (!status.ok()) return false;
    ChunkWalker records(loaded.records);
    std::uint8_t opcode = 0;
    ByteSpan content;
    for (std::uint64_t offset = 0; records.next(opcode, content); offset = records.position()) {
      const Place place{.segment = i, .offset = offset};
      if (opcode == static_cast<std::uint8_t>(Opcode::schema)) {
        bindings.on_schema(content, place, extent_of(i), ignored, !loaded.damaged);
      } else if (opcode == static_cast<std::uint8_t>(Opcode::channel)) {
        bindings.on_channel(content, place, extent_of(i), ignored, !loaded.damaged);
      }
    }
  }
  static_cast<void>(bindings.take_new_ambiguity());
  return true;
}

bool MessageReader::Impl::deliver(Active& active, std::uint64_t offset, const Message& message,
                                  MessageView& out) {
  const Binding& binding =
      bindings.of(message.channel_id, {.segment = active.segment, .offset = offset},
                  extent_of(active.segment), problems);
  if (!binding.wanted) return false;
  static_cast<Message&>(out) = message;
  out.channel = binding.channel;
  out.schema = binding.schema_or_null();
  out.verified = active.loaded.verified;
  out.chunk = segments[active.segment].is_chunk ? &segments[active.segment].index : nullptr;
  out.place = {.log_time = message.log_time,
               .offset = offset,
               .segment = static_cast<std::uint32_t>(active.segment),
               .channel_id = message.channel_id};
  return true;
}

// --- file order

bool MessageReader::Impl::next_in_file_order(MessageView& out) {
  for (;;) {
    if (walked == nullptr) {
      while (next_segment < segments.size() && !may_hold(segments[next_segment])) ++next_segment;
      if (next_segment >= segments.size()) return false;
      walked = take_spare(next_segment++);
      status = load_segment(*map, map->segments[walked->segment], walked->loaded, problems);
      if (!status.ok()) return false;
      walker = ChunkWalker(walked->loaded.records);
    }
    const Segment& segment = segments[walked->segment];
    std::uint8_t opcode = 0;
    ByteSpan content;
    std::uint64_t offset = walker.position();
    while (walker.next(opcode, content)) {
      if (opcode == static_cast<std::uint8_t>(Opcode::message)) {
        Message message;
        if (!message_at(walked->loaded.records, offset, message)) {
          problems.push_back({.kind = ProblemKind::bad_record,
                              .offset = segment.offset,
                              .length = segment.end - segment.offset,
                              .detail = fmt::format("a Message of {} bytes at byte {} of the chunk",
                                                    content.size(), offset)});
        } else if (in_time(message.log_time) && deliver(*walked, offset, message, out)) {
          return true;
        }
      } else {
        on_other(opcode, content, *walked, offset);
      }
      offset = walker.position();
    }
    if (Status end = walker.status(); !end.ok()) {
      problems.push_back({.kind = ProblemKind::chunk_damaged,
                          .offset = segment.offset,
                          .length = segment.end - segment.offset,
                          .detail = std::string(end.message())});
    }
    spare.push_back(std::move(walked));
  }
}

// --- log-time orders

std::unique_ptr<Active> MessageReader::Impl::take_spare(std::size_t segment) {
  std::unique_ptr<Active> out;
  if (spare.empty()) {
    out = std::make_unique<Active>();
  } else {
    out = std::move(spare.back());
    spare.pop_back();
  }
  out->segment = segment;
  out->entries.clear();
  out->at = 0;
  out->evicted = false;
  return out;
}

void MessageReader::Impl::push(std::unique_ptr<Active> active) {
  heap.push_back(std::move(active));
  std::ranges::push_heap(heap, [&](const auto& a, const auto& b) { return later(a, b); });
}

// Loads a segment and lists its messages in order. Returns false when the source fails.
bool MessageReader::Impl::activate(std::size_t number) {
  std::unique_ptr<Active> active = take_spare(number);
  const Segment& segment = segments[number];
  status = load_segment(*map, map->segments[number], active->loaded, problems);
  if (!status.ok()) return false;
  ChunkWalker records(active->loaded.records);
  std::uint8_t opcode = 0;
  ByteSpan content;
  bool sorted = true;
  std::uint64_t bad_messages = 0;
  const auto before = [&](const Entry& a, const Entry& b) {
    if (a.key != b.key) return a.key < b.key;
    return reverse() ? a.offset > b.offset : a.offset < b.offset;
  };
  for (std::uint64_t offset = 0; records.next(opcode, content); offset = records.position()) {
    if (opcode == static_cast<std::uint8_t>(Opcode::message)) {
      Message message;
      if (!message_at(active->loaded.records, offset, message)) {
        ++bad_messages;
        continue;
      }
      if (!in_time(message.log_time)) continue;
      const Place place{.segment = number, .offset = offset};
      if (!bindings.of(message.channel_id, place, extent_of(number), problems).wanted) continue;
      const Entry entry{.key = key_of(message.log_time), .offset = offset};
      if (!active->entries.empty() && !before(active->entries.back(), entry)) sorted = false;
      active->entries.push_back(entry);
    } else {
      on_other(opcode, content, *active, offset);
    }
  }
  Status end = records.status();
  if (!end.ok() || bad_messages > 0) {
    problems.push_back({.kind = ProblemKind::chunk_damaged,
                        .offset = segment.offset,
                        .length = segment.end - segment.offset,
                        .detail = end.ok() ? fmt::format("{} messages too short", bad_messages)
                                           : std::string(end.message())});
  }
  if (bindings.take_new_ambiguity() && !read_all_definitions()) return false;
  if (active->entries.empty()) {
    spare.push_back(std::move(active));
    return true;
  }
  if (!sorted) std::ranges::sort(active->entries, before);
  if (active->key() < first_key(segment)) {
    problems.push_back({.kind = ProblemKind::index_mismatch,
                        .offset = segment.offset,
                        .length = segment.end - segment.offset,
                        .detail = "it holds messages outside the times its indexes give; they may "
                                  "come out of order"});
  }
  held_bytes += active->loaded.bytes_held();
  push(std::move(active));
  keep_within_budget();
  return true;
}

// Takes the bytes of the segments that are needed last; they are loaded again when their turn
// comes.
void MessageReader::Impl::keep_within_budget() {
  while (held_bytes > map->options.cache_bytes && heap.size() > 1) {
    Active* last = nullptr;
    for (const auto& active : heap) {
      if (active->evicted || active->loaded.bytes_held() == 0) continue;
      if (last == nullptr || active->key() > last->key()) last = active.get();
    }
    if (last == nullptr || last == heap.front().get()) return;
    held_bytes -= last->loaded.bytes_held();
    last->loaded = {};
    last->evicted = true;
  }
}

bool MessageReader::Impl::emit(MessageView& out) {
  if (current->evicted) {
    ProblemList told_before;
    status = load_segment(*map, map->segments[current->segment], current->loaded, told_before);
    if (!status.ok()) return false;
    current->evicted = false;
    held_bytes += current->loaded.bytes_held();
    keep_within_budget();
  }
  const std::uint64_t offset = current->entries[current->at++].offset;
  Message message;
  if (!message_at(current->loaded.records, offset, message)) {
    status = data_loss(fmt::format("{}: byte {}: the file changed while it was read",
                                   map->source->name(), segments[current->segment].offset));
    return false;
  }
  // The same bytes passed the filter when the segment was activated.
  static_cast<void>(deliver(*current, offset, message, out));
  return true;
}

bool MessageReader::Impl::next_by_time(MessageView& out) {
  if (current != nullptr) {
    if (current->at < current->entries.size()) {
      if (current->key() < bound) return emit(out);
      push(std::move(current));
    } else {
      held_bytes -= current->loaded.bytes_held();
      spare.push_back(std::move(current));
    }
  }
  for (;;) {
    const bool pending = next_planned < plan.size();
    if (pending &&
        (heap.empty() || first_key(segments[plan[next_planned]]) <= heap.front()->key())) {
      if (!activate(plan[next_planned++])) return false;
      continue;
    }
    if (heap.empty()) return false;
    std::ranges::pop_heap(heap, [&](const auto& a, const auto& b) { return later(a, b); });
    current = std::move(heap.back());
    heap.pop_back();
    bound = std::numeric_limits<std::uint64_t>::max();
    if (!heap.empty()) bound = std::min(bound, heap.front()->key());
    if (pending) bound = std::min(bound, first_key(segments[plan[next_planned]]));
    return emit(out);
  }
}

}  // namespace ropewalk::mcap
