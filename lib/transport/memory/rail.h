// A rail is one device with what a transport needs of it. An endpoint may have several.
//
// Law: rail i of an endpoint reaches rail i of its peers (one network, or joined ones). Rail 0 is
//      where the directory says that the endpoint listens.
#pragma once

#include "lib/transport/limits.h"
#include "lib/transport/memory/registration.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

struct Rail {
  verbs::Device& device;
  verbs::ProtectionDomain& domain;  // of that device
  Registration& registration;       // in that domain
};

}  // namespace tokamak::transport
