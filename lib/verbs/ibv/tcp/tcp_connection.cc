#include "lib/verbs/ibv/tcp/tcp_connection.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::verbs::ibv {

using Kind = ConnectionEvent::Kind;

uint32_t DrawPsn() {
  uint32_t psn = 0;
  PCHECK(getrandom(&psn, sizeof(psn), 0) == sizeof(psn));
  return psn & 0xffffff;
}

TcpConnection::TcpConnection(const TcpOffer& offer, HeldQueuePair queue_pair, const Address& peer,
                             const ConnectOptions& options, ConnectionHandler handler)
    : offer_(offer),
      queue_pair_(std::move(queue_pair), std::move(handler)),
      loop_(queue_pair_->loop()),
      peer_(peer),
      wanted_(options.reliability),
      until_(loop_.Now() + options.deadline) {
  const ReliabilityOptions reads = AgreeOnReads(wanted_, offer_.max_reads, 255, 255);
  hello_.link = offer_.port.link;
  hello_.queue_pair_number = queue_pair_->connection_number();
  hello_.psn = offer_.psn;
  hello_.port = {offer_.port.gid, static_cast<uint16_t>(offer_.port.lid + offer_.port.path_bits)};
  hello_.path_mtu = offer_.own_mtu;
  hello_.reads_served = reads.reads_served;
  hello_.reads_outstanding = reads.reads_outstanding;
  hello_.SetPrivateData(options.private_data);
}

TcpConnection::~TcpConnection() {
  if (phase_ != Phase::kNew && phase_ != Phase::kOver) queue_pair_.WalkToError();
}

void TcpConnection::Start(const Address& from, std::shared_ptr<RouteSearches> routes) {
  phase_ = Phase::kConnecting;
  routes_ = std::move(routes);
  deadline_ = loop_.RunAt(until_, [this] {
    End(Kind::kUnreachable, absl::DeadlineExceededError(absl::StrCat(peer_.ToString(), " did not answer in time")));
  });
  auto socket = TcpLine::Connect(from, peer_);
  if (!socket.ok()) {
    failed_ = loop_.Post([this, status = socket.status()] { End(Kind::kUnreachable, status); });
    return;
  }
  TcpLine::Owner& owner = *this;
  line_.emplace(loop_, *std::move(socket), true, owner);
}

absl::Status TcpConnection::Accept(os::FileDescriptor socket, const TcpHello& ask) {
  phase_ = Phase::kAnswered;
  TcpLine::Owner& owner = *this;
  line_.emplace(loop_, std::move(socket), false, owner);
  absl::Status status = WalkToReadyToSend(ask, std::min(offer_.own_mtu, ask.path_mtu));
  hello_.path_mtu = path_mtu_;
  if (status.ok()) {
    const absl::Status sent = line_->Send(OwnHello(TcpHello::Kind::kAccept));
    if (!sent.ok())
      status = absl::CancelledError(absl::StrCat("the peer does not wait any more (", sent.message(), ")"));
  }
  if (status.ok()) {
    deadline_ = loop_.RunAt(until_, [this] {
      End(Kind::kUnreachable, absl::DeadlineExceededError(absl::StrCat(peer_.ToString(), " did not answer in time")));
    });
    return status;
  }
  phase_ = Phase::kOver;
  if (walked_) queue_pair_.WalkToError();
  TcpHello reject;
  reject.kind = TcpHello::Kind::kReject;
  reject.link = offer_.port.link;
  if (absl::Status sent = line_->Send(reject); !sent.ok()) LOG(DEBUG) << peer_.ToString() << ": " << sent;
  line_.reset();
  return absl::Status(status.code(), absl::StrCat("accept ", peer_.ToString(), ": ", status.message()));
}

void TcpConnection::OnLineUp() {
  phase_ = Phase::kAsked;
  if (absl::Status status = line_->Send(OwnHello(TcpHello::Kind::kAsk)); !status.ok()) End(Kind::kUnreachable, status);
}

void TcpConnection::OnHello(const TcpHello& hello) {
  if (phase_ == Phase::kAsked) return OnAnswer(hello);
  if (phase_ == Phase::kAnswered && hello.kind == TcpHello::Kind::kReady) return Establish({});
  OnLineLost(absl::InvalidArgumentError(
      absl::StrCat("a message of kind ", static_cast<int>(hello.kind), " where none of them is expected")));
}

