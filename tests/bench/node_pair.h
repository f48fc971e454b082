// Two nodes that a benchmark pulls between: this process is one, by the daemon's own wiring on its
// own loop, and a tokd is the other. They are joined by the first one's directory.
//
// Thread rule: one thread, which runs the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/process/child_process.h"
#include "tests/bench/own_node.h"
#include "tokamak/client.h"

namespace tokamak::bench {

struct NodePairOptions {
  std::vector<std::string> devices;  // as tokd --device takes them, in turn; empty: software NICs on 127.0.0.1 and .2
  std::vector<std::string> flags;    // of both tokds
  std::string trace;                 // of the node in this process, a file; empty: none
  // How each finds its work: this process, and the other.
  std::string detection_here = "event";
  std::string detection_there = "event";
};

class NodePair final {
 public:
  NodePair() = default;
  ~NodePair();
  NodePair(const NodePair&) = delete;
  NodePair& operator=(const NodePair&) = delete;

  // Waits until both are there.
  absl::Status Start(const NodePairOptions& options);

  // For sockets and logs; gone with the pair.
  const std::string& folder() const { return folder_; }
  node::Node& node() { return here_->node(); }
  pid_t other() const { return other_->pid(); }         // its tokd
  base::PhaseLog* phases() { return here_->phases(); }  // null: no trace
  os::EpollLoop& loop() { return loop_; }
  store::Owner who() const { return who_; }

  // Calls the other node's daemon from a thread of its own, while our loop goes on: that daemon
  // asks our directory.
  absl::Status AskOther(const std::function<absl::Status(Client&)>& ask);

 private:
  absl::Status StartHere(const std::string& device, const std::string& listen, const std::vector<std::string>& flags);
  absl::Status StartThere(const std::string& device, const std::string& listen, const std::string& directory,
                          const std::vector<std::string>& flags);
  absl::Status AwaitOther();
  void AskForNodes();
  std::string Log() const;

  std::string folder_;
  os::EpollLoop loop_;
  std::unique_ptr<OwnNode> here_;
  std::unique_ptr<os::ChildProcess> other_;
  std::unique_ptr<Client> client_;
  store::Owner who_{};
  size_t nodes_ = 0;  // that our directory knows
  base::Pending asking_;
  base::Timer ask_again_;
};

}  // namespace tokamak::bench
