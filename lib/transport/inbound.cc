#include "lib/transport/inbound.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tokamak::transport {
namespace {

constexpr char kTooMany[] = "the owner serves as many transfers as it may";
constexpr char kLeaving[] = "the owner is about to leave";
constexpr char kTooManyOfPeer[] = "the owner serves this peer as many transfers as it may";

}  // namespace

absl::StatusOr<std::unique_ptr<Inbound>> Inbound::Create(Context& context, Keeper& keeper, const verbs::Address& peer,
                                                         const Hello& theirs) {
  std::unique_ptr<Inbound> inbound(new Inbound(context, keeper, peer, theirs.token));
  const uint32_t rails = std::min(static_cast<uint32_t>(context.rails.size()), uint32_t{theirs.rails});
  const BulkChannel::Shape shape{theirs.primary, rails, theirs.bulk_queue_pairs};
  auto connection = PeerConnection::Create(context, BulkChannel::Side::kOwner, shape, peer, theirs.token, *inbound);
  if (!connection.ok()) return connection.status();
  inbound->connection_ = *std::move(connection);
  inbound->calls_.emplace(context, *inbound->connection_);
  return inbound;
}

void Inbound::OnUp() {
  if (absl::Status s = keeper_.OnUp(*this); !s.ok()) connection_->Break(s);
}

absl::Status Inbound::OnMessage(const Message& message, CopyBudget& budget) {
  const Header& header = message.header;
  switch (header.kind) {
    case MessageKind::kTransfer:
      return OnTransfer(header);
    case MessageKind::kDone:
    case MessageKind::kCancel:
      return OnEnd(header);
    case MessageKind::kCall:
      if (absl::Status s = TakeNumber(header.transfer); !s.ok()) return s;
      connection_->Watch();
      budget.Charge(message.body.size());  // who answers copies it
      return calls_->OnCall(message, ++budget.calls);
    default:
      return absl::InvalidArgumentError(absl::StrCat(ToString(header.kind), " of a puller"));
  }
}

// Checks that no number is used twice.
absl::Status Inbound::TakeNumber(uint64_t number) {
  if (number <= last_number_) {
    return absl::InvalidArgumentError(absl::StrCat("transfer ", number, " asked for after ", last_number_));
  }
  last_number_ = number;
  asked_at_ = context_.loop.Now();
  return absl::OkStatus();
}

absl::Status Inbound::OnTransfer(const Header& header) {
  if (absl::Status s = TakeNumber(header.transfer); !s.ok()) return s;
  if (context_.leaving) {
    Refuse(header, absl::UnavailableError(kLeaving));
    return absl::OkStatus();
  }
  const uint32_t most = context_.options.max_transfers;
  if (context_.serves >= most) {
    Refuse(header, absl::ResourceExhaustedError(kTooMany));
    return absl::OkStatus();
  }
  if (membership_->share().serves >= PeerShares::PartOf(most)) {
    Refuse(header, absl::ResourceExhaustedError(kTooManyOfPeer));
    return absl::OkStatus();
  }
  Serve* serve = serves_.Claim(context_, *this, membership_->share(), header);
  serves_.Bind(header.transfer, serve);
  connection_->Watch();
  serve->Start();
  return absl::OkStatus();
}

void Inbound::Refuse(const Header& transfer, const absl::Status& why) {
  Header refusal;
  refusal.kind = MessageKind::kFail;
  refusal.status = why.code();
  refusal.transfer = transfer.transfer;
  const absl::string_view text = why.message();
  connection_->Send(refusal, std::vector<uint8_t>(text.begin(), text.end()));
}

absl::Status Inbound::OnEnd(const Header& header) {
  Serve* serve = serves_.Find(header.transfer);
  if (serve == nullptr && header.kind == MessageKind::kCancel && calls_->OnCancel(header.transfer)) {
    return absl::OkStatus();
  }
  if (serve == nullptr) {
    if (header.transfer > last_number_) {
      return absl::InvalidArgumentError(
          absl::StrCat(ToString(header.kind), " of transfer ", header.transfer, ", which was not asked for"));
    }
    ++context_.counters.late_messages;
    return absl::OkStatus();
  }
  if (header.kind == MessageKind::kDone) return serve->OnDone(header);
  serve->OnCancel();
  return absl::OkStatus();
}

absl::Status Inbound::OnNote(const Note& note) {
  return absl::InvalidArgumentError(absl::StrCat("a note of a puller, for write ", note.number));
}

void Inbound::Forget(Serve* serve, uint64_t number) {
  serves_.Unbind(number);
  serves_.Release(serve);
}

void Inbound::OnBroken(const absl::Status&) {
  const std::unique_ptr<Inbound> self = keeper_.TakeOut(*this);
  context_.counters.serves_failed += serves_.size();  // whose table gives pins back
}

}  // namespace tokamak::transport
