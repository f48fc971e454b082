#include "lib/daemon/clients/session.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/text/object_name.h"
#include "lib/base/units.h"
#include "lib/client/protocol/frame.h"
#include "lib/daemon/clients/numbers.h"
#include "lib/daemon/clients/requests/cluster.h"
#include "lib/daemon/clients/requests/create.h"
#include "lib/daemon/clients/requests/delete.h"
#include "lib/daemon/clients/requests/get.h"
#include "lib/daemon/clients/requests/hash.h"
#include "lib/daemon/clients/requests/prefetch.h"
#include "lib/daemon/clients/requests/push.h"
#include "lib/daemon/clients/requests/put.h"
#include "lib/daemon/clients/requests/seal.h"
#include "lib/daemon/clients/requests/stat.h"
#include "lib/daemon/clients/requests/wait.h"
#include "lib/daemon/clients/wire.h"
#include "lib/directory/local.h"
#include "lib/node/node.h"

namespace tokamak::daemon {

namespace {

static_assert(kMaxLookedFor + node::ObjectPush::kMaxBrought <= directory::kMaxWaitsOfPeer,
              "some are left to other nodes");

}  // namespace

Session::Session(const SessionContext& context, const std::string& program, Send send, EventFeed::Congested congested,
                 ProgramShare* share)
    : context_(context),
      store_(context.node.store()),
      asker_(context, program, std::move(send)),
      share_(share),
      pending_(asker_, share),
      feed_(
          context.loop, [this](std::vector<uint8_t> frame) { asker_.SendFrame(std::move(frame), Descriptors::kNone); },
          std::move(congested)) {}

Session::~Session() {
  if (!left_) store_.DropOwner(Leave());
}

store::Owner Session::Leave() {
  left_ = true;
  pending_.EndAll();  // unpins
  feed_.Stop();
  return asker_.owner();
}

absl::Status Session::CheckBegin(const RequestCost& cost) const {
  if (pending_.size() >= kMaxWaitingRequests || pending_.ids() + cost.ids > kMaxWaitingIds) {
    return absl::ResourceExhaustedError(absl::StrCat(pending_.size(), " requests of this client about ", pending_.ids(),
                                                     " objects wait already (at most ", kMaxWaitingRequests, " and ",
                                                     kMaxWaitingIds, "): await some"));
  }
  if (share_ == nullptr || share_->memory.has(cost.memory())) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "requests, messages and answers of this program's connections take ", base::FormatSize(share_->memory.used()),
      " of tokd's memory already, and it or its user may have no more: read answers, and await some "
      "requests"));
}

bool Session::MayBegin(const client::Header& header, const RequestCost& cost) {
  const absl::Status status = CheckBegin(cost);
  if (!status.ok()) asker_.AnswerStatus(header, status);
  return status.ok();
}

// The program's missing objects are not counted apart: all of its waiting requests' count, up to
// the node's total.
bool Session::MayLookFor(const client::Header& header, absl::Span<const base::ObjectId> ids, uint64_t timeout) {
  const size_t all = context_.node.pulls().looked_for() + context_.watched;
  const size_t own = std::min(share_ == nullptr ? pending_.ids() : share_->waiting_ids, all);
  const auto may = [&](size_t more) { return own + all + 2 * more <= kMaxLookedFor; };
  if (timeout == 0 || may(ids.size())) return true;  // usual
  const auto is_missing = [this](const base::ObjectId& id) { return !store_.Contains(id); };
  const auto missing = static_cast<size_t>(std::count_if(ids.begin(), ids.end(), is_missing));
  if (missing == 0 || may(missing)) return true;
  asker_.AnswerStatus(header, absl::ResourceExhaustedError(absl::StrCat(
                                  "this program waits for ", own,
                                  " objects that no node is known to hold, and all programs of "
                                  "this node for ",
                                  all, " of at most ", kMaxLookedFor,
                                  ": what is left is for others as well; await some, or wait for fewer at once")));
  return false;
}

