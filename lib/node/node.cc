#include "lib/node/node.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/node/deletes/object_delete.h"
#include "lib/node/remote_get.h"

namespace tokamak::node {

Node::Node(base::EventLoop& loop, store::Store& store, directory::Directory& directory, std::vector<Engine*> engines,
           base::Random random, base::Trace& trace, const NodeOptions& options)
    : loop_(loop),
      store_(store),
      directory_(directory),
      options_(options),
      prefetcher_(store.NewOwner()),
      answers_(loop),
      peers_(loop, directory, options.peers),
      membership_(loop, store, directory, *this, SelfInfo(engines, store.arena().size(), options), options.membership),
      object_caller_(engines.front()->programs(), Service::kObjects),
      numbers_caller_(engines.front()->programs(), Service::kNumbers),
      cluster_({loop, directory, numbers_caller_, membership_.self(), [this] { return own_numbers_(); }}),
      vouched_({loop, object_caller_, engines.front()->address()}, VouchOptions(options),
               [this](const base::ObjectVersion& version) { membership_.Recheck(version); }),
      pulls_({loop, store, directory, peers_, membership_, places_, dropped_, *this, object_caller_, engines,
              options.id, trace, options.trace_node},
             random, options.pulls),
      deletes_(loop,
               [this](const base::ObjectId& id, DeleteCallback done) { return BeginDelete(id, std::move(done)); }) {
  for (Engine* engine : engines) {
    served_.push_back(std::make_unique<Served>());
    served_.back()->engine = engine;
    served_.back()->owner = store_.NewOwner();
    Serve(*served_.back());
  }
  call_router_.Register(Service::kObjects, [this](absl::Span<const uint8_t> request, const CallRouter::Reply& reply) {
    return HandleObjectCall(request, reply);
  });
  call_router_.Register(Service::kNumbers, [this](absl::Span<const uint8_t> request, const CallRouter::Reply& reply) {
    return HandleNumbersCall(request, reply);
  });
}

Node::~Node() {
  for (const auto& served : served_) {
    CHECK(!served->engine->open()) << "the engines must have ended before the node: peers still use the store";
    served->engine->StopServing();
    store_.DropOwner(served->owner);
  }
  store_.DropOwner(prefetcher_);
}

directory::NodeInfo Node::SelfInfo(const std::vector<Engine*>& engines, uint64_t capacity, const NodeOptions& options) {
  directory::NodeInfo self;
  self.id = options.id;
  self.incarnation = options.incarnation;
  self.device = options.device;
  self.capacity = capacity;
  for (const Engine* engine : engines) self.engines.push_back(engine->address().ToString());
  return self;
}

void Node::Start(std::function<void(const absl::Status&)> answered) {
  membership_.Start(std::move(answered));
  peers_.Watch();
}

void Node::Leave(std::function<void(const absl::Status&)> left) {
  store_.CloseToPuts(absl::UnavailableError("this node is leaving the cluster: put it on another one"));
  membership_.Leave(std::move(left));
}

// ---- calls of one engine's peers

void Node::Serve(Served& served) {
  Engine::Handlers handlers;
  handlers.pin = [this, &served](uint64_t pin, const base::ObjectVersion& version) { PinFor(served, pin, version); };
  handlers.unpin = [this, &served](uint64_t pin) { UnpinFor(served, pin); };
  handlers.call = [this](absl::Span<const uint8_t> request, CallRouter::Reply reply) {
    return call_router_.Handle(request, std::move(reply));
  };
  served.engine->Serve(std::move(handlers));
}

void Node::PinFor(Served& served, uint64_t pin, const base::ObjectVersion& version) {
  membership_.EndOverdue();
  if (membership_.fenced()) {
    return served.engine->Pinned(pin, absl::FailedPreconditionError("the holder has not reached the directory for too "
                                                                    "long to know what was deleted"));
  }
  const std::optional<store::Location> here = store_.Find(version.id);
  if (!here.has_value() || here->generation != version.generation) {
    membership_.Recheck(version);  // the peer believes it here
    return served.engine->Pinned(pin, absl::NotFoundError("the object is not here any more"));
  }
  const absl::StatusOr<store::Location> place = store_.Acquire(version.id, served.owner);
  if (!place.ok()) return served.engine->Pinned(pin, place.status());
  served.pins.emplace(pin, version.id);
  ++pins_of_peers_total_;
  served.engine->Pinned(
      pin, transport::PinnedObject{store_.Memory(*place).data(), {place->data_size, place->metadata_size}});
}

void Node::UnpinFor(Served& served, uint64_t pin) {
  const auto found = served.pins.find(pin);
  if (found == served.pins.end()) return;  // refused pin
  CHECK(store_.Release(found->second, served.owner).ok());
  served.pins.erase(found);
}

absl::Span<const uint8_t> Node::ContentsForPeer(const base::ObjectVersion& version) {
  membership_.EndOverdue();
  const std::optional<store::Location> here = store_.Find(version.id);
  if (membership_.fenced() || !here.has_value() || here->generation != version.generation) return {};
  CHECK(store_.Touch(version.id).ok());
  ++brought_to_peers_total_;
  const absl::Span<const uint8_t> contents = store_.Bytes(*here);
  loop_.SpendOnCopy(contents.size());
  return contents;
}

std::optional<uint64_t> Node::SizeInBundle(const base::ObjectVersion& version) const {
  const std::optional<store::Location> here = store_.Find(version.id);
  const bool has_it = here.has_value() && here->generation == version.generation;
  if (membership_.fenced() || !has_it) return std::nullopt;
  if (!directory::IsSmallEnoughToBring(here->data_size, here->metadata_size)) return std::nullopt;
  return here->data_size + here->metadata_size;
}

size_t Node::pins_of_peers() const {
  size_t pins = 0;
  for (const auto& served : served_) pins += served->pins.size();
  return pins;
}

base::Pending Node::HandleObjectCall(absl::Span<const uint8_t> request, const CallRouter::Reply& reply) {
  membership_.EndOverdue();
  if (const std::optional<ObjectRequest> call = DecodeRequest(request)) {
    return std::visit([this, &reply](const auto& one) { return Answer(one, reply); }, *call);
  }
  reply({});
  return nullptr;
}

base::Pending Node::Answer(const DropRequest& request, const CallRouter::Reply& reply) {
  const bool had_it = PlaceOf(request.version).has_value();
  Drop(request.version, absl::AbortedError("it was deleted"));
  base::Pending waits = vouched_.Await(request.version, [reply, had_it] { reply(EncodeDropAnswer(had_it)); });
  if (waits == nullptr) reply(EncodeDropAnswer(had_it));
  return waits;
}

base::Pending Node::Answer(const KeepRequest& request, const CallRouter::Reply& reply) {
  return std::make_unique<ObjectKeep>(KeepNeeds(), request, reply);
}

base::Pending Node::Answer(const VouchRequest& request, const CallRouter::Reply& reply) {
  reply(EncodeVouchAnswer(VouchFor(request.version, request.node, VouchLifetime(/*brings=*/false))));
  return nullptr;
}

base::Pending Node::Answer(const DropCopyRequest& request, const CallRouter::Reply& reply) {
  Drop(request.version, absl::AbortedError("it was deleted"));
  reply(EncodeDropCopyAnswer(vouched_.NodesOf(request.version)));
  return nullptr;
}

base::Pending Node::Answer(const BringRequest& request, const CallRouter::Reply& reply) {
  std::optional<BringAnswer> answer;
  const std::optional<store::Location> here = PlaceOf(request.version);
  if (here.has_value() && MayBring(*here)) {
    const auto good_for = VouchFor(request.version, request.node, VouchLifetime(/*brings=*/true));
    if (good_for.has_value()) {
      answer = {*good_for, here->data_size, here->metadata_size, ContentsForPeer(request.version)};
    }
  }
  reply(EncodeBringAnswer(answer));
  return nullptr;
}

base::Pending Node::Answer(const BringAllRequest& request, const CallRouter::Reply& reply) {
  reply(Bundles::Answer(
      request.versions, object_caller_.max_call_size(),
      [this](const base::ObjectVersion& one) { return SizeInBundle(one); },
      [this](const base::ObjectVersion& one) { return ContentsForPeer(one); }));
  return nullptr;
}

base::Pending Node::Answer(const PushRequest& request, const CallRouter::Reply& reply) {
  const directory::Host& host = reply.peer().ip;
  if (!brought_.MayTake(host, request.ids.size())) {
    const std::vector<absl::Status> refused(request.ids.size(), absl::ResourceExhaustedError("too many are brought"));
    reply(EncodePushAnswer(refused));
    return nullptr;
  }
  auto served =
      std::make_unique<ObjectPush::Served>(request.ids.size(), reply, brought_.Take(host, request.ids.size()));
  GetOptions options;
  options.timeout = request.timeout;
  for (size_t i = 0; i < request.ids.size(); ++i) {
    served->Add(Prefetch(request.ids[i], options, /*pin=*/false,
                         [served = served.get(), i](const absl::Status& status) { served->Ended(i, status); }));
  }
  return served;
}

base::Pending Node::Answer(const HowFarRequest& request, const CallRouter::Reply& reply) {
  std::vector<uint64_t> far;
  for (const base::ObjectVersion& version : request.versions) {
    far.push_back(pulls_.Progress(version.id).value_or(PullProgress()).moved);
  }
  reply(EncodeHowFarAnswer(far));
  return nullptr;
}

base::Pending Node::HandleNumbersCall(absl::Span<const uint8_t> request, const CallRouter::Reply& reply) const {
  if (request.empty()) {
    reply(NodeNumbers::Encode(own_numbers_()));
  } else {
    reply({});
  }
  return nullptr;
}

// For a content that a peer pulled, or is brought, unentered: while not fenced, this node has each
// deletion reach the peer. Returns for how long; nullopt: not vouched for.
std::optional<base::Duration> Node::VouchFor(const base::ObjectVersion& version, const verbs::Address& node,
                                             base::Duration lifetime) {
  const std::optional<base::Time> until = membership_.DeletionsReachUntil(version);
  if (!PlaceOf(version).has_value() || membership_.fenced() || !until.has_value()) return std::nullopt;
  if (!vouched_.Vouch(version, node, lifetime)) return std::nullopt;
  return std::min(*until - loop_.Now(), lifetime - options_.membership.directory_deadline);
}

// nullopt: another content, or none.
std::optional<store::Location> Node::PlaceOf(const base::ObjectVersion& version) const {
  const std::optional<store::Location> here = store_.Find(version.id);
  return here.has_value() && here->generation == version.generation ? here : std::nullopt;
}

bool Node::MayBring(const store::Location& here) const {
  return directory::IsSmallEnoughToBring(here.data_size, here.metadata_size) &&
         here.data_size + here.metadata_size + BringAnswer::kBesideContents <= object_caller_.max_call_size();
}

// A brought object is announced at once; with the directory away the copy goes: a longer promise
// would have deletions wait for a departed node. The peer is promised less by a deadline: clocks
// differ.
base::Duration Node::VouchLifetime(bool brings) const {
  const bool entered_soon = brings && !membership_.directory_away();
  return entered_soon ? options_.membership.directory_deadline * 3 : VouchOptions(options_).lifetime;
}

// ---- calls of this machine's programs

base::Pending Node::Get(absl::Span<const base::ObjectId> ids, const GetOptions& options, store::Owner who,
                        GetCallback done) {
  membership_.EndOverdue();
  if (!membership_.fenced() && !membership_.left()) {
    return std::make_unique<RemoteGet>(loop_, store_, pulls_, latency_, ids, options, who, std::move(done));
  }
  const absl::Status why = absl::UnavailableError(
      membership_.left()
          ? "this node is leaving the cluster"
          : "this node has not reached its directory for longer than its lease and grace, so that what it "
            "holds may have been deleted or replaced: start the directory, or start tokd with more --grace");
  std::vector<GetResult> results(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    results[i].id = ids[i];
    results[i].status = why;
  }
  return AnswerSoon([results = std::move(results), done = std::move(done)] { done(results); });
}

base::Pending Node::Prefetch(const base::ObjectId& id, const GetOptions& options, bool pin,
                             std::function<void(const absl::Status&)> done) {
  return Get({id}, options, prefetcher_, [this, pin, done = std::move(done)](absl::Span<const GetResult> results) {
    const GetResult& result = results.front();
    if (!result.location.has_value()) return done(result.status);
    const absl::Status status = pin ? store_.PinHere(result.id) : absl::OkStatus();
    CHECK(store_.Release(result.id, prefetcher_).ok());
    done(status);
  });
}

base::Pending Node::Push(const directory::NodeId& to, PushRequest request, ObjectPush::Callback done) {
  if (pushes_ < kMaxPushes && to != options_.id) {
    return std::make_unique<ObjectPush>(
        ObjectPush::Needs{peers_, object_caller_, pushes_, options_.membership.directory_deadline}, to,
        std::move(request), std::move(done));
  }
  const std::vector<absl::Status> refused(
      request.ids.size(),
      to == options_.id
          ? absl::InvalidArgumentError(absl::StrCat("node ", to, " is the one that was asked: prefetch instead"))
          : absl::ResourceExhaustedError(absl::StrCat(kMaxPushes, " pushes of this node are under way: await some")));
  return AnswerSoon([refused, done = std::move(done)] { done(refused); });
}

base::Pending Node::BeginDelete(const base::ObjectId& id, DeleteCallback done) {
  if (membership_.directory_away()) {
    return AnswerSoon([done = std::move(done)] {
      done(absl::UnavailableError(
          "nothing was deleted: the directory is away, so the holders are not known; try again"));
    });
  }
  // Announces a fresh object first: a directory that has just begun cannot delete what it does not
  // know.
  if (const auto here = store_.Find(id); here.has_value() && membership_.IsUnannounced({id, here->generation})) {
    membership_.Recheck({id, here->generation});
  }
  return std::make_unique<ObjectDelete>(DeleteNeeds(), id, std::move(done));
}

// Past lease and grace a node has announced its copy, or is fenced.
VouchedCopies::Options Node::VouchOptions(const NodeOptions& options) {
  VouchedCopies::Options vouch;
  vouch.deadline = options.membership.directory_deadline;
  vouch.lifetime = options.membership.lease + options.membership.grace + options.membership.directory_deadline * 2;
  return vouch;
}

ObjectDelete::Needs Node::DeleteNeeds() {
  return {loop_,       store_,         directory_,
          peers_,      object_caller_, *this,
          membership_, options_.id,    options_.membership.directory_deadline};
}

ObjectKeep::Needs Node::KeepNeeds() {
  return {loop_, store_, pulls_, membership_, dropped_, evacuations_, options_.membership.directory_deadline};
}

// Beyond the bound, the next node to find it named does this.
void Node::OnDeletedIsNamed(const base::ObjectVersion& version) {
  if (carried_on_.size() >= kMaxCarriedOn || carried_on_.count(version) != 0) return;
  carried_on_[version] = std::make_unique<ObjectDelete>(
      DeleteNeeds(), version, [this, version](const absl::StatusOr<uint32_t>&) { carried_on_.erase(version); });
}

base::Pending Node::Evacuate(base::Duration limit, Evacuation::Callback progress, Evacuation::Callback done) {
  return std::make_unique<Evacuation>(
      Evacuation::Needs{loop_, store_, directory_, membership_, object_caller_, evacuations_, options_.id,
                        options_.membership.directory_deadline},
      limit, std::move(progress), std::move(done));
}

base::Pending Node::Confirm(const base::ObjectVersion& version, std::function<void(const absl::Status&)> done) {
  const auto confirmed = [this, version, done = std::move(done)](const absl::Status& status) {
    if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) Drop(version, status);
    done(status);
  };
  const base::Duration deadline =
      membership_.directory_away() ? base::Duration() : options_.membership.directory_deadline;
  return membership_.Confirm(version, deadline, confirmed);
}

