// SPDX-License-Identifier: GPL-2.0-only
//
// Software NICs and WRITEs between them, on whatever loop and fabric they are.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/verbs.h"

namespace tokamak::sim {

class RawWrites {
 public:
  struct Flow {
    size_t from;
    size_t to;
    verbs::QueuePair* queue_pair;
  };

  explicit RawWrites(const base::EventLoop& clock, uint32_t bytes = 1 << 20) : clock_(clock), memory_(2 * bytes) {
    for (size_t i = 0; i < bytes; ++i) memory_[i] = static_cast<uint8_t>(i * 7 + (i >> 9));
  }

  // A NIC, whose number is how many there were. It must outlive this.
  size_t Add(base::EventLoop& loop, verbs::soft::SoftDevice& device) {
    Nic& nic = nics_.emplace_back();
    nic.device = &device;
    nic.domain = *device.CreateProtectionDomain();
    nic.completions = *device.CreateCompletionQueue(loop, 64, [this, &nic] { Poll(nic); });
    nic.completions->RequestNotify(false);
    nic.region = *nic.domain->RegisterMemory(absl::MakeSpan(memory_), verbs::kLocalWrite | verbs::kRemoteWrite);
    return nics_.size() - 1;
  }

  Flow Connect(size_t from, size_t to, uint32_t mtu = 4096) {
    verbs::QueuePair* x = MakeQueuePair(nics_[from]);
    verbs::QueuePair* y = MakeQueuePair(nics_[to]);
    Walk(x, nics_[to], y, mtu, 100, 200);
    Walk(y, nics_[from], x, mtu, 200, 100);
    return {from, to, x};
  }

  void Write(const Flow& flow, uint32_t bytes) {
    const Nic& from = nics_[flow.from];
    const Nic& to = nics_[flow.to];
    const verbs::Sge sge{from.region->address(), bytes, from.region->lkey()};
    verbs::SendRequest request;
    request.opcode = verbs::Opcode::kWrite;
    request.flags = verbs::kSignaled;
    request.sges = absl::MakeConstSpan(&sge, 1);
    request.remote_address = reinterpret_cast<uint64_t>(to.region->address()) + memory_.size() / 2;
    request.rkey = to.region->rkey();
    const verbs::PostResult result = flow.queue_pair->PostSend(absl::MakeConstSpan(&request, 1));
    ASSERT_TRUE(result.ok()) << result.status;
  }

  // When requests completed, all well.
  const std::vector<base::Time>& completed() const { return completed_; }

  bool arrived(size_t bytes) const {
    const auto middle = memory_.begin() + static_cast<ptrdiff_t>(memory_.size() / 2);
    return std::equal(memory_.begin(), memory_.begin() + static_cast<ptrdiff_t>(bytes), middle);
  }

 private:
  struct Nic {
    verbs::soft::SoftDevice* device;
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<verbs::CompletionQueue> completions;
    std::unique_ptr<verbs::MemoryRegion> region;
    std::vector<std::unique_ptr<verbs::QueuePair>> queue_pairs;
  };

  void Poll(Nic& nic) {
    verbs::Completion some[16];
    nic.completions->RequestNotify(false);
    while (const size_t got = nic.completions->Poll(absl::MakeSpan(some))) {
      for (size_t i = 0; i < got; ++i) {
        EXPECT_EQ(some[i].status, verbs::CompletionStatus::kSuccess);
        completed_.push_back(clock_.Now());
      }
    }
  }

  static verbs::QueuePair* MakeQueuePair(Nic& nic) {
    verbs::QueuePairOptions options;
    options.send_queue = options.receive_queue = nic.completions.get();
    options.max_send_requests = options.max_receive_requests = 16;
    options.remote_access = verbs::kRemoteWrite;
    nic.queue_pairs.push_back(*nic.domain->CreateQueuePair(options));
    return nic.queue_pairs.back().get();
  }

  static void Walk(verbs::QueuePair* queue_pair, const Nic& peer, const verbs::QueuePair* other, uint32_t mtu,
                   uint32_t send, uint32_t receive) {
    verbs::QueuePairAttributes attributes;
    attributes.peer = peer.device->address();
    attributes.peer_number = other->number();
    attributes.path_mtu = mtu;
    attributes.send_psn = send;
    attributes.receive_psn = receive;
    ASSERT_TRUE(queue_pair->Modify(verbs::QueuePairState::kReadyToReceive, attributes).ok());
    ASSERT_TRUE(queue_pair->Modify(verbs::QueuePairState::kReadyToSend, attributes).ok());
  }

  const base::EventLoop& clock_;
  std::vector<uint8_t> memory_;
  std::vector<base::Time> completed_;
  std::deque<Nic> nics_;
};

}  // namespace tokamak::sim
