// Connection rules of both connection managers of real verbs: valid options and queue pairs, and
// the negotiation of two sides.
//
// rdma_cm carries 56 bytes each way (RDMA_PS_TCP: CM's 92 less the header of 36). Only its asking
// side can name a path MTU, which over RoCE is always that of its own port. So both sides state
// their largest packet in the last four bytes, which leaves 52 to the application. With a peer that
// does not (another program's rdma_cm) the route's MTU counts; if that is too large for us there is
// no connection.
//
//   byte   0 .. 51   the application's, then zeros
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

// The most unanswered requests of one listener; further ones are rejected.
constexpr size_t kMaxUnanswered = 64;

constexpr size_t kCarriedPrivateData = 56;
constexpr size_t kPathTail = 4;
constexpr size_t kRdmaCmPrivateData = kCarriedPrivateData - kPathTail;  // Limits::max_private_data of rdma_cm

using CarriedData = std::array<uint8_t, kCarriedPrivateData>;

// The contents of a peer's private data; all of it is untrusted.
struct Carried {
  std::array<uint8_t, kRdmaCmPrivateData> private_data{};
  std::optional<uint32_t> path_mtu;  // bytes
};

// private_data.size() <= kRdmaCmPrivateData; `path_mtu` is a valid MTU.
CarriedData Carry(absl::Span<const uint8_t> private_data, uint32_t path_mtu);
Carried ReadCarried(absl::Span<const uint8_t> bytes);  // of any length

// kInvalidArgument: too much private data, no such MTU, retry counts that mean for ever, a deadline
// that has passed.
absl::Status CheckConnectOptions(const ConnectOptions& options, size_t max_private_data);

// kInvalidArgument: `service` is not reachable from `own`.
absl::Status CheckService(const Address& service, const Address& own);

// Returns the smallest of our limit, the peer's and the route's. kFailedPrecondition: the peer
// stated no valid one, and will send more than we can take.
absl::StatusOr<uint32_t> AgreeOnPathMtu(uint32_t own, std::optional<uint32_t> told, uint32_t route);
// For the asking side: checks the decision of the other, which it has to keep.
absl::StatusOr<uint32_t> KeepPathMtu(uint32_t own, std::optional<uint32_t> told, uint32_t route);

// Returns `ours`, its reads lowered to what the device can and to what the peer serves and asks
// for.
ReliabilityOptions AgreeOnReads(ReliabilityOptions ours, uint32_t max_reads, uint8_t peer_serves, uint8_t peer_asks);

// A request that counts among its listener's unanswered (kMaxUnanswered) until its answer is sent
// or, if another thread sends it, decided.
class CountedRequest : public ConnectionRequest {
 public:
  virtual void Decided() = 0;  // from any thread
};

// A queue pair that is held for the time of a connection. Move-only.
class HeldQueuePair final {
 public:
  // kInvalidArgument: it is no queue pair of this kind of device. kFailedPrecondition: it is not in
  // Init, or is held.
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
