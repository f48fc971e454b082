// RecordingRdmaCm stands for librdmacm and the kernel behind it: whoever links it calls these
// functions instead of the library's. Addresses and routes are found at once, every peer accepts,
// and what was asked for is remembered in its order.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <map>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace tokamak::verbs::ibv {

class RecordingRdmaCm final {
 public:
  static constexpr char kDevice[] = "recorded0";

  // The one that the library's functions tell of.
  static RecordingRdmaCm& Get();

  // The calls that make a connection, in order: "rdma_set_option tos 104".
  std::vector<std::string> TakeCalls();
  // All calls, by the threads that made them, since the last time.
  std::map<std::thread::id, size_t> TakeThreads();

  // Sets the route that rdma_init_qp_attr returns.
  void SetRoute(const ibv_ah_attr& route);

  // Connecting is answered by this from now on.
  void SetAnswer(rdma_cm_event_type answer);
  // rdma_set_option of a path fails with this; 0: it is taken.
  void RefusePaths(int error);

  // For the functions below.
  void Note(std::string call);
  void NoteThread();
  void Tell(rdma_cm_id* id, rdma_cm_event_type type);
  bool Next(rdma_event_channel* channel, rdma_cm_event** event);
  ibv_ah_attr route();
  rdma_cm_event_type answer();
  int path_error();
  ibv_context* device() { return &context_; }

 private:
  RecordingRdmaCm();

  std::mutex mutex_;
  std::vector<std::string> calls_;
  std::map<std::thread::id, size_t> threads_;
  std::map<rdma_event_channel*, std::queue<rdma_cm_event*>> events_;
  ibv_ah_attr route_{};
  rdma_cm_event_type answer_ = RDMA_CM_EVENT_CONNECT_RESPONSE;
  int path_error_ = 0;
  ibv_device device_{};
  ibv_context context_{};
};

}  // namespace tokamak::verbs::ibv
