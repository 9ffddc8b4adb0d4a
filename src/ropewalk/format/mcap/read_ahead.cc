#include <algorithm>

#include "ropewalk/format/mcap/message_reader_internal.h"

namespace ropewalk::mcap {

void ReadAhead::start(const FileMap& map, const std::vector<std::size_t>& order) {
  map_ = &map;
  order_ = &order;
  if (map.options.pool != nullptr) tasks_ = std::make_unique<TaskGroup>(map.options.pool);
}

// Keeps two segments per thread under way, and no more bytes than a quarter of the budget.
void ReadAhead::fill(std::size_t taken) {
  const std::size_t most = std::size_t{2} * map_->options.pool->size();
  next_ = std::max(next_, taken);
  while (next_ < order_->size() && slots_.size() < most) {
    const Segment& segment = map_->segments[(*order_)[next_]];
    const std::uint64_t bytes =
        std::min(segment.index.uncompressed_size, map_->options.limits.max_chunk_bytes);
    if (bytes_ + bytes > map_->options.cache_bytes / 4 && next_ != taken) return;
    std::unique_ptr<Slot> slot;
    if (spare_.empty()) {
      slot = std::make_unique<Slot>();
    } else {
      slot = std::move(spare_.back());
      spare_.pop_back();
    }
    slot->number = next_++;
    slot->bytes = bytes;
    slot->problems.clear();
    slot->ready = false;
    bytes_ += bytes;
    tasks_->run([map = map_, &segment, work = slot.get()] {
      work->status = load_segment(*map, segment, work->loaded, work->problems);
      work->ready.store(true, std::memory_order_release);
      work->ready.notify_all();
      return ok_status();
    });
    slots_.push_back(std::move(slot));
  }
}

Status ReadAhead::take(std::size_t number, LoadedSegment& out, ProblemList& problems) {
  if (tasks_ == nullptr) {
    return load_segment(*map_, map_->segments[(*order_)[number]], out, problems);
  }
  fill(number);
  Slot& slot = *slots_.front();
  while (!slot.ready.load(std::memory_order_acquire)) {
    if (!map_->options.pool->run_one()) slot.ready.wait(false, std::memory_order_acquire);
  }
  std::swap(out, slot.loaded);  // the used buffers serve another segment
  problems.insert(problems.end(), slot.problems.begin(), slot.problems.end());
  Status status = std::move(slot.status);
  bytes_ -= slot.bytes;
  spare_.push_back(std::move(slots_.front()));
  slots_.pop_front();
  fill(number + 1);
  return status;
}

}  // namespace ropewalk::mcap
