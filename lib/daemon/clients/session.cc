#include "lib/daemon/clients/session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lib/base/bytes.h"
#include "lib/base/text/object_name.h"
#include "lib/base/units.h"
#include "lib/daemon/clients/numbers.h"
#include "lib/daemon/clients/wire.h"
#include "lib/directory/local.h"

namespace tokamak::daemon {

namespace {

// Pulls have the lower numbers.
constexpr uint64_t kGetActivities = uint64_t{1} << 63;

static_assert(kMaxLookedFor + node::ObjectPush::kMaxBrought <= directory::kMaxWaitsOfPeer,
              "some are left to other nodes");

uint64_t MemoryOf(size_t ids, uint64_t bytes) { return kRequestMemory + ids * kIdMemory + bytes; }

absl::Status IdTaken(const base::ObjectId& id, const directory::LocatedObject& info) {
  return absl::AlreadyExistsError(absl::StrCat("object ", id.ToHex(), " exists already in the cluster, on ",
                                               info.holders.empty() ? "another node" : info.holders.front(),
                                               ": delete it first, or choose another id"));
}

}  // namespace

Session::Session(const SessionContext& context, const std::string& program, Send send, EventFeed::Congested congested,
                 ProgramShare* share)
    : context_(context),
      store_(context.node.store()),
      send_(std::move(send)),
      owner_(store_.NewOwner(program)),
      share_(share),
      feed_(
          context.loop, [this](std::vector<uint8_t> frame) { send_(std::move(frame), Descriptors::kNone); },
          std::move(congested)) {}

Session::~Session() {
  if (!left_) store_.DropOwner(Leave());
}

store::Owner Session::Leave() {
  left_ = true;
  while (!waiting_.empty()) End(waiting_.first());  // gets give back their pins
  feed_.Stop();
  return owner_;
}

template <typename Reply>
void Session::Answer(const client::Header& header, const Reply& reply) {
  if (header.request_id != 0) send_(client::Encode(header.request_id, reply), Descriptors::kNone);
}

void Session::AnswerStatus(const client::Header& header, const absl::Status& status) {
  if (header.request_id == 0) return;
  if (!status.ok()) return send_(client::EncodeError(header, status), Descriptors::kNone);
  client::Header reply;
  reply.kind = header.kind | client::kReplyBit;
  reply.request_id = header.request_id;
  send_(client::Frame(reply, {}), Descriptors::kNone);
}

absl::Status Session::CheckBegin(size_t ids, uint64_t bytes) const {
  if (waiting_.size() >= kMaxWaitingRequests || waiting_ids_ + ids > kMaxWaitingIds) {
    return absl::ResourceExhaustedError(absl::StrCat(waiting_.size(), " requests of this client about ", waiting_ids_,
                                                     " objects wait already (at most ", kMaxWaitingRequests, " and ",
                                                     kMaxWaitingIds, "): await some"));
  }
  if (share_ == nullptr || share_->memory.has(MemoryOf(ids, bytes))) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "requests, messages and answers of this program's connections take ", base::FormatSize(share_->memory.used()),
      " of tokd's memory already, and it or its user may have no more: read answers, and await some "
      "requests"));
}

bool Session::MayBegin(const client::Header& header, size_t ids, uint64_t bytes) {
  const absl::Status status = CheckBegin(ids, bytes);
  if (!status.ok()) AnswerStatus(header, status);
  return status.ok();
}

// What of its requests is not here is not counted apart: of what many programs wait for, too, it is
// taken to have as many as there are.
bool Session::MayLookFor(const client::Header& header, absl::Span<const base::ObjectId> ids, uint64_t timeout) {
  const size_t all = context_.node.pulls().looked_for() + context_.watched;
  const size_t own = std::min(share_ == nullptr ? waiting_ids_ : share_->waiting_ids, all);
  const auto may = [&](size_t more) { return own + all + 2 * more <= kMaxLookedFor; };
  if (timeout == 0 || may(ids.size())) return true;  // as nearly always
  const auto is_missing = [this](const base::ObjectId& id) { return !store_.Contains(id); };
  const auto missing = static_cast<size_t>(std::count_if(ids.begin(), ids.end(), is_missing));
  if (missing == 0 || may(missing)) return true;
  AnswerStatus(header, absl::ResourceExhaustedError(absl::StrCat(
                           "this program waits for ", own,
                           " objects that no node is known to hold, and all programs of "
                           "this node for ",
                           all, " of at most ", kMaxLookedFor,
                           ": what is left is for others as well; await some, or wait for fewer at once")));
  return false;
}

