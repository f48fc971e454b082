#include "lib/client/daemon_connection.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/client/cancellation.h"

namespace tokamak::client {

namespace {

// The longest time for a daemon to accept a connection.
constexpr base::Duration kTakenWithin = base::Seconds(5);
// The sleep of a process that has no descriptor for an interrupt: the longest that a fired one
// waits.
constexpr base::Duration kSleepWithoutDescriptor = base::Milliseconds(20);

}  // namespace

static_assert(kHeaderSize + kMaxBody <= os::kMaxFrame, "the socket carries our longest frame");

absl::StatusOr<std::shared_ptr<DaemonConnection>> DaemonConnection::Open(const std::string& socket_path,
                                                                         const Options& options, Deadline deadline,
                                                                         const Interrupt* interrupt) {
  const Uncancelled uncancelled;
  absl::StatusOr<os::UnixSocket> socket =
      os::UnixSocket::Connect(socket_path, std::min(kTakenWithin, deadline.remaining()));
  if (absl::IsNotFound(socket.status()) || absl::IsUnavailable(socket.status())) {
    return absl::UnavailableError(
        absl::StrCat("no tokd listens at ", socket_path, ": start one with tokd --socket ", socket_path));
  }
  if (!socket.ok()) return socket.status();
  socket->SetSpin(options.spin);
  std::shared_ptr<DaemonConnection> connection(new DaemonConnection(socket_path, options, *std::move(socket)), &Drop);
  if (absl::Status s = connection->SayHello(deadline, interrupt); !s.ok()) return s;
  return connection;
}

// In a child of fork() the connection may be in the middle of anything, and locks and condition
// variables with waiters must not be destroyed: they stay.
void DaemonConnection::Drop(DaemonConnection* connection) {
  if (!connection->forked()) {
    delete connection;
    return;
  }
  connection->socket_.Close();
  connection->readable_ = os::MemoryMapping();
  connection->writable_ = os::MemoryMapping();
}

absl::Status DaemonConnection::SayHello(Deadline deadline, const Interrupt* interrupt) {
  const Bytes hello = Encode(next_id_++, options_.hello);
  if (absl::Status s = socket_.Send(hello, deadline.remaining()); !s.ok()) return Explain(s);
  absl::StatusOr<os::Frame> frame = AwaitWelcome(deadline, interrupt);
  if (absl::IsCancelled(frame.status())) return Interrupted();
  if (absl::IsResourceExhausted(frame.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot connect to the daemon at ", path_, ": ", frame.status().message()));
  }
  if (!frame.ok()) return Explain(frame.status());

  const absl::StatusOr<Header> header = DecodeHeader(frame->body);
  if (!header.ok() || header->kind != WelcomeReply::kKind) {
    return absl::FailedPreconditionError(absl::StrCat("what listens at ", path_, " is not a tokd"));
  }
  if (absl::Status s = StatusOf(*header, frame->body); !s.ok()) return s;
  if (header->version != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat("the daemon at ", path_, " speaks version ", header->version,
                                                      " of the client protocol, this program ", kVersion,
                                                      ": use the client library of the daemon's release"));
  }
  absl::StatusOr<WelcomeReply> welcome = DecodeBody<WelcomeReply>(frame->body);
  if (!welcome.ok()) return welcome.status();
  welcome_ = *std::move(welcome);
  return MapArena(frame->descriptors);
}

absl::StatusOr<os::Frame> DaemonConnection::AwaitWelcome(Deadline deadline, const Interrupt* interrupt) {
  while (true) {
    const base::Duration wait = NextLook(deadline).remaining();
    absl::StatusOr<os::Frame> frame = socket_.Receive(wait, interrupt == nullptr ? -1 : interrupt->descriptor());
    const bool looks_on = absl::IsDeadlineExceeded(frame.status()) && !deadline.passed();
    if (!looks_on && !(absl::IsCancelled(frame.status()) && interrupt->GoesOn())) return frame;
  }
}

absl::Status DaemonConnection::MapArena(absl::Span<const os::FileDescriptor> descriptors) {
  const size_t expected = options_.hello.access == Access::kReadAndCreate ? 2 : 1;
  if (descriptors.size() != expected) {
    return absl::FailedPreconditionError(absl::StrCat("the daemon at ", path_, " sent ", descriptors.size(),
                                                      " descriptors of its arena instead of ", expected));
  }
  absl::StatusOr<os::MemoryMapping> readable =
      os::SharedMemory::Attach(descriptors[0].get(), welcome_.arena_size, /*writable=*/false);
  if (!readable.ok()) return readable.status();
  readable_ = *std::move(readable);
  if (options_.hello.access == Access::kRead) return absl::OkStatus();
  absl::StatusOr<os::MemoryMapping> writable =
      os::SharedMemory::Attach(descriptors[1].get(), welcome_.arena_size, /*writable=*/true);
  if (!writable.ok()) return writable.status();
  writable_ = *std::move(writable);
  return absl::OkStatus();
}

absl::StatusOr<DaemonConnection::Bytes> DaemonConnection::Exchange(uint16_t reply_kind, const MakeFrame& make,
                                                                   Deadline deadline, const Late& late,
                                                                   const Interrupt* interrupt, bool* unsent,
                                                                   Bytes otherwise) {
  const auto lost = [unsent](const absl::Status& why) {
    if (unsent != nullptr) *unsent = true;
    return why;
  };
  if (forked()) return lost(RefuseForked());
  const Uncancelled uncancelled;
  Inbox inbox;
  const base::MutexLock lock(mutex_);
  // Abandoned calls count until the daemon's answer has been read.
  if (abandoned_ >= kMaxAbandoned) WaitOrRead(Deadline::After(base::Duration()), nullptr);
  if (!broken_.ok()) return lost(broken_);
  if (abandoned_ >= kMaxAbandoned) {
    if (!otherwise.empty()) SendUnanswered({std::move(otherwise)});
    return absl::UnavailableError(
        absl::StrCat("the daemon at ", path_, " has left ", abandoned_, " calls unanswered: look at its log"));
  }
  const uint64_t id = next_id_++;
  const auto expected = expected_.emplace(id, Expected{reply_kind, /*of_gets=*/false, &inbox, nullptr}).first;
  const Bytes request = mutex_.RunUnlocked([&] { return make(id); });
  if (absl::Status s = SendInTurn(absl::MakeConstSpan(&request, 1), deadline); !s.ok()) {
    if (inbox.answers.empty()) Forget(expected);
    if (!broken_.ok()) return lost(broken_);
    if (!otherwise.empty()) SendUnanswered({std::move(otherwise)});
    return s;
  }

  auto cancelled = absl::MakeCleanup([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!inbox.answers.empty()) return DropAnswer(inbox.answers.front(), late);
    broken_.ok() ? GiveUp(expected, late, /*tells=*/true) : Forget(expected);
  });
  const bool interrupted = WaitFor(inbox, deadline, interrupt);
  std::move(cancelled).Cancel();
  if (!inbox.answers.empty()) return std::move(inbox.answers.front().frame);
  if (!broken_.ok()) {
    Forget(expected);
    return Unanswered();
  }
  GiveUp(expected, late, /*tells=*/interrupted);
  if (interrupted) return Interrupted();
  return absl::DeadlineExceededError(absl::StrCat("the daemon at ", path_, " did not answer in time"));
}

