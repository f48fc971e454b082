// `tok doctor --listen`: waits for the doctors of other hosts once its own device is found healthy.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lib/daemon/devices/device.h"
#include "lib/verbs/types.h"

namespace tokamak::cli::doctor {

struct ListenSettings {
  std::string device;
  uint16_t port = 0;        // TCP; 0: one of the system's choice, which is printed
  uint32_t netdev_mtu = 0;  // bytes, reported to peers
  bool by_tcp = false;      // as ProbeRequest's
  verbs::Address address{};
  daemon::FabricSettings fabric{};
};

// The command that the other host is to run; in capitals what is its own. `port`: TCP, where we
// listen.
std::string AskingCommand(const ListenSettings& settings, uint16_t port);

// Answers peers one at a time until SIGINT or SIGTERM. Says on standard error when it is ready: the
// report has standard output to itself. An error: it could not begin.
absl::Status Listen(const ListenSettings& settings);

}  // namespace tokamak::cli::doctor
