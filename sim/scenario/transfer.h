// Transfer is one request of a workload: a message from one NIC's memory to another's, or a put or
// get through the store.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/time.h"
#include "lib/transport/object_access.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

struct Transfer {
  enum class Way : uint8_t { kMessage, kPut, kGet };

  uint32_t group = 0;
  uint32_t from = 0;  // source, by interface number
  uint32_t to = 0;    // target; kPut: `from`; kGet: the requester
  uint32_t bytes = 0;
  Way way = Way::kMessage;
  // kMessage: kWrite and kSend by the source, kRead by the target.
  verbs::Opcode verb = verbs::Opcode::kWrite;
  uint32_t object = 0;                                        // kPut, kGet: see Scenario::objects
  transport::Protocol protocol = transport::Protocol::kAuto;  // kGet
  base::Duration start;                                       // of the request, from the beginning
  std::optional<uint32_t> after;                              // not before this one has completed
};

}  // namespace tokamak::sim
