// Subscription hears of one node's objects: what is sealed there, deleted and evicted.
//
//   tokamak::Result<tokamak::Subscription> subscription = client.Subscribe();
//   while (true) {
//     const auto events = subscription->Next(std::chrono::seconds(60));
//     ...
//   }
//
// It has a connection of its own, and may outlive its Client. Dropping it unsubscribes.
// Thread rule: one thread at a time. Fork rule: client.h's.
#pragma once

#include <memory>
#include <utility>

#include "tokamak/interrupt.h"
#include "tokamak/status.h"
#include "tokamak/timeout.h"
#include "tokamak/types.h"

namespace tokamak {

// The library's own.
namespace client {
class DaemonConnection;
}  // namespace client

class Subscription final {
 public:
  Subscription(Subscription&&) = default;
  Subscription& operator=(Subscription&&) = default;

  // Returns the events since the last call, in order, waiting up to `timeout` for the first
  // (kDeadlineExceeded). A subscriber that is too slow loses events: `dropped` is their number,
  // before the ones that it gets. kUnavailable: the connection is lost; subscribe again.
  // kCancelled: `interrupt` was fired while it waited.
  Result<Events> Next(Timeout timeout, const Interrupt* interrupt = nullptr);

  // For poll, epoll and asyncio: readable while Next has something without waiting. Then call Next
  // with a time-out of zero until it returns an error. It is closed with this.
  int descriptor() const;

 private:
  friend class Client;
  explicit Subscription(std::shared_ptr<client::DaemonConnection> connection) : connection_(std::move(connection)) {}

  std::shared_ptr<client::DaemonConnection> connection_;
};

}  // namespace tokamak
