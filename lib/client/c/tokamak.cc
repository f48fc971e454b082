#include "tokamak/tokamak.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/client/c/call.h"
#include "tokamak/client.h"
#include "tokamak/version.h"

using tokamak::Access;
using tokamak::Buffer;
using tokamak::Client;
using tokamak::ClientOptions;
using tokamak::ClusterView;
using tokamak::Event;
using tokamak::Events;
using tokamak::MutableBuffer;
using tokamak::NodeInfo;
using tokamak::NodeNumber;
using tokamak::ObjectId;
using tokamak::ObjectInfo;
using tokamak::ObjectStat;
using tokamak::PutOptions;
using tokamak::Result;
using tokamak::Scope;
using tokamak::Span;
using tokamak::Status;
using tokamak::StatusCode;
using tokamak::Subscription;
using tokamak::Timeout;
using tokamak::ViewedNode;
using tokamak::WaitOptions;
using tokamak::client::c::Guarded;
using tokamak::client::c::IdOf;
using tokamak::client::c::IdsOf;
using tokamak::client::c::LastError;
using tokamak::client::c::NoneNull;
using tokamak::client::c::TimeoutOf;

// ---- what is behind the handles

struct tokamak_writer {
  MutableBuffer buffer;
};

struct tokamak_names {
  std::vector<std::string> names;
};

struct tokamak_nodes {
  std::vector<NodeInfo> nodes;           // the texts
  std::vector<tokamak_node_info> infos;  // point at the texts
};

struct tokamak_cluster {
  ClusterView view;                          // the texts
  std::vector<tokamak_node_number> numbers;  // point at the texts; of all nodes
  std::vector<tokamak_viewed_node> nodes;
};

struct tokamak_subscription {
  Subscription subscription;
  std::deque<Event> events;        // came, and did not fit
  std::vector<std::string> names;  // of the events returned last
};

