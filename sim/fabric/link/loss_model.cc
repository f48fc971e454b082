#include "sim/fabric/link/loss_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tokamak::sim {
namespace {

absl::Status CheckProbability(const char* name, double value) {
  if (value >= 0 && value <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, ": a probability lies between 0 and 1"));
}

}  // namespace

absl::Status LossOptions::Check() const {
  if (absl::Status s = CheckProbability("rate", rate); !s.ok()) return s;
  if (absl::Status s = CheckProbability("burst_rate", burst_rate); !s.ok()) return s;
  if (absl::Status s = CheckProbability("corrupt", corrupt); !s.ok()) return s;
  if (!(burst_length >= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("burst_length is ", burst_length, ": a burst has a packet at least"));
  }
  for (size_t i = 0; i < nth.size(); ++i) {
    if (nth[i] > (i == 0 ? 0 : nth[i - 1])) continue;
    return absl::InvalidArgumentError("nth: write the numbers of packets in rising order; the first packet is 1");
  }
  return absl::OkStatus();
}

LossModel::Fate LossModel::Judge() {
  ++packets_;
  if (next_listed_ < options_.nth.size() && options_.nth[next_listed_] == packets_) {
    ++next_listed_;
    return Fate::kLost;
  }
  if (options_.rate > 0 && random_.Chance(options_.rate)) return Fate::kLost;
  if (options_.burst_rate > 0 && InBurst()) return Fate::kLost;
  if (options_.corrupt > 0 && random_.Chance(options_.corrupt)) return Fate::kCorrupt;
  return Fate::kArrives;
}

bool LossModel::InBurst() {
  bad_ = random_.Chance(bad_ ? 1 - 1 / options_.burst_length : options_.burst_rate);
  return bad_;
}

}  // namespace tokamak::sim