// Gives up the wait for the reply; with `tells`, cancels at the daemon if possible.
void DaemonConnection::GiveUp(std::map<uint64_t, Expected>::iterator expected, Late late, bool tells) {
  expected->second.inbox = nullptr;
  expected->second.late = std::move(late);
  ++abandoned_;
  const uint16_t kind = expected->second.kind;
  if (!tells || (kind != GetReply::kKind && kind != WaitReply::kKind)) return;
  CancelRequest cancel;
  cancel.request_id = expected->first;
  SendUnanswered({Encode(0, cancel)});
}

// Gives back an answer for a thread that has just been cancelled.
void DaemonConnection::DropAnswer(const Answer& answer, const Late& late) {
  if (!answer.frame.ok() || !late) return;
  Bytes tell = late(*answer.frame);
  if (!tell.empty()) SendUnanswered({std::move(tell)});
}

absl::StatusOr<uint64_t> DaemonConnection::ExpectGet(Inbox& inbox) {
  if (forked()) return RefuseForked();
  const base::MutexLock lock(mutex_);
  if (!broken_.ok()) return broken_;
  if (pending_gets_ >= kMaxPendingGets) {
    return absl::ResourceExhaustedError(
        absl::StrCat(pending_gets_, " gets of this client are under way, which is the most: await some"));
  }
  ++pending_gets_;
  const uint64_t id = next_id_++;
  expected_.emplace(id, Expected{GetReply::kKind, /*of_gets=*/true, &inbox, nullptr});
  return id;
}

