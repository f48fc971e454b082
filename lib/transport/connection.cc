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
                                                               uint32_t bulk_queue_pairs, const verbs::Address& peer,
                                                               uint64_t token, User& user) {
  std::unique_ptr<Connection> connection(new Connection(context, side, peer, token, user));
  if (absl::Status s = connection->Open(bulk_queue_pairs); !s.ok()) return s;
  return connection;
}

Connection::Connection(Context& context, BulkChannel::Side side, const verbs::Address& peer, uint64_t token, User& user)
    : context_(context), side_(side), peer_(peer), token_(token), user_(user), idle_since_(context.loop.Now()) {}

Connection::~Connection() { TearDown(); }

absl::Status Connection::Open(uint32_t bulk_queue_pairs) {
  const uint32_t depth =
      ControlChannel::CompletionsFor(context_.options) + BulkChannel::CompletionsFor(side_, bulk_queue_pairs);
  auto completions = context_.device.CreateCompletionQueue(context_.loop, depth, [this] { OnEvent(); });
  if (!completions.ok()) return completions.status();
  completions_ = *std::move(completions);
  auto control = ControlChannel::Create(context_, *completions_);
  if (!control.ok()) return control.status();
  control_ = *std::move(control);
  auto bulk = BulkChannel::Create(context_, *completions_, side_, bulk_queue_pairs);
  if (!bulk.ok()) return bulk.status();
  bulk_ = *std::move(bulk);
  links_ = std::vector<Link>(1 + bulk_queue_pairs);
  deadline_ = context_.loop.RunAfter(context_.options.connect_deadline,
                                     [this] { Break(absl::UnavailableError("not connected by the deadline")); });
  completions_->RequestNotify();
  return absl::OkStatus();
}

Hello Connection::MyHello(uint8_t queue) const {
  const EndpointOptions& options = context_.options;
  Hello hello;
  hello.queue = queue;
  hello.bulk_queue_pairs = static_cast<uint8_t>(bulk_->queue_pairs());
  hello.reads_served = options.reliability.reads_served;
  hello.immediate = context_.device.limits().immediate;
  hello.slot_size = options.slot_size;
  hello.receive_slots = options.receive_slots;
  hello.max_transfers = PeerShares::PartOf(options.max_transfers);
  hello.max_calls = kMaxCallsServed;
  hello.token = token_;
  return hello;
}

absl::Status Connection::Connect() {
  for (uint32_t queue = 0; queue < links_.size(); ++queue) {
    std::array<uint8_t, kHelloSize> private_data;
    EncodeHello(MyHello(static_cast<uint8_t>(queue)), absl::MakeSpan(private_data));
    verbs::ConnectOptions options;
    options.private_data = private_data;
    options.reliability = context_.options.reliability;
    options.deadline = context_.options.connect_deadline;
    auto connection = context_.device.connection_manager().Connect(
        queue_pair(queue), peer_, options,
        [this, queue](const verbs::ConnectionEvent& event) { OnConnectionEvent(queue, event); });
    if (!connection.ok()) return connection.status();
    links_[queue].connection = *std::move(connection);
  }
  return absl::OkStatus();
}

absl::Status Connection::Accept(verbs::ConnectionRequest& request, const Hello& theirs) {
  CHECK(!broken() && theirs.bulk_queue_pairs == bulk_queue_pairs() && !Asked(theirs.queue));
  std::array<uint8_t, kHelloSize> private_data;
  EncodeHello(MyHello(theirs.queue), absl::MakeSpan(private_data));
  verbs::ConnectOptions options;
  options.private_data = private_data;
  options.reliability = context_.options.reliability;
  options.deadline = context_.options.connect_deadline;
  auto connection = request.Accept(
      queue_pair(theirs.queue), options,
      [this, queue = uint32_t{theirs.queue}](const verbs::ConnectionEvent& event) { OnConnectionEvent(queue, event); });
  if (!connection.ok()) return connection.status();
  links_[theirs.queue].connection = *std::move(connection);
  if (theirs.queue == 0) Meet(theirs);
  return absl::OkStatus();
}

