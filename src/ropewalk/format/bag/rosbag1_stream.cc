// The messages of a ROS 1 bag, in time order or file order, in bounded memory.
#include <algorithm>
#include <list>
#include <queue>

#include <fmt/format.h>

#include "ropewalk/format/bag/rosbag1_internal.h"

namespace ropewalk::bag {
namespace {

// Decoded segments within a budget; the one asked for last is never dropped.
class Cache {
 public:
  Cache(const Rosbag1File& file, std::uint64_t budget) : file_(file), budget_(budget) {}

  Result<const Decoded*> get(std::uint32_t segment, ProblemLog& log) {
    const auto found = std::ranges::find(kept_, segment, &Kept::segment);
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return &kept_.front().decoded;
    }
    kept_.push_front({.segment = segment, .decoded = {}});
    if (Status status = file_.decode(file_.segments[segment], kept_.front().decoded, log);
        !status.ok()) {
      kept_.pop_front();
      return status;
    }
    bytes_ += kept_.front().decoded.buffer.size();
    while (bytes_ > budget_ && kept_.size() > 1) drop(std::prev(kept_.end()));
    return &kept_.front().decoded;
  }
  // A segment whose messages are all delivered.
  void release(std::uint32_t segment) {
    const auto found = std::ranges::find(kept_, segment, &Kept::segment);
    if (found != kept_.end()) drop(found);
  }

 private:
  struct Kept {
    std::uint32_t segment = 0;
    Decoded decoded;
  };
  void drop(std::list<Kept>::iterator at) {
    bytes_ -= at->decoded.buffer.size();
    kept_.erase(at);
  }

  const Rosbag1File& file_;
  std::uint64_t budget_;
  std::uint64_t bytes_ = 0;
  std::list<Kept> kept_;
};

class Rosbag1Stream final : public MessageStream {
 public:
  Rosbag1Stream(const Rosbag1File& file, Selection selection)
      : file_(file), selection_(std::move(selection)), cache_(file, file.options.cache_bytes) {
    problems = ProblemLog(file.source->name());
    for (std::uint32_t i = 0; i < file.segments.size(); ++i) {
      const Segment& s = file.segments[i];
      const bool outside =
          !s.empty && (s.last_ns < selection_.begin_ns || s.first_ns > selection_.last_ns);
      if (!outside) order_.push_back(i);
    }
    if (selection_.order == Order::time) {
      std::ranges::stable_sort(order_, {}, [&](std::uint32_t i) { return start_of(i); });
    }
  }

  Result<bool> next(MessageView& out) override {
    if (finished_) {
      cache_.release(*finished_);
      finished_.reset();
    }
    for (;;) {
      // In time order a segment joins before anything at or after its first message leaves.
      while (opened_ < order_.size() &&
             (active_.empty() ||
              (selection_.order == Order::time && start_of(order_[opened_]) <= heap_.top().time))) {
        ROPEWALK_RETURN_IF_ERROR(activate(order_[opened_++]));
      }
      if (active_.empty()) return false;
      const Head head = heap_.top();
      heap_.pop();
      Active& active = active_[head.slot];
      const Entry& entry = active.entries[active.at];
      ROPEWALK_ASSIGN_OR_RETURN(const Decoded* decoded, load(active.segment));
      out.channel_index = entry.channel;
      out.time_ns = entry.time_ns;
      // A segment that is decoded again gives the same bytes, unless the file changed meanwhile.
      if (entry.data_offset + entry.data_size > decoded->records.size()) {
        return data_loss(fmt::format("{}: changed while it was read", file_.source->name()));
      }
      out.data =
          decoded->records.subspan(static_cast<std::size_t>(entry.data_offset), entry.data_size);
      out.unverified = decoded->unverified;
      if (++active.at < active.entries.size()) {
        push(head.slot);
      } else {
        finished_ = active.segment;
        active_.erase(head.slot);
      }
      return true;
    }
  }

 private:
  struct Active {
    std::uint32_t segment = 0;
    std::size_t at = 0;
    std::vector<Entry> entries;
  };
  struct Head {
    std::int64_t time = 0;
    std::uint32_t slot = 0;  ///< the segment: equal times keep the order of the file
    bool operator<(const Head& other) const {
      return time != other.time ? time > other.time : slot > other.slot;
    }
  };

  // Segments that may hold anything come first.
  std::int64_t start_of(std::uint32_t segment) const {
    const Segment& s = file_.segments[segment];
    return s.empty ? std::numeric_limits<std::int64_t>::min() : s.first_ns;
  }

  void push(std::uint32_t slot) {
    const Active& active = active_[slot];
    heap_.push({.time = active.entries[active.at].time_ns, .slot = slot});
  }

  // What is wrong in a segment is told once, however often it is decoded.
  Result<const Decoded*> load(std::uint32_t segment) {
    ProblemLog told_before;
    return cache_.get(segment, told_before);
  }

  Status activate(std::uint32_t segment) {
    ROPEWALK_ASSIGN_OR_RETURN(const Decoded* decoded, cache_.get(segment, problems));
    Active active{.segment = segment};
    const Segment& s = file_.segments[segment];
    file_.walk(s, *decoded, active.entries, problems, nullptr);
    if (!s.empty) {
      const auto early = std::ranges::count_if(
          active.entries, [&](const Entry& e) { return e.time_ns < s.first_ns; });
      if (early > 0) {
        problems.add(ProblemKind::index_mismatch, s.offset, s.end - s.offset,
                     fmt::format("{} messages are earlier than the index says; they may be out of "
                                 "order",
                                 early));
      }
    }
    std::erase_if(active.entries,
                  [&](const Entry& e) { return !selection_.wants(e.channel, e.time_ns); });
    if (active.entries.empty()) {
      cache_.release(segment);
      return ok_status();
    }
    active.entries.shrink_to_fit();
    if (selection_.order == Order::time) {
      std::ranges::stable_sort(active.entries, {}, &Entry::time_ns);
    }
    active_.emplace(segment, std::move(active));
    push(segment);
    return ok_status();
  }

  const Rosbag1File& file_;
  Selection selection_;
  Cache cache_;
  std::vector<std::uint32_t> order_;
  std::size_t opened_ = 0;
  std::unordered_map<std::uint32_t, Active> active_;
  std::priority_queue<Head> heap_;
  std::optional<std::uint32_t> finished_;
};

}  // namespace

Result<std::unique_ptr<MessageStream>> Rosbag1File::stream(const Selection& selection) const {
  return std::unique_ptr<MessageStream>(std::make_unique<Rosbag1Stream>(*this, selection));
}

}  // namespace ropewalk::bag
