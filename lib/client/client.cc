#include "tokamak/client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/text/object_name.h"
#include "lib/client/buffer_maker.h"
#include "lib/client/convert.h"
#include "lib/client/daemon_connection.h"
#include "lib/client/deadline.h"
#include "lib/client/line.h"
#include "lib/os/process/processors.h"

namespace tokamak {

using client::BufferMaker;
using client::DaemonConnection;
using client::FromPublic;
using client::Line;
using client::TimeoutMicroseconds;
using client::ToPublic;

namespace {

static_assert(Client::kMaxWaited == client::kMaxIds, "one request takes them");
static_assert(Client::kMaxTogether == client::kMaxIds, "one request takes them");
static_assert(PutOptions::kSmall == client::kMaxInlineBytes, "one message takes it");
static_assert(PutOptions::kMaxName == client::kMaxObjectName, "a message takes it");

size_t SizeOf(const PutObject& object) { return object.data.size() + object.metadata.size(); }

std::string_view NameOf(const PutObject& object, const PutOptions& options) {
  return object.name.empty() ? std::string_view(options.name) : object.name;
}

client::InlineObject ToWire(const PutObject& object, std::string_view name) {
  return {object.id, object.data, object.metadata, {name.data(), name.size()}};
}

// Checked here: of many only the wrongly named one fails.
Status CheckName(const ObjectId& id, std::string_view name) {
  return ToPublic(base::ObjectName::Check(id, {name.data(), name.size()}));
}

// Subscriptions do not spin: their events may be far apart.
base::Duration SpinOf(const ClientOptions& options) {
  if (options.spin.has_value()) return FromPublic(*options.spin);
  const bool plenty = os::AllowedProcessors().size() >= ClientOptions::kSpinningProcessors;
  return plenty ? FromPublic(ClientOptions::kSpin) : base::Duration();
}

template <typename R>
absl::StatusOr<typename R::Reply> CallAbout(Line& line, const ObjectId& id) {
  R request;
  request.id = id;
  return line.Call(request, line.CallDeadline());
}

// Makes a call about many objects, in requests of at most `most`; returns an answer for each, in
// their order.
template <typename R>
std::vector<Status> CallInParts(Line& line, R request, Span<const ObjectId> ids, size_t most, Timeout timeout) {
  const client::Deadline deadline = client::Deadline::After(FromPublic(timeout));
  std::vector<Status> statuses;
  statuses.reserve(ids.size());
  while (!ids.empty()) {
    const Span<const ObjectId> some = ids.first(std::min(ids.size(), most));
    const base::Duration left = statuses.empty() ? FromPublic(timeout) : deadline.remaining();
    request.timeout_microseconds = TimeoutMicroseconds(left);
    request.ids.assign(some.begin(), some.end());
    const absl::StatusOr<typename R::Reply> reply = line.Call(request, line.AnswerDeadline(left));
    const bool counted = reply.ok() && reply->outcomes.size() == some.size();
    for (size_t i = 0; i < some.size(); ++i) {
      if (counted) {
        statuses.push_back(ToPublic(reply->outcomes[i].ToStatus()));
      } else {
        statuses.push_back(ToPublic(reply.ok() ? DaemonConnection::WrongCount() : reply.status()));
      }
    }
    ids = ids.subspan(some.size());
  }
  return statuses;
}

}  // namespace

Result<Client> Client::Connect(const std::string& socket_path, const ClientOptions& options) {
  DaemonConnection::Options connection;
  connection.hello.access = options.access;
  connection.hello.name = options.name.substr(0, client::kMaxName);
  connection.hello.quota = options.quota;
  connection.call_timeout = FromPublic(options.call_timeout);
  connection.spin = SpinOf(options);
  connection.reconnects = options.reconnect;
  absl::StatusOr<std::shared_ptr<Line>> line = Line::Open(socket_path, std::move(connection));
  if (!line.ok()) return ToPublic(line.status());
  return Client(*std::move(line));
}

// ---- putting

bool PutOptions::MayBeKept(std::string_view name) { return base::ObjectName::MayBeKept({name.data(), name.size()}); }

Result<MutableBuffer> Client::Create(const ObjectId& id, uint64_t data_size, Span<const uint8_t> metadata,
                                     const PutOptions& options) {
  if (line_->options().hello.access == Access::kRead) {
    return Status(StatusCode::kFailedPrecondition,
                  "this client only reads: connect with Access::kReadAndCreate to create");
  }
  if (Status s = CheckName(id, options.name); !s.ok()) return s;
  const base::Duration timeout = FromPublic(options.timeout);
  if (!options.claim && data_size <= PutOptions::kSmall && metadata.size() <= PutOptions::kSmall - data_size) {
    return BufferMaker::Unclaimed(line_, id, data_size, metadata, timeout, options.confirmed, options.name);
  }
  client::CreateRequest create;
  create.id = id;
  create.data_size = data_size;
  create.metadata_size = metadata.size();
  create.timeout_microseconds = TimeoutMicroseconds(timeout);
  create.confirmed = options.confirmed;
  create.name = options.name;
  client::AbortRequest abort;
  abort.id = id;
  std::shared_ptr<DaemonConnection> connection;
  const absl::StatusOr<client::CreateReply> reply = line_->Call(
      create, line_->AnswerDeadline(timeout), [abort](absl::Span<const uint8_t>) { return client::Encode(0, abort); },
      options.interrupt, &connection);
  if (!reply.ok()) return ToPublic(reply.status());
  if (reply->location.data_size != data_size || reply->location.metadata_size != metadata.size()) {
    connection->Tell(abort);
    return Status(StatusCode::kInternal, "the daemon reserved another size than it was asked for");
  }
  const absl::StatusOr<absl::Span<uint8_t>> memory = connection->WritableMemory(reply->location);
  if (!memory.ok()) return ToPublic(memory.status());
  if (!metadata.empty()) std::memcpy(memory->data() + data_size, metadata.data(), metadata.size());
  return BufferMaker::Claimed(std::move(connection), id, *memory, data_size, options.confirmed);
}

Status Client::Put(const ObjectId& id, Span<const uint8_t> data, Span<const uint8_t> metadata,
                   const PutOptions& options) {
  const PutObject object{id, data, metadata};
  return std::move(Put(Span<const PutObject>(&object, 1), options).front());
}

std::vector<Status> Client::Put(Span<const PutObject> objects, const PutOptions& options) {
  std::vector<Status> statuses(objects.size());
  std::vector<size_t> batch;
  size_t batch_bytes = 0;
  for (size_t i = 0; i < objects.size(); ++i) {
    const size_t size = SizeOf(objects[i]);
    if (size > PutOptions::kSmall) {
      statuses[i] = PutLarge(objects[i], options);
      continue;
    }
    statuses[i] = CheckName(objects[i].id, NameOf(objects[i], options));
    if (!statuses[i].ok()) continue;
    if (batch.size() == client::kMaxIds || batch_bytes + size > PutOptions::kSmall) {
      PutSmall(objects, batch, options, statuses);
      batch.clear();
      batch_bytes = 0;
    }
    batch.push_back(i);
    batch_bytes += size;
  }
  if (!batch.empty()) PutSmall(objects, batch, options, statuses);
  return statuses;
}

Status Client::PutLarge(const PutObject& object, const PutOptions& options) {
  PutOptions named = options;
  named.name = std::string(NameOf(object, options));
  Result<MutableBuffer> buffer = Create(object.id, object.data.size(), object.metadata, named);
  if (!buffer.ok()) return buffer.status();
  if (!object.data.empty()) std::memcpy(buffer->data().data(), object.data.data(), object.data.size());
  return buffer->Seal();
}

void Client::PutSmall(Span<const PutObject> objects, const std::vector<size_t>& which, const PutOptions& options,
                      std::vector<Status>& statuses) {
  const base::Duration timeout = FromPublic(options.timeout);
  client::CreateAndSealRequest request;
  request.timeout_microseconds = TimeoutMicroseconds(timeout);
  request.confirmed = options.confirmed;
  for (const size_t i : which) request.objects.push_back(ToWire(objects[i], NameOf(objects[i], options)));
  const absl::StatusOr<client::CreateAndSealReply> reply =
      line_->Call(request, line_->AnswerDeadline(timeout), /*late=*/nullptr, options.interrupt);
  const bool counted = reply.ok() && reply->outcomes.size() == which.size();
  for (size_t k = 0; k < which.size(); ++k) {
    if (counted) {
      statuses[which[k]] = ToPublic(reply->outcomes[k].ToStatus());
    } else {
      statuses[which[k]] = ToPublic(reply.ok() ? DaemonConnection::WrongCount() : reply.status());
    }
  }
}

Status Client::PutTogether(Span<const PutObject> objects) {
  size_t size = 0;
  for (const PutObject& object : objects) size += SizeOf(object);
  if (objects.size() > kMaxTogether || size > PutOptions::kSmall) {
    return Status(StatusCode::kInvalidArgument,
                  absl::StrCat(objects.size(), " objects of ", size, " bytes are too many to be put together (at most ",
                               kMaxTogether, " and ", PutOptions::kSmall, "): put fewer or smaller ones"));
  }
  client::CreateAndSealRequest request;
  request.together = true;
  for (const PutObject& object : objects) {
    if (Status s = CheckName(object.id, object.name); !s.ok()) return s;
    request.objects.push_back(ToWire(object, object.name));
  }
  return ToPublic(line_->Call(request, line_->CallDeadline()).status());
}

// ---- getting

Result<Buffer> Client::Get(const ObjectId& id, Timeout timeout, const GetOptions& options) {
  return std::move(GetSome({id}, timeout, options).front());
}

std::vector<Result<Buffer>> Client::Get(Span<const ObjectId> ids, Timeout timeout, const GetOptions& options) {
  const client::Deadline deadline = client::Deadline::After(FromPublic(timeout));
  std::vector<Result<Buffer>> buffers;
  buffers.reserve(ids.size());
  while (!ids.empty()) {
    const size_t count = std::min(ids.size(), client::kMaxIds);
    const Timeout left = buffers.empty() ? timeout : std::chrono::nanoseconds(deadline.remaining().nanoseconds());
    for (Result<Buffer>& buffer : GetSome(ids.first(count), left, options)) buffers.push_back(std::move(buffer));
    ids = ids.subspan(count);
  }
  return buffers;
}

std::vector<Result<Buffer>> Client::GetSome(Span<const ObjectId> ids, Timeout timeout, const GetOptions& options) {
  client::GetRequest get;
  get.timeout_microseconds = TimeoutMicroseconds(FromPublic(timeout));
  get.protocol = options.protocol;
  get.ids.assign(ids.begin(), ids.end());
  std::shared_ptr<DaemonConnection> connection;
  const absl::StatusOr<client::GetReply> reply = line_->Call(
      get, line_->AnswerDeadline(FromPublic(timeout)),
      [asked = get.ids](absl::Span<const uint8_t> late) { return BufferMaker::ReleaseOf(asked, late); },
      options.interrupt, &connection);

  std::vector<Result<Buffer>> buffers;
  buffers.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!reply.ok() || reply->entries.size() != ids.size()) {
      buffers.emplace_back(ToPublic(reply.ok() ? DaemonConnection::WrongCount() : reply.status()));
      continue;
    }
    buffers.push_back(BufferMaker::Of(connection, ids[i], reply->entries[i]));
  }
  return buffers;
}

