#include "lib/directory/remote/watch_session.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tokamak::directory {

namespace {

// Bytes: of a reply, beside its results; of a result, beside name and holders.
constexpr size_t kResultsOverhead = 16;
constexpr size_t kResultOverhead = 64;
constexpr size_t kRoomForName = sizeof(uint32_t) + kMaxNodeName;
constexpr size_t kRoomForResult = kResultOverhead + base::ObjectName::kMaxSize + kRoomForName;

void WriteResult(base::Writer& writer, const WatchResult& result, size_t room) {
  writer.Integer(result.number);
  WriteStatus(writer, result.object.status(), kResultOverhead);
  if (!result.object.ok()) return;
  LocatedObject object = *result.object;
  const size_t room_for_holders = room - kResultOverhead - object.name.text().size();
  object.holders.resize(std::min(object.holders.size(), room_for_holders / kRoomForName));
  WriteObject(writer, object);
}

}  // namespace

WatchSession::~WatchSession() {
  if (poll_ == nullptr) return;
  const transport::Reply reply = std::exchange(poll_->reply, nullptr);  // dropped last: it may end the poll
  poll_->session = nullptr;
  poll_->turn.Cancel();
}

// ready_ may contain ended watches.
bool WatchSession::TooMany(size_t more) const {
  return std::max(watches_.size(), ready_.size()) + more > kMaxWaitsOfPeer || !watched_.MayTake(host_, more);
}

void WatchSession::Begin(const WatchRequest& watch, const NodeId& puller) {
  watches_.erase(watch.number);
  watches_[watch.number] = {watch, watch.pulls ? puller : NodeId(), nullptr, absl::OkStatus(), watched_.Take(host_)};
  Ready(watch.number);
}

void WatchSession::Ready(uint64_t number) {
  ready_.push_back(number);
  if (poll_ == nullptr || answering_.armed()) return;
  answering_ = loop_.Post([this] {
    if (poll_ != nullptr) TellPoll(/*even_nothing=*/false);
  });
}

bool WatchSession::Look(Watch& watch, WatchResult* result) {
  result->number = watch.request.number;
  watch.waits.reset();
  if (!watch.refused.ok()) {
    result->object = watch.refused;
  } else if (Waits::Result found = directory_.Find(watch.request.id, watch.puller)) {
    result->object = *std::move(found);
  } else if (watch.request.once) {
    result->object = absl::NotFoundError("no node holds the object");
  } else {
    watch.waits = directory_.Watch(watch.request.id, [this, &watch](const absl::Status& status) {
      watch.refused = status;
      Ready(watch.request.number);
    });
    return false;
  }
  return true;
}

bool WatchSession::Tell(const transport::Reply& reply, bool even_nothing) {
  base::Writer results;
  uint32_t count = 0;
  const size_t room = max_reply_ - kResultsOverhead;
  for (; !ready_.empty() && results.size() + kRoomForResult <= room; ready_.pop_front()) {
    const auto watch = watches_.find(ready_.front());
    WatchResult result;
    if (watch == watches_.end() || !Look(watch->second, &result)) continue;
    WriteResult(results, result, room - results.size());
    watches_.erase(watch);
    ++count;
  }
  if (count == 0 && !even_nothing) return false;
  base::Writer writer;
  WriteStatus(writer, absl::OkStatus());
  writer.Integer(count);
  writer.Raw(results.bytes());
  reply(writer.bytes());
  return true;
}

base::Pending WatchSession::Poll(transport::Reply reply) {
  if (poll_ != nullptr) TellPoll(/*even_nothing=*/true);
  if (Tell(reply, /*even_nothing=*/false)) return nullptr;
  auto poll = std::make_unique<HeldPoll>();
  poll->session = this;
  poll->reply = std::move(reply);
  poll->turn = loop_.RunAfter(kPollTurn, [this] { TellPoll(/*even_nothing=*/true); });
  poll_ = poll.get();
  return poll;
}

void WatchSession::TellPoll(bool even_nothing) {
  const transport::Reply reply = poll_->reply;
  if (!Tell(reply, even_nothing) || poll_ == nullptr) return;
  poll_->session = nullptr;
  poll_->reply = nullptr;
  poll_->turn.Cancel();
  poll_ = nullptr;
}

}  // namespace tokamak::directory
