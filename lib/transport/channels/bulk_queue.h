// BulkQueue is one bulk queue pair: its requests in flight, the notes that leave and come, and the
// windows open to its peer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/transport/channels/bulk_job.h"
#include "lib/transport/channels/shared_completions.h"
#include "lib/transport/channels/slots.h"
#include "lib/transport/channels/window.h"
#include "lib/transport/memory/rail.h"
#include "lib/transport/memory/slot_pool.h"
#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/request_id.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class BulkQueue final {
 public:
  enum class Side { kPuller, kOwner };

  static constexpr uint32_t kDepth = 64;           // send requests
  static constexpr uint32_t kWritesInFlight = 16;  // of these
  static constexpr uint32_t kNotes = 128;          // receives of a puller
  static constexpr uint32_t kGreetings = 2;        // receives of an owner
  static constexpr uint32_t kNoteSize = 4;         // bytes
  static constexpr uint32_t kNotesSize = (kDepth + kNotes) * kNoteSize;
  static_assert(kWritesInFlight + 1 < kDepth, "a window of writes and their notes fit the queue");

  // `bytes` of a job's share, a note (0 bytes), or a window's request. Else a greeting, or a
  // dropped window's.
  struct Posted {
    BulkJob* job = nullptr;
    uint32_t share = 0;
    uint32_t bytes = 0;
    Window* window = nullptr;
  };

  // Makes the queue pair and posts its receives. `number`: in the connection, from 0. `notes` has a
  // slot for notes.
  static absl::StatusOr<std::unique_ptr<BulkQueue>> Create(const Rail& rail, SlotPool& notes,
                                                           SharedCompletions& completions,
                                                           SharedCompletions::User& user, Side side, uint32_t number);
  ~BulkQueue();
  static uint32_t CompletionsFor(Side side) { return kDepth + ReceivesFor(side); }

  verbs::QueuePair& queue_pair() { return *queue_pair_; }

  // `reads`: READs in flight.
  void OnPeerHello(const Hello& peer, uint32_t reads);
  void Open() { open_ = true; }
  bool open() const { return open_; }
  bool HasRoom() const { return open_ && ring_.taken() < window_; }
  bool immediate() const { return immediate_; }

  // Returns the next request, of one piece of memory. All are signaled: a chunk is large, and its
  // completion lets the next one go.
  verbs::SendRequest& Stage(BulkJob* job, uint32_t share, const verbs::Sge& piece);
  void StageNote(BulkJob* job, uint32_t share, uint32_t value);
  void StageWindows();
  // Posts what is staged. Errors: the device refused a request, now or before.
  absl::Status Flush();

  // kInternal: a completion without a request.
  absl::StatusOr<Posted> OnSent(uint32_t entry);
  // Repost posts the receive again.
  absl::StatusOr<uint32_t> OnReceived(uint32_t entry, const verbs::Completion& completion);
  absl::Status Repost();

  // Keeps the window until ForgetWindow, or Window::OnQueueGone.
  void AddWindow(Window* window) { windows_.PushBack(window); }
  void ForgetWindow(Window* window);
  void Ask(Window* window) { asking_.PushBack(window); }
  bool Binds(uint32_t entry) const;

  // Moves the queue pair to Error; posted requests come back.
  void Fail();
  void OnFlushed(bool receive, uint32_t entry);
  // True if nothing is posted any more.
  bool flushed() const { return ring_.taken() == 0 && receives_posted_ == 0; }
  // Visits the requests not known to be done; once, with no completion passed on after.
  template <typename Visitor>
  void VisitUndone(Visitor visit) {
    for (const Posted& posted : posted_) {
      if (posted.job != nullptr) visit(posted);
    }
  }

 private:
  static constexpr uint32_t ReceivesFor(Side side) { return side == Side::kPuller ? kNotes : kGreetings; }

  BulkQueue(const Rail& rail, SlotPool& notes, uint32_t slot, Side side, uint32_t number);
  verbs::Sge NoteAt(uint32_t index) const;
  verbs::Sge Sent(uint32_t entry) const { return NoteAt(entry); }
  verbs::Sge Received(uint32_t entry) const { return NoteAt(kDepth + entry); }
  absl::Status MakeQueuePair(const Rail& rail, SharedCompletions& completions, SharedCompletions::User& user);
  verbs::SendRequest& Take(const Posted& posted);
  void Post();
  uint8_t queue() const { return static_cast<uint8_t>(number_ + 1); }  // RequestId's

  const Side side_;
  const uint32_t number_;
  const bool device_has_immediates_;
  SlotPool& notes_;
  const uint32_t slot_;
  std::unique_ptr<SharedCompletions::Share> completions_;
  std::unique_ptr<verbs::QueuePair> queue_pair_;  // dropped before its completions
  SendRing ring_{kDepth};
  std::array<Posted, kDepth> posted_ = {};  // by ring entry, valid if taken
  base::IntrusiveList<Window, &Window::link> windows_;
  base::IntrusiveList<Window, &Window::asking_link> asking_;
  std::vector<uint32_t> drained_;
  uint32_t receives_posted_ = 0;
  std::array<verbs::SendRequest, kPostBatch> staged_;
  std::array<verbs::Sge, kPostBatch> pieces_;
  size_t staged_count_ = 0;
  absl::Status post_status_;
  uint32_t window_ = 1;  // requests in flight
  uint32_t max_inline_ = 0;
  bool immediate_ = false;
  bool open_ = false;
  bool failed_ = false;
};

}  // namespace tokamak::transport
