// Source and Sink are the transport's whole view of a store.
//
// The owner's Source pins an object and names its memory; the puller's Sink brings memory for an
// object of known size.
//
// Law: memory is given back (Unpin, ~Sink) only when no peer and no device can touch it any more. A
//      deadline proves nothing; completed requests, DONE, dropped queue pairs do, and a revoked key
//      for what the peer WRITEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/generation.h"
#include "lib/base/time.h"

namespace tokamak::transport {

// Metadata is the tail.
struct ObjectSize {
  uint64_t data = 0;
  uint64_t metadata = 0;
  uint64_t total() const { return data + metadata; }
  bool operator==(const ObjectSize& other) const { return data == other.data && metadata == other.metadata; }
  bool operator!=(const ObjectSize& other) const { return !(*this == other); }
};

// Unique within one Source; counted up from a random start.
using PinId = uint64_t;

struct PinnedObject {
  uint8_t* address = nullptr;  // total() bytes of the registered arena; not written while pinned
  ObjectSize size;
};

// On the endpoint's loop; answers there, never inside the call.
class Source {
 public:
  using PinCallback = std::function<void(absl::StatusOr<PinnedObject>)>;

  virtual ~Source() = default;

  // Keeps a sealed object in place until Unpin. kNotFound: that generation is not here.
  virtual void Pin(const base::ObjectVersion& version, PinId pin, PinCallback done) = 0;

  // Gives back a pin that was granted or is still being asked for, whose `done` then does not run.
  // A pin that failed is not given back.
  virtual void Unpin(PinId pin) = 0;
};

// docs/transport.md. kAuto: the policy decides.
enum class Protocol : uint8_t { kAuto = 0, kEager = 1, kRead = 2, kWrite = 3 };
constexpr size_t kProtocolValues = 4;  // for arrays by Protocol
const char* ToString(Protocol protocol);

struct TransferReport {
  Protocol protocol = Protocol::kAuto;  // moved the bytes
  ObjectSize size;
  base::Duration elapsed;   // from StartPull to Done
  bool downgraded = false;  // to eager, by the owner
  bool heard = false;       // the owner has sent something on this connection
  // Bytes from the start certainly in place.
  uint64_t arrived = 0;
};

// Destination of one pulled object, the endpoint's from StartPull until the memory is safe to
// reuse.
class Sink {
 public:
  virtual ~Sink() = default;

  // Memory for the whole object, in the registered arena; fixed.
  virtual absl::Span<uint8_t> memory() const = 0;

  // Reports that `moved` bytes are here, in any order, an earlier pull's included. Runs for many at
  // once.
  virtual void Moved(uint64_t /*moved*/) {}

  // Reports that all bytes are in place (ok), or that the object must be aborted. Runs once, right
  // before destruction, unless the endpoint is dropped; nothing can touch the memory any more.
  virtual void Done(const absl::Status& status, const TransferReport& report) = 0;
};

}  // namespace tokamak::transport
