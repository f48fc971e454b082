#include "lib/transport/connection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::transport {
namespace {

// What TraceKind::kConnection says.
enum class ConnectionStep : uint32_t { kUp = 1, kBroken = 2 };

absl::Status WithPeer(const verbs::Address& peer, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(peer.ToString(), ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Create(Context& context, BulkChannel::Side side,
                                                               const BulkChannel::Shape& shape,
                                                               const verbs::Address& peer, uint64_t token, User& user) {
  std::unique_ptr<Connection> connection(new Connection(context, side, peer, token, user));
  if (absl::Status s = connection->Open(shape); !s.ok()) return s;
  return connection;
}

Connection::Connection(Context& context, BulkChannel::Side side, const verbs::Address& peer, uint64_t token, User& user)
    : context_(context), side_(side), peer_(peer), token_(token), user_(user), idle_since_(context.loop.Now()) {}

Connection::~Connection() { TearDown(); }

absl::Status Connection::Open(const BulkChannel::Shape& shape) {
  bulk_ = std::make_unique<BulkChannel>(context_, side_, shape, peer_);
  const uint32_t depth =
      ControlChannel::CompletionsFor(context_.options) + BulkChannel::CompletionsFor(side_, shape.each);
  auto completions = Completions::Create(primary_rail().device, context_.loop, depth, [this] { OnEvent(); });
  if (!completions.ok()) return completions.status();
  completions_ = *std::move(completions);
  auto control = ControlChannel::Create(context_, primary_rail(), completions_->queue());
  if (!control.ok()) return control.status();
  control_ = *std::move(control);
  if (absl::Status s = bulk_->Make(shape.primary, completions_->queue()); !s.ok()) return s;
  links_ = std::vector<Link>(1 + shape.each);
  deadline_ = context_.loop.RunAfter(context_.options.connect_deadline,
                                     [this] { Break(absl::UnavailableError("not connected by the deadline")); });
  return absl::OkStatus();
}

Hello Connection::MyHello(uint32_t queue) const {
  const EndpointOptions& options = context_.options;
  const uint32_t rail = queue == 0 ? shape().primary : bulk_->RailOfQueue(queue - 1);
  Hello hello;
  hello.queue = static_cast<uint8_t>(queue);
  hello.bulk_queue_pairs = static_cast<uint8_t>(shape().each);
  hello.reads_served = options.reliability.reads_served;
  hello.immediate = context_.rails[rail].device.limits().immediate;
  hello.rails = static_cast<uint8_t>(shape().rails);
  hello.primary = static_cast<uint8_t>(shape().primary);
  hello.slot_size = options.slot_size;
  hello.receive_slots = options.receive_slots;
  hello.max_transfers = PeerShares::PartOf(options.max_transfers);
  hello.max_calls = kMaxCallsServed;
  hello.token = token_;
  return hello;
}

absl::Status Connection::Connect() {
  for (size_t link = 0; link < links_.size(); ++link) {
    std::array<uint8_t, kHelloSize> private_data;
    EncodeHello(MyHello(QueueOf(link)), absl::MakeSpan(private_data));
    verbs::ConnectOptions options;
    options.private_data = private_data;
    options.reliability = context_.options.reliability;
    options.deadline = context_.options.connect_deadline;
    auto connection = primary_rail().device.connection_manager().Connect(
        queue_pair(QueueOf(link)), peer_, options,
        [this, link](const verbs::ConnectionEvent& event) { OnConnectionEvent(link, event); });
    if (!connection.ok()) return connection.status();
    links_[link].connection = *std::move(connection);
  }
  return absl::OkStatus();
}

absl::Status Connection::Accept(verbs::ConnectionRequest& request, const Hello& theirs) {
  CHECK(!broken() && theirs.bulk_queue_pairs == shape().each);
  if (!IsPrimary(theirs.queue)) {
    const uint32_t rail = bulk_->RailOfQueue(theirs.queue - 1u);
    return IsSecondary(rail) ? rails_[rail]->Accept(request, theirs) : absl::InvalidArgumentError("no such rail");
  }
  CHECK(!Asked(theirs.queue));
  const size_t link = LinkOf(theirs.queue);
  std::array<uint8_t, kHelloSize> private_data;
  EncodeHello(MyHello(theirs.queue), absl::MakeSpan(private_data));
  verbs::ConnectOptions options;
  options.private_data = private_data;
  options.reliability = context_.options.reliability;
  options.deadline = context_.options.connect_deadline;
  auto connection =
      request.Accept(queue_pair(theirs.queue), options,
                     [this, link](const verbs::ConnectionEvent& event) { OnConnectionEvent(link, event); });
  if (!connection.ok()) return connection.status();
  links_[link].connection = *std::move(connection);
  if (theirs.queue == 0) OnPeerHello(theirs);
  return absl::OkStatus();
}

void Connection::OnConnectionEvent(size_t link, const verbs::ConnectionEvent& event) {
  if (broken()) return;
  switch (event.kind) {
    case verbs::ConnectionEvent::Kind::kEstablished:
      bulk_->LimitPackets(event.path_mtu);
      OnEstablished(link, event.private_data);
      break;
    case verbs::ConnectionEvent::Kind::kRejected:
      OnRejected(event);
      break;
    case verbs::ConnectionEvent::Kind::kUnreachable:
      Break(absl::UnavailableError(absl::StrCat("not reachable: ", event.status.message())));
      break;
    case verbs::ConnectionEvent::Kind::kDisconnected:
      if (leaving_.ok()) leaving_ = absl::UnavailableError(absl::StrCat("disconnected: ", event.status.message()));
      Wake();  // what the peer sent before it left still counts
      break;
  }
}

void Connection::OnEstablished(size_t link, absl::Span<const uint8_t> private_data) {
  links_[link].established = true;
  if (side_ == BulkChannel::Side::kPuller) {
    auto theirs = DecodeHello(private_data);
    if (!theirs.ok()) return Break(theirs.status());
    if (theirs->queue != QueueOf(link) || theirs->token != token_ || theirs->bulk_queue_pairs != shape().each ||
        theirs->primary != shape().primary || theirs->rails > context_.rails.size()) {
      return BreakForViolation(absl::InvalidArgumentError("the peer's hello answers another connection"));
    }
    if (link == 0) OnPeerHello(*theirs);
  }
  if (std::all_of(links_.begin(), links_.end(), [](const Link& one) { return one.established; })) ComeUp();
}

// A peer that speaks another version says so with its refusal.
void Connection::OnRejected(const verbs::ConnectionEvent& event) {
  if (IsHello(event.private_data)) {
    if (auto theirs = DecodeHello(event.private_data);
        theirs.status().code() == absl::StatusCode::kFailedPrecondition) {
      return Break(theirs.status());
    }
  }
  Break(absl::UnavailableError(absl::StrCat("the peer refused the connection: ", event.status.message())));
}

void Connection::OnPeerHello(const Hello& theirs) {
  peer_hello_ = theirs;
  control_->OnPeerHello(theirs);
  for (size_t link = 1; link < links_.size(); ++link) bulk_->OnPeerHello(QueueOf(link) - 1, theirs);
  if (side_ == BulkChannel::Side::kPuller) bulk_->LimitRails(theirs.rails);
}

void Connection::ComeUp() {
  state_ = State::kUp;
  deadline_.Cancel();
  control_->Enable();
  bulk_->Enable(shape().primary);
  ++context_.counters.connections_opened;
  context_.Record(base::TraceKind::kConnection, static_cast<uint32_t>(ConnectionStep::kUp), links_.size());
  Watch();
  Wake();
  if (side_ == BulkChannel::Side::kOwner && shape().rails > 1) {
    MakeSecondaryRails();
    Header header;
    header.kind = MessageKind::kRails;
    Send(header, EncodeRails(absl::MakeConstSpan(context_.services).subspan(0, shape().rails)));
  }
  user_.OnUp();
}

void Connection::MakeSecondaryRails() {
  SecondaryRail::Host& host = *this;
  rails_.resize(shape().rails);
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if (rail != shape().primary) rails_[rail] = std::make_unique<SecondaryRail>(context_, host, side_, rail);
  }
}

void Connection::Send(const Header& header, std::vector<uint8_t> body) {
  if (broken()) return;
  if (absl::Status s = control_->Send(header, std::move(body)); !s.ok()) return BreakForViolation(s);
  Wake();
}

void Connection::Wake() {
  if (broken() || working_ || work_.armed()) return;
  work_ = context_.loop.Post([this] { Work(); });
}

bool Connection::Drain() {
  if (leaving()) return true;
  control_->Drain();
  if (control_->drained()) return true;
  Wake();
  return false;
}

void Connection::Watch() {
  if (watching_ || state_ != State::kUp) return;
  watching_ = true;
  received_at_watch_ = control_->received();
  watch_ = context_.loop.RunAfter(kProbeInterval, [this] { OnWatch(); });
}

// While there is work: probe a silent peer. Without: leave after a while. The side that did not connect stays longer, so that
// in good order it is the other that leaves. The last messages, such as an answer, are work until their completion is known.
void Connection::OnWatch() {
  const base::Time now = context_.loop.Now();
  const bool busy = user_.busy();
  draining_ = !busy && watching_ && !draining_ && !control_->drained();
  if (busy || draining_ || control_->completion_owed()) {
    if (DeviceIsStuck()) return Break(absl::UnavailableError("the device tells nothing of what became of a message"));
    control_->AskCompletion();
    if (draining_ || control_->received() == received_at_watch_) control_->Probe();
    watching_ = false;
    Watch();
    return Wake();
  }
  if (watching_ || control_->received() != received_at_watch_) idle_since_ = now;
  watching_ = false;
  received_at_watch_ = control_->received();
  const base::Duration limit = context_.options.idle_disconnect * (side_ == BulkChannel::Side::kPuller ? 1 : 2);
  if (now - idle_since_ >= limit) return Break(absl::UnavailableError("idle"));
  watch_ = context_.loop.RunAt(idle_since_ + limit, [this] { OnWatch(); });
}

// One message has been waiting for its completion in all of the last watches. A device that does its work says after all its retries
// that the peer is gone (each takes four time-outs at most, 9.7.6.1.3); kPatience more is for one that is busy.
bool Connection::DeviceIsStuck() {
  const bool waits = control_->completion_owed() && control_->completions() == completions_at_watch_;
  completions_at_watch_ = control_->completions();
  watches_without_completion_ = waits ? watches_without_completion_ + 1 : 0;
  const verbs::ReliabilityOptions& reliability = context_.options.reliability;
  return kProbeInterval * watches_without_completion_ >
         kPatience + reliability.ack_timeout * 4 * (reliability.retry_count + 1);
}

void Connection::Break(absl::Status status) {
  if (broken()) return;
  if (state_ == State::kUp) {
    if (user_.busy()) ++context_.counters.connections_lost;
    context_.Record(base::TraceKind::kConnection, static_cast<uint32_t>(ConnectionStep::kBroken), links_.size());
  }
  state_ = State::kBroken;
  reason_ = WithPeer(peer_, status);
  VLOG(1) << "a connection " << (side_ == BulkChannel::Side::kPuller ? "to " : "of ") << reason_;
  deadline_.Cancel();
  watch_.Cancel();
  work_ = context_.loop.Post([this] {
    TearDown();
    user_.OnBroken(reason_);
  });
}

void Connection::BreakForViolation(const absl::Status& status) {
  if (broken()) return;
  ++context_.counters.protocol_errors;
  LOG(WARNING) << peer_.ToString() << " violates the protocol and is disconnected: " << status;
  Break(absl::UnavailableError(absl::StrCat("protocol violation of the peer: ", status.message())));
}

// ---- work: completions are passed on, receives posted again, and what waits is sent

void Connection::OnEvent() {
  if (broken()) return;
  completions_->Arm();  // and then drain
  Work();
}

// One task's share.
void Connection::Work() {
  if (broken()) return;
  budget_ = CopyBudget();
  working_ = true;
  bool more = DrainCompletions();
  working_ = false;
  if (!leaving_.ok()) return more ? Wake() : Break(leaving_);
  more |= !broken() && Repost();
  more |= !broken() && Pump();
  if (more) Wake();
}

// Passes on what has completed. Returns true when it stopped before the end, to let other tasks run; then another rail's
// completions come first in the next.
bool Connection::DrainCompletions() {
  size_t handled = 0;
  const size_t count = std::max<size_t>(rails_.size(), 1);
  for (size_t looked = 0; looked < count; ++looked) {
    Completions* completions = CompletionsOf(drain_next_++ % count);
    if (completions != nullptr && DrainCompletionsOf(*completions, &handled)) return true;
  }
  return false;
}

Completions* Connection::CompletionsOf(size_t rail) {
  return rails_.empty() || rails_[rail] == nullptr ? completions_.get() : rails_[rail]->completions();
}

bool Connection::DrainCompletionsOf(Completions& completions, size_t* handled) {
  while (!broken()) {
    if (*handled == kCompletionsPerTask || !budget_.Covers(context_.options.slot_size)) return true;
    const verbs::Completion* completion = completions.Next();
    if (completion == nullptr) return false;
    ++*handled;
    Handle(*completion);
  }
  return false;
}

void Connection::Handle(const verbs::Completion& completion) {
  const RequestId id = RequestId::Unpack(completion.id);
  const bool good = completion.status == verbs::CompletionStatus::kSuccess;
  if (id.queue == 0) {
    if (!good) return HandleError(id, completion);
    if (id.receive) return HandleReceive(id, completion);
    if (absl::Status s = control_->OnSent(id.entry); !s.ok()) Break(s);
    return;
  }
  const uint32_t q = id.queue - 1u;
  if (!bulk_->Has(q)) return;
  if (!good) {
    HandleError(id, completion);
  } else if (id.receive) {
    HandleNote(id, completion);
  } else if (absl::Status s = bulk_->OnSent(q, id.entry); !s.ok()) {
    Break(s);
  }
  if (const uint32_t rail = bulk_->RailOfQueue(q); IsSecondary(rail)) rails_[rail]->OnTaken();
}

void Connection::HandleReceive(const RequestId& id, const verbs::Completion& completion) {
  auto message = control_->OnReceived(id.entry, completion.byte_count);
  if (!message.ok()) return BreakForViolation(message.status());
  heard_ = true;
  const absl::Status s = HandleMessage(*message);
  control_->Release(id.entry);
  if (!s.ok()) BreakForViolation(s);
}

void Connection::HandleNote(const RequestId& id, const verbs::Completion& completion) {
  auto value = bulk_->OnReceived(id.queue - 1u, id.entry, completion);
  if (!value.ok()) return BreakForViolation(value.status());
  const bool greeting = *value == Note::kGreeting && side_ == BulkChannel::Side::kOwner;
  if (absl::Status s = greeting ? absl::OkStatus() : user_.OnNote(Note::Unpack(*value)); !s.ok()) BreakForViolation(s);
}

absl::Status Connection::HandleMessage(const Message& message) {
  switch (message.header.kind) {
    case MessageKind::kCredit:
      return absl::OkStatus();
    case MessageKind::kRails:
      return HandleRails(message);
    case MessageKind::kRailDown:
      return HandleRailDown(message);
    default:
      if (absl::Status s = CheckKeys(message.header.remote.further); !s.ok()) return s;
      return user_.OnMessage(message);
  }
}

absl::Status Connection::HandleRails(const Message& message) {
  auto rails = DecodeRails(message.body);
  if (!rails.ok()) return rails.status();
  if (side_ != BulkChannel::Side::kPuller || !rails_.empty() || rails->size() != shape().rails) {
    return absl::InvalidArgumentError(absl::StrCat(rails->size(), " rails out of turn"));
  }
  user_.OnRails(*rails);
  MakeSecondaryRails();
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if (IsSecondary(rail)) rails_[rail]->Join((*rails)[rail]);
  }
  return absl::OkStatus();
}

absl::Status Connection::HandleRailDown(const Message& message) {
  auto wanted = DecodeWanted(message.body);
  if (!wanted.ok()) return wanted.status();
  const uint32_t rail = message.header.rail;
  if (!IsSecondary(rail) || (side_ == BulkChannel::Side::kPuller && !wanted->empty())) {
    return absl::InvalidArgumentError(absl::StrCat("RAIL_DOWN of rail ", rail));
  }
  rails_[rail]->OnPeerDown(*wanted);
  return absl::OkStatus();
}

absl::Status Connection::CheckKeys(const RailKeys& further) const {
  for (uint32_t i = 0; i < further.count; ++i) {
    const uint32_t rail = further.keys[i].rail;
    if (rail >= shape().rails || rail == shape().primary) {
      return absl::InvalidArgumentError(absl::StrCat("a key of rail ", rail, ", which the connection does not have"));
    }
  }
  return absl::OkStatus();
}

void Connection::SayDown(uint32_t rail) {
  Header header;
  header.kind = MessageKind::kRailDown;
  header.rail = rail;
  Send(header, side_ == BulkChannel::Side::kPuller ? EncodeWanted(user_.WritesWanted()) : std::vector<uint8_t>());
}

void Connection::HandleError(const RequestId& id, const verbs::Completion& completion) {
  const absl::Status status =
      absl::UnavailableError(absl::StrCat(id.queue == 0 ? "message " : "bulk ",
                                          id.receive ? "receive: " : "request: ", verbs::ToString(completion.status)));
  if (id.queue > 0 && IsSecondary(bulk_->RailOfQueue(id.queue - 1u))) {
    bulk_->OnFlushed(id.queue - 1u, id.receive, id.entry);
    return rails_[bulk_->RailOfQueue(id.queue - 1u)]->Fail(status);
  }
  if (id.queue > 0 && completion.status == verbs::CompletionStatus::kRetryExceeded) {
    context_.lossy_paths.Note(peer_.ip, context_.loop.Now());
  }
  // What was posted comes back because of that.
  if (completion.status == verbs::CompletionStatus::kFlushed && !leaving_.ok()) return Break(leaving_);
  const bool too_long = id.receive && completion.status == verbs::CompletionStatus::kLocalLength;
  too_long ? BreakForViolation(status) : Break(status);
}

bool Connection::Repost() {
  OnTrouble({control_->Repost(), shape().primary});
  OnTrouble(bulk_->Repost());
  return false;
}

bool Connection::Pump() {
  bool more = false;
  OnTrouble({control_->Pump(budget_, &more), shape().primary});
  OnTrouble(bulk_->Pump());
  return more && !broken();
}

void Connection::OnTrouble(const BulkChannel::Trouble& trouble) {
  if (trouble.status.ok()) return;
  const absl::Status status = absl::UnavailableError(trouble.status.message());
  IsSecondary(trouble.rail) ? rails_[trouble.rail]->Fail(status) : Break(status);
}

void Connection::EndRequests(const BulkJob& job, const absl::Status& status) {
  if (broken()) return;
  uint32_t rails = 0;
  for (uint32_t s = 0; s < job.share_count; ++s) {
    if (job.shares[s].in_flight > 0) rails |= 1u << bulk_->RailOfQueue(job.shares[s].queue);
  }
  if (rails == 0 || (rails >> shape().primary & 1) != 0) return Break(status);
  for (uint32_t rail = 0; rail < rails_.size(); ++rail) {
    if ((rails >> rail & 1) != 0) rails_[rail]->Fail(status);
  }
}

// ---- the device, and the end

void Connection::OnDeviceEvent(uint32_t rail, const verbs::DeviceEventInfo& info) {
  if (broken()) return;
  if (rail != shape().primary) {
    if (IsSecondary(rail)) rails_[rail]->OnDeviceEvent(info);
  } else if (info.event == verbs::DeviceEvent::kRemoved) {
    Break(absl::UnavailableError("the device was removed"));
  } else if (info.event == verbs::DeviceEvent::kQueuePairFatal && Has(info.queue_pair_number)) {
    Break(absl::UnavailableError("the device gave up a queue pair"));
  }
}

bool Connection::Has(uint32_t queue_pair_number) {
  for (size_t link = 0; link < links_.size(); ++link) {
    if (queue_pair(QueueOf(link)).number() == queue_pair_number) return true;
  }
  return false;
}

void Connection::TearDown() {
  for (const auto& rail : rails_) {
    if (rail != nullptr) rail->DropLinks();
  }
  links_.clear();
  control_.reset();
  bulk_.reset();
  rails_.clear();
  completions_.reset();
}

}  // namespace tokamak::transport
