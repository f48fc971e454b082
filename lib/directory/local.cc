#include "lib/directory/local.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tokamak::directory {

namespace {

absl::Status JoinFirst(const NodeId& node) {
  return absl::NotFoundError(absl::StrCat("node ", node, " has no lease in the directory: join first"));
}

absl::Status NobodyHoldsIt() { return absl::NotFoundError("no node holds the object"); }

void Shorten(std::vector<NodeId>& names) {
  const size_t named = std::min(names.size(), kMaxHoldersNamed);
  std::partial_sort(names.begin(), names.begin() + static_cast<ptrdiff_t>(named), names.end());
  names.resize(named);
}

}  // namespace

LocalDirectory::LocalDirectory(base::EventLoop& loop, const LocalOptions& options)
    : loop_(loop),
      options_(options),
      begun_(loop.Now()),
      life_(options.life != 0 ? options.life : static_cast<uint64_t>(begun_.picoseconds())),
      learnt_(loop.RunAfter(options.recovery, [this] { finished_when_learnt_ = deletions_.finished(); })),
      answers_(loop),
      members_(loop,
               [this](uint64_t member) {
                 deletions_.Gone(member);
                 forgetting_.Ask();
               }),
      objects_(members_),
      deletions_(members_, options.tombstones),
      waits_(loop, answers_, [this](const Waits::Asker& asker) { return FindFor(asker); }),
      forgetting_(loop,
                  [this](bool first) {
                    const bool more_objects = objects_.Forget(first);
                    return deletions_.Forget() || more_objects;
                  }),
      asking_(loop, [this](bool first) { return waits_.AskAgain(first); }) {}

