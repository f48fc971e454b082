// CostedDevice is another device, with the host's cost of each call in front of it.
//
// Posts and completions cost the completion queue's loop, then reach the NIC or the reader; a batch
// reaches it when all is made, as by one doorbell. Registrations cost the loop whose task runs. The
// NIC's own loop spends nothing.
//
// Copies: base::Copy tells its loop (EventLoop::SpendOnCopy, CopySpeedOf), so a message read in
// place is free, and a copied one charged once. SharedReceiveQueues are the device's below, and
// free.
#pragma once

#include <functional>
#include <memory>

#include "lib/base/event_loop.h"
#include "lib/verbs/verbs.h"
#include "sim/costs/host_costs.h"
#include "sim/time/copy_speed.h"

namespace tokamak::sim {

// Null outside of tasks: setting up takes no time.
using RunningLoop = std::function<base::EventLoop*()>;

std::unique_ptr<verbs::Device> WithCosts(std::unique_ptr<verbs::Device> device, const HostCosts& costs,
                                         RunningLoop running);

CopySpeed CopySpeedOf(const HostCosts& costs);

}  // namespace tokamak::sim
