// A peer, or somebody in its name, that repeats requests which never were, so as to find keys or to
// draw more than it sends.
#include <vector>

#include "lib/verbs/soft/rc/responder.h"
#include "tests/verbs/soft/one_nic.h"

namespace tokamak::verbs::soft {
namespace {

using Op = PacketOpcode;

class ResponderGuessTest : public OneNic {
 protected:
  // With `served` READs of 4 packets behind it, and a second region whose key the peer does not
  // have.
  void OpenAndServe(uint32_t served) {
    Open();
    other_ = *domain_->RegisterMemory(absl::MakeSpan(memory_), kAll);
    for (uint32_t i = 0; i < served; ++i) {
      Arrive({Read(4 * i, 4 * kMtu * i, 4 * kMtu)});
      ASSERT_EQ(TakeSent().size(), 4u);
    }
  }
  Packet Read(uint32_t index, uint64_t offset, uint32_t length) const {
    return To(Request(Op::kReadRequest, index), Remote(offset), region_->rkey(), length);
  }
  // Packets that `guess` brings; the connection stands as if it had not come.
  size_t Drawn(const Packet& guess) {
    fabric_.Deliver(absl::MakeConstSpan(&guess, 1));
    EXPECT_EQ(queue_pair_->state(), QueuePairState::kReadyToSend);
    return TakeSent().size();
  }
  Packet WithKey(Packet packet, uint32_t key) const {
    packet.rkey = key;
    return packet;
  }

  std::unique_ptr<MemoryRegion> other_;
};

TEST_F(ResponderGuessTest, ThousandsOfGuessesAtOldPsnsFindNoKeyAndGetNoAnswer) {
  OpenAndServe(2);
  size_t guesses = 0, drawn = 0;
  for (uint32_t key = 0; key < 4 << 12; ++key) {  // all keys that a first few regions can have
    if (key == region_->rkey()) continue;
    drawn += Drawn(WithKey(Read(0, 0, 8), key));
    drawn += Drawn(WithKey(Read(static_cast<uint32_t>(-50), 0, 8), key));
    guesses += 2;
  }
  EXPECT_EQ(drawn, 0u) << "of " << guesses << ", among them the other region's key " << other_->rkey();
  EXPECT_EQ(counters().naks_sent_remote_access, 0u);
  EXPECT_EQ(counters().requests_duplicate, guesses);
}

TEST_F(ResponderGuessTest, AReadThatWasNeverSentGetsNoAnswerThoughItsKeyIsRight) {
  OpenAndServe(2);
  const uint32_t before = static_cast<uint32_t>(-5000);
  for (const Packet& guess : std::vector<Packet>{
           Read(before, 0, 4096 * kMtu),  // one datagram for 4,096
           Read(before, 0, 8),
           Read(0, 0, 5 * kMtu),         // beyond the end of the one that was
           Read(0, kMtu, 4 * kMtu),      // the same length, other memory
           Read(1, 2 * kMtu, 2 * kMtu),  // a part, but not at its packet
           Read(1, 0, kMtu),
           Read(3, 3 * kMtu, 2 * kMtu),  // over the border of two
           Read(0, 0, 8 * kMtu),         // both
           Read(0, static_cast<uint64_t>(-1), 8),
       }) {
    EXPECT_EQ(Drawn(guess), 0u) << guess.psn << " " << guess.dma_length;
  }
}

TEST_F(ResponderGuessTest, AServedReadIsAnsweredAgainWholeOrInPart) {
  OpenAndServe(2);
  EXPECT_EQ(Drawn(Read(0, 0, 4 * kMtu)), 4u);
  EXPECT_EQ(Drawn(Read(1, kMtu, 3 * kMtu)), 3u);
  EXPECT_EQ(Drawn(Read(2, 2 * kMtu, kMtu)), 1u);
  EXPECT_EQ(Drawn(Read(4, 4 * kMtu, 4 * kMtu)), 4u);
  EXPECT_EQ(Drawn(Read(7, 7 * kMtu, kMtu)), 1u);
}

TEST_F(ResponderGuessTest, AReadOlderThanAnyOutstandingOneGetsNoAnswer) {
  OpenAndServe(17);  // two at once are served, 16 remembered
  EXPECT_EQ(Drawn(Read(0, 0, 4 * kMtu)), 0u);
  EXPECT_EQ(Drawn(Read(4, 4 * kMtu, 4 * kMtu)), 4u);
  EXPECT_EQ(Drawn(Read(8, 8 * kMtu, 4 * kMtu)), 4u);
}

TEST_F(ResponderGuessTest, AnAtomicIsAnsweredAgainOnlyIfUnchanged) {
  OpenAndServe(0);
  const uint64_t aligned = (Remote(0) + 7) / 8 * 8;
  Packet add = To(Request(Op::kFetchAdd, 0), aligned, region_->rkey(), 0);
  EXPECT_EQ(Drawn(add), 1u);
  EXPECT_EQ(Drawn(add), 1u);
  EXPECT_EQ(Drawn(WithKey(add, other_->rkey())), 0u);
  EXPECT_EQ(Drawn(Read(0, 0, 8)), 0u);
  add.remote_address += 8;
  EXPECT_EQ(Drawn(add), 0u);
}

TEST_F(ResponderGuessTest, ALaterConnectionOfTheQueuePairKnowsNothingOfEarlierOnes) {
  OpenAndServe(1);
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kReset, {}).ok());
  QueuePairAttributes attributes;
  attributes.remote_access = kAll;
  ASSERT_TRUE(queue_pair_->Modify(QueuePairState::kInit, attributes).ok());
  Walk(*queue_pair_);
  EXPECT_EQ(Drawn(Read(static_cast<uint32_t>(-4), 0, 4 * kMtu)), 0u);
  EXPECT_EQ(Drawn(Read(0, 0, 4 * kMtu)), 4u);
}

}  // namespace
}  // namespace tokamak::verbs::soft
