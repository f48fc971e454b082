#include "lib/directory/remote/waits.h"

#include <algorithm>
#include <utility>

#include "lib/directory/remote/messages.h"

namespace tokamak::directory {

namespace {

constexpr base::Duration kLongTurn = base::Seconds(20);
constexpr base::Duration kShortTurn = base::Milliseconds(50);
static_assert(kLongTurn <= kMaxRemoteWait, "the server waits no longer");

constexpr base::Duration kAnswerTime = base::Seconds(2);         // for a reply, beside the wait
constexpr base::Duration kRetryDelay = base::Milliseconds(100);  // after a held call failed
constexpr size_t kRequestOverhead = 16;

// What was found of `count` objects that were asked for; `more`: there is more than fitted the reply.
struct FoundReply {
  std::map<size_t, ObjectInfo> objects;  // by place in the request
  bool more = false;
};

absl::StatusOr<FoundReply> ReadFound(const absl::Status& status, base::Reader& reader, size_t count) {
  if (absl::IsNotFound(status)) return FoundReply();
  if (!status.ok()) return status;
  FoundReply found;
  found.more = reader.Integer<uint8_t>() != 0;
  const uint32_t entries = reader.Count(static_cast<uint32_t>(count), sizeof(uint32_t));
  for (uint32_t i = 0; i < entries && reader.ok(); ++i) {
    const auto place = reader.Integer<uint32_t>();
    ObjectInfo object = ReadObject(reader);
    if (place >= count || object.holders.empty()) return NonsenseReply();
    found.objects.emplace(place, std::move(object));
  }
  if (!reader.Complete() || found.objects.empty()) return NonsenseReply();
  return found;
}

}  // namespace

RemoteWaits::RemoteWaits(base::EventLoop& loop, size_t max_request, Ask ask)
    : loop_(loop),
      ids_per_call_(std::clamp<size_t>(
          (std::max(max_request, kRequestOverhead) - kRequestOverhead) / base::ObjectId::kSize, 1, kMaxIdsAsked)),
      ask_(std::move(ask)),
      answers_(loop) {}

void RemoteWaits::Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline,
                         Directory::LocateCallback done) {
  if (waiting_ >= kMaxWaiting) {
    return answers_.Add([done = std::move(done)] {
      done(absl::ResourceExhaustedError("too many wait in the directory for objects to appear: try again later"));
    });
  }
  ++waiting_;
  const uint64_t number = ++last_number_;
  Awaited& awaited = awaited_[id];
  Locating& locating = awaited.locating[number];
  locating.done = std::move(done);
  locating.deadline = loop_.Now() + deadline;
  locating.wait_end = loop_.RunAfter(wait, [this, id, number] { WaitOver(base::ObjectId(id), number); });
  if (awaited.asked || seasoned_.count(id) != 0) return;
  fresh_.insert(id);
  AskSoon();
}

// What comes in one task, or before the next, goes together.
void RemoteWaits::AskSoon() {
  if (!asking_.armed()) asking_ = loop_.Post([this] { AskNow(); });
}

void RemoteWaits::AskNow() {
  while (!last_chances_.empty()) AskLast();
  if (retry_.armed()) return;
  const auto fills_a_call = [this] { return seasoned_.size() + fresh_.size() >= ids_per_call_; };
  while (long_calls_ < kLongCalls && (!seasoned_.empty() || fills_a_call())) HoldCall(Turn::kLong);
  if (!short_call_ && !(seasoned_.empty() && fresh_.empty())) HoldCall(Turn::kShort);
}

base::Writer RemoteWaits::Request(const std::vector<base::ObjectId>& ids, base::Duration wait) const {
  base::Writer request;
  request.Integer(static_cast<uint8_t>(RequestKind::kLocateAny));
  request.Integer(wait.picoseconds());
  request.Integer(static_cast<uint32_t>(ids.size()));
  for (const base::ObjectId& id : ids) request.Id(id);
  return request;
}

