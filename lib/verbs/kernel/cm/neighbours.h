// Neighbours reports when another NIC of this machine is gone, as its process has ended in any way.
// A kernel closes the devices of a killed process and sends its goodbye (DREQ); here nobody is left
// to do so.
//
// Each NIC listens under a name (soft/shm/names.h), and a socket connected there ends with it. NICs
// of other machines, and a kernel's, have no name here and are not watched.
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
  // Delay of the report, since packets of the NIC may still be on their way.
  static constexpr base::Duration kLastWords = base::Milliseconds(100);

  // Dropping it ends the watch: no callback runs after.
  class Watch {
   public:
    virtual ~Watch() = default;
  };

  explicit Neighbours(os::EpollLoop& loop) : loop_(loop) {}

  // `gone` runs once, on the loop, when the NIC at `address` (its port is ignored) with this queue
  // pair is gone. Null: there is no such NIC on this machine, or this process has no descriptors
  // left. The loop must outlive the watch.
  std::unique_ptr<Watch> WatchOver(const Address& address, uint32_t queue_pair, std::function<void()> gone);

 private:
  class Neighbour;
  class OneWatch;

  void ForgetUnwatched();

  os::EpollLoop& loop_;
  std::map<std::string, std::weak_ptr<Neighbour>> neighbours_;  // by NIC name
};

}  // namespace tokamak::verbs::kernel
