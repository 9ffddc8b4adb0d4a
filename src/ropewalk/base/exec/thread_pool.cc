#include "ropewalk/base/exec/thread_pool.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ropewalk {

struct ThreadPool::Impl {
  std::mutex mutex;
  std::condition_variable ready;
  std::deque<std::function<void()>> queue;
  std::vector<std::jthread> threads;
  bool closing = false;
  pid_t owner = ::getpid();
};

ThreadPool::ThreadPool(unsigned threads) : impl_(std::make_unique<Impl>()) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  impl_->threads.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get()] {
      std::unique_lock lock(impl->mutex);
      while (true) {
        impl->ready.wait(lock, [impl] { return impl->closing || !impl->queue.empty(); });
        if (impl->queue.empty()) return;
        std::function<void()> task = std::move(impl->queue.front());
        impl->queue.pop_front();
        lock.unlock();
        task();
        task = nullptr;
        lock.lock();
      }
    });
  }
}

ThreadPool::~ThreadPool() {
  if (impl_->owner != ::getpid()) {
    // A forked child has the thread objects but not the threads: joining would wait for ever.
    for (auto& thread : impl_->threads) thread.detach();
    return;
  }
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->closing = true;
  }
  impl_->ready.notify_all();
}

unsigned ThreadPool::size() const { return static_cast<unsigned>(impl_->threads.size()); }

Status ThreadPool::submit(std::function<void()> task) {
  if (impl_->owner != ::getpid()) {
    return failed_precondition(
        "thread pool used after fork: its threads live in the parent process; "
        "create a new pool in the child");
  }
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->queue.push_back(std::move(task));
  }
  impl_->ready.notify_one();
  return ok_status();
}

bool ThreadPool::run_one() {
  std::function<void()> task;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->queue.empty()) return false;
    task = std::move(impl_->queue.front());
    impl_->queue.pop_front();
  }
  task();
  return true;
}

struct TaskGroup::State {
  std::mutex mutex;
  std::condition_variable done;
  std::int64_t pending = 0;
  std::int64_t next_order = 0;
  std::int64_t error_order = 0;
  Status error;
  std::atomic<bool> failed{false};

  void finish(std::int64_t order, Status status) {
    const std::lock_guard lock(mutex);
    if (!status.ok() && (error.ok() || order < error_order)) {
      error = std::move(status);
      error_order = order;
      failed = true;
    }
    if (--pending == 0) done.notify_all();
  }
};

TaskGroup::TaskGroup(ThreadPool* pool) : pool_(pool), state_(std::make_shared<State>()) {}

TaskGroup::~TaskGroup() { static_cast<void>(wait()); }

void TaskGroup::run(std::function<Status()> task) {
  std::int64_t order = 0;
  {
    const std::lock_guard lock(state_->mutex);
    order = state_->next_order++;
    ++state_->pending;
  }
  auto work = [state = state_, order, task = std::move(task)] {
    state->finish(order, state->failed ? ok_status() : task());
  };
  if (!pool_) {
    work();
    return;
  }
  if (Status status = pool_->submit(work); !status.ok()) state_->finish(order, std::move(status));
}

Status TaskGroup::wait() {
  if (pool_) {
    // Help with queued work, so that a task may itself wait for a group on the same pool.
    while (true) {
      {
        const std::lock_guard lock(state_->mutex);
        if (state_->pending == 0) break;
      }
      if (!pool_->run_one()) break;
    }
  }
  std::unique_lock lock(state_->mutex);
  state_->done.wait(lock, [this] { return state_->pending == 0; });
  return state_->error;
}

Status parallel_for(ThreadPool* pool, std::int64_t count,
                    const std::function<Status(std::int64_t)>& body) {
  TaskGroup group(pool);
  for (std::int64_t i = 0; i < count; ++i) {
    group.run([&body, i] { return body(i); });
  }
  return group.wait();
}

}  // namespace ropewalk
