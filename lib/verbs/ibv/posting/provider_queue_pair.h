// ProviderQueuePair is the provider's ibv_qp of one queue pair, as the two threads share it that
// make and walk it: the loop's, and the one that connects (call_thread.h).
//
// One call at a time is under way. So whoever drops a queue pair waits for the call that is under
// way and for no other: after Destroy the provider is asked for nothing any more, though another
// thread still holds this. Posting and polling are the loop's alone, and take no lock here.
//
// Law: what has been told Error takes no step but to Error and Reset. So a connection that was
// dropped cannot bring its queue pair back to life.
// Thread rule: from any thread.
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
  // A connection's right to walk it.
  class Walker final {
   public:
    // Takes the right back, waiting for nobody. True: it was used, so the queue pair may have left
    // Init, or is about to; what is told Error then comes behind that step.
    bool Stop() {
      stopped_ = true;
      return walked_;
    }

    // Whether it still has the right, which is used with this.
    bool MayWalk() {
      walked_ = true;  // first: either this or Stop sees what the other wrote
      return !stopped_;
    }

   private:
    std::atomic<bool> stopped_{false};
    std::atomic<bool> walked_{false};
  };

  // What `wanted` names outlives the queue pair's Destroy.
  ProviderQueuePair(ibv_pd* domain, const ibv_qp_init_attr& wanted, const Step& init)
      : domain_(domain), wanted_(wanted), init_(init) {}
  ProviderQueuePair(const ProviderQueuePair&) = delete;
  ProviderQueuePair& operator=(const ProviderQueuePair&) = delete;

  // ibv_create_qp and the step to Init, here and now where nobody did it before. Everybody gets the
  // same answer. kCancelled: it was told Error, or destroyed, before.
  absl::Status Make();
  bool tried() const { return tried_.load(std::memory_order_acquire); }        // Make has an answer
  uint32_t number() const { return number_.load(std::memory_order_acquire); }  // once it is made

  // Of the thread that calls Destroy, once it is made: until then nobody changes it.
  ibv_qp* get() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return queue_pair_; }

  // ibv_modify_qp: 0, or an errno, positive. ECANCELED, asking nobody: its walker was stopped, it
  // has ended, or it is gone or not made.
  int Walk(const ibv_qp_attr& attributes, int mask, Walker* walker = nullptr);

  bool ready() const { return ready_.load(std::memory_order_acquire); }  // it was walked to ReadyToSend
  bool ended() const { return ended_.load(std::memory_order_acquire); }  // it was told Error
  bool lost() const { return lost_.load(std::memory_order_acquire); }    // its device is gone

  // ibv_destroy_qp, where it was made: 0, or an errno. Nothing is asked of the provider after.
  int Destroy();

 private:
  ibv_pd* const domain_;
  ibv_qp_init_attr wanted_;
  Step init_;
  base::Mutex mutex_;  // held during each call but ibv_destroy_qp, which waits for events that may take it
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
