// ConnectedQueuePair is a connection's queue pair and handler, over any connection manager of real
// verbs.
//
// Law: the handler may drop the connection, and this with it: a connection calls it last.
// Thread rule: the queue pair's loop's.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/lifetime.h"
#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class ConnectedQueuePair final {
 public:
  ConnectedQueuePair(HeldQueuePair queue_pair, ConnectionHandler handler);
  ~ConnectedQueuePair();
  ConnectedQueuePair(const ConnectedQueuePair&) = delete;
  ConnectedQueuePair& operator=(const ConnectedQueuePair&) = delete;

  Connectable* operator->() const { return queue_pair_.operator->(); }

  absl::Status Walk(const Step& step) { return queue_pair_->Walk(step.attributes, step.mask); }

  // Flushes posted requests. If the device refuses, say since it was removed, there is nothing to
  // flush: that is logged.
  void WalkToError();

  void TellEstablished(absl::Span<const uint8_t> private_data, uint32_t path_mtu, uint32_t peer_queue_pair);
  void TellEnd(ConnectionEvent::Kind kind, absl::Status why, absl::Span<const uint8_t> private_data);

 private:
  void Tell(const ConnectionEvent& event);

  const HeldQueuePair queue_pair_;
  ConnectionHandler handler_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::verbs::ibv
