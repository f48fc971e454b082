// DatagramCmId is a CmId of RDMA_PS_UDP: it asks for the queue pair that serves an address, or
// answers with the one that serves its own; and it joins multicast groups.
//
// It makes no connection, and has no part in the traffic of the queue pairs, which all have the
// Q_Key of rdma_cm (kServiceQkey).
//
// Errors are errno values, 0 is success. Thread rule: one lock's.
#pragma once

#include "lib/verbs/kernel/cm/cm_id.h"
// After it, see there.
#include <cstdint>
#include <memory>

#include "lib/base/event_loop.h"
#include "lib/verbs/kernel/user_device.h"
#include "lib/verbs/soft/cm/connection_manager.h"
#include "lib/verbs/soft/cm/service_resolution.h"

namespace tokamak::verbs::kernel {

class DatagramCmId final : public CmId, public soft::ServiceAsker {
 public:
  using CmId::CmId;
  ~DatagramCmId() override;

  int Connect(const rdma_ucm_conn_param& parameters) override;
  int Accept(const rdma_ucm_conn_param& parameters, uint64_t uid) override;
  int Reject(const rdma_ucm_reject& rejection) override;
  int Disconnect() override;
  int Join(const sockaddr* group, uint32_t membership, uint64_t uid) override;
  int QueuePairAttributes(uint32_t state, ib_uverbs_qp_attr* attributes) const override;

  void Tell(const soft::SidrRepMad* answer) override REQUIRES_NIC_MUTEX;

 private:
  class Listening final : public Port, public soft::ServiceListener {
   public:
    Listening(DatagramCmId& id, UserDevice& device);
    ~Listening() override;
    int Open(uint16_t* number);  // 0 is chosen
    void Wake() override REQUIRES_NIC_MUTEX { signal_->Raise(); }

   private:
    void Deliver();

    DatagramCmId& id_;
    UserDevice& device_;
    bool open_ = false;
    const std::unique_ptr<base::Signal> signal_;
  };

  absl::StatusOr<uint16_t> ChoosePort(soft::SoftConnectionManager& manager) const override REQUIRES_NIC_MUTEX;
  int Open(UserDevice& device, uint16_t* port, std::unique_ptr<Port>* opened) override;
  void OnRequest(UserDevice& device, const soft::ServiceRequest& request);
  int Answer(const soft::SidrRepMad& answer);

  uint64_t request_ = 0;  // the key of the peer's request, if asked
};

}  // namespace tokamak::verbs::kernel
