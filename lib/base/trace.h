// Trace takes note of what happened: write-only, so that no logic can depend on being watched.
//
// Sinks count, print, or fold events into a hash that must be equal for two runs of one seed. An
// event carries sizes, kinds and sequence numbers, never addresses, keys or bytes: those differ
// from run to run.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::base {

enum class TraceKind : uint16_t {
  kPacketSent,
  kPacketReceived,
  kPacketDropped,
  kRetransmit,
  kNak,
  kQueuePairState,
  kConnection,
  kTransferStart,
  kTransferEnd,
  kObject,
  kEviction,
};

struct TraceEvent {
  Time time;
  TraceKind kind;
  uint32_t node = 0;    // which of the traced parties
  uint32_t number = 0;  // PSN, queue pair number, state, protocol: by kind
  uint64_t size = 0;    // bytes, where there are any
};

class Trace {
 public:
  virtual ~Trace() = default;
  virtual void Record(const TraceEvent& event) = 0;
};

// Notes nothing.
class NoTrace final : public Trace {
 public:
  void Record(const TraceEvent&) override {}
};

// A 64-bit FNV-1a hash over everything recorded: equal seeds must give equal hashes.
class TraceHash final : public Trace {
 public:
  void Record(const TraceEvent& event) override;
  uint64_t hash() const { return hash_; }
  uint64_t events() const { return events_; }

 private:
  void Fold(uint64_t value);

  uint64_t hash_ = 0xcbf29ce484222325;
  uint64_t events_ = 0;
};

}  // namespace tokamak::base
