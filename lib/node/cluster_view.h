// ClusterView asks all nodes of the cluster what they say of themselves: the directory who they
// are, and then each of them, at once. Whichever node is asked shows them all.
//
//   idle --Look--> the directory is asked --> the nodes are asked --> told, and good for a moment
//
// However many look, one question is under way; what it found serves who comes within kGoodFor of
// its end. A node that does not answer is suspected, and one that the directory has not heard of
// for its lease is silent: both are shown, with what the directory knows. While the directory is
// away the nodes that it named last are asked.
//
// Bounds: a look ends within kDirectoryDeadline and kNodesDeadline; kMaxAsked nodes are asked, by
// name, kAtOnce at once. Thread rule: the node's control loop.
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
  kSuspected = 1,  // it did not answer
  kSilent = 2,     // the directory has not heard of it for its lease
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
    base::Duration unheard_for;          // since it answered, or the directory heard of it
    std::optional<NodeNumbers> numbers;  // none: it did not say
  };
  struct View {
    bool located = false;      // the directory answered; else these are those that it named last
    std::vector<Entry> nodes;  // by name
  };
  using Callback = std::function<void(const View&)>;  // valid during the call

  // What it works with. All references must outlive it.
  struct Services {
    base::EventLoop& loop;
    directory::Directory& directory;
    transport::Caller& nodes;  // of the service kNumbers
    const directory::NodeInfo& self;
    std::function<NodeNumbers()> own;  // what this node says
  };

  explicit ClusterView(Services services) : services_(std::move(services)) {}
  ~ClusterView();
  ClusterView(const ClusterView&) = delete;
  ClusterView& operator=(const ClusterView&) = delete;

  [[nodiscard]] base::Pending Look(Callback done);

 private:
  enum class Step : uint8_t { kIdle, kAskingDirectory, kAskingNodes, kTelling };
  // One who waits; on the list until it is told or dropped.
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

  const Services services_;
  Step step_ = Step::kIdle;
  View view_;                                   // the last, or the one that is being made
  std::optional<base::Time> viewed_at_;         // the end of the last
  std::vector<directory::RosterEntry> roster_;  // what the directory said last
  base::Time named_at_;                         // when
  base::Pending directory_call_;
  std::vector<base::Pending> calls_;  // of the nodes in view_
  size_t next_ = 0;                   // of these
  size_t open_ = 0;
  base::Time ask_until_;
  base::Timer telling_;
  base::IntrusiveList<Asker, &Asker::link> askers_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::node
