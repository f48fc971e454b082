// UserSharedReceives is a shared receive queue of a program: it hands the ring's receives to the
// NIC's queue.
//
// Thread rule: one lock's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/verbs/kernel/async_events.h"
#include "lib/verbs/kernel/object.h"
#include "lib/verbs/kernel/program/provider_ring.h"
#include "lib/verbs/kernel/user_device.h"

namespace tokamak::verbs::kernel {

class UserSharedReceives final : public Object, public Pulled {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kSharedReceives;

  // Errors: EINVAL beyond the device's limits, ENOMEM.
  static int Make(UserDevice& device, RingMemory& memory, DomainObject& domain, uint32_t depth, uint32_t max_sges,
                  uint64_t name, AsyncEvents& async, std::unique_ptr<UserSharedReceives>* made);
  ~UserSharedReceives() override;

  SharedReceiveQueue& queue() { return *queue_; }
  const ProviderRing& ring() const { return *ring_; }
  uint32_t max_sges() const { return max_sges_; }
  uint32_t limit() const { return limit_; }

  void Pull() override;

  // A receive that a queue pair took is over. Returns the program's number of it.
  uint64_t Finish(uint64_t id);

  // Raises one event when fewer than `limit` are left. EINVAL.
  int Arm(uint32_t limit);

  void OnLimit();

  // Makes a ring of another depth, with the waiting receives. EINVAL, ENOMEM.
  int Resize(uint32_t depth);

  uint32_t RetireAsyncEvents() { return async_.Retire(name_); }

 private:
  UserSharedReceives(UserDevice& device, RingMemory& memory, DomainObject& domain, uint32_t max_sges, uint64_t name,
                     AsyncEvents& async, std::unique_ptr<ProviderRing> ring);

  UserDevice& device_;
  RingMemory& memory_;
  const Use domain_;
  const uint32_t max_sges_;
  const uint64_t name_;
  AsyncEvents& async_;
  std::unique_ptr<ProviderRing> ring_;
  uint32_t taken_ = 0;              // the ring's consumer index
  uint32_t limit_ = 0;              // as armed last, until reached
  std::vector<uint64_t> requests_;  // by our id: the program's numbers of those that the NIC has
  std::vector<uint32_t> free_;      // ids
  std::unique_ptr<SharedReceiveQueue> queue_;
};

}  // namespace tokamak::verbs::kernel
