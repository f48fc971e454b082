#include "lib/node/deletes/evacuation.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tokamak::node {

namespace {

constexpr size_t kListedAtOnce = 64;
constexpr size_t kListedAhead = 256;   // due objects, while nobody may be asked
constexpr size_t kLookedAtOnce = 256;  // objects in one task
constexpr base::Duration kNodesAgain = base::Seconds(2);
constexpr base::Duration kListAgainAfter = base::Seconds(1);
constexpr base::Duration kFirstPause = base::Milliseconds(10);
constexpr base::Duration kLongestPause = base::Seconds(2);
constexpr base::Duration kTargetsAgain = base::Milliseconds(50);  // while nobody may be asked
constexpr size_t kMaxRefusedBy = 16;                              // then the object waits

}  // namespace

Evacuation::Evacuation(const Needs& needs, base::Duration limit, Callback progress, Callback done)
    : needs_(needs),
      began_(needs.loop.Now()),
      limit_(began_ + limit),
      progress_(std::move(progress)),
      done_(std::move(done)),
      events_(needs.store.Subscribe([this](absl::Span<const store::Event> events) { Heard(events); })) {
  ++needs_.evacuations;
  end_ = needs_.loop.RunAt(limit_, [this] { Finish(); });
  door_timer_ = needs_.loop.RunAt(limit_ - limit / kDoorShare, [this] { CloseDoor(); });
  report_timer_ = needs_.loop.RunAfter(kLookInterval, [this] { Report(); });
  AskForNodes();
}

Evacuation::~Evacuation() {
  --needs_.evacuations;
  if (done_ != nullptr && door_closed_) needs_.store.OpenToPuts();
}

// ---- targets

void Evacuation::AskForNodes() {
  question_timer_ = needs_.loop.RunAfter(kNodesAgain, [this] { AskForNodes(); });
  if (question_ != nullptr) return;
  question_ =
      needs_.directory.Nodes(needs_.deadline, [this](const absl::StatusOr<std::vector<directory::NodeInfo>>& nodes) {
        const base::Pending asked = std::move(question_);
        if (!nodes.ok()) return;
        targets_.Update(*nodes, needs_.self);
        targets_known_ = true;
        seen_others_ |= !targets_.empty();
        FillSoon();
      });
}

// ---- objects here

void Evacuation::Heard(absl::Span<const store::Event> events) {
  for (const store::Event& event : events) {
    const base::ObjectVersion version = event.version();
    if (event.kind == store::Event::Kind::kSealed) {
      if (event.origin != store::Origin::kCreatedHere) continue;
      ++put_;
      Add(version, {0, event.data_size, event.metadata_size, event.generation}, needs_.loop.Now());
      continue;
    }
    handed_.erase(version);
    const auto object = objects_.find(version);
    if (object != objects_.end()) Forget(object);
  }
  FillSoon();
}

void Evacuation::Add(const base::ObjectVersion& version, const store::Location& place, base::Time due) {
  if (handed_.contains(version) || objects_.count(version) != 0) return;
  if (due_.size() >= kMaxWaiting) {
    list_again_ = true;
    return;
  }
  Object object;
  object.request = {version, place.data_size, place.metadata_size};
  object.due = due;
  objects_.emplace(version, std::move(object));
  due_.emplace(due, version);
}

void Evacuation::ListNextPage() {
  const std::vector<store::StoredObject> page = needs_.store.List(kListedAtOnce, listed_to_);
  listed_ = page.empty();
  if (!listed_) listed_to_ = page.back().id;
  for (const store::StoredObject& object : page) {
    if (object.state != store::State::kSealed || object.origin != store::Origin::kCreatedHere) continue;
    Add(object.version(), object.location, needs_.loop.Now());
  }
}

void Evacuation::ListAgain() {
  listed_ = list_again_ = false;
  listed_to_.reset();
  list_again_at_ = needs_.loop.Now() + kListAgainAfter;
}

// ---- handing over

void Evacuation::FillAt(base::Time time) {
  if (fill_timer_.armed() && fill_at_ <= time) return;
  fill_at_ = time;
  fill_timer_ = needs_.loop.RunAt(time, [this] { Fill(); });
}

