// OutsideDevice gives and takes the frames of a host outside. Three kinds:
//
//   tap      an interface that is made here, or that `ip tuntap` made: frames that the host sends
//            by it are read here. The host's kernel computes all check sums and makes no frame
//            longer than the MTU.
//   packets  any other interface, say one end of a veth pair whose other end the host has: frames
//            pass through a packet socket. The host's kernel leaves check sums to the card, so they
//            are completed here; frames that it leaves to the card to cut up are dropped.
//   socket   datagrams are frames, as those of QEMU's socket networks.
//
// Thread rule: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/os/file_descriptor.h"
#include "sim/emulation/attach_point.h"

namespace tokamak::sim {

// The largest IP packet that the fabric carries: RoCE's with an MTU of 4096 and any headers.
constexpr uint32_t kOutsideMtu = 4188;

class OutsideDevice final {
 public:
  enum class Result : uint8_t {
    kDone,
    kNothing,  // no frame to read now; no room to write now
    kTooLong,  // the frame was beyond kOutsideMtu, and is dropped
    kUncut,    // the host's kernel left it to the card to cut the frame up; it is dropped
    kFailed,   // the device does not take or give this frame; it is dropped
    kGone,     // the device itself is gone
  };

  // Makes a tap if there is no such interface. Errors name what an operator can do.
  static absl::StatusOr<std::unique_ptr<OutsideDevice>> Open(const AttachPoint& point);

  // Readable when there is a frame, writable when one can be written.
  int descriptor() const { return fd_.get(); }

  // Reads or writes a whole frame, without waiting.
  Result Read(std::vector<uint8_t>* frame);
  Result Write(absl::Span<const uint8_t> frame);

  // "tap eth0", say.
  const std::string& name() const { return name_; }

 private:
  OutsideDevice(os::FileDescriptor fd, bool has_header, std::string name)
      : fd_(std::move(fd)), has_header_(has_header), name_(std::move(name)) {}

  static absl::StatusOr<std::unique_ptr<OutsideDevice>> OpenSocket(int descriptor);
  static absl::StatusOr<std::unique_ptr<OutsideDevice>> OpenInterface(const std::string& interface);
  static absl::StatusOr<std::unique_ptr<OutsideDevice>> OpenPackets(const std::string& interface);

  const os::FileDescriptor fd_;
  const bool has_header_;  // true if the kernel's virtio_net_hdr precedes each frame
  const std::string name_;
};

}  // namespace tokamak::sim
