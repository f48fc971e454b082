// DaemonConnection is a client's connection to its daemon, until either is gone: requests out, each
// answer into the inbox of its waiter, and the arena. Once lost, it stays lost; line.h makes the
// next.
//
// It has no thread of its own. One of the waiting threads reads for all; when it has its answer,
// another takes over. The reply of an abandoned request may still pin objects here, so the request
// is kept with what gives them back. A thread that is cancelled (pthread_cancel(3)) while it waits,
// and only then, gives its call up within kLookForCancellation, like an interrupted one.
//
// Thread rule: any thread, any number at once. Buffers share its ownership. A child after fork()
// may only drop it, and must not touch its locks, which another thread of the parent may have held.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/mutex.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/client/deadline.h"
#include "lib/client/protocol/frame.h"
#include "lib/client/protocol/messages.h"
#include "lib/client/protocol/protocol.h"
#include "lib/os/process/forks.h"
#include "lib/os/shared_memory.h"
#include "lib/os/sockets/unix_socket.h"
#include "tokamak/interrupt.h"

namespace tokamak::client {

class DaemonConnection final : public std::enable_shared_from_this<DaemonConnection> {
 public:
  // The most abandoned calls without an answer. Beyond that, calls fail until the daemon answers.
  static constexpr size_t kMaxAbandoned = 1024;

  // The most gets that no thread waits for (gets.h), among them cancelled ones that the daemon has
  // not answered yet. Further ones are refused.
  static constexpr size_t kMaxPendingGets = 2048;

  // Interval at which a waiting thread looks whether it was cancelled, which no event reports. It
  // is a little longer than a system call of the socket waits (UnixSocket), so that it adds none.
  static constexpr base::Duration kLookForCancellation = base::Milliseconds(1100);

  using Bytes = std::vector<uint8_t>;

  struct Options {
    HelloRequest hello;
    base::Duration call_timeout;
    base::Duration spin;
    bool reconnects = false;  // the next call on its line connects anew: a hint for error texts
    uint64_t first_id = 1;    // of a request
  };

  // An answer for a waiter: the whole frame, or the daemon's error. An inbox holds them in the
  // order of arrival, and belongs to the connection until all that it expects was answered or given
  // up.
  struct Answer {
    uint64_t request_id = 0;
    absl::StatusOr<Bytes> frame;
  };
  struct Inbox {
    absl::InlinedVector<Answer, 1> answers;
    const Interrupt* came = nullptr;  // fired with each answer, unless null: RingFor
  };

  // Makes the frame to send to the daemon when the reply to an abandoned request comes; may be
  // empty.
  using Late = std::function<Bytes(absl::Span<const uint8_t> reply)>;

  // Connects, sends Hello, and maps the arena. kUnavailable: no daemon is there, or none that
  // answers by `deadline`. kFailedPrecondition: it has another version. kCancelled: `interrupt`, if
  // given, was fired.
  static absl::StatusOr<std::shared_ptr<DaemonConnection>> Open(const std::string& socket_path, const Options& options,
                                                                Deadline deadline,
                                                                const Interrupt* interrupt = nullptr);

  DaemonConnection(const DaemonConnection&) = delete;
  DaemonConnection& operator=(const DaemonConnection&) = delete;
  ~DaemonConnection() = default;

  // Sends a request and waits for its reply, or for the daemon's error. kDeadlineExceeded: it may
  // still be carried out; `late` handles a reply that comes after all. kCancelled: the same,
  // because `interrupt` was fired; it is cancelled at the daemon if possible. kUnavailable: the
  // connection is gone, for good; `unsent` is set if the request was not sent, and may be made on
  // another one.
  template <typename R>
  absl::StatusOr<typename R::Reply> Call(const R& request, Deadline deadline, const Late& late = nullptr,
                                         const Interrupt* interrupt = nullptr, bool* unsent = nullptr) {
    const absl::StatusOr<Bytes> frame = Exchange(
        R::Reply::kKind, [&](uint64_t id) { return Encode(id, request); }, deadline, late, interrupt, unsent);
    if (!frame.ok()) return frame.status();
    return Read<typename R::Reply>(*frame);
  }