template <typename Callback, typename Result>
base::Pending LocalDirectory::Answer(Callback done, Result result) {
  return answers_.Add([done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
}

base::Pending LocalDirectory::Join(const JoinRequest& request, base::Duration, JoinCallback done) {
  return Answer(std::move(done), Enter(request));
}

absl::StatusOr<JoinReply> LocalDirectory::Enter(const JoinRequest& request) {
  const absl::StatusOr<Members::Joined> joined = members_.Join(request);
  if (!joined.ok()) return joined.status();
  if (joined->back) asking_.Ask();
  Member& member = *joined->member;
  if (joined->entered && request.returning) member.mark = request.mark;
  JoinReply reply;
  reply.entered = joined->entered;
  reply.drops = deletions_.DropsOf(member.number, member.told, kMaxDropsTold);
  if (!reply.drops.empty()) member.told = reply.drops.back();
  // Objects yet to be announced may have been deleted before.
  reply.as_of = Mark();
  reply.mark = member.learning ? request.mark : reply.as_of;
  reply.outdated = IsOutdated(member);
  return reply;
}

std::string LocalDirectory::Mark() const { return absl::StrCat(life_, ".", deletions_.finished()); }

// A mark of another directory: its node was not here before this one had learnt who holds what, and
// until then this one deleted no generation that an earlier one can have accepted.
bool LocalDirectory::MayHaveForgottenOneAfter(absl::string_view mark) const {
  const std::vector<absl::string_view> parts = absl::StrSplit(mark, '.');
  uint64_t life = 0, known = 0;
  const bool is_ours =
      parts.size() == 2 && absl::SimpleAtoi(parts[0], &life) && absl::SimpleAtoi(parts[1], &known) && life == life_;
  if (!is_ours && has_just_begun()) return false;
  return deletions_.forgotten() > (is_ours ? known : finished_when_learnt_);
}

bool LocalDirectory::IsOutdated(const Member& node) const {
  return node.mark.has_value() && MayHaveForgottenOneAfter(*node.mark);
}

absl::Status LocalDirectory::KnowsAll() {
  if (has_just_begun()) {
    const base::Duration ago = loop_.Now() - begun_;
    return HasJustBegun(ago, options_.recovery - ago);
  }
  const Member* const learning = members_.Learning();
  return learning == nullptr ? absl::OkStatus() : HasNotToldAll(learning->info.id);
}

base::Pending LocalDirectory::Leave(const NodeId& node, uint64_t incarnation, base::Duration, StatusCallback done) {
  members_.Leave(node, incarnation);
  return Answer(std::move(done), absl::OkStatus());
}

base::Pending LocalDirectory::Update(const NodeId& node, absl::string_view as_of,
                                     absl::Span<const directory::Update> updates, base::Duration, UpdateCallback done) {
  using Statuses = absl::StatusOr<UpdateStatuses>;
  if (updates.size() > kMaxUpdates) {
    return Answer(std::move(done),
                  Statuses(absl::InvalidArgumentError(absl::StrCat("at most ", kMaxUpdates, " updates at once"))));
  }
  const Member* const member = members_.FindAlive(node);
  UpdateStatuses statuses;
  statuses.reserve(updates.size());
  for (const directory::Update& update : updates) {
    if (member == nullptr) {
      statuses.push_back(JoinFirst(node));
    } else if (update.kind == directory::Update::Kind::kAnnounce) {
      statuses.push_back(Announce(*member, as_of, update));
    } else {
      Withdraw(*member, update.version);
      statuses.push_back(absl::OkStatus());
    }
  }
  return Answer(std::move(done), Statuses(std::move(statuses)));
}

absl::Status LocalDirectory::Announce(const Member& node, absl::string_view as_of, const directory::Update& update) {
  const base::ObjectVersion& version = update.version;
  if (version.generation == base::kNoGeneration) {
    return absl::InvalidArgumentError("an object that is announced has a generation");
  }
  if (deletions_.UnderWay(version)) deletions_.Add(version, node.number);  // until it confirms
  if (deletions_.UnderWay(version) || deletions_.Finished(version)) {
    return absl::AbortedError("this content was deleted");
  }
  ObjectEntry* entry = objects_.Find(version.id);
  if (entry == nullptr || entry->generation != version.generation) {
    if (update.standing == Standing::kEstablished && IsOutdated(node)) return MayHaveBeenDeleted();
    if (MayHaveForgottenOneAfter(as_of)) return SaidTooLongAgo();
    if (absl::Status status = MakeFree(node, update); !status.ok()) return status;
    entry = &objects_.Add(version, update.data_size, update.metadata_size);
    entry->fresh = update.standing == Standing::kNew;
    entry->provisional = update.standing != Standing::kEstablished && may_lack();
  } else if (entry->data_size != update.data_size || entry->metadata_size != update.metadata_size) {
    return absl::InvalidArgumentError(absl::StrCat("the cluster knows this content with ", entry->data_size, " + ",
                                                   entry->metadata_size, " bytes: this copy is not one of it"));
  }
  if (entry->name.empty()) entry->name = update.name;
  ObjectEntries::Enter(*entry, node.number, /*has=*/true);
  waits_.Wake(version.id);
  return absl::OkStatus();
}

// Frees the id of other generations, or returns why it keeps one.
absl::Status LocalDirectory::MakeFree(const Member& node, const directory::Update& update) {
  const base::ObjectId& id = update.version.id;
  ObjectEntry* entry = objects_.Find(id);
  // The node no longer has this content: its withdrawal is late or lost.
  if (const Holder* own = entry == nullptr ? nullptr : ObjectEntries::FindHolder(*entry, node.number);
      own != nullptr && own->has) {
    objects_.Remove(id, node.number);
    entry = objects_.Find(id);
  }
  const bool established = update.standing == Standing::kEstablished;
  const bool may_displace = established && (entry == nullptr || entry->provisional);
  if (entry != nullptr && !may_displace) return absl::AlreadyExistsError("another content has this id");
  if (deletions_.FindUnderWay(id) != base::kNoGeneration && !(may_displace && deletions_.OnlyProvisionalUnderWay(id))) {
    const char* const why = "another content with this id is being deleted: try again when that has ended";
    return established ? absl::UnavailableError(why) : absl::AlreadyExistsError(why);
  }
  if (entry != nullptr) {
    BeginDeletion(id);
  } else if (objects_.size() + deletions_.under_way() >= options_.objects) {
    return absl::ResourceExhaustedError(absl::StrCat("the directory holds ", options_.objects, " objects at most"));
  }
  return absl::OkStatus();
}

void LocalDirectory::Withdraw(const Member& node, const base::ObjectVersion& version) {
  deletions_.Confirm(version, node.number);
  ObjectEntry* entry = objects_.Find(version.id);
  const Holder* holder = entry == nullptr ? nullptr : ObjectEntries::FindHolder(*entry, node.number);
  if (holder == nullptr) return;
  const bool any_coming = version.generation == base::kNoGeneration && !holder->has;
  if (entry->generation == version.generation || any_coming) objects_.Remove(version.id, node.number);
}

base::Pending LocalDirectory::Locate(const LocateRequest& request, LocateCallback done) {
  if (request.wait > base::Duration()) {
    return Wait({request.id, request.puller, false}, request.wait, &own_waits_, std::move(done));
  }
  return Answer(std::move(done), LocateNow(request.id, request.puller));
}

absl::StatusOr<LocatedObject> LocalDirectory::LocateNow(const base::ObjectId& id, const NodeId& puller) {
  Waits::Result found = Find(id, puller);
  return found.has_value() ? *std::move(found) : absl::StatusOr<LocatedObject>(NobodyHoldsIt());
}

base::Pending LocalDirectory::Watch(const base::ObjectId& id, StatusCallback done) {
  return Wait({id, NodeId(), true}, std::nullopt, nullptr,
              [done = std::move(done)](const absl::StatusOr<LocatedObject>& found) { done(found.status()); });
}

base::Pending LocalDirectory::Wait(const Waits::Asker& asker, std::optional<base::Duration> wait, size_t* count,
                                   LocateCallback done) {
  if (Waits::Result found = FindFor(asker)) return Answer(std::move(done), *std::move(found));
  if (waits_.size() >= options_.waiting || (count != nullptr && *count >= kMaxWaitsOfPeer)) {
    return Answer(std::move(done), absl::StatusOr<LocatedObject>(absl::ResourceExhaustedError(
                                       "too many wait in the directory for objects to appear: try again later")));
  }
  return waits_.Add(asker, wait, count, std::move(done));
}

Waits::Result LocalDirectory::FindFor(const Waits::Asker& asker) {
  if (!asker.only_told) return Find(asker.id, asker.puller);
  const ObjectEntry* entry = objects_.Find(asker.id);
  if (entry == nullptr || !objects_.IsHeld(*entry)) return std::nullopt;
  return LocatedObject();
}

Waits::Result LocalDirectory::Find(const base::ObjectId& id, const NodeId& puller) {
  ObjectEntry* entry = objects_.Find(id);
  if (entry == nullptr || !objects_.IsHeld(*entry)) return std::nullopt;
  if (!puller.empty()) {
    const Member* const member = members_.FindAlive(puller);
    if (member == nullptr) return absl::FailedPreconditionError(JoinFirst(puller).message());
    ObjectEntries::Enter(*entry, member->number, /*has=*/false);
  }
  return objects_.Name(*entry);
}

base::Pending LocalDirectory::Delete(const DeleteRequest& request, base::Duration, DeleteCallback done) {
  using Reply = absl::StatusOr<DeleteReply>;
  const absl::StatusOr<base::Generation> generation = ChooseDeletion(request);
  if (!generation.ok()) return Answer(std::move(done), Reply(generation.status()));
  const base::ObjectVersion version{request.id, *generation};
  for (const NodeId& node : request.dropped) {
    if (const Member* member = members_.FindAlive(node)) deletions_.Confirm(version, member->number);
  }
  return Answer(std::move(done), Reply(NameForDeletion(version, request.after)));
}

// Returns the generation to delete, whose deletion is under way or over.
absl::StatusOr<base::Generation> LocalDirectory::ChooseDeletion(const DeleteRequest& request) {
  const base::ObjectId& id = request.id;
  const base::Generation wanted = request.generation;
  const bool any = wanted == base::kNoGeneration;
  const ObjectEntry* entry = objects_.Find(id);
  const bool is_live = entry != nullptr && (any || entry->generation == wanted);
  if (!is_live) {
    if (any && deletions_.FindUnderWay(id) != base::kNoGeneration) return deletions_.FindUnderWay(id);
    if (!any && (deletions_.UnderWay({id, wanted}) || deletions_.Finished({id, wanted}))) return wanted;
  }
  if (!(is_live && entry->fresh)) {
    if (absl::Status status = KnowsAll(); !status.ok()) return status;
  }
  if (is_live) {
    const base::Generation generation = entry->generation;
    BeginDeletion(id);
    return generation;
  }
  if (any) return NobodyHoldsIt();
  deletions_.Begin({id, wanted}, /*provisional=*/false, {});  // its announcement may be on its way
  return wanted;
}

void LocalDirectory::BeginDeletion(const base::ObjectId& id) {
  const ObjectEntry entry = objects_.Extract(id);
  std::set<uint64_t> members;
  for (const Holder& holder : entry.holders) {
    if (members_.Find(holder.member) != nullptr) members.insert(holder.member);
  }
  deletions_.Begin({id, entry.generation}, entry.provisional, std::move(members));
}

// The id is free when all of its generations are deleted.
DeleteReply LocalDirectory::NameForDeletion(base::ObjectVersion version, NodeId after) {
  DeleteReply reply;
  reply.generation = version.generation;
  if (!deletions_.UnderWay(version)) {
    version.generation = deletions_.FindUnderWay(version.id);
    if (version.generation == base::kNoGeneration) return reply;
    reply.generation = version.generation;
    after.clear();
  }
  const std::set<uint64_t>* const pending = deletions_.Pending(version);
  for (const uint64_t number : *pending) {
    const Member& member = *members_.Find(number);
    if (!member.alive) {
      reply.silent.push_back(member.info.id);
    } else if (member.info.id > after) {
      reply.holders.push_back(member.info.id);
    }
  }
  Shorten(reply.holders);
  Shorten(reply.silent);
  return reply;
}

base::Pending LocalDirectory::Verify(const NodeId& node, absl::Span<const base::ObjectVersion> versions, base::Duration,
                                     VerifyCallback done) {
  using Places = absl::StatusOr<std::vector<uint32_t>>;
  const Member* const member = members_.FindAlive(node);
  if (member == nullptr) return Answer(std::move(done), Places(JoinFirst(node)));
  if (versions.size() > kMaxVerified) {
    return Answer(std::move(done),
                  Places(absl::InvalidArgumentError(absl::StrCat("at most ", kMaxVerified, " versions at once"))));
  }
  std::vector<uint32_t> unknown;
  for (size_t i = 0; i < versions.size(); ++i) {
    ObjectEntry* entry = objects_.Find(versions[i].id);
    const bool live = entry != nullptr && entry->generation == versions[i].generation;
    const Holder* holder = live ? ObjectEntries::FindHolder(*entry, member->number) : nullptr;
    if (holder == nullptr || !holder->has) unknown.push_back(static_cast<uint32_t>(i));
  }
  return Answer(std::move(done), Places(std::move(unknown)));
}

base::Pending LocalDirectory::Held(const NodeId& node, const std::string& after, base::Duration, HeldCallback done) {
  return Answer(std::move(done), HeldNow(node, after, kHeldPage));
}

// The cursor: the last id looked at.
absl::StatusOr<HeldReply> LocalDirectory::HeldNow(const NodeId& node, const std::string& after, size_t most) const {
  const Member* const member = members_.FindAlive(node);
  if (member == nullptr) return JoinFirst(node);
  std::optional<base::ObjectId> looked_at;
  if (!after.empty()) {
    std::array<uint8_t, base::ObjectId::kSize> id;
    if (after.size() != id.size()) return absl::InvalidArgumentError("this is no place in what a node holds");
    std::copy(after.begin(), after.end(), id.begin());
    looked_at = base::ObjectId(id);
  }
  HeldReply reply;
  reply.versions = objects_.HeldBy(member->number, most, &looked_at);
  if (looked_at.has_value()) reply.next.assign(reinterpret_cast<const char*>(looked_at->data()), base::ObjectId::kSize);
  return reply;
}

base::Pending LocalDirectory::Roster(base::Duration, RosterCallback done) {
  return Answer(std::move(done), absl::StatusOr<std::vector<RosterEntry>>(members_.Roster(NodeId(), kMaxNodes)));
}

}  // namespace tokamak::directory