namespace {

static_assert(TOKAMAK_ID_SIZE == ObjectId::kSize && std::is_trivially_copyable_v<tokamak_id>);
static_assert(TOKAMAK_MAX_WAITED == Client::kMaxWaited);
static_assert(TOKAMAK_SCOPE_ANYWHERE == static_cast<int>(Scope::kAnywhere) &&
              TOKAMAK_SCOPE_LOCAL == static_cast<int>(Scope::kLocal));
static_assert(TOKAMAK_UNAUTHENTICATED == static_cast<int>(StatusCode::kUnauthenticated));
static_assert(TOKAMAK_STATE_ABORTED == static_cast<int>(tokamak::ObjectState::kAborted));
static_assert(TOKAMAK_ORIGIN_PULLED == static_cast<int>(tokamak::Origin::kPulled));
static_assert(TOKAMAK_NODE_SILENT == static_cast<int>(tokamak::NodeState::kSilent));
static_assert(TOKAMAK_EVENT_REFUSED == static_cast<int>(tokamak::EventKind::kRefused));

// Bytes may be NULL if there are none.
Status CheckBytes(const void* data, size_t size) { return size == 0 ? Status() : NoneNull(data); }

Span<const uint8_t> BytesOf(const void* data, size_t size) { return {static_cast<const uint8_t*>(data), size}; }

using tokamak::client::c::ToC;

tokamak_object_info ToC(const ObjectInfo& object) {
  tokamak_object_info c{};
  c.id = ToC(object.id);
  c.state = static_cast<int32_t>(object.state);
  c.origin = static_cast<int32_t>(object.origin);
  c.data_size = object.data_size;
  c.metadata_size = object.metadata_size;
  c.pins = object.pins;
  c.age_microseconds = static_cast<uint64_t>(object.age.count());
  return c;
}

tokamak_node_info ToC(const NodeInfo& node) {
  tokamak_node_info c{};
  c.name = node.name.c_str();
  c.address = node.address.c_str();
  c.device = node.device.c_str();
  c.incarnation = node.incarnation;
  c.capacity = node.capacity;
  c.is_this = node.is_this ? 1 : 0;
  return c;
}

// `numbers` are those of this node.
tokamak_viewed_node ToC(const ViewedNode& node, const tokamak_node_number* numbers) {
  tokamak_viewed_node c{};
  c.info = ToC(node.info);
  c.state = static_cast<int32_t>(node.state);
  c.unheard_microseconds = static_cast<uint64_t>(node.unheard_for.count());
  c.page = node.page.c_str();
  c.numbers = node.numbers.empty() ? nullptr : numbers;
  c.numbers_count = node.numbers.size();
  return c;
}

std::unique_ptr<tokamak_cluster> ToC(ClusterView view) {
  auto c = std::make_unique<tokamak_cluster>();
  c->view = std::move(view);
  for (const ViewedNode& node : c->view.nodes) {
    for (const NodeNumber& number : node.numbers) c->numbers.push_back({number.name.c_str(), number.value, {}});
  }
  size_t before = 0;  // numbers of earlier nodes
  for (const ViewedNode& node : c->view.nodes) {
    c->nodes.push_back(ToC(node, c->numbers.data() + before));
    before += node.numbers.size();
  }
  return c;
}

tokamak_event ToC(const Event& event) {
  tokamak_event c{};
  c.id = ToC(event.id);
  c.kind = static_cast<int32_t>(event.kind);
  c.origin = static_cast<int32_t>(event.origin);
  c.data_size = event.data_size;
  c.metadata_size = event.metadata_size;
  return c;
}

// Takes the options that this library knows from a program that may know fewer or more of them.
template <typename Options>
Status ReadOptions(const Options* given, Options* options) {
  *options = Options{};
  if (given == nullptr) return Status();
  if (given->size < sizeof(size_t)) {
    return Status(StatusCode::kInvalidArgument, "options must begin with their size: {sizeof(options), ...}");
  }
  std::memcpy(static_cast<void*>(options), given, std::min(given->size, sizeof(Options)));
  return Status();
}

Status ReadPutOptions(const tokamak_put_options* given, PutOptions* options) {
  if (given == nullptr) return Status();
  tokamak_put_options read;
  if (Status s = ReadOptions(given, &read); !s.ok()) return s;
  options->timeout = TimeoutOf(read.timeout);
  options->confirmed = read.confirmed != 0;
  if (read.name != nullptr) options->name = read.name;
  return Status();
}

Status ReadClientOptions(const tokamak_client_options* given, ClientOptions* options) {
  tokamak_client_options read;
  if (Status s = ReadOptions(given, &read); !s.ok()) return s;
  if (read.call_timeout != 0) options->call_timeout = TimeoutOf(read.call_timeout);
  if (read.read_only != 0) options->access = Access::kRead;
  if (read.name != nullptr) options->name = read.name;
  options->reconnect = read.reconnect != 0;
  return Status();
}

// Runs a call with a status for each of many objects.
template <typename Call>
tokamak_code ForMany(const tokamak_client* client, const tokamak_id* ids, size_t count, tokamak_code* codes,
                     const Call& call) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client); !s.ok()) return s;
    if (count == 0) return Status();
    if (Status s = NoneNull(ids); !s.ok()) return s;
    const std::vector<Status> statuses = call(IdsOf(ids, count));
    Status first;
    for (size_t i = 0; i < count; ++i) {
      if (codes != nullptr) codes[i] = static_cast<tokamak_code>(statuses[i].code());
      if (first.ok()) first = statuses[i];
    }
    return first;
  });
}

}  // namespace

namespace tokamak::client::c {

std::string& LastError() {
  thread_local std::string last_error;
  return last_error;
}

}  // namespace tokamak::client::c