template <typename Request, typename... Arguments>
void Session::Begin(const client::Header& header, const RequestCost& cost, Arguments&&... arguments) {
  if (!MayBegin(header, cost)) return;
  pending_.Add<Request>(header, cost).Start(std::forward<Arguments>(arguments)...);
}

absl::Status Session::Handle(absl::Span<const uint8_t> frame) {
  const absl::StatusOr<client::Header> header = client::DecodeHeader(frame);
  if (!header.ok()) return header.status();
  if (header->version != client::kVersion) {
    asker_.AnswerStatus(
        *header, absl::FailedPreconditionError(absl::StrCat("the client speaks version ", header->version,
                                                            " of the protocol, this tokd version ", client::kVersion,
                                                            ": use programs of one release")));
    return absl::FailedPreconditionError("a client of another version");
  }
  if (!greeted_ && header->kind != client::HelloRequest::kKind) {
    return absl::InvalidArgumentError("a client's first message must be its hello");
  }
  return Dispatch(*header, frame);
}

absl::Status Session::Dispatch(const client::Header& header, absl::Span<const uint8_t> frame) {
  const auto as = [&](auto request_type, auto act) -> absl::Status {
    using Request = decltype(request_type);
    const absl::StatusOr<Request> request = client::DecodeBody<Request>(frame);
    if (!request.ok()) return request.status();
    act(*request);
    return absl::OkStatus();
  };
  // The same for requests refused to a read-only connection.
  const auto as_creator = [&](auto request_type, auto act) -> absl::Status {
    if (!read_only_) return as(request_type, act);
    asker_.AnswerStatus(header,
                        absl::PermissionDeniedError("this connection is for reading only: connect to create as well"));
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
      return as_creator(client::AbortRequest(), [&](const auto& request) {
        asker_.AnswerStatus(header, store_.Abort(request.id, asker_.owner()));
      });
    case client::Kind::kGet:
      return as(client::GetRequest(), [&](const auto& request) { Get(header, request); });
    case client::Kind::kPrefetch:
      return as(client::PrefetchRequest(), [&](const auto& request) { Prefetch(header, request); });
    case client::Kind::kUnpin:
      return as_creator(client::UnpinRequest(),
                        [&](const auto& request) { asker_.AnswerStatus(header, store_.UnpinHere(request.id)); });
    case client::Kind::kPush:
      return as_creator(client::PushRequest(), [&](const auto& request) { Push(header, request); });
    case client::Kind::kCancel:
      return as(client::CancelRequest(), [&](const auto& request) { Cancel(header, request); });
    case client::Kind::kRelease:
      return as(client::ReleaseRequest(), [&](const auto& request) { Release(header, request); });
    case client::Kind::kDelete:
      return as_creator(client::DeleteRequest(),
                        [&](const auto& request) { Begin<PendingDelete>(header, {1}, request); });
    case client::Kind::kContains:
      return as(client::ContainsRequest(), [&](const auto& request) {
        client::ContainsReply reply;
        reply.here = store_.Contains(request.id);
        asker_.Answer(header, reply);
      });
    case client::Kind::kList:
      return as(client::ListRequest(), [&](const auto& request) { List(header, request); });
    case client::Kind::kProgress:
      return as(client::ProgressRequest(), [&](const auto& request) { Progress(header, request); });
    case client::Kind::kStat:
      return as(client::StatRequest(), [&](const auto& request) { Begin<PendingStat>(header, {1}, request); });
    case client::Kind::kTouch:
      return as(client::TouchRequest(),
                [&](const auto& request) { asker_.AnswerStatus(header, store_.Touch(request.id)); });
    case client::Kind::kEvict:
      return as_creator(client::EvictRequest(), [&](const auto& request) { Evict(header, request); });
    case client::Kind::kHash:
      return as(client::HashRequest(), [&](const auto& request) { Begin<PendingHash>(header, {1}, request); });
    case client::Kind::kWait:
      return as(client::WaitRequest(), [&](const auto& request) { Wait(header, request); });
    case client::Kind::kSubscribe:
      return as(client::SubscribeRequest(), [&](const auto& request) { Subscribe(header, request); });
    case client::Kind::kNodes:
      return as(client::NodesRequest(), [&](const auto&) { Begin<PendingNodes>(header, {1}); });
    case client::Kind::kNodeStats:
      return as(client::NodeStatsRequest(), [&](const auto&) { NodeStats(header); });
    case client::Kind::kCluster:
      return as(client::ClusterRequest(), [&](const auto& request) { Begin<PendingCluster>(header, {1}, request); });
    case client::Kind::kEvents:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("a client sent a message of unknown kind ", header.kind));
}

