#include "tests/bench/own_node.h"

namespace tokamak::bench {

absl::StatusOr<std::unique_ptr<OwnNode>> OwnNode::Start(os::EpollLoop& loop, const std::vector<std::string>& flags) {
  std::vector<const char*> argv = {"bench"};
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  const daemon::ParsedFlags parsed = daemon::ParseFlags(static_cast<int>(argv.size()), argv.data());
  if (!parsed.run) return absl::InvalidArgumentError("wrong flags");
  loop.SetDetection(parsed.options.detection);
  auto daemon = daemon::Daemon::Start(loop, parsed.options, [] { return false; });
  if (!daemon.ok()) return daemon.status();
  return std::unique_ptr<OwnNode>(new OwnNode(*std::move(daemon)));
}

}  // namespace tokamak::bench
