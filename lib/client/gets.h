// Gets are the gets that a program has under way at once, without a thread for each.
//
//   Gets gets(client);
//   for (const ObjectId& id : ids) gets.Begin(id, base::Seconds(5));
//   while (gets.pending() > 0) {
//     absl::StatusOr<Gets::Answer> next = gets.Next(base::Seconds(10));
//     if (next.ok() && next->buffer.ok()) Use(next->id, next->buffer->data());
//   }
//
// What was begun together leaves in one write, and what came together is read in one: so begin all
// that can be begun before Next. Answers come in the order in which the objects do. Next with a
// time-out of zero polls; Cancel ends one get, and dropping this all that are left, here and at the
// daemon: what a cancelled get brings after all is given back.
//
// Bound: Connection::kMaxPendingGets of one client, all its Gets together.
// Thread rule: one thread at a time; any number of Gets of one client, each on a thread of its own.
// It may outlive the Client.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/client/buffer.h"
#include "lib/client/client.h"
#include "lib/client/connection.h"
#include "lib/client/deadline.h"
#include "lib/client/protocol.h"

namespace tokamak::client {

class Gets final {
 public:
  // How one get ended: with the object, or why not, as Client::Get would have.
  struct Answer {
    uint64_t number = 0;
    base::ObjectId id;
    absl::StatusOr<Buffer> buffer;
  };

  explicit Gets(const Client& client);
  ~Gets();
  Gets(const Gets&) = delete;
  Gets& operator=(const Gets&) = delete;

  // Begins a get, which leaves with the next Send, Next or Cancel; `timeout` counts from then on.
  // Returns its number, which no other get of this client has. kResourceExhausted: too many are
  // under way. kUnavailable: the connection is gone.
  absl::StatusOr<uint64_t> Begin(const base::ObjectId& id, base::Duration timeout, Protocol protocol = Protocol::kAuto);

  // Sends what was begun. May wait as long as a call where the daemon is busy. kDeadlineExceeded:
  // nothing was sent; it is tried again with the next.
  absl::Status Send();

  // The next get that has ended; sends what was begun, and waits up to `timeout`, zero for not at
  // all: kDeadlineExceeded. What the daemon did not take in that time, or in that of a call, is
  // sent with the next. kFailedPrecondition: none is pending. Where the connection is lost, each
  // that is pending ends with that.
  absl::StatusOr<Answer> Next(base::Duration timeout);

  // How many Next returns before it reads on: what came together.
  size_t ended() const { return ended_.size(); }

  // The get will not come out of Next. Does nothing where it has. Where the daemon takes nothing
  // now, it is told with the next Send or Next; where it takes a part, the rest is waited for, as
  // in a call.
  void Cancel(uint64_t number);

  // Those that were begun, and neither came out of Next nor were cancelled.
  size_t pending() const { return pending_.size() + ended_.size(); }

 private:
  using Bytes = Connection::Bytes;

  struct Get {
    base::ObjectId id;
    base::Duration timeout;
    Deadline deadline;  // of the daemon's answer; far away until it is sent
  };
  using Pending = std::map<uint64_t, Get>;

  absl::Status SendUntil(Deadline deadline);
  bool GiveUp(Pending::iterator get);
  void End(Pending::iterator get, absl::StatusOr<Buffer> buffer);
  absl::Status ReadUntil(Deadline deadline);
  void Take(const Connection::Answer& answer);
  void EndAll(const absl::Status& why);
  void EndOverdue();

  const std::shared_ptr<Connection> connection_;
  Connection::Inbox inbox_;  // the connection's, while anything is pending
  Pending pending_;          // by number, which is the request's id
  std::deque<Answer> ended_;
  std::vector<Bytes> unsent_;
  std::vector<uint64_t> unsent_gets_;      // whose frames are among unsent_
  Deadline earliest_ = Deadline::Never();  // no get's deadline is before it
};

}  // namespace tokamak::client
