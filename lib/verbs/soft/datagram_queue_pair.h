// SoftDatagramQueuePair is the owner's half of a datagram queue pair: it puts checked requests into
// the rings. DatagramCore is the NIC's half.
//
// Thread rule: the thread of the completion queues' loop. Attach, Detach and a group member's
// destructor wait for the NIC's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/verbs/datagrams.h"
#include "lib/verbs/soft/nic.h"
#include "lib/verbs/soft/ud/datagram_core.h"

namespace tokamak::verbs::soft {

class SoftAddressHandle final : public AddressHandle {
 public:
  SoftAddressHandle(std::shared_ptr<Nic> nic, DomainId domain, const DatagramAddress& address)
      : nic_(std::move(nic)), domain_(domain), address_(address) {}

  const DatagramAddress& address() const override { return address_; }
  const Nic* nic() const { return nic_.get(); }
  DomainId domain() const { return domain_; }

 private:
  const std::shared_ptr<Nic> nic_;
  const DomainId domain_;
  const DatagramAddress address_;
};

class SoftDatagramQueuePair final : public DatagramQueuePair {
 public:
  SoftDatagramQueuePair(std::shared_ptr<Nic> nic, DatagramCore* core, const DatagramQueuePairOptions& options);
  ~SoftDatagramQueuePair() override;

  uint32_t number() const override { return core_->number(); }
  QueuePairState state() const override { return core_->state(); }
  PostResult PostSend(absl::Span<const DatagramRequest> requests) override;
  PostResult PostReceive(absl::Span<const ReceiveRequest> requests) override;
  absl::Status Modify(QueuePairState state, const DatagramAttributes& attributes) override;
  absl::Status Attach(const Address& group) override;
  absl::Status Detach(const Address& group) override;

 private:
  absl::Status Prepare(const DatagramRequest& request);
  absl::Status Check(const DatagramRequest& request, uint64_t length) const;

  const std::shared_ptr<Nic> nic_;
  DatagramCore* const core_;
  const uint32_t max_sges_;
  const uint32_t max_inline_;
  std::set<Address> groups_;
};

}  // namespace tokamak::verbs::soft
