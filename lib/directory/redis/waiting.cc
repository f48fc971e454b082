#include "lib/directory/redis/waiting.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tokamak::directory::redis {
namespace {

// One question of many that a waiter may put.
constexpr base::Duration kQuestionDeadline = base::Seconds(2);
// Until the next question, when the last had no answer; and when nothing was heard, lest a lost announcement be missed for ever.
constexpr base::Duration kAfterTrouble = base::Milliseconds(100);
constexpr base::Duration kAfterSilence = base::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<Waiting>> Waiting::Open(os::EpollLoop& loop, const ConnectionOptions& options,
                                                       const std::string& prefix, Ask ask) {
  auto all = std::unique_ptr<Waiting>(new Waiting(loop, prefix, std::move(ask)));
  auto subscriptions = Subscriptions::Open(loop, options, absl::StrCat(prefix, ":awake"),
                                           [all = all.get()](const std::string& channel) { all->AskFor(channel); });
  if (!subscriptions.ok()) return subscriptions.status();
  all->subscriptions_ = *std::move(subscriptions);
  return all;
}

std::string Waiting::ChannelOf(const base::ObjectId& id) const {
  return absl::StrCat(prefix_, ":announced:", id.ToHex());
}

void Waiting::Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline,
                     Directory::LocateCallback done) {
  if (waiting_ >= kMaxWaiting) {
    return answers_.Add([done = std::move(done)] {
      done(absl::ResourceExhaustedError("too many wait in the directory for objects to appear: try again later"));
    });
  }
  ++waiting_;
  const std::string channel = ChannelOf(id);
  const uint64_t number = ++last_number_;
  Object& object = objects_[channel];
  object.id = id;
  Waiter& waiter = object.waiters[number];
  waiter.done = std::move(done);
  waiter.wait = loop_.RunAfter(wait, [this, channel, number] { WaitOver(std::string(channel), number); });
  waiter.deadline = loop_.RunAfter(deadline, [this, channel, number] {
    End(std::string(channel), number, absl::DeadlineExceededError("the directory did not answer in time"));
  });
  AskFor(channel);
}

void Waiting::AskFor(const std::string& channel) {
  const auto found = objects_.find(channel);
  if (found == objects_.end()) return;
  Object& object = found->second;
  object.ask_again = object.asking;
  if (object.asking) return;
  object.asking = true;
  object.next_question.Cancel();
  ask_(object.id, kQuestionDeadline,
       [this, channel](const absl::StatusOr<ObjectInfo>& info) { Answered(channel, info); });
}

void Waiting::Answered(const std::string& channel, const absl::StatusOr<ObjectInfo>& info) {
  const auto found = objects_.find(channel);
  if (found == objects_.end()) return;
  Object& object = found->second;
  object.asking = false;
  const bool not_found = absl::IsNotFound(info.status());
  object.trouble = not_found ? absl::OkStatus() : info.status();

  std::vector<uint64_t> ended;
  for (const auto& [number, waiter] : object.waiters) {
    if (info.ok() || waiter.last_chance) ended.push_back(number);
  }
  const bool goes_on = ended.size() < object.waiters.size();
  if (goes_on) {
    subscriptions_->Add(channel);
    object.next_question =
        loop_.RunAfter(not_found ? kAfterSilence : kAfterTrouble, [this, channel] { AskFor(std::string(channel)); });
    if (object.ask_again) AskFor(channel);
  }
  for (const uint64_t number : ended) End(channel, number, info);
}

void Waiting::WaitOver(const std::string& channel, uint64_t number) {
  Object& object = objects_[channel];
  if (object.asking) {
    object.waiters[number].last_chance = true;
  } else {
    End(channel, number, object.trouble.ok() ? absl::NotFoundError("no node holds the object") : object.trouble);
  }
}

void Waiting::End(const std::string& channel, uint64_t number, absl::StatusOr<ObjectInfo> result) {
  const auto found = objects_.find(channel);
  auto waiter = found->second.waiters.extract(number);
  --waiting_;
  answers_.Add([done = std::move(waiter.mapped().done), result = std::move(result)] { done(result); });
  if (!found->second.waiters.empty()) return;
  subscriptions_->Remove(channel);
  objects_.erase(found);
}

}  // namespace tokamak::directory::redis
