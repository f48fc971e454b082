// Store keeps immutable objects in an arena of memory that it is given.
//
// A creator reserves room (Create), fills it in place, and makes it visible for good (Seal).
// Readers pin (Acquire) and give back (Release).
//
// Law: a sealed object never moves or changes, and a pinned one is neither evicted nor overwritten.
// Law: every created object is still there, or was aborted, deleted or counted as evicted:
//      statistics().lost() == 0.
// Law: memory that an owner may still write to is never another object's.
// Law: an object created here is kept until it is deleted, unless the store is a cache.
// Law: objects are evicted only if that makes the requested room.
// Law: while closed to puts, objects created here were sealed before, or never are.
// Law: a name ends with its object; an object may have none.
// Law: abuse by one owner (a foreign Seal, a Release too many) changes nothing for another.
// Thread rule: the control loop. No callback runs inside the call that took it.
//
// Errors, as in Plasma: kAlreadyExists, kNotFound, kResourceExhausted (no room or quota; the text
// names the holders of the memory, and the remedy), kFailedPrecondition (not in the right state, or
// not yours), kInvalidArgument. While closed to puts, a program's Create and Seal fail with
// CloseToPuts' status.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/bytes.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/object_id.h"
#include "lib/base/random.h"
#include "lib/base/text/object_name.h"
#include "lib/base/trace.h"
#include "lib/store/allocator.h"
#include "lib/store/create_queue.h"
#include "lib/store/eviction.h"
#include "lib/store/hashing.h"
#include "lib/store/object_table.h"
#include "lib/store/programs.h"
#include "lib/store/quarantine.h"
#include "lib/store/subscribers.h"
#include "lib/store/types.h"
#include "lib/store/waits.h"

namespace tokamak::store {

struct Options {
  // True if objects created here may be evicted too.
  bool cache = false;

  // Bytes that a program (a label, see NewOwner) may hold, unsealed, quarantined and pinned
  // together; 0: no limit.
  uint64_t quota_bytes = 0;

  // In traces.
  uint32_t node = 0;

  // Source of generations. Each life of each node needs a stream of its own: two contents of one
  // generation count as the same.
  base::Random random{0};

  // Receives every range whose object is gone, before its reuse (for registration caches), inside
  // the call that frees: it must not call the store.
  std::function<void(uint64_t offset, uint64_t size)> on_free;
};

struct SmallObject {
  base::ObjectId id;
  absl::Span<const uint8_t> data;
  absl::Span<const uint8_t> metadata;
  base::ObjectName name = {};  // kept with the object
};

class Store final {
 public:
  // Bytes of one CreateAndSeal or batch: a task's worth of copying.
  static constexpr uint64_t kMaxSmallBytes = base::kMaxCopyPerTask;

  // `arena` (64-byte aligned), `loop` and `trace` must outlive the store, which reads the arena
  // only to hash, and writes it only in CreateAndSeal.
  Store(absl::Span<uint8_t> arena, Options options, base::EventLoop& loop, base::Trace& trace);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Returns a number that is never given out again. `label` names the owner's program ("pid 1234
  // python3"); without one it is part of the node itself, and has no quota.
  Owner NewOwner(const std::string& label = std::string());

  // A program that holds more keeps it, and gets no more.
  void SetQuota(uint64_t bytes) { options_.quota_bytes = bytes; }

  // Stops programs from creating or sealing until OpenToPuts; creates that wait for room end.
  // Copies come and go.
  void CloseToPuts(const absl::Status& why);
  void OpenToPuts() { closed_to_puts_ = absl::OkStatus(); }
  bool closed_to_puts() const { return !closed_to_puts_.ok(); }

  // Bounds the bytes, unsealed and pinned together, of `who` itself, beside its program's quota.
  void Limit(Owner who, uint64_t bytes) { table_.programs().Limit(who, bytes); }

  // Aborts its unsealed objects, ends its gets without an answer, and gives its pins back.
  void DropOwner(Owner who);

  // As DropOwner, for an owner that may still write to its unsealed objects: their memory counts
  // for its program, and is not reused, until EndQuarantine(keeper). Their ids are free at once.
  // `keeper`, a number of its own, may keep for several. Returns false if there is nothing to hold
  // back or end.
  [[nodiscard]] bool AbandonOwner(Owner who, Owner keeper);
  void EndQuarantine(Owner keeper);

