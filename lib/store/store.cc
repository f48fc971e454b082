#include "lib/store/store.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::store {
namespace {

absl::Status NotHere(const base::ObjectId& id) {
  return absl::NotFoundError(absl::StrCat("object ", id.ToHex(), " is not in this store"));
}

}  // namespace

Store::Store(absl::Span<uint8_t> arena, Options options, base::EventLoop& loop, base::Trace& trace)
    : arena_(arena),
      options_(std::move(options)),
      loop_(loop),
      trace_(trace),
      random_(options_.random),
      allocator_(arena.size()),
      eviction_(options_.keep_primary),
      subscribers_(loop),
      waits_(*this, loop),
      hashing_(*this, loop, NewOwner()) {
  CHECK_EQ(reinterpret_cast<uintptr_t>(arena.data()) % Allocator::kAlignment, 0u);
}

Store::~Store() = default;

void Store::DropOwner(Owner who) {
  waits_.DropOwner(who);
  for (const base::ObjectId& id : table_.UnsealedOf(who)) CHECK(Abort(id, who).ok());
  for (const base::ObjectId& id : table_.PinnedBy(who)) CHECK(Release(id, who).ok());
}

bool Store::AbandonOwner(Owner who, Owner keeper) {
  const std::vector<base::ObjectId> unsealed = table_.UnsealedOf(who);
  if (!unsealed.empty()) quarantine_.Open(keeper);
  for (const base::ObjectId& id : unsealed) table_.Find(id)->quarantine = keeper;
  DropOwner(who);
  return !unsealed.empty();
}

void Store::EndQuarantine(Owner keeper) {
  for (const Allocation& allocation : quarantine_.Close(keeper)) Free(allocation);
}

absl::StatusOr<Location> Store::Create(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size,
                                       Owner who) {
  return Insert(id, {0, data_size, metadata_size, base::kNoGeneration}, Origin::kCreatedHere, who);
}

absl::StatusOr<Location> Store::CreateCopy(const base::ObjectVersion& version, uint64_t data_size,
                                           uint64_t metadata_size, Owner who) {
  if (version.generation == base::kNoGeneration) {
    return absl::InvalidArgumentError(absl::StrCat("a copy of ", version.id.ToHex(), " needs a generation"));
  }
  return Insert(version.id, {0, data_size, metadata_size, version.generation}, Origin::kPulled, who);
}

absl::StatusOr<Location> Store::Insert(const base::ObjectId& id, Location place, Origin origin, Owner who) {
  if (absl::Status s = CheckCreate(id, place.data_size, place.metadata_size); !s.ok()) return s;
  const absl::optional<Allocation> allocation = Reserve(place.total_size());
  if (!allocation.has_value()) {
    ++creates_refused_;
    return NoRoom(place.total_size());
  }
  place.offset = allocation->offset;
  if (place.generation == base::kNoGeneration) place.generation = base::DrawGeneration(random_);
  ObjectInfo info;
  info.id = id;
  info.location = place;
  info.origin = origin;
  info.created_at = loop_.Now();
  table_.Insert(info, who, *allocation);
  Record(base::TraceKind::kObject, static_cast<uint32_t>(State::kCreated), info.location.total_size());
  return info.location;
}

