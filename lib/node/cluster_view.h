// ClusterView asks every node of the cluster for its numbers: first the directory for the nodes,
// then all of them at once.
//
//   idle --Look--> directory is asked --> nodes are asked --> answered, and good for a moment
//
// Askers share one question, and its result for kGoodFor. A node without an answer is suspected,
// one that the directory has not heard of for its lease is silent: both are shown as the directory
// knows them. While the directory is away, its last nodes are asked.
//
// Bounds: kDirectoryDeadline + kNodesDeadline for a look; kMaxAsked nodes, in order of name,
// kAtOnce at once. Thread rule: the control loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/base/time.h"
#include "lib/directory/directory.h"
#include "lib/node/calls/node_numbers.h"
#include "lib/transport/caller.h"

namespace tokamak::node {

enum class NodeState : uint8_t {
  kAlive = 0,
  kSuspected = 1,
  kSilent = 2,  // unheard of by the directory for its lease
};

class ClusterView final {
 public:
  static constexpr size_t kMaxAsked = 1024;
  static constexpr size_t kAtOnce = 256;
  static constexpr base::Duration kDirectoryDeadline = base::Milliseconds(700);
  static constexpr base::Duration kNodesDeadline = base::Milliseconds(1000);
  static constexpr base::Duration kGoodFor = base::Milliseconds(500);

  struct Entry {
    directory::NodeInfo node;
    NodeState state = NodeState::kAlive;
    base::Duration unheard_for;  // since it answered, or the directory heard of it
    std::optional<NodeNumbers> numbers;
  };
  struct View {
    bool located = false;      // true if the directory answered; else its last nodes
    std::vector<Entry> nodes;  // by name
  };
  using Callback = std::function<void(const View&)>;  // valid during the call

  // All references must outlive it.
  struct Needs {
    base::EventLoop& loop;
    directory::Directory& directory;
    transport::Caller& nodes;  // of the service kNumbers
    const directory::NodeInfo& self;
    std::function<NodeNumbers()> own;
  };

  explicit ClusterView(Needs needs) : needs_(std::move(needs)) {}
  ~ClusterView();
  ClusterView(const ClusterView&) = delete;
  ClusterView& operator=(const ClusterView&) = delete;

  [[nodiscard]] base::Pending Look(Callback done);

 private:
  enum class Step : uint8_t { kIdle, kAskingDirectory, kAskingNodes, kTelling };
  struct Asker final : base::Handle {
    Asker(ClusterView& v, Callback d) : view(&v), done(std::move(d)) {}
    ~Asker() override;

    ClusterView* view;  // null: off the list
    Callback done;
    base::Link<Asker> link;
  };

  void AskDirectory();
  void Named(const absl::StatusOr<std::vector<directory::RosterEntry>>& roster);
  void AskNodes();
  void AskNext();
  void Answered(size_t place, const absl::StatusOr<absl::Span<const uint8_t>>& reply);
  void TellSoon();
  void Tell();
  void Stop();

  const Needs needs_;
  Step step_ = Step::kIdle;
  View view_;                                   // the last, or under way
  std::optional<base::Time> viewed_at_;         // the last's end
  std::vector<directory::RosterEntry> roster_;  // the last answer
  base::Time named_at_;
  base::Pending directory_call_;
  std::vector<base::Pending> calls_;  // to the nodes in view_
  size_t next_ = 0;                   // of the nodes in view_
  size_t open_ = 0;
  base::Time ask_until_;
  base::Timer telling_;
  base::IntrusiveList<Asker, &Asker::link> askers_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::node
