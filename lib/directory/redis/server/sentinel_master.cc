#include "lib/directory/redis/server/sentinel_master.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/log.h"

namespace tokamak::directory::redis {
namespace {

// In ["name", "mymaster", "ip", "10.0.0.1", ...].
std::string FieldOf(const Reply& reply, absl::string_view name) {
  for (size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    if (reply.elements[i].text == name) return reply.elements[i + 1].text;
  }
  return {};
}

}  // namespace

SentinelMaster::SentinelMaster(os::EpollLoop& loop, Dialer& dialer, const Target& target, base::Random random,
                               const ConnectionOptions& options)
    : loop_(loop),
      places_(target.places),
      master_name_(target.master),
      sentinels_(target.places.size()),
      answers_(loop) {
  for (size_t i = 0; i < places_.size(); ++i) {
    Sentinel& sentinel = sentinels_[i];
    sentinel.finder = std::make_unique<NamedServer>(loop, places_[i], NamedServer::Role::kSentinel);
    sentinel.connection =
        std::make_unique<ServerConnection>(loop, dialer, *sentinel.finder, random.Fork(i), options, [] {});
    sentinel.connection->Start();
  }
  AskAll();
}

SentinelMaster::~SentinelMaster() {
  while (!questions_.empty()) {
    Question* const question = questions_.PopFront();
    question->owner = nullptr;
    question->deadline.Cancel();
  }
}

// Asks each Sentinel one question at a time. The next round answers later Finds and Confirms.
void SentinelMaster::AskAll() {
  ask_timer_ = loop_.RunAfter(kAskEvery, [this] { AskAll(); });
  ++round_;
  for (Sentinel& sentinel : sentinels_) {
    if (sentinel.asked != nullptr) continue;
    sentinel.round = round_;
    sentinel.asked = sentinel.connection->Call({"SENTINEL", "MASTER", master_name_}, kAnswerWithin,
                                               [this, &sentinel, round = round_](const absl::StatusOr<Reply>& reply) {
                                                 sentinel.asked.reset();
                                                 Heard(sentinel, round, reply);
                                               });
  }
}

void SentinelMaster::Heard(Sentinel& sentinel, uint64_t round, const absl::StatusOr<Reply>& reply) {
  const absl::StatusOr<Place> master = reply.ok() ? Master(*reply) : absl::StatusOr<Place>(reply.status());
  sentinel.answered_round = round;
  sentinel.trouble = master.status();
  if (master.ok()) sentinel.master = *master;
  AnswerQuestions();
  if (!questions_.empty() && sentinel.answered_round < round_ && !ask_soon_.armed()) {
    ask_soon_ = loop_.Post([this] { AskAll(); });
  }
}

absl::StatusOr<Place> SentinelMaster::Master(const Reply& reply) {
  Place place;
  uint32_t port = 0, others = 0;
  place.address.host = FieldOf(reply, "ip");
  if (place.address.host.empty() || !absl::SimpleAtoi(FieldOf(reply, "port"), &port) || port == 0 ||
      port > UINT16_MAX) {
    return absl::UnavailableError("it does not answer as a Sentinel does: is it one?");
  }
  place.address.port = static_cast<uint16_t>(port);
  if (absl::SimpleAtoi(FieldOf(reply, "num-other-sentinels"), &others) && others + 1 > places_.size() &&
      !std::exchange(warned_, true)) {
    LOG(WARNING) << name() << ": " << others + 1 << " Sentinels watch over the master, and " << places_.size()
                 << " are named: name all of them in --directory, since a majority of those that are named decides";
  }
  return place;
}

absl::StatusOr<Place> SentinelMaster::Majority(uint64_t since) const {
  std::vector<std::string> troubles;
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    const Sentinel& sentinel = sentinels_[i];
    if (!sentinel.trouble.ok()) troubles.push_back(std::string(sentinel.trouble.message()));
    if (sentinel.answered_round < since || !sentinel.trouble.ok()) continue;
    const auto agree = std::count_if(sentinels_.begin(), sentinels_.end(), [&](const Sentinel& other) {
      return other.answered_round >= since && other.trouble.ok() && *other.master == *sentinel.master;
    });
    if (static_cast<size_t>(agree) > sentinels_.size() / 2) return *sentinel.master;
  }
  return absl::UnavailableError(troubles.empty()
                                    ? std::string("the Sentinels do not agree: a failover is under way")
                                    : absl::StrCat(troubles.size(), " of ", sentinels_.size(),
                                                   " Sentinels do not answer: ", absl::StrJoin(troubles, "; ")));
}

bool SentinelMaster::AllHaveAnswered(uint64_t since) const {
  return std::all_of(sentinels_.begin(), sentinels_.end(),
                     [since](const Sentinel& sentinel) { return sentinel.answered_round >= since; });
}

// Questions that a round leaves open stay so for later ones, which fewer have answered.
void SentinelMaster::AnswerQuestions() {
  absl::StatusOr<Place> said = absl::UnknownError("not looked yet");
  uint64_t of_round = 0;
  while (!questions_.empty()) {
    Question& question = *questions_.first();
    if (question.since != of_round) {
      said = Majority(question.since);
      of_round = question.since;
    }
    if (!said.ok() && !AllHaveAnswered(question.since)) return;
    questions_.Remove(&question);
    question.owner = nullptr;
    question.deadline.Cancel();
    question.answer = answers_.Add([done = std::move(question.done), said] { done(said); });
  }
}

void SentinelMaster::Expired(Question& question) {
  questions_.Remove(&question);
  question.owner = nullptr;
  const FoundCallback done = std::move(question.done);  // may drop the question
  done(Majority(question.since));
}

base::Pending SentinelMaster::Ask(base::Duration deadline, FoundCallback done) {
  if (questions_.size() >= kMaxQuestions) {
    return answers_.Add([done = std::move(done)] {
      done(absl::ResourceExhaustedError("too many wait for the Sentinels' answer: try again later"));
    });
  }
  auto question = std::make_unique<Question>();
  question->owner = this;
  question->since = round_ + 1;
  question->done = std::move(done);
  question->deadline = loop_.RunAfter(deadline, [this, question = question.get()] { Expired(*question); });
  questions_.PushBack(question.get());
  if (!ask_soon_.armed()) ask_soon_ = loop_.Post([this] { AskAll(); });
  return question;
}

base::Pending SentinelMaster::Find(base::Duration deadline, FoundCallback found) {
  return Ask(deadline, std::move(found));
}

base::Pending SentinelMaster::Confirm(const Place& place, base::Duration deadline, StatusCallback done) {
  return Ask(deadline, [place, done = std::move(done)](const absl::StatusOr<Place>& master) {
    if (!master.ok()) return done(master.status());
    done(*master == place ? absl::OkStatus()
                          : absl::UnavailableError("the Sentinels have another master: try again in a moment"));
  });
}

absl::Status SentinelMaster::Judge(const Place&, const std::vector<Reply>& replies) {
  return JudgeInfo(replies[0], Target::Kind::kSentinel);
}

// Without a majority for another, the place stays right.
bool SentinelMaster::IsStillRight(const Place& place) const {
  const absl::StatusOr<Place> master = Majority(0);
  return !master.ok() || *master == place;
}

std::string SentinelMaster::name() const {
  std::vector<std::string> names;
  for (const Place& place : places_) names.push_back(place.ToString());
  return absl::StrCat(master_name_, " of the Sentinels ", absl::StrJoin(names, ", "));
}

}  // namespace tokamak::directory::redis