bool DaemonConnection::GiveUpGet(uint64_t request_id, Late late) {
  if (forked()) return true;
  const base::MutexLock lock(mutex_);
  const auto expected = expected_.find(request_id);
  if (expected == expected_.end()) return false;
  expected->second.inbox = nullptr;
  expected->second.late = std::move(late);
  return true;
}

void DaemonConnection::Forget(std::map<uint64_t, Expected>::iterator expected) {
  if (expected->second.of_gets) {
    --pending_gets_;
  } else if (expected->second.inbox == nullptr) {
    --abandoned_;
  }
  expected_.erase(expected);
}

absl::StatusOr<EventsNotification> DaemonConnection::NextEvents(Deadline deadline, const Interrupt* interrupt) {
  if (forked()) return RefuseForked();
  const Uncancelled uncancelled;
  const base::MutexLock lock(mutex_);
  bool interrupted = false;
  for (bool last = false; events_.empty() && broken_.ok() && !last && !interrupted;) {
    last = deadline.passed();
    interrupted = WaitAWhile(deadline, interrupt);
  }
  TellWaiting();
  if (events_.empty() && interrupted) return Interrupted();
  if (events_.empty()) return broken_.ok() ? absl::DeadlineExceededError("nothing happened in time") : broken_;
  EventsNotification events = std::move(events_.front());
  events_.pop_front();
  return events;
}

// ---- sending

absl::Status DaemonConnection::Send(absl::Span<const Bytes> frames, Deadline deadline) {
  if (forked()) return RefuseForked();
  const Uncancelled uncancelled;
  const Deadline end = CallDeadline();
  const base::MutexLock lock(mutex_);
  if (absl::Status s = BeginTurn(deadline); !s.ok()) return s;
  const absl::StatusOr<bool> sent =
      mutex_.RunUnlocked([&] { return socket_.SendAllOrNone(frames, deadline.remaining(), end.remaining()); });
  if (!sent.ok()) Break(sent.status());
  if (absl::Status s = EndTurn(end); !s.ok()) return s;
  return *sent ? absl::OkStatus() : TakesNothing();
}

void DaemonConnection::TellAll(std::vector<Bytes> frames) {
  if (forked()) return;
  const Uncancelled uncancelled;
  const base::MutexLock lock(mutex_);
  SendUnanswered(std::move(frames));
}

// Sends, one thread after another. Without a turn in time nothing was sent; any other failure ends
// the connection, and the daemon does not have all of the last frame. OK: the frames were sent; the
// connection may be lost since.
absl::Status DaemonConnection::SendInTurn(absl::Span<const Bytes> frames, Deadline deadline) {
  if (absl::Status s = BeginTurn(deadline); !s.ok()) return s;
  const absl::Status sent = Write(frames, deadline);
  EndTurn(deadline).IgnoreError();
  return sent;
}

absl::Status DaemonConnection::BeginTurn(Deadline deadline) {
  while (sending_ && broken_.ok() && sent_.WaitUntil(mutex_, deadline.time())) {
  }
  if (!broken_.ok()) return broken_;
  if (sending_) return TakesNothing();
  sending_ = true;
  return absl::OkStatus();
}

absl::Status DaemonConnection::EndTurn(Deadline deadline) {
  while (!unsent_.empty() && broken_.ok()) {
    const std::vector<Bytes> unanswered = std::exchange(unsent_, {});
    Write(unanswered, deadline).IgnoreError();  // a failure ends the connection
  }
  sending_ = false;
  sent_.NotifyOne();
  return broken_;
}

absl::Status DaemonConnection::TakesNothing() const {
  return absl::DeadlineExceededError(absl::StrCat("the daemon at ", path_, " takes no requests"));
}

void DaemonConnection::SendUnanswered(std::vector<Bytes> frames) {
  if (sending_) {
    for (Bytes& frame : frames) unsent_.push_back(std::move(frame));
  } else {
    SendInTurn(frames, CallDeadline()).IgnoreError();
  }
}

