// Transfer is one request of a workload: a message from the memory of one NIC to that of another,
// or, through the store, a put or a get of an object.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/time.h"
#include "lib/transport/object_access.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

struct Transfer {
  enum class Way : uint8_t { kMessage, kPut, kGet };

  uint32_t group = 0;  // the workload of the request, by number
  uint32_t from = 0;   // source and target of the bytes: interfaces of the topology, by number
  uint32_t to = 0;     // kPut: `from` itself; kGet: the requester
  uint32_t bytes = 0;
  Way way = Way::kMessage;
  // kMessage: the owner of the bytes posts kWrite and kSend, the other side kRead.
  verbs::Opcode verb = verbs::Opcode::kWrite;
  uint32_t object = 0;                                        // kPut, kGet: see Scenario::objects
  transport::Protocol protocol = transport::Protocol::kAuto;  // kGet
  base::Duration start;                                       // time of the request, from the beginning
  std::optional<uint32_t> after;                              // and not before this transfer has completed
};

}  // namespace tokamak::sim
