#include "lib/directory/remote/watches.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/directory/local.h"

namespace tokamak::directory {

namespace {

constexpr base::Duration kAnswerTime = base::Seconds(2);         // for a reply, beside the turn of a poll
constexpr base::Duration kRetryDelay = base::Milliseconds(100);  // after a session was lost

// Bytes of a request beside the begun watches, with a puller and no more ends than begins.
constexpr size_t kWatchOverhead = 128;
constexpr size_t kEndedRoom = sizeof(uint64_t);
constexpr size_t kBegunRoom = sizeof(uint64_t) + base::ObjectId::kSize + 1;

size_t MostBegun(size_t max_request) {
  const size_t room = std::max(max_request, kWatchOverhead) - kWatchOverhead;
  return std::clamp<size_t>(room / (kEndedRoom + kBegunRoom), 1, kMaxWatched);
}

}  // namespace

Watches::Watches(base::EventLoop& loop, size_t max_request, base::Random random, Ask ask)
    : loop_(loop), most_begun_(MostBegun(max_request)), ask_(std::move(ask)), answers_(loop) {
  session_.asker = random.Next();
}

Watches::~Watches() {
  for (auto& [number, locating] : locates_) {
    locating->watches = nullptr;
    locating->next.Cancel();
  }
  while (!queue_.empty()) queue_.PopFront();
}

base::Pending Watches::Locate(const LocateRequest& request, Directory::LocateCallback done) {
  if (locates_.size() >= kMaxWaitsOfPeer) {
    return answers_.Add([done = std::move(done)] {
      done(absl::ResourceExhaustedError("too many wait in the directory for objects to appear: try again later"));
    });
  }
  auto locating = std::make_unique<Locating>();
  locating->watches = this;
  locating->request = {++last_number_, request.id, !request.puller.empty(), false};
  locating->puller = request.puller;
  locating->deadline = loop_.Now() + request.deadline;
  locating->next = loop_.RunAfter(request.wait, [this, waiting = locating.get()] { WaitOver(*waiting); });
  locating->done = std::move(done);
  locates_.emplace(last_number_, locating.get());
  Queue(*locating);
  return locating;
}

void Watches::Queue(Locating& locating) {
  locating.told = false;
  queue_.PushBack(&locating);
  FlushSoon();
}

// Sends together the waits of one task, or until the next request.
void Watches::FlushSoon() {
  if (!flushing_.armed()) flushing_ = loop_.Post([this] { SendWhatMayBe(); });
}

void Watches::Drop(Locating& locating) {
  if (state_ == Session::kLost) must_end_ = true;
  if (locating.told) dropped_.push_back(locating.request.number);
  if (locating.told) FlushSoon();
  Forget(locating);
}

void Watches::Forget(Locating& locating) {
  if (!locating.told) queue_.Remove(&locating);
  locates_.erase(locating.request.number);
  locating.watches = nullptr;
  locating.next.Cancel();
}

void Watches::Answer(Locating& locating, absl::StatusOr<LocatedObject> result) {
  if (locating.watches != nullptr) Forget(locating);
  locating.answer = answers_.Add(
      [done = std::move(locating.done), result = std::move(result)]() mutable { done(std::move(result)); });
}

void Watches::WaitOver(Locating& locating) {
  locating.next = loop_.RunAt(locating.deadline, [this, &locating] {
    Drop(locating);
    Answer(locating, absl::DeadlineExceededError("the node that serves the directory did not answer in time"));
  });
  locating.request.once = true;
  if (locating.told) Queue(locating);
}

// With the most requests under way, ends all dropped waits at once by a new session.
void Watches::Flush() {
  SendWhatMayBe();
  if (dropped_.empty() || outage_.armed()) return;
  WatchAnew();
  SendWhatMayBe();
}

void Watches::SendWhatMayBe() {
  flushing_.Cancel();
  const auto ends = [this] { return must_end_ && state_ == Session::kLost; };
  if (outage_.armed()) {
    if (ends()) SendBatch(0);
    return;
  }
  while ((!queue_.empty() && calls_.size() < kMaxBegins) || (!dropped_.empty() && calls_.size() < kMaxCalls) ||
         ends()) {
    SendBatch(calls_.size() < kMaxBegins ? most_begun_ : 0);
  }
}

// Sends ended waits, then new ones, for one puller.
void Watches::SendBatch(size_t most_begun) {
  const bool begins = state_ != Session::kOpen;
  if (begins) {
    ++session_.number;
    dropped_.clear();  // of the session before
  }
  const size_t ended = std::min(dropped_.size(), most_begun_);
  NodeId puller;
  std::vector<WatchRequest> begun;
  while (!queue_.empty() && begun.size() < most_begun) {
    Locating& next = *queue_.first();
    if (next.request.pulls && !puller.empty() && next.puller != puller) break;
    if (next.request.pulls) puller = next.puller;
    begun.push_back(next.request);
    next.told = true;
    queue_.Remove(&next);
  }
  base::Writer request = BeginRequest(RequestKind::kWatch);
  WriteSession(request, session_);
  request.Integer<uint8_t>(begins ? 1 : 0);
  request.Text(puller);
  request.Integer(static_cast<uint32_t>(ended));
  for (size_t i = 0; i < ended; ++i) request.Integer(dropped_[i]);
  dropped_.erase(dropped_.begin(), dropped_.begin() + static_cast<ptrdiff_t>(ended));
  request.Integer(static_cast<uint32_t>(begun.size()));
  for (const WatchRequest& watch : begun) WriteWatch(request, watch);
  state_ = Session::kOpen;
  const uint64_t number = ++last_call_;
  calls_[number] = ask_(request, kAnswerTime, [this, number](const absl::Status& status, base::Reader& reader) {
    const auto ended_call = calls_.extract(number);
    OnWatched(status, reader);
  });
}

void Watches::OnWatched(const absl::Status& status, base::Reader& reader) {
  if (!TakeResults(status, reader)) return;
  must_end_ = false;
  Continue();
  if (!queue_.empty() || !dropped_.empty()) SendWhatMayBe();
}

void Watches::OnPolled(const absl::Status& status, base::Reader& reader) {
  const base::Pending ended = std::move(poll_);
  if (TakeResults(status, reader)) Continue();
}

// Holds a poll while the server has watches.
void Watches::Continue() {
  if (poll_ != nullptr) return;
  if (queue_.size() == locates_.size()) {
    if (calls_.empty() && dropped_.empty()) state_ = Session::kNone;
    return;
  }
  base::Writer request = BeginRequest(RequestKind::kPoll);
  WriteSession(request, session_);
  poll_ = ask_(request, kPollTurn + kAnswerTime,
               [this](const absl::Status& poll_status, base::Reader& reader) { OnPolled(poll_status, reader); });
}

bool Watches::TakeResults(const absl::Status& status, base::Reader& reader) {
  std::vector<WatchResult> results;
  if (status.ok()) {
    results.resize(reader.Count(kMaxWaitsOfPeer, sizeof(uint64_t) + 5));
    for (WatchResult& result : results) {
      result.number = reader.Integer<uint64_t>();
      if (absl::Status refused = ReadStatus(reader); !refused.ok()) {
        result.object = refused;
      } else {
        const auto asker = locates_.find(result.number);
        result.object = ReadObject(reader, asker == locates_.end() ? nullptr : &asker->second->request.id);
        if (!IsFound(*result.object)) result.object = MalformedReply();
      }
    }
  }
  if (!status.ok() || !reader.Complete()) {
    LoseSession(status.ok() ? MalformedReply() : status);
    return false;
  }
  for (WatchResult& result : results) {
    const auto found = locates_.find(result.number);
    if (found != locates_.end() && found->second->told) Answer(*found->second, std::move(result.object));
  }
  return true;
}

// Watches everything again; reports the outage to waits that are over.
void Watches::LoseSession(const absl::Status& status) {
  WatchAnew();
  const bool forgotten = absl::IsAborted(status);  // by a server that was restarted, say
  for (auto next = locates_.begin(); next != locates_.end();) {
    Locating& locating = *(next++)->second;
    if (locating.request.once && !forgotten) Answer(locating, status);
  }
  outage_ = loop_.RunAfter(kRetryDelay, [this] { Flush(); });
}

void Watches::WatchAnew() {
  state_ = Session::kLost;
  if (!dropped_.empty()) must_end_ = true;
  calls_.clear();
  poll_.reset();
  while (!queue_.empty()) queue_.PopFront()->told = true;
  for (const auto& [number, locating] : locates_) {
    locating->told = false;
    queue_.PushBack(locating);
  }
}

}  // namespace tokamak::directory
