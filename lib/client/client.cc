#include "lib/client/client.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/client/connection.h"
#include "lib/client/deadline.h"
#include "lib/os/processors.h"

namespace tokamak::client {
namespace {

size_t SizeOf(const PutObject& object) { return object.data.size() + object.metadata.size(); }

absl::Status WrongCount() { return absl::InternalError("the daemon answered for another number of objects"); }

// Whoever waits for events, which may be long in coming, does not spin.
base::Duration SpinOf(const ClientOptions& options) {
  if (options.spin.has_value()) return *options.spin;
  const bool plenty = os::AllowedProcessors().size() >= ClientOptions::kSpinningProcessors;
  return plenty ? ClientOptions::kSpin : base::Duration();
}

}  // namespace

absl::StatusOr<Client> Client::Connect(const std::string& socket_path, const ClientOptions& options) {
  HelloRequest hello;
  hello.access = options.access;
  hello.name = options.name.substr(0, kMaxName);
  absl::StatusOr<std::shared_ptr<Connection>> connection =
      Connection::Open(socket_path, hello, options.call_timeout, SpinOf(options));
  if (!connection.ok()) return connection.status();
  return Client(socket_path, options, *std::move(connection));
}

Client::Client(std::string socket_path, ClientOptions options, std::shared_ptr<Connection> connection)
    : socket_path_(std::move(socket_path)), options_(std::move(options)), connection_(std::move(connection)) {}

template <typename R>
absl::StatusOr<typename R::Reply> Client::CallAbout(const base::ObjectId& id) {
  R request;
  request.id = id;
  return connection_->Call(request, connection_->CallDeadline());
}

absl::StatusOr<MutableBuffer> Client::Create(const base::ObjectId& id, uint64_t data_size,
                                             absl::Span<const uint8_t> metadata, const PutOptions& options) {
  if (options_.access == Access::kRead) {
    return absl::FailedPreconditionError("this client only reads: connect with Access::kReadAndCreate to create");
  }
  if (!options.claim && data_size <= kMaxInlineBytes && metadata.size() <= kMaxInlineBytes - data_size) {
    return MutableBuffer(connection_, id, data_size, metadata, options.timeout, options.confirmed);
  }
  CreateRequest create;
  create.id = id;
  create.data_size = data_size;
  create.metadata_size = metadata.size();
  create.timeout_microseconds = TimeoutMicroseconds(options.timeout);
  create.confirmed = options.confirmed;
  AbortRequest abort;
  abort.id = id;
  const absl::StatusOr<CreateReply> reply =
      connection_->Call(create, connection_->AnswerDeadline(options.timeout),
                        [abort](absl::Span<const uint8_t>) { return Encode(0, abort); });
  if (!reply.ok()) return reply.status();
  if (reply->location.data_size != data_size || reply->location.metadata_size != metadata.size()) {
    connection_->Tell(abort);
    return absl::InternalError("the daemon reserved another size than it was asked for");
  }
  const absl::StatusOr<absl::Span<uint8_t>> memory = connection_->WritableMemory(reply->location);
  if (!memory.ok()) return memory.status();
  if (!metadata.empty()) std::memcpy(memory->data() + data_size, metadata.data(), metadata.size());
  return MutableBuffer(connection_, id, memory->first(data_size), memory->subspan(data_size), options.confirmed);
}

absl::Status Client::Put(const base::ObjectId& id, absl::Span<const uint8_t> data, absl::Span<const uint8_t> metadata,
                         const PutOptions& options) {
  const PutObject object{id, data, metadata};
  return Put(absl::MakeConstSpan(&object, 1), options).front();
}

std::vector<absl::Status> Client::Put(absl::Span<const PutObject> objects, const PutOptions& options) {
  std::vector<absl::Status> statuses(objects.size());
  std::vector<size_t> batch;
  size_t batch_bytes = 0;
  for (size_t i = 0; i < objects.size(); ++i) {
    const size_t size = SizeOf(objects[i]);
    if (size > kMaxInlineBytes) {
      statuses[i] = PutLarge(objects[i], options);
      continue;
    }
    if (batch.size() == kMaxIds || batch_bytes + size > kMaxInlineBytes) {
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

absl::Status Client::PutLarge(const PutObject& object, const PutOptions& options) {
  absl::StatusOr<MutableBuffer> buffer = Create(object.id, object.data.size(), object.metadata, options);
  if (!buffer.ok()) return buffer.status();
  if (!object.data.empty()) std::memcpy(buffer->data().data(), object.data.data(), object.data.size());
  return buffer->Seal();
}

void Client::PutSmall(absl::Span<const PutObject> objects, absl::Span<const size_t> which, const PutOptions& options,
                      std::vector<absl::Status>& statuses) {
  CreateAndSealRequest request;
  request.timeout_microseconds = TimeoutMicroseconds(options.timeout);
  request.confirmed = options.confirmed;
  for (const size_t i : which) request.objects.push_back(objects[i]);
  const absl::StatusOr<CreateAndSealReply> reply =
      connection_->Call(request, connection_->AnswerDeadline(options.timeout));
  const bool counted = reply.ok() && reply->outcomes.size() == which.size();
  for (size_t k = 0; k < which.size(); ++k) {
    absl::Status& status = statuses[which[k]];
    if (counted) {
      status = reply->outcomes[k].ToStatus();
    } else {
      status = reply.ok() ? WrongCount() : reply.status();
    }
  }
}

absl::StatusOr<Buffer> Client::Get(const base::ObjectId& id, base::Duration timeout, Protocol protocol) {
  return std::move(GetSome({id}, timeout, protocol).front());
}

std::vector<absl::StatusOr<Buffer>> Client::Get(absl::Span<const base::ObjectId> ids, base::Duration timeout,
                                                Protocol protocol) {
  const Deadline deadline = Deadline::After(timeout);
  std::vector<absl::StatusOr<Buffer>> buffers;
  buffers.reserve(ids.size());
  for (; !ids.empty(); ids.remove_prefix(std::min(ids.size(), kMaxIds))) {
    const base::Duration left = buffers.empty() ? timeout : deadline.remaining();
    for (absl::StatusOr<Buffer>& buffer : GetSome(ids.subspan(0, kMaxIds), left, protocol)) {
      buffers.push_back(std::move(buffer));
    }
  }
  return buffers;
}

std::vector<absl::StatusOr<Buffer>> Client::GetSome(absl::Span<const base::ObjectId> ids, base::Duration timeout,
                                                    Protocol protocol) {
  GetRequest get;
  get.timeout_microseconds = TimeoutMicroseconds(timeout);
  get.protocol = protocol;
  get.ids.assign(ids.begin(), ids.end());
  const absl::StatusOr<GetReply> reply =
      connection_->Call(get, connection_->AnswerDeadline(timeout),
                        [asked = get.ids](absl::Span<const uint8_t> late) { return ReleaseOf(asked, late); });

  std::vector<absl::StatusOr<Buffer>> buffers;
  buffers.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!reply.ok() || reply->entries.size() != ids.size()) {
      buffers.emplace_back(reply.ok() ? WrongCount() : reply.status());
      continue;
    }
    buffers.push_back(BufferOf(connection_, ids[i], reply->entries[i]));
  }
  return buffers;
}

absl::StatusOr<Buffer> Client::BufferOf(const std::shared_ptr<Connection>& connection, const base::ObjectId& id,
                                        const GetEntry& entry) {
  if (entry.outcome.code != absl::StatusCode::kOk) return entry.outcome.ToStatus();
  const absl::StatusOr<absl::Span<const uint8_t>> memory = connection->ReadableMemory(entry.location);
  if (!memory.ok()) return memory.status();
  return Buffer(connection, id, memory->first(entry.location.data_size), memory->subspan(entry.location.data_size));
}

std::vector<uint8_t> Client::ReleaseOf(absl::Span<const base::ObjectId> asked, absl::Span<const uint8_t> late) {
  const absl::StatusOr<GetReply> reply = DecodeBody<GetReply>(late);
  ReleaseRequest release;
  for (size_t i = 0; reply.ok() && i < std::min(asked.size(), reply->entries.size()); ++i) {
    if (reply->entries[i].outcome.code == absl::StatusCode::kOk) release.ids.push_back(asked[i]);
  }
  return release.ids.empty() ? std::vector<uint8_t>() : Encode(0, release);
}

absl::StatusOr<std::vector<bool>> Client::Wait(absl::Span<const base::ObjectId> ids, size_t count,
                                               base::Duration timeout, Scope scope) {
  if (ids.size() > kMaxIds) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", kMaxIds, " objects can be waited for at once"));
  }
  WaitRequest wait;
  wait.timeout_microseconds = TimeoutMicroseconds(timeout);
  wait.count = static_cast<uint32_t>(std::min(count, ids.size()));
  wait.scope = scope;
  wait.ids.assign(ids.begin(), ids.end());
  const absl::StatusOr<WaitReply> reply = connection_->Call(wait, connection_->AnswerDeadline(timeout));
  if (!reply.ok()) return reply.status();
  if (reply->ready.size() != ids.size()) return WrongCount();
  return std::vector<bool>(reply->ready.begin(), reply->ready.end());
}

absl::StatusOr<bool> Client::Contains(const base::ObjectId& id) {
  const absl::StatusOr<ContainsReply> reply = CallAbout<ContainsRequest>(id);
  if (!reply.ok()) return reply.status();
  return reply->here;
}

absl::StatusOr<std::vector<ObjectEntry>> Client::List(size_t limit, const absl::optional<base::ObjectId>& after) {
  std::vector<ObjectEntry> objects;
  ListRequest list;
  list.continued = after.has_value();
  list.after = after.value_or(base::ObjectId());
  while (objects.size() < limit) {
    list.limit = static_cast<uint32_t>(std::min(limit - objects.size(), kMaxListed));
    const absl::StatusOr<ListReply> reply = connection_->Call(list, connection_->CallDeadline());
    if (!reply.ok()) return reply.status();
    objects.insert(objects.end(), reply->objects.begin(), reply->objects.end());
    if (!reply->more || reply->objects.empty()) break;
    list.continued = true;
    list.after = objects.back().id;
  }
  return objects;
}

absl::StatusOr<StatReply> Client::Stat(const base::ObjectId& id) { return CallAbout<StatRequest>(id); }

absl::StatusOr<uint64_t> Client::Hash(const base::ObjectId& id) {
  const absl::StatusOr<HashReply> reply = CallAbout<HashRequest>(id);
  if (!reply.ok()) return reply.status();
  return reply->hash;
}

absl::StatusOr<Subscription> Client::Subscribe() {
  HelloRequest hello;
  hello.access = Access::kRead;
  hello.name = absl::StrCat(options_.name, " (subscription)").substr(0, kMaxName);
  absl::StatusOr<std::shared_ptr<Connection>> connection =
      Connection::Open(socket_path_, hello, options_.call_timeout, base::Duration());
  if (!connection.ok()) return connection.status();
  const auto reply = (*connection)->Call(SubscribeRequest(), (*connection)->CallDeadline());
  if (!reply.ok()) return reply.status();
  return Subscription(*std::move(connection));
}

absl::Status Client::Delete(const base::ObjectId& id) { return CallAbout<DeleteRequest>(id).status(); }

absl::Status Client::Touch(const base::ObjectId& id) { return CallAbout<TouchRequest>(id).status(); }

absl::StatusOr<EvictReply> Client::Evict(uint64_t bytes) {
  EvictRequest evict;
  evict.bytes = bytes;
  return connection_->Call(evict, connection_->CallDeadline());
}

absl::StatusOr<std::vector<NodeEntry>> Client::Nodes() {
  absl::StatusOr<NodesReply> reply = connection_->Call(NodesRequest(), connection_->CallDeadline());
  if (!reply.ok()) return reply.status();
  return std::move(reply->nodes);
}

absl::StatusOr<NodeStatsReply> Client::NodeStats() {
  return connection_->Call(NodeStatsRequest(), connection_->CallDeadline());
}

const std::string& Client::node() const { return connection_->welcome().node; }

uint64_t Client::capacity() const { return connection_->welcome().capacity; }

absl::Status Client::status() const { return connection_->status(); }

absl::StatusOr<EventsNotification> Subscription::Next(base::Duration timeout) {
  return connection_->NextEvents(Deadline::After(timeout));
}

}  // namespace tokamak::client
