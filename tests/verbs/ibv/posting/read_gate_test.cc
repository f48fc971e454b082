#include "lib/verbs/ibv/posting/read_gate.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::verbs::ibv {
namespace {

class ReadGateTest : public testing::Test {
 protected:
  static constexpr uint32_t kDepth = 6;

  void Add(Opcode opcode, SendFlags flags = SendFlags{}, uint32_t length = 8) {
    const Sge piece = {memory, length, 7};
    SendRequest request;
    request.opcode = opcode;
    request.flags = flags;
    request.sges = absl::MakeConstSpan(&piece, 1);
    gate.Add(request, added++);
  }

  // How many pass now.
  int Pass() {
    int count = 0;
    for (; gate.Next() != nullptr; ++count) {
      EXPECT_EQ(gate.Next()->position, passed++);
      gate.Pass();
    }
    return count;
  }

  uint8_t memory[64] = {};
  ReadGate gate{kDepth, {2, 16}};
  uint64_t added = 0, passed = 0;
};

TEST_F(ReadGateTest, NothingPassesBeforeTheGateIsOpened) {
  Add(Opcode::kSend);
  EXPECT_EQ(Pass(), 0);
  gate.Open(1);
  EXPECT_EQ(Pass(), 1);
  EXPECT_TRUE(gate.empty());
}

TEST_F(ReadGateTest, RequestsBehindAReadWaitForIt) {
  gate.Open(4);
  Add(Opcode::kWrite);
  Add(Opcode::kRead);
  Add(Opcode::kSend);
  Add(Opcode::kWrite);
  EXPECT_EQ(Pass(), 2);
  EXPECT_FALSE(gate.empty());
  gate.ReadCame();
  EXPECT_EQ(Pass(), 2);
}

TEST_F(ReadGateTest, ReadsOnTheirWayStayWithinThePeersDepth) {
  gate.Open(2);
  for (int i = 0; i < 5; ++i) Add(Opcode::kRead);
  EXPECT_EQ(Pass(), 2);
  gate.ReadCame();
  EXPECT_EQ(Pass(), 1);
  gate.ReadCame();
  gate.ReadCame();
  EXPECT_EQ(Pass(), 2);
}

TEST_F(ReadGateTest, OneReadIsTriedIfThePeerServesNone) {
  gate.Open(0);
  Add(Opcode::kRead);
  EXPECT_EQ(Pass(), 1);
}

TEST_F(ReadGateTest, AFencedReadWaitsForEarlierOnes) {
  gate.Open(4);
  Add(Opcode::kRead);
  Add(Opcode::kRead, kFence);
  EXPECT_EQ(Pass(), 1);
  gate.ReadCame();
  EXPECT_EQ(Pass(), 1);
}

TEST_F(ReadGateTest, AnEmptyReadWaitsButIsNotAwaited) {
  gate.Open(4);
  Add(Opcode::kRead, SendFlags{}, 0);
  Add(Opcode::kSend);
  EXPECT_EQ(Pass(), 2);
  Add(Opcode::kRead);
  Add(Opcode::kRead, SendFlags{}, 0);
  EXPECT_EQ(Pass(), 1);
  gate.ReadCame();
  EXPECT_EQ(Pass(), 1);
  EXPECT_DEATH(gate.ReadCame(), "");
}

TEST_F(ReadGateTest, AWaitingRequestKeepsItsPiecesAndInlineBytes) {
  gate.Open(1);
  Add(Opcode::kRead);
  std::vector<uint8_t> first = {1, 2, 3}, second = {4, 5};
  {
    const std::vector<Sge> pieces = {{first.data(), 3, 8}, {second.data(), 2, 9}};
    SendRequest request;
    request.rkey = 77;
    request.sges = pieces;
    gate.Add(request, added++);
    request.flags = kInline;
    gate.Add(request, added++);
  }
  uint8_t* const there = first.data();
  std::memset(first.data(), 0, 3);
  EXPECT_EQ(Pass(), 1);
  gate.ReadCame();
  const SendRequest& plain = gate.Next()->request;
  EXPECT_EQ(plain.rkey, 77u);
  ASSERT_EQ(plain.sges.size(), 2u);
  EXPECT_EQ(plain.sges[0].address, there);
  EXPECT_EQ(plain.sges[1].lkey, 9u);
  gate.Pass();
  const SendRequest& inlined = gate.Next()->request;
  ASSERT_EQ(inlined.sges.size(), 2u);
  EXPECT_EQ(std::vector<uint8_t>(inlined.sges[0].address, inlined.sges[0].address + 3),
            (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(std::vector<uint8_t>(inlined.sges[1].address, inlined.sges[1].address + 2), (std::vector<uint8_t>{4, 5}));
}

TEST_F(ReadGateTest, PlacesAreReused) {
  gate.Open(1);
  for (uint32_t i = 0; i < 5 * kDepth; ++i) {
    Add(i % 2 == 0 ? Opcode::kRead : Opcode::kSend);
    if (i % 2 == 1) {
      EXPECT_EQ(Pass(), 1);
      gate.ReadCame();
      EXPECT_EQ(Pass(), 1);
    }
  }
}

TEST_F(ReadGateTest, AClosedGateForgetsWaitingRequests) {
  gate.Open(1);
  Add(Opcode::kRead);
  Add(Opcode::kSend);
  EXPECT_EQ(Pass(), 1);
  gate.Close();
  EXPECT_TRUE(gate.empty());
  Add(Opcode::kSend);
  EXPECT_EQ(gate.Next(), nullptr);
}

}  // namespace
}  // namespace tokamak::verbs::ibv
