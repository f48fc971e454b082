// Transfer is one message that a workload asks for, from the memory of one NIC to that of another.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/time.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

struct Transfer {
  uint32_t group = 0;  // the workload that asked for it, by number
  uint32_t from = 0;   // whose bytes go, and where to: interfaces of the topology, by number
  uint32_t to = 0;
  uint32_t bytes = 0;
  verbs::Opcode verb = verbs::Opcode::kWrite;  // kWrite and kSend by the owner of the bytes, kRead by the other
  base::Duration start;                        // when it is asked for, counted from the beginning
  std::optional<uint32_t> after;               // and not before this transfer has completed
};

}  // namespace tokamak::sim