extern "C" {

// ---- errors

const char* tokamak_code_name(tokamak_code code) { return tokamak::NameOf(static_cast<StatusCode>(code)); }

const char* tokamak_error(void) { return LastError().c_str(); }

const char* tokamak_version(void) { return tokamak::Version(); }

// ---- ids

tokamak_id tokamak_id_of_name(const char* name) { return ToC(ObjectId::FromName(name == nullptr ? "" : name)); }

tokamak_code tokamak_id_of_hex(const char* hex, tokamak_id* id) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(hex, id); !s.ok()) return s;
    const std::optional<ObjectId> read = ObjectId::FromHex(hex);
    if (!read.has_value()) return Status(StatusCode::kInvalidArgument, "an id has 40 hexadecimal digits");
    *id = ToC(*read);
    return Status();
  });
}

tokamak_code tokamak_id_to_hex(const tokamak_id* id, char hex[2 * TOKAMAK_ID_SIZE + 1]) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(id, hex); !s.ok()) return s;
    std::memcpy(hex, IdOf(*id).ToHex().c_str(), 2 * TOKAMAK_ID_SIZE + 1);
    return Status();
  });
}

// ---- clients

tokamak_code tokamak_connect(const char* socket_path, const tokamak_client_options* options, tokamak_client** client) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(socket_path, client); !s.ok()) return s;
    ClientOptions read;
    if (Status s = ReadClientOptions(options, &read); !s.ok()) return s;
    Result<Client> connected = Client::Connect(socket_path, read);
    if (!connected.ok()) return connected.status();
    *client = new tokamak_client{*std::move(connected)};
    return Status();
  });
}

void tokamak_disconnect(tokamak_client* client) { delete client; }

tokamak_code tokamak_status(const tokamak_client* client) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client); !s.ok()) return s;
    return client->client.status();
  });
}

const char* tokamak_node(const tokamak_client* client) {
  return client == nullptr ? "" : client->client.node().c_str();
}

uint64_t tokamak_capacity(const tokamak_client* client) { return client == nullptr ? 0 : client->client.capacity(); }

// ---- putting

tokamak_code tokamak_put(tokamak_client* client, const tokamak_id* id, const void* data, size_t data_size,
                         const void* metadata, size_t metadata_size, const tokamak_put_options* options) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, id); !s.ok()) return s;
    if (Status s = CheckBytes(data, data_size); !s.ok()) return s;
    if (Status s = CheckBytes(metadata, metadata_size); !s.ok()) return s;
    PutOptions read;
    if (Status s = ReadPutOptions(options, &read); !s.ok()) return s;
    return client->client.Put(IdOf(*id), BytesOf(data, data_size), BytesOf(metadata, metadata_size), read);
  });
}

tokamak_code tokamak_create(tokamak_client* client, const tokamak_id* id, uint64_t data_size, const void* metadata,
                            size_t metadata_size, const tokamak_put_options* options, tokamak_writer** writer) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, id, writer); !s.ok()) return s;
    if (Status s = CheckBytes(metadata, metadata_size); !s.ok()) return s;
    PutOptions read;
    if (Status s = ReadPutOptions(options, &read); !s.ok()) return s;
    Result<MutableBuffer> buffer = client->client.Create(IdOf(*id), data_size, BytesOf(metadata, metadata_size), read);
    if (!buffer.ok()) return buffer.status();
    *writer = new tokamak_writer{*std::move(buffer)};
    return Status();
  });
}

void* tokamak_writer_data(tokamak_writer* writer) { return writer == nullptr ? nullptr : writer->buffer.data().data(); }

size_t tokamak_writer_size(const tokamak_writer* writer) {
  return writer == nullptr ? 0 : const_cast<tokamak_writer*>(writer)->buffer.data().size();
}

void* tokamak_writer_metadata(tokamak_writer* writer) {
  return writer == nullptr ? nullptr : writer->buffer.metadata().data();
}

size_t tokamak_writer_metadata_size(const tokamak_writer* writer) {
  return writer == nullptr ? 0 : const_cast<tokamak_writer*>(writer)->buffer.metadata().size();
}

tokamak_code tokamak_seal(tokamak_writer* writer) {
  const tokamak_code code = Guarded([&]() -> Status {
    if (Status s = NoneNull(writer); !s.ok()) return s;
    return writer->buffer.Seal();
  });
  delete writer;
  return code;
}

