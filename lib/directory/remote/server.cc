#include "lib/directory/remote/server.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace tokamak::directory {

namespace {

// The local directory answers at once.
constexpr base::Duration kLocalDeadline = base::Seconds(5);
constexpr base::Duration kMaxLease = base::Seconds(3600);  // and grace

// Bytes of a reply, beside a list; of a name and a version in a list; of an object, beside its name
// and holders.
constexpr size_t kReplyOverhead = 32;
constexpr size_t kRosterPage = 256;  // nodes in one reply
constexpr size_t kNameRoom = sizeof(uint32_t) + kMaxNodeName;
constexpr size_t kMarkRoom = 2 * (sizeof(uint32_t) + kMaxMark);  // and as_of
constexpr size_t kVersionRoom = base::ObjectId::kSize + sizeof(uint64_t);
constexpr size_t kObjectOverhead = 48;  // with status and lengths of name and contents
constexpr size_t kStatusRoom = kMaxLocatedText + 5;
static_assert(DirectoryServer::kMinReply >
                  kReplyOverhead + kObjectOverhead + base::ObjectName::kMaxSize + 2 * kNameRoom,
              "room for some names");
static_assert(DirectoryServer::kMinReply > kReplyOverhead + kMarkRoom + kVersionRoom, "room for a drop");
static_assert(DirectoryServer::kMinReply > kReplyOverhead + kMaxUpdates * 5, "room for all statuses of an update");
static_assert(DirectoryServer::kMinReply > kReplyOverhead + kMaxHeldCursor + kVersionRoom, "room for a version");

base::Pending ReplyStatus(const transport::Reply& reply, const absl::Status& status) {
  base::Writer writer;
  WriteStatus(writer, status);
  reply(writer.bytes());
  return nullptr;
}

base::Pending Refuse(const transport::Reply& reply) {
  return ReplyStatus(reply, absl::InvalidArgumentError("the request to the directory is malformed"));
}

template <typename Result, typename Write>
void ReplyResult(const transport::Reply& reply, const absl::StatusOr<Result>& result, const Write& write) {
  base::Writer writer;
  WriteStatus(writer, result.status());
  if (result.ok()) write(writer, *result);
  reply(writer.bytes());
}

const Host& HostOf(const transport::Reply& reply) { return reply.peer().ip; }

template <typename T>
absl::Span<const T> FirstOf(const std::vector<T>& all, size_t most) {
  return absl::MakeConstSpan(all).first(std::min(all.size(), most));
}

}  // namespace

base::Pending DirectoryServer::Handle(absl::Span<const uint8_t> request, transport::Reply reply) {
  base::Reader reader(request);
  switch (static_cast<RequestKind>(reader.Integer<uint8_t>())) {
    case RequestKind::kJoin:
      return HandleJoin(reader, std::move(reply));
    case RequestKind::kLeave:
      return HandleLeave(reader, std::move(reply));
    case RequestKind::kUpdate:
      return HandleUpdate(reader, std::move(reply));
    case RequestKind::kLocate:
      return HandleLocate(reader, reply);
    case RequestKind::kDelete:
      return HandleDelete(reader, std::move(reply));
    case RequestKind::kVerify:
      return HandleVerify(reader, std::move(reply));
    case RequestKind::kRoster:
      return HandleRoster(reader, reply);
    case RequestKind::kWatch:
      return HandleWatch(reader, std::move(reply));
    case RequestKind::kPoll:
      return HandlePoll(reader, std::move(reply));
    case RequestKind::kHeld:
      return HandleHeld(reader, reply);
  }
  return Refuse(reply);
}

