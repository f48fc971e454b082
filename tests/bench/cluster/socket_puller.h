// SocketPuller pulls over SocketTransfer, which has no directory: it is given each rank's address.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/verbs/types.h"
#include "tests/bench/cluster/puller.h"
#include "tests/bench/streams/socket_transfer.h"

namespace tokamak::bench {

class SocketPuller final : public Puller {
 public:
  // `transfer` must outlive it; `peers` by rank.
  SocketPuller(SocketTransfer& transfer, std::vector<verbs::Address> peers)
      : transfer_(transfer), peers_(std::move(peers)) {}

  base::Pending Pull(uint32_t from, const base::ObjectId& id, store::Owner who, base::Duration timeout,
                     Callback done) override {
    return transfer_.Pull(
        peers_[from], id, who, timeout,
        [done = std::move(done)](const absl::StatusOr<store::Location>& place) { done(place.status()); });
  }

 private:
  SocketTransfer& transfer_;
  const std::vector<verbs::Address> peers_;
};

}  // namespace tokamak::bench
