// Refusals logs why peers were refused: at most one line in a second, with the number of those in
// between, since a stranger can have us refuse him as often as he likes.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/verbs/types.h"

namespace tokamak::transport {

class Refusals final {
 public:
  void Log(base::Time now, const verbs::Address& peer, const absl::Status& why) {
    if (logged_.has_value() && now - *logged_ < base::Seconds(1)) {
      ++unlogged_;
      return;
    }
    LOG(WARNING) << "refused a connection of " << peer.ToString() << ": " << why;
    if (unlogged_ > 0) LOG(WARNING) << "refused " << unlogged_ << " further connections since the line before";
    logged_ = now;
    unlogged_ = 0;
  }

 private:
  std::optional<base::Time> logged_;
  uint64_t unlogged_ = 0;
};

}  // namespace tokamak::transport