Session::Waiting* Session::Begin(const client::Header& header, size_t ids, uint64_t bytes) {
  if (!MayBegin(header, ids, bytes)) return nullptr;
  auto waiting = std::make_unique<Waiting>();
  waiting->memory = base::ByteClaim(share_ == nullptr ? nullptr : &share_->memory);
  CHECK(waiting->memory.Resize(MemoryOf(ids, bytes)));
  waiting->ids = ids;
  waiting_ids_ += ids;
  if (share_ != nullptr) share_->waiting_ids += ids;
  waiting->header = header;
  waiting_.PushBack(waiting.get());
  Waiting* const begun = waiting.get();
  begun->self = std::move(waiting);
  return begun;
}

void Session::Record(base::Phase phase, const Waiting& waiting) const {
  context_.trace->Record(
      {context_.loop.Now(), base::TraceKind::kPhase, 0, static_cast<uint32_t>(phase), 0, waiting.activity});
}

void Session::End(Waiting* waiting) {
  if (waiting->activity != 0) Record(base::Phase::kOver, *waiting);
  waiting_ids_ -= waiting->ids;
  if (share_ != nullptr) share_->waiting_ids -= waiting->ids;
  context_.watched -= waiting->watched;
  waiting_.Remove(waiting);
  const std::unique_ptr<Waiting> last = std::move(waiting->self);
}

absl::Status Session::Handle(absl::Span<const uint8_t> frame) {
  const absl::StatusOr<client::Header> header = client::DecodeHeader(frame);
  if (!header.ok()) return header.status();
  if (header->version != client::kVersion) {
    AnswerStatus(*header, absl::FailedPreconditionError(absl::StrCat(
                              "the client speaks version ", header->version, " of the protocol, this tokd version ",
                              client::kVersion, ": use programs of one release")));
    return absl::FailedPreconditionError("a client of another version");
  }
  if (!greeted_ && header->kind != client::HelloRequest::kKind) {
    return absl::InvalidArgumentError("a client's first message must be its hello");
  }
  return Dispatch(*header, frame);
}

