#include "lib/cli/watch/events.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/text/printable.h"
#include "lib/base/time.h"
#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "lib/cli/common/wording.h"
#include "lib/os/calendar.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli {

using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLookAtNodes(1);  // delay of a node's joining or leaving

struct EventsFlags {
  uint64_t count = 0;       // 0: unbounded
  base::Duration duration;  // zero: unbounded
};

// Follows one node, to the flags' bounds.
class Follower final {
 public:
  Follower(const CommandContext& context, const EventsFlags& flags)
      : client_(context.client), json_(context.flags.json), flags_(flags) {
    if (flags.duration > base::Duration()) end_ = Clock::now() + AsTimeout(flags.duration).duration();
  }

  absl::Status Run() {
    auto subscription = AsAbsl(client_.Subscribe());
    if (!subscription.ok()) return subscription.status();
    LookAtNodes();
    Print("following", {{"node", client_.node()}}, base::Printable(client_.node()));
    printed_ = 0;
    auto look_at = Clock::now() + kLookAtNodes;
    while (!Ended()) {
      const auto until = std::min(look_at, end_) - Clock::now();
      const auto events = AsAbsl(subscription->Next(until));
      if (events.ok()) {
        Take(*events);
      } else if (!absl::IsDeadlineExceeded(events.status())) {
        return events.status();
      }
      if (Clock::now() < look_at) continue;
      LookAtNodes();
      look_at = Clock::now() + kLookAtNodes;
    }
    return absl::OkStatus();
  }

 private:
  bool Ended() const {
    return (flags_.count > 0 && printed_ >= flags_.count) || Clock::now() >= end_ || !std::cout.good();
  }

  void Print(const char* what, json fields, const std::string& text) {
    if (flags_.count > 0 && printed_ >= flags_.count) return;
    ++printed_;
    const std::string now = os::UtcTextWithMilliseconds(os::UnixNanoseconds());
    if (json_) {
      fields["time"] = now;
      fields["event"] = what;
      std::cout << ToText(std::move(fields)) << std::endl;
    } else {
      std::cout << now << " " << what << " " << text << std::endl;
    }
  }

  void Take(const Events& came) {
    if (came.dropped > 0) {
      Print("dropped", {{"events", came.dropped}}, absl::StrCat(came.dropped, " events: read faster to see them all"));
    }
    for (const Event& event : came.events) {
      Print(Wording(event.kind),
            {{"id", event.id.ToHex()},
             {"name", event.name},
             {"data_bytes", event.data_size},
             {"metadata_bytes", event.metadata_size},
             {"origin", Wording(event.origin)}},
            absl::StrCat(event.id.ToHex(), " ", base::FormatSize(event.data_size), ", ", Wording(event.origin),
                         event.name.empty() ? "" : ": ", base::Printable(event.name)));
    }
  }

  // Prints joins and leaves since the last look.
  void LookAtNodes() {
    const auto nodes = AsAbsl(client_.Nodes());
    if (nodes.ok() != directory_answers_) {
      directory_answers_ = nodes.ok();
      Print(nodes.ok() ? "directory_back" : "directory_away", {{"message", nodes.status().message()}},
            base::Printable(nodes.status().message()));
    }
    if (!nodes.ok()) return;
    std::map<std::string, NodeInfo> now;
    for (const NodeInfo& node : *nodes) now[node.name] = node;
    for (const auto& [name, node] : nodes_) {
      const auto later = now.find(name);
      if (later == now.end() || later->second.incarnation != node.incarnation) PrintNode("node_left", node);
    }
    for (const auto& [name, node] : now) {
      const auto before = nodes_.find(name);
      const bool is_new = before == nodes_.end() || before->second.incarnation != node.incarnation;
      if (is_new && seen_nodes_) PrintNode("node_joined", node);
    }
    nodes_ = std::move(now);
    seen_nodes_ = true;
  }

  void PrintNode(const char* what, const NodeInfo& node) {
    Print(what, {{"node", node.name}, {"address", node.address}, {"device", node.device}},
          absl::StrCat(base::Printable(node.name), " at ", base::Printable(node.address)));
  }

  Client& client_;
  const bool json_;
  const EventsFlags& flags_;
  Clock::time_point end_ = Clock::time_point::max();
  uint64_t printed_ = 0;
  std::map<std::string, NodeInfo> nodes_;
  bool seen_nodes_ = false;
  bool directory_answers_ = true;
};

void AddEvents(CLI::App& events, EventsFlags& flags) {
  events.add_option("-n,--count", flags.count, "end after this many events")->check(AtLeastOne());
  AddDuration(events, "--for", flags.duration, "end after this long; neither: until it is interrupted")
      ->default_str("");
}

absl::Status FollowEvents(const CommandContext& context, const EventsFlags& flags) {
  return Follower(context, flags).Run();
}

}  // namespace

Command EventsCommand() {
  Command command = CommandWithDaemon(
      {"events",
       "follow what is sealed, deleted and evicted on a node, and which nodes join and leave; one event a line",
       "tok events --for 1s"},
      AddEvents, FollowEvents);
  command.is_endless = true;
  return command;
}

}  // namespace tokamak::cli
