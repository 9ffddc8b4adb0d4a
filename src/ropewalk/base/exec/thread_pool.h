#pragma once
// ThreadPool: a fixed number of threads; TaskGroup: tasks that are waited for together.
// A pool notices that its process forked and then refuses work with a clear error.
#include <cstdint>
#include <functional>
#include <memory>

#include "ropewalk/base/core/status.h"

namespace ropewalk {

/// Threads: all members may be called concurrently.
class ThreadPool {
 public:
  /// `threads` of 0 means one per core.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const;
  /// Queues `task`. Errors: failed_precondition in a forked child of the pool's process.
  Status submit(std::function<void()> task);
  /// Runs one queued task on the calling thread if there is one: waiting threads help.
  bool run_one();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs tasks on a pool, or inline when the pool is null, and keeps the first error.
/// A task queued after an error is not run.
class TaskGroup {
 public:
  explicit TaskGroup(ThreadPool* pool);
  ~TaskGroup();  ///< waits
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void run(std::function<Status()> task);
  /// Waits for all tasks and returns the first error in the order of run().
  Status wait();

 private:
  struct State;
  ThreadPool* pool_;
  std::shared_ptr<State> state_;
};

/// Runs `body(i)` for i in [0, count), on the pool when there is one. Returns the error of the
/// lowest i that failed among those that ran.
Status parallel_for(ThreadPool* pool, std::int64_t count,
                    const std::function<Status(std::int64_t)>& body);

}  // namespace ropewalk
