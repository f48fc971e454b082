// Connectable is a queue pair of libibverbs as a connection manager sees it: a number, a loop, and
// ibv_modify_qp.
//
// What the device's thread has of a queue pair implements it beside verbs::QueuePair
// (walked_queue_pair.h); tests implement it without a device. A connection manager finds it by
// dynamic_cast: a queue pair of another kind of device cannot be connected here.
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
  // Where its connection's events arrive.
  virtual os::EpollLoop& loop() = 0;

  virtual uint32_t connection_number() const = 0;  // ibv_qp::qp_num
  virtual QueuePairState connection_state() const = 0;
  virtual Access remote_access() const = 0;  // what any peer may do through it
  virtual bool shares_receives() const = 0;  // it draws from a shared receive queue

  // ibv_modify_qp, its error as a Status with the provider's text; connection_state() is that of
  // `attributes` after it.
  virtual absl::Status Walk(ibv_qp_attr attributes, int mask) = 0;

  // The kernel moved the queue pair to ReadyToSend: iWARP's connections are made by its own
  // manager. The peer serves `reads` of our READs at once.
  virtual void WasConnected(uint8_t reads) = 0;

  // One connection at a time holds a queue pair: false, changing nothing, when another does.
  // Released when it is dropped.
  [[nodiscard]] virtual bool Hold() = 0;
  virtual void Release() = 0;

 protected:
  ~Connectable() = default;
};

}  // namespace tokamak::verbs::ibv
