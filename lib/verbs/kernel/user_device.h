// UserDevice is a software NIC as the programs of this process see it: an RDMA device with one
// port, a name, a GUID and one GID, opened any number of times.
//
// All opened contexts share it. It knows the queues that programs fill silently (receives are
// posted by writing memory), so that they are looked at before the NIC runs.
//
// Thread rule: one lock's, that of the loop's driver.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/verbs/kernel/cm/neighbours.h"
#include "lib/verbs/kernel/program/failing_request.h"
#include "lib/verbs/soft/device.h"

namespace tokamak::verbs::kernel {

struct Identity {
  uint32_t index = 0;  // uverbsN
  std::string name;    // "rxe_tok0": librxe takes names that begin with "rxe"
  std::string netdev;  // the interface that has the address
  Address address;     // its GID
  uint64_t guid = 0;   // of node and system image

  std::string GuidText() const;  // as in sysfs
  std::string GidText() const;
};

// Returns the identity of the device at `address`. Peers tell devices apart by the GUID, so that
// follows from the address alone.
Identity MakeIdentity(uint32_t index, const Address& address, std::string netdev);

// An object that has to look at memory which the program may have written meanwhile.
class Pulled {
 public:
  virtual void Pull() = 0;

 protected:
  ~Pulled() = default;
};

class PortListener {
 public:
  virtual void OnPort(bool active) = 0;

 protected:
  ~PortListener() = default;
};

class UserDevice final {
 public:
  // All except `identity` outlive it. `failing` and `neighbours`, which may be null, are shared by
  // all devices of the process.
  UserDevice(Identity identity, soft::SoftDevice& nic, base::EventLoop& loop, FailingRequest& failing,
             Neighbours* neighbours = nullptr);

  const Identity& identity() const { return identity_; }
  soft::SoftDevice& nic() { return nic_; }
  base::EventLoop& loop() { return loop_; }
  FailingRequest& failing() { return failing_; }
  Neighbours* neighbours() { return neighbours_; }

  // Must be called before each round of the loop.
  void PullAll() {
    for (Pulled* pulled : pulled_) pulled->Pull();
  }
  void Add(Pulled& pulled) { pulled_.push_back(&pulled); }
  void Remove(Pulled& pulled);

  void Add(PortListener& listener) { listeners_.insert(&listener); }
  void Remove(PortListener& listener) { listeners_.erase(&listener); }
  void SetPortActive(bool active);
  bool port_active() const { return port_active_; }

  ib_uverbs_query_device_resp Attributes() const;
  ib_uverbs_query_port_resp PortAttributes() const;

  // Limits for programs.
  static constexpr uint32_t kMaxRequests = 16383;
  static constexpr uint32_t kMaxCompletions = (1 << 20) - 1;
  static constexpr uint32_t kMaxObjects = 65536;  // of each kind

 private:
  const Identity identity_;
  soft::SoftDevice& nic_;
  base::EventLoop& loop_;
  FailingRequest& failing_;
  Neighbours* const neighbours_;
  std::vector<Pulled*> pulled_;
  std::set<PortListener*> listeners_;
  bool port_active_ = true;
};

}  // namespace tokamak::verbs::kernel