base::Pending DirectoryServer::HandleJoin(base::Reader& reader, transport::Reply reply) {
  JoinRequest request;
  request.node = ReadNode(reader);
  request.lease = base::Duration::Picoseconds(reader.Integer<int64_t>());
  request.grace = base::Duration::Picoseconds(reader.Integer<int64_t>());
  const auto flags = reader.Integer<uint8_t>();
  request.returning = (flags & 1) != 0;
  request.complete = (flags & 2) != 0;
  request.mark = reader.Text(kMaxMark);
  if (!reader.Complete() || flags > 3 || request.lease > kMaxLease || request.grace > kMaxLease) return Refuse(reply);
  request.host = HostOf(reply);
  // Drops that do not fit go with the next reply.
  const size_t most_drops = (max_reply_ - kReplyOverhead - kMarkRoom) / kVersionRoom;
  return directory_.Join(request, kLocalDeadline,
                         [reply = std::move(reply), most_drops](const absl::StatusOr<JoinReply>& joined) {
                           ReplyResult(reply, joined, [most_drops](base::Writer& writer, const JoinReply& result) {
                             const auto drops = FirstOf(result.drops, most_drops);
                             writer.Integer(static_cast<uint8_t>((result.entered ? 1 : 0) | (result.outdated ? 2 : 0)));
                             writer.Text(result.mark);
                             writer.Text(result.as_of);
                             writer.Integer(static_cast<uint32_t>(drops.size()));
                             for (const base::ObjectVersion& version : drops) WriteVersion(writer, version);
                           });
                         });
}

base::Pending DirectoryServer::HandleLeave(base::Reader& reader, transport::Reply reply) {
  const NodeId node = reader.Text(kMaxNodeName);
  const auto incarnation = reader.Integer<uint64_t>();
  if (!reader.Complete()) return Refuse(reply);
  return directory_.Leave(node, incarnation, kLocalDeadline,
                          [reply = std::move(reply)](const absl::Status& status) { ReplyStatus(reply, status); });
}

base::Pending DirectoryServer::HandleUpdate(base::Reader& reader, transport::Reply reply) {
  const NodeId node = reader.Text(kMaxNodeName);
  const std::string as_of = reader.Text(kMaxMark);
  std::vector<Update> updates(reader.Count(kMaxUpdates, sizeof(uint8_t) + kVersionRoom));
  for (Update& update : updates) {
    if (!ReadUpdate(reader, &update)) return Refuse(reply);
  }
  if (!reader.Complete()) return Refuse(reply);
  return directory_.Update(
      node, as_of, updates, kLocalDeadline,
      [reply = std::move(reply), room = max_reply_](const absl::StatusOr<UpdateStatuses>& updated) {
        ReplyResult(reply, updated, [room](base::Writer& writer, const UpdateStatuses& statuses) {
          const size_t room_of_each = (room - kReplyOverhead) / std::max<size_t>(statuses.size(), 1);
          writer.Integer(static_cast<uint32_t>(statuses.size()));
          for (const absl::Status& status : statuses) WriteStatus(writer, status, room_of_each - 5);
        });
      });
}

void DirectoryServer::BringFrom(NodeId self, Contents contents) {
  self_ = std::move(self);
  contents_ = std::move(contents);
}

// Locates as many as fit the reply; the asker comes back with the rest. Holders that do not fit are
// left out: one is enough.
base::Pending DirectoryServer::HandleLocate(base::Reader& reader, const transport::Reply& reply) {
  const NodeId puller = reader.Text(kMaxNodeName);
  absl::InlinedVector<Asked, 1> asked(reader.Count(kMaxLocated, base::ObjectId::kSize + 1));
  for (Asked& one : asked) {
    one.id = reader.Id();
    const auto may_bring = reader.Integer<uint8_t>();
    one.may_bring = may_bring == 1;
    if (may_bring > 1 || (one.may_bring && puller.empty())) return Refuse(reply);
  }
  if (!reader.Complete() || asked.empty()) return Refuse(reply);
  base::Writer answers;
  uint32_t count = 0;
  for (const Asked& one : asked) {
    absl::StatusOr<LocatedObject> found = directory_.LocateNow(one.id, puller);
    const size_t room = max_reply_ - kReplyOverhead - answers.size();
    const bool bring = one.may_bring && found.ok() && MayBring(*found);
    const size_t contents = bring ? found->data_size + found->metadata_size : 0;
    const size_t object = found.ok() ? kObjectOverhead + found->name.text().size() : 0;
    const size_t least = found.ok() ? object + kNameRoom : kStatusRoom;
    if (count > 0 && least + contents > room) break;
    if (bring && least + contents <= room) Bring(one.id, *found);
    if (found.ok()) {
      const size_t names = (room - object - found->contents.size()) / kNameRoom;
      found->holders.resize(std::min(found->holders.size(), names));
    }
    WriteLocated(answers, found);
    ++count;
  }
  base::Writer writer;
  WriteStatus(writer, absl::OkStatus());
  writer.Integer(count);
  writer.Raw(answers.bytes());
  reply(writer.bytes());
  return nullptr;
}

