// Gets are the gets that a program has under way at once, without a thread for each.
//
//   tokamak::Gets gets(client);
//   for (const tokamak::ObjectId& id : ids) {
//     if (auto begun = gets.Begin(id, std::chrono::seconds(5)); !begun.ok()) return begun.status();
//   }
//   while (gets.pending() > 0) {
//     tokamak::Result<tokamak::Gets::Answer> next = gets.Next(std::chrono::seconds(10));
//     if (next.ok() && next->buffer.ok()) Use(next->id, next->buffer->data());
//   }
//
// Gets that were begun together leave in one write, and answers that came together are read in one:
// so begin all that can be begun before Next. Answers come in the order in which the objects do.
// Next with a time-out of zero polls; Cancel ends one get, and dropping this all that are left,
// here and at the daemon: what a cancelled get brings after all is given back.
//
// Bound: kMaxPending of one client, all its Gets together.
// Thread rule: one thread at a time; any number of Gets of one client, each on a thread of its own.
// It may outlive the Client. Fork rule: client.h's; a child makes gets of its own, also of a client
// that reconnects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tokamak/buffer.h"
#include "tokamak/client.h"
#include "tokamak/interrupt.h"
#include "tokamak/object_id.h"
#include "tokamak/status.h"
#include "tokamak/timeout.h"
#include "tokamak/types.h"

namespace tokamak {

class Gets final {
 public:
  static constexpr size_t kMaxPending = 2048;

  // How one get ended: with the object, or why not, as Client::Get would have.
  struct Answer {
    uint64_t number = 0;
    ObjectId id;
    Result<Buffer> buffer;
  };

  explicit Gets(const Client& client);
  Gets(Gets&&) noexcept;
  Gets& operator=(Gets&&) noexcept;
  ~Gets();

  // Begins a get, which leaves with the next Send, Next or Cancel; `timeout` counts from then on.
  // Returns its number, which no other get of this client has. kResourceExhausted: too many are
  // under way. kUnavailable: the connection is gone. If the client reconnects, this connects anew,
  // for which it may wait as long as a call; pending gets end with the old connection.
  Result<uint64_t> Begin(const ObjectId& id, Timeout timeout, const GetOptions& options = {});

  // Sends what was begun. May wait as long as a call where the daemon is busy. kDeadlineExceeded:
  // nothing was sent; it is tried again with the next.
  Status Send();

  // The next get that has ended; sends what was begun, and waits up to `timeout`, zero for not at
  // all: kDeadlineExceeded. Requests that the daemon did not take in that time, or in that of a
  // call, are sent with the next. kFailedPrecondition: none is pending. If the connection is lost,
  // each pending get ends with that. kCancelled: `interrupt` was fired while it waited; all goes
  // on.
  Result<Answer> Next(Timeout timeout, const Interrupt* interrupt = nullptr);

  // For poll, epoll and asyncio: readable while Next may have something without waiting. Then call
  // Next with a time-out of zero until it returns an error; in vain once is normal, as other
  // threads share the connection. A program that only polls calls Send after Begin, and Next now
  // and then, so that a daemon that says nothing ends no get late. It is closed with this. Once the
  // connection is lost it is readable until a get is begun on another: poll while gets are pending.
  // kResourceExhausted: the process has no descriptors left.
  Result<int> descriptor();

  // How many Next returns before it reads on: what came together.
  size_t ended() const;

  // Cancels the get: it will not come out of Next. Does nothing if it has. If the daemon takes
  // nothing now, the cancellation leaves with the next Send or Next; if it takes a part, the rest
  // is waited for, as in a call.
  void Cancel(uint64_t number);

  // Gets that were begun, and neither came out of Next nor were cancelled.
  size_t pending() const;

 private:
  class Impl;
  struct Drop {
    void operator()(Impl* impl) const;
  };
  std::unique_ptr<Impl, Drop> impl_;
};

}  // namespace tokamak