void Evacuation::Fill() {
  if (done_ == nullptr || !targets_known_) return;
  for (size_t looked = 0; looked < kLookedAtOnce; ++looked) {
    if (!LookAtNext()) return StepOrEnd();
  }
  FillSoon();
}

// Returns false if nothing can be done now.
bool Evacuation::LookAtNext() {
  const base::Time now = needs_.loop.Now();
  const bool is_due = !due_.empty() && due_.begin()->first <= now;
  const bool may_ask = moving_ < kAtOnce && targets_.AnyOpen(now);
  if (is_due && may_ask) return Start(objects_.find(due_.begin()->second));
  if (listed_ || (is_due && due_.size() >= kListedAhead)) return false;
  ListNextPage();
  return true;
}

// Stays the next while the possible targets are busy. A target could not find an unannounced
// object.
bool Evacuation::Start(Objects::iterator object) {
  Object& one = object->second;
  if (needs_.membership.IsUnannounced(object->first)) {
    Pause(object, Why::kUnannounced);
    return true;
  }
  directory::NodeId target;
  using Choice = EvacuationTargets::Choice;
  switch (targets_.Choose(one.request.total_size(), one.refused_by, needs_.loop.Now(), &target)) {
    case Choice::kFound:
      Ask(object, target);
      return true;
    case Choice::kBusy:
      return false;
    case Choice::kRefused:
      Pause(object, one.why);
      return true;
    case Choice::kNoRoom:
      Pause(object, Why::kNoRoom);
      return true;
    case Choice::kSetAside:
      Pause(object, one.why == Why::kNoTime ? Why::kNoAnswer : one.why);
      return true;
    case Choice::kTooLarge:
      Pause(object, Why::kTooLarge);
      return true;
    case Choice::kNobody:
      Pause(object, Why::kNoNode);
      return true;
  }
  return false;
}

void Evacuation::Ask(Objects::iterator object, const directory::NodeId& target) {
  Object& one = object->second;
  EvacuationTargets::Target& at = *targets_.Find(target);
  due_.erase({one.due, object->first});
  ++moving_;
  at.asks.insert(object->first);
  one.target = target;
  one.come = 0;
  one.came_at = needs_.loop.Now();
  one.call =
      needs_.holders.Call(at.address, EncodeRequest(one.request), limit_ - needs_.loop.Now(),
                          [this, version = object->first](const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
                            Answered(version, reply);
                          });
}

void Evacuation::Stop(Objects::iterator object, Why why) {
  Object& one = object->second;
  one.call.reset();
  one.why = why;
  --moving_;
  targets_.Find(std::exchange(one.target, {}))->asks.erase(object->first);
  one.due = needs_.loop.Now();
  due_.emplace(one.due, object->first);
}

// All refused it, or nobody may be asked.
void Evacuation::Pause(Objects::iterator object, Why why) {
  Object& one = object->second;
  due_.erase({one.due, object->first});
  if (due_.size() >= kMaxWaiting / 2 && !listed_) {  // room for those listed next
    list_again_ = true;
    forgotten_why_ = why;
    objects_.erase(object);
    return;
  }
  one.why = why;
  one.refused_by.clear();
  one.pause = std::clamp(one.pause * 2, kFirstPause, kLongestPause);
  one.due = needs_.loop.Now() + one.pause;
  due_.emplace(one.due, object->first);
}

void Evacuation::Forget(Objects::iterator object) {
  if (object->second.moves()) Stop(object, Why::kNoTime);
  due_.erase({object->second.due, object->first});
  objects_.erase(object);
}

void Evacuation::HandedOver(Objects::iterator object) {
  ++report_.objects;
  report_.bytes += object->second.request.total_size();
  handed_.insert(object->first);
  Forget(object);
}

void Evacuation::Answered(const base::ObjectVersion& version, const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  const auto object = objects_.find(version);
  EvacuationTargets::Target& target = *targets_.Find(object->second.target);
  const base::Pending call = std::move(object->second.call);
  if (reply.ok()) {
    TakeAnswer(object, target, DecodeKeepAnswer(*reply));
  } else {
    const bool unreached = absl::IsUnavailable(reply.status());
    if (unreached) targets_.SetAside(target, needs_.loop.Now());
    if (!unreached) object->second.refused_by.push_back(object->second.target);
    Stop(object, Why::kNoAnswer);
  }
  FillSoon();
}

