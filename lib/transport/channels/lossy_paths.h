// LossyPaths remembers the peers to which bulk requests were repeated without success until a
// connection ended.
//
// Go-back-N over a lossy path advances from one acknowledgement to the next, perhaps the end of a
// request. rdma_rxe (Linux 6.1) counts its retries from the last one, so no long WRITE gets
// through. Short requests are acknowledged often, but cost bandwidth where nothing is lost: so they
// are short only for a while.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "lib/base/time.h"

namespace tokamak::transport {

// Packets of a request: at 5 % loss 44 of 100 such requests arrive whole.
constexpr uint32_t kLossyPathPackets = 16;

constexpr base::Duration kLossyPathTime = base::Seconds(60);

// Beyond, the oldest is forgotten.
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
