// Store keeps immutable objects in an arena of memory that it is given.
//
// A creator reserves room (Create), fills it in place, and makes it visible for good (Seal).
// Readers pin (Acquire) and give back (Release). Who writes into the arena, through which mapping
// or over which wire, is not the store's business: it keeps the account. docs/architecture.md shows
// where it stands.
//
// Law: a sealed object never moves or changes, and a pinned one is neither evicted nor overwritten,
// whatever its state.
// Law: every object that was created is still there, or was aborted, deleted or counted as evicted:
// statistics().lost() == 0.
// Law: memory that an owner may still write to is never another object's.
// Law: what was created here is kept until it is deleted, unless the store is a cache.
// Law: nothing is evicted unless that makes the room which is asked for.
// Law: while it is closed to puts nothing new is kept: what was created here was sealed before, or
// never is.
// Law: a name is kept with its object and ends with it; who creates an object may leave it without.
// Law: abuse by one owner (a foreign Seal, a Release too many) is refused and changes nothing for
// another.
// Thread rule: one loop, the control loop. No callback runs inside the call that asked for it.
//
// Errors, as in Plasma: kAlreadyExists, kNotFound, kResourceExhausted (no room, or the quota of a
// program is used up; the text names who holds the memory, and the remedy), kFailedPrecondition
// (not in the right state, or not yours), kInvalidArgument. While it is closed to puts each Create
// and Seal of a program says why, with the status that CloseToPuts was given.
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
  // Objects that were created here may be evicted, too, although they are perhaps the only copies.
  bool cache = false;

  // The most bytes that a program may hold, unsealed, quarantined and pinned together; 0: no limit.
  // A program is a label, see NewOwner.
  uint64_t quota_bytes = 0;

  // This node in traces.
  uint32_t node = 0;

  // Generations are drawn from it. Each life of each node needs a stream of its own: two contents
  // of one generation count as the same.
  base::Random random{0};

  // Told of every range whose object is gone, before the range can be given out again (for
  // registration caches). Runs inside the call that frees, so it must not call the store.
  std::function<void(uint64_t offset, uint64_t size)> on_free;
};

// An object that comes as bytes instead of being filled in place.
struct SmallObject {
  base::ObjectId id;
  absl::Span<const uint8_t> data;
  absl::Span<const uint8_t> metadata;
  base::ObjectName name = {};  // to be kept with it
};

class Store final {
 public:
  // The most bytes of one CreateAndSeal, or of one batch together: one task's worth of copying.
  static constexpr uint64_t kMaxSmallBytes = base::kMaxCopyPerTask;

  // `arena` (64-byte aligned), `loop` and `trace` must outlive the store. The store reads the arena
  // only to hash and writes it only in CreateAndSeal.
  Store(absl::Span<uint8_t> arena, Options options, base::EventLoop& loop, base::Trace& trace);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // A number for one that will create or pin. Never given out twice. `label` says in texts and
  // statistics which program it is ("pid 1234 python3"): owners of one label count together.
  // Whoever has none is part of the node itself, and has no quota.
  Owner NewOwner(const std::string& label = std::string());

  // Of each program from now on, as Options has it. One that holds more keeps it, and gets no more.
  void SetQuota(uint64_t bytes) { options_.quota_bytes = bytes; }

  // From now on, until OpenToPuts, no program creates or seals anything; creates that wait for room
  // end. Copies come and go as before.
  void CloseToPuts(const absl::Status& why);
  void OpenToPuts() { closed_to_puts_ = absl::OkStatus(); }
  bool closed_to_puts() const { return !closed_to_puts_.ok(); }

  // What `who` itself may hold, unsealed and pinned together: less than its program may, if that
  // has a quota.
  void Limit(Owner who, uint64_t bytes) { table_.programs().Limit(who, bytes); }

  // `who` is gone: aborts its unsealed objects, ends its gets without an answer, gives back its
  // pins.
  void DropOwner(Owner who);

  // `who` is gone, but may still write to its unsealed objects: as DropOwner, except that their
  // memory is given out again only after EndQuarantine(keeper), and counts for the program of `who`
  // until then. Their ids are free at once.
  // `keeper`, a number of its own, may keep for several. Returns whether anything is held back; if
  // not, there is nothing to end.
  [[nodiscard]] bool AbandonOwner(Owner who, Owner keeper);
  void EndQuarantine(Owner keeper);

