// HostCosts says how much processor time a host's calls to its NIC take, and its copies.
//
// Plain data: presets.h has such figures with their sources, costed_device.h spends them, and
// closed_form.h counts with them.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::sim {

constexpr uint64_t kHostPage = 4096;  // bytes

struct HostCosts {
  base::Duration post;        // of each request, to send or to receive
  base::Duration completion;  // of each that is polled

  // For each region, and for each page of it, the last of which may be partial.
  base::Duration registration;
  base::Duration registration_page;
  base::Duration deregistration;
  base::Duration deregistration_page;

  uint64_t copy_bandwidth = 0;  // bytes per second; 0: a copy takes no time

  base::Duration client_round_trip;  // a program asks its node, and is answered
};

}  // namespace tokamak::sim