base::Pending Node::Locate(const base::ObjectId& id, base::Duration wait, LocateCallback done) {
  if (membership_.directory_away() && wait <= base::Duration()) {
    return AnswerSoon([done = std::move(done)] { done(absl::UnavailableError("the directory is away")); });
  }
  directory::LocateRequest request;
  request.id = id;
  request.wait = wait;
  request.deadline = wait + options_.membership.directory_deadline;
  return directory_.Locate(request, [this, id, done = std::move(done)](absl::StatusOr<directory::LocatedObject> info) {
    if (info.ok()) places_.Remember(id, *info, loop_.Now());
    if (absl::IsUnavailable(info.status()) || absl::IsDeadlineExceeded(info.status())) membership_.Suspect();
    // A time-out would mean the asker's own.
    if (absl::IsDeadlineExceeded(info.status())) info = absl::UnavailableError(info.status().message());
    done(std::move(info));
  });
}

void Node::Drop(const base::ObjectVersion& version, const absl::Status& why) {
  // A version that only lost its id may come back once the other content is deleted.
  if (!absl::IsAlreadyExists(why)) {
    dropped_.Remember(version);
    vouched_.Drop(version);
  }
  places_.Forget(version.id);
  pulls_.Drop(version);
  const auto reason = absl::IsAlreadyExists(why) ? store::Event::Kind::kRefused : store::Event::Kind::kDeleted;
  store_.DeleteVersion(version, reason).IgnoreError();  // kNotFound: it is not here
}

}  // namespace tokamak::node
