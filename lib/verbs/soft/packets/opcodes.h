// The opcodes of a request's packets, and of its completion.
#pragma once

#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// Returns the opcode of a packet of a SEND or WRITE: its first, its last, both or neither.
PacketOpcode DataOpcode(Opcode opcode, bool first, bool last);

CompletionOpcode ToCompletionOpcode(Opcode opcode);

}  // namespace tokamak::verbs::soft
