// Neighbours reports when another NIC of this machine is gone, as its process has ended in any way.
// A kernel closes the devices of a killed process, and sends its goodbye (DREQ); here nobody is
// left to do so.
//
// Each NIC listens under a name (soft/shm/names.h), and a socket that is connected there ends with
// it. NICs of other machines, and a kernel's, have no name here: they are not watched.
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
  // Time for which packets of a NIC may still be on their way after its end, which is reported
  // after that.
  static constexpr base::Duration kLastWords = base::Milliseconds(100);

  // Dropping it ends the watch: no callback runs after.
  class Watch {
   public:
    virtual ~Watch() = default;
  };

  explicit Neighbours(os::EpollLoop& loop) : loop_(loop) {}

  // `gone` runs once, on the loop, when the NIC at `address` with this queue pair is gone. The port
  // is ignored. Returns null if there is no such NIC on this machine, or this process has no
  // descriptors. The watch must not outlive the loop.
  std::unique_ptr<Watch> WatchOver(const Address& address, uint32_t queue_pair, std::function<void()> gone);

 private:
  class Neighbour;
  class OneWatch;

  void ForgetUnwatched();

  os::EpollLoop& loop_;
  std::map<std::string, std::weak_ptr<Neighbour>> neighbours_;  // by the name of the NIC
};

}  // namespace tokamak::verbs::kernel