void Session::Greet(const client::Header& header, const client::HelloRequest& request) {
  greeted_ = true;
  read_only_ = request.access == client::Access::kRead;
  if (request.quota != 0) store_.Limit(asker_.owner(), request.quota);
  client::WelcomeReply reply;
  reply.arena_size = context_.arena_size;
  reply.capacity = store_.statistics().capacity_bytes;
  reply.incarnation = context_.node.options().incarnation;
  reply.node = context_.node.options().id;
  asker_.SendFrame(client::Encode(header.request_id, reply),
                   read_only_ ? Descriptors::kRead : Descriptors::kReadAndCreate);
}

void Session::Create(const client::Header& header, const client::CreateRequest& request) {
  const absl::StatusOr<base::ObjectName> name = base::ObjectName::For(request.id, request.name);
  if (!name.ok()) return asker_.AnswerStatus(header, name.status());
  Begin<PendingCreate>(header, {1}, request, *name);
}

void Session::Seal(const client::Header& header, const client::SealRequest& request) {
  if (request.confirmed && !MayBegin(header, {1})) {
    store_.Abort(request.id, asker_.owner()).IgnoreError();  // an error: nothing to abort
    return;
  }
  const absl::Status status = store_.Seal(request.id, asker_.owner());
  if (!status.ok() || !request.confirmed) return asker_.AnswerStatus(header, status);
  const base::ObjectVersion version{request.id, store_.Find(request.id)->generation};
  Begin<PendingSeal>(header, {1}, version);
}

void Session::CreateAndSeal(const client::Header& header, const client::CreateAndSealRequest& request) {
  std::vector<store::SmallObject> objects;
  uint64_t size = 0;
  for (const client::InlineObject& object : request.objects) {
    absl::StatusOr<base::ObjectName> name = base::ObjectName::For(object.id, object.name);
    if (!name.ok()) return asker_.AnswerStatus(header, name.status());
    objects.push_back({object.id, object.data, object.metadata, *std::move(name)});
    size += object.data.size() + object.metadata.size() + object.name.size();
  }
  const RequestCost cost{objects.size(), size};
  if (request.confirmed && !MayBegin(header, cost)) return;
  client::CreateAndSealReply reply;
  if (request.together) {
    const absl::Status status =
        request.confirmed ? absl::InvalidArgumentError("what is put together cannot be confirmed: put one by one")
                          : store_.CreateAndSealTogether(objects, asker_.owner());
    if (!status.ok()) return asker_.AnswerStatus(header, status);
    reply.outcomes.resize(objects.size());
    return asker_.Answer(header, reply);
  }
  const auto places = store_.CreateAndSealBatch(objects, asker_.owner());
  for (const auto& place : places) reply.outcomes.push_back(client::Outcome::Of(place.status()));
  const auto waits = [&](const PendingPuts::Place& place) { return PendingPuts::Waits(request, place); };
  if (std::none_of(places.begin(), places.end(), waits)) return asker_.Answer(header, reply);
  // Refuses only objects that may not wait.
  if (const absl::Status refused = CheckBegin(cost); !refused.ok()) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (waits(places[i])) reply.outcomes[i] = client::Outcome::Of(refused);
    }
    return asker_.Answer(header, reply);
  }
  Begin<PendingPuts>(header, cost, request, objects, places, std::move(reply));
}

void Session::Get(const client::Header& header, const client::GetRequest& request) {
  if (!MayLookFor(header, request.ids, request.timeout_microseconds)) return;
  Begin<PendingGet>(header, {request.ids.size()}, request);
}