  // Seals or aborts the object that `request` names; if it cannot be sent, the daemon is asked to
  // abort the object. `unsent`: as in Call.
  template <typename R>
  absl::Status Finish(const R& request, bool* unsent = nullptr) {
    AbortRequest abort;
    abort.id = request.id;
    const absl::StatusOr<Bytes> frame = Exchange(
        R::Reply::kKind, [&](uint64_t id) { return Encode(id, request); }, CallDeadline(), /*late=*/nullptr,
        /*interrupt=*/nullptr, unsent, /*otherwise=*/Encode(0, abort));
    if (!frame.ok()) return frame.status();
    return Read<typename R::Reply>(*frame).status();
  }

  // Sends requests that have no answers, before any later request. If another thread is sending,
  // that one sends them. May wait as long as a call; after that the connection is given up, and the
  // daemon takes everything back. Failures are not reported; the next call fails.
  void TellAll(std::vector<Bytes> frames);
  template <typename R>
  void Tell(const R& request) {
    std::vector<Bytes> frames;
    frames.push_back(Encode(0, request));
    TellAll(std::move(frames));
  }

  // ---- many at once; each request is answered, or given up

  // Expects the reply to a get that will be sent with the returned id. kResourceExhausted:
  // kMaxPendingGets are under way.
  absl::StatusOr<uint64_t> ExpectGet(Inbox& inbox);

  // Sends requests together. kDeadlineExceeded: none was sent, as the daemon took none by
  // `deadline`; with a passed deadline it does not wait. A frame that was partly taken has the time
  // of a call. Other errors: as Call.
  absl::Status Send(absl::Span<const Bytes> frames, Deadline deadline);

  // Returns all answers that came for `inbox`, waiting for the first until `deadline`; then the
  // result is empty. kCancelled: `interrupt` was fired before.
  absl::StatusOr<absl::InlinedVector<Answer, 1>> Await(Inbox& inbox, Deadline deadline,
                                                       const Interrupt* interrupt = nullptr);

  // Fires `came` with each further answer for `inbox`, whichever thread reads it. It must live as
  // long as the inbox.
  void RingFor(Inbox& inbox, const Interrupt& came);

  // Gives up waiting for a get. Returns false if it has been answered.
  bool GiveUpGet(uint64_t request_id, Late late);

  // Decodes a reply's body. A malformed one ends the connection.
  template <typename M>
  absl::StatusOr<M> Read(absl::Span<const uint8_t> frame) {
    absl::StatusOr<M> message = DecodeBody<M>(frame);
    if (!message.ok() && !forked()) {
      const base::MutexLock lock(mutex_);
      Break(message.status());
    }
    return message;
  }

  // Waits for a notification. Only for a connection that subscribed: notifications are kept from
  // the first one on.
  absl::StatusOr<EventsNotification> NextEvents(Deadline deadline, const Interrupt* interrupt = nullptr);

  // For calls without a timeout of their own.
  Deadline CallDeadline() const { return Deadline::After(options_.call_timeout); }
  // For calls that the daemon ends after `timeout`.
  Deadline AnswerDeadline(base::Duration timeout) const { return Deadline::OfAnswer(timeout, options_.call_timeout); }

  const WelcomeReply& welcome() const { return welcome_; }  // the answer to Hello

  // Returns an id beyond those of all requests so far. Not for a child of fork() on its parent's
  // connection.
  uint64_t next_id() const;

  // Readable when something came, for any thread, or the connection is gone.
  int descriptor() const { return socket_.descriptor(); }

  // OK until the connection is gone, which the socket shows before a call does.
  absl::Status status() const;