absl::Status DaemonConnection::Write(absl::Span<const Bytes> frames, Deadline deadline) {
  absl::Status sent = mutex_.RunUnlocked([&] { return socket_.SendAll(frames, deadline.remaining()); });
  if (!sent.ok()) Break(sent);
  return sent;
}

// ---- receiving

absl::StatusOr<absl::InlinedVector<DaemonConnection::Answer, 1>> DaemonConnection::Await(Inbox& inbox,
                                                                                         Deadline deadline,
                                                                                         const Interrupt* interrupt) {
  if (forked()) return RefuseForked();
  const Uncancelled uncancelled;
  const base::MutexLock lock(mutex_);
  const bool interrupted = WaitFor(inbox, deadline, interrupt);
  if (inbox.answers.empty() && !broken_.ok()) return broken_;
  if (inbox.answers.empty() && interrupted) return Interrupted();
  return std::exchange(inbox.answers, {});
}

void DaemonConnection::RingFor(Inbox& inbox, const Interrupt& came) {
  if (forked()) return;
  const base::MutexLock lock(mutex_);
  inbox.came = &came;
  if (!inbox.answers.empty()) came.Fire();
}

// Looks once at what is there, even after the deadline. Returns true if it was interrupted.
bool DaemonConnection::WaitFor(const Inbox& inbox, Deadline deadline, const Interrupt* interrupt) {
  bool interrupted = false;
  for (bool last = false; inbox.answers.empty() && broken_.ok() && !last && !interrupted;) {
    last = deadline.passed();
    interrupted = WaitAWhile(deadline, interrupt);
  }
  TellWaiting();  // another thread may have to read now
  return interrupted;
}

// As WaitOrRead, but first looks, when that is due, whether the thread was cancelled.
bool DaemonConnection::WaitAWhile(Deadline deadline, const Interrupt* interrupt) {
  return WaitOrRead(NextLook(deadline), interrupt);
}

Deadline DaemonConnection::NextLook(Deadline deadline) {
  Uncancelled::Look();
  return Uncancelled::may_end() ? Deadline::Earlier(deadline, Deadline::After(kLookForCancellation)) : deadline;
}

// Waits while another thread reads, otherwise reads for all. Returns true if it was interrupted and
// is to end.
bool DaemonConnection::WaitOrRead(Deadline deadline, const Interrupt* interrupt) {
  if (!WaitOrReadOnce(deadline, interrupt)) return false;
  const bool goes_on = mutex_.RunUnlocked([&] { return interrupt->GoesOn(); });
  // However often it is fired, what has come is read.
  if (goes_on && broken_.ok()) WaitOrReadOnce(Deadline::After(base::Duration()), nullptr);
  return !goes_on;
}

bool DaemonConnection::WaitOrReadOnce(Deadline deadline, const Interrupt* interrupt) {
  if (reading_) {
    if (interrupt != nullptr) return WaitForReader(deadline, *interrupt);
    changed_.WaitUntil(mutex_, deadline.time());
    return false;
  }
  reading_ = true;
  absl::StatusOr<os::Frame> frame = mutex_.RunUnlocked(
      [&] { return socket_.Receive(deadline.remaining(), interrupt == nullptr ? -1 : interrupt->descriptor()); });
  std::vector<Bytes> told;
  if (frame.ok()) {
    do {
      Dispatch(std::move(frame->body), told);
    } while (broken_.ok() && socket_.Next(&*frame));
  } else if (!absl::IsDeadlineExceeded(frame.status()) && !absl::IsCancelled(frame.status())) {
    Break(frame.status());
  }
  reading_ = false;
  TellWaiting();
  if (!told.empty()) SendUnanswered(std::move(told));
  return absl::IsCancelled(frame.status());
}

// Sleeps on two descriptors: a condition variable knows nothing of an interrupt's.
bool DaemonConnection::WaitForReader(Deadline deadline, const Interrupt& interrupt) {
  const Result<Interrupt> woken = Interrupt::Make();
  if (!woken.ok()) {
    changed_.WaitUntil(mutex_, Deadline::Earlier(deadline, Deadline::After(kSleepWithoutDescriptor)).time());
    return interrupt.fired();
  }
  sleepers_.push_back(&*woken);
  const bool interrupted = mutex_.RunUnlocked(
      [&] { return os::AwaitReadable(interrupt.descriptor(), woken->descriptor(), deadline.remaining()); });
  sleepers_.erase(std::find(sleepers_.begin(), sleepers_.end(), &*woken));
  return interrupted;
}