std::vector<Status> Client::Prefetch(Span<const ObjectId> ids, Timeout timeout) { return Bring(ids, timeout, false); }

std::vector<Status> Client::Pin(Span<const ObjectId> ids, Timeout timeout) { return Bring(ids, timeout, true); }

std::vector<Status> Client::Bring(Span<const ObjectId> ids, Timeout timeout, bool pin) {
  client::PrefetchRequest prefetch;
  prefetch.pin = pin;
  return CallInParts(*line_, prefetch, ids, client::kMaxIds, timeout);
}

std::vector<Status> Client::Push(Span<const ObjectId> ids, const std::string& node, Timeout timeout) {
  if (node.size() > client::kMaxName) {
    return std::vector<Status>(ids.size(), Status(StatusCode::kNotFound, "no node has a name as long as this"));
  }
  client::PushRequest push;
  push.node = node;
  return CallInParts(*line_, push, ids, client::kMaxPushed, timeout);
}

Status Client::Unpin(const ObjectId& id) { return ToPublic(CallAbout<client::UnpinRequest>(*line_, id).status()); }

Result<std::vector<bool>> Client::Wait(Span<const ObjectId> ids, size_t count, Timeout timeout,
                                       const WaitOptions& options) {
  if (ids.size() > kMaxWaited) {
    return Status(StatusCode::kInvalidArgument,
                  absl::StrCat("at most ", kMaxWaited, " objects can be waited for at once"));
  }
  client::WaitRequest wait;
  wait.timeout_microseconds = TimeoutMicroseconds(FromPublic(timeout));
  wait.count = static_cast<uint32_t>(std::min(count, ids.size()));
  wait.scope = options.scope;
  wait.ids.assign(ids.begin(), ids.end());
  const absl::StatusOr<client::WaitReply> reply =
      line_->Call(wait, line_->AnswerDeadline(FromPublic(timeout)), /*late=*/nullptr, options.interrupt);
  if (!reply.ok()) return ToPublic(reply.status());
  if (reply->ready.size() != ids.size()) return ToPublic(DaemonConnection::WrongCount());
  return std::vector<bool>(reply->ready.begin(), reply->ready.end());
}

