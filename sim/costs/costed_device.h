// A device whose calls take processor time, as those of a real one do: another device, and in
// front of each call what it costs the host.
//
// A request is posted, and a completion read, on the loop of the completion queue: that loop
// spends the time, so that what is posted reaches the NIC after it, and what is polled is looked at
// after it. A queue pair's batch reaches the NIC when all of it is made, as one doorbell does.
// Registering and deregistering may happen on any thread, so whoever wires a world says whose task
// runs. What the NIC itself takes is not in here: it has a loop of its own, which spends nothing.
//
// Copies are no calls of a device: base::Copy tells its loop of each, and the loop knows what it
// takes (EventLoop::SpendOnCopy, CopySpeedOf below). So nothing is charged for a message that is
// read where it lies, as a header, nor twice for one that is copied.
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

// The loop whose task runs, or null outside of tasks: setting up a world takes no time of it.
using RunningLoop = std::function<base::EventLoop*()>;

std::unique_ptr<verbs::Device> WithCosts(std::unique_ptr<verbs::Device> device, const HostCosts& costs,
                                         RunningLoop running);

// For the loops of such a host.
CopySpeed CopySpeedOf(const HostCosts& costs);

}  // namespace tokamak::sim
