// HostCosts says how much processor time a host's calls to its NIC take, and its copies.
//
// Figures with sources: presets.h; spent by costed_device.h, counted by closed_form.h.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::sim {

constexpr uint64_t kHostPage = 4096;  // bytes

struct HostCosts {
  base::Duration post;        // of each request, to send or to receive
  base::Duration completion;  // of each polled

  // Per region, and per page of it, a partial one included.
  base::Duration registration;
  base::Duration registration_page;
  base::Duration deregistration;
  base::Duration deregistration_page;

  uint64_t copy_bandwidth = 0;  // bytes per second; 0: no time

  base::Duration client_round_trip;  // from a program to its node and back
};

}  // namespace tokamak::sim