void Session::Prefetch(const client::Header& header, const client::PrefetchRequest& request) {
  if (request.pin && read_only_) {
    return asker_.AnswerStatus(header,
                               absl::PermissionDeniedError("this connection is for reading only, and pins nothing on "
                                                           "the node: connect to create as well"));
  }
  if (request.ids.empty()) return asker_.Answer(header, client::PrefetchReply());
  if (!MayLookFor(header, request.ids, request.timeout_microseconds)) return;
  Begin<PendingPrefetch>(header, {request.ids.size()}, request);
}

void Session::Push(const client::Header& header, const client::PushRequest& request) {
  if (request.ids.empty()) return asker_.Answer(header, client::PushReply());
  Begin<PendingPush>(header, {request.ids.size()}, request);
}

void Session::Cancel(const client::Header& header, const client::CancelRequest& request) {
  PendingRequest* const cancelled = pending_.Find([&](const PendingRequest& pending) {
    const uint16_t kind = pending.header().kind;
    if (kind != client::GetRequest::kKind && kind != client::WaitRequest::kKind) return false;
    return pending.header().request_id == request.request_id;
  });
  if (cancelled != nullptr) {
    asker_.AnswerStatus(cancelled->header(), absl::CancelledError("the program cancelled it"));
    pending_.End(*cancelled);
  }
  asker_.AnswerStatus(header, absl::OkStatus());
}

void Session::Release(const client::Header& header, const client::ReleaseRequest& request) {
  absl::Status first_error;
  for (const base::ObjectId& id : request.ids) first_error.Update(store_.Release(id, asker_.owner()));
  asker_.AnswerStatus(header, first_error);
}

void Session::List(const client::Header& header, const client::ListRequest& request) {
  std::optional<base::ObjectId> after;
  if (request.continued) after = request.after;
  client::ListReply reply;
  const auto page = store_.List(request.limit, after);
  for (const store::StoredObject& info : page) reply.objects.push_back(ToWire(info, context_.loop.Now()));
  reply.more = !page.empty() && !store_.List(1, page.back().id).empty();
  asker_.Answer(header, reply);
}

void Session::Progress(const client::Header& header, const client::ProgressRequest& request) {
  const auto progress = context_.node.pulls().Progress(request.id);
  if (!progress.has_value()) {
    return asker_.AnswerStatus(header, absl::NotFoundError("the object is not on its way to this node"));
  }
  client::ProgressReply reply;
  reply.moved = progress->moved;
  reply.total = progress->total;
  asker_.Answer(header, reply);
}

void Session::Evict(const client::Header& header, const client::EvictRequest& request) {
  const store::EvictionCount evicted = store_.Evict(request.bytes);
  client::EvictReply reply;
  reply.objects = evicted.objects;
  reply.bytes = evicted.bytes;
  asker_.Answer(header, reply);
}

void Session::Wait(const client::Header& header, const client::WaitRequest& request) {
  if (request.count > request.ids.size()) {
    return asker_.AnswerStatus(header, absl::InvalidArgumentError("cannot wait for more objects than are named"));
  }
  if (request.scope == client::Scope::kLocal) return Begin<PendingWaitHere>(header, {request.ids.size()}, request);
  if (!MayLookFor(header, request.ids, request.timeout_microseconds)) return;
  Begin<PendingWaitAnywhere>(header, {request.ids.size()}, request);
}

void Session::Subscribe(const client::Header& header, const client::SubscribeRequest& request) {
  asker_.AnswerStatus(header, absl::OkStatus());
  feed_.Start(store_, header.request_id, request.existing);
}

void Session::NodeStats(const client::Header& header) {
  client::NodeStatsReply reply;
  reply.node = context_.node.options().id;
  reply.device = context_.device.substr(0, client::kMaxName);
  for (NamedNumber& number : NumbersForStat(context_.snapshot())) {
    reply.numbers.push_back({std::move(number.name), number.value});
  }
  if (reply.numbers.size() > client::kMaxNumbers) reply.numbers.resize(client::kMaxNumbers);
  asker_.Answer(header, reply);
}

}  // namespace tokamak::daemon
