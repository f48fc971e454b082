#include "tests/verbs/ibv/recording_verbs.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#undef ibv_query_port
#undef ibv_reg_mr

namespace tokamak::verbs::ibv {

namespace {

void WriteOne(int fd) {
  const uint64_t one = 1;
  if (write(fd, &one, sizeof(one)) != sizeof(one)) std::abort();
}

}  // namespace

CallLog& CallLog::Get() {
  static CallLog* const one = new CallLog;
  return *one;
}

void CallLog::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  calls_.clear();
}

std::vector<CallLog::Call> CallLog::calls() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return calls_;
}

void CallLog::Hold(const std::string& name, std::thread::id here) {
  const std::lock_guard<std::mutex> lock(mutex_);
  hold_ = name;
  here_ = here;
}

bool CallLog::holds() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_;
}

void CallLog::Release() {
  const std::lock_guard<std::mutex> lock(mutex_);
  hold_.clear();
  changed_.notify_all();
}

int CallLog::destroyed_in_use() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return destroyed_in_use_;
}

void CallLog::Begin(std::string name, const ibv_qp* object) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (name == "ibv_destroy_qp" && in_use_.count(object) > 0) ++destroyed_in_use_;
  in_use_.insert(object);
  calls_.push_back({name, std::this_thread::get_id()});
  if (hold_ != name || std::this_thread::get_id() == here_) return;
  held_ = true;
  changed_.wait(lock, [this] { return hold_.empty(); });
  held_ = false;
}

void CallLog::End(const ibv_qp* object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  in_use_.erase(in_use_.find(object));
}

RecordingVerbs& RecordingVerbs::Get() {
  static RecordingVerbs* const one = new RecordingVerbs;
  return *one;
}

void RecordingVerbs::Complete(ibv_cq* queue, const ibv_wc& done) {
  completions[queue].push_back(done);
  if (armed.erase(queue) == 0) return;
  late_events.push_back(queue);
  if (!events_are_late) ReleaseEvents();
}

void RecordingVerbs::ReleaseEvents() {
  for (ibv_cq* queue : late_events) {
    events.push_back(queue);
    WriteOne(queue->channel->fd);
  }
  late_events.clear();
}

}  // namespace tokamak::verbs::ibv

using tokamak::verbs::ibv::CallLog;
using tokamak::verbs::ibv::RecordingVerbs;

namespace {

class Logged final {
 public:
  explicit Logged(std::string name, const ibv_qp* object = nullptr) : object_(object) {
    CallLog::Get().Begin(std::move(name), object);
  }
  ~Logged() { CallLog::Get().End(object_); }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;

