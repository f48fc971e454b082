#include "lib/verbs/kernel/program/program_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::verbs::kernel {
namespace {

sigjmp_buf out_of_fault;

void LeaveFault(int) { siglongjmp(out_of_fault, 1); }

class ProgramPagesTest : public ::testing::Test {
 protected:
  static constexpr size_t kPages = 4;

  ProgramPagesTest() {
    ProgramPages::TakeFaults();
    memory_ = static_cast<uint8_t*>(
        mmap(nullptr, kPages * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(memory_, MAP_FAILED);
    memory_[0] = 77;
  }
  ~ProgramPagesTest() override { munmap(memory_, kPages * page_); }

  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  uint8_t* memory_ = nullptr;
  const ProgramPages pages_;
};

TEST_F(ProgramPagesTest, PresentMemoryMayBeReadAndWrittenAndStaysUnchanged) {
  EXPECT_TRUE(pages_.MayRead(memory_, kPages * page_));
  EXPECT_TRUE(pages_.MayChange(memory_, kPages * page_));
  EXPECT_EQ(memory_[0], 77);
}

TEST_F(ProgramPagesTest, ProtectedMemoryMayNotBeWrittenOrTouched) {
  ASSERT_EQ(mprotect(memory_ + page_, page_, PROT_READ), 0);
  EXPECT_TRUE(pages_.MayRead(memory_, kPages * page_));
  EXPECT_FALSE(pages_.MayChange(memory_, kPages * page_));
  EXPECT_TRUE(pages_.MayChange(memory_ + 2 * page_, page_));
  ASSERT_EQ(mprotect(memory_ + page_, page_, PROT_NONE), 0);
  EXPECT_FALSE(pages_.MayRead(memory_ + page_ - 1, 2)) << "its last byte is there";
  EXPECT_TRUE(pages_.MayRead(memory_ + page_ - 1, 1));
}

TEST_F(ProgramPagesTest, UnmappedMemoryIsAbsentEachTime) {
  ASSERT_EQ(munmap(memory_ + page_, page_), 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(pages_.MayRead(memory_ + page_, 1));
    EXPECT_FALSE(pages_.MayChange(memory_ + page_, 1));
  }
}

TEST_F(ProgramPagesTest, TheTruncatedPartOfAFileIsAbsent) {
  const int file = memfd_create("cut", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(page_)), 0);
  auto* const mapped = static_cast<uint8_t*>(mmap(nullptr, page_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  EXPECT_TRUE(pages_.MayChange(mapped, page_));
  ASSERT_EQ(ftruncate(file, 0), 0);
  EXPECT_FALSE(pages_.MayChange(mapped, page_));
  EXPECT_FALSE(pages_.MayRead(mapped, page_));
  munmap(mapped, page_);
  close(file);
}

TEST_F(ProgramPagesTest, AWriteStopsAtTheFirstForbiddenPage) {
  const std::vector<uint8_t> bytes(2 * page_, 5);
  EXPECT_TRUE(pages_.Write(memory_ + 3, bytes.data(), bytes.size()));
  EXPECT_EQ(std::memcmp(memory_ + 3, bytes.data(), bytes.size()), 0);
  ASSERT_EQ(mprotect(memory_ + page_, page_, PROT_READ), 0);
  EXPECT_FALSE(pages_.Write(memory_, bytes.data(), bytes.size()));
  EXPECT_TRUE(pages_.Write(memory_, bytes.data(), page_));
}

TEST_F(ProgramPagesTest, AThreadThatBlocksAllSignalsMayAskAsWell) {
  ASSERT_EQ(mprotect(memory_, page_, PROT_NONE), 0);
  sigset_t all;
  sigfillset(&all);
  bool may = true;
  std::thread([&] {
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    may = pages_.MayRead(memory_, 1) || pages_.MayRead(memory_, 1);
  }).join();
  EXPECT_FALSE(may);
}

// A handler that the program installs later gets its faults, and is asked nothing then.
TEST_F(ProgramPagesTest, OtherFaultsAreTheProgramsOwn) {
  struct sigaction ours {};
  struct sigaction before {};
  ours.sa_handler = &LeaveFault;
  ASSERT_EQ(sigaction(SIGSEGV, &ours, &before), 0);
  ASSERT_EQ(mprotect(memory_, page_, PROT_NONE), 0);
  bool faulted = true;
  if (sigsetjmp(out_of_fault, 1) == 0) {
    *static_cast<volatile uint8_t*>(memory_) = 1;
    faulted = false;
  }
  EXPECT_TRUE(faulted);
  ASSERT_EQ(sigaction(SIGSEGV, &before, nullptr), 0);
  EXPECT_FALSE(pages_.MayRead(memory_, 1));
}

}  // namespace
}  // namespace tokamak::verbs::kernel
