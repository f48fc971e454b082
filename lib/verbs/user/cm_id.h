// CmId is an rdma_cm_id as the kernel has it: an end of a connection that is bound, listens, asks or
// is asked. Its queue pair is not known here but by its number: the program's librdmacm walks that
// by itself, with the attributes that QueuePairAttributes gives.
//
// Addresses are those of the program: an id that resolved or was bound to one of a device is that
// device's.
//
// Errors are errno values, 0 is success.
// Thread rule: one lock's.
#pragma once

#include "lib/verbs/user/rxe_abi.h"
// Not before netinet/in.h.
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/verbs/soft/connection_handles.h"
#include "lib/verbs/soft/connection_manager.h"
#include "lib/verbs/user/user_device.h"

namespace tokamak::verbs::user {

class CmId;

// Kinds of events: enum rdma_cm_event_type of rdma_cma.h, which does not go with the ABI's header.
enum class CmEvent : uint32_t {
  kAddressResolved = 0,
  kAddressError = 1,
  kRouteResolved = 2,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kUnreachable = 7,
  kRejected = 8,
  kEstablished = 9,
  kDisconnected = 10,
};

// Where an id's events go: the program's event channel that it belongs to.
class CmEvents {
 public:
  virtual void Raise(CmId& id, const rdma_ucm_event_resp& event) = 0;

  // Somebody asks for a connection: a new id of the channel.
  virtual CmId* AddRequest(CmId& listener) = 0;

 protected:
  ~CmEvents() = default;
};

class CmId final : public soft::ConnectionOwner {
 public:
  // `devices`: all of them, those that are not open as null.
  CmId(CmEvents& events, const std::vector<UserDevice*>& devices, uint32_t handle, uint64_t uid, uint16_t port_space);
  ~CmId();

  uint32_t handle() const { return handle_; }
  uint64_t uid() const { return uid_; }
  void MoveTo(CmEvents& events) { events_ = &events; }

  // Events that the program has taken.
  uint32_t events_reported = 0;

  int Bind(const sockaddr* address);
  int ResolveAddress(const sockaddr* source, const sockaddr* destination);
  int ResolveRoute();
  int Listen();
  int Connect(const rdma_ucm_conn_param& parameters);
  int Accept(const rdma_ucm_conn_param& parameters, uint64_t uid);
  int Reject(const rdma_ucm_reject& rejection);
  int Disconnect();

  // How to walk the queue pair to `state`, as far as is known. EINVAL: not yet.
  int QueuePairAttributes(uint32_t state, ib_uverbs_qp_attr* attributes) const;
  rdma_ucm_query_route_resp Route() const;

  void Tell(const soft::ConnectionNews& news, const soft::ConnectionState& state) override;

 private:
  enum class State : uint8_t {
    kIdle,
    kBound,
    kAddressResolved,
    kRouteResolved,
    kListening,
    kAsking,
    kAnswered,  // the peer's answer came, and is to be confirmed
    kAsked,     // by the peer
    kAccepted,
    kConnected,
    kOver,
  };

  // Listens at one device.
  class Port final : public soft::ConnectionListener {
   public:
    Port(CmId& id, UserDevice& device);
    ~Port();
    int Open(uint16_t port);
    void Wake() override { signal_->Raise(); }
    const Address& listens_at() const override { return address_; }

   private:
    void Deliver();

    CmId& id_;
    UserDevice& device_;
    Address address_;
    bool open_ = false;
    const std::unique_ptr<base::Signal> signal_;
  };

  void OnRequest(UserDevice& device, const soft::PendingRequest& request);
  soft::ConnectionOffer Offer(const rdma_ucm_conn_param& parameters) const;
  void Raise(CmEvent type, int status = 0, const rdma_ucm_conn_param* connection = nullptr);
  uint16_t ChoosePort() const;
  UserDevice* DeviceAt(const Address& address) const;
  UserDevice* DeviceTowards(const Address& address) const;

  CmEvents* events_;
  const std::vector<UserDevice*>& devices_;
  const uint32_t handle_;
  uint64_t uid_;
  const uint16_t port_space_;
  State state_ = State::kIdle;
  Address source_;       // ip and port; unspecified until bound
  Address destination_;  // the same
  UserDevice* device_ = nullptr;
  uint32_t own_psn_ = 0;
  std::optional<soft::PendingRequest> request_;  // of the peer that asks
  std::optional<soft::ConnectionState> peer_;    // as it was when the peer's answer came
  soft::ConnectionOffer offer_;                  // of ours, once made
  std::vector<std::unique_ptr<Port>> ports_;
};

}  // namespace tokamak::verbs::user
