// NicEnd is one end of a benchmark of the bare NIC: soft:udp on a loopback address, and an owner
// with queue pairs on it.
//
// Completions are found by the owner's loop as its detection says: by looking again and again
// (busy), or by an event.
// Thread rule: one thread, which runs loop(). With Setting::one_thread the NIC works on that loop
// too, otherwise on a thread of its own, as in tokd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/trace.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/loop_thread.h"
#include "lib/os/poller.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/udp/udp_fabric.h"
#include "lib/verbs/verbs.h"

namespace tokamak::bench {

// Settings of both ends alike. Plain bytes: it travels between the two processes.
struct Setting {
  bool busy = false;        // no loop ever sleeps; otherwise all sleep when there is nothing to do
  bool one_thread = false;  // NIC and owner share a loop
  bool echo = false;        // the passive end sends back what it receives
  uint32_t queue_pairs = 1;
  uint32_t depth = 64;  // of each send and each receive queue
};

constexpr uint32_t kSmallMessage = 64;  // bytes: what is sent inline and echoed

// Memory that this process occupies.
struct MemoryUse {
  uint64_t allocated = 0;  // bytes that malloc has given out
  uint64_t resident = 0;   // bytes
};
MemoryUse MeasureMemory();

class NicEnd final : public os::Poller {
 public:
  // `completion.id` is what it was posted with.
  using Handler = std::function<void(const verbs::Completion&)>;

  // `arena` is registered for everything; it and `handler` live as long as this.
  static absl::StatusOr<std::unique_ptr<NicEnd>> Open(const verbs::Address& address, const Setting& setting,
                                                      absl::Span<uint8_t> arena, Handler handler);
  ~NicEnd() override;

  os::EpollLoop& loop() { return loop_; }
  verbs::ConnectionManager& manager() { return device_->connection_manager(); }
  const verbs::soft::DeviceCounters counters() const { return device_->counters(); }
  const verbs::soft::UdpCounters& udp() const { return fabric_->counters(); }
  absl::Span<uint8_t> arena() const { return arena_; }
  uint32_t rkey() const { return region_->rkey(); }
  uint32_t lkey() const { return region_->lkey(); }

  // The next queue pair, in Init, with receives of kSmallMessage bytes where it is to take
  // messages.
  absl::StatusOr<verbs::QueuePair*> AddQueuePair(bool receives);
  size_t queue_pairs() const { return queue_pairs_.size(); }
  verbs::QueuePair& queue_pair(size_t index) { return *queue_pairs_[index]; }
  void Keep(std::unique_ptr<verbs::Connection> connection) { connections_.push_back(std::move(connection)); }

  // A receive of kSmallMessage bytes; its completion's id is kReceive and `index`.
  absl::Status PostReceive(size_t index);
  static constexpr uint64_t kReceive = uint64_t{1} << 63;

  // Posts kSmallMessage bytes, inline; every few with a completion, whose id is `index`.
  absl::Status PostSmall(size_t index);

  // os::Poller
  bool Poll() override;
  void Arm() override { completions_->RequestNotify(); }
  int descriptor() const override { return -1; }

 private:
  NicEnd(const Setting& setting, absl::Span<uint8_t> arena, Handler handler);
  absl::Status Plug(const verbs::Address& address);
  absl::Status OpenDevice(os::EpollLoop& nic_loop, const verbs::Address& address);

  const Setting setting_;
  const absl::Span<uint8_t> arena_;
  const Handler handler_;
  os::EpollLoop loop_;
  base::NoTrace trace_;
  std::unique_ptr<os::LoopThread> thread_;
  std::unique_ptr<verbs::soft::UdpFabric> fabric_;
  std::unique_ptr<verbs::soft::SoftDevice> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<verbs::MemoryRegion> region_;
  std::vector<std::unique_ptr<verbs::QueuePair>> queue_pairs_;
  std::vector<std::unique_ptr<verbs::Connection>> connections_;
  os::PollerHandle polled_;
  uint64_t sent_ = 0;
};

}  // namespace tokamak::bench