absl::Status Session::Dispatch(const client::Header& header, absl::Span<const uint8_t> frame) {
  // Decodes the body of one kind, then does what it asks.
  const auto as = [&](auto request_type, auto act) -> absl::Status {
    using Request = decltype(request_type);
    const absl::StatusOr<Request> request = client::DecodeBody<Request>(frame);
    if (!request.ok()) return request.status();
    act(*request);
    return absl::OkStatus();
  };
  // The same for a request that changes objects, which a connection for reading only may not.
  const auto as_creator = [&](auto request_type, auto act) -> absl::Status {
    if (!read_only_) return as(request_type, act);
    AnswerStatus(header, absl::PermissionDeniedError("this connection is for reading only: connect to create as well"));
    return absl::OkStatus();
  };
  switch (static_cast<client::Kind>(header.kind)) {
    case client::Kind::kHello:
      if (greeted_) return absl::InvalidArgumentError("a client said hello twice");
      return as(client::HelloRequest(), [&](const auto& request) { Greet(header, request); });
    case client::Kind::kCreate:
      return as_creator(client::CreateRequest(), [&](const auto& request) { Create(header, request); });
    case client::Kind::kCreateAndSeal:
      return as_creator(client::CreateAndSealRequest(), [&](const auto& request) { CreateAndSeal(header, request); });
    case client::Kind::kSeal:
      return as_creator(client::SealRequest(), [&](const auto& request) { Seal(header, request); });
    case client::Kind::kAbort:
      return as_creator(client::AbortRequest(),
                        [&](const auto& request) { AnswerStatus(header, store_.Abort(request.id, owner_)); });
    case client::Kind::kGet:
      return as(client::GetRequest(), [&](const auto& request) { Get(header, request); });
    case client::Kind::kPrefetch:
      return as(client::PrefetchRequest(), [&](const auto& request) { Prefetch(header, request); });
    case client::Kind::kUnpin:
      return as_creator(client::UnpinRequest(),
                        [&](const auto& request) { AnswerStatus(header, store_.UnpinHere(request.id)); });
    case client::Kind::kPush:
      return as_creator(client::PushRequest(), [&](const auto& request) { Push(header, request); });
    case client::Kind::kCancel:
      return as(client::CancelRequest(), [&](const auto& request) { Cancel(header, request); });
    case client::Kind::kRelease:
      return as(client::ReleaseRequest(), [&](const auto& request) { Release(header, request); });
    case client::Kind::kDelete:
      return as_creator(client::DeleteRequest(), [&](const auto& request) { Delete(header, request); });
    case client::Kind::kContains:
      return as(client::ContainsRequest(), [&](const auto& request) {
        client::ContainsReply reply;
        reply.here = store_.Contains(request.id);
        Answer(header, reply);
      });
    case client::Kind::kList:
      return as(client::ListRequest(), [&](const auto& request) { List(header, request); });
    case client::Kind::kProgress:
      return as(client::ProgressRequest(), [&](const auto& request) { Progress(header, request); });
    case client::Kind::kStat:
      return as(client::StatRequest(), [&](const auto& request) { Stat(header, request); });
    case client::Kind::kTouch:
      return as(client::TouchRequest(), [&](const auto& request) { AnswerStatus(header, store_.Touch(request.id)); });
    case client::Kind::kEvict:
      return as_creator(client::EvictRequest(), [&](const auto& request) { Evict(header, request); });
    case client::Kind::kHash:
      return as(client::HashRequest(), [&](const auto& request) { Hash(header, request); });
    case client::Kind::kWait:
      return as(client::WaitRequest(), [&](const auto& request) { Wait(header, request); });
    case client::Kind::kSubscribe:
      return as(client::SubscribeRequest(), [&](const auto& request) { Subscribe(header, request); });
    case client::Kind::kNodes:
      return as(client::NodesRequest(), [&](const auto&) { Nodes(header); });
    case client::Kind::kNodeStats:
      return as(client::NodeStatsRequest(), [&](const auto&) { NodeStats(header); });
    case client::Kind::kCluster:
      return as(client::ClusterRequest(), [&](const auto& request) { Cluster(header, request); });
    case client::Kind::kEvents:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("a client sent a message of unknown kind ", header.kind));
}

void Session::Greet(const client::Header& header, const client::HelloRequest& request) {
  greeted_ = true;
  read_only_ = request.access == client::Access::kRead;
  if (request.quota != 0) store_.Limit(owner_, request.quota);
  client::WelcomeReply reply;
  reply.arena_size = context_.arena_size;
  reply.capacity = store_.statistics().capacity_bytes;
  reply.incarnation = context_.node.options().incarnation;
  reply.node = context_.node.options().id;
  send_(client::Encode(header.request_id, reply), read_only_ ? Descriptors::kRead : Descriptors::kReadAndCreate);
}

// A confirmed put asks first, so that nothing is filled without purpose.
void Session::Create(const client::Header& header, const client::CreateRequest& request) {
  absl::StatusOr<base::ObjectName> name = base::ObjectName::For(request.id, request.name);
  if (!name.ok()) return AnswerStatus(header, name.status());
  store::CreateRequest create{request.id, request.data_size, request.metadata_size, owner_, *std::move(name)};
  const base::Duration timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  if (!request.confirmed) return Reserve(header, create, timeout);
  Waiting* const waiting = Begin(header);
  if (waiting == nullptr) return;
  waiting->handle = context_.node.Locate(
      request.id, base::Duration(),
      [this, waiting, create = std::move(create), timeout](const absl::StatusOr<directory::LocatedObject>& info) {
        const client::Header asked = waiting->header;
        End(waiting);
        if (absl::IsNotFound(info.status())) return Reserve(asked, create, timeout);
        AnswerStatus(asked, info.ok() ? IdTaken(create.id, *info) : info.status());
      });
}

