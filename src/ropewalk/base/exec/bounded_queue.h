#pragma once
// BoundedQueue: hands items from producers to consumers, bounded in items and in bytes.
// A producer that may not block uses try_push and counts what it drops.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace ropewalk {

/// Threads: all members may be called concurrently.
/// One item larger than the whole byte budget passes alone, so that no producer waits for ever.
template <typename T>
class BoundedQueue {
 public:
  BoundedQueue(std::size_t max_items, std::uint64_t max_bytes)
      : max_items_(max_items), max_bytes_(max_bytes) {}

  /// Blocks while full. Returns false when the queue was closed: the item is not taken.
  bool push(T item, std::uint64_t bytes) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return closed_ || fits(bytes); });
    return put(std::move(item), bytes);
  }
  /// Returns false when full or closed.
  bool try_push(T item, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    return fits(bytes) && put(std::move(item), bytes);
  }
  /// Blocks while empty. Returns nullopt when the queue is closed and drained.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    std::pair<T, std::uint64_t> front = std::move(items_.front());
    items_.pop_front();
    bytes_ -= front.second;
    not_full_.notify_all();
    return std::move(front.first);
  }
  /// No item is taken any more; consumers drain what is there.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    not_full_.notify_all();
    not_empty_.notify_all();
  }

 private:
  bool fits(std::uint64_t bytes) const {
    return items_.empty() || (items_.size() < max_items_ && bytes_ + bytes <= max_bytes_);
  }
  bool put(T item, std::uint64_t bytes) {
    if (closed_) return false;
    items_.emplace_back(std::move(item), bytes);
    bytes_ += bytes;
    not_empty_.notify_one();
    return true;
  }

  const std::size_t max_items_;
  const std::uint64_t max_bytes_;
  std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<std::pair<T, std::uint64_t>> items_;
  std::uint64_t bytes_ = 0;
  bool closed_ = false;
};

}  // namespace ropewalk
