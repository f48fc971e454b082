#include "lib/store/store.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/check.h"
#include "lib/base/units.h"

namespace tokamak::store {
namespace {

absl::Status NotHere(const base::ObjectId& id) {
  return absl::NotFoundError(absl::StrCat("object ", id.ToHex(), " is not in this store"));
}

// Named in the error of a create.
constexpr size_t kNamedHolders = 3;

std::string Describe(const OwnerUsage& usage) {
  const std::string name = usage.ended           ? "programs that have ended"
                           : usage.label.empty() ? "the node itself"
                                                 : usage.label;
  std::vector<std::string> parts;
  const auto add = [&parts](uint64_t bytes, const char* what) {
    if (bytes != 0) parts.push_back(absl::StrCat(base::FormatSize(bytes), what));
  };
  add(usage.unsealed_bytes, " unsealed");
  add(usage.quarantined_bytes, " left unsealed by connections that ended");
  add(usage.pinned_bytes, " pinned");
  add(usage.kept_bytes, " created and kept");
  return absl::StrCat(name, usage.ended ? " have " : " has ", absl::StrJoin(parts, ", "));
}

}  // namespace

Store::Store(absl::Span<uint8_t> arena, Options options, base::EventLoop& loop, base::Trace& trace)
    : arena_(arena),
      options_(std::move(options)),
      loop_(loop),
      trace_(trace),
      random_(options_.random),
      allocator_(arena.size()),
      eviction_(options_.cache),
      subscribers_(loop),
      waits_(*this, loop),
      creates_(*this, loop),
      hashing_(*this, loop, NewOwner()),
      pinner_(NewOwner("tok pin")) {
  CHECK_EQ(reinterpret_cast<uintptr_t>(arena.data()) % Allocator::kAlignment, 0u);
}

Store::~Store() = default;

Owner Store::NewOwner(const std::string& label) {
  const Owner who{next_owner_++};
  table_.programs().Join(who, label);
  return who;
}

void Store::DropOwner(Owner who) {
  waits_.DropOwner(who);
  creates_.DropOwner(who);
  for (const base::ObjectId& id : table_.UnsealedOf(who)) CHECK(Abort(id, who).ok());
  for (const base::ObjectId& id : table_.PinnedBy(who)) CHECK(Release(id, who).ok());
  table_.programs().Leave(who);
}

bool Store::AbandonOwner(Owner who, Owner keeper) {
  const std::vector<base::ObjectId> unsealed = table_.UnsealedOf(who);
  if (!unsealed.empty()) quarantine_.Open(keeper);
  for (const base::ObjectId& id : unsealed) table_.Find(id)->quarantine = keeper;
  DropOwner(who);
  return !unsealed.empty();
}

void Store::EndQuarantine(Owner keeper) {
  for (const Quarantine::Range& range : quarantine_.Close(keeper)) {
    table_.programs().RemoveQuarantined(*range.account, range.bytes);
    Free(range.allocation);
  }
}

void Store::CloseToPuts(const absl::Status& why) {
  CHECK(!why.ok());
  closed_to_puts_ = why;
  creates_.RoomAppeared();  // refuses them
}

absl::StatusOr<Location> Store::Create(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, Owner who,
                                       const base::ObjectName& name) {
  std::optional<absl::StatusOr<Location>> created = CreateIfRoom({id, data_size, metadata_size, who, name});
  if (!created.has_value()) return RefuseForRoom(data_size + metadata_size);
  return *std::move(created);
}

std::optional<absl::StatusOr<Location>> Store::CreateIfRoom(const CreateRequest& request) {
  if (absl::Status s = CheckQuota(request.who, request.total_size()); !s.ok()) return s;
  return InsertInTurn(request.id, request.place(), request.who, request.name);
}

absl::StatusOr<Location> Store::CreateCopy(const base::ObjectVersion& version, uint64_t data_size,
                                           uint64_t metadata_size, Owner who, const base::ObjectName& name) {
  if (version.generation == base::kNoGeneration) {
    return absl::InvalidArgumentError(absl::StrCat("a copy of ", version.id.ToHex(), " needs a generation"));
  }
  const Location place = {0, data_size, metadata_size, version.generation};
  std::optional<absl::StatusOr<Location>> created = InsertIfRoom(version.id, place, Origin::kPulled, who, name);
  if (!created.has_value()) return RefuseForRoom(place.total_size());
  return *std::move(created);
}

std::optional<absl::StatusOr<Location>> Store::InsertInTurn(const base::ObjectId& id, const Location& place, Owner who,
                                                            const base::ObjectName& name) {
  const uint64_t size = place.total_size();
  if (!creates_.MayOvertake(size)) {
    if (absl::Status s = CheckCreate(id, place); !s.ok()) return s;
    return std::nullopt;
  }
  std::optional<absl::StatusOr<Location>> created = InsertIfRoom(id, place, Origin::kCreatedHere, who, name);
  if (created.has_value() && created->ok()) creates_.Overtook(size);
  return created;
}

std::optional<absl::StatusOr<Location>> Store::InsertIfRoom(const base::ObjectId& id, Location place, Origin origin,
                                                            Owner who, const base::ObjectName& name) {
  if (absl::Status s = CheckCreate(id, place); !s.ok()) return s;
  const std::optional<Allocation> allocation = Reserve(place.total_size());
  if (!allocation.has_value()) return std::nullopt;
  place.offset = allocation->offset;
  if (place.generation == base::kNoGeneration) place.generation = base::DrawGeneration(random_);
  StoredObject info;
  info.id = id;
  info.location = place;
  info.origin = origin;
  info.created_at = loop_.Now();
  info.name = name;
  table_.Insert(std::move(info), who, *allocation);
  Record(base::TraceKind::kObject, static_cast<uint32_t>(State::kCreated), place.total_size());
  return place;
}

absl::Status Store::CheckCreate(const base::ObjectId& id, const Location& place) const {
  const bool is_copy = place.generation != base::kNoGeneration;
  if (closed_to_puts() && !is_copy) return closed_to_puts_;
  const uint64_t capacity = allocator_.capacity();
  if (place.data_size > capacity || place.metadata_size > capacity || place.total_size() > capacity) {
    return absl::ResourceExhaustedError(absl::StrCat("an object of ", place.data_size, " bytes of data and ",
                                                     place.metadata_size, " of metadata is larger than this store (",
                                                     capacity, " bytes): start tokd with more --memory"));
  }
  const Object* object = table_.Find(id);
  if (object == nullptr) return absl::OkStatus();
  if (!object->lingers()) {
    return absl::AlreadyExistsError(
        absl::StrCat("object ", id.ToHex(), " exists already (", StateName(object->info.state), ")"));
  }
  return absl::FailedPreconditionError(absl::StrCat("object ", id.ToHex(), " was ", StateName(object->info.state),
                                                    " but is still pinned ", object->info.pins,
                                                    " times; create it again when it has been released"));
}

absl::Status Store::CheckQuota(Owner who, uint64_t more) const {
  if (const std::optional<uint64_t> left = table_.programs().LeftOf(who); left.has_value() && more > *left) {
    return absl::ResourceExhaustedError(absl::StrCat(
        base::FormatSize(more), " more would exceed the client's own quota, of which ", base::FormatSize(*left),
        " are left: seal or release objects, or connect with a "
        "larger quota"));
  }
  if (options_.quota_bytes == 0) return absl::OkStatus();
  const OwnerUsage& usage = table_.programs().Of(who).usage;
  if (usage.label.empty()) return absl::OkStatus();
  const uint64_t held = usage.held_bytes();
  if (held <= options_.quota_bytes && more <= options_.quota_bytes - held) return absl::OkStatus();
  const bool left = usage.quarantined_bytes != 0;
  return absl::ResourceExhaustedError(absl::StrCat(
      base::FormatSize(more), " more would exceed the quota of ", usage.label, ": it holds ",
      base::FormatSize(usage.unsealed_bytes), " unsealed and ", base::FormatSize(usage.pinned_bytes), " pinned",
      left ? absl::StrCat(", beside ", base::FormatSize(usage.quarantined_bytes),
                          " that connections of it left unsealed")
           : "",
      ", of ", base::FormatSize(options_.quota_bytes), ": seal or release objects, ",
      left ? "end the program, which gives back what it left, " : "", "or start tokd with a larger --quota"));
}

// Allocates, evicting the cheapest run in the way; evicts nothing if that cannot help.
std::optional<Allocation> Store::Reserve(uint64_t size) {
  if (std::optional<Allocation> allocation = allocator_.Allocate(size)) return allocation;
  if (size > available_bytes() || size >= no_room_for_) return std::nullopt;
  const std::optional<BlockRun> run = eviction_.ChooseRun(allocator_, size);
  if (!run.has_value()) {
    no_room_for_ = size;
    return std::nullopt;
  }
  for (const uint32_t block : run->used) EvictOne(eviction_.In(block));
  return allocator_.AllocateRun(*run, size);
}

absl::Status Store::RefuseForRoom(uint64_t size) {
  ++creates_refused_;
  std::string text =
      absl::StrCat("no room for ", base::FormatSize(size), ": of ", base::FormatSize(allocator_.capacity()), " ",
                   base::FormatSize(allocator_.used()), " are used, and ",
                   base::FormatSize(eviction_.evictable_bytes()), " of those may be evicted");
  if (creates_.size() != 0) absl::StrAppend(&text, "; ", creates_.size(), " other creates wait for room");
  if (quarantine_.bytes() != 0) {
    absl::StrAppend(&text, "; programs which lost their connection may still write to ",
                    base::FormatSize(quarantine_.bytes()));
  }
  std::vector<OwnerUsage> holders = usage();
  if (holders.size() > kNamedHolders) holders.resize(kNamedHolders);
  for (const OwnerUsage& one : holders) absl::StrAppend(&text, "; ", Describe(one));
  absl::StrAppend(&text, ": release or delete objects, or start tokd with more --memory",
                  options_.cache ? "" : ", or with --cache, which may evict what was created here");
  return absl::ResourceExhaustedError(text);
}

absl::Status Store::Seal(const base::ObjectId& id, Owner who) {
  absl::StatusOr<Object*> object = FindUnsealed(id, who, "sealed");
  if (!object.ok()) return object.status();
  if (closed_to_puts() && (*object)->info.origin == Origin::kCreatedHere) return closed_to_puts_;
  SealObject(**object);
  return absl::OkStatus();
}

void Store::SealObject(Object& object) {
  table_.Enter(object, State::kSealed);
  if (object.info.pins == 0) MayBeEvicted(object);
  Record(base::TraceKind::kObject, static_cast<uint32_t>(State::kSealed), object.info.location.total_size());
  Publish(Event::Kind::kSealed, object);
  waits_.Sealed(object.info.id);
}

absl::Status Store::Abort(const base::ObjectId& id, Owner who) {
  absl::StatusOr<Object*> object = FindUnsealed(id, who, "aborted");
  if (!object.ok()) return object.status();
  table_.Enter(**object, State::kAborted);
  Record(base::TraceKind::kObject, static_cast<uint32_t>(State::kAborted), (*object)->info.location.total_size());
  FreeIfUnpinned(**object);
  return absl::OkStatus();
}

absl::StatusOr<Object*> Store::FindUnsealed(const base::ObjectId& id, Owner who, const char* verb) {
  Object* object = table_.Find(id);
  if (object == nullptr || object->lingers()) return NotHere(id);
  if (object->sealed()) {
    return absl::FailedPreconditionError(absl::StrCat("object ", id.ToHex(), " cannot be ", verb, ": it is sealed"));
  }
  if (object->creator != who) {
    return absl::FailedPreconditionError(
        absl::StrCat("object ", id.ToHex(), " cannot be ", verb, " by anyone but its creator"));
  }
  return object;
}

void Store::MayBeEvicted(Object& object) {
  eviction_.Add(object);
  RoomAppeared();
}

void Store::RoomAppeared() {
  no_room_for_ = UINT64_MAX;
  creates_.RoomAppeared();
}

absl::StatusOr<Location> Store::CreateAndSeal(const SmallObject& small, Owner who) {
  const uint64_t size = small.data.size() + small.metadata.size();
  if (size > kMaxSmallBytes) {
    return absl::InvalidArgumentError(absl::StrCat(size, " bytes are too many to be copied at once (at most ",
                                                   kMaxSmallBytes, "): create, fill and seal instead"));
  }
  const Location place = {0, small.data.size(), small.metadata.size(), base::kNoGeneration};
  const std::optional<absl::StatusOr<Location>> created = InsertInTurn(small.id, place, who, small.name);
  if (!created.has_value()) return RefuseForRoom(size);
  const absl::StatusOr<Location>& location = *created;
  if (!location.ok()) return location;
  uint8_t* const memory = Memory(*location).data();
  base::Copy(loop_, memory, small.data.data(), small.data.size());
  base::Copy(loop_, memory + small.data.size(), small.metadata.data(), small.metadata.size());
  CHECK(Seal(small.id, who).ok());
  return location;
}

std::vector<absl::StatusOr<Location>> Store::CreateAndSealBatch(absl::Span<const SmallObject> objects, Owner who) {
  std::vector<absl::StatusOr<Location>> locations;
  locations.reserve(objects.size());
  uint64_t size = 0;
  for (const SmallObject& object : objects) size += object.data.size() + object.metadata.size();
  for (const SmallObject& object : objects) {
    if (size <= kMaxSmallBytes) {
      locations.push_back(CreateAndSeal(object, who));
    } else {
      locations.emplace_back(absl::InvalidArgumentError(
          absl::StrCat("a batch of ", size, " bytes is too large (at most ", kMaxSmallBytes, "): split it")));
    }
  }
  return locations;
}

absl::Status Store::CreateAndSealTogether(absl::Span<const SmallObject> objects, Owner who) {
  uint64_t size = 0;
  for (const SmallObject& object : objects) size += object.data.size() + object.metadata.size();
  if (size > kMaxSmallBytes) {
    return absl::InvalidArgumentError(absl::StrCat(size, " bytes are too many to be put together (at most ",
                                                   kMaxSmallBytes, "): put fewer or smaller objects"));
  }
  if (closed_to_puts()) return closed_to_puts_;
  if (size > available_bytes()) return RefuseForRoom(size);  // before anything is evicted
  absl::Status trouble;
  std::vector<Location> places;
  for (const SmallObject& object : objects) {
    const Location place = {0, object.data.size(), object.metadata.size(), base::kNoGeneration};
    const std::optional<absl::StatusOr<Location>> created = InsertInTurn(object.id, place, who, object.name);
    trouble = created.has_value() ? created->status() : RefuseForRoom(place.total_size());
    if (!trouble.ok()) break;
    places.push_back(**created);
  }
  if (!trouble.ok()) {
    for (size_t i = 0; i < places.size(); ++i) CHECK(Abort(objects[i].id, who).ok());
    return trouble;
  }
  for (size_t i = 0; i < places.size(); ++i) {
    uint8_t* const memory = Memory(places[i]).data();
    base::Copy(loop_, memory, objects[i].data.data(), objects[i].data.size());
    base::Copy(loop_, memory + objects[i].data.size(), objects[i].metadata.data(), objects[i].metadata.size());
    CHECK(Seal(objects[i].id, who).ok());
  }
  return absl::OkStatus();
}

absl::StatusOr<Location> Store::Acquire(const base::ObjectId& id, Owner who) {
  Object* object = FindSealed(id);
  if (object == nullptr) return NotHere(id);
  if (absl::Status s = CheckPin(*object, who); !s.ok()) return s;
  PinObject(*object, who);
  return object->info.location;
}

std::optional<Location> Store::AcquireIfHere(const base::ObjectId& id, Owner who) {
  Object* object = FindSealed(id);
  if (object == nullptr) return std::nullopt;
  PinObject(*object, who);
  return object->info.location;
}

absl::StatusOr<Location> Store::Pin(const base::ObjectId& id, Owner who) {
  Object* object = table_.Find(id);
  if (object == nullptr || object->lingers()) return NotHere(id);
  PinObject(*object, who);
  return object->info.location;
}

void Store::PinObject(Object& object, Owner who) {
  if (object.sealed() && object.info.pins == 0) eviction_.Remove(object);
  table_.Pin(object, who);
  if (object.sealed()) ++object.info.uses;
}

absl::Status Store::Release(const base::ObjectId& id, Owner who) {
  Object* object = table_.Find(id);
  if (object == nullptr || !table_.Unpin(*object, who)) {
    return absl::FailedPreconditionError(absl::StrCat("object ", id.ToHex(), " is not pinned by who releases it"));
  }
  if (object->info.pins != 0) return absl::OkStatus();
  if (object->sealed()) MayBeEvicted(*object);
  if (object->lingers()) FreeIfUnpinned(*object);
  return absl::OkStatus();
}

absl::Status Store::PassPin(const base::ObjectId& id, Owner from, Owner to) {
  Object* object = CHECK_NOTNULL(table_.Find(id));
  if (absl::Status s = CheckPin(*object, to); !s.ok()) return s;
  table_.Pin(*object, to);
  CHECK(table_.Unpin(*object, from));
  return absl::OkStatus();
}

absl::Status Store::CheckPin(const Object& object, Owner who) const {
  const bool bounded = options_.quota_bytes != 0 || table_.programs().limited();
  if (!bounded || table_.IsPinnedBy(object, who)) return absl::OkStatus();
  return CheckQuota(who, object.info.location.total_size());
}

absl::Status Store::PinHere(const base::ObjectId& id) {
  Object* object = FindSealed(id);
  if (object == nullptr) return NotHere(id);
  if (!std::exchange(object->info.pinned_here, true)) PinObject(*object, pinner_);
  return absl::OkStatus();
}

absl::Status Store::UnpinHere(const base::ObjectId& id) {
  Object* object = FindSealed(id);
  if (object == nullptr) return NotHere(id);
  if (std::exchange(object->info.pinned_here, false)) CHECK(Release(id, pinner_).ok());
  return absl::OkStatus();
}

absl::Status Store::Delete(const base::ObjectId& id) {
  Object* object = table_.Find(id);
  if (object == nullptr || object->lingers()) return NotHere(id);
  if (!object->sealed()) {
    return absl::FailedPreconditionError(
        absl::StrCat("object ", id.ToHex(), " is not sealed yet: its creator may abort it"));
  }
  EndSealed(*object, Event::Kind::kDeleted);
  return absl::OkStatus();
}

absl::Status Store::DeleteVersion(const base::ObjectVersion& version, Event::Kind reason) {
  Object* object = FindSealed(version.id);
  if (object == nullptr || object->info.version() != version) return NotHere(version.id);
  EndSealed(*object, reason);
  return absl::OkStatus();
}

absl::Status Store::Keep(const base::ObjectVersion& version) {
  Object* object = FindSealed(version.id);
  if (object == nullptr || object->info.version() != version) return NotHere(version.id);
  if (object->info.origin == Origin::kCreatedHere) return absl::OkStatus();
  if (object->info.pins == 0) eviction_.Remove(*object);
  table_.Keep(*object);
  if (object->info.pins == 0) eviction_.Add(*object);
  return absl::OkStatus();
}

void Store::EndSealed(Object& object, Event::Kind reason) {
  if (object.info.pins == 0) eviction_.Remove(object);
  table_.Enter(object, State::kDeleted);
  Record(base::TraceKind::kObject, static_cast<uint32_t>(State::kDeleted), object.info.location.total_size());
  Publish(reason, object);
  if (std::exchange(object.info.pinned_here, false)) CHECK(table_.Unpin(object, pinner_));
  FreeIfUnpinned(object);
}

EvictionCount Store::Evict(uint64_t bytes) {
  EvictionCount evicted;
  const uint64_t used_before = allocator_.used();
  while (used_before - allocator_.used() < bytes) {
    Object* object = eviction_.Next();
    if (object == nullptr) break;
    evicted += EvictOne(*object);
  }
  return evicted;
}

EvictionCount Store::EvictOne(Object& object) {
  const EvictionCount one{1, object.info.location.total_size()};
  eviction_.Remove(object);
  table_.Enter(object, State::kEvicted);
  Record(base::TraceKind::kEviction, static_cast<uint32_t>(object.info.origin), one.bytes);
  Publish(Event::Kind::kEvicted, object);
  FreeIfUnpinned(object);
  return one;
}

absl::Status Store::Touch(const base::ObjectId& id) {
  Object* object = FindSealed(id);
  if (object == nullptr) return NotHere(id);
  if (object->info.pins == 0) eviction_.Touch(*object);
  ++object->info.uses;
  return absl::OkStatus();
}

void Store::FreeIfUnpinned(Object& object) {
  if (object.info.pins != 0) return;
  const Quarantine::Range range = {object.allocation, object.account, object.info.location.total_size()};
  const bool held = object.quarantine.has_value() && quarantine_.Hold(*object.quarantine, range);
  if (held) table_.programs().AddQuarantined(*range.account, range.bytes);
  table_.Erase(object);
  if (!held) Free(range.allocation);
}

void Store::Free(const Allocation& allocation) {
  if (options_.on_free) options_.on_free(allocation.offset, allocation.size);
  allocator_.Free(allocation);
  RoomAppeared();
}

std::optional<Location> Store::Find(const base::ObjectId& id) const {
  const Object* object = table_.Find(id);
  if (object == nullptr || !object->sealed()) return std::nullopt;
  return object->info.location;
}

Object* Store::FindSealed(const base::ObjectId& id) {
  Object* object = table_.Find(id);
  return object != nullptr && object->sealed() ? object : nullptr;
}

absl::StatusOr<StoredObject> Store::Stat(const base::ObjectId& id) const {
  const Object* object = table_.Find(id);
  if (object == nullptr) return NotHere(id);
  return object->info;
}

std::vector<StoredObject> Store::List(size_t limit, std::optional<base::ObjectId> after) const {
  std::vector<StoredObject> infos;
  for (const Object* object : table_.List(after.has_value() ? &*after : nullptr, limit)) {
    infos.push_back(object->info);
  }
  return infos;
}

absl::Span<uint8_t> Store::Memory(const Location& location) {
  return arena_.subspan(location.offset, location.total_size());
}

absl::Span<const uint8_t> Store::Bytes(const Location& location) const {
  return arena_.subspan(location.offset, location.total_size());
}

Statistics Store::statistics() const {
  Statistics s = table_.counts();
  s.capacity_bytes = allocator_.capacity();
  s.used_bytes = allocator_.used();
  s.largest_free_bytes = allocator_.largest_free();
  s.evictable_bytes = eviction_.evictable_bytes();
  s.quarantined_bytes = quarantine_.bytes();
  s.waiting = waits_.size();
  s.waiting_creates = creates_.size();
  s.creates_refused = creates_refused_;
  return s;
}

void Store::Record(base::TraceKind kind, uint32_t number, uint64_t size) {
  trace_.Record({loop_.Now(), kind, options_.node, number, size});
}

void Store::Publish(Event::Kind kind, const Object& object) {
  const StoredObject& info = object.info;
  subscribers_.Publish({kind, info.id, info.location.data_size, info.location.metadata_size, info.origin,
                        info.location.generation, info.name});
}

absl::Status Store::CheckConsistency() const {
  if (absl::Status s = allocator_.CheckConsistency(); !s.ok()) return s;
  if (absl::Status s = table_.CheckConsistency(); !s.ok()) return s;
  if (absl::Status s = eviction_.CheckConsistency(); !s.ok()) return s;

  const std::vector<const Object*> objects = table_.List(nullptr, std::numeric_limits<size_t>::max());
  uint64_t used = 0, evictable = 0;
  std::vector<Allocation> taken;
  uint64_t quarantined = 0;
  for (const Quarantine::Range& range : quarantine_.ranges()) {
    taken.push_back(range.allocation);
    quarantined += range.bytes;
  }
  for (const OwnerUsage& one : usage()) quarantined -= one.quarantined_bytes;
  if (quarantined != 0) return absl::InternalError("what programs left in quarantine does not add up");
  for (const Object* object : objects) {
    const Allocation& allocation = object->allocation;
    const Location& location = object->info.location;
    const std::string id = object->info.id.ToHex();
    if (location.offset != allocation.offset || location.total_size() > allocation.size) {
      return absl::InternalError(absl::StrCat(id, " lies outside of its allocation"));
    }
    taken.push_back(allocation);
    evictable += object->sealed() && object->info.pins == 0;
  }
  std::sort(taken.begin(), taken.end(), [](const Allocation& a, const Allocation& b) { return a.offset < b.offset; });
  uint64_t end = 0;
  for (const Allocation& allocation : taken) {
    if (allocation.offset < end) {
      return absl::InternalError(absl::StrCat("what lies at ", allocation.offset, " overlaps another object"));
    }
    end = allocation.offset + allocation.size;
    used += allocation.size;
  }
  if (end > arena_.size()) return absl::InternalError("an object lies outside of the arena");
  if (used != allocator_.used()) return absl::InternalError("the arena does not add up: memory without an object");
  if (evictable != eviction_.objects()) return absl::InternalError("an unpinned object is missing from eviction");
  return absl::OkStatus();
}

}  // namespace tokamak::store
