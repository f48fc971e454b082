// ConnectedCmId is a CmId of RDMA_PS_TCP: an end of a connection of reliable connected queue pairs.
// If the peer's process dies, that counts as its disconnecting (Neighbours).
//
// Errors are errno values, 0 is success. Thread rule: one lock's.
#pragma once

#include "lib/verbs/kernel/cm/cm_id.h"
// After it, see there.
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>

#include "lib/base/event_loop.h"
#include "lib/verbs/kernel/cm/neighbours.h"
#include "lib/verbs/kernel/user_device.h"
#include "lib/verbs/soft/cm/connection_handles.h"
#include "lib/verbs/soft/cm/connection_manager.h"

namespace tokamak::verbs::kernel {

class ConnectedCmId final : public CmId, public soft::ConnectionOwner {
 public:
  using CmId::CmId;
  ~ConnectedCmId() override;

  int Connect(const rdma_ucm_conn_param& parameters) override;
  int Accept(const rdma_ucm_conn_param& parameters, uint64_t uid) override;
  int Reject(const rdma_ucm_reject& rejection) override;
  int Disconnect() override;
  int Join(const sockaddr*, uint32_t, uint64_t) override { return EINVAL; }
  int QueuePairAttributes(uint32_t state, ib_uverbs_qp_attr* attributes) const override;

  void Tell(const soft::ConnectionNews& news, const soft::ConnectionState& state) override REQUIRES_NIC_MUTEX;

 private:
  class Listening final : public Port, public soft::ConnectionListener {
   public:
    Listening(ConnectedCmId& id, UserDevice& device);
    ~Listening() override;
    int Open(uint16_t port);
    void Wake() override REQUIRES_NIC_MUTEX { signal_->Raise(); }
    const Address& listens_at() const override { return address_; }

   private:
    void Deliver();

    ConnectedCmId& id_;
    UserDevice& device_;
    Address address_;
    bool open_ = false;
    const std::unique_ptr<base::Signal> signal_;
  };

  absl::StatusOr<uint16_t> ChoosePort(soft::SoftConnectionManager& manager) const override REQUIRES_NIC_MUTEX;
  int Open(UserDevice& device, uint16_t* port, std::unique_ptr<Port>* opened) override;
  void OnRequest(UserDevice& device, const soft::PendingRequest& request);
  soft::ConnectionOffer Offer(const rdma_ucm_conn_param& parameters) const;
  void Raise(CmEvent type, int status, const rdma_ucm_conn_param& connection);
  void WatchOverPeer(uint32_t queue_pair);

  uint32_t own_psn_ = 0;
  std::optional<soft::PendingRequest> request_;    // the peer's
  std::optional<soft::ConnectionState> peer_;      // from the peer's answer on
  soft::ConnectionOffer offer_;                    // ours, once made
  std::unique_ptr<Neighbours::Watch> peer_watch_;  // while connected to a NIC of this machine
};

}  // namespace tokamak::verbs::kernel