void RemoteWaits::HoldCall(Turn turn) {
  std::vector<base::ObjectId> ids;
  TakeInto(ids, turn == Turn::kShort ? fresh_ : seasoned_);
  TakeInto(ids, turn == Turn::kShort ? seasoned_ : fresh_);
  const bool is_short = turn == Turn::kShort;
  if (is_short) short_call_ = true;
  if (!is_short) ++long_calls_;
  const base::Duration wait = is_short ? kShortTurn : kLongTurn;
  const base::Writer request = Request(ids, wait);
  ask_(request, wait + kAnswerTime,
       [this, is_short, ids = std::move(ids)](const absl::Status& status, base::Reader& reader) {
         if (is_short) short_call_ = false;
         if (!is_short) --long_calls_;
         HeldCallEnded(ids, status, reader);
       });
}

void RemoteWaits::TakeInto(std::vector<base::ObjectId>& ids, std::set<base::ObjectId>& from) {
  while (!from.empty() && ids.size() < ids_per_call_) {
    ids.push_back(*from.begin());
    from.erase(from.begin());
    awaited_[ids.back()].asked = true;
  }
}

void RemoteWaits::HeldCallEnded(const std::vector<base::ObjectId>& ids, const absl::Status& status,
                                base::Reader& reader) {
  const absl::StatusOr<FoundReply> found = ReadFound(status, reader, ids.size());
  if (found.ok()) {
    for (const auto& [place, object] : found->objects) Appeared(ids[place], object);
  } else {
    // An outage is waited out: whose wait ends meanwhile hears of it from its last question.
    retry_ = loop_.RunAfter(kRetryDelay, [this] { AskSoon(); });
  }
  for (const base::ObjectId& id : ids) {
    const auto awaited = awaited_.find(id);
    if (awaited == awaited_.end() || !awaited->second.asked) continue;
    awaited->second.asked = false;
    seasoned_.insert(id);
  }
  AskSoon();
}

void RemoteWaits::Appeared(const base::ObjectId& id, const ObjectInfo& object) {
  auto awaited = awaited_.extract(id);
  if (awaited.empty()) return;
  fresh_.erase(id);
  seasoned_.erase(id);
  for (auto& [number, locating] : awaited.mapped().locating) Answer(std::move(locating.done), object);
}

void RemoteWaits::WaitOver(const base::ObjectId& id, uint64_t number) {
  const auto awaited = awaited_.find(id);
  auto locating = awaited->second.locating.extract(number);
  last_chances_.push_back({id, locating.mapped().deadline, std::move(locating.mapped().done)});
  if (awaited->second.locating.empty()) {
    fresh_.erase(id);
    seasoned_.erase(id);
    awaited_.erase(awaited);  // where it is in a held call, that may still name it: nobody will listen
  }
  AskSoon();
}

void RemoteWaits::AskLast() {
  std::vector<LastChance> chances;
  std::vector<base::ObjectId> ids;
  base::Time deadline = last_chances_.front().deadline;
  while (!last_chances_.empty() && ids.size() < ids_per_call_) {
    chances.push_back(std::move(last_chances_.back()));
    last_chances_.pop_back();
    ids.push_back(chances.back().id);
    deadline = std::min(deadline, chances.back().deadline);
  }
  ask_(Request(ids, base::Duration()), deadline - loop_.Now(),
       [this, chances = std::move(chances)](const absl::Status& status, base::Reader& reader) {
         LastAnswered(chances, status, reader);
       });
}

void RemoteWaits::LastAnswered(const std::vector<LastChance>& chances, const absl::Status& status,
                               base::Reader& reader) {
  const absl::StatusOr<FoundReply> found = ReadFound(status, reader, chances.size());
  for (size_t i = 0; i < chances.size(); ++i) {
    if (!found.ok()) {
      Answer(chances[i].done, found.status());
    } else if (const auto held = found->objects.find(i); held != found->objects.end()) {
      Answer(chances[i].done, held->second);
    } else if (found->more) {
      last_chances_.push_back(chances[i]);
    } else {
      Answer(chances[i].done, absl::NotFoundError("no node holds the object"));
    }
  }
  if (!last_chances_.empty()) AskSoon();
}

void RemoteWaits::Answer(Directory::LocateCallback done, absl::StatusOr<ObjectInfo> result) {
  --waiting_;
  answers_.Add([done = std::move(done), result = std::move(result)] { done(result); });
}

}  // namespace tokamak::directory
