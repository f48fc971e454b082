// Trace records events: write-only, so that no logic can depend on being watched.
//
// Sinks count, print, or fold events into a hash that must be equal for two runs of one seed. An
// event carries sizes, kinds and sequence numbers, never addresses, keys or bytes: those differ
// from run to run.
#pragma once

#include <cstddef>
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
  kPhase,  // `activity` leaves its phase and enters the phase `number`
};

// The phase of a pull, which is an activity of the node that wants the object. Phases follow each
// other without gaps, so their sum is the whole pull.
enum class Phase : uint32_t {
  kDirectory,  // asks who holds it, or for the holders' addresses
  kReserve,    // makes room in the store
  kQueue,      // waits: for a turn at a holder, for the engine, for a connection, before another try
  kRegister,   // has memory opened to the owner, by write
  kRequest,    // has asked the owner; no data yet
  kData,       // bytes are coming
  kCopy,       // copies bytes that came in messages
  kConfirm,    // has all bytes; the directory, or the holder, has not answered
  kSeal,       // makes it visible
  kNotify,     // notifies the waiting gets
  kOver,
  kSession,  // the one phase of a get of a program, an activity beside the pulls that it waits for
};
constexpr size_t kPhases = static_cast<size_t>(Phase::kOver);  // of a pull
const char* ToString(Phase phase);

struct TraceEvent {
  Time time;
  TraceKind kind;
  uint32_t node = 0;      // number of the traced party
  uint32_t number = 0;    // PSN, queue pair number, state, protocol, phase: by kind
  uint64_t size = 0;      // bytes, if any
  uint64_t activity = 0;  // kPhase: a number that the node gives once
};

class Trace {
 public:
  virtual ~Trace() = default;
  virtual void Record(const TraceEvent& event) = 0;
};

// Drops all events.
class NoTrace final : public Trace {
 public:
  void Record(const TraceEvent&) override {}
};

// Passes events to both of two.
class BothTraces final : public Trace {
 public:
  // Both must outlive it.
  BothTraces(Trace& one, Trace& other) : one_(one), other_(other) {}
  void Record(const TraceEvent& event) override {
    one_.Record(event);
    other_.Record(event);
  }

 private:
  Trace& one_;
  Trace& other_;
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
