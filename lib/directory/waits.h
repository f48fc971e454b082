// Waits holds the askers of a local directory that wait for an object to appear.
//
// Each is a handle: dropping it removes all of it at once.
// Thread rule: the directory's loop.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/answers.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/object_id.h"
#include "lib/directory/directory.h"

namespace tokamak::directory {

class Waits final {
 public:
  static constexpr size_t kAskedAtOnce = 1000;  // objects in one step of AskAgain

  // For the place of an object, which `puller` may pull, or only for the news that it has one.
  struct Asker {
    base::ObjectId id;
    NodeId puller;
    bool only_told = false;
  };

  // Nothing: the asker waits on.
  using Result = std::optional<absl::StatusOr<LocatedObject>>;
  using Find = std::function<Result(const Asker& asker)>;

  // `loop` and `answers` must outlive it.
  Waits(base::EventLoop& loop, base::Answers& answers, Find find)
      : loop_(loop), answers_(answers), find_(std::move(find)) {}
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;
  ~Waits();

  // `count`, if not null, counts it while it waits.
  [[nodiscard]] base::Pending Add(const Asker& asker, std::optional<base::Duration> wait, size_t* count,
                                  Directory::LocateCallback done);

  // Answers the askers of `id`, in order.
  void Wake(const base::ObjectId& id);

  // The same for a part of all objects, from the beginning if `first`. Returns true if there are
  // more.
  bool AskAgain(bool first);

  size_t size() const { return size_; }

 private:
  // On its object's list until answered or dropped.
  struct Wait final : base::Handle {
    ~Wait() override {
      if (waits != nullptr) waits->Remove(*this);
    }

    Waits* waits = nullptr;
    Asker asker;
    size_t* count = nullptr;
    Directory::LocateCallback done;
    base::Timer timeout;
    base::Pending answer;
    base::Link<Wait> link;
  };

  void Remove(Wait& wait);

  base::EventLoop& loop_;
  base::Answers& answers_;
  const Find find_;
  size_t size_ = 0;
  std::map<base::ObjectId, base::IntrusiveList<Wait, &Wait::link>> waiting_;
  base::ObjectId asked_;  // up to here
};

}  // namespace tokamak::directory
