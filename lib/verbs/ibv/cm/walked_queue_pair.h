// WalkedQueuePair is the connecting thread's (call_thread.h) view of a queue pair: its number and
// the right to walk it, but none to post. Its loop may drop the queue pair any moment; no step is
// taken after.
//
// Thread rule: the thread that connects.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "lib/verbs/ibv/cm/connectable.h"
#include "lib/verbs/ibv/posting/provider_queue_pair.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class WalkedQueuePair final : public QueuePair, public Connectable {
 public:
  struct Facts {
    LinkKind link;
    Access remote_access;
    bool shares_receives;
  };

  WalkedQueuePair(os::EpollLoop& loop, std::shared_ptr<ProviderQueuePair> provider,
                  std::shared_ptr<ProviderQueuePair::Walker> walker, const Facts& facts)
      : loop_(loop), provider_(std::move(provider)), walker_(std::move(walker)), facts_(facts) {}

  // Connectable. The loop is the thread's.
  os::EpollLoop& loop() override { return loop_; }
  uint32_t connection_number() const override { return provider_->number(); }
  QueuePairState connection_state() const override;
  Access remote_access() const override { return facts_.remote_access; }
  bool shares_receives() const override { return facts_.shares_receives; }
  absl::Status Walk(ibv_qp_attr attributes, int mask) override;
  void WasConnected(uint8_t reads) override;
  bool Hold() override { return !std::exchange(held_, true); }
  void Release() override { held_ = false; }

  // Returns the argument of WasConnected; iWARP only.
  std::optional<uint8_t> reads() const { return reads_; }

  // QueuePair.
  uint32_t number() const override { return connection_number(); }
  QueuePairState state() const override { return connection_state(); }
  PostResult PostSend(absl::Span<const SendRequest>) override { return {0, NotHere()}; }
  PostResult PostReceive(absl::Span<const ReceiveRequest>) override { return {0, NotHere()}; }
  absl::Status Modify(QueuePairState, const QueuePairAttributes&) override { return NotHere(); }

 private:
  static absl::Status NotHere() { return absl::UnimplementedError("a queue pair is used on its loop"); }

  os::EpollLoop& loop_;
  const std::shared_ptr<ProviderQueuePair> provider_;
  const std::shared_ptr<ProviderQueuePair::Walker> walker_;
  const Facts facts_;
  QueuePairState state_ = QueuePairState::kInit;
  std::optional<uint8_t> reads_;
  bool held_ = false;
};

}  // namespace tokamak::verbs::ibv
