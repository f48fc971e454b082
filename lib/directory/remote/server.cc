#include "lib/directory/remote/server.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tokamak::directory {

namespace {

// What the local directory may take: it answers at once.
constexpr base::Duration kLocalDeadline = base::Seconds(5);
constexpr base::Duration kMaxLease = base::Seconds(3600);

// Of a reply, beside the nodes or objects; and of one with an object, beside its holders.
constexpr size_t kNodesOverhead = 16;
constexpr size_t kLocateOverhead = 48;
static_assert(DirectoryServer::kMinReply > kLocateOverhead + sizeof(uint32_t) + kMaxNodeName, "room for a holder");

void ReplyStatus(const DirectoryServer::Reply& reply, const absl::Status& status) {
  base::Writer writer;
  WriteStatus(writer, status);
  reply(writer.bytes());
}

void Refuse(const DirectoryServer::Reply& reply) {
  ReplyStatus(reply, absl::InvalidArgumentError("the directory cannot make sense of this request"));
}

Directory::StatusCallback Answer(DirectoryServer::Reply reply) {
  return [reply = std::move(reply)](const absl::Status& status) { ReplyStatus(reply, status); };
}

}  // namespace

void DirectoryServer::Handle(absl::Span<const uint8_t> request, Reply reply) {
  base::Reader reader(request);
  switch (static_cast<RequestKind>(reader.Integer<uint8_t>())) {
    case RequestKind::kJoin:
      return HandleJoin(reader, std::move(reply));
    case RequestKind::kLeave: {
      const NodeId node = reader.Text(kMaxNodeName);
      const auto incarnation = reader.Integer<uint64_t>();
      if (!reader.Complete()) return Refuse(reply);
      return directory_.Leave(node, incarnation, kLocalDeadline, Answer(std::move(reply)));
    }
    case RequestKind::kAnnounce: {
      const base::ObjectId id = reader.Id();
      const auto data_size = reader.Integer<uint64_t>();
      const auto metadata_size = reader.Integer<uint64_t>();
      const NodeId node = reader.Text(kMaxNodeName);
      if (!reader.Complete()) return Refuse(reply);
      return directory_.Announce(id, data_size, metadata_size, node, kLocalDeadline, Answer(std::move(reply)));
    }
    case RequestKind::kWithdraw: {
      const base::ObjectId id = reader.Id();
      const NodeId node = reader.Text(kMaxNodeName);
      if (!reader.Complete()) return Refuse(reply);
      return directory_.Withdraw(id, node, kLocalDeadline, Answer(std::move(reply)));
    }
    case RequestKind::kLocate:
      return HandleLocate(reader, std::move(reply));
    case RequestKind::kNodes:
      return HandleNodes(reader, std::move(reply));
    case RequestKind::kLocateAny:
      return HandleLocateAny(reader, std::move(reply));
  }
  Refuse(reply);
}

void DirectoryServer::HandleJoin(base::Reader& reader, Reply reply) {
  const NodeInfo node = ReadNode(reader);
  const base::Duration lease = base::Duration::Picoseconds(reader.Integer<int64_t>());
  if (!reader.Complete() || lease <= base::Duration() || lease > kMaxLease) return Refuse(reply);
  directory_.Join(node, lease, kLocalDeadline, [reply = std::move(reply)](absl::StatusOr<JoinResult> result) {
    base::Writer writer;
    WriteStatus(writer, result.status());
    if (result.ok()) writer.Integer<uint8_t>(*result == JoinResult::kRenewed ? 1 : 0);
    reply(writer.bytes());
  });
}

void DirectoryServer::HandleLocate(base::Reader& reader, Reply reply) {
  const base::ObjectId id = reader.Id();
  if (!reader.Complete()) return Refuse(reply);
  directory_.Locate(id, {}, kLocalDeadline, [this, reply = std::move(reply)](absl::StatusOr<ObjectInfo> object) {
    base::Writer writer;
    WriteStatus(writer, object.status());
    if (object.ok()) WriteObject(writer, *std::move(object));
    reply(writer.bytes());
  });
}

// Holders that would not fit a reply are left out: one is enough, and there are others next time.
void DirectoryServer::WriteObject(base::Writer& writer, ObjectInfo object) const {
  const size_t room = (max_reply_ - kLocateOverhead) / (sizeof(uint32_t) + kMaxNodeName);
  object.holders.resize(std::min(object.holders.size(), room));
  directory::WriteObject(writer, object);
}

void DirectoryServer::HandleLocateAny(base::Reader& reader, Reply reply) {
  const base::Duration wait = base::Duration::Picoseconds(reader.Integer<int64_t>());
  std::vector<base::ObjectId> ids(reader.Count(kMaxIdsAsked, base::ObjectId::kSize));
  for (base::ObjectId& id : ids) id = reader.Id();
  if (!reader.Complete() || wait < base::Duration() || wait > kMaxRemoteWait) return Refuse(reply);
  const uint64_t number = ++last_wait_;
  waits_[number] = directory_.LocateAny(
      ids, wait, [this, number, reply = std::move(reply)](const absl::StatusOr<LocalDirectory::Found>& found) {
        const auto ended = waits_.extract(number);  // and with it this, but not before the end
        ReplyFound(reply, found);
      });
}

// As many as fit, and whether there are more: these are asked for again.
void DirectoryServer::ReplyFound(const Reply& reply, const absl::StatusOr<LocalDirectory::Found>& found) const {
  if (!found.ok()) return ReplyStatus(reply, found.status());
  base::Writer entries;
  uint32_t count = 0;
  for (const auto& [place, object] : *found) {
    base::Writer entry;
    entry.Integer(static_cast<uint32_t>(place));
    WriteObject(entry, object);
    if (entries.size() + entry.size() + kNodesOverhead > max_reply_) break;
    entries.Raw(entry.bytes());
    ++count;
  }
  base::Writer writer;
  WriteStatus(writer, absl::OkStatus());
  writer.Integer<uint8_t>(count < found->size() ? 1 : 0);
  writer.Integer(count);
  writer.Raw(entries.bytes());
  reply(writer.bytes());
}

// As many as fit one reply, after the name that was given; the asker comes back for more.
void DirectoryServer::HandleNodes(base::Reader& reader, Reply reply) {
  const NodeId after = reader.Text(kMaxNodeName);
  if (!reader.Complete()) return Refuse(reply);
  directory_.Nodes(kLocalDeadline,
                   [reply = std::move(reply), after, limit = max_reply_](absl::StatusOr<std::vector<NodeInfo>> nodes) {
                     if (!nodes.ok()) return ReplyStatus(reply, nodes.status());
                     base::Writer entries;
                     uint32_t count = 0;
                     bool more = false;
                     for (const NodeInfo& node : *nodes) {
                       if (node.id <= after) continue;
                       base::Writer entry;
                       WriteNode(entry, node);
                       more = entries.size() + entry.size() + kNodesOverhead > limit;
                       if (more) break;
                       entries.Raw(entry.bytes());
                       ++count;
                     }
                     base::Writer writer;
                     WriteStatus(writer, absl::OkStatus());
                     writer.Integer<uint8_t>(more ? 1 : 0);
                     writer.Integer(count);
                     writer.Raw(entries.bytes());
                     reply(writer.bytes());
                   });
}

}  // namespace tokamak::directory
