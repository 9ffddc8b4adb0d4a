// The log-time orders of a MessageReader: see Note [Order].
//
// Note [Batches]: where the segments that overlap do not fit the budget, those needed last are
// shrunk: copies of their next messages stay, as many as their share of the budget holds, and the
// rest is decoded again when these are used up. So a message is decoded a bounded number of times,
// however the segments interleave.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/mcap/message_reader_internal.h"

namespace ropewalk::mcap {
namespace {

// Below this a share is not worth decoding a segment again.
constexpr std::uint64_t kLeastShareBytes = 16ULL << 10;

}  // namespace

void MessageReader::Impl::plan_depth() {
  // Ends that come before the next start free their segment; `plan` is sorted by starts.
  std::vector<std::uint64_t> ends;
  for (const std::size_t i : plan) {
    const std::uint64_t start = first_key(segments[i]);
    while (!ends.empty() && ends.front() < start) {
      std::ranges::pop_heap(ends, std::greater<>());
      ends.pop_back();
    }
    ends.push_back(last_key(segments[i]));
    std::ranges::push_heap(ends, std::greater<>());
    depth = std::max<std::uint64_t>(depth, ends.size());
  }
}

void MessageReader::Impl::push(std::unique_ptr<Active> active) {
  heap.push_back(std::move(active));
  std::ranges::push_heap(heap, [&](const auto& a, const auto& b) { return later(a, b); });
}

// Lists the wanted messages of a loaded segment in order; all of them the first time, later those
// behind the last one of the batch.
bool MessageReader::Impl::list_messages(Active& active, bool first_time) {
  const std::size_t segment = active.segment;
  const ByteSpan records = active.loaded.records;
  bool sorted = true;
  std::uint64_t bad_messages = 0;
  std::size_t cursor = 0;
  active.entries.clear();
  active.at = 0;
  const bool all_times =
      query.begin_time == 0 && query.last_time == std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t flip = reverse() ? ~std::uint64_t{0} : 0;
  std::uint64_t last_listed = 0;
  while (records.size() - cursor >= kRecordHeadBytes) {
    const std::size_t offset = cursor;
    const std::uint8_t* at = records.data() + offset;
    std::uint64_t size = 0;
    std::memcpy(&size, at + 1, sizeof size);
    if (size > records.size() - offset - kRecordHeadBytes) break;
    cursor = offset + kRecordHeadBytes + static_cast<std::size_t>(size);
    if (*at != static_cast<std::uint8_t>(Opcode::message)) {
      if (first_time) {
        on_other(*at, {at + kRecordHeadBytes, static_cast<std::size_t>(size)}, active, offset);
      }
      continue;
    }
    if (size < kMessageHeadBytes) {
      ++bad_messages;
      continue;
    }
    std::uint16_t id = 0;
    std::uint64_t time = 0;
    std::memcpy(&id, at + kRecordHeadBytes, sizeof id);
    std::memcpy(&time, at + kRecordHeadBytes + 6, sizeof time);
    if (!all_times && !in_time(time)) continue;
    if (!binding_of(id, segment, offset).wanted) continue;
    const Entry entry{.key = time ^ flip, .offset = offset};
    if (!first_time && !before(active.last, entry)) continue;
    if (entry.key < last_listed || (flip != 0 && entry.key == last_listed)) {
      sorted = sorted && active.entries.empty();
    }
    last_listed = entry.key;
    active.entries.push_back(entry);
  }
  if (first_time && (cursor < records.size() || bad_messages > 0)) {
    problems.push_back(
        {.kind = ProblemKind::chunk_damaged,
         .offset = extent_of(segment).offset,
         .length = extent_of(segment).length,
         .detail = bad_messages > 0
                       ? fmt::format("{} messages too short", bad_messages)
                       : fmt::format("no record bounds at byte {} of the chunk", cursor)});
  }
  if (!sorted) {
    std::ranges::sort(active.entries, [&](const Entry& a, const Entry& b) { return before(a, b); });
  }
  return true;
}

// Loads a segment and lists its messages in order. Returns false when the source fails.
bool MessageReader::Impl::activate(std::size_t planned) {
  const std::size_t number = plan[planned];
  std::unique_ptr<Active> active = take_spare(number);
  const Segment& segment = segments[number];
  status = ahead.take(planned, active->loaded, problems);
  if (!status.ok()) return false;
  list_messages(*active, true);
  if (bindings.take_new_ambiguity() && !read_all_definitions()) return false;
  if (active->entries.empty()) {
    spare.push_back(std::move(active));
    return true;
  }
  if (active->key() < first_key(segment)) {
    problems.push_back({.kind = ProblemKind::index_mismatch,
                        .offset = segment.offset,
                        .length = segment.end - segment.offset,
                        .detail = "it holds messages outside the times its indexes give; they may "
                                  "come out of order"});
  }
  held_bytes += active->bytes_held();
  push(std::move(active));
  keep_within_budget();
  return true;
}

std::uint64_t MessageReader::Impl::share() const {
  return std::max(kLeastShareBytes, budget() / 2 / depth);
}

// Keeps copies of the next messages, one at least, and lets the segment go.
void MessageReader::Impl::shrink(Active& active) {
  const std::uint64_t room = share();
  Bytes batch;
  std::vector<std::size_t> places;
  std::size_t end = active.at;
  std::uint64_t used = 0;
  while (end < active.entries.size() && (end == active.at || used < room)) {
    Message message;
    if (!message_at(active.loaded.records, active.entries[end].offset, message)) break;
    const std::size_t size = kRecordHeadBytes + kMessageHeadBytes + message.data.size();
    if (end > active.at && used + size > room) break;
    used += size + sizeof(Entry) + sizeof(std::size_t);
    ++end;
  }
  std::size_t total = 0;
  for (std::size_t i = active.at; i < end; ++i) {
    Message message;
    static_cast<void>(message_at(active.loaded.records, active.entries[i].offset, message));
    total += kRecordHeadBytes + kMessageHeadBytes + message.data.size();
  }
  batch.reserve(total);
  for (std::size_t i = active.at; i < end; ++i) {
    Message message;
    static_cast<void>(message_at(active.loaded.records, active.entries[i].offset, message));
    const auto from =
        active.loaded.records.begin() + static_cast<std::ptrdiff_t>(active.entries[i].offset);
    places.push_back(batch.size());
    batch.insert(batch.end(), from,
                 from + static_cast<std::ptrdiff_t>(kRecordHeadBytes + kMessageHeadBytes +
                                                    message.data.size()));
  }
  active.more = end < active.entries.size();
  if (active.more) active.next_key = active.entries[end].key;
  if (end > active.at) active.last = active.entries[end - 1];
  active.entries =
      std::vector<Entry>(active.entries.begin() + static_cast<std::ptrdiff_t>(active.at),
                         active.entries.begin() + static_cast<std::ptrdiff_t>(end));
  active.at = 0;
  active.batch = std::move(batch);
  active.batch_at = std::move(places);
  active.batched = true;
  const Verified verified = active.loaded.verified;
  active.loaded = {};
  active.loaded.verified = verified;
}

// Decodes a segment again for the next messages of it. Returns false when the source fails.
bool MessageReader::Impl::refill(Active& active) {
  ProblemList told_before;
  held_bytes -= active.bytes_held();
  status = load_segment(*map, map->segments[active.segment], active.loaded, told_before);
  if (!status.ok()) return false;
  active.batch = {};
  active.batch_at = {};
  active.batched = active.more = false;
  list_messages(active, false);
  if (active.entries.empty()) {
    status = data_loss(fmt::format("{}: byte {}: the file changed while it was read",
                                   map->source->name(), segments[active.segment].offset));
    return false;
  }
  if (held_bytes + active.bytes_held() > budget()) shrink(active);
  held_bytes += active.bytes_held();
  return true;
}

// Shrinks the segments that are needed last.
void MessageReader::Impl::keep_within_budget() {
  while (held_bytes > budget() && heap.size() > 1) {
    Active* last = nullptr;
    for (const auto& active : heap) {
      if (active->batched || active->loaded.bytes_held() == 0) continue;
      if (last == nullptr || active->key() > last->key()) last = active.get();
    }
    if (last == nullptr) return;
    held_bytes -= last->bytes_held();
    shrink(*last);
    held_bytes += last->bytes_held();
  }
}

bool MessageReader::Impl::emit(MessageView& out) {
  Active& active = *current;
  if (active.at >= active.entries.size() && !refill(active)) return false;
  const std::size_t at = active.at++;
  const std::uint64_t offset = active.entries[at].offset;
  const bool held = active.batched ? message_at(active.batch, active.batch_at[at], out)
                                   : message_at(active.loaded.records, offset, out);
  if (!held) {
    status = data_loss(fmt::format("{}: byte {}: the file changed while it was read",
                                   map->source->name(), segments[active.segment].offset));
    return false;
  }
  fill_view(binding_of(out.channel_id, active.segment, offset), active, offset, out);
  return true;
}

bool MessageReader::Impl::next_by_time(MessageView& out) {
  if (current != nullptr) {
    if (!current->empty()) {
      if (current->key() < bound) return emit(out);
      push(std::move(current));
    } else {
      held_bytes -= current->bytes_held();
      current->batch = {};
      current->batch_at = {};
      spare.push_back(std::move(current));
    }
  }
  for (;;) {
    const bool pending = next_planned < plan.size();
    if (pending &&
        (heap.empty() || first_key(segments[plan[next_planned]]) <= heap.front()->key())) {
      if (!activate(next_planned++)) return false;
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
