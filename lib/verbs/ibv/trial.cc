#include "lib/verbs/ibv/trial.h"

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "lib/verbs/ibv/translation/errors.h"
#include "lib/verbs/ibv/translation/limits.h"

namespace tokamak::verbs::ibv {
namespace {

// Returns an errno, or 0. `walk`: to Init as well.
int TryQueuePair(ibv_pd* domain, ibv_cq* queue, const LocalPort& port, uint32_t max_inline, bool walk) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = wanted.cap.max_recv_wr = 1;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = max_inline;
  errno = 0;
  ibv_qp* const made = ibv_create_qp(domain, &wanted);
  if (made == nullptr) return errno == 0 ? EIO : errno;
  int error = 0;
  if (walk) {
    Step init = InitStep(port, kLocalRead);
    error = ibv_modify_qp(made, &init.attributes, init.mask);
  }
  ibv_destroy_qp(made);
  return error;
}

}  // namespace

absl::StatusOr<uint32_t> TryDevice(ibv_context* device, const LocalPort& port) {
  ibv_pd* const domain = ibv_alloc_pd(device);
  if (domain == nullptr) return ErrnoStatus(errno, "ibv_alloc_pd");
  const absl::Cleanup free_domain = [domain] { ibv_dealloc_pd(domain); };
  ibv_cq* const queue = ibv_create_cq(device, 2, nullptr, nullptr, 0);
  if (queue == nullptr) return ErrnoStatus(errno, "ibv_create_cq");
  const absl::Cleanup free_queue = [queue] { ibv_destroy_cq(queue); };
  if (const int error = TryQueuePair(domain, queue, port, 0, true); error != 0) {
    return ErrnoStatus(error, "a queue pair in Init");
  }
  // The largest granted number of steps lies in [granted, refused).
  uint32_t granted = 0;
  uint32_t refused = kMaxInline / kInlineStep + 1;
  while (granted + 1 < refused) {
    const uint32_t steps = granted + (refused - granted) / 2;
    (TryQueuePair(domain, queue, port, steps * kInlineStep, false) == 0 ? granted : refused) = steps;
  }
  return granted * kInlineStep;
}

}  // namespace tokamak::verbs::ibv
