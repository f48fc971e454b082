// HotObjects finds the most used objects of a store, a page in each task: programs do not wait.
//
// Bound: the first kMaxSeen objects by id, a sample independent of use. Thread rule: the store's
// loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

class HotObjects final : public base::Handle {
 public:
  static constexpr size_t kMaxNamed = 32;
  static constexpr size_t kMaxSeen = 65536;

  struct Report {
    std::vector<store::StoredObject> objects;  // sealed; most used first
    uint64_t seen = 0;                         // looked at
    base::Time now;                            // on the store's loop
  };
  using Done = std::function<void(Report)>;

  // References must outlive it. `done` runs once, later.
  [[nodiscard]] static base::Pending Find(base::EventLoop& loop, const store::Store& store, Done done);

 private:
  HotObjects(base::EventLoop& loop, const store::Store& store, Done done);
  void Continue();
  void Look();

  base::EventLoop& loop_;
  const store::Store& store_;
  Done done_;
  Report report_;
  std::optional<base::ObjectId> last_;
  base::Timer turn_;
};

}  // namespace tokamak::daemon