// ---- looking

Result<bool> Client::Contains(const ObjectId& id) {
  const absl::StatusOr<client::ContainsReply> reply = CallAbout<client::ContainsRequest>(*line_, id);
  if (!reply.ok()) return ToPublic(reply.status());
  return reply->here;
}

Result<std::vector<ObjectInfo>> Client::List(size_t limit, const std::optional<ObjectId>& after) {
  std::vector<ObjectInfo> objects;
  client::ListRequest list;
  list.continued = after.has_value();
  list.after = after.value_or(ObjectId());
  while (objects.size() < limit) {
    list.limit = static_cast<uint32_t>(std::min(limit - objects.size(), client::kMaxListed));
    absl::StatusOr<client::ListReply> reply = line_->Call(list, line_->CallDeadline());
    if (!reply.ok()) return ToPublic(reply.status());
    for (client::ObjectEntry& entry : reply->objects) {
      if (list.continued && !(list.after < entry.id)) {  // otherwise it may have no end
        return ToPublic(absl::InternalError("the daemon sent a list that is not in the order of ids"));
      }
      list.continued = true;
      list.after = entry.id;
      objects.push_back(ToPublic(std::move(entry)));
    }
    if (!reply->more || reply->objects.empty()) break;
  }
  return objects;
}

Result<ObjectStat> Client::Stat(const ObjectId& id) {
  absl::StatusOr<client::StatReply> reply = CallAbout<client::StatRequest>(*line_, id);
  if (!reply.ok()) return ToPublic(reply.status());
  return ToPublic(*std::move(reply));
}

