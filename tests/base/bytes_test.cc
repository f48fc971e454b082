#include "lib/base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "sim/time/sim_loop.h"

namespace tokamak::base {
namespace {

using Bytes = std::array<uint8_t, 8>;

TEST(BytesTest, BigEndianPutsTheHighByteFirst) {
  Bytes bytes{};
  StoreBig64(bytes.data(), 0x0102030405060708);
  EXPECT_EQ(bytes, (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(LoadBig64(bytes.data()), 0x0102030405060708u);
  EXPECT_EQ(LoadBig32(bytes.data()), 0x01020304u);
  EXPECT_EQ(LoadBig24(bytes.data()), 0x010203u);
  EXPECT_EQ(LoadBig16(bytes.data()), 0x0102u);
}

TEST(BytesTest, LittleEndianPutsTheLowByteFirst) {
  Bytes bytes{};
  StoreLittle<uint64_t>(bytes.data(), 0x0102030405060708);
  EXPECT_EQ(bytes, (Bytes{8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(LoadLittle<uint64_t>(bytes.data()), 0x0102030405060708u);
  EXPECT_EQ(LoadLittle<uint32_t>(bytes.data()), 0x05060708u);
  EXPECT_EQ(LoadLittle<uint16_t>(bytes.data()), 0x0708u);
  EXPECT_EQ(LoadLittle<uint8_t>(bytes.data()), 0x08u);
}

TEST(BytesTest, StoresTouchOnlyTheirBytes) {
  Bytes bytes;
  bytes.fill(0xee);
  StoreBig24(bytes.data(), 0xffffffff);
  EXPECT_EQ(bytes, (Bytes{0xff, 0xff, 0xff, 0xee, 0xee, 0xee, 0xee, 0xee}));
  StoreBig16(bytes.data(), 0xabcd);
  StoreBig32(bytes.data() + 4, 0x01020304);
  EXPECT_EQ(bytes, (Bytes{0xab, 0xcd, 0xff, 0xee, 1, 2, 3, 4}));
  StoreLittle<uint16_t>(bytes.data() + 2, 0x1234);
  EXPECT_EQ(bytes, (Bytes{0xab, 0xcd, 0x34, 0x12, 1, 2, 3, 4}));
}

TEST(BytesTest, HighBitsSurvive) {
  Bytes bytes;
  bytes.fill(0xff);
  EXPECT_EQ(LoadBig16(bytes.data()), 0xffffu);
  EXPECT_EQ(LoadBig32(bytes.data()), 0xffffffffu);
  EXPECT_EQ(LoadBig64(bytes.data()), UINT64_MAX);
  EXPECT_EQ(LoadLittle<uint64_t>(bytes.data()), UINT64_MAX);
}

TEST(CopyTest, CopiesAndSpendsTheTimeThatTakes) {
  sim::Scheduler scheduler;
  sim::SimLoop loop(scheduler);
  std::vector<uint8_t> from(4096, 7);
  std::vector<uint8_t> to(4096);
  Copy(loop, to.data(), from.data(), from.size());
  EXPECT_EQ(to, from);
  EXPECT_TRUE(loop.spent() == sim::CopySpeed().TimeOf(4096));
}

TEST(CopyTest, ACopyOfAFewBytesStillCosts) {
  sim::Scheduler scheduler;
  sim::SimLoop loop(scheduler);
  uint8_t from = 1;
  uint8_t to = 0;
  Copy(loop, &to, &from, 1);
  EXPECT_EQ(to, 1);
  EXPECT_TRUE(loop.spent() > Duration());
}

TEST(CopyTest, NothingMayBeCopiedFromNowhere) {
  sim::Scheduler scheduler;
  sim::SimLoop loop(scheduler);
  Copy(loop, nullptr, nullptr, 0);
  EXPECT_TRUE(loop.spent() == Duration());
}

}  // namespace
}  // namespace tokamak::base
