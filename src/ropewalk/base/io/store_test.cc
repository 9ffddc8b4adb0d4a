#include "ropewalk/base/io/store.h"

#include "ropewalk/base/io/fault.h"

#include "tests/support/store_suite.h"
#include "tests/support/temp_dir.h"

namespace ropewalk::test {
namespace {

// A local store in a directory that lives as long as the store.
std::shared_ptr<Store> make_local() {
  auto dir = std::make_shared<TempDir>("store");
  auto store = std::make_shared<std::unique_ptr<Store>>(local_store(*dir / "root").value());
  return {store->get(), [dir, store](Store*) {}};
}

std::shared_ptr<Store> make_memory() { return memory_store(); }

INSTANTIATE_TEST_SUITE_P(Local, StoreSuite, testing::Values(make_local));
INSTANTIATE_TEST_SUITE_P(Memory, StoreSuite, testing::Values(make_memory));

TEST(LocalStore, KeepsTheOldValueWhenAPutFails) {
  const TempDir dir("store");
  auto store = local_store(dir.path()).value();
  ASSERT_TRUE(store->put("k", as_bytes("old")).ok());
  for (int fail_at = 1;; ++fail_at) {
    int calls = 0;
    set_fault_hook([&](std::string_view point) {
      if (point == "io.remove") return ok_status();
      return ++calls == fail_at ? unavailable("injected") : ok_status();
    });
    const Status status = store->put("k", as_bytes("new"));
    set_fault_hook(nullptr);
    if (status.ok()) {
      EXPECT_GE(fail_at, 5) << "create, write, fsync, rename and fsync of the directory can fail";
      break;
    }
    const std::string value(as_text(store->get("k")->value()));
    EXPECT_TRUE(value == "old" || value == "new") << value;
    EXPECT_EQ(store->list("")->size(), 1U);
    ASSERT_TRUE(store->put("k", as_bytes("old")).ok());
  }
}

TEST(LocalStore, HidesValuesThatAreBeingWritten) {
  const TempDir dir("store");
  auto store = local_store(dir.path()).value();
  write_file(dir / ".rw-tmp.left-over", "torn");
  EXPECT_TRUE(store->list("")->empty());
  EXPECT_EQ(store->put(".rw-tmp.x", {}).code(), StatusCode::invalid_argument);
}

TEST(LocalStore, RefusesAFileAsItsRoot) {
  const TempDir dir("store");
  write_file(dir / "f", "");
  EXPECT_EQ(local_store(dir / "f").status().code(), StatusCode::failed_precondition);
}

}  // namespace
}  // namespace ropewalk::test
