// StreamCosts say what processors spend on a simulated stream (simulated_streams.h), and how the
// kernel that is modelled treats small pieces.
//
// Copies are as fast as the host's other copies: the loop knows. The other figures are those of a
// Linux host, each with its source; none was measured on hosts with such a network.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace tokamak::bench {

struct StreamCosts {
  // Time of each call that sends, receives or asks what is ready. Source: 350 to 450 ns for the
  // cheapest call of a machine with the usual mitigations (several published measurements of
  // getpid); the work of the call is counted as packets and copies.
  base::Duration system_call = base::Nanoseconds(400);

  // Time of each packet, at the sender and at the receiver, beside the copy. Source: one processor
  // moves about 42 Gb/s of one stream (Cai et al., Understanding Host Network Stack Overheads,
  // SIGCOMM 2021, with all offloads), so 4 KiB in 780 ns, of which 558 ns are the copy at
  // cx6-200g's 7000 MiB/s.
  base::Duration packet = base::Nanoseconds(222);

  // How long a receiver waits with an acknowledgement of a single small piece. Source: Linux,
  // TCP_DELACK_MIN.
  base::Duration delayed_acknowledgement = base::Milliseconds(40);

  // Bytes at each end, unless set explicitly. Source: Linux, half of the largest net.ipv4.tcp_rmem
  // of 6 MiB, which streams of a fast network soon reach.
  uint32_t buffer = 3 << 20;

  // Costs without processor time.
  static StreamCosts None() {
    StreamCosts none;
    none.system_call = none.packet = base::Duration();
    return none;
  }
};

}  // namespace tokamak::bench
