// CmId is an rdma_cm_id as the kernel has it: an end that is bound, listens, asks or is asked.
// ConnectedCmId asks for a connection, DatagramCmId for the queue pair that takes datagrams. It
// knows the program's queue pair only by its number: the program's librdmacm changes that pair's
// state itself, with the attributes of QueuePairAttributes.
//
// Addresses are as the program sees them: an id that was bound or resolved to a device's address
// belongs to that device.
//
// Errors are errno values, 0 is success. Thread rule: one lock's.
#pragma once

#include "lib/verbs/kernel/program/rxe_abi.h"
// Not before netinet/in.h.
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/verbs/kernel/user_device.h"
#include "lib/verbs/soft/cm/connection_manager.h"

namespace tokamak::verbs::kernel {

class CmId;

// The values of rdma_cm_event_type: its header, rdma_cma.h, conflicts with the ABI's.
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
  kMulticastJoin = 12,
};

class CmEvents {
 public:
  virtual void Raise(CmId& id, const rdma_ucm_event_resp& event) = 0;

  // Makes the handle of a new id for a peer's request; 0 if there are too many.
  virtual uint32_t NewHandle() = 0;
  virtual void Adopt(std::unique_ptr<CmId> id) = 0;

 protected:
  ~CmEvents() = default;
};

class CmId {
 public:
  // `devices`: all of them, null if not open.
  CmId(CmEvents& events, const std::vector<UserDevice*>& devices, uint32_t handle, uint64_t uid);
  virtual ~CmId();
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;

  uint32_t handle() const { return handle_; }
  uint64_t uid() const { return uid_; }
  void MoveTo(CmEvents& events) { events_ = &events; }

  // The queue pairs' acknowledgement time-out, as a time code (lib/verbs/time_codes.h).
  static constexpr uint8_t kMostAckTimeout = 31;
  void set_ack_timeout(uint8_t code) { ack_timeout_ = code; }

  uint32_t events_reported = 0;

  int Bind(const sockaddr* address);
  int ResolveAddress(const sockaddr* source, const sockaddr* destination);
  int ResolveRoute();
  int Listen();
  virtual int Connect(const rdma_ucm_conn_param& parameters) = 0;
  virtual int Accept(const rdma_ucm_conn_param& parameters, uint64_t uid) = 0;
  virtual int Reject(const rdma_ucm_reject& rejection) = 0;
  virtual int Disconnect() = 0;

  // Joins the group for the program's queue pair: an event brings the group's address.
  virtual int Join(const sockaddr* group, uint32_t membership, uint64_t uid) = 0;

  // Fills in the attributes that bring the queue pair to `state`, as far as known. EINVAL: they are
  // not known yet.
  virtual int QueuePairAttributes(uint32_t state, ib_uverbs_qp_attr* attributes) const = 0;
  rdma_ucm_query_route_resp Route() const;

 protected:
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

  // Listens at one device while it lives.
  class Port {
   public:
    virtual ~Port() = default;
  };

  static constexpr uint8_t kOnlyPort = 1;

  virtual absl::StatusOr<uint16_t> ChoosePort(soft::SoftConnectionManager& manager) const REQUIRES_NIC_MUTEX = 0;

  // Listens at a device; a port of 0 is chosen.
  virtual int Open(UserDevice& device, uint16_t* port, std::unique_ptr<Port>* opened) = 0;

  // Must be called before anything that the ports call is gone.
  void CloseAll() { ports_.clear(); }

  // Takes a request by `peer`, at a port of `device`.
  void BecomeAsked(UserDevice& device, uint16_t port, const Address& peer);

  rdma_ucm_event_resp MakeEvent(CmEvent type, int status = 0) const;
  void Raise(CmEvent type, int status = 0) { events_->Raise(*this, MakeEvent(type, status)); }

  // EINVAL: a family that is not the Internet's.
  static int ToAddress(const sockaddr* from, Address* to);
  static ib_uverbs_ah_attr Towards(const Address& address);

  CmEvents* events_;
  const std::vector<UserDevice*>& devices_;
  uint64_t uid_;
  State state_ = State::kIdle;
  uint8_t ack_timeout_ = 19;  // the kernel's default: 2.1 s
  Address source_;            // ip and port; unspecified until bound
  Address destination_;       // the same
  UserDevice* device_ = nullptr;

 private:
  uint16_t ChoosePortOfDevice() const;
  UserDevice* DeviceAt(const Address& address) const;
  UserDevice* DeviceTowards(const Address& address) const;
  bool IsOwn(const Address& address) const;

  const uint32_t handle_;
  std::vector<std::unique_ptr<Port>> ports_;
};

}  // namespace tokamak::verbs::kernel
