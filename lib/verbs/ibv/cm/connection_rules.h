// What both connection managers of real verbs agree on: which options and queue pairs they take,
// and what two sides settle.
//
// rdma_cm carries 56 bytes each way (RDMA_PS_TCP: CM's 92 less the header of 36) and lets nobody
// but the side that asks name a path MTU, which over RoCE is always that of its own port. So the
// last four of the 56 bytes are ours: both sides say there how large their packets may be. That
// leaves 52 to the application. Who does not say so (another program's rdma_cm) is taken at the
// word of its route; where that is too much for us there is no connection.
//
//   byte   0 .. 51   the application's, zeros behind what it sent
//         52, 53     0x54 0x4b
//         54         version: 1
//         55         path MTU: 1 = 256 .. 5 = 4096, as IBV_MTU_*
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/ibv/cm/connectable.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

// Requests to one listener that may be unanswered; further ones are rejected.
constexpr size_t kMaxUnanswered = 64;

constexpr size_t kCarriedPrivateData = 56;
constexpr size_t kPathTail = 4;
constexpr size_t kRdmaCmPrivateData = kCarriedPrivateData - kPathTail;  // Limits::max_private_data of rdma_cm

using CarriedData = std::array<uint8_t, kCarriedPrivateData>;

// What a peer's private data says. All of it is untrusted.
struct Carried {
  std::array<uint8_t, kRdmaCmPrivateData> private_data{};
  std::optional<uint32_t> path_mtu;  // bytes
};

// private_data.size() <= kRdmaCmPrivateData; `path_mtu` is one of the specification's.
CarriedData Carry(absl::Span<const uint8_t> private_data, uint32_t path_mtu);
Carried ReadCarried(absl::Span<const uint8_t> bytes);  // of any length

// kInvalidArgument: too much private data, no such MTU, retry counts that mean for ever, a deadline
// that has passed.
absl::Status CheckConnectOptions(const ConnectOptions& options, size_t max_private_data);

// kInvalidArgument: nobody can be reached at `service` from `own`.
absl::Status CheckService(const Address& service, const Address& own);

// The smaller of what we allow, what the peer told and what the route carries. kFailedPrecondition:
// the peer told nothing, or something else than it may, and will send more than we can take.
absl::StatusOr<uint32_t> AgreeOnPathMtu(uint32_t own, std::optional<uint32_t> told, uint32_t route);
// The side that asked hears the other's decision: it is to be kept.
absl::StatusOr<uint32_t> KeepPathMtu(uint32_t own, std::optional<uint32_t> told, uint32_t route);

// Our reads, lowered to what the device can and to what the peer serves and asks for.
ReliabilityOptions AgreeOnReads(ReliabilityOptions ours, uint32_t max_reads, uint8_t peer_serves, uint8_t peer_asks);

// A request that counts among the unanswered of its listener (kMaxUnanswered) until it is answered,
// or until it was decided what the answer will be: who answers on another thread says so at once.
class CountedRequest : public ConnectionRequest {
 public:
  virtual void Decided() = 0;  // from any thread
};

// A queue pair that is ours while a connection lasts. Move-only.
class HeldQueuePair final {
 public:
  // kInvalidArgument: it is no queue pair of this kind of device. kFailedPrecondition: it is not in
  // Init, or held.
  static absl::StatusOr<HeldQueuePair> Take(QueuePair& queue_pair);

  HeldQueuePair(HeldQueuePair&& other) noexcept : queue_pair_(std::exchange(other.queue_pair_, nullptr)) {}
  HeldQueuePair& operator=(HeldQueuePair&&) = delete;
  ~HeldQueuePair() {
    if (queue_pair_ != nullptr) queue_pair_->Release();
  }

  Connectable* operator->() const { return queue_pair_; }

 private:
  explicit HeldQueuePair(Connectable* queue_pair) : queue_pair_(queue_pair) {}

  Connectable* queue_pair_;
};

}  // namespace tokamak::verbs::ibv
