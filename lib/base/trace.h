// Trace takes note of what happened: write-only, so that no logic can depend on being watched.
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
  kPhase,  // `activity` leaves its phase and enters the one that `number` says
};

// What a pull, an activity of the node that wants the object, is spending its time on. One phase at
// a time: together they are all of it.
enum class Phase : uint32_t {
  kDirectory,  // asks who holds it, or where these are
  kReserve,    // makes room in the store
  kQueue,      // waits: for a turn at a holder, for the engine, for a connection, before another try
  kRegister,   // has memory opened to the owner, by write
  kRequest,    // has asked the owner; nothing has come yet
  kData,       // bytes are coming
  kCopy,       // copies what came in messages
  kConfirm,    // all is here; the directory, or the holder, has not answered
  kSeal,       // makes it visible
  kNotify,     // tells who waits
  kOver,
  kSession,  // the one phase of a get of a program, an activity of its own beside the pulls that it waits for
};
constexpr size_t kPhases = static_cast<size_t>(Phase::kOver);  // of a pull
const char* ToString(Phase phase);

struct TraceEvent {
  Time time;
  TraceKind kind;
  uint32_t node = 0;      // which of the traced parties
  uint32_t number = 0;    // PSN, queue pair number, state, protocol, phase: by kind
  uint64_t size = 0;      // bytes, where there are any
  uint64_t activity = 0;  // kPhase: a number that the node gives once
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

// Both of two are told.
class BothTraces final : public Trace {
 public:
  // They must outlive it.
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
