// PullRequest is one object to fetch from one peer: Endpoint::StartPull.
#pragma once

#include <cstdint>

#include "lib/base/generation.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/transport/limits.h"
#include "lib/transport/object_access.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

struct PullRequest {
  base::ObjectId id;
  base::Generation generation = base::kNoGeneration;
  verbs::Address owner;  // service of the owner's engine
  ObjectSize size;       // from the directory; an owner with another size refuses
  // bytes in place from a pull of this generation that was cut off; less than all
  uint64_t arrived = 0;
  Protocol protocol = Protocol::kAuto;          // overrides the policy
  base::Duration deadline = base::Seconds(30);  // for the whole pull
  base::Duration patience = kPatience;          // without progress
  uint64_t activity = 0;                        // of TraceKind::kPhase; 0: not traced
};

using PullId = uint64_t;  // unique in one endpoint; 0: none

}  // namespace tokamak::transport
