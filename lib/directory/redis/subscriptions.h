// Subscriptions hears what is published on channels, over a connection of its own, and subscribes
// again when that was lost.
//
// `ask` runs when something was published on a channel, and whenever a subscription has begun
// (again): what was published before then was missed, so it is time to ask.
// Law: one command for a channel is under way at a time; and the connection never has no
// subscription at all (hiredis 0.14 confuses both).
// Thread rule: its loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/directory/redis/connection.h"

namespace tokamak::directory::redis {

class Subscriptions final {
 public:
  // `anchor` is a channel that is subscribed to for good: `ask` hears of messages on it, but not of
  // its subscriptions. `loop` must outlive it.
  static absl::StatusOr<std::unique_ptr<Subscriptions>> Open(os::EpollLoop& loop, const ConnectionOptions& options,
                                                             const std::string& anchor,
                                                             std::function<void(const std::string& channel)> ask);

  void Add(const std::string& channel);
  void Remove(const std::string& channel);

  // Channels that are not yet, or no longer, at rest count too.
  size_t channels() const { return channels_.size(); }

 private:
  enum class State : uint8_t { kWanted, kSubscribing, kSubscribed, kUnsubscribing };
  struct Channel {
    State state = State::kWanted;
    bool wanted = true;
    base::Timer deadline;  // kSubscribing, kUnsubscribing
  };

  Subscriptions(os::EpollLoop& loop, const std::string& anchor, std::function<void(const std::string&)> ask)
      : loop_(loop), anchor_(anchor), ask_(std::move(ask)) {}
  void Began();
  void Heard(const Reply& reply);
  void TakeNextStep(const std::string& name, Channel& channel);
  bool Send(const std::string& verb, const std::string& name, Channel& channel);

  os::EpollLoop& loop_;
  const std::string anchor_;
  const std::function<void(const std::string&)> ask_;
  std::map<std::string, Channel> channels_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace tokamak::directory::redis
