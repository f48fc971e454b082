// SharedBuffer is a switch's packet memory: who may use how much of it, and when a neighbour has to
// be stopped.
//
// A frame counts at the port and priority by which it came (ingress), and at those by which it
// leaves (egress). Ingress takes, in this order: its reserve, the shared part, and for lossless
// priorities the headroom, for what still comes while a neighbour is being stopped. A queue's share
// is at most alpha times the free shared part (Choudhury and Hahne 1998). Lossless priorities are
// bounded at ingress only, lossy ones at both.
//
// Law: used() never exceeds the buffer; a lossless frame is refused only if its headroom is full.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/verbs/types.h"
#include "sim/fabric/link/frame.h"
#include "sim/fabric/link/link.h"
#include "sim/fabric/link/observer.h"

namespace tokamak::sim {

struct BufferOptions {
  uint64_t bytes = 16 << 20;
  uint64_t reserved = 0;  // bytes of each ingress port and priority
  double ingress_alpha = 0.125;
  double egress_alpha = 1;        // lossy priorities
  uint32_t mtu = verbs::kMaxMtu;  // largest path MTU, for the headroom
};

struct PfcOptions {
  uint8_t lossless = 0x09;  // bits; 0 and 3, where RoCE usually is. 0: no PFC

  // Bytes of an ingress port and priority. 0: the dynamic threshold, and two frames below.
  uint64_t xoff = 0;
  uint64_t xon = 0;
  uint64_t headroom = 0;    // bytes; 0: HeadroomOf
  base::Duration response;  // time that neighbours take to obey
  uint16_t quanta = 65535;  // of a pause; repeated after half of that
};

// Returns the bytes that may still come by a link after a frame crossed the threshold: that frame;
// what is sent while the pause frame waits for one that has begun, is put on the wire, travels, is
// obeyed, and waits there for one that has begun; and what is on its way then.
uint64_t HeadroomOf(const LinkParameters& link, uint32_t mtu, base::Duration response);

class SharedBuffer final {
 public:
  SharedBuffer(const BufferOptions& options, const PfcOptions& pfc) : options_(options), pfc_(pfc) {}

  // `link`: of frames that come.
  void AddPort(const LinkParameters& link);

  // Runs once all ports are there. kInvalidArgument: their reserves leave nothing to share.
  absl::Status Start();

  bool lossless(uint8_t priority) const { return (pfc_.lossless & 1u << priority) != 0; }

  // Returns false, changing nothing, if there is no room.
  [[nodiscard]] bool Take(uint32_t ingress, uint32_t egress, uint8_t priority, uint32_t bytes);
  void Release(uint32_t ingress, uint32_t egress, uint8_t priority, uint32_t bytes);

  // Return whether to stop the neighbour, or to let it resume; between the two nothing changes.
  bool AboveXoff(uint32_t port, uint8_t priority) const;
  bool BelowXon(uint32_t port, uint8_t priority) const;

  // Bytes.
  uint64_t used() const { return used_; }
  uint64_t shared_used() const { return shared_used_; }
  uint64_t shared() const { return shared_; }
  uint64_t headroom(uint32_t port) const { return ports_[port].headroom; }
  uint64_t ingress_bytes(uint32_t port, uint8_t priority) const { return ports_[port].in[priority].total(); }
  uint64_t egress_bytes(uint32_t port, uint8_t priority) const { return ports_[port].out[priority]; }
  uint64_t most_used() const { return most_used_; }
  uint64_t most_headroom() const { return most_headroom_; }  // of one port and priority

 private:
  struct Ingress {
    uint64_t reserved = 0;
    uint64_t shared = 0;
    uint64_t headroom = 0;
    uint64_t total() const { return reserved + shared + headroom; }
  };
  struct Port {
    uint64_t headroom = 0;  // of each lossless priority
    std::array<Ingress, kPriorities> in;
    std::array<uint64_t, kPriorities> out{};
  };

  uint64_t Threshold(double alpha) const {
    return static_cast<uint64_t>(alpha * static_cast<double>(shared_ - shared_used_));
  }
  uint64_t IngressThreshold(uint8_t priority) const {
    return pfc_.xoff != 0 && lossless(priority) ? pfc_.xoff : Threshold(options_.ingress_alpha);
  }

  const BufferOptions options_;
  const PfcOptions pfc_;
  std::vector<Port> ports_;
  uint64_t shared_ = 0;
  uint64_t shared_used_ = 0;
  uint64_t used_ = 0;
  uint64_t most_used_ = 0;
  uint64_t most_headroom_ = 0;
};

}  // namespace tokamak::sim
