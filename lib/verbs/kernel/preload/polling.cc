// A poll of a completion queue only reads memory, which nobody sees. So when a program opens a
// device, its polling functions, public members of ibv_context, verbs_context and ibv_cq_ex, are
// replaced by ones that look at the network when the queue is empty.
//
// ibv_next_poll() detects the end here: rxe's own moves past the last completion, and
// ibv_end_poll(), which must follow, past one that is not there. The next round would read garbage
// (rdma-core#1512), and the queue would count as full.
//
// A program that gets ibv_open_device() by dlopen() and dlsym() bypasses this, and is served by the
// NIC's own thread.
#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <atomic>
#include <cerrno>

#include "lib/verbs/kernel/preload/program.h"
#include "lib/verbs/kernel/program/program_order.h"

#undef ibv_open_device

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tokamak::verbs::kernel::ProgramOrder;
using tokamak::verbs::kernel::preload::Kind;
using tokamak::verbs::kernel::preload::KindOf;
using tokamak::verbs::kernel::preload::RunningKernel;

// All devices of ours have one provider, and so the same functions.
std::atomic<int (*)(ibv_cq*, int, ibv_wc*)> real_poll{nullptr};
std::atomic<ibv_cq_ex* (*)(ibv_context*, ibv_cq_init_attr_ex*)> real_create_extended{nullptr};
std::atomic<int (*)(ibv_cq_ex*, ibv_poll_cq_attr*)> real_start_poll{nullptr};
std::atomic<int (*)(ibv_cq_ex*)> real_next_poll{nullptr};

// The queue that this thread goes through, and the number of its completions so far.
struct Round {
  const ibv_cq_ex* queue = nullptr;
  uint32_t seen = 0;
};
thread_local Round round;

// Returns false if this process has closed the device, or was forked.
bool LookAtNetwork(const ibv_context* context) {
  if (KindOf(context->cmd_fd) != Kind::kDevice) return false;
  if (tokamak::verbs::kernel::Kernel* const kernel = RunningKernel()) kernel->Poll();
  return true;
}

int RealPoll(ibv_cq* queue, int count, ibv_wc* completions) {
  const int polled = real_poll.load(std::memory_order_relaxed)(queue, count, completions);
  ProgramOrder::ProgramLoads();
  return polled;
}

int PollQueue(ibv_cq* queue, int count, ibv_wc* completions) {
  const int polled = RealPoll(queue, count, completions);
  if (polled != 0 || count == 0) return polled;
  return LookAtNetwork(queue->context) ? RealPoll(queue, count, completions) : -1;
}

int RealStartPoll(ibv_cq_ex* queue, ibv_poll_cq_attr* attributes) {
  const int started = real_start_poll.load(std::memory_order_relaxed)(queue, attributes);
  ProgramOrder::ProgramLoads();
  return started;
}

int StartPoll(ibv_cq_ex* queue, ibv_poll_cq_attr* attributes) {
  int started = RealStartPoll(queue, attributes);
  if (started == ENOENT) started = LookAtNetwork(queue->context) ? RealStartPoll(queue, attributes) : EACCES;
  round = started == 0 ? Round{queue, 1} : Round();
  return started;
}

// Returns whether there is a completion behind those that were seen, which are taken at the end of
// the round.
bool HasNext(ibv_cq_ex* queue) {
  tokamak::verbs::kernel::Kernel* const kernel = RunningKernel();
  return kernel != nullptr && kernel->CompletionsIn(queue->context->cmd_fd, queue->handle) > round.seen;
}

int NextPoll(ibv_cq_ex* queue) {
  if (round.queue == queue && !HasNext(queue)) {
    if (!LookAtNetwork(queue->context)) return EACCES;
    if (!HasNext(queue)) return ENOENT;
  }
  const int moved = real_next_poll.load(std::memory_order_relaxed)(queue);
  ProgramOrder::ProgramLoads();
  if (moved == 0) ++round.seen;
  return moved;
}

// Posting needs no look at the network: these are for the thread sanitizer alone.
std::atomic<int (*)(ibv_qp*, ibv_send_wr*, ibv_send_wr**)> real_post_send{nullptr};
std::atomic<int (*)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**)> real_post_receive{nullptr};
std::atomic<int (*)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**)> real_post_shared{nullptr};

int PostSend(ibv_qp* queue_pair, ibv_send_wr* requests, ibv_send_wr** refused) {
  ProgramOrder::ProgramStores();
  return real_post_send.load(std::memory_order_relaxed)(queue_pair, requests, refused);
}

int PostReceive(ibv_qp* queue_pair, ibv_recv_wr* requests, ibv_recv_wr** refused) {
  ProgramOrder::ProgramStores();
  return real_post_receive.load(std::memory_order_relaxed)(queue_pair, requests, refused);
}

int PostShared(ibv_srq* queue, ibv_recv_wr* requests, ibv_recv_wr** refused) {
  ProgramOrder::ProgramStores();
  return real_post_shared.load(std::memory_order_relaxed)(queue, requests, refused);
}

template <typename Function>
void ReplaceOne(Function** place, Function* ours, std::atomic<Function*>* real) {
  if (*place == ours) return;
  real->store(*place);
  *place = ours;
}

ibv_cq_ex* CreateExtended(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  ibv_cq_ex* const queue = real_create_extended.load(std::memory_order_relaxed)(context, attributes);
  if (queue == nullptr) return nullptr;
  real_start_poll.store(queue->start_poll);
  queue->start_poll = &StartPoll;
  real_next_poll.store(queue->next_poll);
  queue->next_poll = &NextPoll;
  return queue;
}

void Replace(ibv_context* context) {
  ReplaceOne(&context->ops.poll_cq, &PollQueue, &real_poll);
  if (ProgramOrder::kTold) {
    ReplaceOne(&context->ops.post_send, &PostSend, &real_post_send);
    ReplaceOne(&context->ops.post_recv, &PostReceive, &real_post_receive);
    ReplaceOne(&context->ops.post_srq_recv, &PostShared, &real_post_shared);
  }
  verbs_context* const extended = verbs_get_ctx_op(context, create_cq_ex);
  if (extended != nullptr) ReplaceOne(&extended->create_cq_ex, &CreateExtended, &real_create_extended);
}

using Open = ibv_context*(ibv_device*);

Open* RealOpen() {
  static std::atomic<Open*> found{nullptr};
  Open* open = found.load();
  if (open == nullptr) {
    // The next one may not be the library's, which may have been loaded for its user alone.
    void* const library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) open = reinterpret_cast<Open*>(dlvsym(library, "ibv_open_device", "IBVERBS_1.1"));
    found.store(open);
  }
  return open;
}

}  // namespace

EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  Open* const open = RealOpen();
  ibv_context* const context = open == nullptr ? nullptr : open(device);
  // Ours: the machine's devices are hidden.
  if (context != nullptr) Replace(context);
  return context;
}