  // Reserves room for data and, behind it, metadata, evicting where needed and allowed, and draws
  // the generation of a new content. The object belongs to `who` and is invisible until sealed; its
  // bytes are whatever lay there before. kAlreadyExists; kFailedPrecondition while a deleted or
  // aborted object of this id is still pinned; kResourceExhausted, also where creates that wait for
  // room must not be overtaken.
  absl::StatusOr<Location> Create(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, Owner who,
                                  const base::ObjectName& name = {});

  // As Create, but where there is no room now it returns nothing, and counts and words nothing: for
  // those who go on to wait.
  std::optional<absl::StatusOr<Location>> CreateIfRoom(const CreateRequest& request);

  // As Create, but answers when there is room, in the order of the calls (see CreateQueue), or
  // fails at `deadline`. What would fail for another reason than want of room does so at once.
  // Dropping the handle before the callback runs creates nothing.
  [[nodiscard]] base::Pending CreateLater(const CreateRequest& request, base::Time deadline, CreateCallback callback) {
    return creates_.Add(request, deadline, std::move(callback));
  }

  // As Create, for a copy of what another node holds, whose generation it gets. It may overtake
  // creates that wait: a copy can be evicted as soon as nobody reads it.
  absl::StatusOr<Location> CreateCopy(const base::ObjectVersion& version, uint64_t data_size, uint64_t metadata_size,
                                      Owner who, const base::ObjectName& name = {});

  // Makes the object visible, for good. Only its creator may (kFailedPrecondition), and only once
  // nothing can write to its memory any more. It is unpinned afterwards unless it was pinned
  // before. kNotFound.
  absl::Status Seal(const base::ObjectId& id, Owner who);

  // Drops an unsealed object; only its creator may. While somebody pins it (a transfer whose peer
  // may still write), its memory and its id stay reserved. kNotFound.
  absl::Status Abort(const base::ObjectId& id, Owner who);

  // Create, copy and Seal in one, which holds nothing and so needs no quota. kInvalidArgument
  // beyond kMaxSmallBytes; otherwise errors as Create.
  absl::StatusOr<Location> CreateAndSeal(const SmallObject& object, Owner who);

  // The same for many; each succeeds or fails alone, answers in order. Beyond kMaxSmallBytes
  // together, all fail.
  std::vector<absl::StatusOr<Location>> CreateAndSealBatch(absl::Span<const SmallObject> objects, Owner who);

  // All or none: the first that cannot be created says why, and then none was. Nobody sees some of
  // them without the others. kInvalidArgument beyond kMaxSmallBytes together; otherwise errors as
  // Create.
  absl::Status CreateAndSealTogether(absl::Span<const SmallObject> objects, Owner who);

  // Pins a sealed object for reading. Every Acquire and Pin needs one Release. kNotFound when there
  // is no sealed one; kResourceExhausted beyond the quota.
  absl::StatusOr<Location> Acquire(const base::ObjectId& id, Owner who);
  // The same for the node itself, where a miss is as common as a hit, and as cheap: nothing then.
  // Asks for no quota.
  std::optional<Location> AcquireIfHere(const base::ObjectId& id, Owner who);

  // Pins an object whether it is sealed or not, so that its memory is not reused before Release,
  // even if it is aborted.
  absl::StatusOr<Location> Pin(const base::ObjectId& id, Owner who);

  // Gives one pin back. kFailedPrecondition when `who` has none on `id`.
  absl::Status Release(const base::ObjectId& id, Owner who);

  // One pin of `from`, which must have it, is one of `to` from now on. kResourceExhausted, changing
  // nothing, beyond its quota.
  absl::Status PassPin(const base::ObjectId& id, Owner from, Owner to);

  // Keeps a sealed object from being evicted, until UnpinHere or until it is deleted, whoever comes
  // and goes meanwhile. It is pinned so once, however often that is asked for. kNotFound.
  absl::Status PinHere(const base::ObjectId& id);
  // It may be evicted again, as others may. OK also where it was not pinned so. kNotFound.
  absl::Status UnpinHere(const base::ObjectId& id);

