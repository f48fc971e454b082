#include "lib/client/connection.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tokamak::client {

static_assert(kHeaderSize + kMaxBody <= os::kMaxFrame, "the socket carries our longest frame");

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(const std::string& socket_path, const HelloRequest& hello,
                                                             base::Duration call_timeout) {
  absl::StatusOr<os::UnixSocket> socket = os::UnixSocket::Connect(socket_path);
  if (absl::IsNotFound(socket.status()) || absl::IsUnavailable(socket.status())) {
    return absl::UnavailableError(
        absl::StrCat("no tokd listens at ", socket_path, ": start one with tokd --socket ", socket_path));
  }
  if (!socket.ok()) return socket.status();
  // Not make_shared: the constructor is private.
  std::shared_ptr<Connection> connection(new Connection(socket_path, call_timeout, *std::move(socket)));
  if (absl::Status s = connection->SayHello(hello); !s.ok()) return s;
  return connection;
}

// Nobody else uses the connection yet.
absl::Status Connection::SayHello(const HelloRequest& hello) {
  const Deadline deadline = CallDeadline();
  if (absl::Status s = socket_.Send(Encode(next_id_++, hello), deadline.remaining()); !s.ok()) return Explain(s);
  absl::StatusOr<os::Frame> frame = socket_.Receive(deadline.remaining());
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
  return MapArena(hello.access, frame->descriptors);
}