void Session::Reserve(const client::Header& header, const store::CreateRequest& create, base::Duration timeout) {
  Waiting* const waiting = Begin(header);
  if (waiting == nullptr) return;
  const auto answer = [this](const client::Header& asked, const absl::StatusOr<store::Location>& place) {
    if (!place.ok()) return AnswerStatus(asked, place.status());
    client::CreateReply reply;
    reply.location = ToWire(*place);
    Answer(asked, reply);
  };
  // Where there is room, as nearly always, there is nothing to wait for.
  if (timeout <= base::Duration()) {
    answer(header, store_.Create(create.id, create.data_size, create.metadata_size, owner_, create.name));
    return End(waiting);
  }
  if (const auto place = store_.CreateIfRoom(create); place.has_value()) {
    answer(header, *place);
    return End(waiting);
  }
  waiting->handle = store_.CreateLater(create, context_.loop.Now() + timeout,
                                       [this, waiting, answer](const absl::StatusOr<store::Location>& later) {
                                         answer(waiting->header, later);
                                         End(waiting);
                                       });
}

void Session::Seal(const client::Header& header, const client::SealRequest& request) {
  if (request.confirmed && !MayBegin(header)) {
    store_.Abort(request.id, owner_).IgnoreError();  // an error: there is nothing to abort
    return;
  }
  const absl::Status status = store_.Seal(request.id, owner_);
  if (!status.ok() || !request.confirmed) return AnswerStatus(header, status);
  Waiting* const waiting = Begin(header);
  if (waiting == nullptr) return;
  const base::ObjectVersion version{request.id, store_.Find(request.id)->generation};
  waiting->handle = context_.node.Confirm(version, [this, waiting](const absl::Status& confirmed) {
    AnswerStatus(waiting->header, confirmed);
    End(waiting);
  });
}

// Most are sealed at once; what finds no room waits for it, and what is to be confirmed for the
// directory's word.
void Session::CreateAndSeal(const client::Header& header, const client::CreateAndSealRequest& request) {
  std::vector<store::SmallObject> objects;
  uint64_t size = 0;
  for (const client::InlineObject& object : request.objects) {
    absl::StatusOr<base::ObjectName> name = base::ObjectName::For(object.id, object.name);
    if (!name.ok()) return AnswerStatus(header, name.status());
    objects.push_back({object.id, object.data, object.metadata, *std::move(name)});
    size += object.data.size() + object.metadata.size() + object.name.size();
  }
  if (request.confirmed && !MayBegin(header, objects.size(), size)) return;
  client::CreateAndSealReply reply;
  if (request.together) {
    const absl::Status status =
        request.confirmed ? absl::InvalidArgumentError("what is put together cannot be confirmed: put one by one")
                          : store_.CreateAndSealTogether(objects, owner_);
    if (!status.ok()) return AnswerStatus(header, status);
    reply.outcomes.resize(objects.size());
    return Answer(header, reply);
  }
  const auto places = store_.CreateAndSealBatch(objects, owner_);
  for (const auto& place : places) reply.outcomes.push_back(client::Outcome::Of(place.status()));
  const auto waits = [&](const absl::StatusOr<store::Location>& place) {
    if (place.ok()) return request.confirmed;
    return absl::IsResourceExhausted(place.status()) && request.timeout_microseconds > 0;
  };
  const auto later = std::count_if(places.begin(), places.end(), waits);
  if (later == 0) return Answer(header, reply);
  // What may not wait is refused; what was put already is not.
  if (const absl::Status refused = CheckBegin(objects.size(), size); !refused.ok()) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (waits(places[i])) reply.outcomes[i] = client::Outcome::Of(refused);
    }
    return Answer(header, reply);
  }
  Waiting* const waiting = Begin(header, objects.size(), size);
  waiting->sealed = std::move(reply);
  waiting->unanswered = static_cast<uint32_t>(later);
  waiting->confirmed = request.confirmed;
  waiting->handles.resize(places.size());
  const base::Time deadline =
      context_.loop.Now() + base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  for (size_t i = 0; i < places.size(); ++i) {
    if (!waits(places[i])) continue;
    if (places[i].ok()) {
      ConfirmSealed(*waiting, i, {objects[i].id, places[i]->generation});
    } else {
      FillLater(*waiting, i, objects[i], deadline);
    }
  }
}

