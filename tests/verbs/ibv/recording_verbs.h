// RecordingVerbs stands for libibverbs and a provider: whoever links it calls these functions
// instead of the library's. One InfiniBand device with an active port does nothing, remembers what
// it was asked, and refuses what a test wants refused.
#pragma once

#include <infiniband/verbs.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tokamak::verbs::ibv {

// Calls that a device may be long at, and the threads that made them. From any thread.
class CallLog final {
 public:
  struct Call {
    std::string name;  // "ibv_modify_qp to 2"
    std::thread::id thread;
  };

  static CallLog& Get();

  // Forgets all calls.
  void Clear();
  // In the order in which they began.
  std::vector<Call> calls() const;

  // A call of `name` waits until Release, once. Not on `here`: such a call is noted, for the test
  // to find.
  void Hold(const std::string& name, std::thread::id here);
  bool holds() const;  // a call waits
  void Release();

  // Queue pairs that were destroyed while another call was at them.
  int destroyed_in_use() const;

  // Begins and ends each call. `object`: the queue pair that it is about.
  void Begin(std::string name, const ibv_qp* object = nullptr);
  void End(const ibv_qp* object = nullptr);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
  std::string hold_;  // none: nothing is held
  std::thread::id here_;
  bool held_ = false;
  std::multiset<const ibv_qp*> in_use_;
  int destroyed_in_use_ = 0;
};

struct RecordingVerbs {
  static constexpr char kDevice[] = "recorded0";
  static constexpr int kVectors = 4;  // completion vectors

  std::vector<int> completion_vectors;  // of ibv_create_cq
  std::vector<unsigned> accesses;       // of registrations that were taken
  unsigned refused_access = 0;          // ibv_reg_mr: EINVAL with any of these
  int deregistration_error = 0;         // ibv_dereg_mr
  int window_error = 0;                 // ibv_dealloc_mw
  int resize_error = 0;                 // ibv_resize_cq
  int create_error = 0;                 // ibv_create_qp
  int regions = 0;                      // that there are
  std::vector<ibv_mtu> path_mtus;       // of ibv_modify_qp

  // Completion queues in the order in which they were made, their channels, and what they are
  // asked.
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

  // The instance that the library's functions use; a test begins with a fresh one.
  static RecordingVerbs& Get();
  static void Reset() { Get() = RecordingVerbs(); }
};

}  // namespace tokamak::verbs::ibv
