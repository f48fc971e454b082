#include "lib/directory/remote/server.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tokamak::directory {

namespace {

// What the local directory may take: it answers at once, or after the wait that was asked for.
constexpr base::Duration kLocalDeadline = base::Seconds(5);
constexpr base::Duration kMaxLease = base::Seconds(3600);

// Of a NODES reply, beside the nodes.
constexpr size_t kNodesOverhead = 16;
// Of a LOCATE reply, beside the holders.
constexpr size_t kLocateOverhead = 32;

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
  const base::Duration wait = base::Duration::Picoseconds(reader.Integer<int64_t>());
  if (!reader.Complete() || wait < base::Duration() || wait > kMaxRemoteWait) return Refuse(reply);
  const size_t most_holders = (max_reply_ - std::min(max_reply_, kLocateOverhead)) / (sizeof(uint32_t) + kMaxNodeName);
  directory_.Locate(id, wait, wait + kLocalDeadline,
                    [reply = std::move(reply), most_holders](absl::StatusOr<ObjectInfo> object) {
                      base::Writer writer;
                      WriteStatus(writer, object.status());
                      if (object.ok()) {
                        object->holders.resize(std::min(object->holders.size(), std::max<size_t>(most_holders, 1)));
                        WriteObject(writer, *object);
                      }
                      reply(writer.bytes());
                    });
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