void TcpConnection::OnAnswer(const TcpHello& hello) {
  if (hello.kind == TcpHello::Kind::kReject) {
    return End(Kind::kRejected, absl::UnavailableError(absl::StrCat(peer_.ToString(), " rejected")),
               hello.private_data_span());
  }
  if (hello.kind != TcpHello::Kind::kAccept) {
    return End(Kind::kUnreachable,
               absl::InvalidArgumentError(absl::StrCat(peer_.ToString(), "'s answer was malformed")));
  }
  if (routes_ == nullptr || offer_.port.link != LinkKind::kRoce) return OnAccepted(hello, absl::OkStatus());
  phase_ = Phase::kSearching;
  Search(hello);
}

void TcpConnection::Search(const TcpHello& answer) {
  search_ =
      routes_->Start(loop_, answer.port, [this, answer](const absl::Status& found) { OnAccepted(answer, found); });
  if (search_ == nullptr) again_ = loop_.RunAfter(RouteSearches::kRetry, [this, answer] { Search(answer); });
}

void TcpConnection::OnAccepted(const TcpHello& answer, const absl::Status& found) {
  search_.reset();
  if (!found.ok()) return End(Kind::kUnreachable, found);
  const auto mtu = KeepPathMtu(offer_.own_mtu, answer.path_mtu, kMaxMtu);
  absl::Status status = mtu.ok() ? WalkToReadyToSend(answer, *mtu) : mtu.status();
  if (status.ok()) status = line_->Send(OwnHello(TcpHello::Kind::kReady));
  if (!status.ok()) return End(Kind::kUnreachable, status);
  Establish(answer.private_data_span());
}

void TcpConnection::OnLineLost(const absl::Status& why) {
  const absl::Status status(absl::IsDeadlineExceeded(why) ? why.code() : absl::StatusCode::kUnavailable,
                            absl::StrCat(peer_.ToString(), ": ", why.message()));
  if (phase_ == Phase::kUp) return End(Kind::kDisconnected, status);
  // A peer that closes without an answer rejects us; one that cannot be reached does not.
  const bool answered = phase_ == Phase::kSearching;
  End(absl::IsAborted(why) && !answered ? Kind::kRejected : Kind::kUnreachable, status);
}

absl::Status TcpConnection::WalkToReadyToSend(const TcpHello& peer, uint32_t path_mtu) {
  if (peer.link != offer_.port.link) {
    return absl::FailedPreconditionError(
        absl::StrCat("the peer's link is ", ToString(peer.link), " and ours ", ToString(offer_.port.link)));
  }
  Agreement agreement;
  agreement.peer_number = peer.queue_pair_number;
  agreement.receive_psn = peer.psn;
  agreement.send_psn = offer_.psn;
  agreement.path_mtu = path_mtu;
  agreement.reliability = AgreeOnReads(wanted_, offer_.max_reads, peer.reads_served, peer.reads_outstanding);
  const auto receive = ReadyToReceiveStep(offer_.port, peer.port, agreement);
  if (!receive.ok()) return receive.status();
  const auto send = ReadyToSendStep(offer_.port, agreement);
  if (!send.ok()) return send.status();
  walked_ = true;
  path_mtu_ = path_mtu;
  peer_queue_pair_ = peer.queue_pair_number;
  if (absl::Status status = queue_pair_.Walk(*receive); !status.ok()) return status;
  return queue_pair_.Walk(*send);
}

TcpHello TcpConnection::OwnHello(TcpHello::Kind kind) const {
  TcpHello hello = hello_;
  hello.kind = kind;
  return hello;
}

void TcpConnection::Establish(absl::Span<const uint8_t> private_data) {
  phase_ = Phase::kUp;
  deadline_.Cancel();
  queue_pair_.TellEstablished(private_data, path_mtu_, peer_queue_pair_);
}

void TcpConnection::End(Kind kind, absl::Status why, absl::Span<const uint8_t> private_data) {
  if (phase_ == Phase::kOver) return;
  phase_ = Phase::kOver;
  deadline_.Cancel();
  failed_.Cancel();
  again_.Cancel();
  search_.reset();
  line_.reset();
  if (walked_) queue_pair_.WalkToError();
  queue_pair_.TellEnd(kind, std::move(why), private_data);
}

}  // namespace tokamak::verbs::ibv
