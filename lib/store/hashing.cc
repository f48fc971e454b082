#include "lib/store/hashing.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/check.h"
#include "lib/store/hash.h"
#include "lib/store/store.h"

namespace tokamak::store {

class Hashing::Job final : public base::Handle, public Listed {
 public:
  Job(Hashing& all, const base::ObjectId& id, Owner who, HashCallback callback)
      : all_(all),
        all_gone_(all.lifetime_.Watched()),
        id_(id),
        who_(who),
        callback_(std::move(callback)),
        location_(all.store_.Acquire(id, all.pinner_)) {}

  ~Job() override {
    if (!all_gone_.over() && Jobs::Listed(this)) all_.Remove(*this);
  }

  void GiveBack() {
    if (location_.ok()) CHECK(all_.store_.Release(id_, all_.pinner_).ok());
  }

  // May destroy this, others and the store.
  void HashSlice() {
    if (!location_.ok()) return Finish(location_.status());
    absl::Span<const uint8_t> rest = all_.store_.Bytes(*location_).subspan(done_);
    rest = rest.subspan(0, std::min(rest.size(), base::kMaxCopyPerTask));
    hash_.Add(rest);
    done_ += rest.size();
    if (done_ == location_->total_size()) Finish(hash_.hash());
  }

  Owner who() const { return who_; }

 private:
  void Finish(absl::StatusOr<uint64_t> result) {
    all_.Remove(*this);
    const HashCallback callback = std::move(callback_);
    callback(std::move(result));
  }

  Hashing& all_;
  const base::Lifetime::Watch all_gone_;
  const base::ObjectId id_;
  const Owner who_;
  HashCallback callback_;
  const absl::StatusOr<Location> location_;
  uint64_t done_ = 0;
  StreamHash hash_;
};

base::Pending Hashing::Start(const base::ObjectId& id, Owner who, HashCallback callback) {
  auto job = std::make_unique<Job>(*this, id, who, std::move(callback));
  jobs_[who].PushBack(job.get());
  if (!turn_.armed()) turn_ = loop_.Post([this] { NextSlice(); });
  return job;
}

void Hashing::NextSlice() {
  if (jobs_.empty()) return;  // jobs were dropped
  auto next = jobs_.upper_bound(last_);
  if (next == jobs_.end()) next = jobs_.begin();
  last_ = next->first;
  const base::Lifetime::Watch gone = lifetime_.Watched();
  static_cast<Job*>(next->second.first())->HashSlice();
  if (gone.over()) return;
  if (!jobs_.empty() && !turn_.armed()) turn_ = loop_.Post([this] { NextSlice(); });
}

void Hashing::Remove(Job& job) {
  const auto of_owner = jobs_.find(job.who());
  of_owner->second.Remove(&job);
  if (of_owner->second.empty()) jobs_.erase(of_owner);
  job.GiveBack();
}

}  // namespace tokamak::store
