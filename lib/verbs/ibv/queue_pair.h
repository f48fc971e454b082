// IbvQueuePair is a reliable queue pair of libibverbs, made in Init.
//
// Its state is kept here, so posting does not ask the device. It follows our own steps, the
// kernel's (iWARP), the first completion that is not a success, and the device's own events;
// state() also asks the device. Once Error is known the device gets a step to Error again, since
// some providers stay half alive: then all of them flush the requests that they hold, and later
// ones.
//
// Sends go to the provider as they are posted, or through GatedSends if the provider breaks fences.
//
// The device's calls take long. So with QueuePairOptions::may_be_made_later the provider's queue
// pair is made on the thread that connects (call_thread.h), and receives are kept until then; a
// connection walks it there, too (off_loop_connection.h). Its end is done on the calling thread:
// once it is dropped no byte moves any more.
//
// Thread rule: the thread of the completion queues' loop, except for Fail and OnAsyncEvent.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/ibv/async_events.h"
#include "lib/verbs/ibv/call_thread.h"
#include "lib/verbs/ibv/cm/walked_queue_pair.h"
#include "lib/verbs/ibv/completion_pair.h"
#include "lib/verbs/ibv/completion_queue.h"
#include "lib/verbs/ibv/inbox.h"
#include "lib/verbs/ibv/memory.h"
#include "lib/verbs/ibv/posted_requests.h"
#include "lib/verbs/ibv/posting/gated_sends.h"
#include "lib/verbs/ibv/posting/kept_receives.h"
#include "lib/verbs/ibv/posting/posting.h"
#include "lib/verbs/ibv/posting/provider_queue_pair.h"
#include "lib/verbs/ibv/shared_receives.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class IbvQueuePair final : public QueuePair,
                           private CompletionOwner,
                           private SharedReceiver,
                           private DomainMember,
                           private AsyncTarget {
 public:
  // Errors: kInvalidArgument, kResourceExhausted, those of the provider.
  static absl::StatusOr<std::unique_ptr<IbvQueuePair>> Make(std::shared_ptr<Domain> domain,
                                                            std::shared_ptr<CallThread> calls,
                                                            const QueuePairOptions& options);
  ~IbvQueuePair() override;
  IbvQueuePair(const IbvQueuePair&) = delete;
  IbvQueuePair& operator=(const IbvQueuePair&) = delete;

  // QueuePair.
  uint32_t number() const override;
  bool made() const override { return adopted_; }
  QueuePairState state() const override;
  PostResult PostSend(absl::Span<const SendRequest> requests) override;
  PostResult PostReceive(absl::Span<const ReceiveRequest> requests) override;
  absl::Status Modify(QueuePairState state, const QueuePairAttributes& attributes) override;

  // ---- For its connection.

  // Holds the queue pair for one connection. Returns false, changing nothing, if another holds it.
  [[nodiscard]] bool Hold();
  void Release();

  // The loop of its completions, and of its connection's events.
  os::EpollLoop& loop() const { return posted_.completions().loop(); }
  // The state as it is known here, without asking the device.
  QueuePairState known_state() const { return state_.load(); }

  // `made` runs once, at once if the result is known already: inside a call of the owner's,
  // perhaps. Not after Release.
  void WhenMade(std::function<void(const absl::Status& status)> made);
  // Returns, once it is made, the view of it for `there`, the loop of the thread that connects.
  std::unique_ptr<WalkedQueuePair> ForWalking(os::EpollLoop& there,
                                              std::shared_ptr<ProviderQueuePair::Walker> walker) const;

  // It was walked to ReadyToSend there. iWARP: the peer serves `reads` of our READs at once.
  void WasConnected(std::optional<uint8_t> reads);
  // It may have been walked to Error there.
  void WasWalked();
  // Flushes posted requests; on the device it has ended when this returns. A device that refuses,
  // since it was removed say, has nothing to flush: that is logged.
  void EndConnection();

  const Context& context() const { return domain_->context(); }

 private:
  IbvQueuePair(std::shared_ptr<Domain> domain, std::shared_ptr<CallThread> calls, const QueuePairOptions& options,
               CompletionPair completions, std::shared_ptr<SharedReceivesCore> shared);

  // CompletionOwner.
  uint32_t completion_number() const override { return number_; }
  bool Arrived(const ibv_wc& done) override;
  bool Finish(const ibv_wc& done, Completion* to) override;
  void Fail() override;

  void SharedQueueDropped() override;
  void MemoryWasNotRevoked() override { Fail(); }
  void OnAsyncEvent(ibv_event_type event) override;

  absl::Status Create(const QueuePairOptions& options);
  absl::Status Adopt();
  absl::Status Walk(ibv_qp_attr attributes, int mask);
  PostResult KeepReceives(absl::Span<const ReceiveRequest> requests);
  void PostKept();
  void EndRefused(const char* call, int error);
  absl::Status PostBind(const SendRequest& request, PostResult* result);
  template <typename Request>
  absl::Status PostBatch(Batch<Request>* batch, PostResult* result);
  PostResult PostThroughGate(absl::Span<const SendRequest> requests);
  void LetThrough();
  void AwaitReads(bool awaits);
  bool FlushesHere() const;
  void Enter(QueuePairState state);
  void NoticeConnected();
  void NoticeError();
  void TellError();

  const std::shared_ptr<Domain> domain_;
  const std::shared_ptr<CallThread> calls_;
  const QueueBounds bounds_;
  Access remote_access_;
  std::shared_ptr<ProviderQueuePair> provider_;  // shared with the thread that connects
  bool adopted_ = false;                         // true if the result of Make is known here
  absl::Status made_;
  ibv_qp* queue_pair_ = nullptr;  // the provider's; null until it was adopted
  uint32_t number_ = 0;           // 0 until it was adopted
  KeptReceives kept_receives_;
  std::function<void(const absl::Status&)> when_made_;
  mutable std::atomic<QueuePairState> state_{QueuePairState::kReset};
  PostedRequests posted_;
  std::unique_ptr<GatedSends> gate_;  // or null
  bool awaits_reads_ = false;         // true if requests wait at the gate
  std::shared_ptr<QueuePairLife> life_;
  bool over_ = false;  // true if Error has been entered, on this thread
  bool held_ = false;  // true if a connection holds it
  std::optional<Inbox> inbox_;
};

}  // namespace tokamak::verbs::ibv