  // Reserves room for data and, behind it, metadata, evicting if needed and allowed, and draws a
  // generation. The object is `who`'s and invisible until sealed; its bytes are whatever lay there.
  // kAlreadyExists; kFailedPrecondition while a deleted or aborted object of this id is pinned;
  // kResourceExhausted, also where waiting creates must not be overtaken.
  absl::StatusOr<Location> Create(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, Owner who,
                                  const base::ObjectName& name = {});

  // As Create, but without room returns nothing, and counts no refusal.
  std::optional<absl::StatusOr<Location>> CreateIfRoom(const CreateRequest& request);

  // As Create, but waits for room, in order (see CreateQueue), until `deadline`; other failures
  // come at once. Dropping the handle before the callback runs creates nothing.
  [[nodiscard]] base::Pending CreateLater(const CreateRequest& request, base::Time deadline, CreateCallback callback) {
    return creates_.Add(request, deadline, std::move(callback));
  }

  // As Create, for another node's object. It may overtake waiting creates, as a copy can be
  // evicted.
  absl::StatusOr<Location> CreateCopy(const base::ObjectVersion& version, uint64_t data_size, uint64_t metadata_size,
                                      Owner who, const base::ObjectName& name = {});

  // Makes the object visible for good, adding no pin; only its creator may (kFailedPrecondition),
  // once nothing can write to its memory any more. kNotFound.
  absl::Status Seal(const base::ObjectId& id, Owner who);

  // Drops an unsealed object; only its creator may. While it is pinned (a transfer whose peer may
  // still write), its memory and its id stay reserved. kNotFound.
  absl::Status Abort(const base::ObjectId& id, Owner who);

  // Creates, copies and seals in one call, without quota. kInvalidArgument beyond kMaxSmallBytes;
  // else errors as Create.
  absl::StatusOr<Location> CreateAndSeal(const SmallObject& object, Owner who);

  // The same for many, which succeed or fail alone; all fail beyond kMaxSmallBytes together.
  std::vector<absl::StatusOr<Location>> CreateAndSealBatch(absl::Span<const SmallObject> objects, Owner who);

  // The same for all or none, at once for all observers. kInvalidArgument beyond kMaxSmallBytes
  // together; else the error of the first that cannot be created.
  absl::Status CreateAndSealTogether(absl::Span<const SmallObject> objects, Owner who);

  // Pins a sealed object for reading. Every Acquire and Pin needs one Release. kNotFound;
  // kResourceExhausted beyond the quota.
  absl::StatusOr<Location> Acquire(const base::ObjectId& id, Owner who);
  // The same for the node itself, without quota.
  std::optional<Location> AcquireIfHere(const base::ObjectId& id, Owner who);

  // Pins an object, sealed or not: its memory is not reused before Release, even if aborted.
  absl::StatusOr<Location> Pin(const base::ObjectId& id, Owner who);

  // kFailedPrecondition when `who` has no pin on `id`.
  absl::Status Release(const base::ObjectId& id, Owner who);

  // Turns one pin of `from`, which must have it, into one of `to`. kResourceExhausted, changing
  // nothing, beyond the quota of `to`.
  absl::Status PassPin(const base::ObjectId& id, Owner from, Owner to);

  // Keeps a sealed object until UnpinHere or its deletion, by one pin of no owner. kNotFound.
  absl::Status PinHere(const base::ObjectId& id);
  // OK also if it was not pinned so. kNotFound.
  absl::Status UnpinHere(const base::ObjectId& id);

  // Hides a sealed object at once; its memory is freed with its last pin. kNotFound;
  // kFailedPrecondition when it is not sealed (abort it).
  absl::Status Delete(const base::ObjectId& id);
  // The same, but kNotFound for another generation. `reason`, for subscribers: kDeleted, kRefused
  // or kEvicted.
  absl::Status DeleteVersion(const base::ObjectVersion& version, Event::Kind reason = Event::Kind::kDeleted);

  // Keeps a copy as if created here. kNotFound.
  absl::Status Keep(const base::ObjectVersion& version);

  // Returns the place of a sealed object, unpinned.
  std::optional<Location> Find(const base::ObjectId& id) const;
  bool Contains(const base::ObjectId& id) const { return Find(id).has_value(); }

  // Finds it in any state, lingering ones included. kNotFound.
  absl::StatusOr<StoredObject> Stat(const base::ObjectId& id) const;

  // Returns at most `limit` objects in any state by id, after `after`.
  std::vector<StoredObject> List(size_t limit, std::optional<base::ObjectId> after = std::nullopt) const;

