// Attachment joins an outside host to the fabric: its device's frames enter, and delivered frames
// are written to the device.
//
// An I/O thread reads and writes devices, over rings: neither side waits. A host too fast for its
// link or the simulation is held up: its device is not read, and its kernel sees a busy card. A
// host that does not take its frames loses them. Every frame lost is counted.
//
// Thread rules: made, plugged in and dropped while neither thread runs; Watch and Unwatch on the
// I/O thread; counters from any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/counter.h"
#include "lib/base/mailbox.h"
#include "lib/os/epoll_loop.h"
#include "sim/emulation/frame_head.h"
#include "sim/emulation/lag_meter.h"
#include "sim/emulation/outside_device.h"
#include "sim/emulation/real_time.h"
#include "sim/fabric/host_interface.h"

namespace tokamak::sim {

struct AttachmentCounters {
  // The host's frames, by kind, and those it received.
  std::array<base::Counter, kFrameKinds> entered;
  base::Counter delivered;
  base::Counter delivered_bytes;
  base::Counter delivered_marked;

  // Dropped from the host:
  base::Counter not_carried;  // kOther and kMalformed
  base::Counter nobody;       // no other host has the address
  base::Counter too_long;
  base::Counter uncut;  // see OutsideDevice

  // Times that the host waited for its link.
  base::Counter held_up;

  // Damaged, or dropped, towards the host:
  base::Counter damaged;       // on a cable; RoCE's go on with a wrong ICRC
  base::Counter leaving_full;  // the host is too slow
  base::Counter failed;        // refused by the device
};

class Attachment final {
 public:
  static constexpr size_t kEntering = 64;  // frames
  static constexpr size_t kLeaving = 1024;

  // Two of the longest frames.
  static constexpr uint64_t kLeastQueue = 16 << 10;

  // Arguments must outlive it.
  Attachment(std::string host, std::unique_ptr<OutsideDevice> device, RealTime& time, LagMeter& lag)
      : host_(std::move(host)), device_(std::move(device)), time_(time), lag_(lag) {}

  // `queue`: bytes of each priority that wait for the link; at least kLeastQueue.
  absl::Status PlugIn(HostInterface& interface, uint64_t queue);

  void Watch(os::EpollLoop& io);
  void Unwatch();

  const std::string& host() const { return host_; }
  const OutsideDevice& device() const { return *device_; }
  const AttachmentCounters& counters() const { return counters_; }

 private:
  using Bytes = std::vector<uint8_t>;

  // Before others have their turn.
  static constexpr int kFramesPerTurn = 64;

  // The I/O thread's:
  void OnEvents(uint32_t events);
  void ReadFrames();
  bool PushEntering();
  void WriteFrames();
  void SetEvents();
  bool Take(OutsideDevice::Result result);

  // The fabric thread's:
  void EnterAll();
  bool HeldUp();
  void Enter(const Bytes& bytes);
  void OnArrived(const ArrivedFrame& frame);

  const std::string host_;
  const std::unique_ptr<OutsideDevice> device_;
  RealTime& time_;
  LagMeter& lag_;
  AttachmentCounters counters_;

  std::unique_ptr<OutsidePort> port_;
  uint64_t queue_ = 0;
  base::Timer room_;
  base::Ring<Bytes> entering_{kEntering};
  std::atomic<bool> handed_{false};   // EnterAll is going to run
  std::atomic<bool> stopped_{false};  // reading waits for `enters_`
  base::Ring<Bytes> leaving_{kLeaving};

  // Likewise:
  os::FdWatch watch_;
  std::unique_ptr<base::Signal> enters_;
  std::unique_ptr<base::Signal> leaves_;
  Bytes unentered_;  // read at a full ring; empty: none
  Bytes unwritten_;  // taken for a full device; empty: none
};

}  // namespace tokamak::sim
