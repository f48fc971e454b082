// Connectable is a queue pair of libibverbs for a connection manager: a number, a loop, and
// ibv_modify_qp.
//
// A connection manager finds it by dynamic_cast beside verbs::QueuePair (walked_queue_pair.h): a
// queue pair of another kind of device cannot be connected here. Tests implement it without a
// device.
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
  // Returns the loop of its connection's events.
  virtual os::EpollLoop& loop() = 0;

  virtual uint32_t connection_number() const = 0;  // ibv_qp::qp_num
  virtual QueuePairState connection_state() const = 0;
  virtual Access remote_access() const = 0;  // rights of any peer
  virtual bool shares_receives() const = 0;  // true if it draws from a shared receive queue

  // Calls ibv_modify_qp, and returns its error as a Status with the provider's text; then
  // connection_state() is that of `attributes`.
  virtual absl::Status Walk(ibv_qp_attr attributes, int mask) = 0;

  // The kernel moved the queue pair to ReadyToSend: its own manager makes iWARP's connections. The
  // peer serves `reads` of our READs at once.
  virtual void WasConnected(uint8_t reads) = 0;

  // Holds the queue pair for one connection, until that drops it. Returns false, changing nothing,
  // if another holds it.
  [[nodiscard]] virtual bool Hold() = 0;
  virtual void Release() = 0;

 protected:
  ~Connectable() = default;
};

}  // namespace tokamak::verbs::ibv
