#include "tests/client/fake_daemon.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::client {
namespace {

os::SharedMemory MakeMemory() {
  absl::StatusOr<os::SharedMemory> memory = os::SharedMemory::Create("fake-daemon", FakeDaemon::kCapacity);
  CHECK(memory.ok()) << memory.status();
  return *std::move(memory);
}

// The answer of a call that either worked or did not.
template <typename R>
FakeDaemon::Bytes Done(const Header& header, const absl::Status& status) {
  return status.ok() ? Encode(header.request_id, typename R::Reply()) : EncodeError(header, status);
}

ObjectEntry EntryOf(const store::StoredObject& info) {
  ObjectEntry entry;
  entry.id = info.id;
  entry.data_size = info.location.data_size;
  entry.metadata_size = info.location.metadata_size;
  entry.pins = info.pins;
  entry.state = static_cast<ObjectState>(info.state);
  entry.origin = static_cast<Origin>(info.origin);
  entry.name = std::string(info.name.text());
  return entry;
}

Location Wire(const store::Location& location) { return {location.offset, location.data_size, location.metadata_size}; }

}  // namespace

FakeDaemon::FakeDaemon() : path_(folder_.Path("socket")), memory_(MakeMemory()), thread_({"fake"}) {
  const std::string again = absl::StrCat("/proc/self/fd/", memory_.descriptor());
  read_only_ = os::FileDescriptor(open(again.c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(read_only_.valid());
  mapping_ = *os::SharedMemory::Attach(memory_.descriptor(), kCapacity, /*writable=*/true);
  thread_.CallOn([&] {
    store::Options options;
    options.cache = true;
    store_ = std::make_unique<store::Store>(absl::MakeSpan(mapping_.data(), mapping_.size()), options, thread_.loop(),
                                            trace_);
    Listen();
  });
}

void FakeDaemon::Listen() {
  auto listener =
      os::UnixListener::Listen(thread_.loop(), path_, [this](os::FileDescriptor socket) { Accept(std::move(socket)); });
  CHECK(listener.ok()) << listener.status();
  listener_ = *std::move(listener);
}

FakeDaemon::~FakeDaemon() {
  thread_.CallOn([&] {
    peers_.clear();
    listener_.reset();
    CHECK(store_->CheckConsistency().ok());
    store_.reset();
  });
  thread_.Stop();
}

void FakeDaemon::Answer(Kind kind, Script script) {
  thread_.CallOn([&] { scripts_[kind] = std::move(script); });
}

void FakeDaemon::AnswerAsUsual(Kind kind) {
  thread_.CallOn([&] { scripts_.erase(kind); });
}

void FakeDaemon::Screen(Kind kind, std::function<bool()> screen) {
  thread_.CallOn([&] { screens_[kind] = std::move(screen); });
}

void FakeDaemon::NoteReleases(std::vector<base::ObjectId>& released) {
  Answer(Kind::kRelease, [&released](const Header&, const Bytes& frame) -> std::optional<Bytes> {
    const auto request = DecodeBody<ReleaseRequest>(frame);
    CHECK(request.ok()) << request.status();
    released.insert(released.end(), request->ids.begin(), request->ids.end());
    return std::nullopt;
  });
}

void FakeDaemon::SendToAll(const Bytes& frame) {
  thread_.CallOn([&] {
    for (auto& [number, peer] : peers_) peer.connection->Send(frame);
  });
}

void FakeDaemon::Disconnect() {
  thread_.CallOn([&] {
    while (!peers_.empty()) End(peers_.begin()->first);
  });
}

void FakeDaemon::GoAway() {
  thread_.CallOn([&] {
    listener_.reset();
    while (!peers_.empty()) End(peers_.begin()->first);
  });
}

void FakeDaemon::ComeBack() {
  thread_.CallOn([&] { Listen(); });
}

bool FakeDaemon::AwaitGets(uint64_t count) {
  std::unique_lock<std::mutex> lock(gets_mutex_);
  return gets_changed_.wait_for(lock, std::chrono::seconds(60), [&] { return gets_waiting_ == count; });
}

store::Statistics FakeDaemon::statistics() {
  store::Statistics statistics;
  thread_.CallOn([&] { statistics = store_->statistics(); });
  return statistics;
}

size_t FakeDaemon::connections() {
  size_t connections = 0;
  thread_.CallOn([&] { connections = peers_.size(); });
  return connections;
}

void FakeDaemon::Accept(os::FileDescriptor socket) {
  const uint64_t number = next_peer_++;
  Peer& peer = peers_[number];
  peer.owner = store_->NewOwner();
  peer.connection = std::make_unique<os::UnixConnection>(
      thread_.loop(), std::move(socket), [this, number](const os::Frame& frame) { Handle(number, frame.body); },
      [this, number](const absl::Status&) { End(number); });
}

void FakeDaemon::End(uint64_t number) {
  const auto it = peers_.find(number);
  it->second.waits.clear();
  store_->DropOwner(it->second.owner);
  peers_.erase(it);
}

void FakeDaemon::Handle(uint64_t number, const Bytes& frame) {
  Peer& peer = peers_.at(number);
  const absl::StatusOr<Header> header = DecodeHeader(frame);
  if (!header.ok()) return End(number);
  const Kind kind = static_cast<Kind>(header->kind);
  const auto screen = screens_.find(kind);
  if (screen != screens_.end() && !screen->second()) return;
  const auto script = scripts_.find(kind);
  std::optional<Bytes> reply =
      script != scripts_.end() ? script->second(*header, frame) : Reply(number, peer, *header, frame);
  if (!reply.has_value() || header->request_id == 0) return;
  const bool writable = kind == Kind::kHello && script == scripts_.end() &&
                        DecodeBody<HelloRequest>(frame)->access == Access::kReadAndCreate;
  const int descriptors[] = {read_only_.get(), memory_.descriptor()};
  const size_t count = kind == Kind::kHello ? (writable ? 2 : 1) : 0;
  peer.connection->Send(*reply, absl::MakeConstSpan(descriptors, count));
}

std::optional<FakeDaemon::Bytes> FakeDaemon::Reply(uint64_t number, Peer& peer, const Header& header,
                                                   const Bytes& frame) {
  switch (static_cast<Kind>(header.kind)) {
    case Kind::kHello: {
      WelcomeReply welcome;
      welcome.arena_size = kCapacity;
      welcome.capacity = kCapacity;
      welcome.node = "fake";
      return Encode(header.request_id, welcome);
    }
    case Kind::kCreate: {
      const CreateRequest create = *DecodeBody<CreateRequest>(frame);
      const auto location = store_->Create(create.id, create.data_size, create.metadata_size, peer.owner,
                                           *base::ObjectName::For(create.id, create.name));
      if (!location.ok()) return EncodeError(header, location.status());
      CreateReply reply;
      reply.location = Wire(*location);
      return Encode(header.request_id, reply);
    }
    case Kind::kCreateAndSeal: {
      const CreateAndSealRequest request = *DecodeBody<CreateAndSealRequest>(frame);
      CreateAndSealReply reply;
      for (const InlineObject& object : request.objects) {
        const base::ObjectName name = *base::ObjectName::For(object.id, object.name);
        reply.outcomes.push_back(
            Outcome::Of(store_->CreateAndSeal({object.id, object.data, object.metadata, name}, peer.owner).status()));
      }
      return Encode(header.request_id, reply);
    }
    case Kind::kSeal:
      return Done<SealRequest>(header, store_->Seal(DecodeBody<SealRequest>(frame)->id, peer.owner));
    case Kind::kAbort:
      return Done<AbortRequest>(header, store_->Abort(DecodeBody<AbortRequest>(frame)->id, peer.owner));
    case Kind::kDelete:
      return Done<DeleteRequest>(header, store_->Delete(DecodeBody<DeleteRequest>(frame)->id));
    case Kind::kTouch:
      return Done<TouchRequest>(header, store_->Touch(DecodeBody<TouchRequest>(frame)->id));
    case Kind::kGet:
      StartGet(number, peer, header, *DecodeBody<GetRequest>(frame));
      return std::nullopt;
    case Kind::kCancel: {
      const uint64_t id = DecodeBody<CancelRequest>(frame)->request_id;
      if (peer.waits.erase(id) == 0) return std::nullopt;
      Header get;
      get.kind = GetRequest::kKind;
      get.request_id = id;
      peer.connection->Send(EncodeError(get, absl::CancelledError("cancelled")));
      return std::nullopt;
    }
    case Kind::kRelease: {
      const ReleaseRequest release = *DecodeBody<ReleaseRequest>(frame);
      for (const base::ObjectId& id : release.ids) CHECK(store_->Release(id, peer.owner).ok());
      return std::nullopt;
    }
    case Kind::kContains: {
      ContainsReply reply;
      reply.here = store_->Contains(DecodeBody<ContainsRequest>(frame)->id);
      return Encode(header.request_id, reply);
    }
    case Kind::kList: {
      const ListRequest list = *DecodeBody<ListRequest>(frame);
      ListReply reply;
      const std::optional<base::ObjectId> after =
          list.continued ? std::optional<base::ObjectId>(list.after) : std::nullopt;
      for (const store::StoredObject& info : store_->List(list.limit, after)) reply.objects.push_back(EntryOf(info));
      reply.more = reply.objects.size() == list.limit;
      return Encode(header.request_id, reply);
    }
    case Kind::kStat: {
      const auto info = store_->Stat(DecodeBody<StatRequest>(frame)->id);
      if (!info.ok()) return EncodeError(header, info.status());
      StatReply reply;
      reply.here = true;
      reply.object = EntryOf(*info);
      reply.holders = {"fake"};
      return Encode(header.request_id, reply);
    }
    case Kind::kEvict: {
      const store::EvictionCount count = store_->Evict(DecodeBody<EvictRequest>(frame)->bytes);
      EvictReply reply;
      reply.objects = count.objects;
      reply.bytes = count.bytes;
      return Encode(header.request_id, reply);
    }
    case Kind::kWait: {
      const WaitRequest wait = *DecodeBody<WaitRequest>(frame);
      WaitReply reply;
      for (const base::ObjectId& id : wait.ids) reply.ready.push_back(store_->Contains(id));
      return Encode(header.request_id, reply);
    }
    case Kind::kSubscribe:
      StartSubscription(number, peer, header);
      return Encode(header.request_id, SubscribeRequest::Reply());
    case Kind::kNodes: {
      NodesReply reply;
      reply.nodes = {{"fake", "nowhere", "none", 1, kCapacity, true}};
      return Encode(header.request_id, reply);
    }
    case Kind::kCluster: {  // two nodes, each in a reply of its own
      const bool is_first = DecodeBody<ClusterRequest>(frame)->after.empty();
      ClusterReply reply;
      reply.located = true;
      reply.more = is_first;
      ViewedEntry& node = reply.nodes.emplace_back();
      node.node = {is_first ? "fake" : "other", "nowhere", "none", 1, kCapacity, is_first};
      if (is_first) node.page = "fake:9464";
      if (is_first) node.numbers = {{"store_sealed_objects", store_->statistics().sealed_objects}};
      if (!is_first) node.state = NodeState::kSuspected;
      if (!is_first) node.unheard_microseconds = 7'000'000;
      return Encode(header.request_id, reply);
    }
    case Kind::kNodeStats: {
      NodeStatsReply reply;
      reply.node = "fake";
      reply.device = "none";
      reply.numbers = {{"store_sealed_objects", store_->statistics().sealed_objects}};
      return Encode(header.request_id, reply);
    }
    default:
      return EncodeError(header, absl::UnimplementedError("the fake daemon does not do this"));
  }
}

void FakeDaemon::StartGet(uint64_t number, Peer& peer, const Header& header, const GetRequest& get) {
  const base::Time deadline = thread_.loop().Now() + base::Microseconds(static_cast<int64_t>(get.timeout_microseconds));
  peer.waits[header.request_id] = store_->GetLater(
      get.ids, deadline, peer.owner, [this, number, header](absl::Span<const store::GetEntry> entries) {
        GetReply reply;
        for (const store::GetEntry& entry : entries) {
          GetEntry& answer = reply.entries.emplace_back();
          if (entry.location.has_value()) {
            answer.location = Wire(*entry.location);
          } else {
            answer.outcome = Outcome::Of(absl::DeadlineExceededError("not in time"));
          }
        }
        peers_.at(number).connection->Send(Encode(header.request_id, reply));
        peers_.at(number).waits.erase(header.request_id);
      });
  const std::lock_guard<std::mutex> lock(gets_mutex_);
  gets_waiting_ = store_->statistics().waiting;
  gets_changed_.notify_all();
}

void FakeDaemon::StartSubscription(uint64_t number, Peer& peer, const Header& header) {
  peer.subscription = store_->Subscribe([this, number, header](absl::Span<const store::Event> events) {
    EventsNotification notification;
    for (const store::Event& event : events) {
      notification.events.push_back({static_cast<EventKind>(event.kind), static_cast<Origin>(event.origin), event.id,
                                     event.data_size, event.metadata_size, std::string(event.name.text())});
    }
    peers_.at(number).connection->Send(Encode(header.request_id, notification));
  });
}

}  // namespace tokamak::client