absl::Status Store::CheckCreate(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size) const {
  if (data_size > allocator_.capacity() || metadata_size > allocator_.capacity()) {
    return NoRoom(std::max(data_size, metadata_size));
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

// Allocates, evicting in steps until there is a gap that is large enough. Where nothing can help, nothing is evicted.
absl::optional<Allocation> Store::Reserve(uint64_t size) {
  if (absl::optional<Allocation> allocation = allocator_.Allocate(size)) return allocation;
  if (size > available_bytes()) return absl::nullopt;
  while (eviction_.Next() != nullptr) {
    Evict(std::max(size, allocator_.capacity() / kEvictionPart));
    if (absl::optional<Allocation> allocation = allocator_.Allocate(size)) return allocation;
  }
  return absl::nullopt;
}

absl::Status Store::NoRoom(uint64_t size) const {
  if (size > allocator_.capacity()) {
    return absl::ResourceExhaustedError(absl::StrCat("an object of ", size, " bytes is larger than this store (",
                                                     allocator_.capacity(), " bytes): start tokd with more --memory"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "no room for ", size, " bytes: of ", allocator_.capacity(), " bytes ", allocator_.used(), " are used and ",
      eviction_.evictable_bytes(), " of those may be evicted (unsealed and pinned objects may not",
      quarantine_.bytes() == 0 ? std::string()
                               : absl::StrCat(", nor ", quarantine_.bytes(),
                                              " bytes that programs which lost their connection may still write to"),
      options_.keep_primary ? ", nor what was created here, because of --keep-primary" : "",
      "): release or delete objects, or start tokd with more --memory"));
}

absl::Status Store::Seal(const base::ObjectId& id, Owner who) {
  absl::StatusOr<Object*> object = FindUnsealed(id, who, "sealed");
  if (!object.ok()) return object.status();
  SealObject(**object);
  return absl::OkStatus();
}

void Store::SealObject(Object& object) {
  table_.Enter(object, State::kSealed);
  if (object.info.pins == 0) eviction_.Add(object);
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

absl::StatusOr<Location> Store::CreateAndSeal(const SmallObject& small, Owner who) {
  const uint64_t size = small.data.size() + small.metadata.size();
  if (size > kMaxSmallBytes) {
    return absl::InvalidArgumentError(absl::StrCat(size, " bytes are too many to be copied at once (at most ",
                                                   kMaxSmallBytes, "): create, fill and seal instead"));
  }
  absl::StatusOr<Location> location = Create(small.id, small.data.size(), small.metadata.size(), who);
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

absl::StatusOr<Location> Store::Acquire(const base::ObjectId& id, Owner who) {
  const absl::optional<Location> location = AcquireIfHere(id, who);
  if (!location.has_value()) return NotHere(id);
  return *location;
}

absl::optional<Location> Store::AcquireIfHere(const base::ObjectId& id, Owner who) {
  Object* object = FindSealed(id);
  if (object == nullptr) return absl::nullopt;
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
}

absl::Status Store::Release(const base::ObjectId& id, Owner who) {
  Object* object = table_.Find(id);
  if (object == nullptr || !table_.Unpin(*object, who)) {
    return absl::FailedPreconditionError(absl::StrCat("object ", id.ToHex(), " is not pinned by who releases it"));
  }
  if (object->info.pins != 0) return absl::OkStatus();
  if (object->sealed()) eviction_.Add(*object);
  if (object->lingers()) FreeIfUnpinned(*object);
  return absl::OkStatus();
}

void Store::PassPin(const base::ObjectId& id, Owner from, Owner to) {
  Object* object = CHECK_NOTNULL(table_.Find(id));
  table_.Pin(*object, to);
  CHECK(table_.Unpin(*object, from));
}

absl::Status Store::Delete(const base::ObjectId& id) {
  Object* object = table_.Find(id);
  if (object == nullptr || object->lingers()) return NotHere(id);
  if (!object->sealed()) {
    return absl::FailedPreconditionError(
        absl::StrCat("object ", id.ToHex(), " is not sealed yet: its creator may abort it"));
  }
  if (object->info.pins == 0) eviction_.Remove(*object);
  table_.Enter(*object, State::kDeleted);
  Record(base::TraceKind::kObject, static_cast<uint32_t>(State::kDeleted), object->info.location.total_size());
  Publish(Event::Kind::kDeleted, *object);
  FreeIfUnpinned(*object);
  return absl::OkStatus();
}

absl::Status Store::DeleteVersion(const base::ObjectVersion& version) {
  const Object* object = FindSealed(version.id);
  if (object == nullptr || object->info.version() != version) return NotHere(version.id);
  return Delete(version.id);
}

EvictionCount Store::Evict(uint64_t bytes) {
  EvictionCount evicted, created_here;
  const uint64_t used_before = allocator_.used();
  while (used_before - allocator_.used() < bytes) {
    Object* object = eviction_.Next();
    if (object == nullptr) break;
    const EvictionCount one{1, object->info.location.total_size()};
    evicted += one;
    if (object->info.origin == Origin::kCreatedHere) created_here += one;
    eviction_.Remove(*object);
    table_.Enter(*object, State::kEvicted);
    Record(base::TraceKind::kEviction, static_cast<uint32_t>(object->info.origin), one.bytes);
    Publish(Event::Kind::kEvicted, *object);
    FreeIfUnpinned(*object);
  }
  if (created_here.objects != 0) {
    LOG(WARNING) << "evicted " << created_here.objects << " objects (" << created_here.bytes
                 << " bytes) that were created here and may exist nowhere else; --keep-primary forbids it";
  }
  return evicted;
}

absl::Status Store::Touch(const base::ObjectId& id) {
  Object* object = FindSealed(id);
  if (object == nullptr) return NotHere(id);
  if (object->info.pins == 0) eviction_.Touch(*object);
  return absl::OkStatus();
}

void Store::FreeIfUnpinned(Object& object) {
  if (object.info.pins != 0) return;
  const Allocation allocation = object.allocation;
  const absl::optional<Owner> keeper = object.quarantine;
  table_.Erase(object);
  if (keeper.has_value() && quarantine_.Hold(*keeper, allocation)) return;
  Free(allocation);
}

void Store::Free(const Allocation& allocation) {
  if (options_.on_free) options_.on_free(allocation.offset, allocation.size);
  allocator_.Free(allocation);
}

absl::optional<Location> Store::Find(const base::ObjectId& id) const {
  const Object* object = table_.Find(id);
  if (object == nullptr || !object->sealed()) return absl::nullopt;
  return object->info.location;
}

Object* Store::FindSealed(const base::ObjectId& id) {
  Object* object = table_.Find(id);
  return object != nullptr && object->sealed() ? object : nullptr;
}

absl::StatusOr<ObjectInfo> Store::Stat(const base::ObjectId& id) const {
  const Object* object = table_.Find(id);
  if (object == nullptr) return NotHere(id);
  return object->info;
}

std::vector<ObjectInfo> Store::List(size_t limit, absl::optional<base::ObjectId> after) const {
  std::vector<ObjectInfo> infos;
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
  s.creates_refused = creates_refused_;
  return s;
}

void Store::Record(base::TraceKind kind, uint32_t number, uint64_t size) {
  trace_.Record({loop_.Now(), kind, options_.node, number, size});
}

void Store::Publish(Event::Kind kind, const Object& object) {
  const ObjectInfo& info = object.info;
  subscribers_.Publish(
      {kind, info.id, info.location.data_size, info.location.metadata_size, info.origin, info.location.generation});
}

}  // namespace tokamak::store
