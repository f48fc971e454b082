#include "lib/transport/outbound.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::transport {
namespace {

absl::Status FailureOf(const verbs::Address& peer, const Message& message) {
  std::string text(message.body.begin(), message.body.end());
  for (char& c : text) c = c >= ' ' && c <= '~' ? c : '?';
  return absl::Status(message.header.status, absl::StrCat(peer.ToString(), ": ", text));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Outbound>> Outbound::Create(Context& context, Keeper& keeper, const verbs::Address& peer,
                                                           uint32_t primary_rail, const verbs::Address& service,
                                                           uint64_t token) {
  std::unique_ptr<Outbound> outbound(new Outbound(context, keeper, peer));
  const BulkChannel::Shape shape{primary_rail, static_cast<uint32_t>(context.rails.size()),
                                 context.options.bulk_queue_pairs};
  auto connection = PeerConnection::Create(context, BulkChannel::Side::kPuller, shape, service, token, *outbound);
  if (!connection.ok()) return connection.status();
  outbound->connection_ = *std::move(connection);
  outbound->calls_.emplace(context, *outbound->connection_, outbound->last_number_);
  if (absl::Status s = outbound->connection_->Connect(); !s.ok()) return s;
  return outbound;
}

void Outbound::StartPull(PullId id, const PullRequest& request, std::unique_ptr<Sink> sink) {
  Pull* pull = pulls_.Claim(context_, *this, id, request, std::move(sink));
  if (!connection_->up()) return;
  connection_->Watch();
  pull->Start();
}

base::Pending Outbound::Call(absl::Span<const uint8_t> request, base::Duration deadline, OutgoingCalls::Urgency urgency,
                             Caller::CallCallback done) {
  base::Pending pending = calls_->Add(request, deadline, urgency, std::move(done));
  if (!connection_->up()) return pending;
  connection_->Watch();
  calls_->SendWaiting();
  return pending;
}

void Outbound::TakeTurn(bool by_write) {
  ++pulls_asked_;
  if (by_write) ++writes_asked_;
}

void Outbound::GiveTurn(bool by_write) {
  --pulls_asked_;
  if (by_write) GiveWriteTurn();
}

void Outbound::GiveWriteTurn() {
  CHECK_GT(writes_asked_, 0u);
  if (writes_asked_-- != max_writes_) return;
  for (Pull* pull = pulls_.first(); pull != nullptr && write_has_turn(); pull = base::NumberedTable<Pull>::Next(pull)) {
    if (pull->waiting()) pull->Start();
  }
}

uint64_t Outbound::Bind(Pull* pull, bool by_write) {
  uint64_t number = ++last_number_;
  if (by_write) {  // notes carry the low bits
    while ((number & Note::kNumberMask) == 0 || writes_.contains(number & Note::kNumberMask)) number = ++last_number_;
    writes_.emplace(number & Note::kNumberMask, pull);
  }
  pulls_.Bind(number, pull);
  return number;
}

void Outbound::NotByWrite(uint64_t number) {
  writes_.erase(number & Note::kNumberMask);
  GiveWriteTurn();
}

void Outbound::Unbind(uint64_t number, bool by_write) {
  pulls_.Unbind(number);
  if (by_write) writes_.erase(number & Note::kNumberMask);
}

void Outbound::OnUp() {
  max_writes_ = connection_->bulk().max_writes();
  for (Pull* pull = pulls_.first(); pull != nullptr; pull = base::NumberedTable<Pull>::Next(pull)) pull->Start();
  calls_->SendWaiting();
}

absl::Status Outbound::OnMessage(const Message& message, CopyBudget& budget) {
  const Header& header = message.header;
  if (Pull* pull = pulls_.Find(header.transfer)) return OnPullMessage(*pull, message, budget);
  if (header.kind == MessageKind::kReply && calls_->OnReply(header.transfer, message.body)) {
    budget.Charge(message.body.size());  // the caller copied it
    return absl::OkStatus();
  }
  if (header.kind == MessageKind::kFail && calls_->OnReply(header.transfer, FailureOf(peer_, message))) {
    return absl::OkStatus();
  }
  return OnUnknown(header);
}

absl::Status Outbound::OnPullMessage(Pull& pull, const Message& message, CopyBudget& budget) {
  switch (message.header.kind) {
    case MessageKind::kData:
      return pull.OnData(message.header);
    case MessageKind::kChunk:
      return pull.OnChunk(message, budget);
    case MessageKind::kDone:
      return pull.OnDone(message.header);
    case MessageKind::kProgress:
      return pull.OnProgress(message.header);
    case MessageKind::kFail:
      pull.OnFail(message.header, FailureOf(peer_, message));
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat(ToString(message.header.kind), " of an owner"));
  }
}

// Handles what comes for a transfer or call that is over or never was.
absl::Status Outbound::OnUnknown(const Header& header) {
  const bool of_owner = header.kind == MessageKind::kData || header.kind == MessageKind::kChunk ||
                        header.kind == MessageKind::kDone || header.kind == MessageKind::kFail ||
                        header.kind == MessageKind::kProgress;
  if (!of_owner || header.transfer > last_number_) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(header.kind), " of transfer ", header.transfer, " where ",
                                                   last_number_, " were asked for"));
  }
  ++context_.counters.late_messages;
  return absl::OkStatus();
}

absl::Status Outbound::OnNote(const Note& note) {
  auto it = writes_.find(note.number);
  if (it != writes_.end()) return it->second->OnNote(note);
  ++context_.counters.late_messages;
  return absl::OkStatus();
}

std::vector<WantedWrite> Outbound::WritesWanted() const {
  std::vector<WantedWrite> wanted;
  for (Pull* pull = pulls_.first(); pull != nullptr; pull = base::NumberedTable<Pull>::Next(pull)) {
    if (pull->waits_for_notes()) wanted.push_back(pull->wanted());
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const WantedWrite& a, const WantedWrite& b) { return a.transfer < b.transfer; });
  return wanted;
}

bool Outbound::bulk_wanted() const {
  for (Pull* pull = pulls_.first(); pull != nullptr; pull = base::NumberedTable<Pull>::Next(pull)) {
    if (pull->wants_bulk()) return true;
  }
  return false;
}

// None of these calls takes a pull out of the table.
void Outbound::OnBulkFailed(const absl::Status& status) {
  for (Pull* pull = pulls_.first(); pull != nullptr; pull = base::NumberedTable<Pull>::Next(pull)) {
    if (pull->wants_bulk()) pull->OnBulkFailed(status);
  }
}

void Outbound::OnBroken(const absl::Status& status) {
  const std::unique_ptr<Outbound> self = keeper_.TakeOut(*this);
  while (!pulls_.empty()) pulls_.first()->OnBroken(status);
  calls_->OnBroken(status);
}

}  // namespace tokamak::transport
