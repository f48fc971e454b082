// The common base of all backends in virtual time: nobody is ever late.
#pragma once

#include "lib/base/time.h"
#include "tests/verbs/conformance/backend.h"

namespace tokamak::verbs::conformance {

class VirtualBackend : public Backend {
 public:
  base::Duration quiet() const final { return base::Milliseconds(20); }
  base::Duration slack() const final { return base::Milliseconds(1); }
  ReliabilityOptions reliability() const final {
    ReliabilityOptions options;
    options.ack_timeout = base::Milliseconds(1);
    options.rnr_delay = base::Microseconds(100);
    return options;
  }
};

}  // namespace tokamak::verbs::conformance