// The frame is gone when there is room: the bytes are kept until then.
void Session::FillLater(Waiting& waiting, size_t place, const store::SmallObject& object, base::Time deadline) {
  std::vector<uint8_t> bytes(object.data.begin(), object.data.end());
  bytes.insert(bytes.end(), object.metadata.begin(), object.metadata.end());
  waiting.handles[place] =
      store_.CreateLater({object.id, object.data.size(), object.metadata.size(), owner_, object.name}, deadline,
                         [this, &waiting, place, id = object.id,
                          bytes = std::move(bytes)](const absl::StatusOr<store::Location>& location) {
                           waiting.sealed.outcomes[place] = client::Outcome::Of(location.status());
                           if (!location.ok()) return EndOne(waiting);
                           base::Copy(context_.loop, store_.Memory(*location).data(), bytes.data(), bytes.size());
                           CHECK(store_.Seal(id, owner_).ok());
                           if (!waiting.confirmed) return EndOne(waiting);
                           ConfirmSealed(waiting, place, {id, location->generation});
                         });
}

void Session::ConfirmSealed(Waiting& waiting, size_t place, const base::ObjectVersion& version) {
  waiting.handles[place] = context_.node.Confirm(version, [this, &waiting, place](const absl::Status& confirmed) {
    waiting.sealed.outcomes[place] = client::Outcome::Of(confirmed);
    EndOne(waiting);
  });
}

void Session::EndOne(Waiting& waiting) {
  if (--waiting.unanswered > 0) return;
  Answer(waiting.header, waiting.sealed);
  End(&waiting);
}

void Session::Get(const client::Header& header, const client::GetRequest& request) {
  if (!MayLookFor(header, request.ids, request.timeout_microseconds)) return;
  Waiting* const waiting = Begin(header, request.ids.size());
  if (waiting == nullptr) return;
  if (context_.trace != nullptr) {
    waiting->activity = kGetActivities | ++context_.gets_traced;
    Record(base::Phase::kSession, *waiting);
  }
  node::GetOptions options;
  options.timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  options.protocol = static_cast<transport::Protocol>(request.protocol);
  waiting->handle =
      context_.node.Get(request.ids, options, owner_, [this, waiting](absl::Span<const node::GetResult> results) {
        client::GetReply reply;
        for (const node::GetResult& result : results) {
          client::GetEntry& entry = reply.entries.emplace_back();
          entry.outcome = client::Outcome::Of(result.status);
          if (result.location.has_value()) entry.location = ToWire(*result.location);
        }
        Answer(waiting->header, reply);
        End(waiting);
      });
}

// Each for itself, so that none is pinned until the last has come.
void Session::Prefetch(const client::Header& header, const client::PrefetchRequest& request) {
  if (request.pin && read_only_) {
    return AnswerStatus(header, absl::PermissionDeniedError("this connection is for reading only, and pins nothing on "
                                                            "the node: connect to create as well"));
  }
  if (request.ids.empty()) return Answer(header, client::PrefetchReply());
  if (!MayLookFor(header, request.ids, request.timeout_microseconds)) return;
  Waiting* const waiting = Begin(header, request.ids.size());
  if (waiting == nullptr) return;
  node::GetOptions options;
  options.timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  waiting->unanswered = static_cast<uint32_t>(request.ids.size());
  waiting->prefetched.outcomes.resize(request.ids.size());
  for (size_t i = 0; i < request.ids.size(); ++i) {
    waiting->handles.push_back(
        context_.node.Prefetch(request.ids[i], options, request.pin, [this, waiting, i](const absl::Status& status) {
          waiting->prefetched.outcomes[i] = client::Outcome::Of(status);
          if (--waiting->unanswered > 0) return;
          Answer(waiting->header, waiting->prefetched);
          End(waiting);
        }));
  }
}

static_assert(client::kMaxPushed <= node::ObjectPush::kMaxPushed, "a request of one is a request of the other");

void Session::Push(const client::Header& header, const client::PushRequest& request) {
  if (request.ids.empty()) return Answer(header, client::PushReply());
  Waiting* const waiting = Begin(header, request.ids.size());
  if (waiting == nullptr) return;
  const base::Duration timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  waiting->handle = context_.node.Push(request.node, {timeout, request.ids},
                                       [this, waiting](absl::Span<const absl::Status> statuses) {
                                         client::PushReply reply;
                                         for (const absl::Status& status : statuses) {
                                           reply.outcomes.push_back(client::Outcome::Of(status));
                                         }
                                         Answer(waiting->header, reply);
                                         End(waiting);
                                       });
}

