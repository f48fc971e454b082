#include "tokamak/gets.h"

#include <sys/epoll.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/client/buffer_maker.h"
#include "lib/client/convert.h"
#include "lib/client/daemon_connection.h"
#include "lib/client/deadline.h"
#include "lib/client/line.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/process/forks.h"

namespace tokamak {

using client::BufferMaker;
using client::DaemonConnection;
using client::Deadline;
using client::FromPublic;
using client::Line;
using client::ToPublic;

namespace {

static_assert(Gets::kMaxPending == DaemonConnection::kMaxPendingGets, "the connection bounds them");

Deadline Now() { return Deadline::After(base::Duration()); }

absl::Status NoDescriptors() {
  return absl::ResourceExhaustedError("this process has no descriptors left: raise ulimit -n");
}

}  // namespace

// Hidden: the shared library exports Gets' members.
class __attribute__((visibility("hidden"))) Gets::Impl final {
 public:
  explicit Impl(std::shared_ptr<Line> line) : line_(std::move(line)), connection_(line_->connection()) {}
  ~Impl();

  absl::StatusOr<uint64_t> Begin(const ObjectId& id, base::Duration timeout, Protocol protocol);
  absl::Status Send() { return SendUntil(line_->CallDeadline()); }
  absl::StatusOr<Answer> Next(base::Duration timeout, const Interrupt* interrupt);
  absl::StatusOr<int> descriptor();
  size_t ended() const { return ended_.size(); }
  void Cancel(uint64_t number);
  size_t pending() const { return pending_.size() + ended_.size(); }

  // A forked child drops only what it shares with its parent.
  bool forked() const { return os::ForkCount() != forks_; }
  void LeaveToParent() {
    connection_.reset();
    line_.reset();
    came_.reset();
    ready_.Close();
  }

 private:
  using Bytes = DaemonConnection::Bytes;

  struct Get {
    ObjectId id;
    base::Duration timeout;
    Deadline deadline;  // for the daemon's answer; far away until the get is sent
  };
  using Pending = std::map<uint64_t, Get>;

  absl::StatusOr<uint64_t> Expect();
  absl::Status ConnectAnew();
  bool Watch(int operation, const DaemonConnection& connection);
  absl::Status SendUntil(Deadline deadline);
  bool GiveUp(Pending::iterator get);
  void End(Pending::iterator get, Result<Buffer> buffer);
  absl::Status ReadUntil(Deadline deadline, const Interrupt* interrupt = nullptr);
  void Take(const DaemonConnection::Answer& answer);
  void EndAll(const absl::Status& why);
  void EndOverdue();

  const uint64_t forks_ = os::ForkCount();
  std::shared_ptr<Line> line_;
  std::shared_ptr<DaemonConnection> connection_;  // of all pending gets
  DaemonConnection::Inbox inbox_;                 // the connection's while a get is pending
  Pending pending_;                               // by number, the request's id
  std::deque<Answer> ended_;
  std::vector<Bytes> unsent_;
  std::vector<uint64_t> unsent_gets_;      // gets with a frame in unsent_
  Deadline earliest_ = Deadline::Never();  // no get's deadline is before it

