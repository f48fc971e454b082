// Source and Sink are the transport's whole view of a store.
//
// The owner of an object pins it and names its memory (Source); the answer comes later, because the
// store lives on another loop than the transport. The puller knows the object's size and brings the
// memory for it (Sink).
//
// Law: memory is given back (Unpin, ~Sink) only when no peer and no device can touch it any more.
//      A deadline alone proves nothing; requests that completed, DONE, queue pairs that were
//      dropped do, and a revoked key for what the peer WRITEs.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/generation.h"
#include "lib/base/time.h"

namespace tokamak::transport {

// An object's bytes: its data, and its metadata as the tail.
struct ObjectSize {
  uint64_t data = 0;
  uint64_t metadata = 0;
  uint64_t total() const { return data + metadata; }
  bool operator==(const ObjectSize& other) const { return data == other.data && metadata == other.metadata; }
  bool operator!=(const ObjectSize& other) const { return !(*this == other); }
};

// Name of a pin, unique within one Source; the transport draws it at random.
using PinId = uint64_t;

struct PinnedObject {
  uint8_t* address = nullptr;  // total() bytes, inside the registered arena; not written while pinned
  ObjectSize size;
};

// Called on the endpoint's loop; answers there, never inside the call.
class Source {
 public:
  using PinCallback = std::function<void(absl::StatusOr<PinnedObject>)>;

  virtual ~Source() = default;

  // Finds a sealed object and keeps it in place until Unpin. kNotFound: that generation is not here
  // (any more).
  virtual void Pin(const base::ObjectVersion& version, PinId pin, PinCallback done) = 0;

  // Gives back a pin, granted or still being asked for; in the latter case `done` does not run.
  virtual void Unpin(PinId pin) = 0;
};

// The protocols of docs/transport.md. kAuto: the policy decides.
enum class Protocol : uint8_t { kAuto = 0, kEager = 1, kRead = 2, kWrite = 3 };
const char* ToString(Protocol protocol);

struct TransferReport {
  Protocol protocol = Protocol::kAuto;  // the one that moved the bytes
  ObjectSize size;
  base::Duration elapsed;   // from StartPull to Done
  bool downgraded = false;  // the owner chose eager, another was asked for
  bool heard = false;       // the owner has sent something on this connection, perhaps about another transfer
  // Bytes from the start that are certainly in place: all of them, or fewer after a failure;
  // another pull may go on from there.
  uint64_t arrived = 0;
};

// Destination of one pulled object. The endpoint owns it from StartPull on, and destroys it when
// the memory is safe to reuse.
class Sink {
 public:
  virtual ~Sink() = default;

  // Memory for all bytes of the object, inside the registered arena; it never changes while the
  // sink lives.
  virtual absl::Span<uint8_t> memory() const = 0;

  // Reports that `moved` bytes of the object are here, in any order, including those of an earlier
  // pull that this one continues. Runs as bytes come, for many at once.
  virtual void Moved(uint64_t /*moved*/) {}

  // The transfer is over: all bytes are in place (ok) or not (the object must be aborted). Runs
  // once, right before destruction, unless the endpoint itself is dropped; no peer and no device
  // can touch the memory any more.
  virtual void Done(const absl::Status& status, const TransferReport& report) = 0;
};

}  // namespace tokamak::transport