void Session::Cancel(const client::Header& header, const client::CancelRequest& request) {
  for (Waiting* waiting = waiting_.first(); waiting != nullptr; waiting = waiting_.Next(waiting)) {
    const uint16_t kind = waiting->header.kind;
    if (kind != client::GetRequest::kKind && kind != client::WaitRequest::kKind) continue;
    if (waiting->header.request_id != request.request_id) continue;
    AnswerStatus(waiting->header, absl::CancelledError("the program cancelled it"));
    End(waiting);
    break;
  }
  AnswerStatus(header, absl::OkStatus());
}

void Session::Release(const client::Header& header, const client::ReleaseRequest& request) {
  absl::Status first_error;
  for (const base::ObjectId& id : request.ids) first_error.Update(store_.Release(id, owner_));
  AnswerStatus(header, first_error);
}

void Session::Delete(const client::Header& header, const client::DeleteRequest& request) {
  Waiting* const waiting = Begin(header);
  if (waiting == nullptr) return;
  waiting->handle = context_.node.Delete(request.id, owner_, [this, waiting](const absl::StatusOr<uint32_t>& copies) {
    AnswerStatus(waiting->header, copies.status());
    End(waiting);
  });
}

void Session::List(const client::Header& header, const client::ListRequest& request) {
  std::optional<base::ObjectId> after;
  if (request.continued) after = request.after;
  client::ListReply reply;
  const auto page = store_.List(request.limit, after);
  for (const store::StoredObject& info : page) reply.objects.push_back(ToWire(info, context_.loop.Now()));
  reply.more = !page.empty() && !store_.List(1, page.back().id).empty();
  Answer(header, reply);
}

void Session::Stat(const client::Header& header, const client::StatRequest& request) {
  Waiting* const waiting = Begin(header);
  if (waiting == nullptr) return;
  if (const auto info = store_.Stat(request.id); info.ok()) {
    waiting->stat.here = true;
    waiting->stat.object = ToWire(*info, context_.loop.Now());
  }
  waiting->stat.object.id = request.id;
  waiting->handle = context_.node.Locate(request.id, base::Duration(),
                                         [this, waiting](const absl::StatusOr<directory::LocatedObject>& info) {
                                           client::StatReply& reply = waiting->stat;
                                           reply.located = info.ok() || absl::IsNotFound(info.status());
                                           if (info.ok()) {
                                             reply.holders = info->holders;
                                             if (!reply.here) reply.object.data_size = info->data_size;
                                             if (!reply.here) reply.object.metadata_size = info->metadata_size;
                                             if (!reply.here) reply.object.name = std::string(info->name.text());
                                           }
                                           if (reply.here || info.ok()) {
                                             Answer(waiting->header, reply);
                                           } else {
                                             AnswerStatus(waiting->header, info.status());
                                           }
                                           End(waiting);
                                         });
}

void Session::Progress(const client::Header& header, const client::ProgressRequest& request) {
  const auto progress = context_.node.pulls().Progress(request.id);
  if (!progress.has_value()) {
    return AnswerStatus(header, absl::NotFoundError("the object is not on its way to this node"));
  }
  client::ProgressReply reply;
  reply.moved = progress->moved;
  reply.total = progress->total;
  Answer(header, reply);
}

void Session::Evict(const client::Header& header, const client::EvictRequest& request) {
  const store::EvictionCount evicted = store_.Evict(request.bytes);
  client::EvictReply reply;
  reply.objects = evicted.objects;
  reply.bytes = evicted.bytes;
  Answer(header, reply);
}

void Session::Hash(const client::Header& header, const client::HashRequest& request) {
  Waiting* const waiting = Begin(header);
  if (waiting == nullptr) return;
  waiting->handle = store_.HashLater(request.id, owner_, [this, waiting](absl::StatusOr<uint64_t> hash) {
    if (hash.ok()) {
      client::HashReply reply;
      reply.hash = *hash;
      Answer(waiting->header, reply);
    } else {
      AnswerStatus(waiting->header, hash.status());
    }
    End(waiting);
  });
}

void Session::Wait(const client::Header& header, const client::WaitRequest& request) {
  if (request.count > request.ids.size()) {
    return AnswerStatus(header, absl::InvalidArgumentError("cannot wait for more objects than are named"));
  }
  if (request.scope == client::Scope::kAnywhere) return WaitAnywhere(header, request);
  Waiting* const waiting = Begin(header, request.ids.size());
  if (waiting == nullptr) return;
  const base::Duration timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  waiting->handle = store_.WaitLater(request.ids, request.count, context_.loop.Now() + timeout,
                                     [this, waiting](const std::vector<bool>& sealed) {
                                       client::WaitReply reply;
                                       reply.ready.assign(sealed.begin(), sealed.end());
                                       Answer(waiting->header, reply);
                                       End(waiting);
                                     });
}

