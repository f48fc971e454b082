// Attachment joins a host outside to its place in the fabric: frames that its device gives enter
// the fabric, and what the fabric delivers is written to the device.
//
// Devices are read and written on a thread of their own (I/O), so that neither waits for the
// simulation nor holds it up. Between the two threads lie rings of kRing frames; a frame that finds
// its ring full is dropped and counted, as is all that does not pass.
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
  // The host's frames that entered the fabric, by kind, and those that it got.
  std::array<base::Counter, kFrameKinds> entered;
  base::Counter delivered;
  base::Counter delivered_bytes;
  base::Counter delivered_marked;

  // Frames from the host that went no further.
  base::Counter not_carried;  // kOther and kMalformed
  base::Counter nobody;       // to an address that no other host has
  base::Counter too_long;
  base::Counter uncut;          // see OutsideDevice
  base::Counter queue_full;     // the host sends faster than its link
  base::Counter entering_full;  // the simulation does not keep up

  // Frames to the host.
  base::Counter damaged;       // on a cable; RoCE's go on with a wrong ICRC
  base::Counter leaving_full;  // the host does not keep up
  base::Counter failed;        // the device did not take or give one
};

class Attachment final {
 public:
  static constexpr size_t kRing = 1024;

  // All must outlive it.
  Attachment(std::string host, std::unique_ptr<OutsideDevice> device, RealTime& time, LagMeter& lag)
      : host_(std::move(host)), device_(std::move(device)), time_(time), lag_(lag) {}

  // Up to `queue` bytes of each priority wait for the host's link.
  absl::Status PlugIn(HostInterface& interface, uint64_t queue);

  void Watch(os::EpollLoop& io);
  void Unwatch();

  const std::string& host() const { return host_; }
  const OutsideDevice& device() const { return *device_; }
  const AttachmentCounters& counters() const { return counters_; }

 private:
  using Bytes = std::vector<uint8_t>;

  // At most this many frames are read before others have their turn.
  static constexpr int kFramesPerTurn = 64;

  // I/O.
  void OnEvents(uint32_t events);
  void ReadFrames();
  void WriteFrames();
  bool Take(OutsideDevice::Result result);

  // The fabric's thread.
  void EnterAll();
  void Enter(const Bytes& bytes);
  void OnArrived(const ArrivedFrame& frame);

  const std::string host_;
  const std::unique_ptr<OutsideDevice> device_;
  RealTime& time_;
  LagMeter& lag_;
  AttachmentCounters counters_;

  std::unique_ptr<OutsidePort> port_;
  base::Ring<Bytes> entering_{kRing};
  std::atomic<bool> handed_{false};  // EnterAll is going to run
  base::Ring<Bytes> leaving_{kRing};

  os::FdWatch watch_;
  std::unique_ptr<base::Signal> leaves_;
  Bytes unwritten_;  // came out of `leaving_`, and the device was full; empty: none
};

}  // namespace tokamak::sim
