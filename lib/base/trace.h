// Trace records events: write-only, so that no logic can depend on being watched.
//
// Events carry sizes, kinds and sequence numbers, never addresses, keys or bytes, which differ
// between runs of one seed.
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
  kPhase,  // `activity` leaves its phase for `number`
};

// Phases of a pull, an activity of the node that wants the object; without gaps, so that their sum
// is the whole pull.
enum class Phase : uint32_t {
  kDirectory,  // asks for holders or their addresses
  kReserve,    // makes room in the store
  kQueue,      // waits for a turn at a holder, the engine, a connection, or another try
  kRegister,   // has memory opened to the owner's writes
  kRequest,    // has asked the owner; no data yet
  kData,       // data is coming
  kCopy,       // copies bytes that came in messages
  kConfirm,    // has all bytes; the directory, or the holder, has not answered
  kSeal,       // makes it visible
  kNotify,     // notifies waiting gets
  kOver,
  kSession,  // a program's get, an activity beside the pulls that it waits for
};
constexpr size_t kPhases = static_cast<size_t>(Phase::kOver);  // of a pull
const char* ToString(Phase phase);

struct TraceEvent {
  Time time;
  TraceKind kind;
  uint32_t node = 0;      // the traced party's
  uint32_t number = 0;    // PSN, queue pair number, state, protocol or phase
  uint64_t size = 0;      // bytes, if any
  uint64_t activity = 0;  // kPhase: a number that the node never reuses
};

class Trace {
 public:
  virtual ~Trace() = default;
  virtual void Record(const TraceEvent& event) = 0;
};

class NoTrace final : public Trace {
 public:
  void Record(const TraceEvent&) override {}
};

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

// 64-bit FNV-1a over everything recorded: equal seeds must give equal hashes.
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
