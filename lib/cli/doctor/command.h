// `tok doctor`: its flags and what it prints and returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "lib/cli/doctor/peer_desk.h"
#include "lib/daemon/devices/device.h"

namespace tokamak::cli::doctor {

struct CommandFlags {
  std::vector<std::string> devices;
  std::string memory = "512MiB";
  uint32_t peers = 0;
  std::string peer;
  uint16_t port = kPeerPort;
  std::string cm = "rdma";
  std::string address;
  daemon::FabricSettings fabric;
  bool listen = false;
  bool probe = false;  // we are the child that uses a device, see probe.h
};

void AddCommand(CLI::App& app, CommandFlags& flags);

// Returns the exit code: 0 it works, 1 it does not, 2 wrong flags.
int RunCommand(const CommandFlags& flags, bool json);

}  // namespace tokamak::cli::doctor
