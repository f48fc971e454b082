// The reach of memory windows' keys: for whom, where, and until when.
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/verbs/soft/state/memory.h"

namespace tokamak::verbs::soft {
namespace {

constexpr Access kWindowed = kLocalWrite | kWindowBind;

class WindowTableTest : public ::testing::Test {
 protected:
  WindowTableTest() {
    while (keys_.BeginLife() < 8) {  // queue pairs 1 to 8 live
    }
  }

  // Binds `window` to bytes [at, at + length) of the region; advances its key as the handle does.
  bool Bind(WindowId* window, uint64_t at, uint64_t length, Access access, const Asker& asker = {1, 7}) {
    window->key = keys_.NextKey(window->key);
    return keys_.Bind(asker, {*window, region_, begin_ + at, length, access});
  }
  bool Opens(uint32_t key, uint64_t at, uint64_t length, const Asker& asker = {1, 7}) const {
    return keys_.Remote(asker, key, begin_ + at, length, kRemoteWrite) != nullptr;
  }

  KeyTable keys_{SecretNumbers(1, 1)};
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(1000);
  const uint64_t begin_ = reinterpret_cast<uint64_t>(memory_.data());
  uint32_t region_ = keys_.Add(1, RegionMemory(absl::MakeSpan(memory_)), kWindowed);
  WindowId window_ = keys_.AddWindow(1);
};

TEST_F(WindowTableTest, AWindowOpensItsRangeToItsQueuePairAlone) {
  EXPECT_FALSE(Opens(window_.key, 0, 1));
  ASSERT_TRUE(Bind(&window_, 100, 50, kRemoteWrite));
  EXPECT_TRUE(Opens(window_.key, 100, 50));
  EXPECT_FALSE(Opens(window_.key, 100, 51));
  EXPECT_FALSE(Opens(window_.key, 99, 1));
  EXPECT_FALSE(Opens(window_.key, 100, 1, {1, 8}));
  EXPECT_FALSE(Opens(window_.key, 100, 1, {2, 7}));
  EXPECT_EQ(keys_.Remote({1, 7}, window_.key, begin_ + 100, 1, kRemoteRead), nullptr);
  EXPECT_EQ(keys_.RegionOf(window_.key), region_);
}

TEST_F(WindowTableTest, AWindowsKeyIsNoLocalKey) {
  ASSERT_TRUE(Bind(&window_, 0, 1000, kRemoteWrite | kRemoteRead));
  EXPECT_FALSE(keys_.LocalAllows(1, {memory_.data(), 1, window_.key}, false));
}

TEST_F(WindowTableTest, AForbiddenBindIsRefused) {
  const uint32_t plain = keys_.Add(1, RegionMemory(absl::MakeSpan(memory_)), kLocalWrite | kRemoteWrite);
  const uint32_t readable = keys_.Add(1, RegionMemory(absl::MakeSpan(memory_)), kWindowBind);
  const uint32_t foreign = keys_.Add(2, RegionMemory(absl::MakeSpan(memory_)), kWindowed);
  const auto try_bind = [&](uint32_t region, uint64_t at, uint64_t length, Access access, Asker asker = {1, 7}) {
    return keys_.Bind(asker, {window_, region, begin_ + at, length, access});
  };
  EXPECT_FALSE(try_bind(plain, 0, 10, kRemoteWrite)) << "a region without the right";
  EXPECT_FALSE(try_bind(readable, 0, 10, kRemoteWrite)) << "to be written where the region may not be";
  EXPECT_FALSE(try_bind(readable, 0, 10, kRemoteAtomic));
  EXPECT_FALSE(try_bind(foreign, 0, 10, kRemoteWrite)) << "a region of another domain";
  EXPECT_FALSE(try_bind(region_, 0, 10, kRemoteWrite, {2, 7})) << "a queue pair of another domain";
  EXPECT_FALSE(try_bind(region_, 0, 0, kRemoteWrite)) << "nothing";
  EXPECT_FALSE(try_bind(region_, 991, 10, kRemoteWrite)) << "beyond its end";
  EXPECT_FALSE(try_bind(region_, 0, UINT64_MAX, kRemoteWrite));
  EXPECT_FALSE(try_bind(region_, uint64_t{0} - 1, 10, kRemoteWrite)) << "before its beginning";
  EXPECT_FALSE(try_bind(window_.key, 0, 10, kRemoteWrite)) << "a window is no region";
  EXPECT_FALSE(try_bind(0, 0, 10, kRemoteWrite));
  EXPECT_FALSE(Opens(window_.key, 0, 1));
  EXPECT_TRUE(try_bind(readable, 0, 10, kRemoteRead));
}

TEST_F(WindowTableTest, ABoundWindowIsBoundAgainOnlyAfterItWasInvalidated) {
  ASSERT_TRUE(Bind(&window_, 0, 100, kRemoteWrite));
  const uint32_t first = window_.key;
  EXPECT_FALSE(Bind(&window_, 200, 100, kRemoteWrite));
  EXPECT_TRUE(Opens(first, 0, 100));
  EXPECT_FALSE(keys_.Invalidate(2, first)) << "of another domain";
  EXPECT_TRUE(keys_.Invalidate(1, first));
  EXPECT_FALSE(keys_.Invalidate(1, first)) << "once";
  EXPECT_FALSE(Opens(first, 0, 100));
  ASSERT_TRUE(Bind(&window_, 200, 100, kRemoteWrite));
  EXPECT_TRUE(Opens(window_.key, 200, 100));
  EXPECT_FALSE(Opens(first, 200, 100));
}

TEST_F(WindowTableTest, AWindowOfAQueuePairThatEndedIsFreeToBeBoundForAnother) {
  ASSERT_TRUE(Bind(&window_, 0, 100, kRemoteWrite));
  const uint32_t first = window_.key;
  keys_.EndLife(8);
  EXPECT_FALSE(Bind(&window_, 200, 100, kRemoteWrite, {1, 6})) << "another ended";
  keys_.EndLife(7);
  ASSERT_TRUE(Bind(&window_, 200, 100, kRemoteWrite, {1, 6}));
  EXPECT_FALSE(Opens(first, 0, 100));
  EXPECT_TRUE(Opens(window_.key, 200, 100, {1, 6}));
}

TEST_F(WindowTableTest, ARegionsKeyCannotBeInvalidated) {
  EXPECT_FALSE(keys_.Invalidate(1, region_));
  EXPECT_FALSE(keys_.IsWindowOf({1, 7}, region_));
  EXPECT_TRUE(keys_.LocalAllows(1, {memory_.data(), 1, region_}, true));
}

TEST_F(WindowTableTest, ARegionThatGoesClosesItsWindowsForGood) {
  ASSERT_TRUE(Bind(&window_, 0, 100, kRemoteWrite));
  keys_.Remove(region_);
  EXPECT_FALSE(Opens(window_.key, 0, 1));
  EXPECT_FALSE(keys_.IsWindowOf({1, 7}, window_.key));
  EXPECT_EQ(keys_.RegionOf(window_.key), 0u);
  // Until the region's very key names another one.
  uint32_t again = 0;
  for (int i = 0; i < 5000 * 70 && again != region_; ++i) {
    again = keys_.Add(1, RegionMemory(absl::MakeSpan(memory_)), kWindowed);
    if (again != region_) keys_.Remove(again);
  }
  ASSERT_EQ(again, region_);
  EXPECT_FALSE(Opens(window_.key, 0, 1));
  EXPECT_TRUE(Bind(&window_, 0, 100, kRemoteWrite)) << "it is free";
}

TEST_F(WindowTableTest, ARegionThatIsChangedKeepsItsKeyAndClosesItsWindows) {
  ASSERT_TRUE(Bind(&window_, 100, 50, kRemoteWrite));
  std::vector<uint8_t> other(100);
  keys_.Change(region_, 1, RegionMemory(absl::MakeSpan(other)), kLocalWrite | kRemoteWrite);
  EXPECT_FALSE(Opens(window_.key, 100, 50));
  const uint64_t at = reinterpret_cast<uint64_t>(other.data());
  EXPECT_NE(keys_.Remote({1, 7}, region_, at, 100, kRemoteWrite), nullptr);
  EXPECT_EQ(keys_.Remote({1, 7}, region_, begin_, 1, kRemoteWrite), nullptr) << "what it was";
  keys_.Change(region_, 2, RegionMemory(absl::MakeSpan(other)), kLocalWrite);
  EXPECT_EQ(keys_.Remote({2, 7}, region_, at, 1, kRemoteWrite), nullptr) << "the right was taken";
  EXPECT_FALSE(keys_.LocalAllows(1, {other.data(), 1, region_}, false)) << "the domain has lost it";
  EXPECT_TRUE(keys_.LocalAllows(2, {other.data(), 1, region_}, true));
}

TEST_F(WindowTableTest, ARegionWithABaseIsAddressedFromItsBase) {
  constexpr uint64_t kBase = 0x7000;
  const uint32_t region = keys_.Add(1, RegionMemory(absl::MakeSpan(memory_), kBase), kWindowed | kRemoteWrite);
  EXPECT_EQ(keys_.Remote({1, 7}, region, kBase + 10, 990, kRemoteWrite), memory_.data() + 10);
  EXPECT_EQ(keys_.Remote({1, 7}, region, kBase + 10, 991, kRemoteWrite), nullptr);
  EXPECT_EQ(keys_.Remote({1, 7}, region, begin_, 1, kRemoteWrite), nullptr) << "its address";
  const Sge named{reinterpret_cast<uint8_t*>(kBase + 10), 5, region};
  EXPECT_TRUE(keys_.LocalAllows(1, named, true));
  EXPECT_EQ(keys_.MemoryOf(named), memory_.data() + 10);
  EXPECT_FALSE(keys_.LocalAllows(1, {memory_.data(), 5, region}, true));
  EXPECT_EQ(keys_.MemoryOf({memory_.data() + 10, 5, region_}), memory_.data() + 10) << "others are as they were";

  ASSERT_TRUE(keys_.Bind({1, 7}, {window_, region, kBase + 100, 50, kRemoteWrite}));
  EXPECT_EQ(keys_.Remote({1, 7}, window_.key, kBase + 100, 50, kRemoteWrite), memory_.data() + 100);
  EXPECT_EQ(keys_.Remote({1, 7}, window_.key, kBase + 100, 51, kRemoteWrite), nullptr);

  keys_.Change(region, 1, RegionMemory(absl::MakeSpan(memory_), 2 * kBase), kWindowed | kRemoteWrite);
  EXPECT_EQ(keys_.Remote({1, 7}, region, kBase + 10, 1, kRemoteWrite), nullptr);
  EXPECT_EQ(keys_.Remote({1, 7}, region, 2 * kBase + 10, 1, kRemoteWrite), memory_.data() + 10);
}

TEST_F(WindowTableTest, PeersCountFromZeroInAZeroBasedWindow) {
  const uint32_t region = keys_.Add(1, RegionMemory(absl::MakeSpan(memory_), 0), kWindowed);
  EXPECT_FALSE(keys_.Bind({1, 7}, {window_, region, 951, 50, kRemoteWrite, true}));
  ASSERT_TRUE(keys_.Bind({1, 7}, {window_, region, 950, 50, kRemoteWrite, true}));
  EXPECT_EQ(keys_.Remote({1, 7}, window_.key, 0, 50, kRemoteWrite), memory_.data() + 950);
  EXPECT_EQ(keys_.Remote({1, 7}, window_.key, 49, 1, kRemoteWrite), memory_.data() + 999);
  EXPECT_EQ(keys_.Remote({1, 7}, window_.key, 1, 50, kRemoteWrite), nullptr);
}

TEST_F(WindowTableTest, TheLastByteOfAChosenKeyMayDiffer) {
  EXPECT_TRUE(KeyTable::MayFollow(0x1234, 0x1235));
  EXPECT_TRUE(KeyTable::MayFollow(0x12ff, 0x1200));
  EXPECT_FALSE(KeyTable::MayFollow(0x12ff, 0x1300));
}

TEST_F(WindowTableTest, ABindThatComesAfterItsWindowWentBindsNoOther) {
  WindowId late = window_;
  late.key = keys_.NextKey(late.key);
  keys_.RemoveWindow(window_);
  WindowId other;
  do {
    other = keys_.AddWindow(1);
    if (other.key >> 12 != late.key >> 12) keys_.RemoveWindow(other);
  } while (other.key >> 12 != late.key >> 12);
  EXPECT_FALSE(keys_.Bind({1, 7}, {late, region_, begin_, 10, kRemoteWrite}));
  EXPECT_TRUE(Bind(&other, 0, 10, kRemoteWrite));
}

TEST_F(WindowTableTest, KeysOfOneWindowDifferForALongTime) {
  std::set<uint32_t> old;
  for (int i = 0; i < 4000; ++i) {
    ASSERT_TRUE(Bind(&window_, 0, 10, kRemoteWrite));
    ASSERT_TRUE(old.insert(window_.key).second);
    ASSERT_TRUE(keys_.Invalidate(1, window_.key));
  }
  keys_.RemoveWindow(window_);
  EXPECT_EQ(keys_.windows(), 0u);
  EXPECT_EQ(keys_.regions(), 1u);
}

}  // namespace
}  // namespace tokamak::verbs::soft
