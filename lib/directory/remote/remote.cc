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

// How long a Locate may keep its place, as the `asked`th to have one, when `others` wait for theirs: half of the places are for
// long waits, the others change hands quickly enough that all come to their turn.
base::Duration TurnFor(uint32_t asked, size_t others) {
  if (asked <= kMaxWaitingAsked / 2) return kMaxRemoteWait;
  if (others == 0) return base::Seconds(1);
  return others < 512 ? base::Milliseconds(100) : base::Milliseconds(10);
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
  // The first time without waiting: what exists is found at once, whoever else waits.
  AskWhere({id, loop_.Now() + wait, loop_.Now() + deadline, std::move(done)}, base::Duration());
}

void RemoteDirectory::AskWhere(Locating locating, base::Duration wait) {
  base::Writer request = Request(RequestKind::kLocate);
  request.Id(locating.id);
  request.Integer(wait.picoseconds());
  Ask(request, locating.deadline - loop_.Now(),
      [this, locating](const absl::Status& status, base::Reader& reader) { Located(locating, status, reader); });
}

void RemoteDirectory::Located(Locating locating, const absl::Status& status, base::Reader& reader) {
  if (locating.holds_place) --waiting_asked_;
  locating.holds_place = false;
  const LocateCallback done = locating.done;
  if (absl::IsNotFound(status) && loop_.Now() < locating.wait_end) {
    waiting_.push_back(std::move(locating));
    return AskForWaiting();
  }
  AskForWaiting();
  if (!status.ok()) return done(status);
  ObjectInfo object = ReadObject(reader);
  if (!reader.Complete() || object.holders.empty()) return done(NonsenseReply());
  done(std::move(object));
}

void RemoteDirectory::AskForWaiting() {
  while (waiting_asked_ < kMaxWaitingAsked && !waiting_.empty()) {
    Locating locating = std::move(waiting_.front());
    waiting_.pop_front();
    locating.holds_place = true;
    ++waiting_asked_;
    const base::Duration left = std::max(locating.wait_end - loop_.Now(), base::Duration());
    AskWhere(std::move(locating), std::min(left, TurnFor(waiting_asked_, waiting_.size())));
  }
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
