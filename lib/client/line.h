// Line is a client's line to its daemon for as long as the client lives: the connection that its
// calls use, and another one when that is lost.
//
// On a line that reconnects, the first call after a loss connects anew: after a restart of the
// daemon, and in a child of fork(), to which its parent's connection is lost. One thread connects;
// calls meanwhile wait for its result, each until its own deadline. There is at most one attempt in
// kReconnectPause; calls in between end with the last one's result. A call that was sent and not
// answered is not repeated, as it may have been carried out. Buffers keep the old connection, and
// stay readable.
//
// Thread rule: any thread, any number at once. The state that threads share (Side) belongs to one
// process: a child of fork() makes its own with its first call, and touches no lock of its
// parent's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/time.h"
#include "lib/client/daemon_connection.h"
#include "lib/client/deadline.h"
#include "tokamak/interrupt.h"

namespace tokamak::client {

class Line final {
 public:
  // The least time between attempts to connect, so that an absent daemon is not hammered.
  static constexpr base::Duration kReconnectPause = base::Milliseconds(100);

  // Connects. Errors are those of DaemonConnection::Open.
  static absl::StatusOr<std::shared_ptr<Line>> Open(std::string socket_path, DaemonConnection::Options options);

  // For Open.
  Line(std::string path, DaemonConnection::Options options, std::shared_ptr<DaemonConnection> connection);
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // As DaemonConnection::Call, on the current connection. If that was lost before the request was
  // sent, a line that reconnects sends it on the next one. `by` is set to the connection used.
  template <typename R>
  absl::StatusOr<typename R::Reply> Call(const R& request, Deadline deadline,
                                         const DaemonConnection::Late& late = nullptr,
                                         const Interrupt* interrupt = nullptr,
                                         std::shared_ptr<DaemonConnection>* by = nullptr) {
    while (true) {
      const std::shared_ptr<const Held> held = Hold();
      bool unsent = false;
      auto reply = held->connection->Call(request, deadline, late, interrupt, &unsent);
      if (by != nullptr) *by = held->connection;
      if (!unsent || !reconnects()) return reply;
      if (absl::Status s = Renew(*held->connection, deadline, interrupt); !s.ok()) return s;
    }
  }

  // Returns the current connection, even if it is lost.
  std::shared_ptr<DaemonConnection> connection() { return Hold()->connection; }

  // Waits until the line has another connection than `lost`. kUnavailable: no daemon, or no attempt
  // is due yet. kDeadlineExceeded, kCancelled: as in Call.
  absl::Status Renew(DaemonConnection& lost, Deadline deadline, const Interrupt* interrupt = nullptr);

  // Deadlines of calls without a timeout of their own, and of calls that the daemon ends after
  // `timeout`.
  Deadline CallDeadline() const { return Deadline::After(options_.call_timeout); }
  Deadline AnswerDeadline(base::Duration timeout) const { return Deadline::OfAnswer(timeout, options_.call_timeout); }

  const std::string& path() const { return path_; }
  const DaemonConnection::Options& options() const { return options_; }
  bool reconnects() const { return options_.reconnects; }

  // Returns the node's name by the current connection; the text lives as long as the line.
  const std::string& node();

 private:
  // A connection, kept for the calls that use it. Buffers and others have references of their own,
  // so a child of fork() can drop it though threads of its parent were in calls.
  struct Held {
    std::shared_ptr<DaemonConnection> connection;
  };
  struct Side;

  std::shared_ptr<const Held> Hold();

  Side& OfThisProcess();

  const std::string path_;
  const DaemonConnection::Options options_;
  std::atomic<Side*> side_;      // this process's, or still its parent's
  std::atomic<uint64_t> taker_;  // ForkCount of the process that took it over, or is about to
};

}  // namespace tokamak::client
