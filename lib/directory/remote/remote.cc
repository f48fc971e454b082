#include "lib/directory/remote/remote.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::directory {

namespace {

base::Writer Request(RequestKind kind) {
  base::Writer writer;
  writer.Integer(static_cast<uint8_t>(kind));
  return writer;
}

}  // namespace

void RemoteDirectory::Ask(const base::Writer& request, base::Duration deadline,
                          std::function<void(const absl::Status&, base::Reader&)> read) {
  caller_.Call(
      server_, request.bytes(), deadline,
      [alive = std::weak_ptr<char>(alive_), server = server_,
       read = std::move(read)](absl::StatusOr<absl::Span<const uint8_t>> reply) {
        if (alive.expired()) return;
        base::Reader reader(reply.ok() ? *reply : absl::Span<const uint8_t>());
        if (reply.ok()) return read(ReadStatus(reader), reader);
        const absl::Status& status = reply.status();
        read(absl::Status(status.code(), absl::StrCat("directory at ", server.ToString(), ": ", status.message())),
             reader);
      });
}

void RemoteDirectory::AskStatus(const base::Writer& request, base::Duration deadline, StatusCallback done) {
  Ask(request, deadline, [done = std::move(done)](const absl::Status& status, base::Reader& reader) {
    done(status.ok() && !reader.Complete() ? NonsenseReply() : status);
  });
}

void RemoteDirectory::Join(const NodeInfo& node, base::Duration lease, base::Duration deadline, JoinCallback done) {
  base::Writer request = Request(RequestKind::kJoin);
  WriteNode(request, node);
  request.Integer(lease.picoseconds());
  Ask(request, deadline, [done = std::move(done)](const absl::Status& status, base::Reader& reader) {
    if (!status.ok()) return done(status);
    const bool renewed = reader.Integer<uint8_t>() != 0;
    if (!reader.Complete()) return done(NonsenseReply());
    done(renewed ? JoinResult::kRenewed : JoinResult::kEntered);
  });
}

void RemoteDirectory::Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline, StatusCallback done) {
  base::Writer request = Request(RequestKind::kLeave);
  request.Text(node);
  request.Integer(incarnation);
  AskStatus(request, deadline, std::move(done));
}

void RemoteDirectory::Announce(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, const NodeId& node,
                               base::Duration deadline, StatusCallback done) {
  base::Writer request = Request(RequestKind::kAnnounce);
  request.Id(id);
  request.Integer(data_size);
  request.Integer(metadata_size);
  request.Text(node);
  AskStatus(request, deadline, std::move(done));
}

void RemoteDirectory::Withdraw(const base::ObjectId& id, const NodeId& node, base::Duration deadline,
                               StatusCallback done) {
  base::Writer request = Request(RequestKind::kWithdraw);
  request.Id(id);
  request.Text(node);
  AskStatus(request, deadline, std::move(done));
}

void RemoteDirectory::Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline,
                             LocateCallback done) {
  if (wait > base::Duration()) return waits_.Locate(id, wait, deadline, std::move(done));
  base::Writer request = Request(RequestKind::kLocate);
  request.Id(id);
  Ask(request, deadline, [done = std::move(done)](const absl::Status& status, base::Reader& reader) {
    if (!status.ok()) return done(status);
    ObjectInfo object = ReadObject(reader);
    if (!reader.Complete() || object.holders.empty()) return done(NonsenseReply());
    done(std::move(object));
  });
}

void RemoteDirectory::Nodes(base::Duration deadline, NodesCallback done) {
  AskNodes(std::make_shared<NodesSoFar>(NodesSoFar{loop_.Now() + deadline, {}, std::move(done)}));
}

// The nodes after those known already, as many as fit one reply.
void RemoteDirectory::AskNodes(std::shared_ptr<NodesSoFar> so_far) {
  base::Writer request = Request(RequestKind::kNodes);
  request.Text(so_far->nodes.empty() ? NodeId() : so_far->nodes.back().id);
  const base::Duration left = so_far->deadline - loop_.Now();
  Ask(request, left, [this, so_far](const absl::Status& status, base::Reader& reader) {
    if (!status.ok()) return so_far->done(status);
    bool more = false;
    if (absl::Status read = ReadNodes(reader, so_far->nodes, &more); !read.ok()) return so_far->done(read);
    if (more) return AskNodes(so_far);
    so_far->done(std::move(so_far->nodes));
  });
}

// Names must rise, or a reply could make us ask for ever.
absl::Status RemoteDirectory::ReadNodes(base::Reader& reader, std::vector<NodeInfo>& nodes, bool* more) {
  *more = reader.Integer<uint8_t>() != 0;
  const uint32_t count = reader.Integer<uint32_t>();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    NodeInfo node = ReadNode(reader);
    const bool rises = nodes.empty() || nodes.back().id < node.id;
    if (!reader.ok() || !CheckNode(node).ok() || !rises || nodes.size() == kMaxNodes) return NonsenseReply();
    nodes.push_back(std::move(node));
  }
  return !reader.Complete() || (*more && count == 0) ? NonsenseReply() : absl::OkStatus();
}

}  // namespace tokamak::directory
