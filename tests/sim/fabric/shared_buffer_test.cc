// Shares of a switch's memory.
#include "sim/fabric/switch/shared_buffer.h"

#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

constexpr uint8_t kLossless = 3;
constexpr uint8_t kLossy = 1;

PfcOptions NoPfc() {
  PfcOptions options;
  options.lossless = 0;
  return options;
}

SharedBuffer Make(const BufferOptions& options, const PfcOptions& pfc, int ports = 4) {
  SharedBuffer buffer(options, pfc);
  for (int i = 0; i < ports; ++i) buffer.AddPort({});
  EXPECT_TRUE(buffer.Start().ok());
  return buffer;
}

// Takes room until there is none.
uint64_t Fill(SharedBuffer* buffer, uint32_t ingress, uint32_t egress, uint8_t priority) {
  uint64_t bytes = 0;
  while (buffer->Take(ingress, egress, priority, 1000)) bytes += 1000;
  return bytes;
}

TEST(SharedBufferTest, HeadroomCoversFramesThatMayStillCome) {
  const LinkParameters link{Rate::Gigabits(100), base::Microseconds(1)};
  const uint64_t frame = MostWireBytes(4096);
  EXPECT_EQ(frame, 8u + 14 + 40 + 8 + 40 + 4096 + 4 + 4 + 12);
  EXPECT_EQ(HeadroomOf(link, 4096, base::Duration()), 3 * frame + 84 + 25'000);
  EXPECT_EQ(HeadroomOf(link, 4096, base::Nanoseconds(80)), 3 * frame + 84 + 26'000);
  EXPECT_EQ(Make({}, {}).headroom(0), 3 * frame + 84 + 25'000);
}

TEST(SharedBufferTest, ALoneQueueGetsAlphaOfTheRestAndLeavesTheRest) {
  BufferOptions options;
  options.bytes = 1'000'000;
  options.egress_alpha = 1;
  options.ingress_alpha = 100;
  SharedBuffer buffer = Make(options, NoPfc());
  ASSERT_EQ(buffer.shared(), 1'000'000u);
  // T = alpha * (B - Q) and Q = T: half for alpha = 1.
  EXPECT_NEAR(static_cast<double>(Fill(&buffer, 0, 1, kLossy)), 500'000, 1000);
  // A second one finds T = alpha * (B - 500,000 - Q): a quarter.
  EXPECT_NEAR(static_cast<double>(Fill(&buffer, 0, 2, kLossy)), 250'000, 1000);
}

TEST(SharedBufferTest, IngressIsBoundedByItsOwnAlpha) {
  BufferOptions options;
  options.bytes = 1'000'000;
  options.ingress_alpha = 0.25;
  options.egress_alpha = 100;
  SharedBuffer buffer = Make(options, NoPfc());
  EXPECT_NEAR(static_cast<double>(Fill(&buffer, 0, 1, kLossy)), 200'000, 1000);  // alpha / (1 + alpha)
}

TEST(SharedBufferTest, ReservesAreThereWhenNothingIsLeftToShare) {
  BufferOptions options;
  options.bytes = 1'000'000;
  options.reserved = 3000;
  options.ingress_alpha = 1000;
  options.egress_alpha = 1000;
  SharedBuffer buffer = Make(options, NoPfc());
  EXPECT_EQ(buffer.shared(), 1'000'000u - 4 * 8 * 3000);
  Fill(&buffer, 0, 1, kLossy);
  EXPECT_LT(buffer.shared() - buffer.shared_used(), 1000u + 1000);
  EXPECT_TRUE(buffer.Take(2, 1, kLossless, 1000));
  EXPECT_EQ(buffer.ingress_bytes(2, kLossless), 1000u);
}

TEST(SharedBufferTest, ALosslessPriorityHasItsHeadroomBeyondTheThreshold) {
  PfcOptions pfc;
  pfc.xoff = 10'000;
  pfc.xon = 5000;
  pfc.headroom = 20'000;
  SharedBuffer buffer = Make({}, pfc);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(buffer.Take(0, 1, kLossless, 1000));
    EXPECT_FALSE(buffer.AboveXoff(0, kLossless));
  }
  ASSERT_TRUE(buffer.Take(0, 1, kLossless, 1000));
  EXPECT_TRUE(buffer.AboveXoff(0, kLossless));
  EXPECT_FALSE(buffer.AboveXoff(1, kLossless)) << "others are not concerned";
  EXPECT_EQ(Fill(&buffer, 0, 1, kLossless), 19'000u);
  EXPECT_EQ(buffer.most_headroom(), 20'000u);

  // Headroom empties first.
  for (int i = 0; i < 24; ++i) {
    EXPECT_FALSE(buffer.BelowXon(0, kLossless)) << i;
    buffer.Release(0, 1, kLossless, 1000);
  }
  EXPECT_EQ(buffer.ingress_bytes(0, kLossless), 6000u);
  buffer.Release(0, 1, kLossless, 1000);
  EXPECT_TRUE(buffer.BelowXon(0, kLossless));
  while (buffer.ingress_bytes(0, kLossless) > 0) buffer.Release(0, 1, kLossless, 1000);
  EXPECT_EQ(buffer.used(), 0u);
  EXPECT_EQ(buffer.shared_used(), 0u);
}

TEST(SharedBufferTest, NoNeighbourResumesWhileHeadroomIsTaken) {
  PfcOptions pfc;
  pfc.xoff = 10'000;
  pfc.xon = 10'000;
  SharedBuffer buffer = Make({}, pfc);
  for (int i = 0; i < 11; ++i) ASSERT_TRUE(buffer.Take(0, 1, kLossless, 1000));
  EXPECT_FALSE(buffer.BelowXon(0, kLossless));
  buffer.Release(0, 1, kLossless, 1000);
  EXPECT_TRUE(buffer.BelowXon(0, kLossless));
}

TEST(SharedBufferTest, ALossyPriorityHasNoHeadroom) {
  PfcOptions pfc;
  pfc.xoff = 10'000;
  BufferOptions options;
  options.bytes = 2'000'000;
  SharedBuffer buffer = Make(options, pfc);
  const uint64_t taken = Fill(&buffer, 0, 1, kLossy);
  EXPECT_LE(taken, buffer.shared());
  EXPECT_EQ(buffer.most_headroom(), 0u);
}

TEST(SharedBufferTest, ABufferThatHeadroomFillsIsRefused) {
  BufferOptions options;
  options.bytes = 300'000;
  SharedBuffer buffer(options, PfcOptions());
  for (int i = 0; i < 4; ++i) buffer.AddPort({});
  const absl::Status status = buffer.Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("too small"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace tokamak::sim