void Evacuation::TakeAnswer(Objects::iterator object, EvacuationTargets::Target& target,
                            std::optional<KeepAnswer> answer) {
  Object& one = object->second;
  const auto refused = [&](Why why) {
    one.refused_by.push_back(one.target);
    Stop(object, why);
    if (one.refused_by.size() >= kMaxRefusedBy) Pause(object, why);
  };
  if (!answer.has_value()) return refused(Why::kLater);  // protocol violation
  targets_.Answers(target);
  switch (*answer) {
    case KeepAnswer::kKept:
      return HandedOver(object);
    case KeepAnswer::kNoRoom:
      targets_.HasNoRoom(target, one.request.total_size(), needs_.loop.Now());
      return Stop(object, Why::kNoRoom);
    case KeepAnswer::kInUse:
      return refused(Why::kInUse);
    case KeepAnswer::kGone:  // for that node; the store decides here
    case KeepAnswer::kLater:
      return refused(Why::kLater);
    case KeepAnswer::kLeaving:
      targets_.Leaves(target, needs_.loop.Now());
      return Stop(object, Why::kNoNode);
  }
}

// ---- how far the targets are

void Evacuation::LookAtTargets() {
  for (auto& [id, target] : targets_.all()) {
    if (target.look != nullptr || target.asks.empty()) continue;
    const std::vector<base::ObjectVersion> asked(target.asks.begin(), target.asks.end());
    target.look = needs_.holders.Call(
        target.address, EncodeRequest(HowFarRequest{asked}), kLookDeadline,
        [this, id = id, asked](const absl::StatusOr<absl::Span<const uint8_t>>& reply) { Looked(id, asked, reply); });
  }
}

void Evacuation::Looked(const directory::NodeId& id, const std::vector<base::ObjectVersion>& asked,
                        const absl::StatusOr<absl::Span<const uint8_t>>& reply) {
  EvacuationTargets::Target& target = *targets_.Find(id);
  const base::Pending look = std::move(target.look);
  if (absl::IsResourceExhausted(reply.status())) return;  // too many calls of ours
  if (!reply.ok()) {
    targets_.SetAside(target, needs_.loop.Now());
    const std::set<base::ObjectVersion> asks = target.asks;
    for (const base::ObjectVersion& version : asks) Stop(objects_.find(version), Why::kNoAnswer);
    return FillSoon();
  }
  const std::optional<std::vector<uint64_t>> far = DecodeHowFarAnswer(*reply, asked.size());
  if (!far.has_value()) return;
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto object = objects_.find(asked[i]);
    if (object == objects_.end() || object->second.target != id) continue;
    if (std::exchange(object->second.come, (*far)[i]) != (*far)[i]) object->second.came_at = needs_.loop.Now();
  }
}

void Evacuation::EndStalled() {
  const base::Time now = needs_.loop.Now();
  for (const auto& [id, target] : targets_.all()) {
    const std::set<base::ObjectVersion> asks = target.asks;
    for (const base::ObjectVersion& version : asks) {
      const auto object = objects_.find(version);
      Object& one = object->second;
      if (now - one.came_at < kStall) continue;
      one.refused_by.push_back(id);
      Stop(object, Why::kNoAnswer);
    }
  }
  FillSoon();
}

void Evacuation::Report() {
  report_timer_ = needs_.loop.RunAfter(kLookInterval, [this] { Report(); });
  EndStalled();
  LookAtTargets();
  if (targets_known_ && !seen_others_ && needs_.loop.Now() - began_ >= kAloneFor) {
    end_ = needs_.loop.Post([this] { Finish(); });
  }
  if (put_ > report_.objects + report_.objects / kDoorShare + kAtOnce) CloseDoor();
  Counts counts{};
  for (const auto& [version, object] : objects_) ++counts[static_cast<size_t>(object.why)];
  counts[static_cast<size_t>(Why::kNoTime)] = 0;  // their turn has not come
  report_.trouble = Summary(counts);
  progress_(report_);  // may drop us
}

// ---- the end