  // Makes a sealed object invisible at once; its memory is freed with its last pin. kNotFound;
  // kFailedPrecondition when it is not sealed (abort it instead).
  absl::Status Delete(const base::ObjectId& id);
  // The same, but kNotFound where the object has another generation. `reason` is what subscribers
  // are told: kDeleted, kRefused or kEvicted.
  absl::Status DeleteVersion(const base::ObjectVersion& version, Event::Kind reason = Event::Kind::kDeleted);

  // A copy is kept from now on as if it had been created here: another node hands it over.
  // kNotFound.
  absl::Status Keep(const base::ObjectVersion& version);

  // Where a sealed object lies, without pinning it: for looking only. Nothing when there is none,
  // which is as common an answer and as cheap.
  std::optional<Location> Find(const base::ObjectId& id) const;
  bool Contains(const base::ObjectId& id) const { return Find(id).has_value(); }

  // One object in any state, lingering ones included. kNotFound.
  absl::StatusOr<StoredObject> Stat(const base::ObjectId& id) const;

  // Objects in any state by id, at most `limit`; `after` continues where an earlier list ended.
  std::vector<StoredObject> List(size_t limit, std::optional<base::ObjectId> after = std::nullopt) const;

  // Evicts at least `bytes` (as statistics().used_bytes counts), or all that may be evicted.
  // Returns what went.
  EvictionCount Evict(uint64_t bytes);

  // Uses an object without reading it, so that others are evicted before it. kNotFound.
  absl::Status Touch(const base::ObjectId& id);

  // Reports what is sealed, deleted and evicted from now on, in order.
  [[nodiscard]] std::unique_ptr<Subscription> Subscribe(EventCallback callback) {
    return subscribers_.Add(std::move(callback));
  }

  // Answers when all of `ids` are sealed, or at `deadline` with those that are. Each is pinned from
  // when it was there; with the answer the pins are those of `who`, to be released. Until the
  // callback runs, dropping the handle gives them back.
  [[nodiscard]] base::Pending GetLater(absl::Span<const base::ObjectId> ids, base::Time deadline, Owner who,
                                       GetCallback callback) {
    return waits_.Get(ids, deadline, who, std::move(callback));
  }

  // Answers when `count` of `ids` have been sealed here, or at `deadline`: which of them were seen.
  // Pins nothing, so any may be gone again.
  [[nodiscard]] base::Pending WaitLater(absl::Span<const base::ObjectId> ids, size_t count, base::Time deadline,
                                        WaitCallback callback) {
    return waits_.Wait(ids, count, deadline, std::move(callback));
  }

  // XXH64 of data and metadata together. Of one `who` one is computed at a time, the others wait;
  // pinned all the while. kNotFound.
  [[nodiscard]] base::Pending HashLater(const base::ObjectId& id, Owner who, HashCallback callback) {
    return hashing_.Start(id, who, std::move(callback));
  }

  // The memory of an object: all of it, data first. Stays valid as long as the object is unsealed
  // or pinned.
  absl::Span<uint8_t> Memory(const Location& location);
  absl::Span<const uint8_t> Bytes(const Location& location) const;
  absl::Span<const uint8_t> arena() const { return arena_; }

  Statistics statistics() const;

  // Who holds the memory, the one that holds most first.
  std::vector<OwnerUsage> usage() const { return table_.programs().usage(); }

  // What a Create could get at best, fragmentation aside: free and evictable bytes. For admission.
  uint64_t available_bytes() const { return allocator_.free() + eviction_.evictable_bytes(); }

  // For tests and checkers: looks at everything and says what is wrong. Takes time in proportion to
  // the objects.
  absl::Status CheckConsistency() const;

 private:
  friend class CreateQueue;

  // `place` has sizes, and of a copy the generation. Nothing for want of room.
  std::optional<absl::StatusOr<Location>> InsertIfRoom(const base::ObjectId& id, Location place, Origin origin,
                                                       Owner who, const base::ObjectName& name);
  // As InsertIfRoom, but nothing also where others that wait must not be overtaken.
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
  absl::Status closed_to_puts_;  // why; ok: it is not
  // No room was found for this many bytes, and none has appeared since: nothing larger need search.
  uint64_t no_room_for_ = UINT64_MAX;

  Allocator allocator_;
  ObjectTable table_;
  Quarantine quarantine_;
  EvictionOrder eviction_;
  Subscribers subscribers_;
  Waits waits_;
  CreateQueue creates_;
  Hashing hashing_;
  const Owner pinner_;  // of PinHere
};

}  // namespace tokamak::store
