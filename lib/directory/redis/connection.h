// Connection is one connection to a Redis server, by hiredis, on our own event loop.
//
// It connects in the background, and again with back-off whenever the connection is lost. What
// waits for a reply then fails at once (kUnavailable: the server may or may not have acted); what
// is asked while there is no connection does too. A server that is silent for kMaxSilence though it
// was asked counts as lost.
// Law: a callback runs once, never inside the call, by its deadline; none runs after the call's
// handle or the connection was dropped (lib/base/handle.h).
// Bounds: kMaxPending calls wait at once, also those that were dropped or whose deadline has passed
// (kResourceExhausted).
// Thread rule: its loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/answers.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/os/epoll_loop.h"

struct redisAsyncContext;

namespace tokamak::directory::redis {

// What the server said.
struct Reply {
  enum class Kind : uint8_t { kNil, kText, kInteger, kArray, kError };
  Kind kind = Kind::kNil;
  std::string text;  // kText, kError
  int64_t integer = 0;
  std::vector<Reply> elements;  // kArray
};

struct ConnectionOptions {
  std::string address;   // "127.0.0.1:6379", "[::1]:6379", "unix:/run/redis.sock"
  std::string password;  // empty: none is sent
  base::Duration connect_deadline = base::Seconds(2);
  base::Duration first_retry = base::Milliseconds(20);
  base::Duration max_retry = base::Seconds(2);
};

class Connection final {
 public:
  using Callback = std::function<void(absl::StatusOr<Reply>)>;

  static constexpr size_t kMaxPending = 16384;
  static constexpr base::Duration kMaxSilence = base::Seconds(2);
  // A process that stood still itself has not read yet what the server said meanwhile.
  static constexpr base::Duration kLastChance = base::Milliseconds(100);

  // `loop` must outlive it. `began` runs at the start of each connection: what it calls is the
  // first that the server hears. Connects once started. kInvalidArgument: the address is malformed.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(os::EpollLoop& loop, const ConnectionOptions& options,
                                                          std::function<void()> began);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Calls that come before are refused.
  void Start() { Connect(); }

  // Sends a command; its arguments are bytes. An error that the server reports is a status
  // (kUnavailable).
  [[nodiscard]] base::Pending Call(const std::vector<std::string>& arguments, base::Duration deadline, Callback done);

  // For a connection that subscribes: sends SUBSCRIBE or UNSUBSCRIBE; what comes of it, and every
  // message, goes to `heard`. Returns false when there is no connection.
  bool Subscribe(const std::vector<std::string>& arguments);
  void OnHeard(std::function<void(const Reply&)> heard) { heard_ = std::move(heard); }

  // Gives the connection up and makes another.
  void Break(const std::string& why);

  const std::string& address() const { return options_.address; }
  uint64_t attempts() const { return attempts_; }  // to connect, so far

 private:
  struct Question;
  struct Sent {
    Question* question;  // null: nobody wants the reply any more
    base::Time at;
  };
  struct Hooks;  // hiredis calls these

  Connection(os::EpollLoop& loop, const ConnectionOptions& options, std::function<void()> began);
  void Connect();
  void Attach(redisAsyncContext* context);
  void Detach();
  void Connected();
  void Lost(const std::string& why);
  void Authenticate();
  void WatchFor(uint32_t events, bool wanted);
  void HandleEvents(uint32_t events);
  void Hear(Reply reply);
  void Replied(uint64_t token, const Reply& reply);
  void Expired(Question& question);
  bool IsSilent() const;
  void Answer(Question& question, absl::StatusOr<Reply> reply);
  absl::Status Trouble(const std::string& what) const;

  os::EpollLoop& loop_;
  const ConnectionOptions options_;
  const std::function<void()> began_;
  std::function<void(const Reply&)> heard_;
  redisAsyncContext* context_ = nullptr;  // null: lost, waiting for the next attempt
  os::FdWatch watch_;
  uint32_t watched_ = 0;
  std::string lost_because_ = "not connected yet";
  uint64_t attempts_ = 0;
  base::Duration retry_delay_;
  base::Time last_received_;
  base::Timer timer_;  // the next attempt, or the end of this one
  base::Timer last_chance_;
  uint64_t last_token_ = 0;
  std::map<uint64_t, Sent> pending_;  // in the order sent, until they are replied to
  std::vector<Reply> just_heard_;
  base::Pending hearing_;  // those
  base::Pending authentication_;
  base::Answers answers_;
};

}  // namespace tokamak::directory::redis
