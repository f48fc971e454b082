// ServerWatch checks from time to time whether the server endangers the directory, and warns in the
// log: that it may evict keys, that it has, that a failover may lose more than it need.
//
// Each danger is logged once, and again when it has been away.
// Thread rule: its loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/directory/redis/server/server_connection.h"

namespace tokamak::directory::redis {

class ServerWatch final {
 public:
  static constexpr base::Duration kLookEvery = base::Seconds(10);

  // Both must outlive it.
  ServerWatch(base::EventLoop& loop, ServerConnection& connection) : loop_(loop), connection_(connection) {}

  // At the start of each connection.
  void Look();

 private:
  void Heard(const Reply& reply);

  base::EventLoop& loop_;
  ServerConnection& connection_;
  std::vector<std::string> told_;
  std::string run_id_;  // of the last server
  uint64_t evicted_keys_ = 0;
  base::Pending asked_;
  base::Timer next_;
};

}  // namespace tokamak::directory::redis
