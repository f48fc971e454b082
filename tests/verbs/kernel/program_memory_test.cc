#include "lib/verbs/kernel/program/program_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "gtest/gtest.h"

namespace tokamak::verbs::kernel {
namespace {

class ProgramMemoryTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPages = 4;

  ProgramMemoryTest() {
    void* const mapped = mmap(nullptr, kPages * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    memory_ = reinterpret_cast<uint64_t>(mapped);
  }
  ~ProgramMemoryTest() override { munmap(reinterpret_cast<void*>(memory_), kPages * page_); }

  void* Page(uint64_t number) const { return reinterpret_cast<void*>(memory_ + number * page_); }

  const uint64_t page_ = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t memory_ = 0;
};

TEST_F(ProgramMemoryTest, PopulatedMemoryIsPresent) {
  EXPECT_EQ(Populate(memory_ + 5, 3 * page_, true), 0);
  unsigned char present[kPages] = {};
  ASSERT_EQ(mincore(Page(0), kPages * page_, present), 0);
  for (const unsigned char one : present) EXPECT_EQ(one & 1, 1);
}

TEST_F(ProgramMemoryTest, ReadOnlyMemoryIsNotWritable) {
  ASSERT_EQ(mprotect(Page(2), page_, PROT_READ), 0);
  EXPECT_EQ(Populate(memory_, kPages * page_, false), 0);
  EXPECT_EQ(Populate(memory_, kPages * page_, true), EFAULT);
  EXPECT_EQ(Populate(memory_, 2 * page_, true), 0) << "only what is asked for counts";
}

TEST_F(ProgramMemoryTest, MissingOrForbiddenMemoryIsNotPresent) {
  ASSERT_EQ(mprotect(Page(1), page_, PROT_NONE), 0);
  for (const bool writable : {false, true}) EXPECT_EQ(Populate(memory_, 2 * page_, writable), EFAULT) << writable;
  ASSERT_EQ(munmap(Page(1), page_), 0);
  for (const bool writable : {false, true}) EXPECT_EQ(Populate(memory_, 2 * page_, writable), EFAULT) << writable;
  EXPECT_EQ(Populate(UINT64_MAX - 10, 20, false), EFAULT);
}

}  // namespace
}  // namespace tokamak::verbs::kernel
