#include "lib/daemon/memory/store_memory.h"

#include <unistd.h>

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tokamak::daemon {
namespace {

using testing::AllOf;
using testing::ElementsAre;
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
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB, Free(2 * kMiB, 256), true), IsEmpty());
  EXPECT_THAT(WhyOrdinaryPages(511 * kMiB, Free(2 * kMiB, 256), true), IsEmpty()) << "half of the last one is lost";
}

TEST(WhyOrdinaryPagesTest, TooFewHugePagesAreLeftAloneAndCounted) {
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB + 1, Free(2 * kMiB, 256), true),
              AllOf(HasSubstr("256 huge pages"), HasSubstr("257 are needed"), HasSubstr("vm.nr_hugepages")));
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB, Free(2 * kMiB, 0), true), HasSubstr("no huge pages are free"));
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB, Free(0, 0), true), HasSubstr("this kernel has no huge pages"));
}

TEST(WhyOrdinaryPagesTest, AnEighthOfTheStoreMayBeLostToTheLastPage) {
  EXPECT_THAT(WhyOrdinaryPages(8 * kMiB * 1024 / 9 + 1, Free(1024 * kMiB, 4), true), IsEmpty());
  EXPECT_THAT(WhyOrdinaryPages(8 * kMiB * 1024 / 9 - kMiB, Free(1024 * kMiB, 4), true), HasSubstr("would waste"));
}

TEST(WhyOrdinaryPagesTest, HugePagesOfABoundedGroupAreTakenOnlyIfTouchedAtOnce) {
  os::HugePages pages = Free(2 * kMiB, 256);
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB, pages, false), IsEmpty());
  pages.by_group = true;
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB, pages, true), IsEmpty());
  EXPECT_THAT(WhyOrdinaryPages(512 * kMiB, pages, false), HasSubstr("--no-prefault"));
}

// A system that has huge pages, by its own word.
class TouchedMemoryTest : public testing::Test {
 protected:
  TouchedMemoryTest() {
    system_.huge_pages = [] { return Free(2 * kMiB, 256); };
    system_.create = [this](uint64_t size, os::SharedMemoryOptions options) {
      created_.push_back(options.huge_pages);
      options.huge_pages = false;
      return os::SharedMemory::Create("test", size, options);
    };
  }
  // Fails the first touch with `status`.
  TouchMemory FailOnce(const absl::Status& status) {
    return [this, status](const os::SharedMemory&) { return ++touched_ == 1 ? status : absl::OkStatus(); };
  }

  MemorySystem system_;
  std::vector<bool> created_;  // in huge pages?
  int touched_ = 0;
};

TEST_F(TouchedMemoryTest, OrdinaryPagesReplaceHugeOnesThatAreGoneWhenTouched) {
  const auto store = OpenStoreMemory(8 * kMiB, HugePagesChoice::kWhereFree,
                                     FailOnce(absl::ResourceExhaustedError("no memory to pre-fault")), system_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(store->pages, AllOf(HasSubstr("in ordinary pages"), HasSubstr("no memory to pre-fault")));
  EXPECT_THAT(created_, ElementsAre(true, false));
  EXPECT_EQ(touched_, 2);
}

TEST_F(TouchedMemoryTest, PresentHugePagesAreTouchedOnce) {
  const auto store = OpenStoreMemory(8 * kMiB, HugePagesChoice::kWhereFree, FailOnce(absl::OkStatus()), system_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(created_, ElementsAre(true));
  EXPECT_EQ(touched_, 1);
}

TEST_F(TouchedMemoryTest, TheStartFailsIfHugePagesAreRequiredOrItIsStopped) {
  const absl::Status missing = absl::ResourceExhaustedError("no memory to pre-fault");
  EXPECT_EQ(OpenStoreMemory(8 * kMiB, HugePagesChoice::kAlways, FailOnce(missing), system_).status(), missing);
  touched_ = 0;
  const absl::Status stopped = absl::CancelledError("stopped while it started");
  EXPECT_EQ(OpenStoreMemory(8 * kMiB, HugePagesChoice::kWhereFree, FailOnce(stopped), system_).status(), stopped);
  EXPECT_THAT(created_, ElementsAre(true, true));
}

TEST(StoreMemoryTest, TheChoiceOfPagesIsReportedWithItsReason) {
  for (const HugePagesChoice choice : {HugePagesChoice::kWhereFree, HugePagesChoice::kNever}) {
    const auto store = OpenStoreMemory(8 * kMiB, choice, nullptr);
    ASSERT_TRUE(store.ok()) << store.status();
    const bool huge = store->memory.page_size() != static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    EXPECT_THAT(store->pages, HasSubstr(huge ? "the store is in huge pages" : "the store is in ordinary pages"));
    if (choice != HugePagesChoice::kNever) continue;
    EXPECT_FALSE(huge);
    EXPECT_THAT(store->pages, HasSubstr("--no-huge-pages"));
  }
}

TEST(StoreMemoryTest, RequiredHugePagesAreNotReplaced) {
  constexpr uint64_t kMore = uint64_t{1} << 50;  // than any machine has
  EXPECT_FALSE(OpenStoreMemory(kMore, HugePagesChoice::kAlways, nullptr).ok());
}

}  // namespace
}  // namespace tokamak::daemon
