#include "lib/store/hashing.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"
#include "lib/base/bytes.h"
#include "lib/store/hash.h"
#include "lib/store/store.h"

namespace tokamak::store {

class Hashing::Job final : public Handle {
 public:
  Job(Hashing& all, const base::ObjectId& id, HashCallback callback)
      : all_(&all), id_(id), callback_(std::move(callback)), location_(all.store_.Acquire(id, all.who_)) {
    all_->jobs_.insert(this);
    PostNext();
  }

  ~Job() override { Forget(); }

  void Orphan() {
    all_ = nullptr;
    timer_.Cancel();
  }

 private:
  void PostNext() {
    timer_ = all_->loop_.Post([this] { Next(); });
  }

  void Next() {
    if (!location_.ok()) return Finish(location_.status());
    absl::Span<const uint8_t> rest = all_->store_.Bytes(*location_).subspan(done_);
    rest = rest.subspan(0, std::min(rest.size(), base::kMaxCopyPerTask));
    hash_.Add(rest);
    done_ += rest.size();
    if (done_ < location_->total_size()) return PostNext();
    Finish(hash_.hash());
  }

  void Finish(absl::StatusOr<uint64_t> result) {
    Forget();
    const HashCallback callback = std::move(callback_);
    callback(std::move(result));  // may destroy this
  }

  void Forget() {
    if (all_ == nullptr) return;
    if (location_.ok()) CHECK(all_->store_.Release(id_, all_->who_).ok());
    all_->jobs_.erase(this);
    all_ = nullptr;
  }

  Hashing* all_;  // null once it has ended
  const base::ObjectId id_;
  HashCallback callback_;
  const absl::StatusOr<Location> location_;
  uint64_t done_ = 0;
  StreamHash hash_;
  base::Timer timer_;
};

Hashing::~Hashing() {
  for (Job* job : jobs_) job->Orphan();
}

std::unique_ptr<Handle> Hashing::Start(const base::ObjectId& id, HashCallback callback) {
  return std::make_unique<Job>(*this, id, std::move(callback));
}

}  // namespace tokamak::store
