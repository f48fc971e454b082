#include "lib/directory/redis/replies.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/text/object_name.h"

namespace tokamak::directory::redis {
namespace {

using Kind = Reply::Kind;

absl::Status Malformed() {
  return absl::UnavailableError(
      "the Redis server's answer is malformed: do programs of different versions share its keys? Give each a prefix");
}

absl::Status JoinFirst(const NodeId& node) {
  return absl::NotFoundError(absl::StrCat("node ", node, " has no lease in the directory: join first"));
}

bool Says(const Reply& reply, absl::string_view text) { return reply.kind == Kind::kText && reply.text == text; }

bool IsNumber(const Reply& reply, uint64_t* number) {
  return reply.kind == Kind::kText && absl::SimpleAtoi(reply.text, number);
}

// No lease and grace are longer than a day.
bool IsMilliseconds(const Reply& reply, base::Duration* duration) {
  constexpr int64_t kMost = 86'400'000;
  if (reply.kind != Kind::kInteger || reply.integer < 0 || reply.integer > kMost) return false;
  *duration = base::Milliseconds(reply.integer);
  return true;
}

bool IsGeneration(absl::string_view text, base::Generation* generation) {
  uint64_t number = 0;
  if (text.size() != 16 || !absl::SimpleHexAtoi(text, &number)) return false;
  *generation = base::Generation{number};
  return number != 0;
}

// "HEX:GENERATION"
absl::StatusOr<base::ObjectVersion> ToVersion(const Reply& reply) {
  const std::vector<absl::string_view> parts = absl::StrSplit(reply.text, ':');
  if (parts.size() != 2) return Malformed();
  const auto id = base::ObjectId::FromHex({parts[0].data(), parts[0].size()});
  base::ObjectVersion version;
  if (!id.has_value() || !IsGeneration(parts[1], &version.generation)) return Malformed();
  version.id = *id;
  return version;
}

absl::StatusOr<std::vector<NodeId>> ToNames(const Reply& reply, size_t first = 0) {
  if (reply.kind != Kind::kArray) return Malformed();
  std::vector<NodeId> names;
  for (size_t i = first; i < reply.elements.size(); ++i) {
    if (names.size() == kMaxHoldersNamed || !CheckNodeId(reply.elements[i].text).ok()) return Malformed();
    names.push_back(reply.elements[i].text);
  }
  return names;
}

absl::Status ToUpdateStatus(const Reply& reply) {
  if (Says(reply, "ok")) return absl::OkStatus();
  if (Says(reply, "exists")) return absl::AlreadyExistsError("another content has this id");
  constexpr char kDeleting[] = "another content with this id is being deleted: try again when that has ended";
  if (Says(reply, "deleting")) return absl::AlreadyExistsError(kDeleting);
  if (Says(reply, "deleting first")) return absl::UnavailableError(kDeleting);
  if (Says(reply, "deleted")) return absl::AbortedError("this content was deleted");
  if (Says(reply, "outdated")) return MayHaveBeenDeleted();
  if (Says(reply, "too long ago")) return SaidTooLongAgo();
  if (Says(reply, "no generation")) {
    return absl::InvalidArgumentError("an object that is announced has a generation");
  }
  if (Says(reply, "full")) {
    return absl::ResourceExhaustedError("the Redis server is out of memory: raise its maxmemory, or delete objects");
  }
  const std::vector<absl::string_view> sizes = absl::StrSplit(reply.text, ' ');
  if (sizes.size() != 3 || sizes[0] != "sizes") return Malformed();
  return absl::InvalidArgumentError(absl::StrCat("the cluster knows this content with ", sizes[1], " + ", sizes[2],
                                                 " bytes: this copy is not one of it"));
}

absl::StatusOr<RosterEntry> ToRosterEntry(const Reply& reply) {
  RosterEntry entry;
  NodeInfo& node = entry.node;
  if (reply.elements.size() != 7 || !IsMilliseconds(reply.elements[2], &entry.unheard_for) ||
      !IsNumber(reply.elements[3], &node.incarnation) || !IsNumber(reply.elements[6], &node.capacity)) {
    return Malformed();
  }
  node.id = reply.elements[0].text;
  if (Says(reply.elements[1], "silent")) entry.liveness = Liveness::kSilent;
  node.engines = absl::StrSplit(reply.elements[4].text, ' ', absl::SkipEmpty());
  node.device = reply.elements[5].text;
  return CheckNode(node).ok() ? absl::StatusOr<RosterEntry>(std::move(entry)) : Malformed();
}

}  // namespace

absl::StatusOr<JoinReply> ToJoined(const absl::StatusOr<Reply>& reply, const NodeId& node) {
  if (!reply.ok()) return reply.status();
  if (reply->elements.empty()) return Malformed();
  const Reply& said = reply->elements[0];
  if (Says(said, "later")) {
    return absl::FailedPreconditionError(
        absl::StrCat("a later life of node ", node, " is in the directory: stop this one, or give it another name"));
  }
  if (Says(said, "taken") && reply->elements.size() == 2) {
    return absl::AlreadyExistsError(absl::StrCat("a node ", node, " is alive at ", reply->elements[1].text,
                                                 ": stop it, or give this one another name"));
  }
  if (Says(said, "full")) {
    return absl::ResourceExhaustedError(absl::StrCat("the directory holds ", kMaxNodes, " nodes at most"));
  }
  if (!Says(said, "entered") && !Says(said, "renewed")) return Malformed();
  JoinReply joined;
  joined.entered = Says(said, "entered");
  if (reply->elements.size() < 4) return Malformed();
  joined.mark = reply->elements[1].text;
  joined.as_of = reply->elements[2].text;
  joined.outdated = Says(reply->elements[3], "outdated");
  if (joined.mark.size() > kMaxMark || joined.as_of.size() > kMaxMark) return Malformed();
  for (size_t i = 4; i < reply->elements.size(); ++i) {
    const absl::StatusOr<base::ObjectVersion> drop = ToVersion(reply->elements[i]);
    if (!drop.ok() || joined.drops.size() == kMaxDropsTold) return Malformed();
    joined.drops.push_back(*drop);
  }
  return joined;
}

absl::StatusOr<UpdateStatuses> ToUpdated(const absl::StatusOr<Reply>& reply, const NodeId& node, size_t count) {
  if (!reply.ok()) return reply.status();
  if (Says(*reply, "no lease")) return UpdateStatuses(count, JoinFirst(node));
  if (reply->kind != Kind::kArray || reply->elements.size() != count) return Malformed();
  UpdateStatuses statuses;
  for (const Reply& element : reply->elements) statuses.push_back(ToUpdateStatus(element));
  return statuses;
}

absl::StatusOr<LocatedObject> ToObject(const absl::StatusOr<Reply>& reply, const base::ObjectId& id,
                                       const NodeId& puller, const std::string& key) {
  const auto malformed = [&key] {
    return absl::UnavailableError(absl::StrCat("what Redis has under ", key,
                                               " is malformed: somebody else has written ",
                                               "there; remove it (redis-cli DEL), or give another --redis-prefix"));
  };
  if (!reply.ok()) return reply.status();
  if (Says(*reply, "no lease")) return absl::FailedPreconditionError(JoinFirst(puller).message());
  if (reply->kind != Kind::kArray) return malformed();
  if (reply->elements.empty()) return absl::NotFoundError("no node holds the object");
  LocatedObject object;
  if (reply->elements.size() < 5 || !IsGeneration(reply->elements[0].text, &object.generation) ||
      !IsNumber(reply->elements[1], &object.data_size) || !IsNumber(reply->elements[2], &object.metadata_size)) {
    return malformed();
  }
  object.name = base::ObjectName::For(id, reply->elements[3].text).value_or(base::ObjectName());
  absl::StatusOr<std::vector<NodeId>> holders = ToNames(*reply, 4);
  if (!holders.ok()) return malformed();
  object.holders = *std::move(holders);
  return object;
}

absl::StatusOr<DeleteReply> ToDeleted(const absl::StatusOr<Reply>& reply, base::Duration recovery) {
  if (!reply.ok()) return reply.status();
  if (Says(*reply, "unknown")) return absl::NotFoundError("no node holds the object");
  if (reply->elements.size() == 2 && Says(reply->elements[0], "begun")) {
    uint64_t left = 0;  // microseconds
    if (!IsNumber(reply->elements[1], &left)) return HasJustBegun(base::Duration(), recovery);
    // By the server's clock, which may be wrong.
    const auto most = static_cast<uint64_t>(recovery.microseconds());
    const base::Duration learnt_in = base::Microseconds(static_cast<int64_t>(std::min(most, left)));
    return HasJustBegun(recovery - learnt_in, learnt_in);
  }
  if (reply->elements.size() == 2 && Says(reply->elements[0], "node")) return HasNotToldAll(reply->elements[1].text);
  DeleteReply deleted;
  if (reply->elements.size() != 3 || !IsGeneration(reply->elements[0].text, &deleted.generation)) return Malformed();
  absl::StatusOr<std::vector<NodeId>> holders = ToNames(reply->elements[1]);
  absl::StatusOr<std::vector<NodeId>> silent = ToNames(reply->elements[2]);
  if (!holders.ok() || !silent.ok()) return Malformed();
  deleted.holders = *std::move(holders);
  deleted.silent = *std::move(silent);
  return deleted;
}

absl::StatusOr<std::vector<uint32_t>> ToVerified(const absl::StatusOr<Reply>& reply, const NodeId& node, size_t count) {
  if (!reply.ok()) return reply.status();
  if (Says(*reply, "no lease")) return JoinFirst(node);
  if (reply->kind != Kind::kArray) return Malformed();
  std::vector<uint32_t> places;
  for (const Reply& element : reply->elements) {
    if (element.kind != Kind::kInteger || element.integer < 0 || static_cast<uint64_t>(element.integer) >= count) {
      return Malformed();
    }
    places.push_back(static_cast<uint32_t>(element.integer));
  }
  return places;
}

absl::StatusOr<HeldReply> ToHeld(const absl::StatusOr<Reply>& reply, const NodeId& node) {
  if (!reply.ok()) return reply.status();
  if (Says(*reply, "no lease")) return JoinFirst(node);
  if (reply->kind != Kind::kArray || reply->elements.empty()) return Malformed();
  HeldReply held;
  held.next = reply->elements[0].text;
  if (held.next.size() > kMaxHeldCursor) return Malformed();
  for (size_t i = 1; i < reply->elements.size(); ++i) {
    const absl::StatusOr<base::ObjectVersion> version = ToVersion(reply->elements[i]);
    if (!version.ok()) return Malformed();
    held.versions.push_back(*version);
  }
  return held;
}

absl::StatusOr<std::vector<RosterEntry>> ToRoster(const absl::StatusOr<Reply>& reply) {
  if (!reply.ok()) return reply.status();
  std::vector<RosterEntry> roster;
  for (const Reply& element : reply->elements) {
    absl::StatusOr<RosterEntry> entry = ToRosterEntry(element);
    if (roster.size() == kMaxNodes) return Malformed();
    // Overwritten by others, until its node renews the lease.
    if (entry.ok()) roster.push_back(*std::move(entry));
  }
  std::sort(roster.begin(), roster.end(),
            [](const RosterEntry& a, const RosterEntry& b) { return a.node.id < b.node.id; });
  return roster;
}

}  // namespace tokamak::directory::redis
