// Waiting answers those who wait for objects to appear in Redis: it listens for announcements and asks when there is one.
//
// Whoever waits is asked for at once, then after a subscription has begun, and then at each announcement; an announcement is only
// a hint to ask. All who wait for one object share one question at a time and one subscription. While the server cannot be
// reached it goes on trying.
// Bounds: kMaxWaiting wait at once (kResourceExhausted).
// Thread rule: its loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/object_id.h"
#include "lib/directory/answers.h"
#include "lib/directory/directory.h"
#include "lib/directory/redis/subscriptions.h"

namespace tokamak::directory::redis {

class Waiting final {
 public:
  static constexpr size_t kMaxWaiting = 65536;

  // Asks once who holds an object. Answers later.
  using Ask = std::function<void(const base::ObjectId& id, base::Duration deadline, Directory::LocateCallback done)>;

  // `loop` must outlive it; so must what `ask` needs.
  static absl::StatusOr<std::unique_ptr<Waiting>> Open(os::EpollLoop& loop, const ConnectionOptions& options,
                                                       const std::string& prefix, Ask ask);

  // See Directory::Locate; `wait` is more than zero.
  void Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline, Directory::LocateCallback done);

  size_t waiting() const { return waiting_; }
  size_t channels() const { return subscriptions_->channels(); }

 private:
  struct Waiter {
    Directory::LocateCallback done;
    base::Timer wait;
    base::Timer deadline;
    bool last_chance = false;  // the wait is over: the question that is under way decides
  };
  struct Object {
    base::ObjectId id;
    std::map<uint64_t, Waiter> waiters;
    bool asking = false;
    bool ask_again = false;  // something happened since the question was put
    absl::Status trouble;    // of the last question
    base::Timer next_question;
  };

  Waiting(os::EpollLoop& loop, const std::string& prefix, Ask ask)
      : loop_(loop), prefix_(prefix), ask_(std::move(ask)), answers_(loop) {}
  std::string ChannelOf(const base::ObjectId& id) const;
  void AskFor(const std::string& channel);
  void Answered(const std::string& channel, const absl::StatusOr<ObjectInfo>& info);
  void WaitOver(const std::string& channel, uint64_t number);
  void End(const std::string& channel, uint64_t number, absl::StatusOr<ObjectInfo> result);

  os::EpollLoop& loop_;
  const std::string prefix_;
  const Ask ask_;
  uint64_t last_number_ = 0;
  size_t waiting_ = 0;
  std::map<std::string, Object> objects_;  // by channel
  std::unique_ptr<Subscriptions> subscriptions_;
  Answers answers_;
};

}  // namespace tokamak::directory::redis
