// Quirks are deviations of providers from libibverbs' promises that we have to mind, by the vendor
// that a device names. Found with Linux 6.1 and rdma-core 44; docs/verbs.md has the consequences.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace tokamak::verbs::ibv {

struct Quirks {
  // rdma_rxe checks accesses through a window against the region's bounds (check_rkey in
  // rxe_resp.c), and takes back no key that a peer hands back.
  bool windows_are_open = false;

  // rdma_rxe sometimes leaves out bytes of a request that it repeats while it is on its way.
  bool gets_lost_in_repeats = false;

  // siw's library takes one place of a queue's memory for "none", see context.cc.
  bool forbids_a_place = false;

  // siw raises no event for a solicited receive while armed for these alone (siw_rqe_complete): arm
  // for all.
  bool forgets_solicited = false;

  // siw answers a READ of any region of the domain, with the right or without (siw_qp_sq_proc_tx).
  bool reads_any_region = false;

  // siw keeps a queue pair's rights and checks none (siw_proc_write, siw_init_rresp).
  bool ignores_queue_pair_rights = false;

  // siw checks a region when a request begins to leave it, or a READ's first bytes come
  // (siw_check_sgl_tx, siw_proc_rresp), and keeps its pages until the end. It checks each piece of
  // a SEND or WRITE, but ibv_dereg_mr does not wait for another processor's (siw_proc_write).
  bool finishes_what_has_begun = false;

  // siw hands the program's pages to TCP when a request of this many bytes is not signaled
  // (siw_qp_prepare_tx); TCP may send them, even again, after a later request has completed and
  // they were rewritten. So it has to be signaled. 0: no.
  uint32_t borrows_unsignaled_from = 0;

  // siw's library refuses a receive without Sges, and leaves an empty send those of the request
  // before in its place (push_send_wqe): an empty READ would write there. So each has at least one
  // Sge, if an empty one.
  bool needs_a_piece = false;

  // siw answers an empty READ that had to wait with as many bytes as it sent before, from there
  // (siw_activate_tx), and the reader ends the connection. So no such READ gets to the wire.
  bool garbles_empty_reads = false;

  // siw keeps a request that waits for READs, fenced or beyond those agreed, in its one place for
  // sending: answers to the peer's READs wait behind it, a deadlock if the peer's do too; and room
  // in the socket sends it whether the READs have come or not (siw_qp_llp_write_space,
  // siw_sq_resume). Without a fence, requests complete before an earlier READ. So siw is given no
  // request that has to wait.
  bool breaks_fences = false;

  // True if completions come unasked, to be taken as they come.
  bool completes_unasked() const { return borrows_unsignaled_from != 0 || breaks_fences; }
};

inline Quirks QuirksOf(const ibv_device_attr& device) {
  constexpr uint32_t kRxe = 0xffffff, kSiw = 0x626d74;
  Quirks quirks;
  quirks.windows_are_open = quirks.gets_lost_in_repeats = device.vendor_id == kRxe;
  if (device.vendor_id != kSiw) return quirks;
  quirks.forbids_a_place = quirks.forgets_solicited = true;
  quirks.reads_any_region = quirks.ignores_queue_pair_rights = quirks.finishes_what_has_begun = true;
  quirks.borrows_unsignaled_from = 4096;
  quirks.needs_a_piece = quirks.garbles_empty_reads = quirks.breaks_fences = true;
  return quirks;
}

}  // namespace tokamak::verbs::ibv
