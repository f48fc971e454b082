#include "lib/directory/redis/subscriptions.h"

#include <utility>

namespace tokamak::directory::redis {

Subscriptions::Subscriptions(base::EventLoop& loop, const MakeConnection& connect, const std::string& anchor,
                             std::function<void(const std::string&)> ask)
    : loop_(loop), anchor_(anchor), ask_(std::move(ask)), connection_(connect([this] { Began(); })) {
  connection_->OnHeard([this](const Reply& reply) { Heard(reply); });
  connection_->Start();
}

void Subscriptions::Began() {
  connection_->Subscribe({"SUBSCRIBE", anchor_});
  pong_deadline_.Cancel();
  next_ping_ = loop_.RunAfter(kPingEvery, [this] { Ping(); });
  for (auto it = channels_.begin(); it != channels_.end();) {
    Channel& channel = it->second;
    if (!channel.wanted) {
      it = channels_.erase(it);
      continue;
    }
    channel.state = State::kWanted;
    TakeNextStep(it->first, channel);
    ++it;
  }
}

void Subscriptions::Add(const std::string& name) {
  Channel& channel = channels_[name];
  channel.wanted = true;
  TakeNextStep(name, channel);
}

void Subscriptions::Remove(const std::string& name) {
  const auto found = channels_.find(name);
  if (found == channels_.end()) return;
  found->second.wanted = false;
  if (found->second.state == State::kWanted) {
    channels_.erase(found);
  } else {
    TakeNextStep(name, found->second);
  }
}

void Subscriptions::TakeNextStep(const std::string& name, Channel& channel) {
  if (channel.wanted && channel.state == State::kWanted) {
    if (Send("SUBSCRIBE", name, channel)) channel.state = State::kSubscribing;
  } else if (!channel.wanted && channel.state == State::kSubscribed) {
    channel.state = State::kUnsubscribing;
    Send("UNSUBSCRIBE", name, channel);
  }
}

bool Subscriptions::Send(const std::string& verb, const std::string& name, Channel& channel) {
  channel.deadline =
      loop_.RunAfter(ServerConnection::kMaxSilence, [this] { connection_->Break("it does not answer"); });
  return connection_->Subscribe({verb, name});
}

void Subscriptions::Ping() {
  next_ping_ = loop_.RunAfter(kPingEvery, [this] { Ping(); });
  if (!connection_->ready()) return;
  pong_deadline_ = loop_.RunAfter(ServerConnection::kMaxSilence, [this] { connection_->Break("it does not answer"); });
  connection_->Subscribe({"PING"});
}

// ["subscribe" | "unsubscribe" | "message", channel, number or text], ["pong", text]
void Subscriptions::Heard(const Reply& reply) {
  pong_deadline_.Cancel();  // any message proves that the server lives
  if (reply.elements.size() < 3) return;
  const std::string& what = reply.elements[0].text;
  const std::string name = reply.elements[1].text;
  if (name == anchor_ && what == "message") return ask_(name);
  const auto found = channels_.find(name);
  if (found == channels_.end()) return;
  Channel& channel = found->second;
  bool ask = what == "message";
  if (what == "subscribe" && channel.state == State::kSubscribing) {
    channel.state = State::kSubscribed;
    channel.deadline.Cancel();
    ask = true;
    TakeNextStep(name, channel);
  } else if (what == "unsubscribe" && channel.state == State::kUnsubscribing) {
    if (!channel.wanted) {
      channels_.erase(found);
      return;
    }
    channel.state = State::kWanted;
    channel.deadline.Cancel();
    TakeNextStep(name, channel);
  }  // may change the channels
  if (ask && channel.wanted) ask_(name);
}

}  // namespace tokamak::directory::redis
