// Memory that the host has no more, while it is registered: where the parts of the NIC that touch
// memory ask, and what becomes of the bytes.
#include "lib/verbs/soft/host_memory.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/gather.h"
#include "lib/verbs/soft/state/memory.h"
#include "lib/verbs/soft/state/scatter.h"

namespace tokamak::verbs::soft {
namespace {

// Has what is below `end`.
class HostUpTo final : public HostMemory {
 public:
  explicit HostUpTo(const uint8_t* end) : end_(end) {}

  bool MayRead(const uint8_t* memory, size_t length) const override { return memory + length <= end_; }
  bool MayChange(uint8_t* memory, size_t length) const override { return memory + length <= end_; }
  bool Write(uint8_t* to, const uint8_t* from, size_t length) const override {
    if (to + length > end_) return false;
    std::memcpy(to, from, length);
    return true;
  }

 private:
  const uint8_t* const end_;
};

class HostMemoryTest : public ::testing::Test {
 protected:
  static constexpr size_t kThere = 500;

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(1000);
  const HostUpTo host_{memory_.data() + kThere};
  KeyTable keys_{SecretNumbers(1, 1), &host_};
  const uint32_t key_ = keys_.Add(1, RegionMemory(absl::MakeSpan(memory_)), kLocalWrite | kRemoteWrite);
  Sge whole_{memory_.data(), 1000, key_};
};

TEST_F(HostMemoryTest, APacketNeedsOnlyTheMemoryThatItCarries) {
  SourceBytes source;
  source.length = 1000;
  source.sge_count = 1;
  source.sges = &whole_;
  EXPECT_TRUE(MayGather(keys_, 1, source, 0, 500));
  EXPECT_TRUE(MayGather(keys_, 1, source, 400, 100)) << "only what the packet takes is asked for";
  EXPECT_FALSE(MayGather(keys_, 1, source, 401, 100));
}

TEST_F(HostMemoryTest, DataForMissingMemoryHasNoKey) {
  const std::vector<uint8_t> bytes(100, 7);
  const PayloadSlice slice{bytes.data(), 100};
  EXPECT_EQ(Scatter(keys_, 1, absl::MakeConstSpan(&whole_, 1), 400, {&slice, 1}), ScatterResult::kDone);
  EXPECT_EQ(memory_[499], 7);
  EXPECT_EQ(Scatter(keys_, 1, absl::MakeConstSpan(&whole_, 1), 450, {&slice, 1}), ScatterResult::kNoKey);
  EXPECT_EQ(memory_[500], 0);
}

TEST_F(HostMemoryTest, APeersWriteEndsWhereTheMemoryEnds) {
  const std::vector<uint8_t> bytes(100, 7);
  Packet packet;
  packet.payload[packet.slices++] = {bytes.data(), 100};
  EXPECT_TRUE(CopyPayload(keys_, packet, memory_.data() + 400));
  EXPECT_EQ(memory_[499], 7);
  EXPECT_FALSE(CopyPayload(keys_, packet, memory_.data() + 401));
}

// Without a host to ask, registered memory counts as present.
TEST_F(HostMemoryTest, WithoutAHostAllMemoryIsPresent) {
  const KeyTable keys(SecretNumbers(1, 1));
  EXPECT_TRUE(keys.MayRead(memory_.data(), 1000));
  EXPECT_TRUE(keys.MayChange(memory_.data(), 1000));
  EXPECT_TRUE(keys.Write(memory_.data() + 900, memory_.data() + 400, 100));
}

}  // namespace
}  // namespace tokamak::verbs::soft
