// Connectable is a queue pair of libibverbs for a connection manager: a number, a loop, and
// ibv_modify_qp.
//
// A connection manager finds it by dynamic_cast beside verbs::QueuePair (walked_queue_pair.h):
// queue pairs of other devices cannot be connected here. Tests implement it without a device.
//
// Thread rule: the thread of loop().
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "absl/status/status.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

class Connectable {
 public:
  virtual os::EpollLoop& loop() = 0;

  virtual uint32_t connection_number() const = 0;  // ibv_qp::qp_num
  virtual QueuePairState connection_state() const = 0;
  virtual Access remote_access() const = 0;  // the rights of any peer
  virtual bool shares_receives() const = 0;  // true if it draws from a shared receive queue

  // Calls ibv_modify_qp; connection_state() is that of `attributes` afterwards. Errors are the
  // provider's.
  virtual absl::Status Walk(ibv_qp_attr attributes, int mask) = 0;

  // iWARP: the kernel has moved the queue pair to ReadyToSend. The peer serves `reads` of our READs
  // at once.
  virtual void WasConnected(uint8_t reads) = 0;

  // Holds the queue pair for one connection until Release. Returns false, changing nothing, if
  // another one holds it.
  [[nodiscard]] virtual bool Hold() = 0;
  virtual void Release() = 0;

 protected:
  ~Connectable() = default;
};

}  // namespace tokamak::verbs::ibv
