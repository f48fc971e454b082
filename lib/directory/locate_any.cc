// LocalDirectory::LocateAny: one wait for the first of many objects.
#include <utility>

#include "lib/directory/local.h"

namespace tokamak::directory {

class LocalDirectory::Any final : public AnyWait {
 public:
  Any(LocalDirectory& directory, const std::vector<base::ObjectId>& ids, AnyCallback done)
      : directory_(directory), directory_alive_(directory.alive_), ids_(ids), done_(std::move(done)) {}

  ~Any() override {
    if (!directory_alive_.expired()) StopWaiting();
  }

  void Begin(base::Duration wait) {
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (const ObjectInfo* held = directory_.FindHeld(ids_[i])) found_.emplace_back(i, *held);
    }
    if (!found_.empty() || wait <= base::Duration()) return EndSoon();
    if (directory_.waiting_ + ids_.size() > directory_.bounds_.waiting) {
      in_vain_ = absl::ResourceExhaustedError("too many wait in the directory for objects to appear: try again later");
      return EndSoon();
    }
    for (size_t i = 0; i < ids_.size(); ++i) {
      const auto appeared = [self = std::weak_ptr<Any*>(self_), i](absl::StatusOr<ObjectInfo> info) {
        if (const auto any = self.lock()) (*any)->Appeared(i, *std::move(info));
      };
      numbers_.push_back(directory_.AddWaiting(ids_[i], appeared));
    }
    end_ = directory_.loop_.RunAfter(wait, [this] { End(); });
  }

 private:
  // Others may have appeared with it: the end comes after all that is being told now.
  void Appeared(size_t index, ObjectInfo info) {
    found_.emplace_back(index, std::move(info));
    if (found_.size() == 1) EndSoon();
  }

  void EndSoon() {
    end_ = directory_.loop_.Post([this] { End(); });
  }

  void End() {
    StopWaiting();
    const AnyCallback done = std::move(done_);
    if (found_.empty()) return done(in_vain_);
    done(std::move(found_));  // may drop this
  }

  void StopWaiting() {
    for (size_t i = 0; i < numbers_.size(); ++i) directory_.DropWaiting(ids_[i], numbers_[i]);
    numbers_.clear();
  }

  LocalDirectory& directory_;
  const std::weak_ptr<char> directory_alive_;
  const std::vector<base::ObjectId> ids_;
  AnyCallback done_;
  std::vector<uint64_t> numbers_;  // of what waits, by place in ids_
  Found found_;
  absl::Status in_vain_ = absl::NotFoundError("no node holds any of the objects");
  base::Timer end_;
  const std::shared_ptr<Any*> self_ = std::make_shared<Any*>(this);  // for answers on their way
};

std::unique_ptr<AnyWait> LocalDirectory::LocateAny(const std::vector<base::ObjectId>& ids, base::Duration wait,
                                                   AnyCallback done) {
  auto any = std::make_unique<Any>(*this, ids, std::move(done));
  any->Begin(wait);
  return any;
}

}  // namespace tokamak::directory