tokamak_code tokamak_abort(tokamak_writer* writer) {
  if (writer == nullptr) return TOKAMAK_OK;
  const tokamak_code code = Guarded([&]() -> Status { return writer->buffer.Abort(); });
  delete writer;
  return code;
}

// ---- getting

tokamak_code tokamak_get(tokamak_client* client, const tokamak_id* id, int64_t timeout, tokamak_buffer** buffer) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, id, buffer); !s.ok()) return s;
    Result<Buffer> got = client->client.Get(IdOf(*id), TimeoutOf(timeout));
    if (!got.ok()) return got.status();
    *buffer = new tokamak_buffer{*std::move(got)};
    return Status();
  });
}

tokamak_code tokamak_get_many(tokamak_client* client, const tokamak_id* ids, size_t count, int64_t timeout,
                              tokamak_buffer** buffers, tokamak_code* codes) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client); !s.ok()) return s;
    if (count == 0) return Status();
    if (Status s = NoneNull(ids, buffers); !s.ok()) return s;
    // All memory is allocated before the first output is written.
    std::vector<tokamak_buffer*> made;
    made.reserve(count);
    std::vector<Result<Buffer>> got = client->client.Get(IdsOf(ids, count), TimeoutOf(timeout));
    Status first;
    try {
      for (Result<Buffer>& result : got) {
        made.push_back(result.ok() ? new tokamak_buffer{*std::move(result)} : nullptr);
        if (!result.ok() && first.ok()) first = result.status();
      }
    } catch (...) {
      for (tokamak_buffer* const buffer : made) delete buffer;
      throw;
    }
    for (size_t i = 0; i < count; ++i) {
      buffers[i] = made[i];
      if (codes != nullptr) codes[i] = static_cast<tokamak_code>(got[i].status().code());
    }
    return first;
  });
}

const void* tokamak_buffer_data(const tokamak_buffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->buffer.data().data();
}

size_t tokamak_buffer_size(const tokamak_buffer* buffer) {
  return buffer == nullptr ? 0 : buffer->buffer.data().size();
}

const void* tokamak_buffer_metadata(const tokamak_buffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->buffer.metadata().data();
}

size_t tokamak_buffer_metadata_size(const tokamak_buffer* buffer) {
  return buffer == nullptr ? 0 : buffer->buffer.metadata().size();
}

void tokamak_buffer_release(tokamak_buffer* buffer) { delete buffer; }

tokamak_code tokamak_wait(tokamak_client* client, const tokamak_id* ids, size_t count, size_t wanted, int64_t timeout,
                          tokamak_scope scope, uint8_t* ready) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client); !s.ok()) return s;
    if (scope != TOKAMAK_SCOPE_LOCAL && scope != TOKAMAK_SCOPE_ANYWHERE) {
      return Status(StatusCode::kInvalidArgument,
                    "the scope is neither TOKAMAK_SCOPE_LOCAL nor TOKAMAK_SCOPE_ANYWHERE");
    }
    if (count == 0) return Status();
    if (Status s = NoneNull(ids, ready); !s.ok()) return s;
    if (count > TOKAMAK_MAX_WAITED) {
      return Status(StatusCode::kInvalidArgument, "more than TOKAMAK_MAX_WAITED objects cannot be waited for at once");
    }
    WaitOptions options;
    options.scope = static_cast<Scope>(scope);
    const Result<std::vector<bool>> exist = client->client.Wait(IdsOf(ids, count), wanted, TimeoutOf(timeout), options);
    if (!exist.ok()) return exist.status();
    for (size_t i = 0; i < count; ++i) ready[i] = (*exist)[i] ? 1 : 0;
    return Status();
  });
}

// ---- where copies are

tokamak_code tokamak_prefetch(tokamak_client* client, const tokamak_id* ids, size_t count, int64_t timeout,
                              tokamak_code* codes) {
  return ForMany(client, ids, count, codes,
                 [&](const auto& named) { return client->client.Prefetch(named, TimeoutOf(timeout)); });
}

