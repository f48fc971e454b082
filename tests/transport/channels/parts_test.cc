// The small bookkeeping of the transport: send ring, fifo, shares, ids.
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/transport/channels/fifo.h"
#include "lib/transport/channels/peer_shares.h"
#include "lib/transport/channels/slots.h"
#include "lib/transport/messages/request_id.h"

namespace tokamak::transport {
namespace {

TEST(SendRingTest, ACompletionFreesItsEntryAndEarlierOnes) {
  SendRing ring(8);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(ring.Take(), i);
  EXPECT_TRUE(ring.full());
  EXPECT_TRUE(ring.Complete(3));
  EXPECT_EQ(ring.taken(), 4u);
  EXPECT_EQ(ring.Take(), 0u);
  EXPECT_TRUE(ring.Complete(0));
  EXPECT_EQ(ring.taken(), 0u);
}

TEST(SendRingTest, ACompletionOfNoEntryIsRefused) {
  SendRing ring(8);
  EXPECT_FALSE(ring.Complete(0));
  ring.Take();
  EXPECT_FALSE(ring.Complete(1));
  EXPECT_FALSE(ring.Complete(8));
  EXPECT_TRUE(ring.Complete(0));
  EXPECT_FALSE(ring.Complete(0));
}

TEST(SendRingTest, AFullRingAlwaysHasASignaledRequest) {
  for (uint32_t entries : {4u, 5u, 8u, 63u, 64u}) {
    SendRing ring(entries);
    uint32_t last_signaled = UINT32_MAX;
    for (int i = 0; i < 1000; ++i) {
      if (ring.full()) {
        ASSERT_NE(last_signaled, UINT32_MAX) << entries;
        ASSERT_TRUE(ring.Complete(last_signaled));
        last_signaled = UINT32_MAX;
      }
      const uint32_t entry = ring.Take();
      if (ring.signal_due()) last_signaled = entry;
    }
  }
}

TEST(FifoTest, KeepsOrderWhileItGrowsAndWraps) {
  Fifo<int> fifo;
  int in = 0, out = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 7 + round % 5; ++i) fifo.Push(in++);
    for (int i = 0; i < 5 && !fifo.empty(); ++i) EXPECT_EQ(fifo.Pop(), out++);
  }
  while (!fifo.empty()) EXPECT_EQ(fifo.Pop(), out++);
  EXPECT_EQ(in, out);
}

TEST(PeerSharesTest, OnlyConnectionsOfOnePeerShare) {
  PeerShares shares;
  const PeerShares::Ip one = {1}, two = {2};
  auto a = std::make_unique<PeerShares::Membership>(shares, one);
  auto b = std::make_unique<PeerShares::Membership>(shares, one);
  auto c = std::make_unique<PeerShares::Membership>(shares, two);
  EXPECT_EQ(shares.ConnectionsOf(one), 2u);
  EXPECT_EQ(shares.ConnectionsOf(two), 1u);
  ++a->share().serves;
  EXPECT_EQ(b->share().serves, 1u);
  EXPECT_EQ(c->share().serves, 0u);
  --b->share().serves;
  a.reset();
  EXPECT_EQ(shares.ConnectionsOf(one), 1u);
  b.reset();
  EXPECT_EQ(shares.ConnectionsOf(one), 0u);
  EXPECT_EQ(shares.peers(), 1u);
}

TEST(PeerSharesTest, EachPeerMayHaveAtLeastOneAndNeverAll) {
  for (uint32_t all : {2u, 3u, 4u, 5u, 1024u, 65536u}) {
    EXPECT_LT(PeerShares::PartOf(all), all);
    EXPECT_GE(PeerShares::PartOf(all), 1u);
  }
  EXPECT_EQ(PeerShares::PartOf(1024), 256u);
}

TEST(RequestIdTest, IsFoundAgainInItsCompletion) {
  const RequestId id = RequestId::Unpack(RequestId{16, true, 0xfffffff0}.Pack());
  EXPECT_EQ(id.queue, 16);
  EXPECT_TRUE(id.receive);
  EXPECT_EQ(id.entry, 0xfffffff0u);
  EXPECT_FALSE(RequestId::Unpack(RequestId{0, false, 1}.Pack()).receive);
}

}  // namespace
}  // namespace tokamak::transport
