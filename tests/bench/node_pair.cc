#include "tests/bench/node_pair.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/cli/cluster/places.h"
#include "lib/cli/common/as_absl.h"

namespace tokamak::bench {

absl::Status NodePair::Start(const NodePairOptions& options) {
  cli::Places places;
  places.devices = options.devices;
  places.port = 7100;
  const auto placed = cli::PlaceNodes(places, 2);
  if (!placed.ok()) return placed.status();
  folder_ = std::filesystem::temp_directory_path() / absl::StrCat("tokamak-bench-", getpid());
  std::filesystem::create_directory(folder_);
  const std::string here = (*placed)[0].listen.ToString(), there = (*placed)[1].listen.ToString();
  const bool everybody = !(*placed)[0].listen.is_loopback();  // in a guest: its network is its own
  const auto flags = [&](const std::string& detection) {
    std::vector<std::string> all = options.flags;
    if (everybody) all.push_back("--insecure");
    all.insert(all.end(), {"--detection", detection});
    return all;
  };
  std::vector<std::string> flags_here = flags(options.detection_here);
  if (!options.trace.empty()) flags_here.insert(flags_here.end(), {"--trace", options.trace});
  if (absl::Status s = StartHere((*placed)[0].device, here, flags_here); !s.ok()) return s;
  if (absl::Status s = StartThere((*placed)[1].device, there, here, flags(options.detection_there)); !s.ok()) return s;
  return AwaitOther();
}

absl::Status NodePair::StartHere(const std::string& device, const std::string& listen,
                                 const std::vector<std::string>& flags) {
  std::vector<std::string> all = {"--listen", listen, "--device", device, "--socket", folder_ + "/here.sock"};
  all.insert(all.end(), flags.begin(), flags.end());
  auto node = OwnNode::Start(loop_, all);
  if (!node.ok()) return node.status();
  here_ = *std::move(node);
  who_ = here_->node().store().NewOwner();
  return absl::OkStatus();
}

absl::Status NodePair::StartThere(const std::string& device, const std::string& listen, const std::string& directory,
                                  const std::vector<std::string>& flags) {
  os::ChildOptions child;
  child.argv = {"lib/daemon/tokd",
                "--listen",
                listen,
                "--device",
                device,
                "--socket",
                folder_ + "/there.sock",
                "--directory",
                absl::StrCat("tokd@", directory)};
  child.argv.insert(child.argv.end(), flags.begin(), flags.end());
  child.output = folder_ + "/there.log";
  child.die_with_parent = true;
  auto started = os::ChildProcess::Start(child);
  if (!started.ok()) return started.status();
  other_ = *std::move(started);
  return absl::OkStatus();
}

NodePair::~NodePair() {
  ask_again_ = base::Timer();
  client_.reset();
  if (other_ != nullptr) other_->Stop(base::Seconds(10));
  here_.reset();
  std::error_code error;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
}

absl::Status NodePair::AskOther(const std::function<absl::Status(Client&)>& ask) {
  auto answer = std::async(std::launch::async, [&] { return ask(*client_); });
  loop_.RunUntil([&] { return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready; },
                 loop_.Now() + base::Seconds(60));
  return answer.get();
}

// The other node is there when our directory knows two.
absl::Status NodePair::AwaitOther() {
  AskForNodes();
  const bool ready = loop_.RunUntil([&] { return nodes_ == 2; }, loop_.Now() + base::Seconds(30));
  if (!ready) return absl::UnavailableError(absl::StrCat("the other tokd did not join: ", Log()));
  auto client = cli::AsAbsl(Client::Connect(folder_ + "/there.sock"));
  if (!client.ok()) return client.status();
  client_ = std::make_unique<Client>(*std::move(client));
  return absl::OkStatus();
}

void NodePair::AskForNodes() {
  constexpr base::Duration kAskAgain = base::Milliseconds(20);
  asking_ = here_->node().Nodes([this](const absl::StatusOr<std::vector<directory::NodeInfo>>& all) {
    nodes_ = all.ok() ? all->size() : 0;
    if (nodes_ < 2) ask_again_ = loop_.RunAfter(kAskAgain, [this] { AskForNodes(); });
  });
}

std::string NodePair::Log() const {
  std::ifstream file(folder_ + "/there.log");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace tokamak::bench
