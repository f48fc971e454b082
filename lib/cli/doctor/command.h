// `tok doctor`: its flags and what it prints and returns.
#pragma once

#include <cstdint>
#include <string>

#include "CLI/CLI.hpp"
#include "lib/cli/doctor/doctor.h"
#include "lib/cli/doctor/listen.h"

namespace tokamak::cli::doctor {

struct CommandFlags {
  DoctorSettings settings;  // without what is parsed of the texts below
  std::string memory = "512MiB";
  std::string peer;
  uint16_t port = kDoctorPort;
  std::string cm = "rdma";
  std::string address;
  bool probe = false;  // we are the child that uses a device, see probe.h
};

void AddCommand(CLI::App& app, CommandFlags& flags);

// Returns the exit code: 0 it works, 1 it does not, 2 wrong flags.
int RunCommand(const CommandFlags& flags, bool json);

}  // namespace tokamak::cli::doctor