  // Set once the program has asked for a descriptor: readable when an answer came for these gets,
  // read by any thread, or the socket has something to read.
  std::optional<Interrupt> came_;
  os::FileDescriptor ready_;
};

Gets::Impl::~Impl() {
  for (auto get = pending_.begin(); get != pending_.end();) GiveUp(get++);
  if (!pending_.empty()) ReadUntil(Now()).IgnoreError();
  ended_.clear();
  if (!unsent_.empty()) connection_->TellAll(std::move(unsent_));
}

absl::StatusOr<uint64_t> Gets::Impl::Begin(const ObjectId& id, base::Duration timeout, Protocol protocol) {
  absl::StatusOr<uint64_t> number = Expect();
  if (absl::IsResourceExhausted(number.status())) {
    // Cancelled gets count until the daemon's answer has been read.
    if (absl::Status s = Send(); !s.ok()) return s;
    if (absl::Status s = ReadUntil(Now()); !s.ok()) return s;
    number = Expect();
  }
  if (!number.ok()) return number.status();
  client::GetRequest get;
  get.timeout_microseconds = client::TimeoutMicroseconds(timeout);
  get.protocol = protocol;
  get.ids = {id};
  unsent_.push_back(client::Encode(*number, get));
  unsent_gets_.push_back(*number);
  pending_.emplace(*number, Get{id, timeout, Deadline::Never()});
  return number;
}

// Uses another connection if the last was lost while no get was pending.
absl::StatusOr<uint64_t> Gets::Impl::Expect() {
  if (forked()) return absl::FailedPreconditionError("these gets are of the parent process: make others after fork()");
  if (line_->reconnects() && pending_.empty() && !connection_->status().ok()) {
    if (absl::Status s = ConnectAnew(); !s.ok()) return s;
  }
  absl::StatusOr<uint64_t> number = connection_->ExpectGet(inbox_);
  if (!line_->reconnects() || !absl::IsUnavailable(number.status())) return number;
  if (absl::Status s = ConnectAnew(); !s.ok()) return s;
  return connection_->ExpectGet(inbox_);
}

// Pending gets end with the old connection.
absl::Status Gets::Impl::ConnectAnew() {
  while (!pending_.empty()) ReadUntil(Now()).IgnoreError();
  unsent_.clear();
  unsent_gets_.clear();
  if (absl::Status s = line_->Renew(*connection_, line_->CallDeadline()); !s.ok()) return s;
  std::shared_ptr<DaemonConnection> next = line_->connection();
  if (ready_.valid()) {
    if (!Watch(EPOLL_CTL_ADD, *next)) return NoDescriptors();
    Watch(EPOLL_CTL_DEL, *connection_);
    next->RingFor(inbox_, *came_);
  }
  connection_ = std::move(next);
  return absl::OkStatus();
}

// Adds the connection's socket to the descriptor, or removes it.
bool Gets::Impl::Watch(int operation, const DaemonConnection& connection) {
  epoll_event readable{};
  readable.events = EPOLLIN;
  return epoll_ctl(ready_.get(), operation, connection.descriptor(), &readable) == 0;
}

absl::Status Gets::Impl::SendUntil(Deadline deadline) {
  if (unsent_.empty()) return absl::OkStatus();
  if (absl::Status s = connection_->Send(unsent_, deadline); !s.ok()) return s;
  unsent_.clear();
  for (const uint64_t number : std::exchange(unsent_gets_, {})) {
    const auto get = pending_.find(number);
    if (get == pending_.end()) continue;  // cancelled
    get->second.deadline = line_->AnswerDeadline(get->second.timeout);
    earliest_ = Deadline::Earlier(earliest_, get->second.deadline);
  }
  return absl::OkStatus();
}

absl::StatusOr<Gets::Answer> Gets::Impl::Next(base::Duration timeout, const Interrupt* interrupt) {
  const Deadline deadline = Deadline::After(timeout);
  const Deadline sent_by = ended_.empty() ? Deadline::Earlier(deadline, line_->CallDeadline()) : Now();
  // A failed send does not keep ended gets, or answers that came, from the program.
  const absl::Status sent = SendUntil(sent_by);
  if (absl::IsDeadlineExceeded(sent) && ended_.empty() && !deadline.passed()) return sent;
  while (ended_.empty()) {
    if (pending_.empty()) return absl::FailedPreconditionError("no get is under way: begin one");
    const bool last = deadline.passed();
    const absl::Status read = ReadUntil(Deadline::Earlier(deadline, earliest_), interrupt);
    if (absl::IsCancelled(read)) return read;
    // Any other error has ended all gets.
    if (ended_.empty() && last) return absl::DeadlineExceededError("no get has ended in time");
  }
  Answer next = std::move(ended_.front());
  ended_.pop_front();
  return next;
}

void Gets::Impl::Cancel(uint64_t number) {
  const auto get = pending_.find(number);
  if (get != pending_.end()) {
    if (GiveUp(get)) return SendUntil(Now()).IgnoreError();
    ReadUntil(Now()).IgnoreError();
  }
  const auto ended = std::find_if(ended_.begin(), ended_.end(), [&](const Answer& a) { return a.number == number; });
  if (ended != ended_.end()) ended_.erase(ended);
}

// Returns false if its answer is in the inbox.
bool Gets::Impl::GiveUp(Pending::iterator get) {
  const auto release = [id = get->second.id](absl::Span<const uint8_t> late) {
    return BufferMaker::ReleaseOf(absl::MakeConstSpan(&id, 1), late);
  };
  if (!connection_->GiveUpGet(get->first, release)) return false;
  client::CancelRequest cancel;
  cancel.request_id = get->first;
  unsent_.push_back(client::Encode(0, cancel));
  pending_.erase(get);
  return true;
}

// kCancelled: it was interrupted. Other errors: the connection is lost, and all gets have ended
// with that.
absl::Status Gets::Impl::ReadUntil(Deadline deadline, const Interrupt* interrupt) {
  if (came_.has_value()) came_->Reset();
  const auto came = connection_->Await(inbox_, deadline, interrupt);
  if (absl::IsCancelled(came.status())) return came.status();
  if (!came.ok()) {
    EndAll(came.status());
  } else if (came->empty()) {
    EndOverdue();
  } else {
    for (const DaemonConnection::Answer& answer : *came) Take(answer);
  }
  if (came_.has_value() && !ended_.empty()) came_->Fire();
  return came.status();
}

absl::StatusOr<int> Gets::Impl::descriptor() {
  if (ready_.valid()) return ready_.get();
  Result<Interrupt> came = Interrupt::Make();
  os::FileDescriptor ready(epoll_create1(EPOLL_CLOEXEC));
  epoll_event readable{};
  readable.events = EPOLLIN;
  if (!came.ok() || !ready.valid() || epoll_ctl(ready.get(), EPOLL_CTL_ADD, came->descriptor(), &readable) != 0) {
    return NoDescriptors();
  }
  ready_ = std::move(ready);
  if (!Watch(EPOLL_CTL_ADD, *connection_)) {
    ready_.Close();
    return NoDescriptors();
  }
  came_.emplace(std::move(*came));
  connection_->RingFor(inbox_, *came_);
  if (!ended_.empty()) came_->Fire();
  return ready_.get();
}

void Gets::Impl::Take(const DaemonConnection::Answer& answer) {
  const auto get = pending_.find(answer.request_id);
  CHECK(get != pending_.end()) << "what was given up has no answer here";
  if (!answer.frame.ok()) return End(get, ToPublic(answer.frame.status()));
  const absl::StatusOr<client::GetReply> reply = connection_->Read<client::GetReply>(*answer.frame);
  if (!reply.ok()) return End(get, ToPublic(reply.status()));
  if (reply->entries.size() != 1) return End(get, ToPublic(DaemonConnection::WrongCount()));
  End(get, BufferMaker::Of(connection_, get->second.id, reply->entries.front()));
}

void Gets::Impl::End(Pending::iterator get, Result<Buffer> buffer) {
  ended_.push_back({get->first, get->second.id, std::move(buffer)});
  pending_.erase(get);
}

void Gets::Impl::EndAll(const absl::Status& why) {
  while (!pending_.empty()) {
    connection_->GiveUpGet(pending_.begin()->first, nullptr);
    End(pending_.begin(), ToPublic(why));
  }
}

void Gets::Impl::EndOverdue() {
  if (!earliest_.passed()) return;
  earliest_ = Deadline::Never();
  for (auto next = pending_.begin(); next != pending_.end();) {
    const auto get = next++;
    const Deadline deadline = get->second.deadline;
    Answer overdue{get->first, get->second.id,
                   Status(StatusCode::kDeadlineExceeded, "the daemon did not answer in time")};
    if (deadline.passed() && GiveUp(get)) {
      ended_.push_back(std::move(overdue));
    } else {
      earliest_ = Deadline::Earlier(earliest_, deadline);
    }
  }
}

// ---- what programs see

Gets::Gets(const Client& client) : impl_(new Impl(client.line_)) {}
Gets::Gets(Gets&&) noexcept = default;
Gets& Gets::operator=(Gets&&) noexcept = default;
Gets::~Gets() = default;

void Gets::Drop::operator()(Impl* impl) const {
  if (impl->forked()) {
    impl->LeaveToParent();
  } else {
    delete impl;
  }
}

Result<uint64_t> Gets::Begin(const ObjectId& id, Timeout timeout, const GetOptions& options) {
  const absl::StatusOr<uint64_t> number = impl_->Begin(id, FromPublic(timeout), options.protocol);
  if (!number.ok()) return ToPublic(number.status());
  return *number;
}

Status Gets::Send() { return ToPublic(impl_->Send()); }

Result<Gets::Answer> Gets::Next(Timeout timeout, const Interrupt* interrupt) {
  absl::StatusOr<Answer> answer = impl_->Next(FromPublic(timeout), interrupt);
  if (!answer.ok()) return ToPublic(answer.status());
  return *std::move(answer);
}

Result<int> Gets::descriptor() {
  const absl::StatusOr<int> descriptor = impl_->descriptor();
  if (!descriptor.ok()) return ToPublic(descriptor.status());
  return *descriptor;
}

size_t Gets::ended() const { return impl_->ended(); }

void Gets::Cancel(uint64_t number) { impl_->Cancel(number); }

size_t Gets::pending() const { return impl_->pending(); }

}  // namespace tokamak
