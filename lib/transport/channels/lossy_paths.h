// LossyPaths remembers the peers to which bulk requests were repeated without success until a
// connection ended with it.
//
// Go-back-N over a path that loses packets gets on from one acknowledgement to the next, and an
// acknowledgement may wait for the end of a request: rdma_rxe (Linux 6.1) counts its retries from
// the last one, whatever the repetitions have brought meanwhile, so that of a long WRITE over such
// a path none arrives. Short requests are acknowledged often, and cost bandwidth where nothing is
// lost. So they are short for a while, and then tried long again.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "lib/base/time.h"

namespace tokamak::transport {

// What a request has to a peer that is remembered: at 5 % loss 44 of 100 such requests arrive
// as a whole.
constexpr uint32_t kLossyPathPackets = 16;

// For how long a peer is remembered.
constexpr base::Duration kLossyPathTime = base::Seconds(60);

// Peers that are remembered; with more, the one that was noted first is forgotten.
constexpr size_t kMaxLossyPaths = 1024;

class LossyPaths final {
 public:
  using Ip = std::array<uint8_t, 16>;

  void Note(const Ip& peer, base::Time now) {
    noted_[peer] = now;
    if (noted_.size() <= kMaxLossyPaths) return;
    noted_.erase(std::min_element(noted_.begin(), noted_.end(),
                                  [](const auto& a, const auto& b) { return a.second < b.second; }));
  }

  bool Has(const Ip& peer, base::Time now) const {
    if (noted_.empty()) return false;
    const auto noted = noted_.find(peer);
    return noted != noted_.end() && now - noted->second < kLossyPathTime;
  }

 private:
  std::map<Ip, base::Time> noted_;
};

}  // namespace tokamak::transport
