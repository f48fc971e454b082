#include "lib/daemon/memory/heap_trimmer.h"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/time.h"
#include "sim/time/sim_loop.h"

namespace tokamak::daemon {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Resident memory of this process.
size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

using Piece = std::unique_ptr<uint8_t[]>;

// Many small pieces, as of objects that are noted. Returns a few of them, which stay in use.
std::vector<Piece> UseAndFree(size_t bytes) {
  constexpr size_t kPiece = 256;
  std::vector<Piece> pieces(bytes / kPiece), used;
  for (Piece& piece : pieces) piece = std::make_unique<uint8_t[]>(kPiece);
  for (size_t i = 0; i < pieces.size(); i += kMiB / kPiece) used.push_back(std::move(pieces[i]));
  return used;
}

TEST(HeapTrimmerTest, FreeMemoryIsReturnedInSteps) {
  std::vector<Piece> used = UseAndFree(128 * kMiB);
  const size_t free = HeapTrimmer::Free();
  ASSERT_GT(free, 100 * kMiB) << "linked with tcmalloc, which keeps what is freed";
  const size_t resident = ResidentBytes();
  sim::Scheduler scheduler;
  sim::SimLoop loop(scheduler);
  const HeapTrimmer trimmer(loop);
  EXPECT_GE(HeapTrimmer::Free(), free - 8 * kMiB) << "in steps";
  scheduler.RunFor(HeapTrimmer::kBetweenSteps * static_cast<int64_t>(free / HeapTrimmer::kStep));
  EXPECT_LE(HeapTrimmer::Free(), HeapTrimmer::kKept);
  EXPECT_GE(HeapTrimmer::Free(), HeapTrimmer::kKept - 8 * kMiB) << "some of it is needed again";
  EXPECT_LT(ResidentBytes() + 90 * kMiB, resident);

  used = UseAndFree(128 * kMiB);
  scheduler.RunFor(HeapTrimmer::kBetweenLooks + base::Seconds(10));
  EXPECT_LE(HeapTrimmer::Free(), HeapTrimmer::kKept);
}

}  // namespace
}  // namespace tokamak::daemon