tokamak_code tokamak_pin(tokamak_client* client, const tokamak_id* ids, size_t count, int64_t timeout,
                         tokamak_code* codes) {
  return ForMany(client, ids, count, codes,
                 [&](const auto& named) { return client->client.Pin(named, TimeoutOf(timeout)); });
}

tokamak_code tokamak_unpin(tokamak_client* client, const tokamak_id* id) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, id); !s.ok()) return s;
    return client->client.Unpin(IdOf(*id));
  });
}

tokamak_code tokamak_push(tokamak_client* client, const tokamak_id* ids, size_t count, const char* node,
                          int64_t timeout, tokamak_code* codes) {
  if (node == nullptr) return Guarded([&] { return NoneNull(node); });
  return ForMany(client, ids, count, codes,
                 [&](const auto& named) { return client->client.Push(named, node, TimeoutOf(timeout)); });
}

// ---- looking

tokamak_code tokamak_contains(tokamak_client* client, const tokamak_id* id, int* here) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, id, here); !s.ok()) return s;
    const Result<bool> contained = client->client.Contains(IdOf(*id));
    if (!contained.ok()) return contained.status();
    *here = *contained ? 1 : 0;
    return Status();
  });
}

tokamak_code tokamak_list(tokamak_client* client, const tokamak_id* after, tokamak_object_info* objects,
                          size_t capacity, size_t* count) {
  tokamak_names* names = nullptr;
  const tokamak_code code = tokamak_list_named(client, after, objects, capacity, count, &names);
  delete names;
  return code;
}

tokamak_code tokamak_list_named(tokamak_client* client, const tokamak_id* after, tokamak_object_info* objects,
                                size_t capacity, size_t* count, tokamak_names** names) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, count, names); !s.ok()) return s;
    if (capacity > 0 && objects == nullptr) return NoneNull(objects);
    std::optional<ObjectId> start;
    if (after != nullptr) start = IdOf(*after);
    Result<std::vector<ObjectInfo>> listed = client->client.List(capacity, start);
    if (!listed.ok()) return listed.status();
    auto named = std::make_unique<tokamak_names>();
    const size_t listed_count = std::min(listed->size(), capacity);
    for (size_t i = 0; i < listed_count; ++i) named->names.push_back(std::move((*listed)[i].name));
    for (size_t i = 0; i < listed_count; ++i) objects[i] = ToC((*listed)[i]);
    *count = listed_count;
    *names = named.release();
    return Status();
  });
}

size_t tokamak_names_count(const tokamak_names* names) { return names == nullptr ? 0 : names->names.size(); }

const char* tokamak_names_at(const tokamak_names* names, size_t number) {
  return number < tokamak_names_count(names) ? names->names[number].c_str() : nullptr;
}

void tokamak_names_free(tokamak_names* names) { delete names; }

tokamak_code tokamak_stat(tokamak_client* client, const tokamak_id* id, tokamak_object_info* object, int* here,
                          tokamak_names** holders) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, id); !s.ok()) return s;
    Result<ObjectStat> stat = client->client.Stat(IdOf(*id));
    if (!stat.ok()) return stat.status();
    if (holders != nullptr) *holders = stat->located ? new tokamak_names{std::move(stat->holders)} : nullptr;
    if (object != nullptr) *object = ToC(stat->object);
    if (here != nullptr) *here = stat->here ? 1 : 0;
    return Status();
  });
}

tokamak_code tokamak_get_name(tokamak_client* client, const tokamak_id* id, tokamak_names** name) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, id, name); !s.ok()) return s;
    Result<ObjectStat> stat = client->client.Stat(IdOf(*id));
    if (!stat.ok()) return stat.status();
    *name = new tokamak_names{{std::move(stat->object.name)}};
    return Status();
  });
}

tokamak_code tokamak_hash(tokamak_client* client, const tokamak_id* id, uint64_t* hash) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, id, hash); !s.ok()) return s;
    const Result<uint64_t> hashed = client->client.Hash(IdOf(*id));
    if (!hashed.ok()) return hashed.status();
    *hash = *hashed;
    return Status();
  });
}

