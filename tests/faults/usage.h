// Kernel objects of processes: descriptors and RDMA objects, to see that nothing leaks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"

namespace tokamak::faults {

struct Usage {
  size_t descriptors = 0;
  size_t queue_pairs = 0;
  size_t completion_queues = 0;
  size_t regions = 0;
  size_t connections = 0;  // rdma_cm's ids

  bool NoMoreThan(const Usage& other) const {
    return descriptors <= other.descriptors && queue_pairs <= other.queue_pairs &&
           completion_queues <= other.completion_queues && regions <= other.regions && connections <= other.connections;
  }
};
std::ostream& operator<<(std::ostream& out, const Usage& usage);

// Returns the usage of one process. kUnavailable: the kernel does not tell.
absl::StatusOr<Usage> UsageOf(pid_t pid);

// Returns the descriptors of a process, one a line; for TCP sockets both ends as in /proc/net/tcp.
// For the message of a failure.
std::string DescriptorsOf(pid_t pid);

// Returns the usage of all processes together, except descriptors.
absl::StatusOr<Usage> UsageOfAll();

}  // namespace tokamak::faults