  // True in a child, by fork(), of the process that connected: the connection is its parent's. Then
  // calls are refused, and drops are not reported to the daemon.
  bool forked() const { return os::ForkCount() != forks_; }

  static absl::Status WrongCount();

  static absl::Status Interrupted();

  // Looks whether this thread was cancelled; returns when to look again, at most `deadline`.
  static Deadline NextLook(Deadline deadline);

  // Returns an object's bytes, data first. kInternal: the daemon named memory outside of the arena.
  absl::StatusOr<absl::Span<const uint8_t>> ReadableMemory(const Location& location) const;
  absl::StatusOr<absl::Span<uint8_t>> WritableMemory(const Location& location) const;

 private:
  using MakeFrame = std::function<Bytes(uint64_t request_id)>;

  struct Expected {
    uint16_t kind = 0;
    bool of_gets = false;    // it counts among kMaxPendingGets
    Inbox* inbox = nullptr;  // null: abandoned
    Late late;               // once abandoned
  };

  DaemonConnection(std::string path, Options options, os::UnixSocket socket)
      : path_(std::move(path)), options_(std::move(options)), socket_(std::move(socket)), next_id_(options_.first_id) {}

  // No lock: no other thread uses the connection yet.
  absl::Status SayHello(Deadline deadline, const Interrupt* interrupt) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  absl::StatusOr<os::Frame> AwaitWelcome(Deadline deadline, const Interrupt* interrupt);
  absl::Status MapArena(absl::Span<const os::FileDescriptor> descriptors);
  // The shared pointer's deleter.
  static void Drop(DaemonConnection* connection);
  absl::StatusOr<Bytes> Exchange(uint16_t reply_kind, const MakeFrame& make, Deadline deadline, const Late& late,
                                 const Interrupt* interrupt, bool* unsent, Bytes otherwise = {});
  void Forget(std::map<uint64_t, Expected>::iterator expected) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUp(std::map<uint64_t, Expected>::iterator expected, Late late, bool tells)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropAnswer(const Answer& answer, const Late& late) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SendInTurn(absl::Span<const Bytes> frames, Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status BeginTurn(Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status EndTurn(Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakesNothing() const;
  void SendUnanswered(std::vector<Bytes> frames) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(absl::Span<const Bytes> frames, Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WaitFor(const Inbox& inbox, Deadline deadline, const Interrupt* interrupt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WaitAWhile(Deadline deadline, const Interrupt* interrupt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WaitOrRead(Deadline deadline, const Interrupt* interrupt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WaitOrReadOnce(Deadline deadline, const Interrupt* interrupt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WaitForReader(Deadline deadline, const Interrupt& interrupt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Dispatch(Bytes frame, std::vector<Bytes>& told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Break(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Explain(const absl::Status& why) const;
  absl::Status Unanswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckLocation(const Location& location, uint64_t size) const;
  absl::Status RefuseForked() const;

  const std::string path_;
  const Options options_;
  const uint64_t forks_ = os::ForkCount();
  os::UnixSocket socket_;
  WelcomeReply welcome_;
  os::MemoryMapping readable_;
  os::MemoryMapping writable_;  // empty for a client that only reads

  mutable base::Mutex mutex_;
  base::CondVar changed_;  // an answer came, or another thread may read
  base::CondVar sent_;     // another thread may send
  // Interrupts of the threads that can be interrupted; fired with changed_.
  std::vector<const Interrupt*> sleepers_ ABSL_GUARDED_BY(mutex_);
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);  // why it is gone; OK while it is there
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  // Requests without answers, for the sending thread to send. Empty while no thread sends.
  std::vector<Bytes> unsent_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Expected> expected_ ABSL_GUARDED_BY(mutex_);
  size_t abandoned_ ABSL_GUARDED_BY(mutex_) = 0;     // of expected_
  size_t pending_gets_ ABSL_GUARDED_BY(mutex_) = 0;  // of expected_
  std::deque<EventsNotification> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::client
