// Neighbours reports when another NIC of this machine is gone, as its process has ended in any way.
// A kernel would say goodbye (DREQ) for a killed process.
//
// Each NIC listens under a name (soft/shm/names.h), and a socket connected there ends with it. NICs
// of other machines, and a kernel's, have none: not watched.
//
// Thread rule: one loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::kernel {

class Neighbours final {
 public:
  // Delay of the report, for the NIC's packets on their way.
  static constexpr base::Duration kLastWords = base::Milliseconds(100);

  // Dropping it ends the watch: no callback runs after.
  class Watch {
   public:
    virtual ~Watch() = default;
  };

  explicit Neighbours(os::EpollLoop& loop) : loop_(loop) {}

  // `gone` runs once, on the loop, when the NIC at `address`, any port, with this queue pair is
  // gone. Null: no such NIC here, or no descriptors. The loop outlives the watch.
  std::unique_ptr<Watch> WatchOver(const Address& address, uint32_t queue_pair, std::function<void()> gone);

 private:
  class Neighbour;
  class OneWatch;

  void ForgetUnwatched();

  os::EpollLoop& loop_;
  std::map<std::string, std::weak_ptr<Neighbour>> neighbours_;  // by NIC name
};

}  // namespace tokamak::verbs::kernel
