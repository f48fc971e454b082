// OutsideDevice gives and takes the frames of a host outside. Three kinds:
//
//   tap      an interface made here, or by `ip tuntap`: frames that the host sends
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

// Largest IP packet carried: RoCE's with an MTU of 4096 and any headers.
constexpr uint32_t kOutsideMtu = 4188;

class OutsideDevice final {
 public:
  enum class Result : uint8_t {
    kDone,
    kNothing,  // no frame to read, or no room to write
    kTooLong,  // beyond kOutsideMtu: dropped
    kUncut,    // to be cut up by the card: dropped
    kFailed,   // refused by the device: dropped
    kGone,
  };

  // Makes a missing interface a tap. Errors name a remedy.
  static absl::StatusOr<std::unique_ptr<OutsideDevice>> Open(const AttachPoint& point);

  // Readable with a frame, writable with room.
  int descriptor() const { return fd_.get(); }

  // Whole frames, without waiting.
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
  const bool has_header_;  // virtio_net_hdr before each frame
  const std::string name_;
};

}  // namespace tokamak::sim
