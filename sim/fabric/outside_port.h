// OutsidePort is the plug of a host outside of the simulation: it sends and receives whole Ethernet
// frames, as bytes.
//
// While the wire is busy or the priority paused, frames wait in the interface's queues, up to a
// bound.
// Thread rule: that of the fabric.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/types.h"

namespace tokamak::sim {

class HostInterface;

// The bytes, and what the interface and the switches read of them.
struct OutsideFrame {
  absl::Span<const uint8_t> bytes;  // from the destination's hardware address, without check sum
  verbs::Address destination;
  uint64_t flow = 0;  // hash of protocol and ports
  uint8_t dscp = 0;
  verbs::soft::Ecn ecn = verbs::soft::Ecn::kNotCapable;
};

// As sent; may be changed during the call.
struct ArrivedFrame {
  absl::Span<uint8_t> bytes;
  bool marked = false;  // by a switch, or by the sender
  bool corrupt = false;
};

class OutsidePort final {
 public:
  using Receiver = std::function<void(const ArrivedFrame&)>;

  // Preamble, check sum and gap; and the smallest Ethernet frame.
  static constexpr uint32_t kFramingBytes = 8 + 4 + 12;
  static constexpr uint32_t kLeastBytes = 60;

  enum class Sent : uint8_t {
    kYes,
    kNobody,  // no host has the destination's address
    kToItself,
    kTooLong,    // for the fabric's largest MTU
    kQueueFull,  // the wire is slower than the host
  };

  explicit OutsidePort(HostInterface& host) : host_(host) {}
  ~OutsidePort();
  OutsidePort(const OutsidePort&) = delete;
  OutsidePort& operator=(const OutsidePort&) = delete;

  // Most bytes of a priority that wait, and the earliest time at which `bytes` less wait.
  uint64_t queued() const;
  base::Duration TimeOf(uint32_t bytes) const;

  [[nodiscard]] Sent Send(const OutsideFrame& frame);

 private:
  HostInterface& host_;
};

}  // namespace tokamak::sim
