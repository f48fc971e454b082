#include "lib/directory/remote/locates.h"

#include <algorithm>
#include <utility>

#include "lib/directory/local.h"

namespace tokamak::directory {

namespace {

constexpr size_t kRequestOverhead = 128;  // bytes of a request, beside its ids
constexpr size_t kIdRoom = base::ObjectId::kSize + 1;

size_t MostAsked(size_t max_request) {
  const size_t room = std::max(max_request, kRequestOverhead) - kRequestOverhead;
  return std::clamp<size_t>(room / kIdRoom, 1, kMaxLocated);
}

}  // namespace

Locates::Locates(base::EventLoop& loop, size_t max_request, Ask ask)
    : loop_(loop), most_asked_(MostAsked(max_request)), ask_(std::move(ask)), answers_(loop) {}

Locates::~Locates() {
  for (const auto& call : calls_) Orphan(*call);
}

base::Pending Locates::Locate(const LocateRequest& request, Directory::LocateCallback done) {
  if (under_way_ >= kMaxWaitsOfPeer) {
    return answers_.Add([done = std::move(done)] {
      done(absl::ResourceExhaustedError("too many ask the directory at once: try again later"));
    });
  }
  auto locating = std::make_unique<Locating>();
  locating->locates = this;
  locating->id = request.id;
  locating->may_bring = request.may_bring;
  locating->done = std::move(done);
  ++under_way_;
  Add(*locating, request.puller, loop_.Now() + request.deadline);
  return locating;
}

void Locates::Add(Locating& locating, const NodeId& puller, base::Time deadline) {
  if (gathering_ != nullptr && (gathering_->puller != puller || gathering_->deadline != deadline)) Flush();
  if (gathering_ == nullptr) {
    gathering_ = calls_.emplace_back(std::make_unique<Call>()).get();
    gathering_->puller = puller;
    gathering_->deadline = deadline;
    flushing_ = loop_.Post([this] { Flush(); });
  }
  locating.call = gathering_;
  locating.place = gathering_->asked.size();
  gathering_->asked.push_back(&locating);
  ++gathering_->live;
  if (gathering_->asked.size() == most_asked_) Flush();
}

void Locates::Flush() {
  flushing_.Cancel();
  Call* const call = std::exchange(gathering_, nullptr);
  if (call == nullptr) return;
  waiting_.push_back(call);
  SendWaiting();
  if (call->under_way != nullptr) return;
  call->overdue = loop_.RunAt(call->deadline, [this, call] {
    base::Reader nothing({});
    OnReply(*call, absl::DeadlineExceededError("as many questions to the directory as may be are under way"), nothing);
  });
}

void Locates::SendWaiting() {
  while (sent_ < kMaxCalls && !waiting_.empty()) {
    Call& next = *waiting_.front();
    waiting_.pop_front();
    Send(next);
  }
}

void Locates::Send(Call& call) {
  call.overdue.Cancel();
  auto& asked = call.asked;
  asked.erase(std::remove(asked.begin(), asked.end(), nullptr), asked.end());
  base::Writer request = BeginRequest(RequestKind::kLocate);
  request.Text(call.puller);
  request.Integer(static_cast<uint32_t>(asked.size()));
  for (size_t i = 0; i < asked.size(); ++i) {
    asked[i]->place = i;
    request.Id(asked[i]->id);
    request.Integer<uint8_t>(asked[i]->may_bring ? 1 : 0);
  }
  ++sent_;
  call.under_way =
      ask_(request, std::max(call.deadline - loop_.Now(), base::Duration()),
           [this, &call](const absl::Status& status, base::Reader& reader) { OnReply(call, status, reader); });
}

std::unique_ptr<Locates::Call> Locates::Take(const Call& call) {
  const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const auto& one) { return one.get() == &call; });
  std::unique_ptr<Call> taken = std::move(*found);
  calls_.erase(found);
  if (taken->under_way != nullptr) --sent_;
  if (taken->under_way == nullptr) waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), &call), waiting_.end());
  return taken;
}

void Locates::Drop(Locating& locating) {
  --under_way_;
  Call& call = *locating.call;
  call.asked[locating.place] = nullptr;
  if (--call.live > 0) return;
  if (&call == gathering_) {
    gathering_ = nullptr;
    flushing_.Cancel();
  }
  const std::unique_ptr<Call> ended = Take(call);  // its handle cancels the request
  // Later: the next ones may be dropped now, too.
  if (!waiting_.empty() && !sending_.armed()) sending_ = loop_.Post([this] { SendWaiting(); });
}

// May drop other Locates, or all of this.
void Locates::OnReply(const Call& ended, const absl::Status& status, base::Reader& reader) {
  const std::unique_ptr<Call> call = Take(ended);
  const base::Lifetime::Watch gone = lifetime_.Watched();
  ++call->live;  // it outlives them all
  const uint32_t count = status.ok() ? reader.Count(call->asked.size(), 1) : 0;
  absl::Status trouble = status.ok() && count == 0 ? MalformedReply() : status;
  for (size_t place = 0; place < call->asked.size(); ++place) {
    absl::StatusOr<LocatedObject> result = MalformedReply();
    Locating* const locating = std::exchange(call->asked[place], nullptr);
    if (trouble.ok() && place < count) {
      result = ReadLocated(reader, locating == nullptr ? nullptr : &locating->id);
      if (!reader.ok() || (place + 1 == count && !reader.Complete())) result = trouble = MalformedReply();
    }
    if (locating == nullptr) continue;
    if (trouble.ok() && place >= count) {  // the reply had no room for it
      Add(*locating, call->puller, call->deadline);
      continue;
    }
    if (!trouble.ok()) result = trouble;
    --call->live;
    --under_way_;
    Answer(*locating, std::move(result));
    if (gone.over()) return Orphan(*call);
  }
  Flush();
  SendWaiting();
}

void Locates::Orphan(const Call& call) {
  for (Locating* locating : call.asked) {
    if (locating != nullptr) locating->locates = nullptr;
  }
}

void Locates::Answer(Locating& locating, absl::StatusOr<LocatedObject> result) {
  locating.locates = nullptr;
  const Directory::LocateCallback done = std::move(locating.done);
  done(std::move(result));
}

}  // namespace tokamak::directory
