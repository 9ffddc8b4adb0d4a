#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "ropewalk/base/exec/bounded_queue.h"
#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/base/exec/thread_pool.h"

namespace ropewalk {
namespace {

TEST(ThreadPool, RunsEveryTaskAndNestedGroups) {
  ThreadPool pool(2);
  std::atomic<int> sum{0};
  const Status status = parallel_for(&pool, 50, [&](std::int64_t i) {
    return parallel_for(&pool, 4, [&](std::int64_t j) {
      sum += static_cast<int>(i * j);
      return ok_status();
    });
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(sum, 1225 * 6);
}

TEST(TaskGroup, ReturnsTheErrorOfTheEarliestTask) {
  for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), new ThreadPool(1)}) {
    TaskGroup group(pool);
    for (int i = 0; i < 5; ++i) {
      group.run([i] { return i >= 2 ? data_loss(std::to_string(i)) : ok_status(); });
    }
    EXPECT_EQ(group.wait().message(), "2");
    delete pool;
  }
}

TEST(ThreadPool, RefusesWorkInAForkedChild) {
  ThreadPool pool(1);
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(pool.submit([] {}).code() == StatusCode::failed_precondition ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(BoundedQueue, BoundsItemsAndBytesButPassesOneLargeItem) {
  BoundedQueue<int> queue(2, 100);
  EXPECT_TRUE(queue.try_push(1, 500));
  EXPECT_FALSE(queue.try_push(2, 1));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_TRUE(queue.try_push(2, 60));
  EXPECT_FALSE(queue.try_push(3, 60));
  EXPECT_TRUE(queue.try_push(3, 40));
  EXPECT_FALSE(queue.try_push(4, 0));
  queue.close();
  EXPECT_FALSE(queue.push(5, 0));
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), 3);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, BlockedProducerGoesOnWhenSpaceAppears) {
  BoundedQueue<int> queue(1, 10);
  std::jthread producer([&] {
    for (int i = 0; i < 100; ++i) queue.push(i, 10);
    queue.close();
  });
  int expected = 0;
  while (auto item = queue.pop()) EXPECT_EQ(*item, expected++);
  EXPECT_EQ(expected, 100);
}

TEST(RunContext, ReportsCancellation) {
  std::stop_source source;
  RunContext context;
  context.stop = source.get_token();
  EXPECT_TRUE(context.check_stop().ok());
  source.request_stop();
  EXPECT_EQ(context.check_stop().code(), StatusCode::cancelled);
}

}  // namespace
}  // namespace ropewalk
