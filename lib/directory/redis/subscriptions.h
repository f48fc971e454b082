// Subscriptions hears what is published on channels, over a connection of its own, and subscribes
// again when that was lost.
//
// `ask` runs when something was published on a channel, and whenever a subscription has begun
// (again): what was published before then was missed, so it is time to ask.
// A server that does not answer to a PING is left: an idle connection to one that is gone looks like
// one on which nothing is published.
// Law: one command for a channel is under way at a time, and so its reply is known by its channel.
// Thread rule: its loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/directory/redis/server/server_connection.h"

namespace tokamak::directory::redis {

class Subscriptions final {
 public:
  static constexpr base::Duration kPingEvery = base::Seconds(5);

  // `anchor` is a channel that is subscribed to for good: `ask` hears of messages on it, but not of
  // its subscriptions. `loop` must outlive it, and what `connect` needs.
  Subscriptions(base::EventLoop& loop, const MakeConnection& connect, const std::string& anchor,
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

  void Began();
  void Ping();
  void Heard(const Reply& reply);
  void TakeNextStep(const std::string& name, Channel& channel);
  bool Send(const std::string& verb, const std::string& name, Channel& channel);

  base::EventLoop& loop_;
  const std::string anchor_;
  const std::function<void(const std::string&)> ask_;
  std::map<std::string, Channel> channels_;
  base::Timer next_ping_;
  base::Timer pong_deadline_;
  std::unique_ptr<ServerConnection> connection_;
};

}  // namespace tokamak::directory::redis
