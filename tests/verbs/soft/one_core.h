// The inside of a NIC with one queue pair, ready to send, for tests of a requester's parts: no turn
// happens but those of the test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/soft/rc/connected_core.h"
#include "lib/verbs/soft/rc/psn.h"
#include "lib/verbs/soft/state/nic_state.h"
#include "sim/time/sim_loop.h"

namespace tokamak::verbs::soft {

class OneCore : public ::testing::Test {
 protected:
  static constexpr uint32_t kMtu = 256;
  static constexpr uint32_t kPeerNumber = 0x123456;
  static constexpr DomainId kDomain = 1;
  static constexpr uint64_t kFirst = FirstSequence(7);

  OneCore()
      : loop_(scheduler_),
        ring_(std::make_shared<CompletionRing>(64, loop_.MakeSignal([] {}), loop_)),
        core_(nic_state_, Parts(ring_), Options(), MakeFixedWindow(8)),
        key_(nic_state_.keys.Add(kDomain, RegionMemory(absl::MakeSpan(memory_)), kLocalWrite)) {
    for (size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<uint8_t>(i * 7 + i / 256);
    Limits limits;
    limits.active_mtu = kMtu;
    limits.max_reads = kMaxReads;
    QueuePairAttributes attributes;
    attributes.peer = *Address::Parse("10.0.0.2");
    attributes.peer_number = kPeerNumber;
    attributes.path_mtu = kMtu;
    attributes.send_psn = 7;
    EXPECT_TRUE(core_.Modify(QueuePairState::kReadyToReceive, attributes, limits).ok());
    EXPECT_TRUE(core_.Modify(QueuePairState::kReadyToSend, attributes, limits).ok());
  }

  // Posts a signaled request for memory from `offset` on. Its slot may be changed until it starts.
  SendSlot& Post(Opcode opcode, uint64_t id, size_t offset, uint32_t length) {
    SendSlot& slot = core_.sends.next();
    slot.id = id;
    slot.opcode = opcode;
    slot.length = length;
    slot.sge_count = 1;
    slot.sges[0] = {memory_.data() + offset, length, key_};
    slot.signaled = true;
    slot.remote_address = 0x10000;
    slot.rkey = 0x77;
    core_.sends.Prepare();
    core_.sends.Publish();
    return slot;
  }

  std::vector<Completion> Poll() {
    ring_->Publish();
    std::vector<Completion> all(64);
    all.resize(ring_->Poll(absl::MakeSpan(all)));
    return all;
  }
  std::vector<uint64_t> PollIds() {
    std::vector<uint64_t> ids;
    for (const Completion& completion : Poll()) ids.push_back(completion.id);
    return ids;
  }
  std::string Bytes(size_t offset, size_t length) const {
    return {reinterpret_cast<const char*>(memory_.data()) + offset, length};
  }

  sim::Scheduler scheduler_;
  sim::SimLoop loop_;
  base::NoTrace trace_;
  DeviceOptions device_options_;
  NicState nic_state_{loop_, trace_, device_options_, SecretNumbers(1, 1), [] {}, [] {}};
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(10000);
  std::shared_ptr<CompletionRing> ring_;
  ConnectedCore core_;
  const uint32_t key_;

 private:
  static QueuePairParts Parts(const std::shared_ptr<CompletionRing>& ring) {
    QueuePairParts parts;
    parts.number = 5;
    parts.domain = kDomain;
    parts.send_ring = parts.receive_ring = ring;
    parts.max_receive_requests = parts.max_sges = 1;
    return parts;
  }
  static QueuePairOptions Options() {
    QueuePairOptions options;
    options.max_send_requests = 16;
    options.max_sges = 1;
    return options;
  }
};

}  // namespace tokamak::verbs::soft
