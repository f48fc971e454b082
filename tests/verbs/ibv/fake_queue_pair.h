// FakeQueuePair stands for a queue pair of libibverbs where connections are made without a device:
// it goes the steps that ibv_modify_qp would, refuses those that it would refuse, and remembers
// them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/ibv/cm/connectable.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class FakeQueuePair final : public QueuePair, public Connectable {
 public:
  FakeQueuePair(os::EpollLoop& loop, uint32_t number) : loop_(loop), number_(number) {}

  uint32_t number() const override { return number_; }
  QueuePairState state() const override { return state_; }
  PostResult PostSend(absl::Span<const SendRequest>) override { return {0, absl::UnimplementedError("a fake")}; }
  PostResult PostReceive(absl::Span<const ReceiveRequest>) override { return {0, absl::UnimplementedError("a fake")}; }
  absl::Status Modify(QueuePairState, const QueuePairAttributes&) override {
    return absl::UnimplementedError("a fake");
  }

  os::EpollLoop& loop() override { return loop_; }
  uint32_t connection_number() const override { return number_; }
  QueuePairState connection_state() const override { return state_; }
  Access remote_access() const override { return kRemoteRead | kRemoteWrite; }
  bool shares_receives() const override { return false; }

  absl::Status Walk(ibv_qp_attr attributes, int mask) override {
    if (!refuse_walk.ok()) return refuse_walk;
    const QueuePairState from = state_;
    switch (attributes.qp_state) {
      case IBV_QPS_INIT:  // again, in another partition
        if (from != QueuePairState::kInit) return absl::InvalidArgumentError("not in Init");
        break;
      case IBV_QPS_RTR:
        if (from != QueuePairState::kInit) return absl::InvalidArgumentError("not in Init");
        state_ = QueuePairState::kReadyToReceive;
        break;
      case IBV_QPS_RTS:
        if (from != QueuePairState::kReadyToReceive) return absl::InvalidArgumentError("not in ReadyToReceive");
        state_ = QueuePairState::kReadyToSend;
        break;
      case IBV_QPS_ERR:
        state_ = QueuePairState::kError;
        break;
      default:
        return absl::InvalidArgumentError("no such step here");
    }
    steps.push_back({attributes, mask});
    return absl::OkStatus();
  }
  void WasConnected(uint8_t) override { state_ = QueuePairState::kReadyToSend; }
  bool Hold() override { return !held_ && (held_ = true); }
  void Release() override { held_ = false; }
  bool held() const { return held_; }

  std::vector<Step> steps;
  absl::Status refuse_walk;  // what the next steps fail with, if anything

 private:
  os::EpollLoop& loop_;
  const uint32_t number_;
  QueuePairState state_ = QueuePairState::kInit;
  bool held_ = false;
};

}  // namespace tokamak::verbs::ibv
