// MessageReader: what all orders share, and file order.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/mcap/message_reader_internal.h"

namespace ropewalk::mcap {

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
  if (query.order == Order::file && !filtered()) {
    plan.resize(segments.size());
    for (std::size_t i = 0; i < plan.size(); ++i) plan[i] = i;
    ahead.start(*map, plan);
    return;
  }
  // An index under a CRC that holds is believed where looking at every chunk would cost more than
  // reading the wanted ones. What is read is compared all the same.
  const bool believe = filtered() || map->source->mapped().empty();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (believe && segments[i].index_crc && !segments[i].index.message_index_offsets.empty()) {
      segments[i].trusted = true;
    }
    status = verify_segment(*map, segments[i], problems);
    if (!status.ok()) return;
    if (may_hold(segments[i])) plan.push_back(i);
  }
  if (query.order == Order::file) {
    ahead.start(*map, plan);
    return;
  }
  std::ranges::stable_sort(plan, [&](std::size_t a, std::size_t b) {
    const std::uint64_t key_a = first_key(segments[a]);
    const std::uint64_t key_b = first_key(segments[b]);
    if (key_a != key_b) return key_a < key_b;
    return reverse() ? a > b : a < b;
  });
  plan_depth();
  ahead.start(*map, plan);
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

std::unique_ptr<Active> MessageReader::Impl::take_spare(std::size_t segment) {
  std::unique_ptr<Active> out;
  if (spare.empty()) {
    out = std::make_unique<Active>();
  } else {
    out = std::move(spare.back());
    spare.pop_back();
  }
  out->segment = segment;
  out->chunk = segments[segment].is_chunk ? &segments[segment].index : nullptr;
  out->entries.clear();
  out->at = 0;
  out->batched = out->more = false;
  return out;
}

// --- file order

bool MessageReader::Impl::next_in_file_order(MessageView& out) {
  for (;;) {
    if (walked == nullptr) {
      if (next_planned >= plan.size()) return false;
      walked = take_spare(plan[next_planned]);
      status = ahead.take(next_planned++, walked->loaded, problems);
      if (!status.ok()) return false;
      position = 0;
    }
    const ByteSpan records = walked->loaded.records;
    const std::size_t segment = walked->segment;
    while (records.size() - position >= kRecordHeadBytes) {
      const std::size_t offset = position;
      const std::uint8_t* at = records.data() + offset;
      std::uint64_t size = 0;
      std::memcpy(&size, at + 1, sizeof size);
      if (size > records.size() - offset - kRecordHeadBytes) break;
      position = offset + kRecordHeadBytes + static_cast<std::size_t>(size);
      if (*at != static_cast<std::uint8_t>(Opcode::message)) {
        on_other(*at, {at + kRecordHeadBytes, static_cast<std::size_t>(size)}, *walked, offset);
        continue;
      }
      if (!message_at(records, offset, out)) {
        problems.push_back(
            {.kind = ProblemKind::bad_record,
             .offset = extent_of(segment).offset,
             .length = extent_of(segment).length,
             .detail = fmt::format("a Message of {} bytes at byte {} of the chunk", size, offset)});
        continue;
      }
      const Binding& binding = binding_of(out.channel_id, segment, offset);
      if (!binding.wanted || !in_time(out.log_time)) continue;
      fill_view(binding, *walked, offset, out);
      return true;
    }
    if (position < records.size()) {
      problems.push_back(
          {.kind = ProblemKind::chunk_damaged,
           .offset = extent_of(segment).offset,
           .length = extent_of(segment).length,
           .detail = fmt::format("no record bounds at byte {} of the chunk", position)});
    }
    spare.push_back(std::move(walked));
  }
}

}  // namespace ropewalk::mcap
