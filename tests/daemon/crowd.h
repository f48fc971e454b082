// Many real tokd on this machine, each of which gets a small object of each other, all at once.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/daemon/tokd_process.h"
#include "tokamak/client.h"

namespace tokamak::daemon {

// The results of all nodes together.
struct CrowdReport {
  uint64_t gets = 0;          // that brought the right bytes
  uint64_t failed_gets = 0;   // that did not, in time
  std::string first_failure;  // of these
  uint64_t failed_attempts = 0;
  uint64_t connections = 0;
  uint64_t connections_lost = 0;
  uint64_t protocol_errors = 0;
  uint64_t refusals = 0;  // lines of the nodes' logs that tell of a connection refused
  double seconds = 0;
  int most_descriptors_more = 0;  // of one node, than before it met the others
  uint64_t most_memory_more = 0;  // KiB of one node's own
};

class Crowd final {
 public:
  explicit Crowd(int nodes);

  // All nodes get all others' objects, and drop their copies.
  CrowdReport GetAll(Timeout timeout);

 private:
  struct Node {
    std::unique_ptr<TokdProcess> process;
    std::unique_ptr<Client> client;
    int descriptors = 0;
    uint64_t memory = 0;  // KiB
  };

  const testing_support::ShortFolder folder_;
  std::vector<Node> nodes_;
};

}  // namespace tokamak::daemon
