// The store's vocabulary: objects, their places, owners and events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/base/object_id.h"
#include "lib/base/text/object_name.h"
#include "lib/base/time.h"

namespace tokamak::store {

// In bytes of the arena; metadata follows data without a gap. No two existing objects, lingering
// ones included, overlap.
struct Location {
  uint64_t offset = 0;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  base::Generation generation = base::kNoGeneration;

  uint64_t total_size() const { return data_size + metadata_size; }
  bool operator==(const Location& o) const {
    return offset == o.offset && data_size == o.data_size && metadata_size == o.metadata_size &&
           generation == o.generation;
  }
};

// A creator, sealer and pinner of objects (Store::NewOwner): a client's connection, one transfer.
enum class Owner : uint64_t {};

enum class Origin : uint8_t {
  kCreatedHere,  // by a program of this node: perhaps the only copy
  kPulled,       // from another node: evicted first
};

// created -> sealed -> (evicted | deleted), or created -> aborted. Only a sealed object is visible.
// One deleted or aborted while pinned lingers: not found, but its memory and its id are not reused
// before the last Release.
enum class State : uint8_t { kCreated, kSealed, kEvicted, kDeleted, kAborted };

const char* StateName(State state);

// Objects of most requests, and requests for most objects: held without memory of their own.
constexpr size_t kFewObjects = 4;

struct StoredObject {
  base::ObjectId id;
  Location location;
  State state = State::kCreated;
  Origin origin = Origin::kCreatedHere;
  uint64_t pins = 0;         // of all owners
  bool pinned_here = false;  // true if one is Store::PinHere's
  uint64_t uses = 0;         // since its seal: pins taken, and touches
  base::Time created_at;     // by the store's loop
  base::ObjectName name;     // from its creator or, for a copy, another node

  base::ObjectVersion version() const { return {id, location.generation}; }
};

struct Event {
  enum class Kind : uint8_t {
    kSealed,
    kDeleted,
    kEvicted,
    kRefused,  // another content has its id in the cluster
  };
  Kind kind = Kind::kSealed;
  base::ObjectId id;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  Origin origin = Origin::kCreatedHere;
  base::Generation generation = base::kNoGeneration;
  base::ObjectName name = {};

  base::ObjectVersion version() const { return {id, generation}; }
};

using Handle = base::Handle;

struct EvictionCount {
  uint64_t objects = 0;
  uint64_t bytes = 0;  // data and metadata

  EvictionCount& operator+=(const EvictionCount& o) {
    objects += o.objects;
    bytes += o.bytes;
    return *this;
  }
};

// Bytes of data and metadata that one program holds. An object counts once for each of its owners
// that pin it.
struct OwnerUsage {
  std::string label;   // empty: the node itself, or `ended`
  bool ended = false;  // sum of all ended programs
  uint64_t unsealed_bytes = 0;
  uint64_t quarantined_bytes = 0;  // left by owners that are gone (Store::AbandonOwner)
  uint64_t pinned_bytes = 0;       // lingering objects included
  uint64_t kept_bytes = 0;         // sealed objects created here

  // Bytes that the program can give back, the quarantined ones by its end. Bounded by its quota.
  uint64_t held_bytes() const { return unsealed_bytes + quarantined_bytes + pinned_bytes; }
  uint64_t total_bytes() const { return held_bytes() + kept_bytes; }
  OwnerUsage& operator+=(const OwnerUsage& o) {
    unsealed_bytes += o.unsealed_bytes;
    quarantined_bytes += o.quarantined_bytes;
    pinned_bytes += o.pinned_bytes;
    kept_bytes += o.kept_bytes;
    return *this;
  }
};

// Bytes are data and metadata unless named otherwise.
struct Statistics {
  // Now.
  uint64_t capacity_bytes = 0;      // of the arena
  uint64_t used_bytes = 0;          // of the arena, rounding to 64 included
  uint64_t largest_free_bytes = 0;  // a create of this size succeeds without eviction
  uint64_t evictable_bytes = 0;     // part of used_bytes
  uint64_t unsealed_objects = 0;
  uint64_t unsealed_bytes = 0;
  uint64_t sealed_objects = 0;
  uint64_t sealed_bytes = 0;
  uint64_t lingering_objects = 0;  // deleted or aborted, but still pinned
  uint64_t lingering_bytes = 0;
  uint64_t quarantined_bytes = 0;  // part of used_bytes: of no object, perhaps still written to
  uint64_t pinned_objects = 0;     // lingering ones included
  uint64_t pins = 0;
  uint64_t waiting = 0;          // gets and waits
  uint64_t waiting_creates = 0;  // for room
  uint64_t kept_objects = 0;     // part of sealed_objects: created here
  uint64_t kept_bytes = 0;       // part of sealed_bytes
  uint64_t name_bytes = 0;       // not in the arena

  // Since the store began.
  uint64_t created = 0;
  uint64_t sealed = 0;
  uint64_t aborted = 0;
  uint64_t deleted = 0;
  EvictionCount evicted_pulled;
  EvictionCount evicted_created_here;
  uint64_t creates_refused = 0;  // for want of room

  // Gone without an abort, a delete or a counted eviction. Always 0.
  int64_t lost() const {
    return static_cast<int64_t>(created - aborted - deleted - evicted_pulled.objects - evicted_created_here.objects -
                                unsealed_objects - sealed_objects);
  }
};

}  // namespace tokamak::store
