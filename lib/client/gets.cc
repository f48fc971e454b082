#include "lib/client/gets.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"

namespace tokamak::client {
namespace {

// For what must not wait.
Deadline Now() { return Deadline::After(base::Duration()); }

}  // namespace

Gets::Gets(const Client& client) : connection_(client.connection_) {}

Gets::~Gets() {
  for (auto get = pending_.begin(); get != pending_.end();) GiveUp(get++);
  if (!pending_.empty()) ReadUntil(Now()).IgnoreError();
  ended_.clear();
  if (!unsent_.empty()) connection_->TellAll(std::move(unsent_));
}

absl::StatusOr<uint64_t> Gets::Begin(const base::ObjectId& id, base::Duration timeout, Protocol protocol) {
  absl::StatusOr<uint64_t> number = connection_->ExpectGet(inbox_);
  if (absl::IsResourceExhausted(number.status())) {
    // What was cancelled counts until the daemon's word of it has been read.
    if (absl::Status s = Send(); !s.ok()) return s;
    if (absl::Status s = ReadUntil(Now()); !s.ok()) return s;
    number = connection_->ExpectGet(inbox_);
  }
  if (!number.ok()) return number.status();
  GetRequest get;
  get.timeout_microseconds = TimeoutMicroseconds(timeout);
  get.protocol = protocol;
  get.ids = {id};
  unsent_.push_back(Encode(*number, get));
  unsent_gets_.push_back(*number);
  pending_.emplace(*number, Get{id, timeout, Deadline::Never()});
  return number;
}

absl::Status Gets::Send() { return SendUntil(connection_->CallDeadline()); }

absl::Status Gets::SendUntil(Deadline deadline) {
  if (unsent_.empty()) return absl::OkStatus();
  if (absl::Status s = connection_->Send(unsent_, deadline); !s.ok()) return s;
  unsent_.clear();
  for (const uint64_t number : std::exchange(unsent_gets_, {})) {
    const auto get = pending_.find(number);
    if (get == pending_.end()) continue;  // cancelled meanwhile
    get->second.deadline = connection_->AnswerDeadline(get->second.timeout);
    earliest_ = Deadline::Earlier(earliest_, get->second.deadline);
  }
  return absl::OkStatus();
}

absl::StatusOr<Gets::Answer> Gets::Next(base::Duration timeout) {
  const Deadline deadline = Deadline::After(timeout);
  const Deadline sent_by = ended_.empty() ? Deadline::Earlier(deadline, connection_->CallDeadline()) : Now();
  // That nothing was sent does not keep what has ended, or what has come, from the program.
  const absl::Status sent = SendUntil(sent_by);
  if (absl::IsDeadlineExceeded(sent) && ended_.empty() && !deadline.passed()) return sent;
  while (ended_.empty()) {
    if (pending_.empty()) return absl::FailedPreconditionError("no get is under way: begin one");
    const bool last = deadline.passed();
    ReadUntil(Deadline::Earlier(deadline, earliest_)).IgnoreError();  // then all have ended
    if (ended_.empty() && last) return absl::DeadlineExceededError("no get has ended in time");
  }
  Answer next = std::move(ended_.front());
  ended_.pop_front();
  return next;
}

void Gets::Cancel(uint64_t number) {
  const auto get = pending_.find(number);
  if (get != pending_.end()) {
    if (GiveUp(get)) return SendUntil(Now()).IgnoreError();
    ReadUntil(Now()).IgnoreError();
  }
  const auto ended = std::find_if(ended_.begin(), ended_.end(), [&](const Answer& a) { return a.number == number; });
  if (ended != ended_.end()) ended_.erase(ended);
}

// False: its answer is in the inbox.
bool Gets::GiveUp(Pending::iterator get) {
  const auto release = [id = get->second.id](absl::Span<const uint8_t> late) {
    return Client::ReleaseOf(absl::MakeConstSpan(&id, 1), late);
  };
  if (!connection_->GiveUpGet(get->first, release)) return false;
  CancelRequest cancel;
  cancel.request_id = get->first;
  unsent_.push_back(Encode(0, cancel));
  pending_.erase(get);
  return true;
}

// An error: the connection is lost, and all have ended with that.
absl::Status Gets::ReadUntil(Deadline deadline) {
  const absl::StatusOr<Connection::Inbox> came = connection_->Await(inbox_, deadline);
  if (!came.ok()) {
    EndAll(came.status());
    return came.status();
  }
  for (const Connection::Answer& answer : *came) Take(answer);
  if (came->empty()) EndOverdue();
  return absl::OkStatus();
}

void Gets::Take(const Connection::Answer& answer) {
  const auto get = pending_.find(answer.request_id);
  CHECK(get != pending_.end()) << "what was given up has no answer here";
  if (!answer.frame.ok()) return End(get, answer.frame.status());
  const absl::StatusOr<GetReply> reply = connection_->Read<GetReply>(*answer.frame);
  if (!reply.ok()) return End(get, reply.status());
  if (reply->entries.size() != 1) {
    return End(get, absl::InternalError("the daemon answered for another number of objects"));
  }
  End(get, Client::BufferOf(connection_, get->second.id, reply->entries.front()));
}

void Gets::End(Pending::iterator get, absl::StatusOr<Buffer> buffer) {
  ended_.push_back({get->first, get->second.id, std::move(buffer)});
  pending_.erase(get);
}

void Gets::EndAll(const absl::Status& why) {
  while (!pending_.empty()) {
    connection_->GiveUpGet(pending_.begin()->first, nullptr);
    End(pending_.begin(), why);
  }
}

// The daemon should have answered long ago.
void Gets::EndOverdue() {
  if (!earliest_.passed()) return;
  earliest_ = Deadline::Never();
  for (auto next = pending_.begin(); next != pending_.end();) {
    const auto get = next++;
    const Deadline deadline = get->second.deadline;
    Answer overdue{get->first, get->second.id, absl::DeadlineExceededError("the daemon did not answer in time")};
    if (deadline.passed() && GiveUp(get)) {
      ended_.push_back(std::move(overdue));
    } else {
      earliest_ = Deadline::Earlier(earliest_, deadline);
    }
  }
}

}  // namespace tokamak::client