Result<PullProgress> Client::Progress(const ObjectId& id) {
  const absl::StatusOr<client::ProgressReply> reply = CallAbout<client::ProgressRequest>(*line_, id);
  if (!reply.ok()) return ToPublic(reply.status());
  return PullProgress{reply->moved, reply->total};
}

Result<uint64_t> Client::Hash(const ObjectId& id) {
  const absl::StatusOr<client::HashReply> reply = CallAbout<client::HashRequest>(*line_, id);
  if (!reply.ok()) return ToPublic(reply.status());
  return reply->hash;
}

Result<Subscription> Client::Subscribe(const SubscribeOptions& options) {
  DaemonConnection::Options own;
  own.hello.access = Access::kRead;
  own.hello.name = absl::StrCat(line_->options().hello.name, " (subscription)").substr(0, client::kMaxName);
  own.call_timeout = line_->options().call_timeout;
  absl::StatusOr<std::shared_ptr<DaemonConnection>> connection =
      DaemonConnection::Open(line_->path(), own, line_->CallDeadline());
  if (!connection.ok()) return ToPublic(connection.status());
  client::SubscribeRequest subscribe;
  subscribe.existing = options.existing;
  const auto reply = (*connection)->Call(subscribe, (*connection)->CallDeadline());
  if (!reply.ok()) return ToPublic(reply.status());
  return Subscription(*std::move(connection));
}

// ---- managing

Status Client::Delete(const ObjectId& id) { return ToPublic(CallAbout<client::DeleteRequest>(*line_, id).status()); }

Status Client::Touch(const ObjectId& id) { return ToPublic(CallAbout<client::TouchRequest>(*line_, id).status()); }

Result<Evicted> Client::Evict(uint64_t bytes) {
  client::EvictRequest evict;
  evict.bytes = bytes;
  const absl::StatusOr<client::EvictReply> reply = line_->Call(evict, line_->CallDeadline());
  if (!reply.ok()) return ToPublic(reply.status());
  return Evicted{reply->objects, reply->bytes};
}

// ---- the cluster

Result<std::vector<NodeInfo>> Client::Nodes() {
  absl::StatusOr<client::NodesReply> reply = line_->Call(client::NodesRequest(), line_->CallDeadline());
  if (!reply.ok()) return ToPublic(reply.status());
  std::vector<NodeInfo> nodes;
  nodes.reserve(reply->nodes.size());
  for (client::NodeEntry& entry : reply->nodes) nodes.push_back(ToPublic(std::move(entry)));
  return nodes;
}

Result<NodeStats> Client::NodeStats() {
  absl::StatusOr<client::NodeStatsReply> reply = line_->Call(client::NodeStatsRequest(), line_->CallDeadline());
  if (!reply.ok()) return ToPublic(reply.status());
  return ToPublic(*std::move(reply));
}

Result<ClusterView> Client::Cluster() {
  ClusterView view;
  client::ClusterRequest request;
  while (true) {
    absl::StatusOr<client::ClusterReply> reply = line_->Call(request, line_->CallDeadline());
    if (!reply.ok()) return ToPublic(reply.status());
    view.located = reply->located;
    for (client::ViewedEntry& entry : reply->nodes) view.nodes.push_back(ToPublic(std::move(entry)));
    const bool goes_on = reply->more && !view.nodes.empty() && view.nodes.back().info.name > request.after;
    if (!goes_on) return view;
    request.after = view.nodes.back().info.name;
  }
}

const std::string& Client::node() const { return line_->node(); }

uint64_t Client::capacity() const { return line_->connection()->welcome().capacity; }

Status Client::status() const { return ToPublic(line_->connection()->status()); }

}  // namespace tokamak
