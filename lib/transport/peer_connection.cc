#include "lib/transport/peer_connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::transport {
namespace {

using Side = BulkChannel::Side;

enum class ConnectionStep : uint32_t { kUp = 1, kBroken = 2 };

absl::Status WithPeer(const verbs::Address& peer, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(peer.ToString(), ": ", status.message()));
}

// Recognizes a peer of another version, or with another cluster secret, by its refusal.
absl::Status ReasonOf(const verbs::ConnectionEvent& event, const PeerSecurity& security) {
  if (event.kind == verbs::ConnectionEvent::Kind::kUnreachable) {
    return absl::UnavailableError(absl::StrCat("not reachable: ", event.status.message()));
  }
  if (IsHello(event.private_data)) {
    const auto theirs = DecodeHello(event.private_data);
    if (theirs.status().code() == absl::StatusCode::kFailedPrecondition) return theirs.status();
    const security::ClusterSecret* ours = nullptr;
    if (theirs.ok()) {
      const absl::Status known = PeerHandshake::FindSecret(security, *theirs, &ours);
      if (!known.ok()) return absl::FailedPreconditionError(known.message());
    }
  }
  return absl::UnavailableError(absl::StrCat("the peer refused the connection: ", event.status.message()));
}

// `bytes` has to live as long as they are used.
security::QueuePairFacts FactsOf(Hello hello, std::array<uint8_t, kHelloSize>* bytes) {
  hello.proof = {};
  EncodeHello(hello, absl::MakeSpan(*bytes));
  return {hello.queue, hello.attempt, *bytes};
}

