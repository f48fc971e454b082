// Comparison finds where directory and store differ: objects here unknown to the directory, and
// objects named there but not here.
//
//   Begin --> pages of the store, which the directory verifies
//         --> pages of what the directory takes this node to hold --> ended
//
// A thorough round covers both; another the store, and a few of the directory's pages from where
// the last round ended, as each is a search through all nodes' objects.
//
// Law: a difference that lasts through a thorough round is reported.
// Law: no question is asked without room for the differences it may find.
// Bound: one question. Thread rule: the control loop.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/directory/directory.h"
#include "lib/store/store.h"

namespace tokamak::node {

class Comparison final {
 public:
  // References must outlive it.
  struct Needs {
    base::EventLoop& loop;
    store::Store& store;
    directory::Directory& directory;
    directory::NodeId self;
    base::Duration deadline;  // of each question
  };
  struct Callbacks {
    // Room for differences. 0: Continue follows.
    std::function<size_t()> room;
    // True if the directory hears of it anyhow.
    std::function<bool(const base::ObjectVersion&)> is_told;
    // Reports an object that is here (or not), contrary to the directory.
    std::function<void(const base::ObjectVersion&, bool here)> differs;
    // Ends the round; an error: early, without the directory's answer.
    std::function<void(const absl::Status&)> ended;
  };

  Comparison(Needs needs, Callbacks callbacks) : needs_(std::move(needs)), callbacks_(std::move(callbacks)) {}
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  // Replaces a round under way.
  void Begin(bool thorough);
  void Continue();
  void Stop();
  bool running() const { return running_; }

 private:
  void NextSoon();
  void Next();
  void AskAboutThese(const std::vector<store::StoredObject>& page);
  void Verified(const std::vector<base::ObjectVersion>& versions, const absl::StatusOr<std::vector<uint32_t>>& unknown);
  void AskWhatIsHeld();
  void Held(const absl::StatusOr<directory::HeldReply>& held);
  void End(const absl::Status& status);

  const Needs needs_;
  const Callbacks callbacks_;
  bool running_ = false;
  bool thorough_ = false;
  bool waits_for_room_ = false;
  bool store_is_done_ = false;
  std::optional<base::ObjectId> verified_to_;
  size_t pages_left_ = 0;  // of the directory, unless thorough
  std::string held_after_;
  base::Pending asking_;
  base::Timer next_;
};

}  // namespace tokamak::node
