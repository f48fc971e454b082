// ServerConnection is one connection to a Redis server, on our own event loop: hiredis writes its
// commands and reads its replies, a Stream carries the bytes.
//
//   waiting --> finding --> dialing --> greeting --> ready
//      ^ each of them, when it fails; after a random delay that doubles
//
// It connects in the background, again after each loss. Calls fail at once (kUnavailable: the
// server may have acted) when it is lost, and while it waits; those made during an attempt go to
// the server when it is ready. A server that leaves a question unanswered for kMaxSilence counts as
// lost.
// Law: a callback runs once, never inside the call, by its deadline; none runs after the call's
//      handle or the connection was dropped (lib/base/handle.h).
// Law: no call reaches a server before it was judged.
// Bounds: kMaxPending calls, dropped and overdue ones included, and kMaxUnsent bytes
//      (kResourceExhausted); kOwnPending and kOwnUnsent more for the node's own; kMaxReply bytes of
//      a reply.
// Thread rule: its loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/answers.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/random.h"
#include "lib/directory/redis/server/dialer.h"
#include "lib/directory/redis/server/finder.h"
#include "lib/directory/redis/server/reply.h"
#include "lib/directory/redis/server/secret.h"
#include "lib/directory/redis/server/stream.h"
#include "lib/os/epoll_loop.h"

struct redisReader;

namespace tokamak::directory::redis {

struct Credentials {
  std::string user;  // empty: the default one
  Secret password;
};

struct ConnectionOptions {
  Credentials credentials;
  uint32_t database = 0;
  base::Duration connect_deadline = base::Seconds(2);  // for each step on the way
  base::Duration first_retry = base::Milliseconds(20);
  base::Duration max_retry = base::Seconds(1);
};

class ServerConnection final {
 public:
  using Callback = std::function<void(absl::StatusOr<Reply>)>;

  static constexpr size_t kMaxPending = 16384;
  static constexpr size_t kMaxUnsent = 64 << 20;
  static constexpr size_t kOwnPending = 256;
  static constexpr size_t kOwnUnsent = 4 << 20;
  static constexpr size_t kMaxReply = 64 << 20;
  static constexpr int kMaxRedirects = 8;  // of one attempt
  static constexpr base::Duration kMaxSilence = base::Seconds(2);
  // After kMaxSilence, for a process that stood still itself and has replies to read.
  static constexpr base::Duration kLastChance = base::Milliseconds(100);
  // Interval of Finder::IsStillRight.
  static constexpr base::Duration kLookEvery = base::Seconds(1);

  // The arguments must outlive it. `began` runs at the start of each attempt: its calls go first.
  ServerConnection(os::EpollLoop& loop, Dialer& dialer, Finder& finder, base::Random random,
                   const ConnectionOptions& options, std::function<void()> began);
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  // Earlier calls are refused.
  void Start() { Connect(); }

  // Arguments are bytes. An error of the server becomes kUnavailable, with the remedy if known.
  [[nodiscard]] base::Pending Call(const Command& command, base::Duration deadline, Callback done) {
    return Call(command, deadline, /*own=*/false, std::move(done));
  }
  // The same for the node's own life, with room of its own.
  [[nodiscard]] base::Pending CallForNode(const Command& command, base::Duration deadline, Callback done) {
    return Call(command, deadline, /*own=*/true, std::move(done));
  }

  // Sends SUBSCRIBE, UNSUBSCRIBE or PING on a connection that subscribes; `heard` gets replies and
  // messages. Returns false when there is no connection.
  bool Subscribe(const Command& command);
  void OnHeard(std::function<void(const Reply&)> heard) { heard_ = std::move(heard); }

  // Reconnects.
  void Break(const std::string& why);

  // While connected.
  const std::optional<Place>& place() const { return place_; }
  bool ready() const { return state_ == State::kReady; }
  uint64_t attempts() const { return attempts_; }  // to connect, so far
  // Returns why there is no connection, or why the last was lost.
  absl::Status Trouble(absl::string_view what) const;
  absl::Status trouble() const { return Trouble(lost_because_); }

 private:
  enum class State : uint8_t { kWaiting, kFinding, kDialing, kGreeting, kReady };
  struct Question;
  struct Sent {
    Question* question;  // null: the reply is no longer wanted
    base::Time at;
  };

  void Connect();
  void Find();
  void Dial(const Place& place);
  void Greet(std::unique_ptr<Stream> stream);
  void Greeted();
  std::string WithoutPassword(std::string text) const;
  void HangUp();
  base::Pending Call(const Command& command, base::Duration deadline, bool own, Callback done);
  bool Append(const Command& command, size_t most_unsent, std::string* bytes);
  void FlushSoon();
  void Flush();
  void WatchForRoom();
  void HandleEvents(uint32_t events);
  void Receive();
  bool Digest(const char* bytes, size_t size);
  void Take(Reply reply);
  void Hear(Reply reply);
  void Replied(Reply reply);
  void Expired(Question& question);
  bool IsSilent() const;
  void Look();
  void Answer(Question& question, absl::StatusOr<Reply> reply);

  os::EpollLoop& loop_;
  Dialer& dialer_;
  Finder& finder_;
  base::Random random_;
  const ConnectionOptions options_;
  const std::function<void()> began_;
  std::function<void(const Reply&)> heard_;

  State state_ = State::kWaiting;
  std::string lost_because_ = "not connected yet";
  uint64_t attempts_ = 0;
  int redirects_ = 0;
  base::Duration retry_delay_;
  std::optional<Place> place_;
  base::Pending step_;  // finding, dialing
  base::Timer timer_;   // next attempt, or this step's deadline
  base::Timer look_;

  std::unique_ptr<Stream> stream_;
  os::FdWatch watch_;  // dropped before the stream
  uint32_t watched_ = 0;
  std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
  std::string output_;      // on its way to the server
  size_t output_gone_ = 0;  // bytes already sent
  std::string held_;        // to be sent when ready
  base::Timer flush_;
  base::Timer receive_more_;

  size_t questions_first_ = 0;  // in the greeting, before the Finder's
  size_t greeting_outstanding_ = 0;
  std::vector<Reply> greeting_;

  base::Time last_received_;
  base::Timer last_chance_;
  uint64_t last_token_ = 0;
  std::map<uint64_t, Sent> pending_;  // in the order sent
  std::vector<Reply> just_heard_;
  base::Pending hearing_;  // delivers just_heard_
  base::Answers answers_;
};

// Makes one, with its `began`, not started.
using MakeConnection = std::function<std::unique_ptr<ServerConnection>(std::function<void()> began)>;

}  // namespace tokamak::directory::redis
