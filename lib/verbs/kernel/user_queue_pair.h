// UserQueuePair is a queue pair of a program: it takes requests out of the rings that the program
// writes, hands them to the NIC's queue pair, and matches completions to requests.
//
// A send is handed over when the doorbell rings, a receive when the NIC is about to look. Each
// request of the NIC is signaled, so that its place in the program's ring comes free even if the
// program wants no completion.
//
// States and attributes are ibverbs' (enum ibv_qp_state, struct ibv_qp_attr). Draining (SQD) is
// done here: requests stay in the ring.
//
// Law: requests complete in the order of the ring, each once.
// Thread rule: one lock's.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/verbs/kernel/async_events.h"
#include "lib/verbs/kernel/nic_queue_pair.h"
#include "lib/verbs/kernel/object.h"
#include "lib/verbs/kernel/object_table.h"
#include "lib/verbs/kernel/program/provider_ring.h"
#include "lib/verbs/kernel/user_completion_queue.h"
#include "lib/verbs/kernel/user_device.h"
#include "lib/verbs/kernel/user_shared_receives.h"

namespace tokamak::verbs::kernel {

// A program's wishes: ib_uverbs_create_qp, without the objects that it names.
struct QueuePairWish {
  uint64_t name = 0;  // the program's, for events
  uint32_t type = 0;  // ibv_qp_type
  uint32_t max_send_wr = 0;
  uint32_t max_recv_wr = 0;
  uint32_t max_send_sge = 0;
  uint32_t max_recv_sge = 0;
  uint32_t max_inline_data = 0;  // bytes
  bool all_signaled = false;
};

class UserQueuePair final : public Object, public CompletionOwner, public Pulled {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kQueuePair;

  // `shared` may be null; `objects` has the requests' address handles. EINVAL: beyond the device's
  // limits; EOPNOTSUPP: a type that it lacks; ENOMEM.
  static int Make(UserDevice& device, RingMemory& memory, const QueuePairWish& wish, DomainObject& domain,
                  UserCompletionQueue& sends_to, UserCompletionQueue& receives_to, UserSharedReceives* shared,
                  const ObjectTable& objects, AsyncEvents& async, std::unique_ptr<UserQueuePair>* made);
  ~UserQueuePair() override;

  uint32_t number() const { return queue_pair_->number(); }

  // Returns the answer to the program that made it, without its handle.
  ib_uverbs_create_qp_resp Granted() const;
  // Returns where the program maps its rings; there is none for shared receives.
  rxe_create_qp_resp Places() const;

  // As ibv_modify_qp. EINVAL: no legal step, or an attribute out of bounds.
  int Modify(const ib_uverbs_modify_qp& request);
  ib_uverbs_query_qp_resp Query() const;

  // Rings the doorbell. EINVAL: not in this state.
  int PostSend();

  // Join or leave a multicast group. EINVAL: not a group, not a datagram queue pair, or not in the
  // group.
  int Attach(const Address& group) { return queue_pair_->Attach(group); }
  int Detach(const Address& group) { return queue_pair_->Detach(group); }

  void Pull() override;
  bool Finish(const Completion& completion, ib_uverbs_wc* work_completion) override;
  void OnQueueLost() override;

  uint32_t RetireAsyncEvents() { return async_.Retire(options_.name); }

 private:
  struct Batch;

  // A request that the NIC has, or had.
  struct SendNote {
    uint64_t request = 0;  // the program's number
    bool signaled = false;
  };

  UserQueuePair(UserDevice& device, const QueuePairWish& wish, DomainObject& domain, UserCompletionQueue& sends_to,
                UserCompletionQueue& receives_to, UserSharedReceives* shared, AsyncEvents& async);
  int MakeRings(RingMemory& memory);
  int MakeQueuePair(const ObjectTable& objects);

  int Check(const ib_uverbs_modify_qp& request, uint32_t to) const;
  void Take(const ib_uverbs_modify_qp& request);
  int Step(uint32_t from, uint32_t to);
  uint32_t state() const;
  void Forget();

  void PullSends();
  NicQueuePair::Added ReadSend(uint32_t index, Batch* batch);
  void PullReceives();
  void RefuseNext();
  bool FinishSend(const Completion& completion, ib_uverbs_wc* work_completion);
  uint64_t FinishReceive(uint64_t id);
  bool is_datagram() const { return queue_pair_->service() == Service::kDatagram; }

  UserDevice& device_;
  const QueuePairWish options_;
  DomainObject& domain_;
  UserCompletionQueue& sends_to_;
  UserCompletionQueue& receives_to_;
  UserSharedReceives* const shared_;
  const std::array<Use, 4> uses_;
  AsyncEvents& async_;

  std::unique_ptr<ProviderRing> send_ring_;
  std::unique_ptr<ProviderRing> receive_ring_;
  std::vector<SendNote> sends_;     // by place in the ring
  std::vector<uint64_t> receives_;  // by place in the ring: the program's numbers
  uint32_t sends_taken_ = 0;        // first place in the ring not handed to the NIC
  uint32_t sends_over_ = 0;         // the ring's consumer index
  uint32_t receives_taken_ = 0;
  // Other than success: the send at sends_taken_ is refused, and completes with this.
  CompletionStatus refusal_ = CompletionStatus::kSuccess;

  uint32_t state_ = 0;  // as the program set it
  bool draining_ = false;
  ib_uverbs_modify_qp attributes_{};  // all that were ever set
  std::unique_ptr<NicQueuePair> queue_pair_;
};

}  // namespace tokamak::verbs::kernel
