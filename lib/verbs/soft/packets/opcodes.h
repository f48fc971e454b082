// Which opcodes a request has on its way: those of its packets, and that of its completion.
#pragma once

#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// Of a SEND's or WRITE's packet that is its first, its last, both or neither.
PacketOpcode DataOpcode(Opcode opcode, bool first, bool last);

CompletionOpcode ToCompletionOpcode(Opcode opcode);

}  // namespace tokamak::verbs::soft
