#include "lib/directory/redis/waiting.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace tokamak::directory::redis {
namespace {

// Limit of one question.
constexpr base::Duration kQuestionDeadline = base::Seconds(2);
// Delays of the next question: after one without an answer, and after silence, in case an
// announcement was lost.
constexpr base::Duration kAfterTrouble = base::Milliseconds(100);
constexpr base::Duration kAfterSilence = base::Seconds(30);

absl::Status NobodyHoldsIt() { return absl::NotFoundError("no node holds the object"); }

// True if asking again may help.
bool IsTrouble(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

}  // namespace

Waiting::Waiting(base::EventLoop& loop, const MakeConnection& connect, const std::string& prefix, Ask ask)
    : loop_(loop),
      prefix_(prefix),
      awake_(prefix + ":awake"),
      ask_(std::move(ask)),
      subscriptions_(loop, connect, awake_, [this](const std::string& channel) { Heard(channel); }),
      answers_(loop) {}

Waiting::~Waiting() {
  for (auto& [key, object] : objects_) {
    while (!object.waiters.empty()) {
      Waiter* const waiter = object.waiters.PopFront();
      waiter->waiting = nullptr;
      waiter->wait.Cancel();
      waiter->deadline.Cancel();
    }
  }
}

Waiting::Waiter::~Waiter() {
  if (waiting != nullptr) waiting->TakeOut(*this);
}

std::string Waiting::ChannelOf(const base::ObjectId& id) const {
  return absl::StrCat(prefix_, ":announced:", id.ToHex());
}

base::Pending Waiting::Locate(const LocateRequest& request, Directory::LocateCallback done) {
  if (waiting_ >= kMaxWaiting) {
    return answers_.Add([done = std::move(done)] {
      done(absl::ResourceExhaustedError("too many wait in the directory for objects to appear: try again later"));
    });
  }
  const std::string channel = ChannelOf(request.id);
  Object& object = objects_[{channel, request.puller}];
  object.channel = channel;
  object.question = {request.id, {}, kQuestionDeadline, request.puller};

  auto waiter = std::make_unique<Waiter>();
  waiter->waiting = this;
  waiter->object = &object;
  waiter->done = std::move(done);
  waiter->wait = loop_.RunAfter(request.wait, [this, waiter = waiter.get()] { WaitOver(*waiter); });
  waiter->deadline = loop_.RunAfter(request.deadline, [this, waiter = waiter.get()] {
    End(*waiter, absl::DeadlineExceededError("the directory did not answer in time"));
  });
  object.waiters.PushBack(waiter.get());
  ++waiting_;
  Enqueue(object);
  return waiter;
}

void Waiting::Heard(const std::string& channel) {
  const bool all = channel == awake_;
  auto object = all ? objects_.begin() : objects_.lower_bound({channel, ""});
  for (; object != objects_.end() && (all || object->first.first == channel); ++object) Enqueue(object->second);
}

void Waiting::Enqueue(Object& object) {
  if (object.state == Object::State::kAsked) object.ask_again = true;
  if (object.state != Object::State::kIdle) return;
  object.state = Object::State::kQueued;
  object.next_question.Cancel();
  queue_.PushBack(&object);
  PutQuestions();
}

void Waiting::PutQuestions() {
  while (questions_ < kMaxQuestions && !queue_.empty() && !pause_.armed()) {
    Object& object = *queue_.PopFront();
    object.state = Object::State::kAsked;
    object.ask_again = false;
    ++questions_;
    object.asked =
        ask_(object.question, [this, &object](const absl::StatusOr<LocatedObject>& info) { Answered(object, info); });
  }
}

void Waiting::Answered(Object& object, const absl::StatusOr<LocatedObject>& info) {
  --questions_;
  object.state = Object::State::kIdle;
  const bool trouble = IsTrouble(info.status());
  object.trouble = trouble ? info.status() : absl::OkStatus();
  if (trouble) pause_ = loop_.RunAfter(kAfterTrouble, [this] { PutQuestions(); });

  std::vector<Waiter*> ended;
  for (Waiter* waiter = object.waiters.first(); waiter != nullptr; waiter = object.waiters.Next(waiter)) {
    if (waiter->last_chance || !(trouble || absl::IsNotFound(info.status()))) ended.push_back(waiter);
  }
  if (ended.size() < object.waiters.size()) {
    subscriptions_.Add(object.channel);
    if (trouble || object.ask_again) {
      Enqueue(object);
    } else {
      object.next_question = loop_.RunAfter(kAfterSilence, [this, &object] { Enqueue(object); });
    }
  }
  for (Waiter* waiter : ended) End(*waiter, info);
  PutQuestions();
}

void Waiting::WaitOver(Waiter& waiter) {
  const Object& object = *waiter.object;
  if (!object.trouble.ok()) {
    End(waiter, object.trouble);
  } else if (object.state == Object::State::kIdle) {
    End(waiter, NobodyHoldsIt());
  } else {
    waiter.last_chance = true;
  }
}

void Waiting::End(Waiter& waiter, const absl::StatusOr<LocatedObject>& result) {
  TakeOut(waiter);
  waiter.answer = answers_.Add([done = std::move(waiter.done), result] { done(result); });
}

void Waiting::TakeOut(Waiter& waiter) {
  Object& object = *waiter.object;
  object.waiters.Remove(&waiter);
  --waiting_;
  waiter.waiting = nullptr;
  waiter.wait.Cancel();
  waiter.deadline.Cancel();
  if (object.waiters.empty()) Forget(object);
}

void Waiting::Forget(Object& object) {
  if (object.state == Object::State::kQueued) queue_.Remove(&object);
  if (object.state == Object::State::kAsked) --questions_;
  const Key key(object.channel, object.question.puller);
  objects_.erase(key);
  const auto other = objects_.lower_bound({key.first, ""});
  if (other == objects_.end() || other->first.first != key.first) subscriptions_.Remove(key.first);
  PutQuestions();
}

}  // namespace tokamak::directory::redis
