#include "lib/daemon/store_memory.h"

#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::daemon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMiB = uint64_t{1} << 20;

os::HugePages Free(uint64_t page_size, uint64_t count) {
  os::HugePages pages;
  pages.page_size = page_size;
  pages.free = count;
  return pages;
}

TEST(WhyOrdinaryPagesTest, EnoughHugePagesAreTaken) {
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB, Free(2 * kMiB, 256)), IsEmpty());
  EXPECT_THAT(WhyOrdinaryPages(511 * kMiB, Free(2 * kMiB, 256)), IsEmpty()) << "half of the last one is lost";
}

TEST(WhyOrdinaryPagesTest, TooFewAreLeftAloneAndCounted) {
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB + 1, Free(2 * kMiB, 256)),
              AllOf(HasSubstr("256 huge pages"), HasSubstr("257 are needed"), HasSubstr("vm.nr_hugepages")));
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB, Free(2 * kMiB, 0)), HasSubstr("no huge pages are free"));
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB, Free(0, 0)), HasSubstr("this kernel has no huge pages"));
}

TEST(WhyOrdinaryPagesTest, AnEighthOfTheStoreMayBeLostToTheLastPage) {
  EXPECT_THAT(WhyOrdinaryPages(8 * kMiB * 1024 / 9 + 1, Free(1024 * kMiB, 4)), IsEmpty());
  EXPECT_THAT(WhyOrdinaryPages(8 * kMiB * 1024 / 9 - kMiB, Free(1024 * kMiB, 4)), HasSubstr("would waste"));
}

TEST(StoreMemoryTest, WhichPagesAndWhyIsSaid) {
  for (const HugePagesChoice choice : {HugePagesChoice::kWhereFree, HugePagesChoice::kNever}) {
    const auto store = OpenStoreMemory(8 * kMiB, choice);
    ASSERT_TRUE(store.ok()) << store.status();
    const bool huge = store->memory.page_size() != static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    EXPECT_THAT(store->pages, HasSubstr(huge ? "the store is in huge pages" : "the store is in ordinary pages"));
    if (choice != HugePagesChoice::kNever) continue;
    EXPECT_FALSE(huge);
    EXPECT_THAT(store->pages, HasSubstr("--no-huge-pages"));
  }
}

TEST(StoreMemoryTest, HugePagesThatWereAskedForAreNotReplaced) {
  constexpr uint64_t kMore = uint64_t{1} << 50;  // than any machine has
  EXPECT_FALSE(OpenStoreMemory(kMore, HugePagesChoice::kAlways).ok());
}

}  // namespace
}  // namespace tokamak::daemon
