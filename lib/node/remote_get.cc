#include "lib/node/remote_get.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::node {

RemoteGet::RemoteGet(base::EventLoop& loop, store::Store& store, PullTable& pulls, GetLatency& latency,
                     absl::Span<const base::ObjectId> ids, const GetOptions& options, store::Owner who,
                     Node::GetCallback done)
    : loop_(loop),
      store_(store),
      pulls_(pulls),
      latency_(latency),
      began_(loop.Now()),
      ids_(ids.begin(), ids.end()),
      options_(options),
      who_(who),
      done_(std::move(done)),
      waiters_(ids_.size()),
      failures_(ids_.size()) {
  AnswerAt(began_ + options_.timeout);
  if (options_.local_only || options_.timeout <= base::Duration()) return;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!store_.Contains(ids_[i])) Pull(i);
  }
}

void RemoteGet::Pull(size_t index) {
  ++pulling_;
  waiters_[index] = pulls_.Start(ids_[index], options_.protocol,
                                 [this, index](const absl::Status& status) { Pulled(index, status); });
}

void RemoteGet::Pulled(size_t index, const absl::Status& status) {
  --pulling_;
  failures_[index] = status;
  failed_ = failed_ || !status.ok();
  // No pull runs, and some object can never come.
  if (pulling_ == 0 && failed_) AnswerAt(loop_.Now());
}

void RemoteGet::AnswerAt(base::Time deadline) {
  get_ = store_.GetLater(ids_, deadline, who_, [this](absl::Span<const store::GetEntry> entries) { Answer(entries); });
}

void RemoteGet::Answer(absl::Span<const store::GetEntry> entries) {
  Few<GetResult> results(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    results[i].id = entries[i].id;
    results[i].location = entries[i].location;
    if (entries[i].location.has_value()) {
      Count(i, *entries[i].location);
    } else {
      results[i].status = entries[i].refused.ok() ? WhyMissing(i) : entries[i].refused;
    }
  }
  waiters_.clear();
  const Node::GetCallback done = std::move(done_);
  done(results);  // may destroy this
}

void RemoteGet::Count(size_t index, const store::Location& location) const {
  const Via via = waiters_[index] == nullptr ? Via::kLocal : waiters_[index]->via();
  latency_.Add(via, location.total_size(), loop_.Now() - began_);
}

absl::Status RemoteGet::WhyMissing(size_t index) const {
  if (!failures_[index].ok()) return failures_[index];
  if (options_.local_only || waiters_[index] == nullptr) return absl::NotFoundError("the object is not on this node");
  const absl::Status trouble = waiters_[index]->trouble();
  if (absl::IsNotFound(trouble)) return trouble;
  if (trouble.ok()) return absl::DeadlineExceededError("the object did not arrive in time: try a longer time-out");
  return absl::DeadlineExceededError(
      absl::StrCat("the object did not arrive in time; last trouble: ", trouble.ToString()));
}

}  // namespace tokamak::node