// True for a small object of this node: cheaper than another request.
bool DirectoryServer::MayBring(const LocatedObject& object) const {
  return contents_ != nullptr && IsSmallEnoughToBring(object.data_size, object.metadata_size) &&
         std::find(object.holders.begin(), object.holders.end(), self_) != object.holders.end();
}

void DirectoryServer::Bring(const base::ObjectId& id, LocatedObject& object) const {
  object.contents = contents_({id, object.generation});
  if (object.contents.empty()) return;
  std::iter_swap(std::find(object.holders.begin(), object.holders.end(), self_), object.holders.begin());
}

// Names holders that do not fit in the next step.
base::Pending DirectoryServer::HandleDelete(base::Reader& reader, transport::Reply reply) {
  DeleteRequest request;
  const base::ObjectVersion version = ReadVersion(reader);
  request.id = version.id;
  request.generation = version.generation;
  request.dropped = ReadNames(reader);
  request.after = reader.Text(kMaxNodeName);
  if (!reader.Complete()) return Refuse(reply);
  const size_t most = (max_reply_ - kReplyOverhead) / 2 / kNameRoom;
  return directory_.Delete(request, kLocalDeadline,
                           [reply = std::move(reply), most](const absl::StatusOr<DeleteReply>& deleted) {
                             ReplyResult(reply, deleted, [most](base::Writer& writer, const DeleteReply& result) {
                               writer.Integer(static_cast<uint64_t>(result.generation));
                               WriteNames(writer, FirstOf(result.holders, most));
                               WriteNames(writer, FirstOf(result.silent, most));
                             });
                           });
}

// Looks at as many as fit the reply; the asker comes back with the rest.
base::Pending DirectoryServer::HandleVerify(base::Reader& reader, transport::Reply reply) {
  const NodeId node = reader.Text(kMaxNodeName);
  std::vector<base::ObjectVersion> versions(reader.Count(kMaxVerified, kVersionRoom));
  for (base::ObjectVersion& version : versions) {
    version = ReadVersion(reader);
    if (version.generation == base::kNoGeneration) return Refuse(reply);
  }
  if (!reader.Complete()) return Refuse(reply);
  versions.resize(std::min(versions.size(), (max_reply_ - kReplyOverhead) / sizeof(uint32_t)));
  const auto looked_at = static_cast<uint32_t>(versions.size());
  return directory_.Verify(
      node, versions, kLocalDeadline,
      [reply = std::move(reply), looked_at](const absl::StatusOr<std::vector<uint32_t>>& verified) {
        ReplyResult(reply, verified, [looked_at](base::Writer& writer, const std::vector<uint32_t>& places) {
          writer.Integer(looked_at);
          writer.Integer(static_cast<uint32_t>(places.size()));
          for (const uint32_t place : places) writer.Integer(place);
        });
      });
}

// Returns as many as fit; the asker comes back for more.
base::Pending DirectoryServer::HandleHeld(base::Reader& reader, const transport::Reply& reply) {
  const NodeId node = reader.Text(kMaxNodeName);
  const std::string after = reader.Text(kMaxHeldCursor);
  if (!reader.Complete()) return Refuse(reply);
  const size_t most = std::min(kHeldPage, (max_reply_ - kReplyOverhead - kMaxHeldCursor) / kVersionRoom);
  ReplyResult(reply, directory_.HeldNow(node, after, most), [](base::Writer& writer, const HeldReply& held) {
    writer.Text(held.next);
    writer.Integer(static_cast<uint32_t>(held.versions.size()));
    for (const base::ObjectVersion& version : held.versions) WriteVersion(writer, version);
  });
  return nullptr;
}

