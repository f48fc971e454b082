// PathCache keeps the paths that InfiniBand's subnet manager gave, so connecting to a peer again
// does not ask it.
//
// A path may go stale. So it is forgotten when connecting by it has failed, all of them when the
// port reports a change (ChangesPaths), and each after kLifetime.
//
// Law: at most kMaxPaths; the oldest goes first.
// Thread rule: any thread.
#pragma once

#include <infiniband/sa.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "lib/base/mutex.h"
#include "lib/base/time.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// Returns RDMA_OPTION_IB_PATH for a path that the kernel resolved: it is the only one, both ways,
// and for the messages that make the connection, too.
ibv_path_data ToPathData(const ibv_sa_path_rec& path);

// True if `event` makes the port's paths stale.
bool ChangesPaths(const ibv_async_event& event, uint8_t port);

class PathCache final {
 public:
  static constexpr base::Duration kLifetime = base::Seconds(300);
  static constexpr size_t kMaxPaths = 8192;

  using Clock = uint64_t (*)();  // nanoseconds, monotonic
  explicit PathCache(Clock clock) : clock_(clock) {}

  std::optional<ibv_path_data> Find(const Address& peer);
  void Keep(const Address& peer, const ibv_path_data& path);
  void Forget(const Address& peer);
  void Clear();

 private:
  using Host = decltype(Address::ip);
  struct Path {
    ibv_path_data data;
    uint64_t kept;  // by clock_
  };

  bool IsOld(const Path& path) const;

  const Clock clock_;
  base::Mutex mutex_;
  std::map<Host, Path> paths_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::verbs::ibv
