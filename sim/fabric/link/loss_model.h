// LossModel decides which packets a link loses or damages: by chance, in bursts, or by number.
//
// Each link has a random stream of its own. Bursts are Gilbert's (1960): a link is good, or bad and
// loses everything.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/random.h"

namespace tokamak::sim {

struct LossOptions {
  double rate = 0;            // probability for each packet
  double burst_rate = 0;      // probability that a burst begins with a packet
  double burst_length = 1;    // mean, in packets; at least 1
  std::vector<uint64_t> nth;  // of the packets to lose, rising; the first is 1
  double corrupt = 0;         // probability of damage, which the receiver counts and drops

  bool any() const { return rate > 0 || burst_rate > 0 || !nth.empty() || corrupt > 0; }

  absl::Status Check() const;
};

class LossModel final {
 public:
  enum class Fate : uint8_t { kArrives, kLost, kCorrupt };

  // The options must be valid.
  LossModel(LossOptions options, const base::Random& random) : options_(std::move(options)), random_(random) {}

  Fate Judge();

 private:
  bool InBurst();

  LossOptions options_;
  base::Random random_;
  uint64_t packets_ = 0;
  size_t next_listed_ = 0;
  bool bad_ = false;
};

}  // namespace tokamak::sim
