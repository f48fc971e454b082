// Measurements over connected queue pairs of a NicEnd: WRITEs and READs as a stream, SENDs to and
// fro.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/bench/nic_end.h"
#include "tests/bench/nic_peer.h"

namespace tokamak::bench {

// Both ends of a setting, connected, until dropped.
class NicLink final {
 public:
  // `arena` is as large as the peer's, and outlives this.
  static absl::StatusOr<std::unique_ptr<NicLink>> Open(NicPeer& peer, const verbs::Address& address,
                                                       const Setting& setting, absl::Span<uint8_t> arena);
  ~NicLink();

  struct Stream {
    verbs::Opcode opcode = verbs::Opcode::kWrite;  // or kRead
    uint32_t message = 0;                          // bytes of each
    uint32_t in_flight = 0;                        // messages, over all queue pairs, which take turns
    double seconds = 0;
  };
  // Bytes a second: those completed after a tenth of the time, so that windows have opened.
  absl::StatusOr<double> Run(const Stream& stream);

  // Small messages to and fro over the first queue pair, whose setting says echo. Half of each
  // round trip, in seconds.
  absl::StatusOr<std::vector<double>> PingPong(double seconds);

  const NicEnd& end() const { return *end_; }
  // Memory that one queue pair added to this process and to the peer's, in bytes.
  MemoryUse here() const { return here_; }
  MemoryUse there() const { return there_; }

 private:
  NicLink(NicPeer& peer, const Setting& setting) : peer_(peer), setting_(setting) {}
  absl::Status Connect(const verbs::Address& address, absl::Span<uint8_t> arena);
  absl::Status PostNext(const Stream& stream);

  NicPeer& peer_;
  const Setting setting_;
  std::unique_ptr<NicEnd> end_;
  RemoteArena remote_;
  MemoryUse here_;
  MemoryUse there_;
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  bool received_ = false;
};

}  // namespace tokamak::bench
