// Connection is one client's line to its daemon: requests out, each answer to the thread that waits
// for it, and the arena.
//
// There is no thread of its own. Of the threads that wait, one reads for all; when it has its
// answer, another takes over. A reply that nobody waits for any more may still have pinned objects
// here: what to give back is kept with its request.
// Thread rule: any thread, any number at once. Buffers keep it alive by shared ownership.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/client/deadline.h"
#include "lib/client/frame.h"
#include "lib/client/messages.h"
#include "lib/client/protocol.h"
#include "lib/os/shared_memory.h"
#include "lib/os/unix_socket.h"

namespace tokamak::client {

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  // Calls that were given up but not answered yet. Beyond this many, calls fail until the daemon
  // answers.
  static constexpr size_t kMaxAbandoned = 1024;

  // Connects, says Hello, and maps the arena. kUnavailable: no daemon there. kFailedPrecondition:
  // it speaks another version.
  static absl::StatusOr<std::shared_ptr<Connection>> Open(const std::string& socket_path, const HelloRequest& hello,
                                                          base::Duration call_timeout);

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends a request and waits for its reply. The daemon's error is the call's. kDeadlineExceeded:
  // it may still be carried out; `late` is run on a reply that comes after all. kUnavailable: the
  // connection is gone, for good.
  template <typename R>
  absl::StatusOr<typename R::Reply> Call(const R& request, Deadline deadline,
                                         std::function<void(const typename R::Reply&)> late = nullptr) {
    LateFrame late_frame;
    if (late) {
      late_frame = [late = std::move(late)](absl::Span<const uint8_t> frame) {
        const auto reply = DecodeBody<typename R::Reply>(frame);
        if (reply.ok()) late(*reply);
      };
    }
    const absl::StatusOr<std::vector<uint8_t>> frame = Exchange(
        R::Reply::kKind, [&](uint64_t id) { return Encode(id, request); }, deadline, std::move(late_frame));
    if (!frame.ok()) return frame.status();
    return Checked(DecodeBody<typename R::Reply>(*frame));
  }

  // A call that seals or aborts the object that it names. If it cannot be sent, the daemon is told
  // to abort the object.
  template <typename R>
  absl::Status Finish(const R& request) {
    AbortRequest abort;
    abort.id = request.id;
    const absl::StatusOr<std::vector<uint8_t>> frame = Exchange(
        R::Reply::kKind, [&](uint64_t id) { return Encode(id, request); }, CallDeadline(), /*late=*/nullptr,
        /*otherwise=*/Encode(0, abort));
    if (!frame.ok()) return frame.status();
    return Checked(DecodeBody<typename R::Reply>(*frame)).status();
  }

  // Sends a request that is not answered, before any that comes later. Where another thread is
  // sending, that one sends it. May wait as long as a call; when even that is not enough the
  // connection is given up, and the daemon takes everything back. Failures are not told: the next
  // call will.
  template <typename R>
  void Tell(const R& request) {
    std::unique_lock<std::mutex> lock(mutex_);
    SendUnanswered(lock, Encode(0, request));
  }

  // Waits for a notification. They are kept from when the daemon sends them, so for a connection
  // that subscribed.
  absl::StatusOr<EventsNotification> NextEvents(Deadline deadline);

  // For calls that take no time-out of their own.
  Deadline CallDeadline() const { return Deadline::After(call_timeout_); }

  const WelcomeReply& welcome() const { return welcome_; }

  // OK until the connection is gone, which the socket knows before a call does.
  absl::Status status() const;

  // An object's bytes, data first. kInternal: the daemon named memory outside of the arena.
  absl::StatusOr<absl::Span<const uint8_t>> ReadableMemory(const Location& location) const;
  absl::StatusOr<absl::Span<uint8_t>> WritableMemory(const Location& location) const;

 private:
  using LateFrame = std::function<void(absl::Span<const uint8_t> frame)>;
  using MakeFrame = std::function<std::vector<uint8_t>(uint64_t request_id)>;

  // A call that waits.
  struct Waiter {
    uint16_t reply_kind = 0;
    bool answered = false;
    absl::StatusOr<std::vector<uint8_t>> frame{absl::UnknownError("no answer")};
  };
  struct Late {
    uint16_t reply_kind = 0;
    LateFrame handle;
  };

  Connection(std::string path, base::Duration call_timeout, os::UnixSocket socket)
      : path_(std::move(path)), call_timeout_(call_timeout), socket_(std::move(socket)) {}

  absl::Status SayHello(const HelloRequest& hello);
  absl::Status MapArena(Access access, absl::Span<const os::FileDescriptor> descriptors);
  absl::StatusOr<std::vector<uint8_t>> Exchange(uint16_t reply_kind, const MakeFrame& make, Deadline deadline,
                                                LateFrame late, std::vector<uint8_t> otherwise = {});
  absl::Status Send(std::unique_lock<std::mutex>& lock, const std::vector<uint8_t>& frame, Deadline deadline);
  void SendUnanswered(std::unique_lock<std::mutex>& lock, std::vector<uint8_t> frame);
  void SendInTurn(std::unique_lock<std::mutex>& lock, const std::vector<uint8_t>& frame, Deadline deadline);
  void WaitOrRead(std::unique_lock<std::mutex>& lock, Deadline deadline);
  void Dispatch(std::unique_lock<std::mutex>& lock, std::vector<uint8_t> frame);
  void Deliver(const Header& header, std::vector<uint8_t> frame);
  void Break(const absl::Status& why);
  absl::Status Explain(const absl::Status& why) const;
  absl::Status CheckLocation(const Location& location, uint64_t size) const;

  template <typename M>
  absl::StatusOr<M> Checked(absl::StatusOr<M> message) {
    if (!message.ok()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      Break(message.status());
    }
    return message;
  }

  const std::string path_;
  const base::Duration call_timeout_;
  os::UnixSocket socket_;
  WelcomeReply welcome_;
  os::MemoryMapping readable_;
  os::MemoryMapping writable_;  // empty for a client that only reads

  mutable std::mutex mutex_;         // for everything below
  std::condition_variable changed_;  // an answer came, or somebody else may read
  std::condition_variable sent_;     // somebody else may send
  absl::Status broken_;              // why the connection is gone; OK while it is not
  bool reading_ = false;
  bool sending_ = false;
  std::deque<std::vector<uint8_t>> unsent_;  // what is not answered: whoever is sending sends it. Empty while nobody is
  uint64_t next_id_ = 1;
  std::map<uint64_t, Waiter*> waiting_;
  std::map<uint64_t, Late> abandoned_;
  std::deque<EventsNotification> events_;
};

}  // namespace tokamak::client