void Evacuation::StepOrEnd() {
  const base::Time now = needs_.loop.Now();
  if (listed_ && list_again_ && list_again_at_ <= now) {
    ListAgain();
    return FillSoon();
  }
  const bool nothing_left = listed_ && !list_again_ && objects_.empty();
  if (nothing_left && !door_closed_) return CloseDoor();
  if (nothing_left) {
    end_ = needs_.loop.Post([this] { Finish(); });
    return;
  }
  if (list_again_) FillAt(std::max(now, list_again_at_) + kTargetsAgain);
  if (!targets_.AnyOpen(now)) return FillAt(now + kTargetsAgain);
  if (!due_.empty()) FillAt(std::max(due_.begin()->first, now + kTargetsAgain / 10));
}

// Lists the store again, for objects put before.
void Evacuation::CloseDoor() {
  if (std::exchange(door_closed_, true)) return;
  door_timer_.Cancel();
  needs_.store.CloseToPuts(absl::UnavailableError("this node is leaving the cluster: put it on another one"));
  list_again_ = true;
  list_again_at_ = needs_.loop.Now();
  FillSoon();
}

absl::Status Evacuation::Describe(Why why, uint64_t count) {
  switch (why) {
    case Why::kNoTime:
      return absl::DeadlineExceededError(absl::StrCat(count, " for want of time"));
    case Why::kNoNode:
      return absl::NotFoundError(absl::StrCat(count, " since there is no other node that stays"));
    case Why::kNoDirectory:
      return absl::UnavailableError(
          absl::StrCat(count, " since the directory did not say which other nodes there are"));
    case Why::kNoRoom:
      return absl::ResourceExhaustedError(absl::StrCat(count, " since no other node has room"));
    case Why::kTooLarge:
      return absl::ResourceExhaustedError(absl::StrCat(count, " since no other node's memory is large enough"));
    case Why::kInUse:
      return absl::FailedPreconditionError(absl::StrCat(count, " since the ids are in use on the other nodes"));
    case Why::kNoAnswer:
      return absl::UnavailableError(absl::StrCat(count, " since other nodes did not answer in time"));
    case Why::kUnannounced:
      return absl::UnavailableError(absl::StrCat(count, " since the directory has not heard of them yet"));
    case Why::kLater:
      return absl::UnavailableError(absl::StrCat(count, " since other nodes could not get them"));
  }
  return absl::OkStatus();
}

absl::Status Evacuation::Summary(const Counts& counts) {
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t why = 0; why < kWhys; ++why) {
    if (counts[why] > 0) order.emplace_back(counts[why], why);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (order.empty()) return absl::OkStatus();
  std::vector<std::string> texts;
  for (const auto& [count, why] : order) texts.emplace_back(Describe(static_cast<Why>(why), count).message());
  return absl::Status(Describe(static_cast<Why>(order.front().second), 1).code(), absl::StrJoin(texts, ", "));
}

void Evacuation::CountLeft() {
  const Why others = !targets_known_    ? Why::kNoDirectory
                     : targets_.empty() ? Why::kNoNode
                     : list_again_      ? forgotten_why_
                                        : Why::kNoTime;
  Counts counts{};
  std::optional<base::ObjectId> to;
  for (bool more = true; more;) {
    const std::vector<store::StoredObject> page = needs_.store.List(kListedAtOnce, to);
    more = !page.empty();
    if (more) to = page.back().id;
    for (const store::StoredObject& info : page) {
      if (info.state != store::State::kSealed || info.origin != store::Origin::kCreatedHere) continue;
      if (handed_.contains(info.version())) continue;
      const auto object = objects_.find(info.version());
      const bool has_reason = object != objects_.end() && object->second.why != Why::kNoTime;
      ++counts[static_cast<size_t>(has_reason ? object->second.why : others)];
      ++report_.left_objects;
      report_.left_bytes += info.location.total_size();
    }
  }
  report_.trouble = Summary(counts);
}

void Evacuation::Finish() {
  CloseDoor();
  CountLeft();
  for (base::Timer* timer : {&report_timer_, &fill_timer_, &question_timer_, &end_}) timer->Cancel();
  question_.reset();
  events_.reset();
  for (auto& [id, target] : targets_.all()) target.look.reset();
  objects_.clear();  // with its calls
  due_.clear();
  const Callback done = std::move(done_);
  done_ = nullptr;
  done(report_);  // may drop us
}

}  // namespace tokamak::node