absl::Status CheckKeys(const RailKeys& further, const BulkChannel::Shape& shape) {
  for (uint32_t i = 0; i < further.count; ++i) {
    const uint32_t rail = further.keys[i].rail;
    if (rail >= shape.rails || rail == shape.primary) {
      return absl::InvalidArgumentError(absl::StrCat("a key of rail ", rail, ", which the connection does not have"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// ---- coming up

absl::StatusOr<std::unique_ptr<PeerConnection>> PeerConnection::Create(Context& context, Side side,
                                                                       const BulkChannel::Shape& shape,
                                                                       const verbs::Address& peer, uint64_t token,
                                                                       PeerConnection::User& user) {
  std::unique_ptr<PeerConnection> connection(new PeerConnection(context, peer, token, user));
  if (absl::Status s = connection->Open(side, shape); !s.ok()) return s;
  return connection;
}

PeerConnection::~PeerConnection() {
  CHECK(!turn.listed) << "dropped while its completions are passed on";
  TearDown();
}

absl::Status PeerConnection::Open(Side side, const BulkChannel::Shape& shape) {
  RailLinks::User& links_user = *this;
  SharedCompletions::User& user = *this;
  bulk_ = std::make_unique<BulkChannel>(context_, side, shape, peer_);
  PrimaryRail::Host& home_host = *this;
  home_.emplace(context_, home_host, *bulk_, peer_);
  rails_.emplace(context_, home_host, *bulk_);
  links_ = std::make_unique<RailLinks>(context_, shape.primary, links_user);
  auto control = ControlChannel::Create(context_, shape.primary, user);
  if (!control.ok()) return control.status();
  control_ = *std::move(control);
  links_->Add(0, control_->queue_pair());
  deadline_ = context_.loop.RunAfter(context_.options.connect_deadline,
                                     [this] { Break(absl::UnavailableError("not connected by the deadline")); });
  return absl::OkStatus();
}

Hello PeerConnection::MyHello(uint32_t queue, const Hello* asked) {
  const EndpointOptions& options = context_.options;
  const BulkChannel::Shape& shape = bulk_->shape();
  const uint32_t rail = queue == 0 ? shape.primary : bulk_->RailOfQueue(queue - 1);
  Hello hello;
  hello.queue = static_cast<uint8_t>(queue);
  hello.bulk_queue_pairs = static_cast<uint8_t>(shape.each);
  hello.reads_served = options.reliability.reads_served;
  hello.immediate = context_.rails[rail].device.limits().immediate;
  hello.rails = static_cast<uint8_t>(shape.rails);
  hello.primary = static_cast<uint8_t>(shape.primary);
  hello.slot_size = options.slot_size;
  hello.first_slots = options.first_slots;
  hello.receive_slots = options.receive_slots;
  hello.max_transfers = PeerShares::PartOf(options.max_transfers);
  hello.max_calls = kMaxCallsServed;
  hello.token = token_;
  if (queue == 0) {
    secrets_ = context_.options.security.secrets;
    asked == nullptr ? PeerHandshake::Offer(context_.options.security, &hello)
                     : PeerHandshake::Answer(context_.options.security, *asked, &hello);
    my_hello_ = hello;
  } else if (keys_.has_value()) {
    hello.attempt = asked == nullptr ? ++attempts_[queue - 1] : asked->attempt;
    std::array<uint8_t, kHelloSize> bytes;
    hello.proof = keys_->Prove(FactsOf(hello, &bytes));
  }
  return hello;
}

absl::Status PeerConnection::CheckProof(const Hello& theirs) {
  if (!keys_.has_value()) return absl::OkStatus();
  std::array<uint8_t, kHelloSize> bytes;
  return keys_->Check(FactsOf(theirs, &bytes), theirs.proof);
}

absl::Status PeerConnection::Connect() { return links_->Connect(peer_); }

absl::Status PeerConnection::Accept(verbs::ConnectionRequest& request, const Hello& theirs) {
  CHECK(!broken() && theirs.bulk_queue_pairs == bulk_->shape().each);
  if (theirs.queue == 0) return links_->Accept(request, theirs);
  if (absl::Status s = CheckProof(theirs); !s.ok()) return s;
  const uint32_t rail = bulk_->RailOfQueue(theirs.queue - 1u);
  if (rail == primary()) return home_->Accept(request, theirs);
  SecondaryRail* secondary = rails_->Find(rail);
  return secondary != nullptr ? secondary->Accept(request, theirs) : absl::InvalidArgumentError("no such rail");
}

void PeerConnection::OnPeerHello(const Hello& theirs) {
  peer_hello_ = theirs;
  control_->OnPeerHello(theirs);
  if (bulk_->side() == Side::kPuller) bulk_->LimitRails(theirs.rails);
}

void PeerConnection::OnLinksUp(const RailLinks::Path& path) {
  if (broken()) return;
  deadline_.Cancel();
  bulk_->LimitPackets(path.mtu);
  if (my_hello_.secret == security::SecretId()) {
    confirmed_ = true;
    ComeUp();
  } else if (absl::Status s = BeginHandshake(path.peer_queue_pair); !s.ok()) {
    Break(s);
  }
  PassEarly();
}

// The hellos agree on whether there is one, and on the secret.
absl::Status PeerConnection::BeginHandshake(uint32_t peer_queue_pair) {
  state_ = State::kProving;
  const auto secret = secrets_->Find(my_hello_.secret);
  CHECK(secret.ok()) << secret.status();
  const bool asks = bulk_->side() == Side::kPuller;
  // The network knows both numbers or none.
  const uint32_t number = peer_queue_pair == 0 ? 0 : control_->queue_pair().number();
  const verbs::Address own = asks ? context_.rails[primary()].device.address() : context_.services[primary()];
  const PeerHandshake::End mine{own, number, my_hello_}, theirs{peer_, peer_queue_pair, peer_hello_};
  PeerHandshake::User& user = *this;
  handshake_.emplace(context_, *control_, asks ? security::Role::kInitiator : security::Role::kResponder,
                     asks ? mine : theirs, asks ? theirs : mine, **secret, user);
  return handshake_->Start();
}

void PeerConnection::OnProven(security::SecuredConnection secured) {
  handshake_.reset();
  ++context_.counters.peers_proven;
  keys_.emplace(std::move(secured.keys));
  const bool asks = bulk_->side() == Side::kPuller;
  if (asks) attempts_.resize(bulk_->shape().rails * bulk_->shape().each);
  if (asks ? peer_hello_.seals : my_hello_.seals) control_->Seal(std::move(secured.channel));
  ComeUp();
  if (!asks) Send({});  // the puller may connect bulk queue pairs now
}

void PeerConnection::OnRefused(const absl::Status& why) {
  handshake_.reset();
  ++context_.counters.peers_refused;
  context_.refusals.Log(context_.loop.Now(), peer_, why);
  Break(absl::UnavailableError(absl::StrCat("the handshake failed: ", why.message())));
}

void PeerConnection::ComeUp() {
  PeerWatch::User& watch_user = *this;
  state_ = State::kUp;
  control_->Enable();
  ++context_.counters.connections_opened;
  context_.Record(base::TraceKind::kConnection, static_cast<uint32_t>(ConnectionStep::kUp), links_->size());
  const bool connects = bulk_->side() == Side::kPuller;
  watch_.emplace(context_, *control_, context_.options.idle_disconnect * (connects ? 1 : 2), watch_user);
  Watch();
  Wake();
  if (!connects && bulk_->shape().rails > 1) {
    rails_->Make();
    Header header;
    header.kind = MessageKind::kRails;
    Send(header, EncodeRails(absl::MakeConstSpan(context_.services).subspan(0, bulk_->shape().rails)));
  }
  user_.OnUp();
}

void PeerConnection::PassEarly() {
  CopyBudget budget;
  for (const verbs::Completion& completion : std::exchange(early_, {})) OnCompletion(completion, budget);
}

void PeerConnection::OnBulkUp() {
  if (bulk_->side() == Side::kPuller) rails_->Join();
}

void PeerConnection::OnLinkLost(const verbs::ConnectionEvent& event) {
  if (event.kind != verbs::ConnectionEvent::Kind::kDisconnected) {
    return Break(ReasonOf(event, context_.options.security));
  }
  if (state_ == State::kProving) {
    return OnRefused(absl::UnavailableError(
        "the peer ended it: it has another cluster secret, or somebody between us changes what is said"));
  }
  if (leaving_.ok()) {
    leaving_ = absl::UnavailableError(absl::StrCat("disconnected: ", event.status.message()));
    for (uint32_t rail = 0; rail < bulk_->shape().rails; ++rail) left_by_[rail] = context_.completions[rail]->ahead();
  }
  Wake();  // what the peer sent before still counts
}

void PeerConnection::OnBadHello(const absl::Status& status) {
  if (my_hello_.secret != security::SecretId() && !keys_.has_value()) return OnRefused(status);
  absl::IsInvalidArgument(status) ? BreakForViolation(status) : Break(status);
}

// ---- for the user

void PeerConnection::Send(const Header& header, std::vector<uint8_t> body) {
  if (broken()) return;
  if (absl::Status s = control_->Send(header, std::move(body)); !s.ok()) return BreakForViolation(s);
  Wake();
}

void PeerConnection::Wake() {
  if (broken() || turn.listed || work_.armed()) return;  // listed: its turn comes in this task
  work_ = context_.loop.Post([this] { Work(); });
}

bool PeerConnection::Drain() {
  if (leaving()) return true;
  control_->Drain();
  if (control_->drained()) return true;
  Wake();
  return false;
}

void PeerConnection::Watch() {
  if (watch_.has_value()) watch_->Watch();
}

void PeerConnection::SayDown(uint32_t rail) {
  const bool pulls = bulk_->side() == Side::kPuller;
  Header header;
  header.kind = MessageKind::kRailDown;
  header.rail = rail;
  Send(header, pulls ? EncodeWanted(user_.WritesWanted()) : std::vector<uint8_t>());
}

void PeerConnection::EndRequests(const BulkJob& job, const absl::Status& status) {
  if (broken()) return;
  uint32_t rails = 0;
  for (uint32_t s = 0; s < job.share_count; ++s) {
    if (job.shares[s].in_flight > 0) rails |= 1u << bulk_->RailOfQueue(job.shares[s].queue);
  }
  if (rails == 0 || (rails >> primary() & 1) != 0) return Break(status);
  for (uint32_t rail = 0; rail < rails_->size(); ++rail) {
    if ((rails >> rail & 1) != 0) rails_->Find(rail)->Fail(status);
  }
}

// ---- work

void PeerConnection::Work() {
  if (broken()) return;
  if (leaving_.ok()) {
    CopyBudget budget;
    return OnTurn(budget);
  }
  // Take in what the peer sent before it left, and no more: others' completions may go on for ever.
  bool more = false;
  for (uint32_t rail = 0; rail < bulk_->shape().rails; ++rail) {
    SharedCompletions& completions = *context_.completions[rail];
    more |= completions.Drain() && completions.passed() < left_by_[rail];
  }
  if (broken()) return;
  if (more) {
    Wake();
  } else {
    Break(leaving_);
  }
}

void PeerConnection::OnTurn(CopyBudget& budget) {
  if (broken()) return;
  if (!leaving_.ok()) return Wake();
  OnTrouble({control_->Repost(), primary()});
  OnTrouble(bulk_->Repost());
  if (broken()) return;
  bool more = false;  // held back by the budget alone
  OnTrouble({control_->Pump(budget, &more), primary()});
  OnTrouble(bulk_->Pump());
  if (watch_.has_value()) watch_->OnTurn();
  if (more) Wake();
}

void PeerConnection::OnCompletion(const verbs::Completion& completion, CopyBudget& budget) {
  if (broken()) return;
  const RequestId id = RequestId::Unpack(completion.id);
  if (id.queue > 0 && !bulk_->Has(id.queue - 1u)) return;
  const bool proves = my_hello_.secret != security::SecretId();
  const bool early =
      state_ == State::kConnecting && (bulk_->side() == Side::kPuller || proves) && id.queue == 0 && id.receive;
  if (early && completion.status == verbs::CompletionStatus::kSuccess) return early_.push_back(completion);
  if (completion.status != verbs::CompletionStatus::kSuccess) {
    HandleError(id, completion);
  } else if (id.receive && state_ == State::kProving && id.queue == 0) {
    handshake_->OnMessage(id.entry, completion.byte_count);
  } else if (id.receive) {
    const absl::Status s = id.queue == 0 ? HandleReceive(id, completion, budget) : HandleNote(id, completion);
    if (!s.ok()) BreakForViolation(s);
  } else {
    const absl::Status s = id.queue == 0 ? control_->OnSent(id.entry) : bulk_->OnSent(id.queue - 1u, id.entry);
    if (!s.ok()) Break(s);
  }
  if (id.queue == 0) return;
  if (SecondaryRail* rail = rails_->Find(bulk_->RailOfQueue(id.queue - 1u))) rail->OnTaken();
}

absl::Status PeerConnection::HandleReceive(const RequestId& id, const verbs::Completion& completion,
                                           CopyBudget& budget) {
  auto message = control_->OnReceived(id.entry, completion.byte_count);
  if (!message.ok()) return message.status();
  heard_ = true;
  if (!std::exchange(confirmed_, true)) home_->OnMayJoin();
  const absl::Status s = HandleMessage(*message, budget);
  control_->Release(id.entry);
  return s;
}

absl::Status PeerConnection::HandleNote(const RequestId& id, const verbs::Completion& completion) {
  auto value = bulk_->OnReceived(id.queue - 1u, id.entry, completion);
  if (!value.ok()) return value.status();
  const bool greeting = *value == Note::kGreeting && bulk_->side() == Side::kOwner;
  return greeting ? absl::OkStatus() : user_.OnNote(Note::Unpack(*value));
}

absl::Status PeerConnection::HandleMessage(const Message& message, CopyBudget& budget) {
  switch (message.header.kind) {
    case MessageKind::kCredit:
    case MessageKind::kRelease:
      return absl::OkStatus();
    case MessageKind::kRails: {
      auto rails = DecodeRails(message.body);
      if (!rails.ok()) return rails.status();
      if (absl::Status s = rails_->Learn(*rails); !s.ok()) return s;
      if (home_->up()) rails_->Join();
      user_.OnRails(*rails);
      return absl::OkStatus();
    }
    case MessageKind::kRailDown:
      return HandleRailDown(message);
    default:
      if (absl::Status s = CheckKeys(message.header.remote.further, bulk_->shape()); !s.ok()) return s;
      return user_.OnMessage(message, budget);
  }
}

absl::Status PeerConnection::HandleRailDown(const Message& message) {
  auto wanted = DecodeWanted(message.body);
  if (!wanted.ok()) return wanted.status();
  if (message.header.rail == primary()) return home_->OnPeerDown(*wanted);
  return rails_->OnPeerDown(message.header.rail, *wanted);
}

void PeerConnection::HandleError(const RequestId& id, const verbs::Completion& completion) {
  const absl::Status status =
      absl::UnavailableError(absl::StrCat(id.queue == 0 ? "message " : "bulk ",
                                          id.receive ? "receive: " : "request: ", verbs::ToString(completion.status)));
  if (id.queue > 0) {
    const uint32_t q = id.queue - 1u;
    if (completion.status == verbs::CompletionStatus::kWindowBind) bulk_->OnBindFailed(q, id.entry);
    if (SecondaryRail* rail = rails_->Find(bulk_->RailOfQueue(q))) {
      bulk_->OnFlushed(q, id.receive, id.entry);
      return rail->Fail(status);
    }
    if (completion.status == verbs::CompletionStatus::kFlushed && home_->may_go()) {
      return bulk_->OnFlushed(q, id.receive, id.entry);
    }
    if (completion.status == verbs::CompletionStatus::kRetryExceeded) {
      context_.lossy_paths.Note(peer_.ip, context_.loop.Now());
    }
  }
  // Flushed because the peer has left.
  if (completion.status == verbs::CompletionStatus::kFlushed && !leaving_.ok()) return Break(leaving_);
  const bool too_long = id.receive && completion.status == verbs::CompletionStatus::kLocalLength;
  if (too_long) {
    BreakForViolation(status);
  } else {
    Break(status);
  }
}

void PeerConnection::OnTrouble(const BulkChannel::Trouble& trouble) {
  if (trouble.status.ok()) return;
  const absl::Status status = absl::UnavailableError(trouble.status.message());
  SecondaryRail* rail = rails_->Find(trouble.rail);
  rail != nullptr ? rail->Fail(status) : Break(status);
}

// ---- the device, and the end

void PeerConnection::OnDeviceEvent(uint32_t rail, const verbs::DeviceEventInfo& info) {
  if (broken()) return;
  if (rail != primary()) {
    if (SecondaryRail* secondary = rails_->Find(rail)) secondary->OnDeviceEvent(info);
  } else if (info.event == verbs::DeviceEvent::kRemoved) {
    Break(absl::UnavailableError("the device was removed"));
  } else if (info.event == verbs::DeviceEvent::kQueuePairFatal &&
             (links_->Has(info.queue_pair_number) || home_->Has(info.queue_pair_number))) {
    Break(absl::UnavailableError("the device gave up a queue pair"));
  }
}

void PeerConnection::Break(absl::Status status) {
  if (broken()) return;
  if (state_ == State::kUp) {
    if (user_.busy()) ++context_.counters.connections_lost;
    context_.Record(base::TraceKind::kConnection, static_cast<uint32_t>(ConnectionStep::kBroken), links_->size());
  }
  state_ = State::kBroken;
  reason_ = WithPeer(peer_, status);
  LOG(DEBUG) << "a connection " << (bulk_->side() == Side::kPuller ? "to " : "of ") << reason_;
  deadline_.Cancel();
  handshake_.reset();
  watch_.reset();
  work_ = context_.loop.Post([this] {
    TearDown();
    user_.OnBroken(reason_);
  });
}

void PeerConnection::BreakForViolation(const absl::Status& status) {
  if (broken()) return;
  ++context_.counters.protocol_errors;
  LOG(WARNING) << peer_.ToString() << " violates the protocol and is disconnected: " << status;
  Break(absl::UnavailableError(absl::StrCat("protocol violation of the peer: ", status.message())));
}

void PeerConnection::TearDown() {
  handshake_.reset();
  watch_.reset();
  if (rails_.has_value()) rails_->DropLinks();
  if (home_.has_value()) home_->DropLinks();
  links_.reset();
  control_.reset();
  bulk_.reset();
  home_.reset();
  rails_.reset();
}

}  // namespace tokamak::transport
