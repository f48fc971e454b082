// Subscriptions listens to channels over a connection of its own, and subscribes again after that
// was lost.
//
// `ask` runs for each message on a channel, and whenever a subscription has begun (again), as
// earlier messages were missed. A server that does not answer a PING is left.
// Law: at most one command for a channel is under way, so that its reply is known by its channel.
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

  // `anchor`: a permanent channel, whose subscriptions do not run `ask`. `loop` and what `connect`
  // needs must outlive it.
  Subscriptions(base::EventLoop& loop, const MakeConnection& connect, const std::string& anchor,
                std::function<void(const std::string& channel)> ask);

  void Add(const std::string& channel);
  void Remove(const std::string& channel);

  // Counts channels not at rest too.
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