void Connection::OnConnectionEvent(uint32_t queue, const verbs::ConnectionEvent& event) {
  if (broken()) return;
  switch (event.kind) {
    case verbs::ConnectionEvent::Kind::kEstablished:
      OnEstablished(queue, event.private_data);
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

void Connection::OnEstablished(uint32_t queue, absl::Span<const uint8_t> private_data) {
  links_[queue].established = true;
  if (side_ == BulkChannel::Side::kPuller) {
    auto theirs = DecodeHello(private_data);
    if (!theirs.ok()) return Break(theirs.status());
    if (theirs->queue != queue || theirs->token != token_ || theirs->bulk_queue_pairs != bulk_->queue_pairs()) {
      return BreakForNonsense(absl::InvalidArgumentError("the peer's hello answers another connection"));
    }
    if (queue == 0) Meet(*theirs);
  }
  if (std::all_of(links_.begin(), links_.end(), [](const Link& link) { return link.established; })) ComeUp();
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

void Connection::Meet(const Hello& theirs) {
  peer_hello_ = theirs;
  control_->Meet(theirs);
  bulk_->Meet(theirs);
}

void Connection::ComeUp() {
  state_ = State::kUp;
  deadline_.Cancel();
  control_->Enable();
  bulk_->Enable();
  ++context_.counters.connections_opened;
  context_.Record(base::TraceKind::kConnection, static_cast<uint32_t>(ConnectionStep::kUp), links_.size());
  Watch();
  Wake();
  user_.OnUp();
}

void Connection::Send(const Header& header, std::vector<uint8_t> body) {
  if (broken()) return;
  if (absl::Status s = control_->Send(header, std::move(body)); !s.ok()) return BreakForNonsense(s);
  Wake();
}

void Connection::Wake() {
  if (broken() || working_ || work_.armed()) return;
  work_ = context_.loop.Post([this] { Work(); });
}

void Connection::OnEvent() {
  if (broken()) return;
  completions_->RequestNotify();  // and then drain
  Work();
}

// One task's share.
void Connection::Work() {
  if (broken()) return;
  budget_ = CopyBudget();
  working_ = true;
  bool more = Drain();
  working_ = false;
  if (!leaving_.ok()) return more ? Wake() : Break(leaving_);
  more |= !broken() && Repost();
  more |= !broken() && Pump();
  if (more) Wake();
}

// Passes on what has completed. Returns true when it stopped before the end, to let other tasks run.
bool Connection::Drain() {
  for (size_t handled = 0; !broken(); ++handled) {
    if (polled_next_ == polled_count_) {
      polled_next_ = 0;
      polled_count_ = completions_->Poll(absl::MakeSpan(polled_));
      if (polled_count_ == 0) return false;
    }
    if (handled == kCompletionsPerTask || !budget_.Covers(context_.options.slot_size)) return true;
    Handle(polled_[polled_next_++]);
  }
  return false;
}

void Connection::Handle(const verbs::Completion& completion) {
  const RequestId id = RequestId::Unpack(completion.id);
  if (completion.status != verbs::CompletionStatus::kSuccess) return HandleError(id, completion);
  if (id.receive) return HandleReceive(id, completion);
  const absl::Status s = id.queue == 0 ? control_->OnSent(id.entry) : bulk_->OnSent(id.queue - 1u, id.entry);
  if (!s.ok()) Break(s);
}

void Connection::HandleReceive(const RequestId& id, const verbs::Completion& completion) {
  if (id.queue == 0) {
    auto message = control_->OnReceived(id.entry, completion.byte_count);
    if (!message.ok()) return BreakForNonsense(message.status());
    bool hold = false;
    const bool for_user = message->header.kind != MessageKind::kCredit;
    const absl::Status s = for_user ? user_.OnMessage(*message, id.entry, &hold) : absl::OkStatus();
    if (!hold) control_->Release(id.entry);
    if (!s.ok()) BreakForNonsense(s);
    return;
  }
  auto value = bulk_->OnReceived(id.queue - 1u, id.entry, completion);
  if (!value.ok()) return BreakForNonsense(value.status());
  const bool greeting = *value == Note::kGreeting && side_ == BulkChannel::Side::kOwner;
  if (absl::Status s = greeting ? absl::OkStatus() : user_.OnNote(Note::Unpack(*value)); !s.ok()) BreakForNonsense(s);
}

void Connection::HandleError(const RequestId& id, const verbs::Completion& completion) {
  const absl::Status status =
      absl::UnavailableError(absl::StrCat(id.queue == 0 ? "message " : "bulk ",
                                          id.receive ? "receive: " : "request: ", verbs::ToString(completion.status)));
  const bool too_long = id.receive && completion.status == verbs::CompletionStatus::kLocalLength;
  too_long ? BreakForNonsense(status) : Break(status);
}

bool Connection::Repost() {
  absl::Status s = control_->Repost();
  if (s.ok()) s = bulk_->Repost();
  if (!s.ok()) Break(absl::UnavailableError(s.message()));
  return false;
}

bool Connection::Pump() {
  bool more = false;
  absl::Status s = control_->Pump(budget_, &more);
  if (s.ok()) s = bulk_->Pump();
  if (!s.ok()) Break(absl::UnavailableError(s.message()));
  return more && !broken();
}

bool Connection::Settle() {
  if (leaving()) return true;
  control_->Settle();
  if (control_->settled()) return true;
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
// in good order it is the other that leaves.
void Connection::OnWatch() {
  const base::Time now = context_.loop.Now();
  if (user_.busy()) {
    if (control_->received() == received_at_watch_) control_->Probe();
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

void Connection::Break(absl::Status status) {
  if (broken()) return;
  if (state_ == State::kUp) {
    if (user_.busy()) ++context_.counters.connections_lost;
    context_.Record(base::TraceKind::kConnection, static_cast<uint32_t>(ConnectionStep::kBroken), links_.size());
  }
  state_ = State::kBroken;
  reason_ = WithPeer(peer_, status);
  deadline_.Cancel();
  watch_.Cancel();
  work_ = context_.loop.Post([this] {
    TearDown();
    user_.OnBroken(reason_);
  });
}

void Connection::BreakForNonsense(const absl::Status& status) {
  if (broken()) return;
  ++context_.counters.protocol_errors;
  LOG(WARNING) << peer_.ToString() << " makes no sense and is disconnected: " << status;
  Break(absl::UnavailableError(absl::StrCat("the peer makes no sense: ", status.message())));
}

bool Connection::Has(uint32_t queue_pair_number) {
  for (uint32_t queue = 0; queue < links_.size(); ++queue) {
    if (queue_pair(queue).number() == queue_pair_number) return true;
  }
  return false;
}

void Connection::TearDown() {
  links_.clear();
  control_.reset();
  bulk_.reset();
  completions_.reset();
}

}  // namespace tokamak::transport
