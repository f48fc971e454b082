#include "tests/verbs/ibv/recording_rdma_cm.h"

#include <arpa/inet.h>
#include <infiniband/sa.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::verbs::ibv {

RecordingRdmaCm& RecordingRdmaCm::Get() {
  static RecordingRdmaCm* const one = new RecordingRdmaCm;
  return *one;
}

RecordingRdmaCm::RecordingRdmaCm() {
  std::strncpy(device_.name, kDevice, sizeof(device_.name) - 1);
  context_.device = &device_;
}

std::vector<std::string> RecordingRdmaCm::TakeCalls() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(calls_, {});
}

void RecordingRdmaCm::SetRoute(const ibv_ah_attr& route) {
  const std::lock_guard<std::mutex> lock(mutex_);
  route_ = route;
}

ibv_ah_attr RecordingRdmaCm::route() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return route_;
}

void RecordingRdmaCm::SetAnswer(rdma_cm_event_type answer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  answer_ = answer;
}

rdma_cm_event_type RecordingRdmaCm::answer() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return answer_;
}

void RecordingRdmaCm::RefusePaths(int error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  path_error_ = error;
}

int RecordingRdmaCm::path_error() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return path_error_;
}

std::map<std::thread::id, size_t> RecordingRdmaCm::TakeThreads() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(threads_, {});
}

void RecordingRdmaCm::NoteThread() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++threads_[std::this_thread::get_id()];
}

void RecordingRdmaCm::Note(std::string call) {
  NoteThread();
  const std::lock_guard<std::mutex> lock(mutex_);
  calls_.push_back(std::move(call));
}

void RecordingRdmaCm::Tell(rdma_cm_id* id, rdma_cm_event_type type) {
  auto* const event = new rdma_cm_event{};
  event->id = id;
  event->event = type;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_[id->channel].push(event);
  }
  const uint64_t one = 1;
  PCHECK(write(id->channel->fd, &one, sizeof(one)) == sizeof(one));
}

bool RecordingRdmaCm::Next(rdma_event_channel* channel, rdma_cm_event** event) {
  uint64_t one = 0;
  if (read(channel->fd, &one, sizeof(one)) != sizeof(one)) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::queue<rdma_cm_event*>& waiting = events_[channel];
  CHECK(!waiting.empty());
  *event = waiting.front();
  waiting.pop();
  return true;
}

}  // namespace tokamak::verbs::ibv

using tokamak::verbs::ibv::RecordingRdmaCm;

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  return new rdma_event_channel{eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)};
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  close(channel->fd);
  delete channel;
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space ps) {
  RecordingRdmaCm::Get().NoteThread();
  *id = new rdma_cm_id{};
  (*id)->channel = channel;
  (*id)->context = context;
  (*id)->ps = ps;
  return 0;
}

int rdma_destroy_id(rdma_cm_id* id) {
  RecordingRdmaCm::Get().NoteThread();
  delete id;
  return 0;
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  RecordingRdmaCm::Get().NoteThread();
  id->channel = channel;
  return 0;
}

int rdma_bind_addr(rdma_cm_id* id, sockaddr*) {
  RecordingRdmaCm::Get().Note("rdma_bind_addr");
  id->verbs = RecordingRdmaCm::Get().device();
  id->port_num = 1;
  return 0;
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr*, sockaddr*, int) {
  RecordingRdmaCm::Get().Note("rdma_resolve_addr");
  id->verbs = RecordingRdmaCm::Get().device();
  id->port_num = 1;
  RecordingRdmaCm::Get().Tell(id, RDMA_CM_EVENT_ADDR_RESOLVED);
  return 0;
}

int rdma_set_option(rdma_cm_id* id, int level, int name, void* value, size_t length) {
  if (level == RDMA_OPTION_IB) {
    CHECK(name == RDMA_OPTION_IB_PATH && length == sizeof(ibv_path_data));
    const auto& path = *static_cast<const ibv_path_data*>(value);
    RecordingRdmaCm::Get().Note("rdma_set_option path to " + std::to_string(ntohs(path.path.dlid)));
    errno = RecordingRdmaCm::Get().path_error();
    if (errno != 0) return -1;
    RecordingRdmaCm::Get().Tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return 0;
  }
  CHECK(level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_TOS && length == sizeof(uint8_t));
  RecordingRdmaCm::Get().Note("rdma_set_option tos " + std::to_string(*static_cast<uint8_t*>(value)));
  return 0;
}

int rdma_resolve_route(rdma_cm_id* id, int) {
  RecordingRdmaCm::Get().Note("rdma_resolve_route");
  static ibv_sa_path_rec path = [] {
    ibv_sa_path_rec made{};
    made.dlid = htons(7);
    return made;
  }();
  id->route.path_rec = &path;
  id->route.num_paths = 1;
  RecordingRdmaCm::Get().Tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return 0;
}

int rdma_connect(rdma_cm_id* id, rdma_conn_param*) {
  RecordingRdmaCm::Get().Note("rdma_connect");
  RecordingRdmaCm::Get().Tell(id, RecordingRdmaCm::Get().answer());
  return 0;
}

int rdma_establish(rdma_cm_id*) {
  RecordingRdmaCm::Get().Note("rdma_establish");
  return 0;
}

int rdma_listen(rdma_cm_id*, int) {
  RecordingRdmaCm::Get().Note("rdma_listen");
  return 0;
}

__be16 rdma_get_src_port(rdma_cm_id*) { return 0; }

int rdma_init_qp_attr(rdma_cm_id*, ibv_qp_attr* attributes, int* mask) {
  RecordingRdmaCm::Get().NoteThread();
  attributes->path_mtu = IBV_MTU_1024;
  attributes->ah_attr = RecordingRdmaCm::Get().route();
  *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU;
  return 0;
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  return RecordingRdmaCm::Get().Next(channel, event) ? 0 : -1;  // errno is read's
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  delete event;
  return 0;
}

int rdma_accept(rdma_cm_id*, rdma_conn_param*) { return 0; }
int rdma_reject(rdma_cm_id*, const void*, uint8_t) { return 0; }
int rdma_notify(rdma_cm_id*, ibv_event_type) { return 0; }

int rdma_disconnect(rdma_cm_id*) {
  RecordingRdmaCm::Get().NoteThread();
  errno = EINVAL;  // nothing is left to be disconnected
  return -1;
}

}  // extern "C"
