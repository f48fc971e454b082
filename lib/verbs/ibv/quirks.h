// What providers do otherwise than libibverbs promises, and what we have to mind, by the vendor that a device names. Found with Linux
// 6.1 and rdma-core 44; docs/verbs.md says what becomes of each.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace tokamak::verbs::ibv {

struct Quirks {
  // rdma_rxe holds who uses a memory window to the bounds of the region below, not to the window's (check_rkey in rxe_resp.c), and
  // takes back no key that a peer hands back. That is no window.
  bool windows_are_open = false;

  // siw's library takes one of the places in which the kernel offers it a queue's memory for "none", see context.cc.
  bool forbids_a_place = false;

  // siw raises no event for a solicited receive while it is armed for these alone: it has to be armed for all.
  bool forgets_solicited = false;

  // siw hands the program's own pages to TCP when a request of this many bytes is not signaled (siw_qp_prepare_tx), and TCP may send
  // them, again even, after a later request has completed and the program has written into them. So it has to be signaled. 0: no.
  uint32_t borrows_unsignaled_from = 0;
};

inline Quirks QuirksOf(const ibv_device_attr& device) {
  constexpr uint32_t kRxe = 0xffffff, kSiw = 0x626d74;
  Quirks quirks;
  quirks.windows_are_open = device.vendor_id == kRxe;
  quirks.forbids_a_place = quirks.forgets_solicited = device.vendor_id == kSiw;
  quirks.borrows_unsignaled_from = device.vendor_id == kSiw ? 4096 : 0;
  return quirks;
}

}  // namespace tokamak::verbs::ibv