// ---- managing

tokamak_code tokamak_delete(tokamak_client* client, const tokamak_id* id) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, id); !s.ok()) return s;
    return client->client.Delete(IdOf(*id));
  });
}

// ---- the cluster

tokamak_code tokamak_get_nodes(tokamak_client* client, tokamak_nodes** nodes) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, nodes); !s.ok()) return s;
    Result<std::vector<NodeInfo>> known = client->client.Nodes();
    if (!known.ok()) return known.status();
    auto listed = std::make_unique<tokamak_nodes>();
    listed->nodes = *std::move(known);
    for (const NodeInfo& node : listed->nodes) listed->infos.push_back(ToC(node));
    *nodes = listed.release();
    return Status();
  });
}

size_t tokamak_nodes_count(const tokamak_nodes* nodes) { return nodes == nullptr ? 0 : nodes->infos.size(); }

const tokamak_node_info* tokamak_nodes_at(const tokamak_nodes* nodes, size_t number) {
  return number < tokamak_nodes_count(nodes) ? &nodes->infos[number] : nullptr;
}

void tokamak_nodes_free(tokamak_nodes* nodes) { delete nodes; }

tokamak_code tokamak_get_cluster(tokamak_client* client, tokamak_cluster** cluster) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, cluster); !s.ok()) return s;
    Result<ClusterView> view = client->client.Cluster();
    if (!view.ok()) return view.status();
    *cluster = ToC(*std::move(view)).release();
    return Status();
  });
}

int tokamak_cluster_located(const tokamak_cluster* cluster) {
  return cluster != nullptr && cluster->view.located ? 1 : 0;
}

size_t tokamak_cluster_count(const tokamak_cluster* cluster) { return cluster == nullptr ? 0 : cluster->nodes.size(); }

const tokamak_viewed_node* tokamak_cluster_at(const tokamak_cluster* cluster, size_t number) {
  return number < tokamak_cluster_count(cluster) ? &cluster->nodes[number] : nullptr;
}

void tokamak_cluster_free(tokamak_cluster* cluster) { delete cluster; }

// ---- events

tokamak_code tokamak_subscribe(tokamak_client* client, tokamak_subscription** subscription) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(client, subscription); !s.ok()) return s;
    Result<Subscription> subscribed = client->client.Subscribe();
    if (!subscribed.ok()) return subscribed.status();
    *subscription = new tokamak_subscription{*std::move(subscribed), {}, {}};
    return Status();
  });
}

tokamak_code tokamak_next_events(tokamak_subscription* subscription, int64_t timeout, tokamak_event* events,
                                 size_t capacity, size_t* count, uint64_t* dropped) {
  return Guarded([&]() -> Status {
    if (Status s = NoneNull(subscription, events, count); !s.ok()) return s;
    if (capacity == 0) return Status(StatusCode::kInvalidArgument, "there is room for no event");
    uint64_t lost = 0;
    if (subscription->events.empty()) {
      Result<Events> next = subscription->subscription.Next(TimeoutOf(timeout));
      if (!next.ok()) return next.status();
      lost = next->dropped;
      subscription->events.assign(next->events.begin(), next->events.end());
    }
    *count = std::min(capacity, subscription->events.size());
    subscription->names.clear();
    for (size_t i = 0; i < *count; ++i) {
      events[i] = ToC(subscription->events.front());
      subscription->names.push_back(std::move(subscription->events.front().name));
      subscription->events.pop_front();
    }
    if (dropped != nullptr) *dropped = lost;
    return Status();
  });
}

const char* tokamak_event_name(const tokamak_subscription* subscription, size_t number) {
  if (subscription == nullptr || number >= subscription->names.size()) return nullptr;
  return subscription->names[number].c_str();
}

int tokamak_subscription_descriptor(const tokamak_subscription* subscription) {
  return subscription == nullptr ? -1 : subscription->subscription.descriptor();
}

void tokamak_unsubscribe(tokamak_subscription* subscription) { delete subscription; }

}  // extern "C"
