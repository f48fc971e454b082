// CostedDevice is another device, with the host's cost of each call in front of it.
//
// A request is posted, and a completion read, on the loop of the completion queue: that loop spends
// the time, and then the request reaches the NIC, or the completion is read. A queue pair's batch
// reaches the NIC when all of it is made, as with one doorbell. Registering and deregistering may
// happen on any thread, so the wiring tells whose task runs. The NIC's own loop spends nothing.
//
// Copies are no calls of a device: base::Copy tells its loop of each, and the loop knows the time
// (EventLoop::SpendOnCopy, CopySpeedOf below). So a message that is read in place, as a header,
// costs nothing, and one that is copied is not charged twice.
//
// A SharedReceiveQueue is that of the device below, and costs nothing.
#pragma once

#include <functional>
#include <memory>

#include "lib/base/event_loop.h"
#include "lib/verbs/verbs.h"
#include "sim/costs/host_costs.h"
#include "sim/time/copy_speed.h"

namespace tokamak::sim {

// Returns the loop whose task runs, or null outside of tasks: setting up a world takes no time of
// it.
using RunningLoop = std::function<base::EventLoop*()>;

std::unique_ptr<verbs::Device> WithCosts(std::unique_ptr<verbs::Device> device, const HostCosts& costs,
                                         RunningLoop running);

// Returns the speed for the loops of such a host.
CopySpeed CopySpeedOf(const HostCosts& costs);

}  // namespace tokamak::sim
