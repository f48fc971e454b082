// A software NIC with a fuzzer for a network and for an owner, and the laws that hold whatever
// these do.
//
// Law: a byte changes only where a key allows it. Each block of memory has canaries around its
//      region; those that no peer may write hold one value for ever.
// Law: what the NIC sends comes from memory that may be read by its receiver at that moment.
// Law: each packet that arrives is counted, once.
// Law: each request completes once, at the latest when its queue pair is ended; nothing completes
// that was not posted.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/verbs.h"
#include "sim/time/sim_loop.h"

namespace tokamak::fuzz {

// A region and what it may suffer.
struct Block {
  std::vector<uint8_t> bytes;  // canary, region, canary
  absl::Span<uint8_t> memory;  // the region
  std::unique_ptr<verbs::MemoryRegion> region;
  verbs::Access access = verbs::kLocalRead;
  absl::Span<uint8_t> frozen;  // of the region: nobody may change it
  uint32_t revoked_key = 0;    // the last key that it had before
};

enum BlockName : uint32_t {
  kOpen,      // everything is allowed
  kReadable,  // remote reads only
  kClosed,    // nothing remote
  kForeign,   // everything, but in another protection domain
  kRevoked,   // its key is void
  kReceives,  // the owner's receives and answers go here
  kSource,    // what the owner sends
  kWindowed,  // nothing remote but through windows, which never open its second half for writing
  kBlocks
};

// A queue pair and what is in flight on it. The second one draws from a shared receive queue.
struct Line {
  std::unique_ptr<verbs::QueuePair> queue_pair;
  verbs::Address peer;
  uint32_t peer_number = 0;
  verbs::Access access = verbs::kLocalRead;
  uint32_t peer_psn = 0;                  // the peer's next
  uint32_t own_psn = 0;                   // the NIC's next, as far as it was seen
  std::deque<verbs::soft::Packet> asked;  // the NIC's requests, without payload, oldest first
};

class NicWorld final : public verbs::soft::Fabric {
 public:
  static constexpr uint32_t kMtu = 256;
  static constexpr uint32_t kDepth = 16;
  static constexpr size_t kLines = 2;
  static constexpr size_t kWindows = 2;

  NicWorld();
  ~NicWorld() override;  // ends what is open and checks all laws

  absl::StatusOr<std::unique_ptr<verbs::soft::Port>> Open(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::soft::PortCallbacks callbacks) override;

  Block& block(uint32_t name) { return blocks_[name]; }
  Line& line(size_t index) { return lines_[index]; }

  // A packet that arrives, alone or with those after it; its payload is copied.
  void Add(const verbs::soft::Packet& packet, absl::Span<const uint8_t> payload);
  void Deliver();
  void Run(base::Duration duration);
  void SetRoom(size_t packets);

  // The owner's doings. A request that the device refuses is none.
  void PostReceive(Line& line, const verbs::Sge& sge);
  void PostSend(Line& line, verbs::SendRequest request);
  void Bind(Line& line, size_t window, uint32_t offset, uint32_t length, verbs::Access access, verbs::SendFlags flags);
  uint32_t window_key(size_t window) const { return windows_[window]->rkey(); }
  void RenewWindow(size_t window);
  void Register(Block& block);
  void Revoke(Block& block);
  void Walk(Line& line, bool to_send);
  void Renew(Line& line);
  void Poll();

  void CheckMemory() const;

 private:
  class WirePort;

  // A part of kWindowed that may be read through a window, or could be once.
  struct Opened {
    size_t window;
    absl::Span<const uint8_t> memory;
  };

  void Make(BlockName name, size_t size, verbs::Access access, size_t frozen_from, verbs::ProtectionDomain& domain);
  void OnSent(const verbs::soft::Packet& packet);
  bool MayBeSent(const verbs::soft::Packet& packet, const verbs::soft::PayloadSlice& slice) const;
  void CheckCounters() const;

  base::NoTrace trace_;
  sim::Scheduler scheduler_;
  sim::SimLoop nic_loop_{scheduler_};
  sim::SimLoop loop_{scheduler_};
  verbs::soft::PortCallbacks callbacks_;
  size_t room_ = SIZE_MAX;
  std::unique_ptr<verbs::soft::SoftDevice> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_, other_domain_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<verbs::SharedReceiveQueue> shared_;
  std::unique_ptr<verbs::MemoryWindow> windows_[kWindows];
  std::vector<Opened> opened_;
  Block blocks_[kBlocks];
  Line lines_[kLines];

  std::vector<verbs::soft::Packet> arriving_;
  std::deque<std::vector<uint8_t>> payloads_;  // of those
  uint64_t arrived_ = 0;
  uint64_t next_id_ = 1;
  struct Posted {
    uint32_t queue_pair = 0;
    bool must_complete = false;
    bool shared = false;  // a receive of the shared queue
  };
  std::map<uint64_t, Posted> posted_;
};

}  // namespace tokamak::fuzz
