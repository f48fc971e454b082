// ProviderQueuePair is the provider's ibv_qp of one queue pair, shared by the loop's thread and the
// one that connects (call_thread.h), which both make and walk it.
//
// One call at a time is under way, so dropping a queue pair waits only for that one; after Destroy
// the provider is not called, even if another thread still holds this. Posting and polling are the
// loop's alone, and take no lock here.
//
// Law: after a step to Error only steps to Error and Reset follow, so a dropped connection cannot
// revive its queue pair.
// Thread rule: any thread.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "lib/base/mutex.h"
#include "lib/verbs/ibv/translation/attributes.h"

namespace tokamak::verbs::ibv {

class ProviderQueuePair final {
 public:
  // A connection's right to walk.
  class Walker final {
   public:
    // Takes the right back, without waiting. Returns true if it was used: the queue pair has left
    // Init or is about to, and a step to Error comes behind that.
    bool Stop() {
      stopped_ = true;
      return walked_;
    }

    // Uses the right; returns false if it was taken back.
    bool MayWalk() {
      walked_ = true;  // first: either this or Stop sees what the other wrote
      return !stopped_;
    }

   private:
    std::atomic<bool> stopped_{false};
    std::atomic<bool> walked_{false};
  };

  // Memory named by `wanted` outlives Destroy.
  ProviderQueuePair(ibv_pd* domain, const ibv_qp_init_attr& wanted, const Step& init)
      : domain_(domain), wanted_(wanted), init_(init) {}
  ProviderQueuePair(const ProviderQueuePair&) = delete;
  ProviderQueuePair& operator=(const ProviderQueuePair&) = delete;

  // Calls ibv_create_qp and steps to Init, once, with the same answer for all. kCancelled: it went
  // to Error, or was destroyed, before.
  absl::Status Make();
  bool tried() const { return tried_.load(std::memory_order_acquire); }        // true once Make has an answer
  uint32_t number() const { return number_.load(std::memory_order_acquire); }  // once made

  // Once it is made, for the thread that calls Destroy; constant until then.
  ibv_qp* get() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return queue_pair_; }

  // Calls ibv_modify_qp. Returns a positive errno, or 0. ECANCELED, without a call: its walker was
  // stopped, it has ended, or it is gone or not made.
  int Walk(const ibv_qp_attr& attributes, int mask, Walker* walker = nullptr);

  bool ready() const { return ready_.load(std::memory_order_acquire); }  // true after a step to ReadyToSend
  bool ended() const { return ended_.load(std::memory_order_acquire); }  // true after a step to Error
  bool lost() const { return lost_.load(std::memory_order_acquire); }    // true if its device is gone

  // Calls ibv_destroy_qp, if it was made, and nothing after. Returns an errno, or 0.
  int Destroy();

 private:
  ibv_pd* const domain_;
  ibv_qp_init_attr wanted_;
  Step init_;
  base::Mutex mutex_;  // held during calls except ibv_destroy_qp, which waits for events that may take it
  absl::Status made_ ABSL_GUARDED_BY(mutex_);
  bool destroyed_ ABSL_GUARDED_BY(mutex_) = false;
  ibv_qp* queue_pair_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> tried_{false};
  std::atomic<uint32_t> number_{0};
  std::atomic<bool> ready_{false};
  std::atomic<bool> ended_{false};
  std::atomic<bool> lost_{false};
};

}  // namespace tokamak::verbs::ibv
