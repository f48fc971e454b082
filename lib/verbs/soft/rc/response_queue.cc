#include "lib/verbs/soft/rc/response_queue.h"

#include <algorithm>

namespace tokamak::verbs::soft {

void ResponseQueue::PopFront() { Erase(0); }

void ResponseQueue::Clear() {
  responses_.clear();
  fresh_ = 0;
}

bool ResponseQueue::Append(const Response& response) {
  if (responses_.size() >= capacity_) return false;
  responses_.push_back(response);
  ++fresh_;
  return true;
}

bool ResponseQueue::Replay(const Response& replay) {
  // Room for the new one, and for the rest of one that it may cut in two.
  if (responses_.size() + 2 > capacity_) return false;
  size_t at = 0;
  while (at < responses_.size() && responses_[at].end <= replay.first) ++at;
  if (at < responses_.size() && responses_[at].first < replay.first) {
    // The head of an older response stays.
    Response tail = responses_[at];
    Response& head = responses_[at];
    head.end = replay.first;
    if (head.position >= head.end) {
      Erase(at);
    } else {
      ++at;
    }
    if (tail.end > replay.end) {
      tail.first = replay.end;
      tail.position = std::max(tail.position, tail.first);
      tail.replay = true;
      responses_.insert(responses_.begin() + static_cast<ptrdiff_t>(at), tail);
    }
  }
  while (at < responses_.size() && responses_[at].end <= replay.end) Erase(at);
  if (at < responses_.size() && responses_[at].first < replay.end) {
    responses_[at].first = replay.end;
    responses_[at].position = std::max(responses_[at].position, replay.end);
  }
  responses_.insert(responses_.begin() + static_cast<ptrdiff_t>(at), replay);
  responses_[at].replay = true;
  return true;
}

void ResponseQueue::Erase(size_t at) {
  if (!responses_[at].replay) --fresh_;
  responses_.erase(responses_.begin() + static_cast<ptrdiff_t>(at));
}

}  // namespace tokamak::verbs::soft
