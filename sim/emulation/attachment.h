// Attachment joins a host outside to its place in the fabric: its device's frames enter the fabric,
// and delivered frames are written to the device.
//
// Devices are read and written on a thread of their own (I/O), over rings, so they and the
// simulation never wait for each other. A host that sends faster than its link, or than the
// simulation takes, is held up: its device is not read, and its kernel sees a busy card. A host
// that does not take its frames loses them. Every frame that does not pass is counted.
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
  // The host's frames that entered the fabric, by kind, and those that it received.
  std::array<base::Counter, kFrameKinds> entered;
  base::Counter delivered;
  base::Counter delivered_bytes;
  base::Counter delivered_marked;

  // Frames from the host that were dropped.
  base::Counter not_carried;  // kOther and kMalformed
  base::Counter nobody;       // to an address that no other host has
  base::Counter too_long;
  base::Counter uncut;  // see OutsideDevice

  // The number of times that the host had to wait for its link.
  base::Counter held_up;

  // Frames to the host.
  base::Counter damaged;       // on a cable; RoCE's go on with a wrong ICRC
  base::Counter leaving_full;  // the host does not keep up
  base::Counter failed;        // the device refused to take or give one
};

class Attachment final {
 public:
  static constexpr size_t kEntering = 64;  // frames
  static constexpr size_t kLeaving = 1024;

  // Room for at least two of the longest frames.
  static constexpr uint64_t kLeastQueue = 16 << 10;

  // The arguments must outlive it.
  Attachment(std::string host, std::unique_ptr<OutsideDevice> device, RealTime& time, LagMeter& lag)
      : host_(std::move(host)), device_(std::move(device)), time_(time), lag_(lag) {}

  // Up to `queue` bytes of each priority wait for the host's link; kLeastQueue at least.
  absl::Status PlugIn(HostInterface& interface, uint64_t queue);

  void Watch(os::EpollLoop& io);
  void Unwatch();

  const std::string& host() const { return host_; }
  const OutsideDevice& device() const { return *device_; }
  const AttachmentCounters& counters() const { return counters_; }

 private:
  using Bytes = std::vector<uint8_t>;

  // The most frames that are read before others have their turn.
  static constexpr int kFramesPerTurn = 64;

  // Members of the I/O thread.
  void OnEvents(uint32_t events);
  void ReadFrames();
  bool PushEntering();
  void WriteFrames();
  void SetEvents();
  bool Take(OutsideDevice::Result result);

  // Members of the fabric's thread.
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
  base::Timer room_;  // runs when the link's queue may have room
  base::Ring<Bytes> entering_{kEntering};
  std::atomic<bool> handed_{false};   // true if EnterAll is going to run
  std::atomic<bool> stopped_{false};  // true if reading waits for `enters_`
  base::Ring<Bytes> leaving_{kLeaving};

  // Members of the I/O thread.
  os::FdWatch watch_;
  std::unique_ptr<base::Signal> enters_;
  std::unique_ptr<base::Signal> leaves_;
  Bytes unentered_;  // read while the ring was full; empty: none
  Bytes unwritten_;  // taken from `leaving_` while the device was full; empty: none
};

}  // namespace tokamak::sim