 private:
  const ibv_qp* const object_;
};

ibv_device* TheDevice() {
  static ibv_device* const device = [] {
    auto* const made = new ibv_device{};
    made->node_type = IBV_NODE_CA;
    made->transport_type = IBV_TRANSPORT_IB;
    std::strncpy(made->name, RecordingVerbs::kDevice, sizeof(made->name) - 1);
    return made;
  }();
  return device;
}

int Poll(ibv_cq* queue, int most, ibv_wc* to) {
  std::deque<ibv_wc>& waiting = RecordingVerbs::Get().completions[queue];
  int count = 0;
  for (; count < most && !waiting.empty(); waiting.pop_front()) to[count++] = waiting.front();
  return count;
}

int Arm(ibv_cq* queue, int) {
  RecordingVerbs::Get().armed.insert(queue);
  return 0;
}

int PostSends(ibv_qp*, ibv_send_wr*, ibv_send_wr**) { return 0; }
int PostReceives(ibv_qp*, ibv_recv_wr* first, ibv_recv_wr**) {
  const Logged logged("ibv_post_recv");
  for (; first != nullptr; first = first->next) RecordingVerbs::Get().receives.push_back(first->wr_id);
  return 0;
}
int PostSharedReceives(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**) { return 0; }

ibv_mw* AllocateWindow(ibv_pd* domain, ibv_mw_type type) {
  auto* const window = new ibv_mw{};
  window->context = domain->context;
  window->pd = domain;
  window->type = type;
  return window;
}

// Keeps what is not released where a sanitizer sees that it is not lost.
int NotReleased(void* object, int error) {
  static auto* const kept = new std::vector<void*>;
  kept->push_back(object);
  return error;
}

int DeallocateWindow(ibv_mw* window) {
  if (RecordingVerbs::Get().window_error != 0) return NotReleased(window, RecordingVerbs::Get().window_error);
  delete window;
  return 0;
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  if (count != nullptr) *count = 1;
  return new ibv_device* [2] { TheDevice(), nullptr };
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
  auto* const context = new ibv_context{};
  context->device = device;
  context->async_fd = eventfd(0, EFD_CLOEXEC);
  context->num_comp_vectors = RecordingVerbs::kVectors;
  context->ops.poll_cq = Poll;
  context->ops.req_notify_cq = Arm;
  context->ops.post_send = PostSends;
  context->ops.post_recv = PostReceives;
  context->ops.post_srq_recv = PostSharedReceives;
  context->ops.alloc_mw = AllocateWindow;
  context->ops.dealloc_mw = DeallocateWindow;
  return context;
}

int ibv_close_device(ibv_context* context) {
  close(context->async_fd);
  delete context;
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->vendor_id = 0x2c9;
  attributes->phys_port_cnt = 1;
  attributes->device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attributes->atomic_cap = IBV_ATOMIC_HCA;
  attributes->max_qp = attributes->max_cq = attributes->max_mr = attributes->max_mw = 1024;
  attributes->max_qp_wr = attributes->max_cqe = attributes->max_srq_wr = 4096;
  attributes->max_srq = 16;
  attributes->max_sge = attributes->max_sge_rd = attributes->max_srq_sge = 16;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  attributes->local_ca_ack_delay = 16;
  return 0;
}

int ibv_query_port(ibv_context*, uint8_t, _compat_ibv_port_attr* to) {
  const Logged logged("ibv_query_port");
  auto* const port = reinterpret_cast<ibv_port_attr*>(to);
  port->state = IBV_PORT_ACTIVE;
  port->max_mtu = port->active_mtu = IBV_MTU_4096;
  port->lid = 1;
  port->max_msg_sz = 1u << 30;
  port->link_layer = IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* entries, size_t, uint32_t, size_t) {
  const Logged logged("ibv_query_gid_table");
  entries[0] = {};
  entries[0].gid.raw[0] = 0xfe;
  entries[0].gid.raw[1] = 0x80;
  entries[0].gid.raw[15] = 1;
  entries[0].port_num = 1;
  entries[0].gid_type = IBV_GID_TYPE_IB;
  return 1;
}

const char* ibv_port_state_str(ibv_port_state) { return "ACTIVE"; }

int ibv_get_async_event(ibv_context*, ibv_async_event*) {
  errno = EAGAIN;
  return -1;
}
void ibv_ack_async_event(ibv_async_event*) {}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* const domain = new ibv_pd{};
  domain->context = context;
  return domain;
}
int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t length, uint64_t, unsigned access) {
  RecordingVerbs& verbs = RecordingVerbs::Get();
  if ((access & verbs.refused_access) != 0) {
    errno = EINVAL;
    return nullptr;
  }
  verbs.accesses.push_back(access);
  ++verbs.regions;
  auto* const region = new ibv_mr{};
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  return region;
}
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int access) {
  return ibv_reg_mr_iova2(domain, address, length, 0, static_cast<unsigned>(access));
}
int ibv_dereg_mr(ibv_mr* region) {
  RecordingVerbs& verbs = RecordingVerbs::Get();
  if (verbs.deregistration_error != 0) return NotReleased(region, verbs.deregistration_error);
  --verbs.regions;
  delete region;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = new ibv_comp_channel{};
  channel->context = context;
  channel->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  ++RecordingVerbs::Get().channels;
  return channel;
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  --RecordingVerbs::Get().channels;
  close(channel->fd);
  delete channel;
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** context) {
  RecordingVerbs& verbs = RecordingVerbs::Get();
  ++verbs.event_reads;
  uint64_t one = 0;
  if (read(channel->fd, &one, sizeof(one)) != sizeof(one)) return -1;
  const auto next = std::find_if(verbs.events.begin(), verbs.events.end(),
                                 [channel](const ibv_cq* event) { return event->channel == channel; });
  *queue = *next;
  *context = (*next)->cq_context;
  verbs.events.erase(next);
  return 0;
}
void ibv_ack_cq_events(ibv_cq*, unsigned) {}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int vector) {
  RecordingVerbs::Get().completion_vectors.push_back(vector);
  auto* const queue = new ibv_cq{};
  queue->context = context;
  queue->channel = channel;
  queue->cq_context = owner;
  queue->cqe = entries;
  RecordingVerbs::Get().queues.push_back(queue);
  return queue;
}
int ibv_resize_cq(ibv_cq* queue, int entries) {
  if (RecordingVerbs::Get().resize_error != 0) return RecordingVerbs::Get().resize_error;
  queue->cqe = entries;
  return 0;
}
int ibv_destroy_cq(ibv_cq* queue) {
  RecordingVerbs& verbs = RecordingVerbs::Get();
  // With what nobody has read of its events, as in the kernel.
  for (const ibv_cq* event : verbs.events) {
    uint64_t one = 0;
    if (event == queue && read(queue->channel->fd, &one, sizeof(one)) != sizeof(one)) std::abort();
  }
  verbs.events.erase(std::remove(verbs.events.begin(), verbs.events.end(), queue), verbs.events.end());
  verbs.late_events.erase(std::remove(verbs.late_events.begin(), verbs.late_events.end(), queue),
                          verbs.late_events.end());
  verbs.armed.erase(queue);
  verbs.completions.erase(queue);
  delete queue;
  return 0;
}

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* wanted) {
  auto* const queue = new ibv_srq{};
  queue->context = domain->context;
  queue->srq_context = wanted->srq_context;
  return queue;
}
int ibv_modify_srq(ibv_srq*, ibv_srq_attr*, int) { return 0; }
int ibv_destroy_srq(ibv_srq* queue) {
  delete queue;
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  const Logged logged("ibv_create_qp");
  if (RecordingVerbs::Get().create_error != 0) {
    errno = RecordingVerbs::Get().create_error;
    return nullptr;
  }
  static std::atomic<uint32_t> number{100};
  auto* const queue_pair = new ibv_qp{};
  queue_pair->context = domain->context;
  queue_pair->pd = domain;
  queue_pair->qp_context = wanted->qp_context;
  queue_pair->qp_num = ++number;
  queue_pair->state = IBV_QPS_RESET;
  return queue_pair;
}
int ibv_modify_qp(ibv_qp* queue_pair, ibv_qp_attr* attributes, int mask) {
  const Logged logged("ibv_modify_qp to " + std::to_string(attributes->qp_state), queue_pair);
  if ((mask & IBV_QP_PATH_MTU) != 0) RecordingVerbs::Get().path_mtus.push_back(attributes->path_mtu);
  if ((mask & IBV_QP_STATE) != 0) queue_pair->state = attributes->qp_state;
  return 0;
}
int ibv_query_qp(ibv_qp* queue_pair, ibv_qp_attr* attributes, int, ibv_qp_init_attr*) {
  const Logged logged("ibv_query_qp", queue_pair);
  attributes->qp_state = queue_pair->state;
  return 0;
}
int ibv_destroy_qp(ibv_qp* queue_pair) {
  const Logged logged("ibv_destroy_qp", queue_pair);
  delete queue_pair;
  return 0;
}

ibv_ah* ibv_create_ah(ibv_pd*, ibv_ah_attr*) { return nullptr; }
int ibv_destroy_ah(ibv_ah*) { return 0; }

}  // extern "C"
