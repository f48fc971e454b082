// A probe uses a device for real: opens it, makes its objects, connects and runs the ping-pong,
// step by step.
//
// A device may hang in a system call, out of reach of any deadline of ours, so probes run in a
// child process: RunProbe is what the child does, ChildProber what the parent does. The child tells
// each step, as a line of JSON, before it takes it; the parent folds the lines into a ProbeOutcome,
// which so also says where a child hung or died.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/cli/doctor/peer_desk.h"
#include "lib/cli/doctor/ping_pong.h"
#include "lib/daemon/devices/device.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli::doctor {

struct ProbeRequest {
  std::string device;  // as for tokd --device
  std::string peer;    // the host where tok doctor --listen runs; empty: the device talks to itself
  uint16_t peer_port = kPeerPort;
  bool by_tcp = false;       // as tokd --cm tcp
  verbs::Address address{};  // with it: where peers reach this host
  daemon::FabricSettings fabric{};
};

// A port as libibverbs tells it.
struct ProbedPort {
  uint32_t number = 0;
  uint32_t active_mtu = 0;  // bytes
  uint32_t max_mtu = 0;
};

struct ProbeOutcome {
  std::vector<std::string> steps;  // begun, in order: the last is where it stopped
  bool finished = false;           // all steps were taken
  absl::Status failure;            // what the last step ended with; OK when finished
  bool hung = false;               // the last step never returned, and the process had to be killed
  bool stuck = false;              // not even that was possible: the kernel does not let go of it

  std::vector<ProbedPort> ports;
  std::string address;      // the device's, once it is open
  uint32_t active_mtu = 0;  // bytes, once it is open
  bool is_rdma = false;
  std::optional<PeerHello> peer;
  std::optional<PingPongNumbers> numbers;

  bool Reached(absl::string_view step) const;
  // The step that went wrong; empty when it finished.
  std::string FailedStep() const { return finished || steps.empty() ? "" : steps.back(); }
};

// How a device is opened to be tried, here and where a doctor listens.
daemon::DeviceSettings SettingsFor(bool by_tcp, const verbs::Address& address, const daemon::FabricSettings& fabric);

// The flags of tokd and tok doctor that say the same, "--service-level 3"; empty where nothing was
// asked for.
std::string FlagsOf(const daemon::FabricSettings& fabric);

// Takes one line of a probe into account. A line that is none of ours (a library's warning) is
// ignored and returns false.
bool FoldLine(const std::string& line, ProbeOutcome& outcome);

// The child's part; each line goes to `say` at once, without a line feed.
void RunProbe(const ProbeRequest& request, const PingPongPlan& plan,
              const std::function<void(const std::string&)>& say);

// Who can probe. A seam for tests.
class Prober {
 public:
  virtual ~Prober() = default;
  virtual ProbeOutcome Probe(const ProbeRequest& request) = 0;
};

}  // namespace tokamak::cli::doctor
