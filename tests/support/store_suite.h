#pragma once
// One suite for every Store: what each implementation must do, whatever lies behind it.
// Use: `INSTANTIATE_TEST_SUITE_P(Local, StoreSuite, testing::Values(factory));`
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ropewalk/base/io/store.h"

namespace ropewalk::test {

/// Makes an empty store. Whatever it needs to live, it keeps.
using StoreFactory = std::function<std::shared_ptr<Store>()>;

class StoreSuite : public testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override { store_ = GetParam()(); }

  Store& store() { return *store_; }
  void put(std::string_view key, std::string_view value) {
    const Status status = store_->put(key, as_bytes(value));
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  /// Returns the value as text, or "<absent>", or the error.
  std::string get(std::string_view key, ByteRange range = {}) {
    auto found = store_->get(key, range);
    if (!found.ok()) return found.status().to_string();
    return found->has_value() ? std::string(as_text(**found)) : "<absent>";
  }
  std::vector<std::string> keys(std::string_view prefix) {
    std::vector<std::string> out;
    auto listed = store_->list(prefix);
    EXPECT_TRUE(listed.ok()) << listed.status().to_string();
    if (!listed.ok()) return out;
    for (const StoreEntry& entry : *listed) out.push_back(entry.key);
    return out;
  }

 private:
  std::shared_ptr<Store> store_;
};

TEST_P(StoreSuite, ReturnsWhatWasPut) {
  put("a/b/value", "first");
  EXPECT_EQ(get("a/b/value"), "first");
  put("a/b/value", "second, which is longer");
  EXPECT_EQ(get("a/b/value"), "second, which is longer");
  put("a/b/value", "");
  EXPECT_EQ(get("a/b/value"), "");
  EXPECT_EQ(store().size("a/b/value")->value(), 0U);
}

TEST_P(StoreSuite, TellsAnAbsentKeyWithoutAnError) {
  EXPECT_EQ(get("nothing/here"), "<absent>");
  auto size = store().size("nothing/here");
  ASSERT_TRUE(size.ok()) << size.status().to_string();
  EXPECT_FALSE(size->has_value());
  put("dir/value", "x");
  EXPECT_EQ(get("dir"), "<absent>") << "a prefix of keys is no key";
}

TEST_P(StoreSuite, ClampsRangesToTheValue) {
  put("v", "0123456789");
  EXPECT_EQ(get("v", {2, 3}), "234");
  EXPECT_EQ(get("v", {8, 100}), "89");
  EXPECT_EQ(get("v", {7}), "789");
  EXPECT_EQ(get("v", {10, 1}), "");
  EXPECT_EQ(get("v", {ByteRange::npos, ByteRange::npos}), "");
  EXPECT_EQ(get("v", {1, ByteRange::npos}), "123456789");
}

TEST_P(StoreSuite, RefusesAValueAboveTheLimit) {
  put("v", "0123456789");
  EXPECT_EQ(store().get("v", {}, 9).status().code(), StatusCode::resource_exhausted);
  auto within = store().get("v", {5, 5}, 5);
  ASSERT_TRUE(within.ok()) << within.status().to_string();
  EXPECT_EQ(as_text(**within), "56789");
}

TEST_P(StoreSuite, PutsIfAbsentOnlyOnce) {
  ASSERT_TRUE(store().put_if_absent("k", as_bytes("one")).ok());
  EXPECT_EQ(store().put_if_absent("k", as_bytes("two")).code(), StatusCode::already_exists);
  EXPECT_EQ(get("k"), "one");
  ASSERT_TRUE(store().remove("k").ok());
  ASSERT_TRUE(store().put_if_absent("k", as_bytes("three")).ok());
  EXPECT_EQ(get("k"), "three");
}

TEST_P(StoreSuite, ListsKeysOfAPrefixSorted) {
  for (const char* key : {"b/2", "a/1", "b/10", "b/1/x", "ba"}) put(key, key);
  EXPECT_EQ(keys(""), (std::vector<std::string>{"a/1", "b/1/x", "b/10", "b/2", "ba"}));
  EXPECT_EQ(keys("b/"), (std::vector<std::string>{"b/1/x", "b/10", "b/2"}));
  EXPECT_EQ(keys("b/1"), (std::vector<std::string>{"b/1/x", "b/10"}));
  EXPECT_EQ(keys("c"), std::vector<std::string>{});
  EXPECT_EQ(keys("c/d/"), std::vector<std::string>{});
  EXPECT_EQ(store().list("b/10")->front().size_bytes, 4U);
}

TEST_P(StoreSuite, RemovesAndForgivesAnAbsentKey) {
  put("k", "v");
  ASSERT_TRUE(store().remove("k").ok());
  EXPECT_EQ(get("k"), "<absent>");
  EXPECT_TRUE(store().remove("k").ok());
  EXPECT_TRUE(store().remove("never/was").ok());
}

TEST_P(StoreSuite, RefusesKeysThatLeaveTheStore) {
  using namespace std::string_view_literals;
  for (const std::string_view key :
       {""sv, "/"sv, "/a"sv, "a/"sv, "a//b"sv, "."sv, ".."sv, "a/../b"sv, "a/./b"sv, "a\0b"sv}) {
    EXPECT_EQ(store().put(key, {}).code(), StatusCode::invalid_argument) << key;
    EXPECT_EQ(store().put_if_absent(key, {}).code(), StatusCode::invalid_argument) << key;
    EXPECT_EQ(store().get(key).status().code(), StatusCode::invalid_argument) << key;
    EXPECT_EQ(store().size(key).status().code(), StatusCode::invalid_argument) << key;
    EXPECT_EQ(store().remove(key).code(), StatusCode::invalid_argument) << key;
  }
  EXPECT_EQ(keys(""), std::vector<std::string>{});
}

TEST_P(StoreSuite, KeepsBytesOfEveryValue) {
  Bytes all(3 << 20);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i * 31 >> 3);
  ASSERT_TRUE(store().put("big", all).ok());
  auto back = store().get("big");
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_TRUE(**back == all);
}

}  // namespace ropewalk::test