void DaemonConnection::TellWaiting() {
  changed_.NotifyAll();
  for (const Interrupt* const sleeper : sleepers_) sleeper->Fire();
}

// `told`: frames to send because of late replies.
void DaemonConnection::Dispatch(Bytes frame, std::vector<Bytes>& told) {
  const absl::StatusOr<Header> header = DecodeHeader(frame);
  if (!header.ok()) return Break(header.status());
  if (header->version != kVersion) return Break(absl::InternalError("it changed its protocol version"));
  if (header->kind == EventsNotification::kKind) {
    absl::StatusOr<EventsNotification> events = DecodeBody<EventsNotification>(frame);
    if (!events.ok()) return Break(events.status());
    events_.push_back(*std::move(events));
    return;
  }
  const auto expected = expected_.find(header->request_id);
  if (expected == expected_.end()) return Break(absl::InternalError("it answered what nobody asked"));
  const absl::Status status = StatusOf(*header, frame);
  const bool of_this_kind = expected->second.kind == header->kind;
  if (Inbox* const inbox = expected->second.inbox) {
    if (!of_this_kind) return Break(absl::InternalError("it answered another question"));
    inbox->answers.push_back({header->request_id, status.ok() ? absl::StatusOr<Bytes>(std::move(frame)) : status});
    if (inbox->came != nullptr) inbox->came->Fire();
  } else if (of_this_kind && status.ok() && expected->second.late) {
    Bytes tell = expected->second.late(frame);
    if (!tell.empty()) told.push_back(std::move(tell));
  }
  Forget(expected);
}

// The first reason stays. Threads that read or send come back at once.
void DaemonConnection::Break(const absl::Status& why) {
  if (!broken_.ok()) return;
  broken_ = Explain(why);
  socket_.Shutdown();
  TellWaiting();
  sent_.NotifyAll();
}

absl::Status DaemonConnection::Explain(const absl::Status& why) const {
  return absl::UnavailableError(
      absl::StrCat("the connection to the daemon at ", path_, " is lost: ", why.message(),
                   options_.reconnects ? "; the next call connects anew" : "; connect again"));
}

// The error of a call that was sent: the daemon may have carried it out.
absl::Status DaemonConnection::Unanswered() const {
  return absl::UnavailableError(absl::StrCat("not answered: ", broken_.message()));
}

absl::Status DaemonConnection::RefuseForked() const {
  return absl::FailedPreconditionError(
      absl::StrCat("the connection to the daemon at ", path_, " is of the parent process: connect again after fork()"));
}

absl::Status DaemonConnection::status() const {
  if (forked()) return RefuseForked();
  const base::MutexLock lock(mutex_);
  if (broken_.ok() && socket_.ended()) return Explain(absl::UnavailableError("the other side ended"));
  return broken_;
}

uint64_t DaemonConnection::next_id() const {
  if (forked()) return options_.first_id;
  const base::MutexLock lock(mutex_);
  return next_id_;
}

absl::Status DaemonConnection::Interrupted() { return absl::CancelledError("interrupted"); }

absl::Status DaemonConnection::WrongCount() {
  return absl::InternalError("the daemon answered for another number of objects");
}

absl::StatusOr<absl::Span<const uint8_t>> DaemonConnection::ReadableMemory(const Location& location) const {
  if (absl::Status s = CheckLocation(location, readable_.size()); !s.ok()) return s;
  return absl::Span<const uint8_t>(readable_.data() + location.offset, location.data_size + location.metadata_size);
}

absl::StatusOr<absl::Span<uint8_t>> DaemonConnection::WritableMemory(const Location& location) const {
  if (absl::Status s = CheckLocation(location, writable_.size()); !s.ok()) return s;
  return absl::Span<uint8_t>(writable_.data() + location.offset, location.data_size + location.metadata_size);
}

absl::Status DaemonConnection::CheckLocation(const Location& location, uint64_t size) const {
  const bool inside = location.offset <= size && location.data_size <= size - location.offset &&
                      location.metadata_size <= size - location.offset - location.data_size;
  if (inside) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the daemon at ", path_, " named memory outside of its arena"));
}

}  // namespace tokamak::client