// Returns as many as fit, after the given name; the asker comes back for more.
base::Pending DirectoryServer::HandleRoster(base::Reader& reader, const transport::Reply& reply) {
  const NodeId after = reader.Text(kMaxNodeName);
  if (!reader.Complete()) return Refuse(reply);
  const std::vector<RosterEntry> page = directory_.RosterNow(after, kRosterPage);
  base::Writer entries;
  uint32_t count = 0;
  for (const RosterEntry& one : page) {
    base::Writer entry;
    WriteRosterEntry(entry, one);
    if (entries.size() + entry.size() + kReplyOverhead > max_reply_) break;
    entries.Raw(entry.bytes());
    ++count;
  }
  const bool more = count < page.size() || page.size() == kRosterPage;
  ReplyResult(reply, absl::StatusOr<bool>(more), [&](base::Writer& writer, bool there_are_more) {
    writer.Integer<uint8_t>(there_are_more ? 1 : 0);
    writer.Integer(count);
    writer.Raw(entries.bytes());
  });
  return nullptr;
}

base::Pending DirectoryServer::HandleWatch(base::Reader& reader, transport::Reply reply) {
  const SessionName name = ReadSession(reader);
  const auto begins = reader.Integer<uint8_t>();
  const NodeId puller = reader.Text(kMaxNodeName);
  std::vector<uint64_t> ended(reader.Count(kMaxWatched, sizeof(uint64_t)));
  for (uint64_t& number : ended) number = reader.Integer<uint64_t>();
  std::vector<WatchRequest> begun(reader.Count(kMaxWatched, sizeof(uint64_t) + base::ObjectId::kSize + 1));
  for (WatchRequest& watch : begun) {
    if (!ReadWatch(reader, &watch)) return Refuse(reply);
  }
  if (!reader.Complete() || begins > 1) return Refuse(reply);
  WatchSession* const session = begins == 1 ? BeginSession(name, HostOf(reply)) : FindSession(name);
  if (session == nullptr && begins == 0) return ReplyStatus(reply, absl::AbortedError("the session is not known"));
  if (session == nullptr || session->TooMany(begun.size())) {
    return ReplyStatus(reply, absl::ResourceExhaustedError("too many wait in the directory: try again later"));
  }
  for (const uint64_t number : ended) session->End(number);
  for (const WatchRequest& watch : begun) session->Begin(watch, puller);
  session->Answer(reply);
  return nullptr;
}

base::Pending DirectoryServer::HandlePoll(base::Reader& reader, transport::Reply reply) {
  const SessionName name = ReadSession(reader);
  if (!reader.Complete()) return Refuse(reply);
  WatchSession* const session = FindSession(name);
  if (session == nullptr) return ReplyStatus(reply, absl::AbortedError("the session is not known"));
  return session->Poll(std::move(reply));
}

WatchSession* DirectoryServer::FindSession(const SessionName& name) {
  const auto found = sessions_.find(name.asker);
  if (found == sessions_.end() || found->second.watches->number() != name.number) return nullptr;
  NoteWord(name.asker, found->second);
  return found->second.watches.get();
}

WatchSession* DirectoryServer::BeginSession(const SessionName& name, const Host& host) {
  const auto known = sessions_.find(name.asker);
  if (known == sessions_.end() && !places_.MayTake(host)) return nullptr;
  if (known != sessions_.end() && known->second.watches->number() > name.number) return nullptr;
  Session& session = sessions_[name.asker];
  if (known == sessions_.end()) session.place = places_.Take(host);
  session.watches = std::make_unique<WatchSession>(loop_, directory_, max_reply_, name.number, watched_, host);
  NoteWord(name.asker, session);
  return session.watches.get();
}

void DirectoryServer::NoteWord(uint64_t asker, Session& session) {
  session.silence = loop_.RunAfter(kSessionSilence, [this, asker] { sessions_.erase(asker); });
}

}  // namespace tokamak::directory
