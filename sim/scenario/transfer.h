// Transfer is what a workload asks for once: a message from the memory of one NIC to that of
// another, or, through the store, a put or a get of an object.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/time.h"
#include "lib/transport/object_access.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

struct Transfer {
  enum class Way : uint8_t { kMessage, kPut, kGet };

  uint32_t group = 0;  // the workload that asked for it, by number
  uint32_t from = 0;   // whose bytes go, and where to: interfaces of the topology, by number
  uint32_t to = 0;     // kPut: `from` itself; kGet: whoever asks
  uint32_t bytes = 0;
  Way way = Way::kMessage;
  // kMessage: kWrite and kSend are asked for by the owner of the bytes, kRead by the other.
  verbs::Opcode verb = verbs::Opcode::kWrite;
  uint32_t object = 0;                                        // kPut, kGet: see Scenario::objects
  transport::Protocol protocol = transport::Protocol::kAuto;  // kGet
  base::Duration start;                                       // when it is asked for, counted from the beginning
  std::optional<uint32_t> after;                              // and not before this transfer has completed
};

}  // namespace tokamak::sim
