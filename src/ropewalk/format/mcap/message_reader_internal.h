#pragma once
// How a MessageReader works: message_reader.cc has file order and what both share, time_order.cc
// the log-time orders, read_ahead.cc the chunks that are decoded before their turn.
//
// Note [Order]: times are compared as keys. A key is the log time, or its complement in reverse
// order; places in the file (segment, offset) break ties and are complemented alike. So one merge
// serves both directions: segments are activated in the order of their first key, and an activated
// segment gives its messages in the order of (key, place).
#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <vector>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/format/mcap/bindings_internal.h"
#include "ropewalk/format/mcap/reader_internal.h"

namespace ropewalk::mcap {

struct Entry {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;  // in the decoded records of the segment
};

// A segment at work: its messages in order, as much of them as the budget allows.
struct Active {
  std::size_t segment = 0;
  const ChunkIndex* chunk = nullptr;
  LoadedSegment loaded;
  std::vector<Entry> entries;
  std::size_t at = 0;
  // Where the budget does not hold the segment: copies of its next messages, one for each entry,
  // and the key of the first that is not among them.
  bool batched = false;
  bool more = false;
  std::uint64_t next_key = 0;
  Entry last;  // the last one of the batch
  Bytes batch;
  std::vector<std::size_t> batch_at;

  bool empty() const { return at >= entries.size() && !more; }
  std::uint64_t key() const { return at < entries.size() ? entries[at].key : next_key; }
  std::uint64_t bytes_held() const {
    return loaded.bytes_held() + batch.capacity() + batch_at.capacity() * sizeof(std::size_t) +
           entries.capacity() * sizeof(Entry);
  }
};

// Loads segments before their turn. Results do not depend on it.
class ReadAhead {
 public:
  /// `order` must outlive this and not change: segments in the order in which they will be taken.
  void start(const FileMap& map, const std::vector<std::size_t>& order);
  /// Loads the next segment, which is `order[number]`.
  Status take(std::size_t number, LoadedSegment& out, ProblemList& problems);

 private:
  struct Slot {
    std::size_t number = 0;
    std::uint64_t bytes = 0;
    LoadedSegment loaded;
    ProblemList problems;
    Status status;
    std::atomic<bool> ready{false};
  };
  void fill(std::size_t taken);

  const FileMap* map_ = nullptr;
  const std::vector<std::size_t>* order_ = nullptr;
  std::size_t next_ = 0;
  std::uint64_t bytes_ = 0;
  std::deque<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Slot>> spare_;
  std::unique_ptr<TaskGroup> tasks_;  // the last member: waits before the slots go
};

struct MessageReader::Impl {
  std::shared_ptr<const FileMap> map;
  MessageQuery query;
  Status status;
  ProblemList problems;

  std::vector<Segment> segments;  // verified copies
  Bindings bindings;
  std::vector<std::size_t> plan;  // segments in the order in which they are loaded
  std::size_t next_planned = 0;
  ReadAhead ahead;
  std::uint64_t delivered = 0;
  bool compared = false;
  std::vector<std::unique_ptr<Active>> spare;

  // File order.
  std::unique_ptr<Active> walked;
  std::size_t position = 0;  // in its records

  // Log-time orders.
  std::vector<std::unique_ptr<Active>> heap;
  std::unique_ptr<Active> current;
  std::uint64_t bound = 0;  // keys below it belong to current alone
  std::uint64_t held_bytes = 0;
  std::uint64_t depth = 1;  // segments that overlap at most

  bool reverse() const { return query.order == Order::reverse_log_time; }
  std::uint64_t key_of(std::uint64_t time) const { return reverse() ? ~time : time; }
  std::uint64_t first_key(const Segment& s) const {
    return key_of(reverse() ? s.index.message_end_time : s.index.message_start_time);
  }
  std::uint64_t last_key(const Segment& s) const {
    return key_of(reverse() ? s.index.message_start_time : s.index.message_end_time);
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

  void start();
  bool may_hold(Segment& segment);
  void compare_count();
  void on_other(std::uint8_t opcode, ByteSpan content, const Active& active, std::uint64_t offset);
  bool read_all_definitions();
  std::unique_ptr<Active> take_spare(std::size_t segment);
  // The binding of a message that stands at a place.
  const Binding& binding_of(std::uint16_t id, std::size_t segment, std::uint64_t offset) {
    const Binding* plain = bindings.plain_of(id);
    if (plain != nullptr) return *plain;
    return bindings.of(id, {.segment = segment, .offset = offset}, extent_of(segment), problems);
  }
  // Everything of a view but the message itself.
  static void fill_view(const Binding& binding, const Active& active, std::uint64_t offset,
                        MessageView& out) {
    out.channel = binding.channel;
    out.schema = binding.shown;
    out.verified = active.loaded.verified;
    out.chunk = active.chunk;
    out.offset = offset;
    out.segment = static_cast<std::uint32_t>(active.segment);
  }

  bool next_in_file_order(MessageView& out);

  // --- time_order.cc
  void plan_depth();
  bool next_by_time(MessageView& out);
  bool activate(std::size_t number);
  bool list_messages(Active& active, bool first_time);
  void push(std::unique_ptr<Active> active);
  // What decoding ahead leaves of the budget.
  std::uint64_t budget() const {
    return map->options.pool == nullptr ? map->options.cache_bytes
                                        : map->options.cache_bytes - map->options.cache_bytes / 4;
  }
  std::uint64_t share() const;
  void shrink(Active& active);
  bool refill(Active& active);
  void keep_within_budget();
  bool emit(MessageView& out);
  bool before(const Entry& a, const Entry& b) const {
    if (a.key != b.key) return a.key < b.key;
    return reverse() ? a.offset > b.offset : a.offset < b.offset;
  }
  // Order of the heap: the smallest (key, place) on top.
  bool later(const std::unique_ptr<Active>& a, const std::unique_ptr<Active>& b) const {
    if (a->key() != b->key()) return a->key() > b->key();
    return reverse() ? a->segment < b->segment : a->segment > b->segment;
  }
};

}  // namespace ropewalk::mcap
