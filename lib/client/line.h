// Line is what a client has to its daemon for as long as it lives: the connection that its calls
// use, and another one when that is lost.
//
// A connection that is lost stays so (connection.h). Of a line that reconnects the next call
// connects anew: after the daemon was restarted, and in a child of fork(), to which its parent's
// connection is lost. One thread connects, and those that call meanwhile wait for what comes of it,
// each by its own deadline. There is one attempt in kReconnectPause at most; calls in between end
// with what the last one said. A call that was sent and not answered is not sent again, as it may
// have been carried out. What the old connection brought keeps that, and so stays readable.
//
// Thread rule: any thread, any number at once. What threads share (Side) is of one process: a child
// of fork() makes its own when it first calls, and looks at no lock of its parent's.
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
  // From one attempt to connect anew to the next: a daemon that is away is not hammered.
  static constexpr base::Duration kReconnectPause = base::Milliseconds(100);

  // Connects, with the errors of DaemonConnection::Open.
  static absl::StatusOr<std::shared_ptr<Line>> Open(std::string socket_path, DaemonConnection::Options options);

  // For Open.
  Line(std::string path, DaemonConnection::Options options, std::shared_ptr<DaemonConnection> connection);
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // As DaemonConnection::Call, on the connection of now. What could not be sent, as that was lost, is
  // sent on the next one where the line reconnects. `by`: which connection it was.
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

  // That of now, which may be lost.
  std::shared_ptr<DaemonConnection> connection() { return Hold()->connection; }

  // Returns when the line has another connection than `lost`, which was found to be so.
  // kUnavailable: there is no daemon, or no attempt is due yet. kDeadlineExceeded, kCancelled: as
  // of a call.
  absl::Status Renew(DaemonConnection& lost, Deadline deadline, const Interrupt* interrupt = nullptr);

  // For calls that take no time-out of their own, and for those that the daemon ends after
  // `timeout`.
  Deadline CallDeadline() const { return Deadline::After(options_.call_timeout); }
  Deadline AnswerDeadline(base::Duration timeout) const { return Deadline::OfAnswer(timeout, options_.call_timeout); }

  const std::string& path() const { return path_; }
  const DaemonConnection::Options& options() const { return options_; }
  bool reconnects() const { return options_.reconnects; }

  // The name of the node that the connection of now is to; the text lives as long as the line.
  const std::string& node();

 private:
  // A connection, kept for the calls that use it. What else keeps it, such as buffers, has
  // references of its own: so a child of fork() can drop it though threads of its parent were in
  // calls.
  struct Held {
    std::shared_ptr<DaemonConnection> connection;
  };
  struct Side;

  std::shared_ptr<const Held> Hold();

  Side& OfThisProcess();

  const std::string path_;
  const DaemonConnection::Options options_;
  std::atomic<Side*> side_;      // this process's, or its parent's still
  std::atomic<uint64_t> taker_;  // the process, in forks, that has taken it over or is about to
};

}  // namespace tokamak::client
