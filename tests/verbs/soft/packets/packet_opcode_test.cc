#include "lib/verbs/soft/packets/packet_opcode.h"

#include <gtest/gtest.h>

#include "lib/verbs/soft/packets/opcodes.h"

namespace tokamak::verbs::soft {
namespace {

TEST(PacketOpcodeTest, DataPacketsBeginAndEndTheirMessage) {
  for (const Opcode opcode :
       {Opcode::kSend, Opcode::kSendWithImm, Opcode::kSendWithInvalidate, Opcode::kWrite, Opcode::kWriteWithImm}) {
    for (const bool first : {false, true}) {
      for (const bool last : {false, true}) {
        const PacketOpcode packet = DataOpcode(opcode, first, last);
        EXPECT_EQ(Begins(packet), first) << static_cast<int>(packet);
        EXPECT_EQ(Ends(packet), last) << static_cast<int>(packet);
        EXPECT_EQ(IsOnly(packet), first && last) << static_cast<int>(packet);
        EXPECT_EQ(IsWrite(packet), opcode == Opcode::kWrite || opcode == Opcode::kWriteWithImm);
        EXPECT_NE(IsSend(packet), IsWrite(packet));
        EXPECT_EQ(HasImmediate(packet), last && (opcode == Opcode::kSendWithImm || opcode == Opcode::kWriteWithImm));
        EXPECT_EQ(HasIeth(packet), last && opcode == Opcode::kSendWithInvalidate);
      }
    }
  }
}

TEST(PacketOpcodeTest, RequestsAreForTheResponderAndAnswersForTheRequester) {
  for (const PacketOpcode request : {PacketOpcode::kSendMiddle, PacketOpcode::kWriteOnlyWithImm,
                                     PacketOpcode::kReadRequest, PacketOpcode::kCompareSwap, PacketOpcode::kFetchAdd}) {
    EXPECT_TRUE(IsRequest(request)) << static_cast<int>(request);
  }
  for (const PacketOpcode answer :
       {PacketOpcode::kReadResponseFirst, PacketOpcode::kReadResponseOnly, PacketOpcode::kAcknowledge,
        PacketOpcode::kAtomicAcknowledge, PacketOpcode::kSelectiveNak, PacketOpcode::kCongestionNotification}) {
    EXPECT_FALSE(IsRequest(answer)) << static_cast<int>(answer);
  }
}

TEST(PacketOpcodeTest, AcknowledgementsAndNotificationsAreNotSlowedDown) {
  EXPECT_TRUE(IsData(PacketOpcode::kReadResponseMiddle));
  EXPECT_TRUE(IsData(PacketOpcode::kReadRequest));
  EXPECT_FALSE(IsData(PacketOpcode::kAcknowledge));
  EXPECT_FALSE(IsData(PacketOpcode::kAtomicAcknowledge));
  EXPECT_FALSE(IsData(PacketOpcode::kSelectiveNak));
  EXPECT_FALSE(IsData(PacketOpcode::kCongestionNotification));
}

}  // namespace
}  // namespace tokamak::verbs::soft
