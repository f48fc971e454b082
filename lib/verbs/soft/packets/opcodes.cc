#include "lib/verbs/soft/packets/opcodes.h"

namespace tokamak::verbs::soft {

PacketOpcode DataOpcode(Opcode opcode, bool first, bool last) {
  if (last && opcode == Opcode::kSendWithInvalidate) {
    return first ? PacketOpcode::kSendOnlyWithInvalidate : PacketOpcode::kSendLastWithInvalidate;
  }
  const bool immediate = opcode == Opcode::kSendWithImm || opcode == Opcode::kWriteWithImm;
  const bool write = opcode == Opcode::kWrite || opcode == Opcode::kWriteWithImm;
  PacketOpcode sending = PacketOpcode::kSendMiddle;
  if (first && last) {
    sending = immediate ? PacketOpcode::kSendOnlyWithImm : PacketOpcode::kSendOnly;
  } else if (first) {
    sending = PacketOpcode::kSendFirst;
  } else if (last) {
    sending = immediate ? PacketOpcode::kSendLastWithImm : PacketOpcode::kSendLast;
  }
  if (!write) return sending;
  constexpr int kToWrite = static_cast<int>(PacketOpcode::kWriteFirst) - static_cast<int>(PacketOpcode::kSendFirst);
  return static_cast<PacketOpcode>(static_cast<int>(sending) + kToWrite);
}

CompletionOpcode ToCompletionOpcode(Opcode opcode) {
  switch (opcode) {
    case Opcode::kSend:
    case Opcode::kSendWithImm:
    case Opcode::kSendWithInvalidate:
      return CompletionOpcode::kSend;
    case Opcode::kWrite:
    case Opcode::kWriteWithImm:
      return CompletionOpcode::kWrite;
    case Opcode::kRead:
      return CompletionOpcode::kRead;
    case Opcode::kCompareSwap:
      return CompletionOpcode::kCompareSwap;
    case Opcode::kFetchAdd:
      return CompletionOpcode::kFetchAdd;
    case Opcode::kBindWindow:
      return CompletionOpcode::kBindWindow;
    case Opcode::kLocalInvalidate:
      return CompletionOpcode::kLocalInvalidate;
  }
  return CompletionOpcode::kSend;
}

}  // namespace tokamak::verbs::soft
