#include "lib/verbs/ibv/cm/connected_queue_pair.h"

#include <utility>

#include "lib/base/log.h"

namespace tokamak::verbs::ibv {

ConnectedQueuePair::ConnectedQueuePair(HeldQueuePair queue_pair, ConnectionHandler handler)
    : queue_pair_(std::move(queue_pair)), handler_(std::move(handler)) {}

ConnectedQueuePair::~ConnectedQueuePair() = default;

void ConnectedQueuePair::WalkToError() {
  if (absl::Status status = Walk(ErrorStep()); !status.ok()) {
    LOG(WARNING) << "queue pair " << queue_pair_->connection_number() << " to Error: " << status;
  }
}

void ConnectedQueuePair::TellEstablished(absl::Span<const uint8_t> private_data, uint32_t path_mtu,
                                         uint32_t peer_queue_pair) {
  ConnectionEvent event{};
  event.kind = ConnectionEvent::Kind::kEstablished;
  event.private_data = private_data;
  event.path_mtu = path_mtu;
  event.peer_queue_pair = peer_queue_pair;
  Tell(event);
}

void ConnectedQueuePair::TellEnd(ConnectionEvent::Kind kind, absl::Status why, absl::Span<const uint8_t> private_data) {
  ConnectionEvent event{};
  event.kind = kind;
  event.status = std::move(why);
  event.private_data = private_data;
  Tell(event);
}

void ConnectedQueuePair::Tell(const ConnectionEvent& event) {
  const base::Lifetime::Watch watch = lifetime_.Watched();
  ConnectionHandler handler = std::move(handler_);  // it may drop this
  handler(event);
  if (watch.over()) return;
  handler_ = std::move(handler);
}

}  // namespace tokamak::verbs::ibv