  // Evicts at least `bytes` (of used_bytes), or everything evictable.
  EvictionCount Evict(uint64_t bytes);

  // Counts as a use. kNotFound.
  absl::Status Touch(const base::ObjectId& id);

  // Reports each seal, deletion and eviction from now on, in order.
  [[nodiscard]] std::unique_ptr<Subscription> Subscribe(EventCallback callback) {
    return subscribers_.Add(std::move(callback));
  }

  // Answers when all of `ids` are sealed, or at `deadline` with those that are. Each is pinned as
  // soon as it is there; with the answer the pins pass to `who`. Dropping the handle before the
  // callback runs gives them back.
  [[nodiscard]] base::Pending GetLater(absl::Span<const base::ObjectId> ids, base::Time deadline, Owner who,
                                       GetCallback callback) {
    return waits_.Get(ids, deadline, who, std::move(callback));
  }

  // Answers which of `ids` were seen when `count` of them have been sealed here, or at `deadline`.
  // Pins nothing: any may be gone.
  [[nodiscard]] base::Pending WaitLater(absl::Span<const base::ObjectId> ids, size_t count, base::Time deadline,
                                        WaitCallback callback) {
    return waits_.Wait(ids, count, deadline, std::move(callback));
  }

  // Computes the XXH64 of data and metadata, pinning the object. One hash of each `who` runs at a
  // time. kNotFound.
  [[nodiscard]] base::Pending HashLater(const base::ObjectId& id, Owner who, HashCallback callback) {
    return hashing_.Start(id, who, std::move(callback));
  }

  // Data first. Valid while the object is unsealed or pinned.
  absl::Span<uint8_t> Memory(const Location& location);
  absl::Span<const uint8_t> Bytes(const Location& location) const;
  absl::Span<const uint8_t> arena() const { return arena_; }

  Statistics statistics() const;

  // Returns the holders of memory, largest first.
  std::vector<OwnerUsage> usage() const { return table_.programs().usage(); }

  // The most that a Create could get, fragmentation aside.
  uint64_t available_bytes() const { return allocator_.free() + eviction_.evictable_bytes(); }

  // For tests; in time proportional to the objects.
  absl::Status CheckConsistency() const;

 private:
  friend class CreateQueue;

  // `place`: the sizes and, for a copy, the generation. Returns nothing for want of room.
  std::optional<absl::StatusOr<Location>> InsertIfRoom(const base::ObjectId& id, Location place, Origin origin,
                                                       Owner who, const base::ObjectName& name);
  // The same, but returns nothing also if waiting creates must not be overtaken.
  std::optional<absl::StatusOr<Location>> InsertInTurn(const base::ObjectId& id, const Location& place, Owner who,
                                                       const base::ObjectName& name);
  absl::Status CheckCreate(const base::ObjectId& id, const Location& place) const;
  absl::Status CheckQuota(Owner who, uint64_t more) const;
  std::optional<Allocation> Reserve(uint64_t size);
  void EndSealed(Object& object, Event::Kind reason);
  EvictionCount EvictOne(Object& object);
  absl::Status CheckPin(const Object& object, Owner who) const;
  void MayBeEvicted(Object& object);
  void RoomAppeared();
  absl::Status RefuseForRoom(uint64_t size);
  uint64_t blocks() const { return allocator_.allocations(); }
  absl::StatusOr<Object*> FindUnsealed(const base::ObjectId& id, Owner who, const char* verb);
  Object* FindSealed(const base::ObjectId& id);
  void SealObject(Object& object);
  void PinObject(Object& object, Owner who);
  void FreeIfUnpinned(Object& object);
  void Free(const Allocation& allocation);
  void Record(base::TraceKind kind, uint32_t number, uint64_t size);
  void Publish(Event::Kind kind, const Object& object);

  const absl::Span<uint8_t> arena_;
  Options options_;
  base::EventLoop& loop_;
  base::Trace& trace_;
  base::Random random_;
  uint64_t next_owner_ = 1;
  uint64_t creates_refused_ = 0;
  absl::Status closed_to_puts_;  // the reason; ok: open
  // Bytes: as many or more find no room, without a search.
  uint64_t no_room_for_ = UINT64_MAX;

  Allocator allocator_;
  ObjectTable table_;
  Quarantine quarantine_;
  EvictionOrder eviction_;
  Subscribers subscribers_;
  Waits waits_;
  CreateQueue creates_;
  Hashing hashing_;
  const Owner pinner_;  // for PinHere
};

}  // namespace tokamak::store
