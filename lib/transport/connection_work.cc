// What a connection does in its tasks: completions are passed on, receives posted again, and what waits is sent.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/transport/connection.h"

namespace tokamak::transport {

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
  bool hold = false;
  const absl::Status s = HandleMessage(*message, id.entry, &hold);
  if (!hold) control_->Release(id.entry);
  if (!s.ok()) BreakForViolation(s);
}

void Connection::HandleNote(const RequestId& id, const verbs::Completion& completion) {
  auto value = bulk_->OnReceived(id.queue - 1u, id.entry, completion);
  if (!value.ok()) return BreakForViolation(value.status());
  const bool greeting = *value == Note::kGreeting && side_ == BulkChannel::Side::kOwner;
  if (absl::Status s = greeting ? absl::OkStatus() : user_.OnNote(Note::Unpack(*value)); !s.ok()) BreakForViolation(s);
}

absl::Status Connection::HandleMessage(const Message& message, uint32_t slot, bool* hold) {
  switch (message.header.kind) {
    case MessageKind::kCredit:
      return absl::OkStatus();
    case MessageKind::kRails:
      return HandleRails(message);
    case MessageKind::kRailDown:
      return HandleRailDown(message);
    default:
      if (absl::Status s = CheckKeys(message.header.remote.further); !s.ok()) return s;
      return user_.OnMessage(message, slot, hold);
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

}  // namespace tokamak::transport
