// RecordingVerbs stands for libibverbs and a provider: whoever links it calls these functions
// instead of the library's. One InfiniBand device with an active port does nothing, remembers what
// it was asked, and refuses what a test wants refused.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

namespace tokamak::verbs::ibv {

struct RecordingVerbs {
  static constexpr char kDevice[] = "recorded0";
  static constexpr int kVectors = 4;  // completion vectors

  std::vector<int> completion_vectors;  // of ibv_create_cq
  std::vector<unsigned> accesses;       // of registrations that were taken
  unsigned refused_access = 0;          // ibv_reg_mr: EINVAL with any of these
  int deregistration_error = 0;         // ibv_dereg_mr
  int window_error = 0;                 // ibv_dealloc_mw
  int resize_error = 0;                 // ibv_resize_cq
  int regions = 0;                      // that there are
  std::vector<ibv_mtu> path_mtus;       // of ibv_modify_qp

  // Completion queues in the order in which they were made, their channels, and what they are asked.
  std::vector<ibv_cq*> queues;
  int channels = 0;  // that there are
  std::set<ibv_cq*> armed;
  int event_reads = 0;             // of channels
  std::vector<uint64_t> receives;  // wr_id of each that was posted
  bool events_are_late = false;    // they stay in the device until ReleaseEvents
  std::map<ibv_cq*, std::deque<ibv_wc>> completions;
  std::deque<ibv_cq*> events;  // to be read
  std::deque<ibv_cq*> late_events;

  // The device completes a request into `queue`, with an event where it was armed.
  void Complete(ibv_cq* queue, const ibv_wc& done);
  void ReleaseEvents();

  // What the library's functions look at; a test begins with a fresh one.
  static RecordingVerbs& Get();
  static void Reset() { Get() = RecordingVerbs(); }
};

}  // namespace tokamak::verbs::ibv
