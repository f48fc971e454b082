// Waiting answers those who wait for objects to appear in Redis: it listens for announcements and
// asks when there is one.
//
// An object is asked for at once, after a subscription has begun, at each announcement, which is
// only a hint, and again while the server is out of reach. The waiters of one object and puller
// share one question at a time; those of one object a subscription, which ends with the last.
// Fairness: at most kMaxQuestions are under way, in order, so that other calls find room.
// Bounds: kMaxWaiting (kResourceExhausted).
// Thread rule: its loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/answers.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/directory/directory.h"
#include "lib/directory/redis/subscriptions.h"

namespace tokamak::directory::redis {

class Waiting final {
 public:
  static constexpr size_t kMaxWaiting = 65536;
  static constexpr size_t kMaxQuestions = 256;

  using Ask = std::function<base::Pending(const LocateRequest& request, Directory::LocateCallback done)>;

  // `loop` and what `ask` and `connect` need must outlive it.
  Waiting(base::EventLoop& loop, const MakeConnection& connect, const std::string& prefix, Ask ask);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // See Directory::Locate; the wait is more than zero.
  [[nodiscard]] base::Pending Locate(const LocateRequest& request, Directory::LocateCallback done);

  size_t waiting() const { return waiting_; }
  size_t channels() const { return subscriptions_.channels(); }

 private:
  struct Object;
  // A Locate, on its object's list until answered or dropped.
  struct Waiter final : base::Handle {
    ~Waiter() override;

    Waiting* waiting = nullptr;  // null: being answered
    Object* object = nullptr;
    Directory::LocateCallback done;
    base::Timer wait;
    base::Timer deadline;
    bool last_chance = false;  // the wait is over: the next answer decides
    base::Pending answer;
    base::Link<Waiter> link;
  };
  // Question shared by waiters; ends with the last.
  struct Object {
    enum class State : uint8_t { kIdle, kQueued, kAsked };

    std::string channel;
    LocateRequest question;
    base::IntrusiveList<Waiter, &Waiter::link> waiters;
    State state = State::kIdle;
    bool ask_again = false;  // something happened since it was put
    absl::Status trouble;    // of the last question
    base::Pending asked;
    base::Timer next_question;
    base::Link<Object> link;
  };
  using Key = std::pair<std::string, NodeId>;  // channel and puller

  std::string ChannelOf(const base::ObjectId& id) const;
  void Heard(const std::string& channel);
  void Enqueue(Object& object);
  void PutQuestions();
  void Answered(Object& object, const absl::StatusOr<LocatedObject>& info);
  void WaitOver(Waiter& waiter);
  void End(Waiter& waiter, const absl::StatusOr<LocatedObject>& result);
  void TakeOut(Waiter& waiter);
  void Forget(Object& object);

  base::EventLoop& loop_;
  const std::string prefix_;
  const std::string awake_;  // for the return of silent nodes
  const Ask ask_;
  size_t waiting_ = 0;
  size_t questions_ = 0;  // under way
  std::map<Key, Object> objects_;
  base::IntrusiveList<Object, &Object::link> queue_;  // to be asked for
  base::Timer pause_;                                 // armed after an error: no questions
  Subscriptions subscriptions_;
  base::Answers answers_;
};

}  // namespace tokamak::directory::redis
