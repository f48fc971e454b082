// PullRequest is one object to be fetched from one peer: Endpoint::StartPull.
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
  verbs::Address owner;                         // the service of the owner's engine
  ObjectSize size;                              // from the directory; an owner that has another refuses
  uint64_t arrived = 0;                         // bytes of this generation in place, from a pull that was cut; not all
  Protocol protocol = Protocol::kAuto;          // override of the policy
  base::Duration deadline = base::Seconds(30);  // for all of it
  base::Duration patience = kPatience;          // with an owner from whom nothing comes
  uint64_t activity = 0;                        // what TraceKind::kPhase calls it; 0: is not traced
};

using PullId = uint64_t;  // of one endpoint; 0 is none

}  // namespace tokamak::transport
