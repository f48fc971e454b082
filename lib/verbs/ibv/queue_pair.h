// IbvQueuePair is a reliable queue pair of libibverbs, made in Init.
//
// Its state is kept here, so that posting asks nobody, and follows what is known: the steps that we
// take, the kernel's (iWARP), the first completion that is not a success, the device's own events.
// state() also asks the device. Once Error is known the device is told so again, since some
// providers stay half alive: then all of them flush what they hold, and what is posted later.
//
// Sends go to the provider as they are posted, or through a ReadGate where the provider breaks
// fences.
//
// Thread rule: the thread of the completion queues' loop, except for Fail and OnAsyncEvent.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/ibv/async_events.h"
#include "lib/verbs/ibv/completion_queue.h"
#include "lib/verbs/ibv/connectable.h"
#include "lib/verbs/ibv/memory.h"
#include "lib/verbs/ibv/posting.h"
#include "lib/verbs/ibv/read_gate.h"
#include "lib/verbs/ibv/shared_receives.h"
#include "lib/verbs/ibv/work_ring.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class IbvQueuePair final : public QueuePair,
                           public Connectable,
                           private CompletionOwner,
                           private SharedReceiver,
                           private DomainMember,
                           private AsyncTarget {
 public:
  // Errors: kInvalidArgument, kResourceExhausted, what the provider says.
  static absl::StatusOr<std::unique_ptr<IbvQueuePair>> Make(std::shared_ptr<Domain> domain,
                                                            const QueuePairOptions& options);
  ~IbvQueuePair() override;
  IbvQueuePair(const IbvQueuePair&) = delete;
  IbvQueuePair& operator=(const IbvQueuePair&) = delete;

  // QueuePair.
  uint32_t number() const override { return number_; }
  QueuePairState state() const override;
  PostResult PostSend(absl::Span<const SendRequest> requests) override;
  PostResult PostReceive(absl::Span<const ReceiveRequest> requests) override;
  absl::Status Modify(QueuePairState state, const QueuePairAttributes& attributes) override;

  // Connectable.
  os::EpollLoop& loop() override { return sends_done_->loop(); }
  uint32_t connection_number() const override { return number(); }
  QueuePairState connection_state() const override { return state(); }
  Access remote_access() const override { return remote_access_; }
  bool shares_receives() const override { return shared_ != nullptr; }
  absl::Status Walk(ibv_qp_attr attributes, int mask) override;
  void WasConnected(uint8_t reads) override;
  bool Hold() override;
  void Release() override { held_ = false; }

  const Context& context() const { return domain_->context(); }

 private:
  IbvQueuePair(std::shared_ptr<Domain> domain, const QueuePairOptions& options,
               std::shared_ptr<CompletionCore> sends_done, std::shared_ptr<CompletionCore> receives_done,
               std::shared_ptr<SharedReceivesCore> shared);

  // CompletionOwner.
  uint32_t completion_number() const override { return number(); }
  bool Arrived(const ibv_wc& done) override;
  bool Finish(const ibv_wc& done, Completion* to) override;
  void Fail() override;

  void SharedQueueDropped() override;
  void MemoryWasNotRevoked() override { Fail(); }
  void OnAsyncEvent(ibv_event_type event) override;

  absl::Status Create(const QueuePairOptions& options);
  absl::Status PostBind(const SendRequest& request, PostResult* result);
  absl::Status PostBatch(SendBatch* batch, PostResult* result);
  absl::Status PostBatch(ReceiveBatch* batch, PostResult* result);
  absl::Status Posted(int error, size_t wanted, size_t accepted, bool receives, PostResult* result);
  PostResult PostThroughGate(absl::Span<const SendRequest> requests);
  void LetThrough();
  void AwaitReads(bool awaits);
  Telling TellingOf(const SendRequest& request) const;
  bool FlushesHere() const;
  void FlushOutstanding();
  void Enter(QueuePairState state);
  void NoticeError();
  void TellError();

  const std::shared_ptr<Domain> domain_;
  const std::shared_ptr<CompletionCore> sends_done_;
  const std::shared_ptr<CompletionCore> receives_done_;
  const std::shared_ptr<SharedReceivesCore> shared_;  // or null
  const QueueBounds bounds_;
  Access remote_access_;
  ibv_qp* queue_pair_ = nullptr;
  uint32_t number_ = 0;
  mutable std::atomic<QueuePairState> state_{QueuePairState::kReset};
  WorkRing sends_;
  WorkRing receives_;
  std::unique_ptr<ReadGate> gate_;  // or null
  bool awaits_reads_ = false;       // requests wait at the gate
  std::shared_ptr<QueuePairLife> life_;
  bool over_ = false;  // Error has been entered, on this thread
  bool held_ = false;  // by a connection
};

}  // namespace tokamak::verbs::ibv
