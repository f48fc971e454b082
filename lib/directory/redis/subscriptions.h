// Subscriptions listens to channels over a connection of its own, and subscribes again after that
// was lost.
//
// `ask` runs for each message on a channel, and whenever a subscription has begun (again): earlier
// messages were missed, so it is time to ask. A server that does not answer a PING is left: an idle
// connection to a dead server looks like one without messages.
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

  // `anchor` is a permanent channel: `ask` runs for its messages, but not for its subscriptions.
  // `loop` and everything that `connect` needs must outlive it.
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