absl::Status Connection::MapArena(Access access, absl::Span<const os::FileDescriptor> descriptors) {
  const size_t expected = access == Access::kReadAndCreate ? 2 : 1;
  if (descriptors.size() != expected) {
    return absl::FailedPreconditionError(absl::StrCat("the daemon at ", path_, " sent ", descriptors.size(),
                                                      " descriptors of its arena instead of ", expected));
  }
  absl::StatusOr<os::MemoryMapping> readable =
      os::SharedMemory::Attach(descriptors[0].get(), welcome_.arena_size, /*writable=*/false);
  if (!readable.ok()) return readable.status();
  readable_ = *std::move(readable);
  if (access == Access::kRead) return absl::OkStatus();
  absl::StatusOr<os::MemoryMapping> writable =
      os::SharedMemory::Attach(descriptors[1].get(), welcome_.arena_size, /*writable=*/true);
  if (!writable.ok()) return writable.status();
  writable_ = *std::move(writable);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> Connection::Exchange(uint16_t reply_kind, const MakeFrame& make, Deadline deadline,
                                                          LateFrame late, std::vector<uint8_t> otherwise) {
  Waiter waiter;
  waiter.reply_kind = reply_kind;
  std::unique_lock<std::mutex> lock(mutex_);
  if (!broken_.ok()) return broken_;
  if (abandoned_.size() >= kMaxAbandoned) {
    if (!otherwise.empty()) SendUnanswered(lock, std::move(otherwise));
    return absl::UnavailableError(
        absl::StrCat("the daemon at ", path_, " has left ", abandoned_.size(), " calls unanswered: look at its log"));
  }
  const uint64_t id = next_id_++;
  waiting_.emplace(id, &waiter);
  lock.unlock();
  const std::vector<uint8_t> request = make(id);
  lock.lock();
  if (absl::Status s = Send(lock, request, deadline); !s.ok()) {
    waiting_.erase(id);
    if (broken_.ok() && !otherwise.empty()) SendUnanswered(lock, std::move(otherwise));
    return s;
  }

  while (!waiter.answered && broken_.ok() && !deadline.passed()) WaitOrRead(lock, deadline);
  waiting_.erase(id);
  changed_.notify_all();  // somebody else may have to read now
  if (waiter.answered) return std::move(waiter.frame);
  if (!broken_.ok()) return broken_;
  abandoned_.emplace(id, Late{reply_kind, std::move(late)});
  return absl::DeadlineExceededError(absl::StrCat("the daemon at ", path_, " did not answer in time"));
}

absl::StatusOr<EventsNotification> Connection::NextEvents(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (events_.empty() && broken_.ok() && !deadline.passed()) WaitOrRead(lock, deadline);
  changed_.notify_all();
  if (events_.empty()) return broken_.ok() ? absl::DeadlineExceededError("nothing happened in time") : broken_;
  EventsNotification events = std::move(events_.front());
  events_.pop_front();
  return events;
}

// One frame after another. Without a turn in time nothing was sent; beyond that, a failure is the
// end of the connection.
absl::Status Connection::Send(std::unique_lock<std::mutex>& lock, const std::vector<uint8_t>& frame,
                              Deadline deadline) {
  const bool turn = sent_.wait_until(lock, deadline.time(), [this] { return !sending_ || !broken_.ok(); });
  if (!broken_.ok()) return broken_;
  if (!turn) return absl::DeadlineExceededError(absl::StrCat("the daemon at ", path_, " takes no requests"));
  sending_ = true;
  SendInTurn(lock, frame, deadline);
  while (!unsent_.empty() && broken_.ok()) {
    const std::vector<uint8_t> unanswered = std::move(unsent_.front());
    unsent_.pop_front();
    SendInTurn(lock, unanswered, deadline);
  }
  sending_ = false;
  sent_.notify_one();
  return broken_;
}

void Connection::SendUnanswered(std::unique_lock<std::mutex>& lock, std::vector<uint8_t> frame) {
  if (sending_) {
    unsent_.push_back(std::move(frame));
  } else {
    Send(lock, frame, CallDeadline()).IgnoreError();
  }
}

void Connection::SendInTurn(std::unique_lock<std::mutex>& lock, const std::vector<uint8_t>& frame, Deadline deadline) {
  lock.unlock();
  const absl::Status sent = socket_.Send(frame, deadline.remaining());
  lock.lock();
  if (!sent.ok()) Break(sent);
}

// Makes some progress: waits while another thread reads, else reads one frame for whomever it is.
void Connection::WaitOrRead(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  if (reading_) {
    changed_.wait_until(lock, deadline.time());
    return;
  }
  reading_ = true;
  lock.unlock();
  absl::StatusOr<os::Frame> frame = socket_.Receive(deadline.remaining());
  lock.lock();
  reading_ = false;
  if (frame.ok()) {
    Dispatch(lock, std::move(frame->body));
  } else if (!absl::IsDeadlineExceeded(frame.status())) {
    Break(frame.status());
  }
  changed_.notify_all();
}

void Connection::Dispatch(std::unique_lock<std::mutex>& lock, std::vector<uint8_t> frame) {
  const absl::StatusOr<Header> header = DecodeHeader(frame);
  if (!header.ok()) return Break(header.status());
  if (header->version != kVersion) return Break(absl::InternalError("it changed its protocol version"));

  const auto late = abandoned_.find(header->request_id);
  if (late == abandoned_.end()) return Deliver(*header, std::move(frame));
  const LateFrame handle = std::move(late->second.handle);
  const bool wanted = handle && header->kind == late->second.reply_kind && header->status == 0;
  abandoned_.erase(late);
  if (!wanted) return;
  lock.unlock();
  handle(frame);
  lock.lock();
}

void Connection::Deliver(const Header& header, std::vector<uint8_t> frame) {
  if (header.kind == EventsNotification::kKind) {
    absl::StatusOr<EventsNotification> events = DecodeBody<EventsNotification>(frame);
    if (!events.ok()) return Break(events.status());
    events_.push_back(*std::move(events));
    return;
  }
  const auto it = waiting_.find(header.request_id);
  if (it == waiting_.end()) return Break(absl::InternalError("it answered what nobody asked"));
  Waiter& waiter = *it->second;
  if (waiter.reply_kind != header.kind) return Break(absl::InternalError("it answered another question"));
  const absl::Status status = StatusOf(header, frame);
  if (status.ok()) {
    waiter.frame = std::move(frame);
  } else {
    waiter.frame = status;
  }
  waiter.answered = true;
  waiting_.erase(it);
}

// The first reason stays. Whoever reads or sends comes back at once.
void Connection::Break(const absl::Status& why) {
  if (!broken_.ok()) return;
  broken_ = Explain(why);
  socket_.Shutdown();
  changed_.notify_all();
  sent_.notify_all();
}

absl::Status Connection::Explain(const absl::Status& why) const {
  return absl::UnavailableError(
      absl::StrCat("the connection to the daemon at ", path_, " is lost: ", why.message(), "; connect again"));
}

absl::Status Connection::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (broken_.ok() && socket_.ended()) return Explain(absl::UnavailableError("the other side ended"));
  return broken_;
}

absl::StatusOr<absl::Span<const uint8_t>> Connection::ReadableMemory(const Location& location) const {
  if (absl::Status s = CheckLocation(location, readable_.size()); !s.ok()) return s;
  return absl::Span<const uint8_t>(readable_.data() + location.offset, location.data_size + location.metadata_size);
}

absl::StatusOr<absl::Span<uint8_t>> Connection::WritableMemory(const Location& location) const {
  if (absl::Status s = CheckLocation(location, writable_.size()); !s.ok()) return s;
  return absl::Span<uint8_t>(writable_.data() + location.offset, location.data_size + location.metadata_size);
}

absl::Status Connection::CheckLocation(const Location& location, uint64_t size) const {
  const bool inside = location.offset <= size && location.data_size <= size - location.offset &&
                      location.metadata_size <= size - location.offset - location.data_size;
  if (inside) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the daemon at ", path_, " named memory outside of its arena"));
}

}  // namespace tokamak::client