// Asks the directory for each that is not here; answers when enough were found, or all have
// answered.
void Session::WaitAnywhere(const client::Header& header, const client::WaitRequest& request) {
  if (!MayLookFor(header, request.ids, request.timeout_microseconds)) return;
  Waiting* const waiting = Begin(header, request.ids.size());
  if (waiting == nullptr) return;
  const base::Duration timeout = base::Microseconds(static_cast<int64_t>(request.timeout_microseconds));
  for (const base::ObjectId& id : request.ids) {
    const bool here = store_.Contains(id);
    waiting->wait.ready.push_back(here ? 1 : 0);
    ++(here ? waiting->ready : waiting->unanswered);
  }
  if (waiting->ready >= request.count || waiting->unanswered == 0) {
    Answer(header, waiting->wait);
    return End(waiting);
  }
  if (request.timeout_microseconds > 0) waiting->watched = waiting->unanswered;
  context_.watched += waiting->watched;
  for (size_t i = 0; i < request.ids.size(); ++i) {
    if (waiting->wait.ready[i] != 0) continue;
    waiting->handles.push_back(context_.node.Locate(
        request.ids[i], timeout,
        [this, waiting, i, count = request.count](const absl::StatusOr<directory::LocatedObject>& info) {
          --waiting->unanswered;
          if (info.ok()) ++waiting->ready;
          if (info.ok()) waiting->wait.ready[i] = 1;
          if (!info.ok() && !absl::IsNotFound(info.status())) waiting->trouble = info.status();
          if (waiting->ready < count && waiting->unanswered > 0) return;
          if (waiting->ready < count && !waiting->trouble.ok()) {
            AnswerStatus(waiting->header, waiting->trouble);
          } else {
            Answer(waiting->header, waiting->wait);
          }
          End(waiting);  // and with it the questions that are still open
        }));
  }
}

void Session::Subscribe(const client::Header& header, const client::SubscribeRequest& request) {
  AnswerStatus(header, absl::OkStatus());
  feed_.Start(store_, header.request_id, request.existing);
}

void Session::Nodes(const client::Header& header) {
  Waiting* const waiting = Begin(header);
  if (waiting == nullptr) return;
  waiting->handle = context_.node.Nodes([this, waiting](const absl::StatusOr<std::vector<directory::NodeInfo>>& nodes) {
    if (nodes.ok()) {
      client::NodesReply reply;
      for (const directory::NodeInfo& info : *nodes) {
        if (reply.nodes.size() == client::kMaxNodes) break;
        reply.nodes.push_back(ToWire(info, info.id == context_.node.options().id));
      }
      Answer(waiting->header, reply);
    } else {
      AnswerStatus(waiting->header, nodes.status());
    }
    End(waiting);
  });
}

void Session::Cluster(const client::Header& header, const client::ClusterRequest& request) {
  Waiting* const waiting = Begin(header);
  if (waiting == nullptr) return;
  waiting->handle =
      context_.node.LookAtCluster([this, waiting, after = request.after](const node::ClusterView::View& view) {
        client::ClusterReply reply;
        reply.located = view.located;
        for (const node::ClusterView::Entry& entry : view.nodes) {
          if (!after.empty() && entry.node.id <= after) continue;
          reply.more = reply.nodes.size() == client::kMaxViewed;
          if (reply.more) break;
          reply.nodes.push_back(ToWire(entry, entry.node.id == context_.node.options().id));
        }
        Answer(waiting->header, reply);
        End(waiting);
      });
}

void Session::NodeStats(const client::Header& header) {
  client::NodeStatsReply reply;
  reply.node = context_.node.options().id;
  reply.device = context_.device.substr(0, client::kMaxName);
  for (NamedNumber& number : NumbersForStat(context_.snapshot())) {
    reply.numbers.push_back({std::move(number.name), number.value});
  }
  if (reply.numbers.size() > client::kMaxNumbers) reply.numbers.resize(client::kMaxNumbers);
  Answer(header, reply);
}

}  // namespace tokamak::daemon
